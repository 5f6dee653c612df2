//! Whether label vectors should be cut, decided by a trial.
//!
//! A good tree keeps the labels of a row together. So a sample of labels is split in two once by its cut vectors and
//! once by its whole ones ([`Bisection`]), and the rows with several labels of the sample are counted: which part of
//! their labels beyond the first lies across the split? Whole vectors take longer and need more memory, and on most
//! data they are a little worse; they are taken where they halve, or nearly halve, that part ([`CLEARLY`]).
//!
//! Measured: whole / cut is 0.54 on the one set where the cut costs much (a generated one whose branches differ by
//! words that all their rows share; 4.5 points of P@1) and 0.79 to 1.15 on eight others, where it costs nothing or
//! gains. Smaller samples do not see it: k-means finds such words in the sums of thousands of labels. The source of
//! the idea is our own. Cost: the whole vectors of the sample and two splits of it, 2 to 6 % of a training.

use super::bisect::Bisection;
use super::label_vectors::LabelVectors;
use super::points::Points;
use super::vectors::{Cut, Pifa};
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::rng::Rng;

/// Most labels of the sample.
pub const SAMPLE: usize = 8192;
/// Labels from which on there is a trial: smaller trees have few splits, and their vectors matter little.
pub const TRIED_FROM: usize = 4096;
/// Rows' labels torn apart by whole vectors, for each one by cut vectors, up to which whole ones are better clearly.
const CLEARLY: f64 = 2.0 / 3.0;
/// The trial's own stream of random numbers.
const STREAM: u64 = 0x7472_6961_6c00;

/// Whether whole vectors keep the labels of rows together much better than vectors so cut.
pub fn whole_is_better(pifa: &Pifa<'_>, cut: Cut, how: Bisection, control: &Control) -> Result<bool> {
    let used = |label: &u32| !pifa.labels_rows.row(*label as usize).is_empty();
    let mut labels: Vec<u32> = (0..pifa.labels_rows.rows() as u32).filter(used).collect();
    if labels.len() < TRIED_FROM || pifa.values.is_empty() {
        return Ok(false);
    }
    Rng::new(&[control.seed, STREAM]).shuffle(&mut labels);
    labels.truncate(SAMPLE);
    labels.sort_unstable();
    control.install(|| {
        let whole = pifa.some(&labels, Cut::NONE, control)?;
        let torn = |vectors| torn(pifa.labels_rows, &labels, vectors, how, control);
        let (by_cut, by_whole) = rayon::join(|| torn(whole.cut(cut, control)?), || torn(whole.clone()));
        Ok(by_whole? as f64 <= CLEARLY * by_cut? as f64)
    })?
}

/// Over all rows: how many labels lie on the side of a split with fewer of the row's.
fn torn(
    labels_rows: &Csr,
    labels: &[u32],
    vectors: LabelVectors,
    how: Bisection,
    control: &Control,
) -> Result<u64> {
    let points = Points::new(vectors);
    let (left, right) = how.split(&points, Rng::new(&[control.seed, STREAM, 1]), control)?;
    let mut sides = vec![[0u32; 2]; labels_rows.cols()];
    for (side, half) in [left, right].into_iter().enumerate() {
        for at in half {
            let label = labels[points.labels[at as usize] as usize];
            labels_rows.row(label as usize).indices.iter().for_each(|i| sides[*i as usize][side] += 1);
        }
    }
    Ok(sides.iter().map(|[a, b]| u64::from(*a.min(b))).sum())
}
