//! The rows that a node learns from, gathered so that its solver touches as little memory as possible.

use crate::data::{Csr, Dense, FeatureRow, Features};
use crate::kernels::dcd::{DenseRows, Entries, Rows, Span};
use crate::kernels::{Isa, bf16, prefetch_rows};
use rayon::prelude::*;
use std::borrow::Cow;

/// The training rows as the solver uses them: scaled to length 1 if the model is configured so.
#[derive(Debug)]
pub struct TrainRows<'a> {
    x: &'a Csr,
    values: Cow<'a, [f32]>,
    /// The scaled values of the dense block, row by row, and its columns; none where there is no block.
    dense: Cow<'a, [f32]>,
    dense_cols: usize,
    /// The block as bf16 pairs, where these are faster.
    pairs: Vec<u32>,
    squared: Vec<f32>,
}

impl<'a> TrainRows<'a> {
    /// Scales sparse rows; values are copied only if the length of some row is not 1 already.
    pub fn new(x: &'a Csr, normalize: bool) -> Self {
        Self::of(x, None, normalize)
    }

    /// Scales rows; both parts are divided by the length of the whole row.
    pub fn of_features(x: &'a Features, normalize: bool) -> Self {
        Self::of(x.sparse(), x.dense().filter(|d| d.cols() > 0), normalize)
    }

    fn of(x: &'a Csr, dense: Option<&'a Dense>, normalize: bool) -> Self {
        let norms: Vec<f32> = match dense {
            None => (0..x.rows()).into_par_iter().map(|i| x.row(i).norm()).collect(),
            Some(dense) => {
                let row = |i| FeatureRow { sparse: x.row(i), dense: dense.row(i) };
                (0..x.rows()).into_par_iter().map(|i| row(i).norm()).collect()
            }
        };
        let block = dense.map_or(&[][..], Dense::values);
        let dense_cols = dense.map_or(0, Dense::cols);
        if !normalize || norms.iter().all(|n| *n == 0.0 || (n - 1.0).abs() < 1e-6) {
            let squared = norms.iter().map(|n| n * n).collect();
            let (values, dense, pairs) =
                (Cow::Borrowed(x.values()), Cow::Borrowed(block), pairs(block, dense_cols));
            return Self { x, values, dense, dense_cols, pairs, squared };
        }
        let mut values = x.values().to_vec();
        for (i, norm) in norms.iter().enumerate().filter(|(_, n)| **n > 0.0) {
            values[x.indptr()[i]..x.indptr()[i + 1]].iter_mut().for_each(|v| *v /= norm);
        }
        let block = dense.map_or(Vec::new(), |dense| scaled(dense, &norms));
        let squared = norms.iter().map(|n| if *n > 0.0 { 1.0 } else { 0.0 }).collect();
        let pairs = pairs(&block, dense_cols);
        Self { x, values: Cow::Owned(values), dense: Cow::Owned(block), dense_cols, pairs, squared }
    }

    /// The scaled dense block and its columns.
    pub fn dense(&self) -> (&[f32], usize) {
        (&self.dense, self.dense_cols)
    }

    /// The values of these rows in the dense block, in the form that the solver reads.
    fn dense_rows<'b>(&'b self, places: &'b [u32]) -> DenseRows<'b> {
        match self.pairs.is_empty() {
            true => DenseRows::new(&self.dense, self.dense_cols, places),
            false => DenseRows::bf16_pairs(&self.pairs, self.dense_cols, places),
        }
    }

    /// The sparse part before scaling.
    pub fn matrix(&self) -> &Csr {
        self.x
    }

    /// The scaled values of the sparse part.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Number of sparse features.
    pub fn cols(&self) -> usize {
        self.x.cols()
    }

