//! The sparse rows of a node: their margins, and the updates of weights by a step.

use super::DenseRows;
use crate::kernels::lanes::Lanes;

/// Sparse entries whose column ids are checked once, so that passes may index without checks.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    pub(in crate::kernels) idx: &'a [u32],
    pub(in crate::kernels) val: &'a [f32],
    cols: usize,
}

impl<'a> Entries<'a> {
    /// Takes column ids and values.
    ///
    /// # Panics
    /// If the arrays do not match: callers build them, so that would be a bug.
    pub fn new(idx: &'a [u32], val: &'a [f32], cols: usize) -> Self {
        assert_eq!(idx.len(), val.len());
        assert!(idx.is_empty() || (idx.iter().fold(0, |m, j| m.max(*j)) as usize) < cols);
        Self { idx, val, cols }
    }

    /// Number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// The ids and values of a span.
    #[inline(always)]
    pub(crate) fn slices(&self, span: std::ops::Range<usize>) -> (&'a [u32], &'a [f32]) {
        (&self.idx[span.clone()], &self.val[span])
    }
}

/// One row among [`Entries`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Its first entry.
    pub begin: usize,
    /// The end of its entries.
    pub end: usize,
    /// `x·x` of the row, including entries that are left out.
    pub squared: f32,
    /// `x·x` of the entries that are left out because no other row has their column: their weights are `α·y·x`, so they
    /// add `α·y` times this to the row's own margin and nothing to any other.
    pub lone: f32,
}

/// The rows of a node: a subset of the rows of a matrix (its own or a larger one), with their values in a dense block.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub(in crate::kernels) entries: Entries<'a>,
    pub(in crate::kernels) spans: &'a [Span],
    pub(in crate::kernels) dense: DenseRows<'a>,
}

impl<'a> Rows<'a> {
    /// Takes spans of entries.
    ///
    /// # Panics
    /// If a span reaches beyond the entries.
    pub fn new(entries: Entries<'a>, spans: &'a [Span]) -> Self {
        assert!(spans.iter().all(|s| s.begin <= s.end && s.end <= entries.idx.len()));
        Self { entries, spans, dense: DenseRows::default() }
    }

    /// Adds the rows' values in a dense block.
    ///
    /// # Panics
    /// If the block has a different number of rows.
    pub fn beside(self, dense: DenseRows<'a>) -> Self {
        assert!(dense.cols() == 0 || dense.rows() == self.spans.len());
        Self { dense, ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Number of columns of the entries.
    pub fn cols(&self) -> usize {
        self.entries.cols
    }

    /// Whether the rows have more dense values than sparse entries.
    pub fn mostly_dense(&self) -> bool {
        self.spans.iter().map(|s| s.end - s.begin).sum::<usize>() < self.len() * self.dense.cols()
    }

    /// The ids and values of a row's entries.
    ///
    /// # Safety
    /// `i` is a row.
    #[inline(always)]
    pub(super) unsafe fn entries_of(&self, i: usize) -> (&'a [u32], &'a [f32]) {
        // SAFETY: `Rows::new` checked that spans lie within the entries.
        unsafe {
            let Span { begin, end, .. } = *self.spans.get_unchecked(i);
            (self.entries.idx.get_unchecked(begin..end), self.entries.val.get_unchecked(begin..end))
        }
    }

    /// `w·x_i` of every lane, for the sparse part only, summed in several independent streams.
    ///
    /// # Safety
    /// `i` is a row, `w` holds `V::N` floats for each column, and the instruction set of `V` was detected.
    #[inline(always)]
    pub(in crate::kernels) unsafe fn margins<V: Lanes>(&self, w: *const f32, i: usize) -> V {
        // SAFETY: `Rows::new` checked that spans lie within the entries and `Entries::new` that every id is below
        // `cols`.
        unsafe {
            let Span { begin, end, .. } = *self.spans.get_unchecked(i);
            let (idx, val) = (self.entries.idx.as_ptr(), self.entries.val.as_ptr());
            let at = |j: usize| V::load(w.add(*idx.add(j) as usize * V::N));
            let mut sums = [V::splat(0.0); 4];
            let mut j = begin;
            while j + V::STREAMS <= end {
                for (k, sum) in sums.iter_mut().enumerate().take(V::STREAMS) {
                    *sum = V::splat(*val.add(j + k)).mul_add(at(j + k), *sum);
                }
                j += V::STREAMS;
            }
            for (k, sum) in sums.iter_mut().enumerate().take(V::STREAMS - 1) {
                if j + k < end {
                    *sum = V::splat(*val.add(j + k)).mul_add(at(j + k), *sum);
                }
            }
            match V::STREAMS {
                1 => sums[0],
                2 => sums[0].add(sums[1]),
                _ => sums[0].add(sums[1]).add(sums[2].add(sums[3])),
            }
        }
    }

    /// `w += d·x_i`.
    ///
    /// # Safety
    /// As [`Rows::margins`].
    #[inline(always)]
    pub(in crate::kernels) unsafe fn add_row<V: Lanes>(&self, w: *mut f32, i: usize, d: V) {
        // SAFETY: as in `margins`; ids within a row differ, so no store is lost.
        unsafe {
            let Span { begin, end, .. } = *self.spans.get_unchecked(i);
            let (idx, val) = (self.entries.idx.as_ptr(), self.entries.val.as_ptr());
            for j in begin..end {
                let at = w.add(*idx.add(j) as usize * V::N);
                V::splat(*val.add(j)).mul_add(d, V::load(at)).store(at);
            }
        }
    }

    /// A row as the passes use it.
    #[cfg(test)]
    pub(crate) fn row(&self, i: usize) -> (Span, &'a [u32], &'a [f32]) {
        let span = self.spans[i];
        (span, &self.entries.idx[span.begin..span.end], &self.entries.val[span.begin..span.end])
    }
}
