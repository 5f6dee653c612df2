//! k-means into clusters of any size (Khandagale et al., Bonsai, Machine Learning 2020).
//!
//! Start from `k` random rows and repeat: every row goes to the nearest centre (spherical: largest cosine; plain:
//! smallest distance; ties to the lower centre), and each centre becomes the mean of its rows. Rounds end when at most
//! 1 % of the rows change clusters. Clusters that lose all rows are removed. A node whose rows all fall into one
//! cluster is cut into equal parts instead, so that recursion always ends. (Bonsai hangs where a node has fewer labels
//! than `k`; here `k` is at most their number.)
//!
//! Sums are kept between rounds, and only rows that change clusters are moved. Cost per round: non-zeros × k
//! multiply-adds.

use super::points::{PARALLEL, Points};
use crate::control::Control;
use crate::error::Result;
use crate::rng::Rng;
use rayon::prelude::*;

/// The cluster of a row that has not been assigned yet.
const NONE: u32 = u32::MAX;
/// Minimum number of rows per task.
const RUN: usize = 64;

/// How to split.
#[derive(Debug, Clone, Copy)]
pub struct Clustering {
    /// Maximum number of clusters.
    pub k: usize,
    /// Compare directions (true) or points (false).
    pub spherical: bool,
    /// Maximum number of rounds.
    pub iterations: u32,
}

impl Clustering {
    /// The rows of each cluster. No cluster is empty, and there are at least two where there are two rows.
    pub fn split(&self, points: &Points, rng: Rng, control: &Control) -> Result<Vec<Vec<u32>>> {
        control.install(|| self.clusters(points, rng, control))?
    }

    fn clusters(&self, points: &Points, mut rng: Rng, control: &Control) -> Result<Vec<Vec<u32>>> {
        let (n, k) = (points.len(), self.k.min(points.len()));
        let mut seeds: Vec<u32> = (0..n as u32).collect();
        for i in 0..k {
            seeds.swap(i, i + rng.below((n - i) as u32) as usize);
        }
        let mut sums = vec![0f32; points.cols() * k];
        for (c, row) in seeds[..k].iter().enumerate() {
            points.add_to_sum(*row as usize, 1.0, &mut sums, c, k);
        }
        let (mut before, mut cluster) = (vec![NONE; n], vec![NONE; n]);
        let mut sizes = vec![1usize; k];
        for round in 0..self.iterations {
            control.check()?;
            let centres = self.centres(points, &sums, &sizes);
            before.copy_from_slice(&cluster);
            centres.nearest(points, &mut cluster);
            if round == 0 {
                // The initial rows of the centres are assigned to their nearest centre like all others.
                sums.fill(0.0);
                sizes.fill(0);
            }
            let mut moved = 0;
            for (row, (from, to)) in before.iter().zip(&cluster).enumerate().filter(|(_, (a, b))| a != b) {
                moved += 1;
                if *from != NONE {
                    points.add_to_sum(row, -1.0, &mut sums, *from as usize, k);
                    sizes[*from as usize] -= 1;
                }
                points.add_to_sum(row, 1.0, &mut sums, *to as usize, k);
                sizes[*to as usize] += 1;
            }
            if moved * 100 <= n {
                break;
            }
        }
        let mut parts = vec![Vec::new(); k];
        (0u32..).zip(&cluster).for_each(|(row, c)| parts[*c as usize].push(row));
        parts.retain(|p| !p.is_empty());
        if parts.len() == 1 && n > 1 {
            let all = std::mem::take(&mut parts[0]);
            parts = all.chunks(n.div_ceil(k.max(2))).map(<[u32]>::to_vec).collect();
        }
        Ok(parts)
    }

    /// Computes the factors that turn scores of sums into scores of centres.
    fn centres<'a>(&self, points: &Points, sums: &'a [f32], sizes: &[usize]) -> Centres<'a> {
        let squares = points.squares(sums, sizes.len());
        let of = |(square, size): (&f32, &usize)| match (size, self.spherical) {
            (0, _) => [0.0, f32::MIN],
            (_, true) => [1.0 / square.sqrt().max(1e-12), 0.0],
            (n, false) => {
                let factor = 1.0 / *n as f32;
                [factor, -0.5 * square * factor * factor]
            }
        };
        let scales = squares.iter().zip(sizes).map(of).collect();
        Centres { sums, interleaved: points.interleaved(sums, sizes.len()), scales }
    }
}

/// Centres: sums of rows, and the factors that turn them into scores.
struct Centres<'a> {
    sums: &'a [f32],
    interleaved: Vec<f32>,
    /// For each centre the inverse of its length (spherical) or of its size, and minus half its squared length (plain).
    scales: Vec<[f32; 2]>,
}

impl Centres<'_> {
    /// Assigns every row to its nearest centre.
    fn nearest(&self, points: &Points, cluster: &mut [u32]) {
        let all = |(first, some): (usize, &mut [u32])| {
            let (k, rows) = (self.scales.len(), first * RUN..first * RUN + some.len());
            let mut scores = vec![0f32; rows.len() * k];
            points.add_scores(rows, self.sums, &self.interleaved, k, &mut scores);
            for (scores, at) in scores.chunks_exact_mut(k).zip(some) {
                scores.iter_mut().zip(&self.scales).for_each(|(s, [factor, more])| *s = *s * factor + more);
                *at = (1..scores.len()).fold(0, |b, c| if scores[c] > scores[b] { c } else { b }) as u32;
            }
        };
        if points.nnz() >= PARALLEL {
            cluster.par_chunks_mut(RUN).enumerate().for_each(all);
        } else {
            cluster.chunks_mut(RUN).enumerate().for_each(all);
        }
    }
}