    /// All sparse entries, checked for the solver.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(self.x.indices(), &self.values, self.x.cols())
    }

    /// Prefetches the rows that come soon after index `at` of `rows`.
    #[inline(always)]
    fn prefetch(&self, rows: &[u32], at: usize) {
        let ptr = self.x.indptr();
        prefetch_rows(ptr, |i| ptr[i]..ptr[i + 1], (self.x.indices(), &self.values), rows, at);
    }

    /// The sparse entries of a row.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let span = self.x.indptr()[i]..self.x.indptr()[i + 1];
        (&self.x.indices()[span.clone()], &self.values[span])
    }
}

/// The rows of a block, each divided by its norm where that is not 0.
fn scaled(block: &Dense, norms: &[f32]) -> Vec<f32> {
    let mut out = vec![0f32; block.values().len()];
    let rows = out.par_chunks_exact_mut(block.cols()).zip(block.values().par_chunks_exact(block.cols()));
    rows.zip(norms).for_each(|((to, row), norm)| {
        let norm = if *norm > 0.0 { *norm } else { 1.0 };
        to.iter_mut().zip(row).for_each(|(to, v)| *to = v / norm);
    });
    out
}

/// A block as bf16 pairs, if the solver is faster with them.
fn pairs(block: &[f32], cols: usize) -> Vec<u32> {
    if cols == 0 || !bf16::faster(Isa::detect()) {
        return Vec::new();
    }
    let steps = cols.div_ceil(2);
    let mut out = vec![0; block.len() / cols * steps];
    let rows = out.par_chunks_exact_mut(steps).zip(block.par_chunks_exact(cols));
    rows.for_each(|(pairs, row)| bf16::write_pairs(row, pairs));
    out
}

/// Reusable memory that gathers the rows of one node after another.
#[derive(Debug, Default)]
pub struct Gatherer {
    spans: Vec<Span>,
    idx: Vec<u32>,
    val: Vec<f32>,
    features: Vec<u32>,
    homes: Vec<u32>,
    lone: Vec<(u32, f32)>,
    once: Vec<u64>,
    twice: Vec<u64>,
    local: Vec<u32>,
    places: Vec<u32>,
}

/// The rows of a node, in the columns of the whole matrix or in their own.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<'a> {
    /// The rows, without their lone entries.
    pub rows: Rows<'a>,
    /// The features of the columns.
    pub columns: Columns<'a>,
}

/// Maps a node's columns to features.
#[derive(Debug, Clone, Copy)]
pub enum Columns<'a> {
    /// Columns are the features themselves.
    Same,
    /// The features that the node uses, ascending.
    Own {
        /// The features.
        features: &'a [u32],
        /// For each feature its column, or, with [`LONE`] set, its index in `lone`.
        homes: &'a [u32],
        /// Features that occur in a single row of the node: the row's index and the value.
        lone: &'a [(u32, f32)],
    },
}

/// Marks a feature that occurs in a single row of the node.
///
/// In the primal-dual pair `w = Σ α·y·x` the weight of such a feature is `α_i·y_i·x_if` for its one row `i`, and it
/// only adds `α_i·y_i·x_if²` to that row's own margin. So it needs no column: the solver gets the row's sum of `x_if²`
/// ([`Span::lone`]), and the weights are computed from the duals at the end. This is algebraically exact. In small
/// nodes most word pairs are lone, and their columns are the ones that miss the caches.
pub const LONE: u32 = 1 << 31;

/// Nodes with at least this many entries per feature of the whole matrix use nearly all features: renumbering them
/// would cost a copy and save nothing.
const DENSE_NODE: usize = 4;

