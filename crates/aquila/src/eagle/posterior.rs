//! Which candidates are true, given evidence for each and the constraints of the groups.
//!
//! For pair (i, k) with evidence `s_ik` (any real number, larger for more likely), the probability is that of a factor
//! graph: `P ∝ Π exp(y_ik·(s_ik + b_k)) · Π_segments [Σ y ≥ 1] · Π_samples [Σ y ≥ 1]`. At least one sample of a group
//! that carries a label has it, and a sample of a group with labels has at least one. Messages of the two kinds of "at
//! least one" factors are passed in turn (loopy belief propagation); a factor multiplies its pair's odds by
//! `1 / (1 − Π_others (1 − p))`.
//!
//! `b_k` is set so that the expected number of samples of each label is correct. If bags contain counts, it is the sum
//! of the counts. If not, it follows from the rate `q_k` at which random groups of these sizes would carry `k` as often
//! as they do, `mean_j (1 − (1 − q_k)^{g_j}) = f_k`. In groups of similar samples that rate is too small, by a tenth to
//! a third on our data sets. `b_k` takes one Newton step per sweep, with the messages held fixed.
//!
//! All values are kept as odds, so that messages are factors: a sweep costs four divisions per pair and no exponential.
//! A further posterior of the same pairs starts from the messages and the `b_k` of the previous one.
//!
//! The method is our own. Cost: two or four sweeps, each with one pass through the pairs by group and one by sample.

use super::candidates::{Candidates, filled};
use super::groups::Groups;
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use crate::kernels::Isa;
use crate::kernels::odds::{self, FAR};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Number of sweeps over both kinds of factors, with biases corrected in each: for a final posterior, and for one that
/// is followed by another, which starts where it ended. More of either does not improve the result.
const SWEEPS: usize = 4;
const FIRST_SWEEPS: usize = 2;
/// The minimum slope that is assumed, and the maximum step.
const SLOPE: f64 = 0.1;
const STEP: f64 = 2.0;
/// Evidence beyond this counts as certain.
const CERTAIN: f32 = 20.0;
/// Number of pairs whose odds are computed at a time.
const PART: usize = 1 << 14;

/// How many samples have each label, as far as the bags tell.
#[derive(Debug)]
pub(super) struct Rates {
    expected: Vec<f64>,
}

impl Rates {
    pub fn new(groups: &Groups, bags: &Csr, pairs: &Candidates<'_>, control: &Control) -> Result<Self> {
        let most = |k: usize| f64::from(pairs.counts()[k]);
        Ok(Self { expected: expected(groups, bags, most, control)? })
    }

    /// The expected number of samples with a label.
    pub fn expected(&self, k: usize) -> f64 {
        self.expected[k]
    }
}

/// How many samples are expected to have each label, at most `most` for each.
pub(super) fn expected(
    groups: &Groups,
    bags: &Csr,
    most: impl Fn(usize) -> f64 + Sync,
    control: &Control,
) -> Result<Vec<f64>> {
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
    // Bags with only ones tell which labels, but not how many.
    let counted = bags.values().iter().any(|v| *v > 1.0);
    let samples = groups.memberships_count() as f64;
    (0..bags.cols())
        .into_par_iter()
        .map(|k| {
            control.check()?;
            let n = match (carried[k], counted) {
                (0, _) => 0.0,
                (_, true) => counts[k],
                (n, false) => samples * rate(&sizes, filled, (n as f64).min(filled - 0.5) / filled),
            };
            Ok(n.min(most(k)))
        })
        .collect()
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

/// The factor graph with its messages, from which a further posterior starts.
#[derive(Debug)]
pub(super) struct Posterior<'a> {
    pairs: &'a Candidates<'a>,
    rates: &'a Rates,
    /// `e^b` of each label.
    bias: Vec<f32>,
    /// The message of a segment to each of its pairs: the factor of its odds, for each seat.
    told: Vec<f32>,
    /// The odds of pairs from their own evidence, and with all messages; the latter are finally replaced by
    /// probabilities.
    own: Vec<f32>,
    all: Vec<f32>,
}

impl<'a> Posterior<'a> {
    /// No messages have been sent yet.
    pub fn new(pairs: &'a Candidates<'a>, rates: &'a Rates) -> Self {
        let odds = |(expected, n): (&f64, &u32)| {
            let share = (expected / f64::from((*n).max(1))) as f32;
            share.max(1e-9) / (1.0 - share).max(1e-9)
        };
        Self {
            pairs,
            rates,
            bias: rates.expected.iter().zip(pairs.counts()).map(odds).collect(),
            told: filled(1.0, pairs.seats()),
            own: filled(0.0, pairs.len()),
            all: filled(0.0, pairs.len()),
        }
    }

