//! Label vectors: how a label is described to k-means.
//!
//! PIFA (positive instance feature aggregation, Prabhu et al., WWW 2018; Yu et al., JMLR 2022): with each row of Y
//! scaled to length 1, `Z = YᵀX`, rows of Z scaled to length 1. PII: the ids of the label's rows, `Z = Yᵀ` with rows
//! scaled to length 1. Labels without rows have empty vectors.
//!
//! Where we differ: a PIFA vector is cut ([`Cut`]) to the smallest number of entries that hold 80 % of its squared
//! length, at most 256, and is scaled to length 1 again. The small entries are many and mostly noise: without them
//! trees are built in half the time and are as good or better (P@1 +0.8 on debian-related, −0.3 to +1.0 where words
//! predict words). Where common features distinguish branches, small entries are not noise, and the cut would cost up
//! to 5 points; a trial detects this ([`super::whole_is_better`]). Vectors of other kinds are cut by count only.
//!
//! The columns of a dense block are not cut and use two bytes per value. They have no long tail of noise, and k-means
//! over whole dense rows takes a third of the time that it took over cut ones stored as entries (0.12 to 0.04 s, 384
//! columns alone on debian-related). The sparse part is cut on its own and keeps its previous length, because the
//! lengths of the rows determine the weight of each part. Compared with cutting both parts as one, P@1 of
//! debian-related rose by 0.3 with the block alone and by 0.4 beside rows of twice its length, and fell by 0.1 beside
//! rows of equal length (5, 5 and 10 seeds; standard deviations of a seed 0.1 to 0.5).
//!
//! Cost of PIFA: Σ over labels of the non-zeros of their rows.

use super::label_vectors::{LabelVectors, stretch};
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::kernels::bf16_rows::{Bf16Rows, add_floats, round};
use crate::kernels::{Isa, prefetch_rows};
use rayon::prelude::*;

/// Labels handled by one task.
const CHUNK: usize = 64;

/// Which entries of a vector are kept: the largest; of equal ones, those of lower features.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Maximum number of entries; 0 for all.
    pub most: usize,
    /// The share of the squared length to keep.
    pub mass: f32,
}

impl Cut {
    /// Keeps everything.
    pub const NONE: Self = Self { most: 0, mass: 1.0 };

    /// Keeps at most this many entries; 0 for all.
    pub fn to(most: usize) -> Self {
        Self { most, mass: 1.0 }
    }
}

/// The inputs of PIFA vectors.
#[derive(Debug, Clone, Copy)]
pub struct Pifa<'a> {
    /// The rows.
    pub x: &'a Csr,
    /// Replace the values of `x`: those of rows scaled to length 1.
    pub values: &'a [f32],
    /// The values of a dense block that accompanies the rows, in row order: the last columns of the vectors.
    pub dense: &'a [f32],
    /// Columns of the block; 0 for none.
    pub dense_cols: usize,
    /// Yᵀ; nonzero entries count as 1.
    pub labels_rows: &'a Csr,
}

impl<'a> Pifa<'a> {
    /// For sparse rows only.
    pub fn new(x: &'a Csr, values: &'a [f32], labels_rows: &'a Csr) -> Self {
        Self { x, values, dense: &[], dense_cols: 0, labels_rows }
    }

    /// The vectors of all labels.
    pub fn all(&self, cut: Cut, control: &Control) -> Result<LabelVectors> {
        control.install(|| self.of(self.labels_rows.rows(), |label| label, cut, control))?
    }

    /// The vectors of only these labels.
    pub fn some(&self, labels: &[u32], cut: Cut, control: &Control) -> Result<LabelVectors> {
        control.install(|| self.of(labels.len(), |at| labels[at] as usize, cut, control))?
    }

    fn of(
        &self,
        n: usize,
        label: impl Fn(usize) -> usize + Sync,
        cut: Cut,
        control: &Control,
    ) -> Result<LabelVectors> {
        let mut degree = vec![0u32; self.x.rows()];
        let entries = self.labels_rows.indices().iter().zip(self.labels_rows.values());
        entries.filter(|(_, v)| **v != 0.0).for_each(|(i, _)| degree[*i as usize] += 1);
        let share: Vec<f32> = degree.iter().map(|n| 1.0 / (*n as f32).sqrt().max(1.0)).collect();
        let rows = |at: usize| {
            let pairs = self.labels_rows.indptr()[label(at)]..self.labels_rows.indptr()[label(at) + 1];
            let present = pairs.filter(|pair| self.labels_rows.values()[*pair] != 0.0);
            present.map(|pair| {
                let row = self.labels_rows.indices()[pair] as usize;
                Pair { pair, row, share: share[row] }
            })
        };
        let (sparse, lengths) = self.sparse(n, rows, cut, control)?;
        if self.dense_cols == 0 {
            return Ok(sparse.into());
        }
        let (dense, shares) = self.beside(&lengths, rows, control)?;
        Ok(LabelVectors::new(stretch(sparse, &shares), dense))
    }

