//! Scores of chosen labels, whatever the beam: their ancestors are scored and nothing else.

use super::beam::order;
use super::merge::Slot;
use super::searcher::Searcher;
use crate::data::FeatureRow;
use crate::error::{Result, fail};
use crate::kernels::postings::MOST_ACTIVE;
use crate::kernels::select::{self, LOWEST, Maxima};
use crate::tree::NODE;
use crate::xlinear::{Model, PredictParams};

/// Keys of a whole chunk are made in the time of one in so many of its columns.
const FEW: usize = 8;

/// For each label its slots: the table of labels turned around, made when first needed: by chosen labels, or where
/// labels have several slots.
#[derive(Debug)]
pub(in crate::xlinear) struct SlotsOf {
    begins: Vec<u32>,
    /// Layer and column.
    slots: Vec<(u32, u32)>,
    /// The most slots of a label.
    pub most: usize,
    /// Where labels have several slots, and all stand in one layer, or in one and under the root.
    pub ring: Option<Ring>,
}

/// The way from each slot of a label to the others.
#[derive(Debug)]
pub(in crate::xlinear) struct Ring {
    /// The layer of the slots that are not under the root.
    pub layer: usize,
    /// Its columns.
    columns: u32,
    /// Columns under the root, where labels have slots there too: they are numbered on from `columns`.
    pub root: usize,
    /// For each column the next one of its label, around to the first again.
    next: Vec<u32>,
    /// The most slots of a label in `layer`.
    pub most: usize,
}

impl SlotsOf {
    /// The labels with more than one leaf.
    pub fn several(&self) -> impl Iterator<Item = u32> + '_ {
        let labels = 0..self.begins.len() as u32 - 1;
        labels.filter(|label| self.leaves(*label).len() > 1)
    }

    /// How many labels have a slot under the root beside their leaves.
    pub fn beside_root(&self) -> usize {
        let labels = 0..self.begins.len() as u32 - 1;
        labels.filter(|label| self.leaves(*label).len() < self.of(*label).len()).count()
    }

    /// The layers and columns of a label's slots, from the root down; none of a label that a damaged table makes up.
    pub fn of(&self, label: u32) -> &[(u32, u32)] {
        let span = self.begins.get(label as usize..).and_then(|b| b.first_chunk::<2>());
        span.map_or(&[], |[from, to]| &self.slots[*from as usize..*to as usize])
    }

    /// Those of its leaves: without the one under the root, unless it has no other.
    pub fn leaves(&self, label: u32) -> &[(u32, u32)] {
        match self.of(label) {
            [(0, _), leaves @ ..] if !leaves.is_empty() => leaves,
            all => all,
        }
    }
}

impl Ring {
    /// The number of a column under the root.
    pub fn under_root(&self, column: usize) -> u32 {
        self.columns + column as u32
    }

    /// The column under the root that has this number.
    pub fn of_root(&self, column: u32) -> Option<usize> {
        column.checked_sub(self.columns).map(|c| c as usize)
    }

    /// The other columns of the label that has this one.
    pub fn others(&self, column: u32) -> impl Iterator<Item = u32> + '_ {
        let next = move |at: &u32| Some(self.next[*at as usize]).filter(|c| *c != column);
        std::iter::successors(next(&column), next)
    }
}

impl Model {
    pub(in crate::xlinear) fn slots_of(&self) -> &SlotsOf {
        self.slots_of.get_or_init(|| {
            let mut begins = vec![0u32; self.labels + 1];
            let each_slot = |each: &mut dyn FnMut(usize, (u32, u32))| {
                for t in 0..self.shape.layers.len() {
                    for (column, label) in self.slot_labels(t).iter().enumerate() {
                        if label != NODE && (label as usize) < self.labels {
                            each(label as usize, (t as u32, column as u32));
                        }
                    }
                }
            };
            each_slot(&mut |label, _| begins[label + 1] += 1);
            for l in 0..self.labels {
                begins[l + 1] += begins[l];
            }
            let mut slots = vec![(0, 0); begins[self.labels] as usize];
            let mut next = begins.clone();
            each_slot(&mut |label, slot| {
                slots[next[label] as usize] = slot;
                next[label] += 1;
            });
            let most = begins.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize;
            let mut slots_of = SlotsOf { begins, slots, most, ring: None };
            slots_of.ring = self.ring(&slots_of);
            slots_of
        })
    }

