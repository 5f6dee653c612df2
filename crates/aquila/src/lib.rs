//! Aquila finds the few right labels of an input among thousands or millions.
//!
//! The data's way through the engine is the list of modules below, top to bottom; a module never uses one
//! that stands after it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`error`] | the one error type: code, message, cure |
//! | [`mod@params`] | how a parameter states its meaning, range and default once |
//! | [`rng`] | seeded random numbers, the same on every platform |
//! | [`memory`] | memory that the system may refuse |
//! | [`control`] | threads, cancellation, progress and the memory limit of a heavy call |
//! | [`data`] | matrices in memory; readers and writers of every file format |
//! | [`kernels`] | the only `unsafe` arithmetic, each with a scalar twin |
//! | [`tree`] | label vectors, k-means, the label tree |
//! | [`overlap`] | which further leaves a label hangs under |
//! | [`linear`] | blocked dual coordinate descent, losses, pruning |
//! | [`xlinear`] | training per layer, the feature-major layout, beam search, the model file |
//! | [`eagle`] | labels of groups: grouping rules, embeddings, assignment |
//! | [`metrics`] | precision, nDCG, recall, propensity-scored forms, F1s |
//!
//! The algorithm behind each module is stated on its page, with its source and where we differ.

pub mod control;
pub mod data;
pub mod eagle;
pub mod error;
pub mod kernels;
pub mod linear;
pub mod memory;
pub mod metrics;
pub mod overlap;
pub mod params;
pub mod rng;
pub mod tree;
pub mod xlinear;

pub use control::{Control, Progress};
pub use data::{Csr, Dense, FeatureRow, Features, Row};
pub use error::{Error, ErrorCode, Result};

/// The engine's version, as written into model files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
