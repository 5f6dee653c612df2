//! The leaves that training rows reach, and `A = YᵀM` with sums of scores, label by label.

use crate::data::Csr;
use std::cmp::Ordering;

/// `M`: for each row the leaves that the matcher's beam reaches, with their scores.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    indptr: Vec<usize>,
    leaves: Vec<u32>,
    scores: Vec<f32>,
    /// Number of leaves.
    pub width: usize,
}

impl Reached {
    /// Takes the leaves of each row with their scores; a row names a leaf at most once.
    pub fn new<R: IntoIterator<Item = (u32, f32)>>(width: usize, rows: impl Iterator<Item = R>) -> Self {
        let mut reached = Self { indptr: vec![0], width, ..Self::default() };
        for row in rows {
            for (leaf, score) in row {
                reached.leaves.push(leaf);
                reached.scores.push(score);
            }
            reached.indptr.push(reached.leaves.len());
        }
        reached
    }

    /// The leaves of a row and their scores.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let span = self.indptr[i]..self.indptr[i + 1];
        self.leaves[span.clone()].iter().copied().zip(self.scores[span].iter().copied())
    }
}

/// A wish: a leaf that a label may be placed under.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Wish {
    /// How many of the label's rows reach the leaf.
    pub count: u32,
    /// The sum of their scores there.
    pub score: f64,
    /// The sum of the square roots of these scores.
    pub roots: f64,
    /// The label.
    pub label: u32,
    /// The leaf.
    pub leaf: u32,
}

impl Wish {
    /// Best first: descending roots and count, then ascending label and leaf. No two wishes are equal.
    pub fn by_roots(&self, other: &Self) -> Ordering {
        (other.roots.total_cmp(&self.roots))
            .then(other.count.cmp(&self.count))
            .then(self.label.cmp(&other.label))
            .then(self.leaf.cmp(&other.leaf))
    }

    /// Best first, as in the paper: descending count and score, then ascending label and leaf.
    pub fn by_count(&self, other: &Self) -> Ordering {
        (other.count.cmp(&self.count))
            .then(other.score.total_cmp(&self.score))
            .then(self.label.cmp(&other.label))
            .then(self.leaf.cmp(&other.leaf))
    }
}

/// Per-thread memory for counting.
#[derive(Debug, Default)]
pub(super) struct Counter {
    sums: Vec<Wish>,
    met: Vec<u32>,
    wishes: Vec<Wish>,
}

impl Counter {
    /// The row of `A` for a label; `rows` are the labels' rows (`Yᵀ`).
    pub fn wishes(&mut self, rows: &Csr, reached: &Reached, label: u32) -> &mut Vec<Wish> {
        self.sums.resize(reached.width, Wish::default());
        let row = rows.row(label as usize);
        for (i, _) in row.iter().filter(|(_, present)| *present != 0.0) {
            for (leaf, score) in reached.row(i as usize) {
                let sum = &mut self.sums[leaf as usize];
                if sum.count == 0 {
                    self.met.push(leaf);
                }
                sum.count += 1;
                sum.score += f64::from(score);
                sum.roots += f64::from(score).sqrt();
            }
        }
        self.wishes.clear();
        for leaf in self.met.drain(..) {
            self.wishes.push(Wish { label, leaf, ..std::mem::take(&mut self.sums[leaf as usize]) });
        }
        &mut self.wishes
    }
}
