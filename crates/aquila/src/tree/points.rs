//! The vectors of a node's labels while they are clustered.

use super::LabelVectors;
use crate::kernels::bf16_rows::Bf16Rows;
use crate::kernels::{Isa, matvec, prefetch_rows};
use std::ops::Range;
use std::sync::Arc;

/// Rows to be clustered: sparse entries, and columns of a dense block after the sparse columns.
///
/// Large nodes share the entries of the whole matrix, which are read-only. Small nodes have a copy of their entries,
/// with columns renumbered to those in use.
#[derive(Debug)]
pub struct Points {
    /// The label of each row.
    pub labels: Vec<u32>,
    /// The range of each row's entries.
    spans: Vec<Span>,
    entries: Arc<Entries>,
    nnz: usize,
    cols: usize,
    /// The dense parts of all labels; a row uses the one of its label.
    dense: Arc<Bf16Rows>,
    isa: Isa,
}

/// The range of a row's entries, end exclusive.
type Span = (usize, usize);

/// The entries of the rows of one or more nodes.
#[derive(Debug, Default)]
struct Entries {
    idx: Vec<u32>,
    val: Vec<f32>,
}

/// Renumbering is worth the copy once a node has fewer entries per column than this.
const THIN: usize = 6;
/// Nodes with fewer entries than this are always copied, so that rows that are read repeatedly are contiguous.
const SMALL: usize = 1 << 20;
/// Minimum number of entries for sharing a pass over all rows among threads.
pub const PARALLEL: usize = 1 << 17;
/// Number of rows of the block passed to a kernel at a time.
const TOGETHER: usize = 64;

