//! The meaning of a label in each of its leaves, expressed in features.
//!
//! A label that is placed under several leaves has a slot in each, with weights of its own: each slot learns what
//! distinguishes the label from its neighbours in that leaf. A feature's *lead* is its weight in one leaf minus its
//! largest weight in another leaf of the label; a feature without a weight counts as 0. Features with positive weight
//! are listed by their lead. Features of a label with one leaf have no lead over others and are listed by their weight.
//!
//! A feature is left out of a leaf if it speaks against the path to that leaf: if the sum of its weights, from where
//! the paths to the label's leaves diverge, is negative. Rows of a label are positive at all of its leaves, so in each
//! leaf the words of the other meanings distinguish it from its neighbours too: among fruit, anything that rings is an
//! apple. But rows with such words are rarely sent there.
//!
//! A slot under the root, in addition to a label's leaves, is not a meaning: it distinguishes the label from all
//! others.

use super::Model;
use super::search::{Column, Sum, Weights};
use crate::control::Control;
use crate::error::{Result, fail};
use crate::tree::NODE;

/// A label and the leaves that it is placed under.
#[derive(Debug, Clone, PartialEq)]
pub struct Meanings {
    /// The label.
    pub label: u32,
    /// Its leaves, in the order of the tree.
    pub leaves: Vec<Leaf>,
}

/// A leaf of a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The layer of its slots, where the root's children are layer 0.
    pub layer: u32,
    /// Its number among the parents of the layer.
    pub node: u32,
    /// The other labels in the leaf, in tree order.
    pub neighbours: Vec<u32>,
    /// What distinguishes the label from its neighbours here, more than in its other leaves; the largest lead first.
    pub features: Vec<Telling>,
}

/// A feature that distinguishes a leaf from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Telling {
    /// The feature.
    pub feature: u32,
    /// Its weight in this leaf.
    pub weight: f32,
    /// By how much that exceeds the largest weight that it has in another leaf.
    pub lead: f32,
}

/// Number of labels whose weights are decoded in one pass over the features: more labels need fewer passes and hold
/// more weights in memory.
const LABELS_OF_PASS: usize = 16_384;

impl Model {
    /// The labels that are placed under several leaves, ascending.
    pub fn several_labels(&self) -> Vec<u32> {
        if self.one_slot() { Vec::new() } else { self.slots_of().several().collect() }
    }

    /// The meaning of each of these labels in each of its leaves, expressed in up to `most` features; with 0 no weight
    /// is read.
    pub fn meanings(&self, labels: &[u32], most: usize, control: &Control) -> Result<Vec<Meanings>> {
        if let Some(label) = labels.iter().find(|l| **l as usize >= self.labels) {
            fail!(IndexOutOfRange, "label {label} is not below the number of labels, {}", self.labels);
        }
        control.install(|| {
            let mut all = Vec::with_capacity(labels.len());
            for labels in labels.chunks(LABELS_OF_PASS) {
                control.check()?;
                let mut found: Vec<Meanings> = labels.iter().map(|l| self.leaves_of(*l)).collect();
                if most > 0 {
                    self.tell(&mut found, most, control)?;
                }
                all.append(&mut found);
            }
            Ok(all)
        })?
    }

    /// A label's leaves and its neighbours there.
    fn leaves_of(&self, label: u32) -> Meanings {
        let leaf = |&(layer, column): &Column| {
            let starts = self.starts(layer as usize);
            let node = starts.at_most(column).saturating_sub(1);
            let (from, to) = (starts.get(node).unwrap_or(0), starts.get(node + 1).unwrap_or(0));
            let labels = self.slot_labels(layer as usize).iter().take(to as usize).skip(from as usize);
            // A damaged table may contain numbers that are not labels.
            let other = |l: &u32| *l != NODE && *l != label && (*l as usize) < self.labels;
            Leaf {
                layer,
                node: node as u32,
                neighbours: labels.filter(other).collect(),
                features: Vec::new(),
            }
        };
        Meanings { label, leaves: self.slots_of().leaves(label).iter().map(leaf).collect() }
    }