    /// The ring of all slots, where labels have several and all stand in one layer, or in one and under the root.
    fn ring(&self, slots_of: &SlotsOf) -> Option<Ring> {
        let layers = &self.shape.layers;
        let mut below = slots_of.slots.iter().map(|slot| slot.0).filter(|t| *t > 0);
        let layer = below.next()?;
        if slots_of.most < 2 || below.any(|t| t != layer) {
            return None;
        }
        let root = if slots_of.slots.iter().any(|slot| slot.0 == 0) { layers[0].columns } else { 0 };
        let layer = layer as usize;
        let columns = layers[layer].columns as u32;
        let next = (0..columns + root as u32).collect();
        let mut ring = Ring { layer, columns, root, next, most: 0 };
        for label in 0..self.labels as u32 {
            let slots = slots_of.of(label);
            let number = |&(t, column): &(u32, u32)| if t == 0 { columns + column } else { column };
            for (slot, after) in slots.iter().zip(slots.iter().cycle().skip(1)) {
                ring.next[number(slot) as usize] = number(after);
            }
            ring.most = ring.most.max(slots.iter().filter(|s| s.0 > 0).count());
        }
        Some(ring)
    }

    /// The column of the layer above whose children column `column` of layer `t > 0` is among.
    pub(in crate::xlinear) fn above(&self, t: usize, column: u32) -> Option<u32> {
        let parent = self.starts(t).at_most(column).checked_sub(1)?;
        match self.nodes(t - 1) {
            None => Some(parent as u32),
            // The last column with as many nodes before it is the node itself.
            Some(nodes) => nodes.at_most(parent as u32).checked_sub(1).map(|c| c as u32),
        }
    }

    /// Ranks these labels.
    pub(super) fn search_chosen(
        &self,
        s: &mut Searcher,
        row: FeatureRow<'_>,
        params: &PredictParams,
        labels: &[u32],
        out: &mut Vec<(u32, f32)>,
    ) -> Result<()> {
        self.reach_chosen(s, row, params, &[labels])?;
        self.merge_found(s, params);
        // Damaged tables lead to labels that nobody asked for, to some labels twice, and to others not at all.
        let id = |packed: &u64| select::unpack(*packed).1;
        s.found.sort_unstable_by(|a, b| id(a).cmp(&id(b)).then(b.cmp(a)));
        let mut found = s.found.iter().map(|packed| select::unpack(*packed)).peekable();
        out.clear();
        for &label in labels {
            while found.next_if(|(_, of)| *of < label).is_some() {}
            let key = found.next_if(|(_, of)| *of == label).map_or(LOWEST, |(key, _)| key);
            out.push((label, params.scores.of_key(key)));
        }
        order(out);
        out.retain(|(_, score)| *score >= params.floor);
        Ok(())
    }

    /// Scores the labels of each list, which ascend, beside them.
    pub(super) fn score_chosen<const N: usize>(
        &self,
        s: &mut Searcher,
        row: FeatureRow<'_>,
        params: &PredictParams,
        asked: [(&[u32], &mut [f32]); N],
    ) -> Result<()> {
        if asked.iter().all(|(labels, _)| labels.is_empty()) {
            return Ok(());
        }
        if self.one_slot() && self.shape.layers.len() == 1 && self.shape.layers[0].chunks <= MOST_ACTIVE {
            return self.score_flat(s, row, params, asked);
        }
        self.reach_chosen(s, row, params, &asked.each_ref().map(|(labels, _)| *labels))?;
        self.merge_found(s, params);
        s.found.sort_unstable_by_key(|packed| select::unpack(*packed).1);
        for (labels, out) in asked {
            let mut found = s.found.iter().map(|packed| select::unpack(*packed)).peekable();
            for (label, out) in labels.iter().zip(out) {
                while found.next_if(|(_, of)| of < label).is_some() {}
                if let Some((key, _)) = found.next_if(|(_, of)| of == label) {
                    *out = params.scores.of_key(key);
                }
            }
        }
        Ok(())
    }

