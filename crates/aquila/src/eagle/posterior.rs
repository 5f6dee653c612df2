//! Which candidates are true, given evidence for each and what groups say together.
//!
//! For pair (i, k) with evidence `s_ik` (any real number, larger for more likely) the probability is that of a factor
//! graph: `P ∝ Π exp(y_ik·(s_ik + b_k)) · Π_segments [Σ y ≥ 1] · Π_samples [Σ y ≥ 1]`: at least one sample of a group
//! that carries a label has it, and a sample of a group with labels has at least one. Messages of the two kinds of
//! "at least one" are passed in turn (loopy belief propagation); a factor tells its pair `−ln(1 − Π_others (1 − p))`.
//!
//! `b_k` is set so that the expected number of samples of each label is right: where bags count, it is the counts'
//! sum; where they do not, the rate `q_k` at which random groups of these sizes would carry `k` as often as they do,
//! `mean_j (1 − (1 − q_k)^{g_j}) = f_k`. In groups of like samples that rate is too small, by a tenth to a third on our
//! sets.
//!
//! The source is our own. Cost: some fifty exponentials a pair.

use super::candidates::Candidates;
use super::groups::Groups;
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Sweeps over both kinds of factors; rates are corrected in all but the first and the last.
const SWEEPS: usize = 14;
/// How far a correction goes beyond what the ratio of expected numbers says, and its most.
const GAIN: f32 = 1.5;
const STEP: f32 = 2.0;
/// Evidence beyond this is certain.
const CERTAIN: f32 = 30.0;

/// How many samples have each label, as far as bags tell.
#[derive(Debug)]
pub(super) struct Rates {
    expected: Vec<f64>,
}

impl Rates {
    pub fn new(groups: &Groups, bags: &Csr, pairs: &Candidates) -> Self {
        let mut sizes = BTreeMap::new();
        for j in (0..groups.len()).filter(|j| !groups.members(*j).is_empty()) {
            *sizes.entry(groups.members(j).len()).or_insert(0u64) += 1;
        }
        let filled = sizes.values().sum::<u64>().max(1) as f64;
        let (mut carried, mut counts) = (vec![0u64; bags.cols()], vec![0f64; bags.cols()]);
        for (j, row) in bags.iter_rows().enumerate().filter(|(j, _)| !groups.members(*j).is_empty()) {
            for (k, v) in row.iter().filter(|e| e.1 != 0.0) {
                carried[k as usize] += 1;
                counts[k as usize] += f64::from(v).min(groups.members(j).len() as f64);
            }
        }
        // Bags of ones say which labels, not how many.
        let counted = bags.values().iter().any(|v| *v > 1.0);
        let samples = groups.memberships_count() as f64;
        let expected = (0..bags.cols())
            .into_par_iter()
            .map(|k| match (carried[k], counted) {
                (0, _) => 0.0,
                (_, true) => counts[k],
                (n, false) => samples * rate(&sizes, filled, (n as f64).min(filled - 0.5) / filled),
            })
            .enumerate()
            .map(|(k, n)| n.min(pairs.of_label(k).len() as f64))
            .collect();
        Self { expected }
    }
}

/// The `q` at which random groups of these sizes carry a label with frequency `f`.
fn rate(sizes: &BTreeMap<usize, u64>, filled: f64, f: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let q: f64 = (low + high) / 2.0;
        let carry = |(size, n): (&usize, &u64)| *n as f64 * (1.0 - (1.0 - q).powf(*size as f64));
        if sizes.iter().map(carry).sum::<f64>() < f * filled { low = q } else { high = q }
    }
    low
}

fn sigmoid(v: f32) -> f32 {
    1.0 / (1.0 + (-v).exp())
}

/// `ln(1 − σ(v))`.
fn ln_not(v: f32) -> f32 {
    -(v.max(0.0) + (-v.abs()).exp().ln_1p())
}

/// What "at least one" tells a pair whose fellows are all false with probability `e^ln_none`.
fn needed(ln_none: f32) -> f32 {
    -(-ln_none.min(0.0).exp_m1()).max(1e-12).ln()
}

