//! Labels with several slots: the few whose merged score can be among the best, without merging all that was reached.
//!
//! Let `c` be the most slots of a label, and `θ` a key that at least `k·c` of the reached slots have. These are slots of
//! at least `k` labels. The key of a label is within `r` of that of its best slot, above it or below as slots are
//! merged ([`Merging::reach`]), never both. So a label whose best slot is below `θ − r` cannot be among the best `k`.
//! Of the others each is merged once, where its best slot is met: from there a ring of columns leads to the rest.

use super::merge::Merging;
use super::searcher::{Active, Searcher};
use crate::kernels::select::{self, ABSENT, LOWEST};
use crate::tree::NODE;
use crate::xlinear::{Merge, Model, PredictParams, ScoreForm};

impl Model {
    /// The most slots of a label, where the above holds: keys are logarithms (or the largest counts), and all slots
    /// stand in one layer, so that a label's slots are seen together.
    pub(super) fn several(&self, params: &PredictParams) -> Option<usize> {
        let logs = params.scores != ScoreForm::Margin;
        let holds = !self.one_slot() && (logs || self.merge() == Merge::Max);
        holds.then(|| self.slots_of()).filter(|slots| !slots.ring.is_empty()).map(|slots| slots.most)
    }

    /// Merges the labels that can be among the best; `threshold` is `θ`.
    pub(super) fn take_several(
        &self,
        s: &mut Searcher,
        t: usize,
        active: &[Active],
        merging: Merging,
        threshold: f32,
    ) {
        let stride = self.shape.layers[t].stride();
        let slots_of = self.slots_of();
        // Less than what rounding can take from a sum of keys.
        let slack = 1e-5 * (1.0 + threshold.abs());
        let Searcher { isa, sums, reached, found, .. } = s;
        let keys = &sums[..active.len() * stride];
        reached.clear();
        let least = (threshold - merging.reach(slots_of.most) - slack).max(LOWEST);
        select::reach(*isa, keys, least, reached);
        let labels = self.slot_labels(t);
        let key_of = |column: u32| {
            let i = active.partition_point(|a| a.column <= column).checked_sub(1)?;
            let within = column - active[i].column;
            let key = keys[i * stride + within.min(stride as u32 - 1) as usize];
            (within < active[i].width && key > ABSENT).then_some(key)
        };
        for &(key, place) in reached.iter() {
            let chunk = active[place as usize / stride];
            let column = chunk.column + place % stride as u32;
            let Some(label) = labels.get(column as usize).filter(|l| *l != NODE) else { continue };
            if label as usize >= self.labels {
                continue;
            }
            let others = || slots_of.others(column).filter_map(|c| Some((key_of(c)?, c)));
            // Merged where the best slot is met, the first of equal ones.
            if others().any(|(other, c)| other > key || (other == key && c < column)) {
                continue;
            }
            let (own, slots) = (key - chunk.key, 1 + slots_of.others(column).count());
            let merged = merging.key(key, own, others().map(|o| o.0), slots);
            found.push(select::pack(merged, label));
        }
    }
}