    /// Sums of the sparse rows, cut and scaled; with a dense block also the lengths before the cut.
    fn sparse<R: Iterator<Item = Pair>>(
        &self,
        n: usize,
        rows: impl Fn(usize) -> R + Sync,
        cut: Cut,
        control: &Control,
    ) -> Result<(Csr, Vec<f64>)> {
        let (x, values, measured) = (self.x, self.values, self.dense_cols > 0);
        let ptr = x.indptr();
        let span = |row: usize| ptr[row]..ptr[row + 1];
        let chunks: Vec<Result<Chunk>> = (0..n.div_ceil(CHUNK))
            .into_par_iter()
            .map_init(
                || Accumulator::new(x.cols()),
                |sum, chunk| {
                    control.check()?;
                    let mut out = Chunk::default();
                    for at in chunk * CHUNK..((chunk + 1) * CHUNK).min(n) {
                        for Pair { pair, row, share } in rows(at) {
                            prefetch_rows(ptr, span, (x.indices(), values), self.labels_rows.indices(), pair);
                            sum.add(share, &x.indices()[span(row)], &values[span(row)]);
                        }
                        if measured {
                            out.lengths.push(sum.length());
                        }
                        sum.drain(cut, &mut out);
                    }
                    Ok(out)
                },
            )
            .collect();
        stitch(chunks, n, x.cols())
    }

    /// Sums of the block's rows that accompany sparse sums of these lengths, and the share of the total length that is
    /// sparse.
    fn beside<R: Iterator<Item = Pair>>(
        &self,
        lengths: &[f64],
        rows: impl Fn(usize) -> R + Sync,
        control: &Control,
    ) -> Result<(Bf16Rows, Vec<f32>)> {
        let (isa, cols) = (Isa::detect(), self.dense_cols);
        let mut dense = Bf16Rows::zeros(lengths.len(), cols);
        let mut shares = vec![0f32; lengths.len()];
        let all = dense.rows_mut().zip(&mut shares).zip(lengths).enumerate();
        all.for_each_init(
            || vec![0f32; cols],
            |sum, (at, ((row, share), sparse))| {
                if control.is_cancelled() {
                    return;
                }
                sum.fill(0.0);
                rows(at).for_each(|Pair { row, share, .. }| {
                    add_floats(isa, share, &self.dense[row * cols..(row + 1) * cols], sum);
                });
                let own = length_of(sum.iter().copied());
                let whole = own.hypot(*sparse);
                *share = (sparse / whole) as f32;
                if own > 0.0 {
                    scale(sum);
                    round(sum, (own / whole) as f32, row);
                }
            },
        );
        control.check()?;
        Ok((dense, shares))
    }
}

/// A row of a label.
struct Pair {
    /// Its index among all pairs of labels and rows.
    pair: usize,
    row: usize,
    /// The row's weight for each of its labels.
    share: f32,
}

/// PII vectors.
pub fn pii(labels_rows: &Csr, cut: Cut, control: &Control) -> Result<Csr> {
    given(labels_rows, cut, control)
}

/// User-supplied vectors, cut and scaled like the others.
pub fn given(vectors: &Csr, cut: Cut, control: &Control) -> Result<Csr> {
    let mut sum = Accumulator::new(vectors.cols());
    let mut out = Chunk::default();
    for row in vectors.iter_rows() {
        sum.add(1.0, row.indices, row.values);
        sum.drain(cut, &mut out);
    }
    control.check()?;
    control.install(|| stitch(vec![Ok(out)], vectors.rows(), vectors.cols()).map(|made| made.0))?
}

#[derive(Default)]
struct Chunk {
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    /// Lengths of the sums before the cut, where requested.
    lengths: Vec<f64>,
}

/// Concatenates the chunks in parallel, because copying gigabytes needs all threads.
fn stitch(chunks: Vec<Result<Chunk>>, rows: usize, cols: usize) -> Result<(Csr, Vec<f64>)> {
    let chunks = chunks.into_iter().collect::<Result<Vec<_>>>()?;
    let nnz = chunks.iter().map(|c| c.indices.len()).sum();
    let mut indptr = Vec::with_capacity(rows + 1);
    let mut lengths = Vec::new();
    let (mut indices, mut values) = (vec![0; nnz], vec![0.0; nnz]);
    let (mut places, mut rest) = (Vec::with_capacity(chunks.len()), (&mut indices[..], &mut values[..]));
    let mut before = 0;
    indptr.push(0);
    for chunk in &chunks {
        indptr.extend(chunk.ends.iter().map(|e| e + before));
        before += chunk.indices.len();
        lengths.extend_from_slice(&chunk.lengths);
        let (i, v) = (rest.0.split_at_mut(chunk.indices.len()), rest.1.split_at_mut(chunk.indices.len()));
        places.push((i.0, v.0));
        rest = (i.1, v.1);
    }
    chunks.into_par_iter().zip(places).for_each(|(chunk, (i, v))| {
        i.copy_from_slice(&chunk.indices);
        v.copy_from_slice(&chunk.values);
    });
    Ok((Csr::trusted(rows, cols, indptr, indices, values), lengths))
}