    /// The same where all labels stand in one layer, and one pass makes all of their sums.
    fn score_flat<const N: usize>(
        &self,
        s: &mut Searcher,
        row: FeatureRow<'_>,
        params: &PredictParams,
        asked: [(&[u32], &mut [f32]); N],
    ) -> Result<()> {
        s.place(self, row)?;
        self.add_head(s);
        s.active.clear();
        s.active.extend(self.chunks_of(0, 0, 0.0));
        let (slots_of, stride) = (self.slots_of(), self.shape.layers[0].stride());
        let mut maxima = Maxima::new(1);
        self.each_pass(s, 0, |_, s, active| {
            for (a, sums) in active.iter().zip(s.sums.chunks_exact_mut(stride)) {
                select::keys(s.isa, params.scores.link(), a.key, sums, a.width as usize, &[], &mut maxima);
            }
        });
        for (labels, out) in asked {
            for (label, out) in labels.iter().zip(out) {
                self.check_label(*label)?;
                // Chunks are full except for the last, so that a column's sum stands in its own place.
                if let Some((_, column)) = slots_of.of(*label).first() {
                    let sum = s.sums.get(*column as usize).copied().unwrap_or(LOWEST);
                    *out = params.scores.of_key(sum);
                }
            }
        }
        Ok(())
    }

    fn check_label(&self, label: u32) -> Result<()> {
        if label as usize >= self.labels {
            fail!(IndexOutOfRange, "label {label} is not below the number of labels, {}", self.labels);
        }
        Ok(())
    }

