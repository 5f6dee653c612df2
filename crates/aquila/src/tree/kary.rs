//! k-means into clusters of any size (Khandagale et al., Bonsai, Machine Learning 2020).
//!
//! From `k` random rows, repeat: every row goes to the nearest centre (spherical: largest cosine; plain: smallest
//! distance; ties to the lower centre), centres become the mean of their rows. Ends when at most 1 % of the rows
//! change clusters. Clusters that lose all rows vanish; a node that falls into one cluster alone is cut into equal
//! parts instead, so that recursion always ends. (Bonsai hangs where a node has fewer labels than `k`; here `k` is
//! at most their number.)
//!
//! Cost a round: non-zeros × k multiply-adds, and as many again for the centres.

use super::points::{PARALLEL, Points};
use crate::control::Control;
use crate::error::Result;
use crate::rng::Rng;
use rayon::prelude::*;

/// Rows that are looked at in a task, at least.
const RUN: usize = 64;

/// How to split.
#[derive(Debug, Clone, Copy)]
pub struct Clustering {
    /// Most clusters.
    pub k: usize,
    /// Compare directions (true) or points (false).
    pub spherical: bool,
    /// Most rounds.
    pub iterations: u32,
}

impl Clustering {
    /// The rows of each cluster, none of them empty, at least two where there are two rows.
    pub fn split(&self, points: &Points, mut rng: Rng, control: &Control) -> Result<Vec<Vec<u32>>> {
        let (n, k) = (points.len(), self.k.min(points.len()));
        let mut seeds: Vec<u32> = (0..n as u32).collect();
        for i in 0..k {
            seeds.swap(i, i + rng.below((n - i) as u32) as usize);
        }
        let mut centres = vec![0f32; points.cols() * k];
        for (c, row) in seeds[..k].iter().enumerate() {
            points.add_to_centre(*row as usize, &mut centres, c, k);
        }
        let mut cluster = vec![u32::MAX; n];
        let mut sizes = vec![1usize; k];
        for _ in 0..self.iterations {
            control.check()?;
            points.settle_centres(&mut centres, k);
            let penalty = self.scale(&mut centres, &sizes, k);
            let moved = nearest(points, &centres, &penalty, &mut cluster);
            centres.fill(0.0);
            sizes.fill(0);
            for (row, c) in cluster.iter().enumerate() {
                points.add_to_centre(row, &mut centres, *c as usize, k);
                sizes[*c as usize] += 1;
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

    /// Sums become centres; what each centre's score starts from (minus half its squared length, or 0).
    fn scale(&self, centres: &mut [f32], sizes: &[usize], k: usize) -> Vec<f32> {
        let mut squared = vec![0f32; k];
        centres.chunks_exact(k).for_each(|row| squared.iter_mut().zip(row).for_each(|(s, c)| *s += c * c));
        let factor: Vec<f32> = (0..k)
            .map(|c| {
                if self.spherical { 1.0 / squared[c].sqrt().max(1e-12) } else { 1.0 / sizes[c].max(1) as f32 }
            })
            .collect();
        for row in centres.chunks_exact_mut(k) {
            row.iter_mut().zip(&factor).for_each(|(v, f)| *v *= f);
        }
        (0..k)
            .map(|c| match (sizes[c], self.spherical) {
                (0, _) => f32::MIN,
                (_, true) => 0.0,
                (_, false) => -0.5 * squared[c] * factor[c] * factor[c],
            })
            .collect()
    }
}

/// Takes every row to its nearest centre; returns how many rows changed theirs.
fn nearest(points: &Points, centres: &[f32], penalty: &[f32], cluster: &mut [u32]) -> usize {
    let all = |(first, some): (usize, &mut [u32])| {
        let (mut moved, mut scores) = (0, vec![0f32; penalty.len()]);
        for (row, at) in (first * RUN..).zip(some) {
            scores.copy_from_slice(penalty);
            points.add_scores(row, centres, &mut scores);
            let best = (1..scores.len()).fold(0, |b, c| if scores[c] > scores[b] { c } else { b }) as u32;
            moved += usize::from(*at != best);
            *at = best;
        }
        moved
    };
    if points.nnz() >= PARALLEL {
        cluster.par_chunks_mut(RUN).enumerate().map(all).sum()
    } else {
        cluster.chunks_mut(RUN).enumerate().map(all).sum()
    }
}
