//! Beam search: one row's way down the layers of the tree.

use super::merge::{Merging, Slot};
use super::searcher::{Active, Searcher};
use super::{Allowed, Scope};
use crate::data::FeatureRow;
use crate::error::{Result, fail};
use crate::kernels::panels::add_columns;
use crate::kernels::postings::{self, CHUNK, Layer, MOST_ACTIVE};
use crate::kernels::select::{self, ABSENT, LOWEST, Link, Maxima};
use crate::tree::NODE;
use crate::xlinear::{Model, PredictParams, ScoreForm};

impl ScoreForm {
    /// How margins become keys under this form.
    pub(super) fn link(self) -> Link {
        match self {
            Self::L1Hinge | Self::LogL1Hinge => Link::Hinge(1),
            Self::L2Hinge | Self::LogL2Hinge => Link::Hinge(2),
            Self::L3Hinge | Self::LogL3Hinge => Link::Hinge(3),
            Self::L4Hinge | Self::LogL4Hinge => Link::Hinge(4),
            Self::Sigmoid | Self::LogSigmoid => Link::LogSigmoid,
            Self::Margin => Link::Margin,
        }
    }

    /// The score of a key.
    pub(super) fn of_key(self, key: f32) -> f32 {
        match self {
            Self::L1Hinge | Self::L2Hinge | Self::L3Hinge | Self::L4Hinge | Self::Sigmoid => key.exp(),
            _ => key,
        }
    }

    /// A key that no key of the same score as this one's is below.
    pub(super) fn tied(self, key: f32) -> f32 {
        match self {
            // A step of an f32 is 1.2·10⁻⁷ of it at most; twice that, and twice what libraries err by.
            Self::L1Hinge | Self::L2Hinge | Self::L3Hinge | Self::L4Hinge | Self::Sigmoid if key > -87.0 => {
                key - 5e-7
            }
            // Steps of the smallest numbers are coarse, up to the last of them: between 1.5 times it and half of it.
            Self::L1Hinge | Self::L2Hinge | Self::L3Hinge | Self::L4Hinge | Self::Sigmoid => {
                if self.of_key(key) > 0.0 { key - 1.5 } else { LOWEST }
            }
            _ => key,
        }
    }
}

/// Puts labels with their scores in order: the best first, labels of equal scores as they ascend.
pub(super) fn order(ranked: &mut [(u32, f32)]) {
    if !ranked.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0)) {
        ranked.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
}

impl Model {
    /// The scratch memory of one thread's queries.
    pub fn searcher(&self) -> Searcher {
        Searcher::default()
    }