/// The probability of each pair.
pub(super) fn posterior(
    pairs: &Candidates,
    rates: &Rates,
    evidence: &[f32],
    control: &Control,
) -> Result<Vec<f32>> {
    let mut own = evidence.to_vec();
    let mut heard = vec![0f32; pairs.len()];
    let mut told = vec![0f32; pairs.members()];
    let mut rows = vec![0f32; pairs.len()];
    for sweep in 0..SWEEPS {
        control.check()?;
        let parts = pairs
            .by_label(&mut own)
            .into_par_iter()
            .zip(pairs.by_label(&mut heard))
            .zip(pairs.members_by_label(&mut told))
            .enumerate();
        parts.for_each_init(Vec::new, |none, (k, ((own, heard), told))| {
            if control.is_cancelled() {
                return; // what comes out is never looked at
            }
            let (places, expected) = (pairs.places(k), rates.expected[k] as f32);
            let shift = if sweep == 0 {
                let share = expected / own.len().max(1) as f32;
                (share.max(1e-9) / (1.0 - share).max(1e-9)).ln()
            } else if sweep + 1 < SWEEPS {
                let likely =
                    own.iter().zip(&*heard).zip(places).map(|((s, h), at)| s + h + rows[*at as usize]);
                let have: f64 = likely.map(|v| f64::from(sigmoid(v))).sum();
                (GAIN * (expected / have.max(1e-9) as f32).max(1e-9).ln()).clamp(-STEP, STEP)
            } else {
                0.0
            };
            own.iter_mut().for_each(|s| *s = (*s + shift).clamp(-CERTAIN, CERTAIN));
            for (begin, members) in pairs.segments(k) {
                let told = &mut told[begin..begin + members.len()];
                none.clear();
                none.extend(members.iter().zip(&*told).map(|(m, t)| {
                    let m = *m as usize;
                    ln_not(own[m] + rows[places[m] as usize] + heard[m] - t)
                }));
                let all: f32 = none.iter().sum();
                for ((m, told), none) in members.iter().zip(told).zip(&*none) {
                    let now = needed(all - none);
                    heard[*m as usize] += now - std::mem::replace(told, now);
                }
            }
        });
        pairs.by_row(&mut rows).into_par_iter().enumerate().for_each(|(i, span)| {
            let of_sample = pairs.of_sample(i);
            for (to, pair) in span.iter_mut().zip(of_sample) {
                *to = ln_not(own[*pair as usize] + heard[*pair as usize]);
            }
            let all: f32 = span.iter().sum();
            span.iter_mut().for_each(|v| *v = needed(all - *v));
        });
    }
    control.check()?;
    let parts = pairs.by_label(&mut own).into_par_iter().zip(pairs.by_label(&mut heard)).enumerate();
    parts.for_each(|(k, (out, heard))| {
        for ((v, h), at) in out.iter_mut().zip(heard).zip(pairs.places(k)) {
            *v = sigmoid(*v + *h + rows[*at as usize]);
        }
    });
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eagle::Merge;

    /// Random labels in groups of `size`, with evidence that is a little right.
    fn case(seed: u64, size: usize, merge: Merge) -> (Groups, Csr, Csr, Candidates, Rates, Vec<f32>) {
        let mut rng = crate::rng::Rng::new(&[seed]);
        let rows: Vec<Vec<u32>> = (0..400).map(|_| (0..5).filter(|_| rng.below(4) == 0).collect()).collect();
        let indptr = std::iter::once(0).chain(rows.iter().scan(0, |n, r| {
            *n += r.len();
            Some(*n)
        }));
        let indices = rows.concat();
        let ones = vec![1.0; indices.len()];
        let y = Csr::new(400, 5, indptr.collect(), indices, ones).unwrap();
        let groups = Groups::random(400, size, seed).unwrap();
        let bags = groups.aggregate(&y, merge, &Control::default()).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs);
        let mut evidence = vec![0f32; pairs.len()];
        for i in 0..400 {
            for (k, pair) in pairs.by_sample().row(i).indices.iter().zip(pairs.of_sample(i)) {
                let noise = rng.below(1000) as f32 / 500.0 - 1.0;
                evidence[*pair as usize] = noise + if y.row(i).indices.contains(k) { 1.0 } else { 0.0 };
            }
        }
        (groups, bags, y, pairs, rates, evidence)
    }

    #[test]
    fn expected_numbers_are_right_and_counts_are_exact() {
        for (seed, size) in [(1, 2), (2, 5), (3, 9)] {
            for merge in [Merge::Set, Merge::List] {
                let (_, _, y, pairs, rates, evidence) = case(seed, size, merge);
                let p = posterior(&pairs, &rates, &evidence, &Control::default()).unwrap();
                for k in 0..5 {
                    let truth = y.indices().iter().filter(|j| **j == k as u32).count() as f64;
                    let slack = if merge == Merge::List { 1e-9 } else { 0.35 * truth };
                    assert!((rates.expected[k] - truth).abs() <= slack, "{} for {truth}", rates.expected[k]);
                    let sum: f64 = p[pairs.of_label(k)].iter().map(|p| f64::from(*p)).sum();
                    assert!((sum / rates.expected[k] - 1.0).abs() < 0.1, "{sum} for {}", rates.expected[k]);
                }
            }
        }
    }

    #[test]
    fn a_sample_with_one_candidate_has_it() {
        let groups = Groups::from_lists(3, [vec![0, 1, 2]]).unwrap();
        let bags = Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs);
        assert_eq!(rates.expected, [2.0]);
        // Whatever counts and evidence say: a sample of a group with labels has at least one.
        let p = posterior(&pairs, &rates, &[0.0, 1.0, -1.0], &Control::default()).unwrap();
        assert!(p.iter().all(|p| *p > 0.99), "{p:?}");
    }

    #[test]
    fn hardly_a_segment_has_nobody() {
        for seed in 0..20 {
            let (groups, bags, _, pairs, rates, evidence) = case(seed, 4, Merge::Set);
            let p = posterior(&pairs, &rates, &evidence, &Control::default()).unwrap();
            assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
            for j in 0..groups.len() {
                for (k, _) in bags.row(j).iter() {
                    let of = |i: &u32| {
                        let at = pairs.by_sample().row(*i as usize).indices.binary_search(&k).unwrap();
                        f64::from(p[pairs.of_sample(*i as usize)[at] as usize])
                    };
                    let none: f64 = groups.members(j).iter().map(|i| 1.0 - of(i)).product();
                    // Marginals of "at least one" leave at most (1 − 1/n)^n for none.
                    assert!(none < 0.4, "group {j}, label {k}: nobody with {none}");
                }
            }
        }
    }

    #[test]
    fn rates_invert_the_chance_of_a_group() {
        let sizes = BTreeMap::from([(3, 2), (5, 1)]);
        for q in [0.001f64, 0.1, 0.5, 0.9] {
            let f = (2.0 * (1.0 - (1.0 - q).powi(3)) + (1.0 - (1.0 - q).powi(5))) / 3.0;
            assert!((rate(&sizes, 3.0, f) - q).abs() < 1e-9);
        }
    }
}