impl Gatherer {
    /// Gathers these rows. Small nodes get a copy of their entries, with columns renumbered to the features they share,
    /// so that the weights of a block stay in the nearest caches; large nodes refer to the matrix.
    ///
    /// The dense block is never copied: its rows are already contiguous, and every node uses all columns.
    pub fn gather<'a>(&'a mut self, data: &'a TrainRows<'_>, all: Entries<'a>, rows: &[u32]) -> Gathered<'a> {
        self.places.clear();
        if data.dense_cols > 0 {
            self.places.extend_from_slice(rows);
        }
        let ptr = data.x.indptr();
        let span = |i: &u32| (ptr[*i as usize], ptr[*i as usize + 1]);
        let nnz: usize = rows.iter().map(|i| span(i).1 - span(i).0).sum();
        self.spans.clear();
        if nnz >= DENSE_NODE * data.cols() {
            self.spans.extend(rows.iter().map(|i| {
                let (begin, end) = span(i);
                Span { begin, end, squared: data.squared[*i as usize], lone: 0.0 }
            }));
            let dense = data.dense_rows(&self.places);
            return Gathered { rows: Rows::new(all, &self.spans).beside(dense), columns: Columns::Same };
        }
        let columns = self.renumber(data, rows);
        self.idx.clear();
        self.val.clear();
        self.idx.reserve(nnz);
        self.val.reserve(nnz);
        for (place, i) in rows.iter().enumerate() {
            data.prefetch(rows, place);
            let (idx, val) = data.row(*i as usize);
            let (begin, mut lone) = (self.idx.len(), 0.0);
            for (j, v) in idx.iter().zip(val) {
                let home = self.local[*j as usize];
                if home & LONE == 0 {
                    self.idx.push(home);
                    self.val.push(*v);
                } else {
                    self.lone[(home & !LONE) as usize] = (place as u32, *v);
                    lone += v * v;
                }
            }
            self.spans.push(Span { begin, end: self.idx.len(), squared: data.squared[*i as usize], lone });
        }
        let dense = data.dense_rows(&self.places);
        let rows = Rows::new(Entries::new(&self.idx, &self.val, columns), &self.spans).beside(dense);
        let columns = Columns::Own { features: &self.features, homes: &self.homes, lone: &self.lone };
        Gathered { rows, columns }
    }

