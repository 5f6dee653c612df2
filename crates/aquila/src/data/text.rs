//! Rows as lines of text: what the formats of text have in common when they are written.

use super::{Csr, Features};
use crate::error::{Result, fail};
use std::io::{self, Write};
use std::path::Path;

/// Refuses what no line of text can hold: labels with values of their own, and labels of other rows.
pub(super) fn check(path: &Path, x: &Features, y: &Csr) -> Result<()> {
    if x.rows() != y.rows() {
        fail!(ShapeMismatch, "{}: x has {} rows but y has {}", path.display(), x.rows(), y.rows());
    }
    if let Some(at) = y.values().iter().position(|v| *v != 1.0) {
        fail!(
            InvalidArgument,
            "{}: label {} of row {} has the value {}, but this format holds no label values: set all to 1 and \
             drop zeros",
            path.display(),
            y.indices()[at],
            y.indptr().partition_point(|end| *end <= at) - 1,
            y.values()[at]
        );
    }
    Ok(())
}

/// The features of a row: those of the dense block follow the sparse ones, without zeros.
pub(super) fn entries(x: &Features, row: usize) -> impl Iterator<Item = (u64, f32)> + '_ {
    let first = x.sparse().cols() as u64;
    let row = x.row(row);
    let dense = row.dense.iter().zip(first..).filter(|(value, _)| **value != 0.0);
    row.sparse.iter().map(|(j, value)| (u64::from(j), value)).chain(dense.map(|(value, j)| (j, *value)))
}

/// Writes a line for each row: its labels with commas between, then `feature:value` pairs with blanks before, features
/// counted from `first`.
pub(super) fn write_rows(out: &mut dyn Write, x: &Features, y: &Csr, first: u64) -> io::Result<()> {
    let mut line = Vec::new();
    for (row, labels) in y.iter_rows().enumerate() {
        line.clear();
        for (i, label) in labels.indices.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(line, "{comma}{label}")?;
        }
        for (feature, value) in entries(x, row) {
            let feature = feature + first;
            // Both forms have the fewest digits; plain digits of extreme values would be up to 45 long.
            match value.abs() {
                0.0 | 1e-5..1e9 => write!(line, " {feature}:{value}")?,
                _ => write!(line, " {feature}:{value:e}")?,
            }
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}