impl Points {
    /// All rows of `vectors` that have entries.
    pub fn new(vectors: impl Into<LabelVectors>) -> Self {
        let vectors = vectors.into();
        let labels: Vec<u32> =
            (0..vectors.rows() as u32).filter(|l| !vectors.is_empty(*l as usize)).collect();
        let (sparse, dense) = vectors.into_parts();
        let cols = sparse.cols();
        let ptr = sparse.indptr();
        let spans = labels.iter().map(|l| (ptr[*l as usize], ptr[*l as usize + 1])).collect();
        let nnz = sparse.nnz();
        let (idx, val) = sparse.into_entries();
        Self { labels, spans, entries: Arc::new(Entries { idx, val }), nnz, cols, dense, isa: Isa::detect() }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Number of columns, including those of the block.
    pub fn cols(&self) -> usize {
        self.cols + self.dense.cols()
    }

    /// Number of entries, including all values of the block.
    pub fn nnz(&self) -> usize {
        self.nnz + self.len() * self.dense.cols()
    }

    /// `⟨row, vector⟩` for each of these rows, bit-identical on every machine.
    pub fn dots(&self, rows: &[u32], vector: &[f32], out: &mut [f32]) {
        let (first, last) = vector.split_at(self.cols);
        for (n, (row, out)) in rows.iter().zip(&mut *out).enumerate() {
            let Entries { idx, val } = &*self.entries;
            prefetch_rows(&self.spans, |i| self.spans[i].0..self.spans[i].1, (idx, val), rows, n);
            *out = self.dot_sparse(*row as usize, first);
        }
        if !last.is_empty() {
            let mut block = [0f32; TOGETHER];
            for (rows, out) in rows.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)) {
                let mut labels = [0; TOGETHER];
                labels.iter_mut().zip(rows).for_each(|(l, row)| *l = self.labels[*row as usize]);
                self.dense.dots(self.isa, &labels[..rows.len()], last, &mut block[..rows.len()]);
                out.iter_mut().zip(block).for_each(|(sum, v)| *sum += v);
            }
        }
    }

    /// `⟨row, dense⟩` over the sparse columns, summed in four streams in a fixed order.
    #[inline]
    fn dot_sparse(&self, row: usize, dense: &[f32]) -> f32 {
        let (idx, val) = self.row(row);
        let mut sums = [0f32; 4];
        let (quads, rest) = idx.as_chunks::<4>();
        let (weights, tail) = val.as_chunks::<4>();
        for (j, v) in quads.iter().zip(weights) {
            for k in 0..4 {
                sums[k] += dense[j[k] as usize] * v[k];
            }
        }
        for (j, v) in rest.iter().zip(tail) {
            sums[0] += dense[*j as usize] * v;
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    /// `vector += factor · row` for each of these rows, in order.
    pub fn add(&self, rows: &[(u32, f32)], vector: &mut [f32]) {
        let (first, last) = vector.split_at_mut(self.cols);
        for (row, factor) in rows {
            let (idx, val) = self.row(*row as usize);
            idx.iter().zip(val).for_each(|(j, v)| first[*j as usize] += factor * v);
        }
        if !last.is_empty() {
            let mut labels = [(0, 0.0); TOGETHER];
            for rows in rows.chunks(TOGETHER) {
                let label = |(row, factor): &(u32, f32)| (self.labels[*row as usize], *factor);
                labels.iter_mut().zip(rows).for_each(|(l, row)| *l = label(row));
                self.dense.add(self.isa, &labels[..rows.len()], last);
            }
        }
    }

    /// `scores[c] += ⟨row, sum c⟩` for each of these rows and `k` sums. [`Points::add_to_sum`] builds the sums, and
    /// [`Points::interleaved`] returns `interleaved`.
    pub fn add_scores(
        &self,
        rows: Range<usize>,
        sums: &[f32],
        interleaved: &[f32],
        k: usize,
        scores: &mut [f32],
    ) {
        for (row, scores) in rows.clone().zip(scores.chunks_exact_mut(k)) {
            let (idx, val) = self.row(row);
            matvec::add_rows(self.isa, &sums[..self.cols * k], idx, val, scores);
        }
        if !interleaved.is_empty() {
            self.dense.add_scores(self.isa, &self.labels[rows], interleaved, k, scores);
        }
    }

    /// Adds `factor` times a row to sum `c` of `k`. For each sparse column, the values of all sums are adjacent; the
    /// dense columns follow, sum after sum.
    pub fn add_to_sum(&self, row: usize, factor: f32, sums: &mut [f32], c: usize, k: usize) {
        let (first, last) = sums.split_at_mut(self.cols * k);
        let (idx, val) = self.row(row);
        idx.iter().zip(val).for_each(|(j, v)| first[*j as usize * k + c] += factor * v);
        if !last.is_empty() {
            let sum = &mut last[c * self.dense.cols()..][..self.dense.cols()];
            self.dense.add(self.isa, &[(self.labels[row], factor)], sum);
        }
    }

    /// The dense columns of `k` sums, with the values of all sums adjacent for each column.
    pub fn interleaved(&self, sums: &[f32], k: usize) -> Vec<f32> {
        let last = &sums[self.cols * k..];
        let mut out = vec![0.0; last.len()];
        for (c, sum) in last.chunks_exact(self.dense.cols().max(1)).enumerate() {
            out[c..].iter_mut().step_by(k).zip(sum).for_each(|(to, v)| *to = *v);
        }
        out
    }

    /// The squared lengths of `k` sums.
    pub fn squares(&self, sums: &[f32], k: usize) -> Vec<f32> {
        let (first, last) = sums.split_at(self.cols * k);
        let mut out = vec![0f32; k];
        first.chunks_exact(k).for_each(|row| out.iter_mut().zip(row).for_each(|(s, v)| *s += v * v));
        let dense = last.chunks_exact(self.dense.cols().max(1));
        out.iter_mut().zip(dense).for_each(|(s, sum)| *s += sum.iter().map(|v| v * v).sum::<f32>());
        out
    }

    /// The sparse entries of a row.
    fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let (begin, end) = self.spans[row];
        (&self.entries.idx[begin..end], &self.entries.val[begin..end])
    }

    /// A subset with only these rows. Dense rows are not copied.
    pub fn subset(&self, rows: &[u32]) -> Self {
        let mut spans: Vec<Span> = rows.iter().map(|row| self.spans[*row as usize]).collect();
        let nnz = spans.iter().map(|(begin, end)| end - begin).sum();
        let (entries, cols) = if nnz < SMALL.max(THIN * self.cols) {
            let (entries, cols) = self.copy(&mut spans, nnz);
            (Arc::new(entries), cols)
        } else {
            (Arc::clone(&self.entries), self.cols)
        };
        Self {
            labels: rows.iter().map(|row| self.labels[*row as usize]).collect(),
            spans,
            entries,
            nnz,
            cols,
            dense: Arc::clone(&self.dense),
            isa: self.isa,
        }
    }

    /// Copies the entries of rows, with renumbered columns where that pays, and updates the spans to refer to the copy.
    /// Returns the copy and its number of columns.
    fn copy(&self, spans: &mut [Span], nnz: usize) -> (Entries, usize) {
        let mut out = Entries { idx: Vec::with_capacity(nnz), val: Vec::with_capacity(nnz) };
        let renumber = nnz < THIN * self.cols;
        let mut local = vec![0u32; if renumber { self.cols } else { 0 }];
        let mut used = 0;
        for span in spans {
            let (begin, end) = *span;
            let (idx, val) = (&self.entries.idx[begin..end], &self.entries.val[begin..end]);
            span.0 = out.idx.len();
            if renumber {
                out.idx.extend(idx.iter().map(|j| {
                    let at = &mut local[*j as usize];
                    if *at == 0 {
                        used += 1;
                        *at = used;
                    }
                    *at - 1
                }));
            } else {
                out.idx.extend_from_slice(idx);
            }
            out.val.extend_from_slice(val);
            span.1 = out.idx.len();
        }
        (out, if renumber { used as usize } else { self.cols })
    }
}
