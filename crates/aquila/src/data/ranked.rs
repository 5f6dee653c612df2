//! Ranked labels of many rows: what predictions are, whoever made them.

/// Ranked labels of many rows: row `i` has the labels `indptr[i]..indptr[i + 1]`, best first, ties by label id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// Row pointers; a default value has none, and no rows.
    pub indptr: Vec<usize>,
    /// Label ids.
    pub labels: Vec<u32>,
    /// Scores.
    pub scores: Vec<f32>,
}

impl Ranked {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }
}