    /// Assigns a column or lone index to every feature of these rows; returns the number of columns.
    fn renumber(&mut self, data: &TrainRows<'_>, rows: &[u32]) -> usize {
        let words = data.cols().div_ceil(64);
        self.once.resize(words, 0);
        self.twice.resize(words, 0);
        self.local.resize(data.cols(), 0);
        for (n, i) in rows.iter().enumerate() {
            data.prefetch(rows, n);
            for j in data.row(*i as usize).0 {
                let (word, bit) = (*j as usize / 64, 1 << (j % 64));
                self.twice[word] |= self.once[word] & bit;
                self.once[word] |= bit;
            }
        }
        self.features.clear();
        self.homes.clear();
        let (mut columns, mut lone) = (0, 0);
        for (word, once) in self.once.iter_mut().enumerate() {
            let twice = std::mem::take(&mut self.twice[word]);
            while *once != 0 {
                let bit = once.trailing_zeros();
                let feature = word as u32 * 64 + bit;
                let (count, mark) = if twice >> bit & 1 == 1 { (&mut columns, 0) } else { (&mut lone, LONE) };
                let home = *count | mark;
                *count += 1;
                self.local[feature as usize] = home;
                self.features.push(feature);
                self.homes.push(home);
                *once &= *once - 1;
            }
        }
        self.lone.clear();
        self.lone.resize(lone as usize, (0, 0.0));
        columns as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeMap;

    /// Rows with a few common features and some rare ones; some rows are empty, some have explicit zeros.
    fn random(seed: u64, rows: usize, cols: u32) -> Csr {
        let mut rng = Rng::new(&[seed]);
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for i in 0..rows {
            for j in 0..cols {
                if i % 7 != 3 && rng.below(if j < 8 { 2 } else { cols / 3 }) == 0 {
                    indices.push(j);
                    values.push(rng.below(9) as f32 * 0.5 - 2.0);
                }
            }
            indptr.push(indices.len());
        }
        Csr::new(rows, cols as usize, indptr, indices, values).unwrap()
    }

    /// The gathered rows, in the features of the whole matrix.
    fn unpack(gathered: &Gathered<'_>) -> Vec<BTreeMap<u32, f32>> {
        let mut out: Vec<BTreeMap<u32, f32>> = Vec::new();
        let name: BTreeMap<u32, u32> = match gathered.columns {
            Columns::Same => (0..gathered.rows.cols() as u32).map(|j| (j, j)).collect(),
            Columns::Own { features, homes, .. } => {
                homes.iter().zip(features).filter(|(h, _)| *h & LONE == 0).map(|(h, f)| (*h, *f)).collect()
            }
        };
        assert_eq!(name.len(), gathered.rows.cols());
        for i in 0..gathered.rows.len() {
            let (_, idx, val) = gathered.rows.row(i);
            out.push(idx.iter().map(|j| name[j]).zip(val.iter().copied()).collect());
        }
        if let Columns::Own { features, homes, lone } = gathered.columns {
            assert!(features.is_sorted_by(|a, b| a < b));
            for (f, h) in features.iter().zip(homes).filter(|(_, h)| *h & LONE != 0) {
                let (row, value) = lone[(h & !LONE) as usize];
                assert_eq!(out[row as usize].insert(*f, value), None);
            }
        }
        out
    }

    #[test]
    fn gathered_rows_are_the_rows() {
        let mut gatherer = Gatherer::default();
        let (mut direct, mut own) = (0, 0);
        for seed in 0..40 {
            let x = random(seed, 60, 12 + seed as u32 % 3 * 70);
            let data = TrainRows::new(&x, seed % 2 == 0);
            let mut rng = Rng::new(&[seed, 1]);
            // The same memory is reused for nodes of every size.
            let chosen: Vec<u32> = (0..60).filter(|_| rng.below(6) < 1 + seed as u32 % 6).collect();
            let gathered = gatherer.gather(&data, data.entries(), &chosen);
            let want: Vec<BTreeMap<u32, f32>> = chosen
                .iter()
                .map(|i| data.row(*i as usize))
                .map(|(idx, val)| idx.iter().copied().zip(val.iter().copied()).collect())
                .collect();
            assert_eq!(unpack(&gathered), want, "seed {seed}");
            let count = |f: &u32| want.iter().filter(|r| r.contains_key(f)).count();
            if let Columns::Own { features, homes, .. } = gathered.columns {
                own += 1;
                for (f, h) in features.iter().zip(homes) {
                    assert_eq!(h & LONE != 0, count(f) == 1, "seed {seed} feature {f}");
                }
            } else {
                direct += 1;
            }
            for (i, row) in want.iter().enumerate() {
                let span = gathered.rows.row(i).0;
                let square = |lone: bool| {
                    row.iter().filter(|(f, _)| !lone || count(f) == 1).map(|(_, v)| v * v).sum::<f32>()
                };
                assert!((span.squared - square(false)).abs() < 1e-4, "seed {seed} row {i}");
                let lone = if let Columns::Own { .. } = gathered.columns { square(true) } else { 0.0 };
                assert!((span.lone - lone).abs() < 1e-4, "seed {seed} row {i}");
            }
        }
        assert!(direct > 3 && own > 3, "{direct} {own}");
    }

    #[test]
    fn rows_are_scaled_only_where_it_is_asked_for_and_needed() {
        let x = Csr::new(3, 2, vec![0, 2, 2, 3], vec![0, 1, 1], vec![3.0, 4.0, -0.5]).unwrap();
        let scaled = TrainRows::new(&x, true);
        assert_eq!(scaled.values(), [0.6, 0.8, -1.0]);
        assert_eq!(scaled.squared, [1.0, 0.0, 1.0]);
        let plain = TrainRows::new(&x, false);
        assert_eq!((plain.values(), &plain.squared[..]), (x.values(), &[25.0, 0.0, 0.25][..]));
        let unit = Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap();
        assert!(matches!(TrainRows::new(&unit, true).values, Cow::Borrowed(_)));
    }
}
