//! What to measure.

use super::Propensity;
use crate::error::{Result, fail};
use crate::params::Kind;

crate::choice! {
    /// What to do with test rows that have no label.
    pub enum Unlabelled {
        /// They count with value 0, as in the scripts of the Extreme Classification Repository.
        Keep = "keep",
        /// They are left out of every measure.
        Skip = "skip",
    }
}

crate::params! {
    /// How predictions are measured.
    pub struct MetricParams {
        /// Test rows without labels: keep counts them as 0, as in published results; skip leaves them out.
        pub unlabelled: Unlabelled = Unlabelled::Keep, "unlabelled", Kind::Choice(Unlabelled::TEXTS);
        /// For the F1 measures and Hamming accuracy, labels with a lower score are not predicted; the lowest number
        /// means no floor.
        pub floor: f32 = f32::MIN, "floor", Kind::Number { min: f32::MIN as f64, max: f32::MAX as f64 };
    }
}

/// What to measure: the ks, the weights of the propensity-scored forms, and the parameters.
///
/// ```
/// use aquila::metrics::{Metrics, evaluate, rank};
/// use aquila::Csr;
/// // Two rows, three labels. Row 0 finds its one label first, row 1 finds nothing.
/// let scores = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![0.2, 0.9, 0.5])?;
/// let truth = Csr::new(2, 3, vec![0, 1, 2], vec![2, 0], vec![1.0, 1.0])?;
/// let report = evaluate(&rank(&scores), &truth, &Metrics::at([1, 3]))?;
/// assert_eq!(report.precision[&1], 0.5);
/// assert_eq!(report.recall[&3], 0.5);
/// # Ok::<(), aquila::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// The ranks to measure at, each at least 1; order and repetition do not matter. Default 1, 3, 5.
    pub ks: Vec<u32>,
    /// Weights for `psp`, `psndcg` and `psndcgPerRow`; without weights, these are not in the report.
    pub propensity: Option<Propensity>,
    /// The other parameters.
    pub params: MetricParams,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::at([1, 3, 5])
    }
}

impl Metrics {
    /// Measures at these ranks, without propensities, with defaults for everything else.
    pub fn at(ks: impl Into<Vec<u32>>) -> Self {
        Self { ks: ks.into(), propensity: None, params: MetricParams::default() }
    }

    /// Checks the ks and returns them in ascending order, each once.
    pub(super) fn checked_ks(&self) -> Result<Vec<u32>> {
        let mut ks = self.ks.clone();
        ks.sort_unstable();
        ks.dedup();
        match ks.first() {
            None => fail!(InvalidArgument, "Expected at least one rank for k but received none"),
            Some(0) => {
                fail!(InvalidArgument, "Expected an integer from 1 to {} for k but received 0", u32::MAX)
            }
            Some(_) => Ok(ks),
        }
    }
}