    /// Ranks labels of one row into `out`; no allocation once `searcher` and `out` are warm.
    ///
    /// `out` has fewer than `k` labels where the beam reaches fewer, or fewer are allowed or above the floor.
    pub fn search<'a>(
        &self,
        searcher: &mut Searcher,
        row: impl Into<FeatureRow<'a>>,
        params: &PredictParams,
        scope: &Scope,
        out: &mut Vec<(u32, f32)>,
    ) -> Result<()> {
        let row = row.into();
        match scope {
            Scope::All => self.search_beam(searcher, row, params, None, out),
            Scope::Allowed(allowed) => self.search_beam(searcher, row, params, Some(allowed), out),
            Scope::Chosen(labels) => {
                if labels.rows() != 1 || labels.cols() != self.labels {
                    fail!(
                        ShapeMismatch,
                        "one row needs a 1 x {} matrix of chosen labels but received {} x {}",
                        self.labels,
                        labels.rows(),
                        labels.cols()
                    );
                }
                self.search_chosen(searcher, row, params, labels.row(0).indices, out)
            }
        }
    }

    pub(super) fn search_beam(
        &self,
        s: &mut Searcher,
        row: FeatureRow<'_>,
        params: &PredictParams,
        allowed: Option<&Allowed>,
        out: &mut Vec<(u32, f32)>,
    ) -> Result<()> {
        s.place(self, row)?;
        s.found.clear();
        s.merge.reached.clear();
        s.beam.clear();
        s.beam.push((0, 0.0));
        s.edge = LOWEST;
        let (beam, k) = (params.beam as usize, params.k as usize);
        self.add_head(s);
        let ring = self.several(params);
        s.root.clear();
        for t in 0..self.shape.layers.len() {
            self.expand(s, t, allowed);
            if s.active.is_empty() {
                break;
            }
            s.nodes.clear();
            // Merging needs all slots of the layer at once.
            let several = ring.filter(|ring| ring.layer == t && s.active.len() <= MOST_ACTIVE);
            self.each_pass(s, t, |model, s, active| {
                let shape = &model.shape.layers[t];
                let slots = shape.nodes < shape.columns;
                // A threshold is for one kind of column.
                let best = match (shape.mixed(), slots) {
                    (true, _) => usize::MAX,
                    (false, true) if model.one_slot() => k,
                    (false, true) => several.map_or(usize::MAX, |ring| k.saturating_mul(ring.most)),
                    (false, false) => beam,
                };
                let mut maxima = Maxima::new(best);
                let stride = shape.stride();
                for (a, sums) in active.iter().zip(s.sums.chunks_exact_mut(stride)) {
                    let mut words = [0; 8];
                    let of_chunk = allowed.map_or(&[][..], |allowed| {
                        allowed.words(t, a.column as usize, a.width as usize, &mut words);
                        &words
                    });
                    let width = a.width as usize;
                    select::keys(s.isa, params.scores.link(), a.key, sums, width, of_chunk, &mut maxima);
                }
                let threshold = maxima.threshold(s.isa, best);
                let reached = if slots { params.scores.tied(threshold) } else { threshold };
                if let Some(ring) = several {
                    let merging = model.merging(params, s.edge);
                    return model.take_several(s, ring, active, merging, params.scores, (threshold, k));
                }
                if let Some(ring) = ring.filter(|ring| t == 0 && ring.root > 0) {
                    model.keep_root(s, ring, active);
                }
                s.reached.clear();
                let keys = &s.sums[..active.len() * stride];
                select::reach(s.isa, keys, reached, &mut s.reached);
                model.take(s, t, active);
            });
            select::keep_best(s.isa, &mut s.nodes, beam);
            if self.one_slot() {
                select::keep_tied(s.isa, &mut s.found, k, |key| params.scores.tied(key));
            }
            // The chosen few again, ascending by node.
            for packed in &mut s.nodes {
                *packed = packed.rotate_left(32);
            }
            select::keep_best(s.isa, &mut s.nodes, beam);
            let full = s.nodes.len() == beam;
            s.beam.clear();
            s.beam.extend(s.nodes.iter().map(|p| {
                let (key, node) = select::unpack(p.rotate_left(32));
                (node, key)
            }));
            if full && !self.one_slot() {
                s.edge = s.beam.iter().fold(f32::INFINITY, |least, b| least.min(b.1));
            }
        }
        self.finish(s, params, k, out);
        Ok(())
    }

    /// Sorts what was reached into nodes and slots.
    fn take(&self, s: &mut Searcher, t: usize, active: &[Active]) {
        let shape = &self.shape.layers[t];
        let stride = shape.stride() as u32;
        let (labels, nodes) = (self.slot_labels(t), self.nodes(t));
        for &(key, place) in &s.reached {
            let a = &active[(place / stride) as usize];
            let column = a.column + place % stride;
            match labels.get(column as usize) {
                Some(label) if label != NODE => {
                    if (label as usize) < self.labels {
                        if self.one_slot() {
                            s.found.push(select::pack(key, label));
                        } else {
                            s.merge.reached.push(Slot { label, key, own: key - a.key });
                        }
                    }
                }
                _ => {
                    let node = nodes.map_or(Some(column), |n| n.get(column as usize));
                    s.nodes.extend(node.map(|n| select::pack(key, n)));
                }
            }
        }
    }

    /// Merges slots where labels have several, and writes the best `k` of what was found.
    pub(super) fn finish(
        &self,
        s: &mut Searcher,
        params: &PredictParams,
        k: usize,
        out: &mut Vec<(u32, f32)>,
    ) {
        self.merge_found(s, params);
        select::keep_tied(s.isa, &mut s.found, k, |key| params.scores.tied(key));
        out.clear();
        out.extend(s.found.iter().map(|packed| {
            let (key, label) = select::unpack(*packed);
            (label, params.scores.of_key(key))
        }));
        order(out);
        out.truncate(k);
        out.truncate(out.partition_point(|(_, score)| *score >= params.floor));
    }

    /// What was found at slots becomes what was found of labels, where labels have several.
    pub(super) fn merge_found(&self, s: &mut Searcher, params: &PredictParams) {
        if !self.one_slot() {
            let (Searcher { merge, found, edge, .. }, slots_of) = (s, self.slots_of());
            let slots = |label| slots_of.of(label).len();
            let take = |label, key| found.push(select::pack(key, label));
            merge.merge(self.merging(params, *edge), slots, take);
        }
    }

    /// How slots are merged in a search that passed over nodes of up to `edge`.
    fn merging(&self, params: &PredictParams, edge: f32) -> Merging {
        Merging { how: self.merge(), logs: params.scores != ScoreForm::Margin, edge }
    }

    /// Sums the head's columns.
    pub(super) fn add_head(&self, s: &mut Searcher) {
        for (t, layer) in self.shape.layers.iter().enumerate() {
            let Some(head) = layer.head else { break };
            for (sum, bias) in s.head[head..].iter_mut().zip(self.bias(t)) {
                *sum = f32::from_le_bytes(*bias);
            }
        }
        if self.shape.head_columns > 0 {
            let Searcher { isa, head, cursors, scratch, .. } = s;
            postings::add_head(
                *isa,
                self.area(),
                self.codes,
                self.shape.head_columns / 16,
                cursors,
                scratch,
                head,
            );
        }
    }

    /// The chunks of the beam's nodes.
    fn expand(&self, s: &mut Searcher, t: usize, allowed: Option<&Allowed>) {
        s.active.clear();
        let shape = &self.shape.layers[t];
        for &(parent, key) in &s.beam {
            for active in self.chunks_of(t, parent, key) {
                // The tables are not believed: with sound ones there are never more.
                if s.active.len() >= shape.chunks {
                    return;
                }
                let mut words = [0; 8];
                if allowed.is_none_or(|allowed| {
                    allowed.words(t, active.column as usize, active.width as usize, &mut words)
                }) {
                    s.active.push(active);
                }
            }
        }
    }

    /// The chunks of one parent; none where the tables make no sense.
    pub(super) fn chunks_of(&self, t: usize, parent: u32, key: f32) -> impl Iterator<Item = Active> + use<> {
        let shape = &self.shape.layers[t];
        let starts = self.starts(t);
        let p = parent as usize;
        let span = starts.get(p).zip(starts.get(p + 1));
        let (from, to) = span.unwrap_or((0, 0));
        let to = to.min(shape.columns as u32);
        let first = match self.chunks(t) {
            Some(chunks) => chunks.get(p).unwrap_or(u32::MAX),
            None => parent,
        };
        let (stride, chunks) = (shape.stride() as u32, shape.chunks as u32);
        (from..to).step_by(stride as usize).zip(first..chunks).map(move |(column, chunk)| Active {
            chunk,
            column,
            width: (to - column).min(stride),
            key,
        })
    }

    /// Fills the sums of the active chunks and calls `each`; in several passes where there are very many.
    pub(super) fn each_pass(
        &self,
        s: &mut Searcher,
        t: usize,
        mut each: impl FnMut(&Self, &mut Searcher, &[Active]),
    ) {
        let shape = &self.shape.layers[t];
        let stride = shape.stride();
        let active = std::mem::take(&mut s.active);
        let passes = active.chunks(MOST_ACTIVE);
        let last = passes.len() - 1;
        if last > 0 {
            s.before.clone_from(&s.cursors);
        }
        if s.slots.len() < shape.chunks {
            s.slots.resize(shape.chunks, 0);
        }
        for (pass, active) in passes.enumerate() {
            let size = active.len() * stride + CHUNK;
            if s.sums.len() < size {
                s.sums.resize(size, 0.0);
            }
            if let Some(head) = shape.head {
                for (a, sums) in active.iter().zip(s.sums.chunks_exact_mut(stride)) {
                    let columns = s.head.iter().skip(head + a.column as usize).take(a.width as usize);
                    sums.iter_mut().zip(columns).for_each(|(sum, v)| *sum = *v);
                }
            } else {
                let bias = self.bias(t);
                s.chunks.clear();
                for (i, (a, sums)) in active.iter().zip(s.sums.chunks_exact_mut(stride)).enumerate() {
                    let (from, to) = (a.column as usize, (a.column + a.width) as usize);
                    for (sum, b) in sums.iter_mut().zip(bias.get(from..to).unwrap_or(&[])) {
                        *sum = f32::from_le_bytes(*b);
                    }
                    sums[a.width as usize..].fill(0.0);
                    s.chunks.push(a.chunk);
                    s.slots[a.chunk as usize] = i as u16 + 1;
                }
                if pass > 0 {
                    s.cursors.clone_from(&s.before);
                }
                let Searcher { isa, cursors, chunks, slots, scratch, sums, .. } = s;
                let layer = Layer {
                    area: self.area(),
                    codes: self.codes,
                    chunks: shape.chunks,
                    words: shape.words,
                    active: chunks,
                    first_slot: 0,
                    slots,
                };
                postings::add_layer(*isa, &layer, cursors, scratch, sums);
                active.iter().for_each(|a| s.slots[a.chunk as usize] = 0);
            }
            if s.dense.any() {
                self.add_dense(s, t, active);
            }
            each(self, s, active);
        }
        s.active = active;
    }

    /// Adds what the row's dense part has in the active chunks.
    fn add_dense(&self, s: &mut Searcher, t: usize, active: &[Active]) {
        let stride = self.shape.layers[t].stride();
        for (a, sums) in active.iter().zip(s.sums.chunks_exact_mut(stride)) {
            let (codes, scales) = self.panel(t, a.column as usize);
            add_columns(s.isa, self.dense.kind(), codes, scales, &s.dense, &mut sums[..a.width as usize]);
        }
    }
}

const _: () = assert!(LOWEST > ABSENT);
