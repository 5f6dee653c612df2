//! The samples in the form that the embeddings use.

use crate::data::Csr;
use crate::kernels::batch16::{self, BATCH16, Contest, Leads, Looks};
use crate::kernels::dcd::Entries;
use crate::kernels::row_subset::RowSubset;
use crate::kernels::sparse_dot2;
use crate::kernels::{Isa, prefetch_line};
use crate::xlinear::TrainRows;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Sparse rows, scaled so that no row is longer than 1.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    starts: &'a [usize],
    indices: &'a [u32],
    values: Cow<'a, [f32]>,
    features: usize,
    lengths: Vec<f32>,
    longest: f64,
    apart: f64,
}

impl<'a> Samples<'a> {
    pub fn new(rows: &'a TrainRows<'_>) -> Self {
        let x: &'a Csr = rows.matrix();
        let length = |i| rows.row(i).1.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let lengths: Vec<f64> = (0..x.rows()).into_par_iter().map(length).collect();
        let longest = lengths.iter().fold(0.0, |m: f64, l| m.max(*l)).max(f64::MIN_POSITIVE);
        let values = match (longest - 1.0).abs() < 1e-5 {
            true => Cow::Borrowed(rows.values()),
            false => Cow::Owned(rows.values().iter().map(|v| (f64::from(*v) / longest) as f32).collect()),
        };
        Self {
            lengths: lengths.iter().map(|l| (l / longest) as f32).collect(),
            longest,
            apart: if rows.values().iter().all(|v| *v >= 0.0) { std::f64::consts::SQRT_2 } else { 2.0 },
            starts: x.indptr(),
            indices: x.indices(),
            values,
            features: x.cols(),
        }
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The features of a sample and their values.
    pub fn row(&self, i: u32) -> (&[u32], &[f32]) {
        let span = self.span(i);
        (&self.indices[span.clone()], &self.values[span])
    }

    fn span(&self, i: u32) -> Range<usize> {
        self.starts[i as usize]..self.starts[i as usize + 1]
    }

    /// The samples in the form that the kernels use.
    pub fn view(&self) -> View<'_> {
        let entries = Entries::new(self.indices, &self.values, self.features);
        View { samples: self, entries, isa: Isa::detect() }
    }

    /// A sample's length, from 0 to 1.
    pub fn length(&self, i: u32) -> f64 {
        f64::from(self.lengths[i as usize])
    }

    /// The maximum distance of two samples: `‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩`.
    pub fn apart(&self) -> f64 {
        self.apart
    }

    /// The divisor of the values, so that the longest sample has length 1.
    pub fn longest(&self) -> f64 {
        self.longest
    }
}

/// Samples whose entries are checked once for the kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    samples: &'a Samples<'a>,
    entries: Entries<'a>,
    isa: Isa,
}

impl View<'_> {
    /// Prefetches a sample that will be needed soon.
    #[inline]
    pub fn prefetch(&self, i: u32) {
        for j in self.samples.span(i).step_by(16) {
            prefetch_line(self.samples.indices.as_ptr().wrapping_add(j));
            prefetch_line(self.samples.values.as_ptr().wrapping_add(j));
        }
    }

    /// The products of each sample with two vectors: see [`sparse_dot2::dots`].
    pub fn dot2(&self, rows: &[u32], pairs: &[[f32; 2]], out: &mut [[f32; 2]]) {
        sparse_dot2::dots(self.isa, self.subset(rows), pairs, out);
    }

    fn subset<'s>(&'s self, rows: &'s [u32]) -> RowSubset<'s> {
        RowSubset { entries: &self.entries, starts: self.samples.starts, rows }
    }

    /// The products of each sample with each vector of the tables: see [`batch16::products`].
    pub fn dot_batch<const N: usize>(&self, rows: &[u32], tables: [&[f32]; N], out: [&mut [f32]; N]) {
        batch16::products(self.isa, self.subset(rows), tables, out);
    }

    /// Adds samples to the vectors of a table: see [`batch16::add`].
    pub fn add_batch(&self, rows: &[u32], factors: &[f32], table: &mut [f32]) {
        batch16::add(self.isa, self.subset(rows), factors, table);
    }

    /// The leaders of groups: see [`batch16::lead`].
    pub fn lead_batch(
        &self,
        looks: Looks<'_>,
        contests: &[Contest],
        ties: &[f32; BATCH16],
        leaders: &mut [Leads],
        open: (&mut Vec<usize>, &mut Vec<Contest>),
    ) {
        batch16::lead(self.isa, looks, contests, ties, leaders, open);
    }
}

impl<'a> std::ops::Deref for View<'a> {
    type Target = Samples<'a>;

    fn deref(&self) -> &Samples<'a> {
        self.samples
    }
}
