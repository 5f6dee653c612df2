//! Measures of ranked predictions.
