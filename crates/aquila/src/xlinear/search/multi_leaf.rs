//! Labels with several slots: the few whose merged score can be among the best, without merging all that was reached.
//!
//! Let `c` be the most slots of a label in the layer of leaves, and `θ` a key that at least `k·c` of the slots reached
//! there have. These are slots of at least `k` labels, which are merged first. A label's key is above that of its best
//! slot by no more than [`Merging::rise`], so one whose best slot is lower than the `k`-th of these labels by more cannot
//! be among the best, nor can it have the same score as the last of them, which takes a little more. What is left between is merged then; it is little. (By `θ` alone, which a label's key falls short of
//! by up to [`Merging::fall`], twice as many labels would have to be.) Each label is merged once, where its best slot is
//! met: from there a ring of columns leads to the rest. Slots under the root, all of them reached long before, take part
//! as if they were one more chunk.

use super::chosen_labels::Ring;
use super::merge::Merging;
use super::searcher::{Active, Searcher};
use crate::kernels::select::{self, ABSENT, LOWEST};
use crate::tree::NODE;
use crate::xlinear::{Merge, Model, PredictParams, ScoreForm};
use std::ops::RangeInclusive;

impl Model {
    /// The ring of slots, where the above holds: keys are logarithms (or the largest counts), and a label's slots are
    /// seen together.
    pub(super) fn several(&self, params: &PredictParams) -> Option<&Ring> {
        let logs = params.scores != ScoreForm::Margin;
        if self.one_slot() || !(logs || self.merge() == Merge::Max) {
            return None;
        }
        self.slots_of().ring.as_ref()
    }

    /// Keeps the keys of the slots under the root for when the other slots of their labels are reached.
    pub(super) fn keep_root(&self, s: &mut Searcher, ring: &Ring, active: &[Active]) {
        let stride = self.shape.layers[0].stride();
        s.root.resize(ring.root.next_multiple_of(16), ABSENT);
        for (a, keys) in active.iter().zip(s.sums.chunks_exact(stride)) {
            let (from, labels) = (a.column as usize, self.slot_labels(0));
            let labels = labels.iter().skip(from).take(a.width as usize);
            for ((kept, key), label) in s.root[from..].iter_mut().zip(keys).zip(labels) {
                *kept = if label == NODE { ABSENT } else { *key };
            }
        }
    }

    /// Merges the labels that can be among the best `k`; `threshold` is `θ`.
    pub(super) fn take_several(
        &self,
        s: &mut Searcher,
        ring: &Ring,
        active: &[Active],
        merging: Merging,
        form: ScoreForm,
        (threshold, k): (f32, usize),
    ) {
        // The root's chunk follows the others; what was kept of it for a search without this step is not needed.
        let end = active.len() * self.shape.layers[ring.layer].stride();
        if s.sums.len() < end + s.root.len() {
            s.sums.resize(end + s.root.len(), 0.0);
        }
        s.sums[end..end + s.root.len()].copy_from_slice(&s.root);
        s.merge.reached.clear();
        let most = self.slots_of().most;
        // Less than what rounding can take from a sum of keys.
        let slack = 1e-5 * (1.0 + threshold.abs());
        let sure = (threshold - slack).max(LOWEST);
        self.merge_from(s, ring, active, merging, sure..=f32::INFINITY);
        select::keep_tied(s.isa, &mut s.found, k, |key| form.tied(key));
        let worst = k.checked_sub(1).and_then(|k| s.found.get(k)).map_or(LOWEST, |p| select::unpack(*p).0);
        let (rise, fall) = (merging.rise(most), merging.fall(most));
        let least = (form.tied(worst.max(threshold - fall)) - rise - slack).max(LOWEST);
        if least < sure {
            self.merge_from(s, ring, active, merging, least..=sure.next_down());
        }
    }

    /// Merges the labels whose best slot has one of these keys.
    fn merge_from(
        &self,
        s: &mut Searcher,
        ring: &Ring,
        active: &[Active],
        merging: Merging,
        keys_of_best: RangeInclusive<f32>,
    ) {
        let stride = self.shape.layers[ring.layer].stride();
        let (labels, labels_of_root) = (self.slot_labels(ring.layer), self.slot_labels(0));
        let Searcher { isa, sums, root, reached, found, others, .. } = s;
        let end = active.len() * stride;
        let keys = &sums[..end + root.len()];
        reached.clear();
        select::reach(*isa, keys, *keys_of_best.start(), reached);
        let key_of = |column: u32| {
            if let Some(column) = ring.of_root(column) {
                return Some(root[column]).filter(|key| *key > ABSENT);
            }
            let i = active.partition_point(|a| a.column <= column).checked_sub(1)?;
            let within = column - active[i].column;
            let key = keys[i * stride + within.min(stride as u32 - 1) as usize];
            (within < active[i].width && key > ABSENT).then_some(key)
        };
        'slots: for &(key, place) in reached.iter().filter(|r| r.0 <= *keys_of_best.end()) {
            let place = place as usize;
            let (column, of_leaf, label) = match place.checked_sub(end) {
                Some(column) => (ring.under_root(column), 0.0, labels_of_root.get(column)),
                None => {
                    let chunk = active[place / stride];
                    let column = chunk.column + (place % stride) as u32;
                    (column, chunk.key, labels.get(column as usize))
                }
            };
            let Some(label) = label.filter(|l| (*l as usize) < self.labels) else { continue };
            others.clear();
            let mut slots = 1;
            for c in ring.others(column) {
                slots += 1;
                let Some(other) = key_of(c) else { continue };
                // Merged where the best slot is met, the first of equal ones.
                if other > key || (other == key && c < column) {
                    continue 'slots;
                }
                others.push(other);
            }
            let merged = merging.key(key, key - of_leaf, others.iter().copied(), slots);
            found.push(select::pack(merged, label));
        }
    }
}