    /// Scores the ancestors of these labels, and finds what is at their slots.
    fn reach_chosen(
        &self,
        s: &mut Searcher,
        row: FeatureRow<'_>,
        params: &PredictParams,
        labels: &[&[u32]],
    ) -> Result<()> {
        s.place(self, row)?;
        s.found.clear();
        s.merge.reached.clear();
        s.edge = LOWEST;
        let slots_of = self.slots_of();
        let mut needed = std::mem::take(&mut s.needed);
        needed.resize_with(self.shape.layers.len(), Vec::new);
        needed.iter_mut().for_each(Vec::clear);
        for &label in labels.iter().copied().flatten() {
            self.check_label(label)?;
            for &(layer, column) in slots_of.of(label) {
                let (mut t, mut column) = (layer as usize, column);
                needed[t].push(column);
                while t > 0 {
                    let Some(above) = self.above(t, column) else { break };
                    (t, column) = (t - 1, above);
                    needed[t].push(column);
                }
            }
        }
        let mut maxima = Maxima::new(1);
        s.beam.clear();
        s.beam.push((0, 0.0));
        self.add_head(s);
        for (t, needed) in needed.iter_mut().enumerate() {
            needed.sort_unstable();
            needed.dedup();
            // The chunks that hold a needed column.
            s.active.clear();
            let mut rest = &needed[..];
            for &(parent, key) in &s.beam {
                for a in self.chunks_of(t, parent, key) {
                    let skip = rest.partition_point(|c| *c < a.column);
                    let take = rest.partition_point(|c| *c < a.column + a.width);
                    if take > skip {
                        s.active.push(a);
                    }
                    rest = &rest[take.max(skip)..];
                }
            }
            if s.active.is_empty() {
                break;
            }
            s.beam.clear();
            let mut rest = &needed[..];
            self.each_pass(s, t, |model, s, active| {
                let stride = model.shape.layers[t].stride();
                let (labels, nodes) = (model.slot_labels(t), model.nodes(t));
                for (i, a) in active.iter().enumerate() {
                    rest = &rest[rest.partition_point(|c| *c < a.column)..];
                    let (here, later) = rest.split_at(rest.partition_point(|c| *c < a.column + a.width));
                    rest = later;
                    // Keys are made of all columns at once, or of each that is needed where they are few.
                    let (link, width) = (params.scores.link(), a.width as usize);
                    let sums = &mut s.sums[i * stride..(i + 1) * stride];
                    let whole = here.len() * FEW > width;
                    if whole {
                        select::keys(s.isa, link, a.key, sums, width, &[], &mut maxima);
                    }
                    for &column in here {
                        let sum = sums[(column - a.column) as usize];
                        let key = if whole { sum } else { select::key(link, a.key, sum) };
                        match labels.get(column as usize) {
                            Some(label) if label != NODE => {
                                if model.one_slot() {
                                    s.found.push(select::pack(key, label));
                                } else {
                                    s.merge.reached.push(Slot { label, key, own: key - a.key });
                                }
                            }
                            _ => {
                                let node = nodes.map_or(Some(column), |n| n.get(column as usize));
                                s.beam.extend(node.map(|n| (n, key)));
                            }
                        }
                    }
                }
            });
            s.beam.sort_unstable_by_key(|b| b.0);
        }
        s.needed = needed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::control::Control;
    use crate::data::Csr;
    use crate::rng::Rng;
    use crate::xlinear::{PredictParams, Scope, ScoreForm, TrainInputs, TrainParams, train};

    /// So many rows of `each` columns of `cols`.
    fn random(rng: &mut Rng, rows: usize, cols: usize, each: usize) -> Csr {
        let mut indices = Vec::new();
        for _ in 0..rows {
            let mut row: Vec<u32> = (0..cols as u32).collect();
            rng.shuffle(&mut row);
            row.truncate(each);
            row.sort_unstable();
            indices.extend(row);
        }
        let values = indices.iter().map(|_| 0.1 + rng.below(100) as f32 / 100.0).collect();
        Csr::new(rows, cols, (0..=rows).map(|i| i * each).collect(), indices, values).unwrap()
    }

    #[test]
    fn scores_in_place_are_those_of_ranked_labels() {
        let control = Control::default();
        let mut rng = Rng::new(&[4]);
        let (x, y, asked) =
            (random(&mut rng, 300, 30, 5), random(&mut rng, 300, 200, 2), random(&mut rng, 300, 200, 17));
        let fewer = random(&mut rng, 300, 200, 3);
        for (leaf, copies) in [(200, 1), (7, 1), (7, 2)] {
            let mut params = TrainParams::default();
            (params.tree.max_leaf, params.overlap.copies) = (leaf, copies);
            params.overlap.leaf_cap = 4.0;
            let (model, _) = train(&x.clone().into(), &y, &params, TrainInputs::default(), &control).unwrap();
            for form in [ScoreForm::LogSigmoid, ScoreForm::L3Hinge, ScoreForm::Margin] {
                let search = PredictParams { scores: form, ..PredictParams::default() };
                let rows: Vec<u32> = (0..300).filter(|i| i % 3 != 1).collect();
                let (mut found, mut again) = (vec![7.0; asked.nnz()], vec![7.0; fewer.nnz()]);
                let lists = |of: &Csr| (of.indptr().to_vec(), of.indices().to_vec());
                let (many, few) = (lists(&asked), lists(&fewer));
                let places = [((&many.0[..], &many.1[..]), &mut found[..]), ((&few.0, &few.1), &mut again)];
                model.score(&x, &rows, places, form, &control).unwrap();
                for (asked, found) in [(&asked, &found), (&fewer, &again)] {
                    let scope = Scope::Chosen(asked.clone());
                    let ranked = model.predict(&x.clone().into(), &search, &scope, &control).unwrap();
                    for i in 0..300 {
                        let span = asked.indptr()[i]..asked.indptr()[i + 1];
                        if i % 3 == 1 {
                            assert!(found[span].iter().all(|s| *s == 7.0));
                            continue;
                        }
                        let (from, to) = (ranked.indptr[i], ranked.indptr[i + 1]);
                        assert_eq!(to - from, span.len());
                        for (label, score) in ranked.labels[from..to].iter().zip(&ranked.scores[from..to]) {
                            let place = asked.row(i).indices.binary_search(label).unwrap();
                            assert_eq!(found[span.start + place], *score, "row {i}, label {label}, {form:?}");
                        }
                    }
                }
            }
        }
    }
}
