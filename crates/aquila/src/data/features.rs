//! The rows a model sees.

use super::{Csr, Dense, Row};
use crate::error::{Result, fail};
use crate::memory;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of a sparse part and an optional dense block. The dense columns stand after the sparse ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    sparse: Arc<Csr>,
    dense: Option<Arc<Dense>>,
}

/// One row: its sparse entries, and its values in the dense columns, which stand after the sparse ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureRow<'a> {
    /// The sparse entries.
    pub sparse: Row<'a>,
    /// The values of the last columns; empty for rows without a dense part.
    pub dense: &'a [f32],
}

impl FeatureRow<'_> {
    /// The Euclidean norm of both parts together.
    #[inline]
    pub fn norm(&self) -> f32 {
        let sparse = self.sparse.norm();
        if self.dense.is_empty() { sparse } else { joint(sparse, self.dense) }
    }
}

/// The norm of a row whose sparse part has this norm.
fn joint(sparse: f32, dense: &[f32]) -> f32 {
    // Sixteen sums, so that they fill vectors.
    let mut sums = [0f64; 16];
    let (lines, rest) = dense.as_chunks::<16>();
    for line in lines {
        sums.iter_mut().zip(line).for_each(|(sum, v)| *sum += f64::from(*v) * f64::from(*v));
    }
    sums.iter_mut().zip(rest).for_each(|(sum, v)| *sum += f64::from(*v) * f64::from(*v));
    (f64::from(sparse) * f64::from(sparse) + sums.iter().sum::<f64>()).sqrt() as f32
}

impl<'a> From<Row<'a>> for FeatureRow<'a> {
    fn from(sparse: Row<'a>) -> Self {
        Self { sparse, dense: &[] }
    }
}

impl From<Csr> for Features {
    fn from(sparse: Csr) -> Self {
        Self { sparse: Arc::new(sparse), dense: None }
    }
}

impl From<Arc<Dense>> for Features {
    fn from(dense: Arc<Dense>) -> Self {
        let none = Csr::trusted(dense.rows(), 0, vec![0; dense.rows() + 1], Vec::new(), Vec::new());
        Self { sparse: Arc::new(none), dense: Some(dense) }
    }
}

impl From<Dense> for Features {
    fn from(dense: Dense) -> Self {
        Arc::new(dense).into()
    }
}

impl Features {
    /// Rows of a dense block alone; refused where it has so many rows, be they empty, that there is no memory for them.
    pub fn of_dense(dense: Arc<Dense>) -> Result<Self> {
        let pointers = memory::filled(0, dense.rows() + 1, "the rows of a dense block")?;
        let none = Csr::trusted(dense.rows(), 0, pointers, Vec::new(), Vec::new());
        Ok(Self { sparse: Arc::new(none), dense: Some(dense) })
    }

    /// Puts a dense block beside sparse rows.
    pub fn new(sparse: Csr, dense: Option<Dense>) -> Result<Self> {
        let sparse = Self::from(sparse);
        dense.map_or(Ok(sparse.clone()), |dense| sparse.beside(Arc::new(dense)))
    }

    /// The sparse part with this dense block; nothing is copied.
    pub fn beside(&self, dense: Arc<Dense>) -> Result<Self> {
        let sparse = &self.sparse;
        if dense.rows() != sparse.rows() {
            fail!(
                ShapeMismatch,
                "the sparse part has {} rows but the dense block {}",
                sparse.rows(),
                dense.rows()
            );
        }
        if sparse.cols() + dense.cols() > u32::MAX as usize {
            fail!(
                InvalidArgument,
                "{} sparse and {} dense columns pass the limit of {}",
                sparse.cols(),
                dense.cols(),
                u32::MAX
            );
        }
        Ok(Self { sparse: Arc::clone(sparse), dense: Some(dense) })
    }

    /// Other sparse parts of the same rows beside the same dense block.
    pub(super) fn with_sparse(&self, sparse: Csr) -> Self {
        Self { sparse: Arc::new(sparse), dense: self.dense.clone() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.sparse.rows()
    }

    /// Number of columns, dense ones included.
    pub fn cols(&self) -> usize {
        self.sparse.cols() + self.dense().map_or(0, Dense::cols)
    }

    /// The sparse part.
    pub fn sparse(&self) -> &Csr {
        &self.sparse
    }

    /// The dense block.
    pub fn dense(&self) -> Option<&Dense> {
        self.dense.as_deref()
    }

    /// These rows alone, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        Self {
            sparse: Arc::new(self.sparse.select(rows)),
            dense: self.dense().map(|d| Arc::new(d.select(rows))),
        }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> FeatureRow<'_> {
        FeatureRow { sparse: self.sparse.row(i), dense: self.dense().map_or(&[], |d| d.row(i)) }
    }

    /// Everything as one sparse matrix; borrowed where there is no dense block.
    pub fn as_csr(&self) -> Cow<'_, Csr> {
        let Some(dense) = self.dense() else { return Cow::Borrowed(&self.sparse) };
        let (rows, first) = (self.rows(), self.sparse.cols() as u32);
        let mut indptr = Vec::with_capacity(rows + 1);
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        indptr.push(0);
        for i in 0..rows {
            let row = self.sparse.row(i);
            indices.extend_from_slice(row.indices);
            values.extend_from_slice(row.values);
            for (j, &v) in dense.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                indices.push(first + j as u32);
                values.push(v);
            }
            indptr.push(indices.len());
        }
        Cow::Owned(Csr::trusted(rows, self.cols(), indptr, indices, values))
    }
}