/// A dense vector with a list of the positions in use.
struct Accumulator {
    dense: Vec<f32>,
    touched: Vec<u32>,
    ranks: Vec<u64>,
    /// Whether the value at a position became zero in between, so that `touched` may hold it twice.
    crossed: bool,
}

impl Accumulator {
    fn new(cols: usize) -> Self {
        Self { dense: vec![0.0; cols], touched: Vec::new(), ranks: Vec::new(), crossed: false }
    }

    fn add(&mut self, share: f32, indices: &[u32], values: &[f32]) {
        for (j, v) in indices.iter().zip(values) {
            let at = &mut self.dense[*j as usize];
            if *at == 0.0 {
                self.touched.push(*j);
            }
            *at += share * v;
            self.crossed |= *at == 0.0;
        }
    }

    /// The length of the sum.
    fn length(&mut self) -> f64 {
        self.dedup_touched();
        length_of(self.touched.iter().map(|j| self.dense[*j as usize]))
    }

    /// Removes duplicate positions from `touched`.
    fn dedup_touched(&mut self) {
        let Self { dense, touched, crossed, .. } = self;
        if std::mem::take(crossed) {
            touched.retain(|j| dense[*j as usize] != 0.0);
            touched.sort_unstable();
            touched.dedup();
        }
    }

    /// Appends the sum, cut and scaled, and resets it to zero.
    fn drain(&mut self, cut: Cut, out: &mut Chunk) {
        self.dedup_touched();
        let Self { dense, touched, ranks, .. } = self;
        let begin = out.indices.len();
        if (cut.most == 0 || touched.len() <= cut.most) && cut.mass >= 1.0 {
            out.indices.extend_from_slice(touched);
        } else {
            ranks.clear();
            // Ascending ranks are descending magnitudes, then ascending features.
            let rank = |j: u32| u64::from(!dense[j as usize].abs().to_bits()) << 32 | u64::from(j);
            ranks.extend(touched.iter().map(|j| rank(*j)));
            let kept = largest(ranks, cut);
            out.indices.extend(ranks[..kept].iter().map(|r| *r as u32));
        }
        let kept = &mut out.indices[begin..];
        if !kept.is_sorted() {
            kept.sort_unstable();
        }
        out.values.extend(kept.iter().map(|j| dense[*j as usize]));
        touched.drain(..).for_each(|j| dense[j as usize] = 0.0);
        scale(&mut out.values[begin..]);
        out.ends.push(out.indices.len());
    }
}

/// Moves the ranks that are kept to the front, in any order, and returns how many there are. The smallest set that
/// holds the mass is found as in quickselect: halve, and continue in the half where the mass is reached. Cost: linear
/// in the number of ranks.
fn largest(ranks: &mut [u64], cut: Cut) -> usize {
    let squared = |rank: &u64| {
        let v = f64::from(f32::from_bits(!(rank >> 32) as u32));
        v * v
    };
    let mut wanted = f64::from(cut.mass) * ranks.iter().map(squared).sum::<f64>();
    let (mut low, mut high) = (0, ranks.len());
    if cut.most > 0 && cut.most < high {
        ranks.select_nth_unstable(cut.most);
        high = cut.most;
    }
    while cut.mass < 1.0 && high - low > 1 {
        let middle = low + (high - low) / 2;
        ranks[low..high].select_nth_unstable(middle - low);
        let upper: f64 = ranks[low..middle].iter().map(squared).sum();
        if upper >= wanted {
            high = middle;
        } else {
            wanted -= upper;
            low = middle;
        }
    }
    high
}

/// The length of a sum; values outside the range of f32 are clamped to it.
fn length_of(values: impl Iterator<Item = f32>) -> f64 {
    let squared = |v: f32| f64::from(v.clamp(f32::MIN, f32::MAX)).powi(2);
    values.map(squared).sum::<f64>().sqrt()
}

/// Scales to length 1, even where squares exceed the range of f32; sums outside the range are clamped to it.
fn scale(values: &mut [f32]) {
    let length = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
    let mut norm = length(values);
    if !values.is_empty() && !(1e-15..1e18).contains(&norm) {
        values.iter_mut().for_each(|v| *v = v.clamp(f32::MIN, f32::MAX));
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        values.iter_mut().for_each(|v| *v /= largest);
        norm = length(values);
    }
    values.iter_mut().for_each(|v| *v /= norm);
}
