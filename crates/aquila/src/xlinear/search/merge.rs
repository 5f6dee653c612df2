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
    /// What `how` makes of the scores of a label with so many slots: `best` is the largest key, `own` what its classifier
    /// has in it beside the leaf's, and `others` are the keys of the rest that were reached. Slots that were never trained
    /// count only where a label has no other.
    ///
    /// A mean of what logarithms stand for is taken as `best + ln(Σ exp(key − best) / n)`, which does not underflow.
    pub fn key(self, best: f32, own: f32, others: impl Iterator<Item = f32>, slots: usize) -> f32 {
        let Self { how, logs, edge } = self;
        if best <= LOWEST || how == Merge::Max || slots == 1 {
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
            // A leaf that was not reached has scored the edge at most, and its classifier is half believed to say what
            // the best one says; no more than those reached.
            let missing = (slots as f32 - n).max(0.0);
            if missing > 0.0 {
                sum += missing * root(edge + 0.5 * own).min(sum / n);
            }
            return best + 2.0 * (sum / (n + missing)).ln();
        }
        let (mut n, mut sum) = (1.0, if logs { 1.0 } else { best });
        for key in others {
            n += 1.0;
            sum += if logs { (key - best).exp() } else { key };
        }
        let shared = if how == Merge::Sum { sum } else { sum / n };
        // A sum of margins may overflow.
        if logs { best + shared.ln() } else { shared.clamp(LOWEST, f32::MAX) }
    }

    /// How far a label's key can be above the largest of its slots', with so many slots.
    pub fn rise(self, slots: usize) -> f32 {
        if self.how == Merge::Sum { (slots as f32).ln() } else { 0.0 }
    }

    /// How far a label's key can be below the largest of its slots', with so many slots.
    pub fn fall(self, slots: usize) -> f32 {
        match self.how {
            Merge::All => 2.0 * (slots as f32).ln(),
            Merge::Average => (slots as f32).ln(),
            Merge::Max | Merge::Sum => 0.0,
        }
    }
}

/// A slot that was reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub label: u32,
    pub key: f32,
    /// What its classifier has in the key; the rest is its leaf's.
    pub own: f32,
}

/// Scratch memory: every slot that was reached.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub reached: Vec<Slot>,
}

impl Slots {
    /// Calls `each` with every label and its key; `slots` tells how many a label has.
    pub fn merge(&mut self, merging: Merging, slots: impl Fn(u32) -> usize, mut each: impl FnMut(u32, f32)) {
        // By key too, so that sums do not depend on the order in which slots were reached.
        self.reached.sort_unstable_by(|a, b| {
            (a.label.cmp(&b.label)).then(b.key.total_cmp(&a.key)).then(b.own.total_cmp(&a.own))
        });
        for reached in self.reached.chunk_by(|a, b| a.label == b.label) {
            let Slot { label, key, own } = reached[0];
            each(label, merging.key(key, own, reached[1..].iter().map(|s| s.key), slots(label)));
        }
    }
}
