//! How reliably a score separates samples that have a label from samples that do not, estimated from groups alone.
//!
//! A sample none of whose groups carries a label certainly lacks it: such a pair is a *decoy*. A known share `π` of a
//! label's candidates is true (`Rates`), so candidates are a mixture of true pairs and of pairs like decoys. With scores
//! standardised over the candidates and `m` the mean of the decoys, the mean of the true pairs is `μ = −m/π` above that of
//! the false ones; the variance within both is `1 − π(1 − π)μ²`, and linear discriminant analysis weighs the score, in
//! log-odds, by `μ / (1 − π(1 − π)μ²)`. Labels are pooled, since a single one has too few decoys.
//!
//! Only scores of the same ranker are compared: a ranker that did not see the only group of a label knows nothing about it
//! and scores its candidates differently from the decoys of other rankers.
//!
//! Source: ours. In groups of similar samples decoys are far from any candidate, and `μ` is too large.

use super::candidates::Candidates;
use super::posterior::Rates;
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::rng::Rng;
use rayon::prelude::*;

/// Most samples that have decoys, and most decoys of one: a mean needs no more.
const SAMPLES: usize = 10_000;
const EACH: usize = 8;
/// A stream of random numbers for decoys.
const STREAM: u64 = 0x6465_636f_7973;

/// Samples × labels: for some samples up to as many labels that their groups lack as they have candidates, drawn as
/// often as bags carry them.
pub(super) fn decoys(pairs: &Candidates<'_>, control: &Control) -> Result<Csr> {
    let carried = pairs.bags().indices();
    let step = pairs.rows().div_ceil(SAMPLES).max(1);
    pairs.gather(control, |(): &mut (), i, indices, values| {
        let (own, begin) = (pairs.labels_of(i), indices.len());
        if i % step != 0 || own.is_empty() {
            return;
        }
        let most = own.len().min(EACH);
        let mut rng = Rng::new(&[control.seed, STREAM, i as u64]);
        // Where groups have nearly all labels there may be none to draw.
        for _ in 0..4 * most {
            let k = carried[rng.below(carried.len() as u32) as usize];
            if indices.len() - begin < most
                && own.binary_search(&k).is_err()
                && !indices[begin..].contains(&k)
            {
                indices.push(k);
            }
        }
        indices[begin..].sort_unstable();
        values.resize(indices.len(), 1.0);
    })
}

/// Scores of candidates and decoys.
pub(super) struct Compared<'a> {
    /// Parts of the samples, each scored by rankers of its own, and which of them each sample is of; some are of none.
    pub folds: u32,
    pub of_sample: &'a [u32],
    /// Of each candidate, and of each decoy.
    pub scores: &'a [f32],
    pub decoys: &'a Csr,
    pub false_scores: &'a [f32],
}

/// What one ranker gave the candidates and the decoys of one label.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    candidates: f64,
    sum: f64,
    squares: f64,
    decoys: f64,
    of_decoys: f64,
}

/// The weight in log-odds that a standardised score deserves. Infinite where spreads leave no variance within; none
/// where there is nothing to compare.
pub(super) fn separation(
    pairs: &Candidates<'_>,
    rates: &Rates,
    compared: &Compared<'_>,
    control: &Control,
) -> Result<Option<f64>> {
    let of_fold = |fold: u32| {
        let mut of = vec![Sums::default(); pairs.labels()];
        for i in (0..pairs.rows()).filter(|i| compared.of_sample[*i] == fold) {
            control.check()?;
            for (k, s) in pairs.labels_of(i).iter().zip(&compared.scores[pairs.span(i)]) {
                let (to, s) = (&mut of[*k as usize], f64::from(*s));
                (to.candidates, to.sum, to.squares) = (to.candidates + 1.0, to.sum + s, to.squares + s * s);
            }
            let false_scores = &compared.false_scores[compared.decoys.indptr()[i]..];
            for (k, s) in compared.decoys.row(i).indices.iter().zip(false_scores) {
                let to = &mut of[*k as usize];
                (to.decoys, to.of_decoys) = (to.decoys + 1.0, to.of_decoys + f64::from(*s));
            }
        }
        let mut found = [0f64; 3];
        for (k, s) in of.iter().enumerate().filter(|(_, s)| s.candidates > 1.0 && s.decoys > 0.0) {
            let mean = s.sum / s.candidates;
            let variance = s.squares / s.candidates - mean * mean;
            if variance > 1e-9 * s.squares / s.candidates {
                // A difference of two means is as sure as their numbers' harmonic mean.
                let weight = s.candidates * s.decoys / (s.candidates + s.decoys);
                found[0] += weight * (mean - s.of_decoys / s.decoys) / variance.sqrt();
                found[1] += weight * rates.expected(k) / f64::from(pairs.counts()[k]);
                found[2] += weight;
            }
        }
        Ok(found)
    };
    let found = (0..compared.folds).into_par_iter().map(of_fold).collect::<Result<Vec<_>>>()?;
    let [apart, share, all] = found.iter().fold([0.0; 3], |a, b| std::array::from_fn(|n| a[n] + b[n]));
    if share <= 0.0 {
        return Ok(None);
    }
    let (distance, share) = (apart / share, share / all);
    let within = 1.0 - share * (1.0 - share) * distance * distance;
    Ok(Some(if within > 0.0 { distance / within } else { f64::INFINITY.copysign(distance) }))
}

