//! Decides by a trial whether label vectors should be cut.
//!
//! A good tree keeps the labels of a row together. The trial splits a sample of labels in two ([`Bisection`]), once by
//! cut vectors and once by whole ones. For the rows with several labels in the sample, it counts which share of their
//! labels beyond the first is on the other side of the split. Whole vectors take longer and need more memory, and on
//! most data they are slightly worse. They are used where they halve, or nearly halve, that share ([`CLEARLY`]).
//!
//! Measured: the ratio whole / cut is 0.54 on the one data set where the cut is expensive (a generated one whose
//! branches differ by words that all their rows share; 4.5 points of P@1) and 0.79 to 1.15 on eight others, where the
//! cut costs nothing or improves the result. Smaller samples do not show the effect: k-means finds such words in the
//! sums of thousands of labels. The idea is our own. Cost: computing the whole vectors of the sample and splitting it
//! twice, 2 to 6 % of the training time.

use super::bisect::Bisection;
use super::label_vectors::LabelVectors;
use super::points::Points;
use super::vectors::{Cut, Pifa};
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::rng::Rng;

/// Maximum number of labels in the sample.
pub const SAMPLE: usize = 8192;
/// Minimum number of labels for a trial: smaller trees have few splits, and their vectors matter little.
pub const TRIED_FROM: usize = 4096;
/// Whole vectors are clearly better if the labels they separate are at most this share of those that cut vectors
/// separate.
const CLEARLY: f64 = 2.0 / 3.0;
/// The random number stream of the trial.
const STREAM: u64 = 0x7472_6961_6c00;

/// Whether whole vectors keep the labels of rows together much better than vectors cut this way.
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

/// Counts, over all rows, the labels on the side of the split that has fewer of the row's labels.
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
