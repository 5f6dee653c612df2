//! What rankers are taught: which pairs are labels, what these weigh, and how cautiously rankers learn them.
//!
//! Rankers learn with costs scaled by a power of how certain their labels are on average, `γ = Σw²/Σw`, for uncertain
//! labels want more regularisation: by `γ²` in random groups.
//!
//! *Groups of like samples* need other labels than random groups. There a label's rank within a group is mostly
//! chance, and a pair that comes out unlikely may well be true: taken for negative it teaches what is wrong, while the
//! groups that lack the label give negatives enough. In random groups frequent labels stand in nearly every group, so
//! that negatives must come from within. So the least probability of a positive falls with [`unity`](super::likeness::unity),
//! to 0 where that passes [`ALIKE`]: then all candidates are positives, weighing as much as they are likely. With it
//! falls the power of `γ`, to 1: a label that is uncertain because its group's samples are alike is not noise, and caution
//! costs rare labels most. In groups that are more alike still, weights come nearer to 1, and are 1 where unity is, as if
//! every sample had every label of its group: the larger and the more alike groups are, the less is known of a single
//! sample, and the less labels may differ from the union's.

use crate::data::Csr;
use crate::xlinear::{Relevance, TrainParams};

/// Unity from which on all candidates are positives.
pub(super) const ALIKE: f64 = 0.16;

/// Unity from which on the least probability of a label is said to be lower: by a fifth.
const SOMEWHAT: f64 = 0.2 * ALIKE;

/// Which pairs become labels, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Those of about the probability that random groups ask for.
    Likely,
    /// Less likely ones too.
    More,
    /// All, as much as they are likely.
    All,
    /// All alike, as the union has them.
    Alike,
}

/// The odds against: falls to 0 at 1 and below it beyond.
fn odds(unity: f64) -> f64 {
    1.0 / unity - 1.0
}

/// How labels are made of probabilities, and learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lesson {
    /// The least probability of a label.
    pub threshold: f32,
    /// To which power of their probability labels weigh.
    power: f32,
    /// To which power of labels' certainty costs are scaled.
    caution: f32,
}

impl Lesson {
    /// For groups of this unity; in random groups labels have at least this probability.
    pub fn new(threshold: f32, unity: f64) -> Self {
        let random = (1.0 - unity / ALIKE).max(0.0) as f32;
        Self {
            threshold: threshold * random,
            power: (odds(unity.max(ALIKE)) / odds(ALIKE)).max(0.0) as f32,
            caution: 1.0 + random,
        }
    }

    /// Which pairs become labels.
    pub fn kept(&self) -> Kept {
        // Caution is 1 where the threshold is 0, and more as the threshold rises.
        let random = self.caution - 1.0;
        match (self.power > 0.0, random > 0.0) {
            (false, _) => Kept::Alike,
            (true, false) => Kept::All,
            _ if f64::from(random) <= 1.0 - SOMEWHAT / ALIKE => Kept::More,
            _ => Kept::Likely,
        }
    }

    /// What labels of these probabilities weigh.
    pub fn weighed(&self, y: &Csr) -> Csr {
        let values = y.values().iter().map(|p| p.powf(self.power)).collect();
        Csr::trusted(y.rows(), y.cols(), y.indptr().to_vec(), y.indices().to_vec(), values)
    }

    /// The parameters with which a ranker learns labels, whose values weigh them.
    pub fn ranker(&self, params: &TrainParams, y: &Csr) -> TrainParams {
        let mut params = params.clone();
        let scale = certainty(y).powf(self.caution).clamp(0.01, 1.0);
        let within = |cost: f32| (cost * scale).max(1e-6);
        (params.solver.cp, params.solver.cn) = (within(params.solver.cp), within(params.solver.cn));
        params.solver.relevance = Relevance::Leaves;
        params
    }
}

/// The weight of labels on average, each counting as much as it weighs.
pub(super) fn certainty(y: &Csr) -> f32 {
    let sum = |power| y.values().iter().map(|v| f64::from(*v).powi(power)).sum::<f64>();
    if y.nnz() > 0 { (sum(2) / sum(1)) as f32 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_alike_groups_are_the_nearer_labels_are_to_the_unions() {
        let y = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![0.5, 1.0]).unwrap();
        let learned = |unity| {
            let lesson = Lesson::new(0.4, unity);
            let weights = lesson.weighed(&y);
            (
                lesson.threshold,
                weights.values()[0],
                lesson.ranker(&TrainParams::default(), &weights).solver.cp,
            )
        };
        // 1.25 / 1.5 is the certainty of the labels as they are.
        let near = |a: (f32, f32, f32), b: (f32, f32, f32)| {
            assert!([a.0 - b.0, a.1 - b.1, a.2 - b.2].iter().all(|d| d.abs() < 1e-5), "{a:?}, not {b:?}");
        };
        let certain = 1.25f32 / 1.5;
        near(learned(0.0), (0.4, 0.5, certain.powi(2)));
        near(learned(ALIKE / 2.0), (0.2, 0.5, certain.powf(1.5)));
        near(learned(ALIKE), (0.0, 0.5, certain));
        // At twice ALIKE the odds are (1 / .32 - 1) / (1 / .16 - 1) of those at ALIKE.
        let weight = 0.5f32.powf(2.125 / 5.25);
        near(learned(2.0 * ALIKE), (0.0, weight, (weight * weight + 1.0) / (weight + 1.0)));
        near(learned(1.0), (0.0, 1.0, 1.0));
        near(learned(3.0), (0.0, 1.0, 1.0));
        let kept = [0.0, 0.19, 0.21, 0.99, 1.0, 6.0, 6.3].map(|u| Lesson::new(0.4, u * ALIKE).kept());
        let [likely, more, all] = [Kept::Likely, Kept::More, Kept::All];
        assert_eq!(kept, [likely, likely, more, more, all, all, Kept::Alike]);
    }
}
