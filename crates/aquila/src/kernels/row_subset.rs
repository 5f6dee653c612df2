//! A subset of the rows of a matrix, in any order.

use super::dcd::Entries;
use super::prefetch_line;

/// How many rows ahead to prefetch.
const AHEAD: usize = 4;

/// Rows among the entries of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowSubset<'a> {
    /// The entries of all rows.
    pub entries: &'a Entries<'a>,
    /// Where each row's entries begin, and where those of the last row end.
    pub starts: &'a [usize],
    /// The chosen rows.
    pub rows: &'a [u32],
}

impl RowSubset<'_> {
    /// The column ids and values of the `n`-th chosen row.
    #[inline(always)]
    pub fn row(&self, n: usize) -> (&[u32], &[f32]) {
        let i = self.rows[n] as usize;
        self.entries.slices(self.starts[i]..self.starts[i + 1])
    }

    /// Prefetches the row that will be needed a few rows after the `n`-th: rows come in random order.
    #[inline(always)]
    pub fn prefetch_after(&self, n: usize) {
        if n + AHEAD < self.rows.len() {
            let (idx, val) = self.row(n + AHEAD);
            for j in (0..idx.len()).step_by(16) {
                prefetch_line(idx.as_ptr().wrapping_add(j));
                prefetch_line(val.as_ptr().wrapping_add(j));
            }
        }
    }
}
