//! The leaves of a tree, and the tree that results from placing labels under them anew.

use crate::error::Result;
use crate::tree::{LabelTree, NODE, TreeLayer};

/// Stands for "no leaf".
const NONE: u32 = u32::MAX;

/// The leaves of a tree, numbered from the top: all nodes with slots, except the root. Every row visits the root, so a
/// label there is always reached and needs no further leaf.
#[derive(Debug, Clone)]
pub struct Leaves<'a> {
    tree: &'a LabelTree,
    /// The leaf number for each layer and parent.
    numbers: Vec<Vec<u32>>,
    /// The labels of each leaf, in tree order.
    labels: Vec<Vec<u32>>,
    /// Whether each label has a slot under the root.
    at_root: Vec<bool>,
}

impl<'a> Leaves<'a> {
    /// Finds the leaves.
    pub fn of(tree: &'a LabelTree) -> Self {
        let mut at_root = vec![false; tree.labels()];
        let (mut numbers, mut labels) = (Vec::new(), Vec::new());
        for (t, layer) in tree.layers().iter().enumerate() {
            let number = |p| {
                let slots = layer.labels[layer.children(p)].iter().copied().filter(|l| *l != NODE);
                if t == 0 {
                    slots.for_each(|l| at_root[l as usize] = true);
                    return NONE;
                }
                let slots: Vec<u32> = slots.collect();
                if slots.is_empty() {
                    return NONE;
                }
                labels.push(slots);
                labels.len() as u32 - 1
            };
            numbers.push((0..layer.parents()).map(number).collect());
        }
        Self { tree, numbers, labels, at_root }
    }

    /// Number of leaves.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// The leaf number of this parent in this layer, if it is a leaf.
    pub fn number(&self, layer: usize, parent: usize) -> Option<u32> {
        Some(self.numbers[layer][parent]).filter(|n| *n != NONE)
    }

    /// The layers that contain the slots of leaves.
    pub fn layers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.numbers.len()).filter(|t| self.numbers[*t].iter().any(|n| *n != NONE))
    }

    /// The labels of each leaf.
    pub fn labels(&self) -> &[Vec<u32>] {
        &self.labels
    }

    /// Whether a label has a slot under the root.
    pub fn at_root(&self, label: u32) -> bool {
        self.at_root[label as usize]
    }

    /// The leaves of each label, ascending.
    pub fn by_label(&self) -> Vec<Vec<u32>> {
        let mut of = vec![Vec::new(); self.at_root.len()];
        for (leaf, labels) in (0u32..).zip(&self.labels) {
            labels.iter().for_each(|l| of[*l as usize].push(leaf));
        }
        of
    }

    /// The same tree with these labels under its leaves: the labels that a leaf keeps stay in place, and the new ones
    /// follow in ascending order. A leaf must keep a label.
    pub fn place(&self, labels: &[Vec<u32>]) -> Result<LabelTree> {
        let mut layers = Vec::with_capacity(self.numbers.len());
        let (mut now, mut before) = (vec![false; self.tree.labels()], vec![false; self.tree.labels()]);
        for (t, old) in self.tree.layers().iter().enumerate() {
            let mut layer = TreeLayer { starts: vec![0], labels: Vec::with_capacity(old.columns()) };
            for p in 0..old.parents() {
                let columns = &old.labels[old.children(p)];
                match self.number(t, p) {
                    None => layer.labels.extend_from_slice(columns),
                    Some(leaf) => {
                        let (mine, own) = (&labels[leaf as usize], &self.labels[leaf as usize]);
                        mine.iter().for_each(|l| now[*l as usize] = true);
                        own.iter().for_each(|l| before[*l as usize] = true);
                        layer.labels.extend(columns.iter().filter(|c| **c == NODE || now[**c as usize]));
                        let first = layer.labels.len();
                        layer.labels.extend(mine.iter().filter(|l| !before[**l as usize]));
                        layer.labels[first..].sort_unstable();
                        mine.iter().for_each(|l| now[*l as usize] = false);
                        own.iter().for_each(|l| before[*l as usize] = false);
                    }
                }
                layer.starts.push(layer.labels.len() as u32);
            }
            layers.push(layer);
        }
        LabelTree::new(self.tree.labels(), layers)
    }
}
