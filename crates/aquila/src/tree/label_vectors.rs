//! What k-means sees of labels: sparse vectors, and dense ones beside them.

use super::vectors::{Cut, given};
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::kernels::rounded::{Rounded, values};
use std::sync::Arc;

/// One vector a label: sparse columns, and behind them those of a dense block, rounded to two bytes a value.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelVectors {
    sparse: Csr,
    dense: Arc<Rounded>,
}

impl From<Csr> for LabelVectors {
    fn from(sparse: Csr) -> Self {
        Self { sparse, dense: Arc::default() }
    }
}

impl LabelVectors {
    pub(super) fn new(sparse: Csr, dense: Rounded) -> Self {
        Self { sparse, dense: Arc::new(dense) }
    }

    /// Number of labels.
    pub fn rows(&self) -> usize {
        self.sparse.rows()
    }

    /// The sparse part.
    pub fn sparse(&self) -> &Csr {
        &self.sparse
    }

    /// The values of a label in the dense block, and zeros that fill up the last line.
    pub fn dense(&self, label: usize) -> Vec<f32> {
        values(self.dense.row(label)).collect()
    }

    /// Whether there is nothing to compare the label by.
    pub fn is_empty(&self, label: usize) -> bool {
        self.sparse.row(label).is_empty() && values(self.dense.row(label)).all(|v| v == 0.0)
    }

    /// The same with sparse parts cut; dense ones are shared.
    pub fn cut(&self, cut: Cut, control: &Control) -> Result<Self> {
        let mut sparse = given(&self.sparse, cut, control)?;
        if self.dense.cols() > 0 {
            let lengths: Vec<f32> = self.sparse.iter_rows().map(|row| row.norm()).collect();
            sparse = stretch(sparse, &lengths);
        }
        Ok(Self { sparse, dense: Arc::clone(&self.dense) })
    }

    /// Both parts, taken apart.
    pub(super) fn into_parts(self) -> (Csr, Arc<Rounded>) {
        (self.sparse, self.dense)
    }
}

impl From<LabelVectors> for Csr {
    /// The sparse part alone.
    fn from(vectors: LabelVectors) -> Self {
        vectors.sparse
    }
}

/// Multiplies each row by its number.
pub(super) fn stretch(rows: Csr, lengths: &[f32]) -> Csr {
    let (n, cols, indptr) = (rows.rows(), rows.cols(), rows.indptr().to_vec());
    let (indices, mut values) = rows.into_entries();
    for (span, length) in indptr.windows(2).zip(lengths) {
        values[span[0]..span[1]].iter_mut().for_each(|v| *v *= length);
    }
    Csr::trusted(n, cols, indptr, indices, values)
}
