//! The one place where the scores of a label's slots become the label's score.

use crate::kernels::select::LOWEST;
use crate::xlinear::Merge;

/// How keys of slots become the key of their label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merging {
    pub how: Merge,
    /// Whether keys are logarithms of scores, whichever of the two is shown; otherwise scores are keys.
    pub logs: bool,
    /// The key that no node passed over by the search exceeds.
    pub edge: f32,
}

impl Merging {
    /// What `how` makes of the scores of a label with so many slots: `best` is the largest key, and `others` are those of
    /// the rest that were reached. Slots that were never trained count only where a label has no other.
    ///
    /// A mean of what logarithms stand for is taken as `best + ln(Σ exp(key − best) / n)`, which does not underflow.
    pub fn key(self, best: f32, others: impl Iterator<Item = f32>, slots: usize) -> f32 {
        let Self { how, logs, edge } = self;
        if best <= LOWEST || how == Merge::Max {
            return best;
        }
        let others = others.filter(|key| *key > LOWEST);
        if how == Merge::All && logs {
            let root = |key: f32| (0.5 * (key - best)).exp();
            let (mut n, mut sum) = (1.0, 1.0);
            for key in others {
                n += 1.0;
                sum += root(key);
            }
            // What a leaf that was not reached can have scored, and no more than those that were.
            let missing = (slots as f32 - n).max(0.0);
            if missing > 0.0 {
                sum += missing * root(edge).min(sum / n);
            }
            return best + 2.0 * (sum / (n + missing)).ln();
        }
        let (mut n, mut sum) = (1.0, if logs { 1.0 } else { best });
        for key in others {
            n += 1.0;
            sum += if logs { (key - best).exp() } else { key };
        }
        let shared = if how == Merge::Sum { sum } else { sum / n };
        if logs { best + shared.ln() } else { shared }
    }

    /// How far a label's key can be from the largest of its slots', with so many slots.
    pub fn reach(self, slots: usize) -> f32 {
        let slots = (slots as f32).ln();
        match self.how {
            Merge::All => 2.0 * slots,
            Merge::Average | Merge::Sum => slots,
            Merge::Max => 0.0,
        }
    }
}

/// Scratch memory: (label, key) of every slot that was reached.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub reached: Vec<(u32, f32)>,
}

impl Slots {
    /// Calls `each` with every label and its key; `slots` tells how many a label has.
    pub fn merge(&mut self, merging: Merging, slots: impl Fn(u32) -> usize, mut each: impl FnMut(u32, f32)) {
        // By key too, so that sums do not depend on the order in which slots were reached.
        self.reached.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        for reached in self.reached.chunk_by(|a, b| a.0 == b.0) {
            let (label, best) = reached[0];
            each(label, merging.key(best, reached[1..].iter().map(|s| s.1), slots(label)));
        }
    }
}
