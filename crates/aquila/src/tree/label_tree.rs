//! The tree itself: layers of columns, each column an inner node or a slot that points to a label.

use crate::error::{Result, fail};

/// Marks a column in [`TreeLayer::labels`] as an inner node.
pub const NODE: u32 = u32::MAX;

/// One layer of the tree: the children of every node of the layer above, grouped by node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLayer {
    /// Children of parent `p` are the columns `starts[p]..starts[p + 1]`. The root layer has one parent.
    pub starts: Vec<u32>,
    /// For each column its label, or [`NODE`]. The n-th inner node of this layer is parent `n` of the next.
    pub labels: Vec<u32>,
}

impl TreeLayer {
    /// Number of parents.
    pub fn parents(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.labels.len()
    }

    /// The columns of parent `p`.
    pub fn children(&self, p: usize) -> std::ops::Range<usize> {
        self.starts[p] as usize..self.starts[p + 1] as usize
    }
}

/// A label tree. Leaves are *slots*: a slot points to a label and has its own weights. A label may have several slots,
/// and slots may be in any layer (mixed depth).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelTree {
    labels: usize,
    layers: Vec<TreeLayer>,
}

impl LabelTree {
    /// Checks and takes the layers: pointers are consistent, every node has a child, every label has a slot, and no
    /// label occurs twice under one parent. Cost O(n log n) in the children of the widest node, O(n) otherwise. Memory
    /// depends on the layers, never on the number of labels that a file claims.
    pub fn new(labels: usize, layers: Vec<TreeLayer>) -> Result<Self> {
        if layers.is_empty() || labels == 0 {
            fail!(BadTree, "a tree needs at least one layer and one label");
        }
        if labels > NODE as usize {
            fail!(BadTree, "{labels} labels pass the limit of {NODE}");
        }
        let columns: usize = layers.iter().map(TreeLayer::columns).sum();
        // With more labels than columns, one of the first `columns + 1` labels has no slot.
        let mut seen = vec![false; labels.min(columns + 1)];
        let mut below: Vec<u32> = Vec::new();
        let mut nodes = 1;
        for (t, layer) in layers.iter().enumerate() {
            if nodes == 0 {
                fail!(BadTree, "layer {} has no inner nodes but layers follow it", t - 1);
            }
            if layer.starts.len() != nodes + 1 {
                fail!(
                    BadTree,
                    "layer {t} has {} parents but the layer above has {nodes} nodes",
                    layer.parents()
                );
            }
            if layer.starts[0] != 0 || layer.starts[nodes] as usize != layer.labels.len() {
                fail!(BadTree, "layer {t}: child ranges do not cover its {} columns", layer.labels.len());
            }
            // This check comes first: only ascending pointers up to the checked last one make every range below safe.
            if let Some(p) = layer.starts.windows(2).position(|w| w[0] >= w[1]) {
                fail!(BadTree, "layer {t}: node {p} has no children");
            }
            for p in 0..nodes {
                below.clear();
                below.extend(layer.labels[layer.children(p)].iter().filter(|l| **l != NODE));
                below.sort_unstable();
                if let Some(w) = below.windows(2).find(|w| w[0] == w[1]) {
                    fail!(BadTree, "layer {t}: label {} is placed twice under node {p}", w[0]);
                }
                if let Some(&l) = below.last().filter(|l| **l as usize >= labels) {
                    fail!(BadTree, "layer {t}: label {l} is not below the number of labels, {labels}");
                }
                for &l in &below {
                    if let Some(seen) = seen.get_mut(l as usize) {
                        *seen = true;
                    }
                }
            }
            nodes = layer.labels.iter().filter(|l| **l == NODE).count();
        }
        if nodes > 0 {
            fail!(BadTree, "the last layer has {nodes} inner nodes without children");
        }
        if let Some(l) = seen.iter().position(|s| !s) {
            fail!(BadTree, "label {l} has no slot: every label must be placed under at least one leaf");
        }
        Ok(Self { labels, layers })
    }

    /// A tree of one layer: all labels under the root, one-vs-all.
    pub fn flat(labels: usize) -> Result<Self> {
        if labels > NODE as usize {
            fail!(BadTree, "{labels} labels pass the limit of {NODE}");
        }
        Self::new(
            labels,
            vec![TreeLayer { starts: vec![0, labels as u32], labels: (0..labels as u32).collect() }],
        )
    }

    /// Sorts the slots under each node by a key of their labels (stable); inner nodes stay in place.
    pub fn sort_slots_by_key<K: Ord>(mut self, key: impl Fn(u32) -> K) -> Self {
        for layer in &mut self.layers {
            for p in 0..layer.parents() {
                let children = layer.children(p);
                let columns = &mut layer.labels[children];
                let mut slots: Vec<u32> = columns.iter().copied().filter(|l| *l != NODE).collect();
                slots.sort_by_key(|l| key(*l));
                columns.iter_mut().filter(|l| **l != NODE).zip(slots).for_each(|(to, l)| *to = l);
            }
        }
        self
    }

    /// Removes layers of inner nodes from the top. Each time, every inner node under the root is removed and its
    /// children are placed under the root; slots already there stay. A tree that has become flat does not change.
    ///
    /// A wide root avoids the upper layers, which send rows astray early, and costs one product for each of its
    /// columns. The idea is omikuji's `collapse_every_n_layers`, which widens every layer; we widen only the root.
    /// Slots of the same label that meet under the root become one, at the position of the first. Cost O(width) each
    /// time.
    pub fn collapse(mut self, times: u32) -> Self {
        let mut met = Vec::new();
        for _ in 0..times {
            if self.layers.len() < 2 {
                break;
            }
            let below = self.layers.remove(1);
            let top = &mut self.layers[0];
            met.clear();
            met.resize(self.labels, false);
            let mut parent = 0;
            let mut joined = Vec::with_capacity(below.columns());
            let mut place = |column: u32| {
                if column == NODE || !std::mem::replace(&mut met[column as usize], true) {
                    joined.push(column);
                }
            };
            for &column in &top.labels {
                if column == NODE {
                    below.labels[below.children(parent)].iter().copied().for_each(&mut place);
                    parent += 1;
                } else {
                    place(column);
                }
            }
            *top = TreeLayer { starts: vec![0, joined.len() as u32], labels: joined };
        }
        self
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The layers, root first.
    pub fn layers(&self) -> &[TreeLayer] {
        &self.layers
    }

    /// Number of slots: at least one per label.
    pub fn slots(&self) -> usize {
        self.layers.iter().flat_map(|l| &l.labels).filter(|l| **l != NODE).count()
    }
}
