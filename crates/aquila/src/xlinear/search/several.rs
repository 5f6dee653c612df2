//! Labels with several slots: the few whose merged score can be among the best, without merging all that was reached.
//!
//! Let `c` be the most slots of a label, and `θ` a key that at least `k·c` of the reached slots have. These are slots of
//! at least `k` labels, which are merged first. A label's key is above that of its best slot by no more than
//! [`Merging::rise`], so one whose best slot is lower than the `k`-th of these labels by more cannot be among the best.
//! What is left between is merged then; it is little. (By `θ` alone, which a label's key falls short of by up to
//! [`Merging::fall`], twice as many labels would have to be.) Each label is merged once, where its best slot is met: from
//! there a ring of columns leads to the rest.

use super::merge::Merging;
use super::searcher::{Active, Searcher};
use crate::kernels::select::{self, ABSENT, LOWEST};
use crate::tree::NODE;
use crate::xlinear::{Merge, Model, PredictParams, ScoreForm};
use std::ops::RangeInclusive;

impl Model {
    /// The most slots of a label, where the above holds: keys are logarithms (or the largest counts), and all slots
    /// stand in one layer, so that a label's slots are seen together.
    pub(super) fn several(&self, params: &PredictParams) -> Option<usize> {
        let logs = params.scores != ScoreForm::Margin;
        let holds = !self.one_slot() && (logs || self.merge() == Merge::Max);
        holds.then(|| self.slots_of()).filter(|slots| !slots.ring.is_empty()).map(|slots| slots.most)
    }

    /// Merges the labels that can be among the best `k`; `threshold` is `θ`.
    pub(super) fn take_several(
        &self,
        s: &mut Searcher,
        t: usize,
        active: &[Active],
        merging: Merging,
        (threshold, k): (f32, usize),
    ) {
        let most = self.slots_of().most;
        // Less than what rounding can take from a sum of keys.
        let slack = 1e-5 * (1.0 + threshold.abs());
        let sure = (threshold - slack).max(LOWEST);
        self.merge_from(s, t, active, merging, sure..=f32::INFINITY);
        select::keep_best(s.isa, &mut s.found, k);
        let worst = s.found.last().filter(|_| s.found.len() == k).map_or(LOWEST, |p| select::unpack(*p).0);
        let (rise, fall) = (merging.rise(most), merging.fall(most));
        let least = (worst.max(threshold - fall) - rise - slack).max(LOWEST);
        if least < sure {
            self.merge_from(s, t, active, merging, least..=sure.next_down());
        }
    }

    /// Merges the labels whose best slot has one of these keys.
    fn merge_from(
        &self,
        s: &mut Searcher,
        t: usize,
        active: &[Active],
        merging: Merging,
        keys_of_best: RangeInclusive<f32>,
    ) {
        let stride = self.shape.layers[t].stride();
        let (slots_of, labels) = (self.slots_of(), self.slot_labels(t));
        let Searcher { isa, sums, reached, found, others, .. } = s;
        let keys = &sums[..active.len() * stride];
        reached.clear();
        select::reach(*isa, keys, *keys_of_best.start(), reached);
        let key_of = |column: u32| {
            let i = active.partition_point(|a| a.column <= column).checked_sub(1)?;
            let within = column - active[i].column;
            let key = keys[i * stride + within.min(stride as u32 - 1) as usize];
            (within < active[i].width && key > ABSENT).then_some(key)
        };
        'slots: for &(key, place) in reached.iter().filter(|r| r.0 <= *keys_of_best.end()) {
            let chunk = active[place as usize / stride];
            let column = chunk.column + place % stride as u32;
            let Some(label) = labels.get(column as usize).filter(|l| *l != NODE) else { continue };
            if label as usize >= self.labels {
                continue;
            }
            others.clear();
            let mut slots = 1;
            for c in slots_of.others(column) {
                slots += 1;
                let Some(other) = key_of(c) else { continue };
                // Merged where the best slot is met, the first of equal ones.
                if other > key || (other == key && c < column) {
                    continue 'slots;
                }
                others.push(other);
            }
            let merged = merging.key(key, key - chunk.key, others.iter().copied(), slots);
            found.push(select::pack(merged, label));
        }
    }
}