    /// Computes the probability of each pair by belief propagation, starting from the biases and messages of the last
    /// call.
    pub fn update(&mut self, evidence: &[f32], control: &Control) -> Result<()> {
        self.sweep(evidence, SWEEPS, control)
    }

    /// The same with fewer sweeps, for evidence that is not complete yet.
    pub fn update_coarsely(&mut self, evidence: &[f32], control: &Control) -> Result<&[f32]> {
        self.sweep(evidence, FIRST_SWEEPS, control)?;
        Ok(&self.all)
    }

    /// The probability of each pair after the last call.
    pub fn likely(&self) -> &[f32] {
        &self.all
    }

    fn sweep(&mut self, evidence: &[f32], sweeps: usize, control: &Control) -> Result<()> {
        let isa = Isa::detect();
        let parts = self.own.par_chunks_mut(PART).zip(evidence.par_chunks(PART));
        parts.for_each(|(own, evidence)| odds::odds_of(isa, evidence, CERTAIN, own));
        for _ in 0..sweeps {
            let have = self.samples(false, control)?;
            for ((bias, expected), [have, squares]) in
                self.bias.iter_mut().zip(&self.rates.expected).zip(have)
            {
                // The effect of a bias on the logarithm of the expected number: Σp(1 − p)/Σp.
                let slope = (1.0 - squares / have.max(1e-9)).max(SLOPE);
                let step = (expected / have.max(1e-9)).max(1e-9).ln() / slope;
                *bias = (*bias * step.clamp(-STEP, STEP).exp() as f32).clamp(1.0 / FAR, FAR);
            }
            self.segments(control)?;
        }
        self.samples(true, control).map(drop)
    }

    /// Computes the messages of segments to their pairs from the odds of all.
    fn segments(&mut self, control: &Control) -> Result<()> {
        let (isa, Self { pairs, bias, told, all, .. }) = (Isa::detect(), self);
        let work = pairs.by_group(told).into_par_iter().enumerate();
        work.try_for_each_init(Vec::new, |memory, (j, told)| {
            control.check()?;
            let (members, bag) = (pairs.members(j), pairs.bag(j));
            if bag.is_empty() {
                return Ok(());
            }
            let n = bag.len();
            memory.clear();
            memory.resize(told.len() + 2 * n, 0f32);
            let (odds, rest) = memory.split_at_mut(told.len());
            let (some, shift) = rest.split_at_mut(n);
            shift.iter_mut().zip(bag).for_each(|(to, k)| *to = bias[*k as usize]);
            members
                .iter()
                .zip(odds.chunks_mut(n))
                .for_each(|(i, odds)| pairs.lift(*i as usize, j, all, odds));
            odds::tell(isa, shift, odds, told, some);
            Ok(())
        })
    }

