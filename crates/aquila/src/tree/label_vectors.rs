//! The input of k-means over labels or rows: sparse vectors, optionally with a dense part.

use super::vectors::{Cut, given};
use crate::control::Control;
use crate::data::{Csr, Dense, Features};
use crate::error::Result;
use crate::kernels::bf16_rows::{Bf16Rows, round, values};
use rayon::prelude::*;
use std::sync::Arc;

/// One vector per label: sparse columns, followed by the columns of a dense block, rounded to two bytes per value.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelVectors {
    sparse: Csr,
    dense: Arc<Bf16Rows>,
}

impl From<Csr> for LabelVectors {
    fn from(sparse: Csr) -> Self {
        Self { sparse, dense: Arc::default() }
    }
}

impl LabelVectors {
    /// The rows themselves as vectors, scaled to length 1.
    pub(crate) fn of_rows(x: &Features, control: &Control) -> Result<Self> {
        let (sparse, cols) = (x.sparse(), x.dense().map_or(0, Dense::cols));
        let length = |i: usize| Some(x.row(i).norm()).filter(|norm| *norm > 0.0).unwrap_or(1.0);
        let mut values = Vec::with_capacity(sparse.nnz());
        for i in 0..x.rows() {
            control.check()?;
            let norm = length(i);
            values.extend(sparse.row(i).values.iter().map(|v| v / norm));
        }
        let (indptr, indices) = (sparse.indptr().to_vec(), sparse.indices().to_vec());
        let mut dense = Bf16Rows::zeros(x.rows(), cols);
        dense.rows_mut().enumerate().try_for_each(|(i, to)| {
            control.check()?;
            round(x.row(i).dense, 1.0 / length(i), to);
            Ok(())
        })?;
        Ok(Self::new(Csr::trusted(x.rows(), sparse.cols(), indptr, indices, values), dense))
    }

    pub(super) fn new(sparse: Csr, dense: Bf16Rows) -> Self {
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

    /// The values of a label in the dense block, including the zeros that pad the last line.
    pub fn dense(&self, label: usize) -> Vec<f32> {
        values(self.dense.row(label)).collect()
    }

    /// Whether the label's vector is zero.
    pub fn is_empty(&self, label: usize) -> bool {
        self.sparse.row(label).is_empty() && values(self.dense.row(label)).all(|v| v == 0.0)
    }

    /// The same vectors with the sparse parts cut; the dense parts are shared.
    pub fn cut(&self, cut: Cut, control: &Control) -> Result<Self> {
        let mut sparse = given(&self.sparse, cut, control)?;
        if self.dense.cols() > 0 {
            let lengths: Vec<f32> = self.sparse.iter_rows().map(|row| row.norm()).collect();
            sparse = stretch(sparse, &lengths);
        }
        Ok(Self { sparse, dense: Arc::clone(&self.dense) })
    }

    /// Returns both parts.
    pub(super) fn into_parts(self) -> (Csr, Arc<Bf16Rows>) {
        (self.sparse, self.dense)
    }
}

impl From<LabelVectors> for Csr {
    /// The sparse part alone.
    fn from(vectors: LabelVectors) -> Self {
        vectors.sparse
    }
}

/// Multiplies each row by its factor.
pub(super) fn stretch(rows: Csr, lengths: &[f32]) -> Csr {
    let (n, cols, indptr) = (rows.rows(), rows.cols(), rows.indptr().to_vec());
    let (indices, mut values) = rows.into_entries();
    for (span, length) in indptr.windows(2).zip(lengths) {
        values[span[0]..span[1]].iter_mut().for_each(|v| *v *= length);
    }
    Csr::trusted(n, cols, indptr, indices, values)
}
