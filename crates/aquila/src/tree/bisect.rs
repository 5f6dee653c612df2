//! Balanced 2-means: a node's labels in two halves of equal size.
//!
//! Spherical (Prabhu et al., WWW 2018; PECOS): from two random rows, repeat: direction `c = x̄_R/‖x̄_R‖ − x̄_L/‖x̄_L‖`,
//! score `⟨c, x⟩`, the lower half goes left (ties by place). Plain: `c = mean_R − mean_L`.
//!
//! Where we differ from PECOS: sums are kept from round to round and only rows that change sides are moved; a node
//! with more rows than `sample` learns its direction from a random sample; rounds end when at most 1 % of the rows
//! change sides (PECOS: none). Cost a round: the non-zeros of the (sampled) rows, one multiply-add each.

use super::points::Points;
use crate::control::Control;
use crate::error::Result;
use crate::rng::Rng;
use rayon::prelude::*;

/// How to split.
#[derive(Debug, Clone, Copy)]
pub struct Bisection {
    /// Compare directions (true) or means (false).
    pub spherical: bool,
    /// Most rounds.
    pub iterations: u32,
    /// Most rows that rounds look at; 0 for all.
    pub sample: usize,
}

/// Entries from which a scoring is shared among threads.
const PARALLEL: usize = 1 << 17;

impl Bisection {
    /// The rows of each half, the left one of `⌊n/2⌋` rows, in the order of their places.
    pub fn split(&self, points: &Points, mut rng: Rng, control: &Control) -> Result<(Vec<u32>, Vec<u32>)> {
        let n = points.len();
        let mut chosen: Vec<u32> = (0..n as u32).collect();
        let sampled = self.sample > 1 && n > self.sample;
        if sampled {
            for i in 0..self.sample {
                chosen.swap(i, i + rng.below((n - i) as u32) as usize);
            }
            chosen.truncate(self.sample);
        }
        let m = chosen.len();
        let mut direction = vec![0f32; points.cols()];
        let right = rng.below(m as u32) as usize;
        let left = (right + 1 + rng.below(m as u32 - 1) as usize) % m;
        points.add(chosen[right] as usize, 1.0, &mut direction);
        points.add(chosen[left] as usize, -1.0, &mut direction);
        let mut on_right: Vec<bool> = Vec::new();
        let mut sums = [vec![0f32; points.cols()], vec![0f32; points.cols()]];
        let mut keys = Vec::new();
        for _ in 0..self.iterations {
            control.check()?;
            halve(points, &chosen, &direction, &mut keys);
            let mut moved = 0;
            let first = on_right.is_empty();
            on_right.resize(m, false);
            for (place, key) in keys.iter().enumerate() {
                let (at, side) = (*key as u32 as usize, place >= m / 2);
                if first || on_right[at] != side {
                    let row = chosen[at] as usize;
                    points.add(row, 1.0, &mut sums[usize::from(side)]);
                    if !first {
                        points.add(row, -1.0, &mut sums[usize::from(!side)]);
                    }
                    on_right[at] = side;
                    moved += 1;
                }
            }
            if moved == 0 {
                break;
            }
            let [l, r] = self.scales(&sums, m);
            for ((c, a), b) in direction.iter_mut().zip(&sums[0]).zip(&sums[1]) {
                *c = b * r - a * l;
            }
            if !first && moved * 100 <= m {
                break;
            }
        }
        let all: Vec<u32> = (0..n as u32).collect();
        halve(points, &all, &direction, &mut keys);
        let mut places: Vec<u32> = keys.iter().map(|k| *k as u32).collect();
        let mut right = places.split_off(n / 2);
        places.sort_unstable();
        right.sort_unstable();
        Ok((places, right))
    }

    fn scales(&self, sums: &[Vec<f32>; 2], m: usize) -> [f32; 2] {
        if !self.spherical {
            return [1.0 / (m / 2).max(1) as f32, 1.0 / (m - m / 2) as f32];
        }
        [0, 1].map(|side| {
            let norm = sums[side].iter().map(|v| v * v).sum::<f32>().sqrt();
            if norm > 0.0 { 1.0 / norm } else { 0.0 }
        })
    }
}

/// Scores the chosen rows and partitions them: after it the first half of `keys` holds the lower half by (score,
/// place); a key's low 32 bits are the place in `chosen`.
fn halve(points: &Points, chosen: &[u32], direction: &[f32], keys: &mut Vec<u64>) {
    keys.clear();
    keys.resize(chosen.len(), 0);
    let key = |(place, out): (usize, &mut u64)| {
        let bits = points.dot(chosen[place] as usize, direction).to_bits();
        let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        *out = u64::from(ordered) << 32 | place as u64;
    };
    if points.nnz() >= PARALLEL {
        keys.par_iter_mut().with_min_len(512).enumerate().for_each(key);
    } else {
        keys.iter_mut().enumerate().for_each(key);
    }
    let half = chosen.len() / 2;
    if half > 0 {
        keys.select_nth_unstable(half);
    }
}