#[cfg(test)]
mod tests {
    use super::super::groups::{Groups, Merge};
    use super::*;

    /// Random labels in random groups of four.
    fn case(rows: usize) -> (Groups, Csr, Csr) {
        let mut rng = Rng::new(&[5]);
        let (mut indptr, mut indices) = (vec![0], vec![]);
        for _ in 0..rows {
            indices.extend((0..30).filter(|_| rng.below(10) == 0));
            indptr.push(indices.len());
        }
        let ones = vec![1.0; indices.len()];
        let y = Csr::new(rows, 30, indptr, indices, ones).unwrap();
        let groups = Groups::random(rows, 4, 0).unwrap();
        let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
        (groups, bags, y)
    }

    #[test]
    fn decoys_are_labels_that_groups_lack() {
        let (groups, bags, _) = case(400);
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let decoys = decoys(&pairs, &Control::default()).unwrap();
        for (i, row) in decoys.iter_rows().enumerate() {
            let own = pairs.labels_of(i);
            assert!(row.indices.len() <= EACH.min(own.len()) && row.indices.is_sorted_by(|a, b| a < b));
            assert!(row.indices.iter().all(|k| !own.contains(k)));
        }
        assert!(decoys.nnz() > 400 * EACH * 9 / 10, "{}", decoys.nnz());
    }

    #[test]
    fn the_weight_is_that_of_a_discriminant_that_knows_the_labels() {
        let (groups, bags, y) = case(4000);
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
        let decoys = decoys(&pairs, &Control::default()).unwrap();
        for distance in [0.2f64, 0.5, 1.0, 2.0] {
            let mut rng = Rng::new(&[6]);
            let mut score = |i: usize, k: u32| {
                // The sum of twelve: variance 1.
                let noise: f64 = (0..12).map(|_| f64::from(rng.below(1 << 20)) / f64::from(1 << 20)).sum();
                noise + if y.row(i).indices.contains(&k) { distance } else { 0.0 }
            };
            let mut sums = vec![[0f64; 3]; 30];
            let mut scores = Vec::new();
            for i in 0..y.rows() {
                for k in pairs.labels_of(i) {
                    let s = score(i, *k);
                    // Rankers need not agree on what they call nothing.
                    scores.push((s + 50.0 * (i % 3) as f64) as f32);
                    let to = &mut sums[*k as usize];
                    *to = [to[0] + 1.0, to[1] + s, to[2] + s * s];
                }
            }
            let spread = |[n, s, ss]: &[f64; 3]| (ss / n - (s / n).powi(2)).sqrt();
            let of_row = |i: usize| decoys.row(i).indices.iter().map(move |k| (i, *k));
            let false_scores: Vec<f32> = (0..y.rows())
                .flat_map(of_row)
                .map(|(i, k)| (score(i, k) + 50.0 * (i % 3) as f64) as f32)
                .collect();
            let of_sample: Vec<u32> = (0..y.rows() as u32).map(|i| i % 3).collect();
            // In the scores' own unit the weight is the distance, for the variance within is 1.
            let want = distance * sums.iter().map(spread).sum::<f64>() / 30.0;
            let compared = Compared {
                folds: 3,
                of_sample: &of_sample,
                scores: &scores,
                decoys: &decoys,
                false_scores: &false_scores,
            };
            let found = separation(&pairs, &rates, &compared, &Control::default()).unwrap().unwrap();
            assert!((found - want).abs() < 0.1 * want + 0.05, "{found} for {want}");
        }
    }

    #[test]
    fn without_decoys_nothing_is_known() {
        let groups = Groups::from_lists(4, [vec![0, 1], vec![2, 3]]).unwrap();
        let bags = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0; 4]).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
        let decoys = decoys(&pairs, &Control::default()).unwrap();
        let compared = Compared {
            folds: 1,
            of_sample: &[0; 4],
            scores: &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0],
            decoys: &decoys,
            false_scores: &[],
        };
        assert_eq!(separation(&pairs, &rates, &compared, &Control::default()).unwrap(), None);
    }
}