    /// Computes the messages of samples to their pairs in the same way. `all` becomes the odds of each pair without its
    /// label's bias, or, if `last`, its probability. Returns the sums of each label's probabilities and of their
    /// squares.
    fn samples(&mut self, last: bool, control: &Control) -> Result<Vec<[f64; 2]>> {
        let (isa, Self { pairs, bias, told, own, all, .. }) = (Isa::detect(), self);
        let each = |[shift, likely]: &mut [Vec<f32>; 2], i, of_row: &mut [f32], sums: &mut [[f64; 2]]| {
            of_row.copy_from_slice(&own[pairs.span(i)]);
            for (j, seats) in pairs.seats_of(i) {
                pairs.lower(i, j, &told[seats], of_row, |all, told| *all = (*all * told).min(FAR * FAR));
            }
            let labels = pairs.labels_of(i);
            shift.clear();
            shift.extend(labels.iter().map(|k| bias[*k as usize]));
            likely.resize(of_row.len(), 0.0);
            odds::sample_messages(isa, shift, of_row, likely);
            for (k, p) in labels.iter().zip(&*likely) {
                let ([sum, squares], p) = (&mut sums[*k as usize], f64::from(*p));
                (*sum, *squares) = (*sum + p, *squares + p * p);
            }
            if last {
                of_row.copy_from_slice(likely);
            }
        };
        pairs.tally(all, control, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eagle::Merge;

    /// Random labels in groups of `size`, with either kind of bag.
    fn case(seed: u64, size: usize, merge: Merge) -> (Groups, Csr, Csr) {
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
        (groups, bags, y)
    }

    /// Weakly informative evidence.
    fn evidence(seed: u64, pairs: &Candidates<'_>, y: &Csr) -> Vec<f32> {
        let mut rng = crate::rng::Rng::new(&[seed, 1]);
        let of = |i: usize| pairs.labels_of(i).iter().map(move |k| y.row(i).indices.contains(k));
        let some = (0..400).flat_map(of).map(|has| {
            let noise = rng.below(1000) as f32 / 500.0 - 1.0;
            noise + if has { 1.0 } else { 0.0 }
        });
        some.collect()
    }

    /// Computed twice, as in refinement: the second call starts from where the first ended.
    fn posterior(pairs: &Candidates<'_>, rates: &Rates, evidence: &[f32]) -> Vec<f32> {
        let mut posterior = Posterior::new(pairs, rates);
        posterior.update_coarsely(evidence, &Control::default()).unwrap();
        posterior.update(evidence, &Control::default()).unwrap();
        posterior.likely().to_vec()
    }

    /// The values of all pairs of a label.
    fn of_label(pairs: &Candidates<'_>, p: &[f32], k: u32) -> Vec<f64> {
        let (_, labels) = pairs.lists();
        labels.iter().zip(p).filter(|(l, _)| **l == k).map(|(_, p)| f64::from(*p)).collect()
    }

    #[test]
    fn expected_numbers_are_right_and_counts_are_exact() {
        for (seed, size) in [(1, 2), (2, 5), (3, 9)] {
            for merge in [Merge::Set, Merge::List] {
                let (groups, bags, y) = case(seed, size, merge);
                let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
                let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
                let p = posterior(&pairs, &rates, &evidence(seed, &pairs, &y));
                for k in 0..5 {
                    let truth = y.indices().iter().filter(|j| **j == k as u32).count() as f64;
                    let slack = if merge == Merge::List { 1e-9 } else { 0.35 * truth };
                    assert!((rates.expected[k] - truth).abs() <= slack, "{} for {truth}", rates.expected[k]);
                    let sum: f64 = of_label(&pairs, &p, k as u32).iter().sum();
                    assert!((sum / rates.expected[k] - 1.0).abs() < 0.05, "{sum} for {}", rates.expected[k]);
                }
            }
        }
    }

    /// Two overlapping groups, so that a sample has more candidates than a group: messages are those of the formula,
    /// computed pair by pair.
    #[test]
    fn messages_are_those_of_the_formula() {
        let groups = Groups::from_lists(4, [vec![0, 1, 2], vec![1, 3], vec![2, 3, 0]]).unwrap();
        let bags = Csr::new(3, 4, vec![0, 3, 4, 6], vec![0, 1, 3, 1, 0, 2], vec![1.0; 6]).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
        let evidence: Vec<f32> = (0..pairs.len()).map(|at| (at as f32 * 1.7).sin() * 2.0).collect();
        let mut found = Posterior::new(&pairs, &rates);
        found.update(&evidence, &Control::default()).unwrap();
        let p = found.likely();

        let at = |i: usize, k: u32| pairs.span(i).start + pairs.labels_of(i).binary_search(&k).unwrap();
        let all: Vec<(usize, u32)> =
            (0..4).flat_map(|i| pairs.labels_of(i).iter().map(move |k| (i, *k))).collect();
        let segments: Vec<(usize, u32)> =
            (0..3).flat_map(|j| bags.row(j).indices.iter().map(move |k| (j, *k))).collect();
        let of = |j: usize, i: usize| groups.members(j).contains(&(i as u32));
        let chance = |odds: f64| odds / (1.0 + odds);
        let mut bias: Vec<f64> = Posterior::new(&pairs, &rates).bias.iter().map(|b| f64::from(*b)).collect();
        let mut told = vec![vec![1f64; pairs.len()]; segments.len()];
        let mut odds = vec![0f64; pairs.len()];
        for sweep in 0..=SWEEPS {
            for (i, k) in &all {
                let own = |k: u32| {
                    let told: f64 = (0..segments.len())
                        .filter(|s| segments[*s].1 == k && of(segments[*s].0, *i))
                        .map(|s| told[s][at(*i, k)])
                        .product();
                    f64::from(evidence[at(*i, k)]).exp() * told
                };
                let others = pairs.labels_of(*i).iter().filter(|l| *l != k);
                let none: f64 = others.map(|l| 1.0 - chance(own(*l) * bias[*l as usize])).product();
                odds[at(*i, *k)] = own(*k) / (1.0 - none).max(1e-12);
            }
            if sweep == SWEEPS {
                break;
            }
            for k in 0..4u32 {
                let of = |(i, k): &(usize, u32)| chance(odds[at(*i, *k)] * bias[*k as usize]);
                let found: Vec<f64> = all.iter().filter(|pair| pair.1 == k).map(of).collect();
                let have: f64 = found.iter().sum();
                let slope = found.iter().map(|p| p * (1.0 - p)).sum::<f64>() / have;
                let step = (rates.expected[k as usize] / have).ln() / slope.max(0.1);
                bias[k as usize] *= step.clamp(-2.0, 2.0).exp();
            }
            for (s, (j, k)) in segments.iter().enumerate() {
                let before = told[s].clone();
                let own = |i: usize| chance(odds[at(i, *k)] * bias[*k as usize] / before[at(i, *k)]);
                for i in groups.members(*j) {
                    let others = groups.members(*j).iter().filter(|o| *o != i);
                    let none: f64 = others.map(|o| 1.0 - own(*o as usize)).product();
                    told[s][at(*i as usize, *k)] = 1.0 / (1.0 - none);
                }
            }
        }
        for (i, k) in &all {
            let want = chance(odds[at(*i, *k)] * bias[*k as usize]);
            assert!((f64::from(p[at(*i, *k)]) - want).abs() < 1e-4, "{i} {k}: {} for {want}", p[at(*i, *k)]);
        }
    }

    /// A thousand samples that have at least one of six labels, where less than one sample is expected for each label.
    #[test]
    fn where_numbers_contradict_each_other_nothing_is_certain() {
        for groups in [1usize, 2, 3] {
            let lists = (0..groups as u32).map(|j| (j * 1000..(j + 1) * 1000).collect());
            let of = Groups::from_lists(groups * 1000, lists).unwrap();
            let indptr = (0..=groups).map(|j| 6 * j).collect();
            let bags =
                Csr::new(groups, 6, indptr, (0..6).collect::<Vec<_>>().repeat(groups), vec![1.0; 6 * groups]);
            let pairs = Candidates::new(&of, &bags.unwrap(), &Control::default()).unwrap();
            let rates = Rates::new(&of, pairs.bags(), &pairs, &Control::default()).unwrap();
            let p = posterior(&pairs, &rates, &vec![0.0; pairs.len()]);
            assert!(p.iter().all(|p| (p - 1.0 / 6.0).abs() < 0.02), "{} of {groups}", p[0]);
        }
    }

    #[test]
    fn a_sample_with_one_candidate_has_it() {
        let groups = Groups::from_lists(3, [vec![0, 1, 2]]).unwrap();
        let bags = Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
        assert_eq!(rates.expected, [2.0]);
        // Regardless of counts and evidence, a sample of a group with labels has at least one.
        let p = posterior(&pairs, &rates, &[0.0, 1.0, -1.0]);
        assert!(p.iter().all(|p| *p > 0.99), "{p:?}");
    }

    #[test]
    fn hardly_a_segment_has_nobody() {
        for seed in 0..20 {
            let (groups, bags, y) = case(seed, 4, Merge::Set);
            let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
            let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
            let p = posterior(&pairs, &rates, &evidence(seed, &pairs, &y));
            assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
            for j in 0..groups.len() {
                for (k, _) in bags.row(j).iter() {
                    let of = |i: &u32| {
                        let at = pairs.labels_of(*i as usize).binary_search(&k).unwrap();
                        f64::from(p[pairs.span(*i as usize).start + at])
                    };
                    let none: f64 = groups.members(j).iter().map(|i| 1.0 - of(i)).product();
                    // Marginals of "at least one" give at most (1 − 1/n)^n to none.
                    assert!(none < 0.4, "group {j}, label {k}: nobody with {none}");
                }
            }
        }
    }

    #[test]
    fn evidence_beyond_all_bounds_stays_a_probability() {
        let (groups, bags, _) = case(3, 9, Merge::Set);
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let rates = Rates::new(&groups, &bags, &pairs, &Control::default()).unwrap();
        for far in [1e3, 1e30] {
            let evidence: Vec<f32> =
                (0..pairs.len()).map(|at| if at % 3 == 0 { far } else { -far }).collect();
            let p = posterior(&pairs, &rates, &evidence);
            assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
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
