//! The rows a model sees.

use super::{Csr, Dense};
use crate::error::{Result, fail};
use std::borrow::Cow;

/// Rows of a sparse part and an optional dense block. The dense columns stand after the sparse ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    sparse: Csr,
    dense: Option<Dense>,
}

impl From<Csr> for Features {
    fn from(sparse: Csr) -> Self {
        Self { sparse, dense: None }
    }
}

impl Features {
    /// Puts a dense block beside sparse rows.
    pub fn new(sparse: Csr, dense: Option<Dense>) -> Result<Self> {
        if let Some(d) = &dense
            && d.rows() != sparse.rows()
        {
            fail!(
                ShapeMismatch,
                "the sparse part has {} rows but the dense block {}",
                sparse.rows(),
                d.rows()
            );
        }
        Ok(Self { sparse, dense })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.sparse.rows()
    }

    /// Number of columns, dense ones included.
    pub fn cols(&self) -> usize {
        self.sparse.cols() + self.dense.as_ref().map_or(0, Dense::cols)
    }

    /// The sparse part.
    pub fn sparse(&self) -> &Csr {
        &self.sparse
    }

    /// The dense block.
    pub fn dense(&self) -> Option<&Dense> {
        self.dense.as_ref()
    }

    /// Everything as one sparse matrix; borrowed where there is no dense block.
    pub fn as_csr(&self) -> Cow<'_, Csr> {
        let Some(dense) = &self.dense else { return Cow::Borrowed(&self.sparse) };
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