    /// Fills in the features.
    fn tell(&self, found: &mut [Meanings], most: usize, control: &Control) -> Result<()> {
        let slots = |label: u32| self.slots_of().leaves(label);
        // Labels share leaves, so each path is read once.
        let ways: Vec<Vec<Sum>> = found.iter().map(|m| self.ways(slots(m.label))).collect();
        let mut sums: Vec<Sum> = ways.iter().flatten().cloned().collect();
        sums.sort_unstable();
        sums.dedup();
        let count = sums.len();
        sums.extend(found.iter().flat_map(|m| slots(m.label)).map(|slot| vec![*slot]));
        let weights = self.weights_of(&sums, control)?;
        let (to, mut own) = weights.split_at(count);
        for (Meanings { leaves, .. }, ways) in found.iter_mut().zip(&ways) {
            let (mine, rest) = own.split_at(leaves.len());
            own = rest;
            let ways: Vec<&Weights> =
                ways.iter().map(|way| &to[sums[..count].binary_search(way).unwrap_or_default()]).collect();
            for (leaf, features) in leaves.iter_mut().zip(leads(mine, &ways, most)) {
                leaf.features = features;
            }
        }
        Ok(())
    }

    /// For each slot of a label, the columns on the path to it, except those on the paths to all of its slots.
    fn ways(&self, slots: &[Column]) -> Vec<Sum> {
        let way = |slot: &Column| {
            let (mut layer, mut column) = *slot;
            let mut way = Sum::new();
            while layer > 0 {
                let Some(above) = self.above(layer as usize, column) else { break };
                (layer, column) = (layer - 1, above);
                way.push((layer, column));
            }
            way.reverse();
            way
        };
        let mut ways: Vec<Sum> = slots.iter().map(way).collect();
        let Some((first, others)) = ways.split_first() else { return ways };
        let alike = |other: &Sum| first.iter().zip(other).take_while(|(a, b)| a == b).count();
        let common = others.iter().map(alike).fold(first.len(), usize::min);
        ways.iter_mut().for_each(|way| drop(way.drain(..common)));
        ways
    }
}

/// For each leaf, the features of positive weight with the largest leads, except those that speak against its path.
fn leads(leaves: &[Weights], ways: &[&Weights], most: usize) -> Vec<Vec<Telling>> {
    let against = |leaf: usize, feature: u32| {
        let way = ways[leaf];
        way.binary_search_by_key(&feature, |w| w.0).is_ok_and(|place| way[place].1 < 0.0)
    };
    let mut entries: Vec<(u32, usize, f32)> = Vec::new();
    for (leaf, weights) in leaves.iter().enumerate() {
        entries.extend(weights.iter().map(|(feature, weight)| (*feature, leaf, *weight)));
    }
    entries.sort_by_key(|e| e.0);
    let mut out = vec![Vec::new(); leaves.len()];
    for same in entries.chunk_by(|a, b| a.0 == b.0) {
        // The largest weight, and the second largest, which is the largest of the other leaves: 0 where a leaf has
        // none.
        let none = if same.len() < leaves.len() || leaves.len() == 1 { 0.0 } else { f32::NEG_INFINITY };
        let (mut best, mut second) = (none, none);
        for (_, _, weight) in same {
            (best, second) = if *weight > best { (*weight, best) } else { (best, second.max(*weight)) };
        }
        for &(feature, leaf, weight) in same {
            let lead = weight - if weight == best { second } else { best };
            if weight > 0.0 && lead > 0.0 && !against(leaf, feature) {
                out[leaf].push(Telling { feature, weight, lead });
            }
        }
    }
    for of_leaf in &mut out {
        of_leaf.sort_by(|a: &Telling, b| b.lead.total_cmp(&a.lead).then(a.feature.cmp(&b.feature)));
        of_leaf.truncate(most);
    }
    out
}
