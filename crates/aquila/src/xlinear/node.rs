//! The rows that a node learns from, gathered so that its solver touches as little memory as possible.

use crate::data::Csr;
use crate::kernels::dcd::{Entries, Rows, Span};
use std::borrow::Cow;

/// The training rows as the solver sees them: scaled to length 1 where the model says so.
#[derive(Debug)]
pub struct TrainRows<'a> {
    x: &'a Csr,
    values: Cow<'a, [f32]>,
    squared: Vec<f32>,
}

impl<'a> TrainRows<'a> {
    /// Scales rows; values are copied only if some row's length is not 1 already.
    pub fn new(x: &'a Csr, normalize: bool) -> Self {
        let norms: Vec<f32> = x.iter_rows().map(|r| r.norm()).collect();
        if !normalize || norms.iter().all(|n| *n == 0.0 || (n - 1.0).abs() < 1e-6) {
            let squared = norms.iter().map(|n| n * n).collect();
            return Self { x, values: Cow::Borrowed(x.values()), squared };
        }
        let mut values = x.values().to_vec();
        for (i, norm) in norms.iter().enumerate().filter(|(_, n)| **n > 0.0) {
            values[x.indptr()[i]..x.indptr()[i + 1]].iter_mut().for_each(|v| *v /= norm);
        }
        let squared = norms.iter().map(|n| if *n > 0.0 { 1.0 } else { 0.0 }).collect();
        Self { x, values: Cow::Owned(values), squared }
    }

    /// The rows before scaling.
    pub fn matrix(&self) -> &Csr {
        self.x
    }

    /// The scaled values of all rows.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Number of features.
    pub fn cols(&self) -> usize {
        self.x.cols()
    }

    /// All entries, checked for the solver.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(self.x.indices(), &self.values, self.x.cols())
    }

    /// The entries of a row.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let span = self.x.indptr()[i]..self.x.indptr()[i + 1];
        (&self.x.indices()[span.clone()], &self.values[span])
    }
}

/// Memory that gathers the rows of one node after another.
#[derive(Debug, Default)]
pub struct Gatherer {
    spans: Vec<Span>,
    idx: Vec<u32>,
    val: Vec<f32>,
    features: Vec<u32>,
    seen: Vec<u64>,
    local: Vec<u32>,
}

/// The rows of a node, in the columns of the whole matrix or in its own.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// The feature of each local column; `None` where columns are the features themselves.
    pub features: Option<&'a [u32]>,
}

/// Nodes with at least this many entries for each feature of the whole matrix use nearly all features: renumbering
/// them would cost a copy and save nothing.
const DENSE_NODE: usize = 4;

impl Gatherer {
    /// Gathers these rows. Small nodes get a copy of their entries with columns renumbered to the features they
    /// use, in ascending order, so that the weights of a block stay in the nearest caches; large ones point into
    /// the matrix.
    pub fn gather<'a>(&'a mut self, data: &'a TrainRows<'_>, all: Entries<'a>, rows: &[u32]) -> Gathered<'a> {
        let ptr = data.x.indptr();
        let span = |i: &u32| (ptr[*i as usize], ptr[*i as usize + 1]);
        let nnz: usize = rows.iter().map(|i| span(i).1 - span(i).0).sum();
        self.spans.clear();
        if nnz >= DENSE_NODE * data.cols() {
            self.spans.extend(rows.iter().map(|i| {
                let (begin, end) = span(i);
                Span { begin, end, squared: data.squared[*i as usize] }
            }));
            return Gathered { rows: Rows::new(all, &self.spans), features: None };
        }
        self.renumber(data, rows);
        self.idx.clear();
        self.val.clear();
        self.idx.reserve(nnz);
        self.val.reserve(nnz);
        for i in rows {
            let (idx, val) = data.row(*i as usize);
            let begin = self.idx.len();
            self.idx.extend(idx.iter().map(|j| self.local[*j as usize]));
            self.val.extend_from_slice(val);
            self.spans.push(Span { begin, end: self.idx.len(), squared: data.squared[*i as usize] });
        }
        let entries = Entries::new(&self.idx, &self.val, self.features.len());
        Gathered { rows: Rows::new(entries, &self.spans), features: Some(&self.features) }
    }

    fn renumber(&mut self, data: &TrainRows<'_>, rows: &[u32]) {
        self.seen.resize(data.cols().div_ceil(64), 0);
        self.local.resize(data.cols(), 0);
        for i in rows {
            for j in data.row(*i as usize).0 {
                self.seen[*j as usize / 64] |= 1 << (j % 64);
            }
        }
        self.features.clear();
        for (word, bits) in self.seen.iter_mut().enumerate() {
            while *bits != 0 {
                let feature = word as u32 * 64 + bits.trailing_zeros();
                self.local[feature as usize] = self.features.len() as u32;
                self.features.push(feature);
                *bits &= *bits - 1;
            }
        }
    }
}
