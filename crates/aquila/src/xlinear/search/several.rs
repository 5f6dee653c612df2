//! Labels with several slots: the few whose merged score can be among the best, without merging all that was reached.
//!
//! Let `c` be the most slots of a label, and `θ` a key that at least `k·c` of the reached slots have. These are slots of
//! at least `k` labels, so that the k-th best merged score is at least that of a label whose best slot has `θ`: `θ − ln c`
//! where scores are divided by slots, `θ` where they are summed or the largest counts. A merged score is at most that of the
//! label's best slot, or `ln c` above it where slots are summed. Either way a label whose best slot is below `θ − ln c`
//! cannot be among the best `k`; of the others all slots that were reached are looked up and merged.

use super::searcher::{Active, Searcher};
use crate::kernels::select::{self, ABSENT};
use crate::tree::NODE;
use crate::xlinear::{Merge, Model, PredictParams, ScoreForm};

impl Model {
    /// The most slots of a label, where the above holds: keys are logarithms (or the largest counts), and all slots
    /// stand in one layer, so that a label's slots are seen together.
    pub(super) fn several(&self, params: &PredictParams) -> Option<usize> {
        let logs = params.scores != ScoreForm::Margin;
        let layers = self.shape.layers.iter().filter(|l| l.nodes < l.columns).count();
        let holds = !self.one_slot() && layers == 1 && (logs || self.merge() == Merge::Max);
        holds.then(|| self.slots_of().most)
    }

    /// Collects all reached slots of the labels that can be among the best; `threshold` is `θ`.
    pub(super) fn take_several(
        &self,
        s: &mut Searcher,
        t: usize,
        active: &[Active],
        most: usize,
        threshold: f32,
    ) {
        let stride = self.shape.layers[t].stride();
        // Less than what rounding can take from a sum of keys.
        let slack = 1e-5 * (1.0 + threshold.abs());
        s.reached.clear();
        let keys = &s.sums[..active.len() * stride];
        select::reach(s.isa, keys, threshold - (most as f32).ln() - slack, &mut s.reached);
        let labels = self.slot_labels(t);
        s.labels.clear();
        for &(_, place) in &s.reached {
            let a = &active[place as usize / stride];
            let label = labels.get((a.column + place % stride as u32) as usize);
            s.labels.extend(label.filter(|l| *l != NODE && (*l as usize) < self.labels));
        }
        s.labels.sort_unstable();
        s.labels.dedup();
        let slots_of = self.slots_of();
        for &label in &s.labels {
            for &(_, column) in slots_of.of(label) {
                let Some(i) = active.partition_point(|a| a.column <= column).checked_sub(1) else { continue };
                let within = column - active[i].column;
                let key = s.sums[i * stride + within.min(stride as u32 - 1) as usize];
                if within < active[i].width && key > ABSENT {
                    s.merge.reached.push((label, key));
                }
            }
        }
    }
}
