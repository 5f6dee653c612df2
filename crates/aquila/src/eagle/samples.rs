//! The samples as the embeddings see them.

use crate::data::Csr;
use crate::kernels::Isa;
use crate::kernels::dcd::Entries;
use crate::kernels::gather::dot_pairs;
use crate::kernels::prefetch_line;
use crate::xlinear::TrainRows;
use std::ops::Range;

/// Sparse rows, scaled so that none is longer than 1, their features renumbered by how many rows have them, the most frequent first: what sums
/// meet often then stands together and stays in the nearest caches.
#[derive(Debug)]
pub(super) struct Samples {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    /// The feature of each number.
    names: Vec<u32>,
    /// Each sample's length, where the longest is 1.
    lengths: Vec<f32>,
    /// What values were divided by for that.
    longest: f64,
}

impl Samples {
    pub fn new(x: &Csr, normalize: bool) -> Self {
        let rows = TrainRows::new(x, normalize);
        let mut counts = vec![0u32; x.cols()];
        x.indices().iter().for_each(|j| counts[*j as usize] += 1);
        let mut names: Vec<u32> = (0..x.cols() as u32).collect();
        names.sort_by_key(|j| std::cmp::Reverse(counts[*j as usize]));
        let mut numbers = vec![0u32; x.cols()];
        (0u32..).zip(&names).for_each(|(number, j)| numbers[*j as usize] = number);
        let length = |i| rows.row(i).1.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let lengths: Vec<f64> = (0..x.rows()).map(length).collect();
        let longest = lengths.iter().fold(0.0, |m: f64, l| m.max(*l)).max(f64::MIN_POSITIVE);
        Self {
            lengths: lengths.iter().map(|l| (l / longest) as f32).collect(),
            longest,
            starts: x.indptr().to_vec(),
            indices: x.indices().iter().map(|j| numbers[*j as usize]).collect(),
            values: rows.values().iter().map(|v| (f64::from(*v) / longest) as f32).collect(),
            names,
        }
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.names.len()
    }

    /// The features' numbers of a sample, in no order, and their values.
    pub fn row(&self, i: u32) -> (&[u32], &[f32]) {
        let span = self.span(i);
        (&self.indices[span.clone()], &self.values[span])
    }

    fn span(&self, i: u32) -> Range<usize> {
        self.starts[i as usize]..self.starts[i as usize + 1]
    }

    /// The samples as the kernels take them.
    pub fn view(&self) -> View<'_> {
        let entries = Entries::new(&self.indices, &self.values, self.names.len());
        View { samples: self, entries, isa: Isa::detect() }
    }

    /// The feature that has a number.
    pub fn name(&self, number: u32) -> u32 {
        self.names[number as usize]
    }

    /// A sample's length, from 0 to 1.
    pub fn length(&self, i: u32) -> f64 {
        f64::from(self.lengths[i as usize])
    }

    /// What values were divided by, so that the longest sample has length 1.
    pub fn longest(&self) -> f64 {
        self.longest
    }
}

/// Samples whose entries were checked once for the kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    samples: &'a Samples,
    entries: Entries<'a>,
    isa: Isa,
}

impl View<'_> {
    /// Asks the caches for a sample that will be needed soon.
    #[inline]
    pub fn prefetch(&self, i: u32) {
        let span = self.samples.span(i);
        for j in span.step_by(16) {
            prefetch_line(self.samples.indices.as_ptr().wrapping_add(j));
            prefetch_line(self.samples.values.as_ptr().wrapping_add(j));
        }
    }

    /// The product of a sample with each of two vectors.
    #[inline]
    pub fn dot(&self, i: u32, pairs: &[[f32; 2]]) -> [f64; 2] {
        dot_pairs(self.isa, &self.entries, self.samples.span(i), pairs)
    }
}

impl std::ops::Deref for View<'_> {
    type Target = Samples;

    fn deref(&self) -> &Samples {
        self.samples
    }
}
