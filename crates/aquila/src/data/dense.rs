//! Dense rows.

use crate::error::{Result, fail};

/// A row-major dense matrix of finite values.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Dense {
    /// Takes `rows × cols` values, row after row.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(values.len()) {
            fail!(
                ShapeMismatch,
                "a dense matrix of {rows} x {cols} needs {rows}·{cols} values but received {}",
                values.len()
            );
        }
        if let Some(i) = values.iter().position(|v| !v.is_finite()) {
            fail!(
                NotFinite,
                "value {} at row {}, column {} is not finite: replace or drop it",
                values[i],
                i / cols,
                i % cols
            );
        }
        Ok(Self { rows, cols, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// These rows alone, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        let values = rows.iter().flat_map(|i| self.row(*i as usize)).copied().collect();
        Self { rows: rows.len(), cols: self.cols, values }
    }

    /// The values of row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }
}
