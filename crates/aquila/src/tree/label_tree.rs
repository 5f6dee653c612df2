//! The tree itself: layers of columns, each column an inner node or a slot that points to a label.

use crate::error::{Result, fail};

/// Stands in [`TreeLayer::labels`] for a column that is an inner node.
pub const NODE: u32 = u32::MAX;

/// One layer of the tree: the children of every node of the layer above, node after node.
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
        self.starts.len() - 1
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

/// A label tree. Leaves are *slots*: a slot points to a label and owns the weights; a label may have several
/// slots, and slots may stand in any layer (mixed depth).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelTree {
    labels: usize,
    layers: Vec<TreeLayer>,
}

impl LabelTree {
    /// Takes layers after a check: pointers fit, every node has a child, every label has a slot, no label twice
    /// under one parent.
    pub fn new(labels: usize, layers: Vec<TreeLayer>) -> Result<Self> {
        if layers.is_empty() || labels == 0 {
            fail!(BadTree, "a tree needs at least one layer and one label");
        }
        let mut seen = vec![false; labels];
        let mut nodes = 1;
        for (t, layer) in layers.iter().enumerate() {
            if layer.starts.len() != nodes + 1 {
                fail!(
                    BadTree,
                    "layer {t} has {} parents but the layer above has {nodes} nodes",
                    layer.starts.len() as i64 - 1
                );
            }
            if layer.starts[0] != 0 || layer.starts[nodes] as usize != layer.labels.len() {
                fail!(BadTree, "layer {t}: child ranges do not cover its {} columns", layer.labels.len());
            }
            // All of them before any is used: a start past the end may be followed by smaller ones.
            if let Some(p) = (0..nodes).find(|&p| layer.starts[p] >= layer.starts[p + 1]) {
                fail!(BadTree, "layer {t}: node {p} has no children");
            }
            for p in 0..nodes {
                let mut below: Vec<u32> =
                    layer.labels[layer.children(p)].iter().copied().filter(|l| *l != NODE).collect();
                below.sort_unstable();
                if let Some(w) = below.windows(2).find(|w| w[0] == w[1]) {
                    fail!(BadTree, "layer {t}: label {} hangs twice under node {p}", w[0]);
                }
                if let Some(&l) = below.iter().find(|l| **l as usize >= labels) {
                    fail!(BadTree, "layer {t}: label {l} is not below the number of labels, {labels}");
                }
                below.iter().for_each(|l| seen[*l as usize] = true);
            }
            nodes = layer.labels.iter().filter(|l| **l == NODE).count();
            if nodes == 0 && t + 1 < layers.len() {
                fail!(BadTree, "layer {t} has no inner nodes but layers follow it");
            }
        }
        if nodes > 0 {
            fail!(BadTree, "the last layer has {nodes} inner nodes without children");
        }
        if let Some(l) = seen.iter().position(|s| !s) {
            fail!(BadTree, "label {l} has no slot: every label must hang under at least one leaf");
        }
        Ok(Self { labels, layers })
    }

    /// A tree of one layer: all labels under the root, one-vs-all.
    pub fn flat(labels: usize) -> Result<Self> {
        Self::new(
            labels,
            vec![TreeLayer { starts: vec![0, labels as u32], labels: (0..labels as u32).collect() }],
        )
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The layers, root first.
    pub fn layers(&self) -> &[TreeLayer] {
        &self.layers
    }

    /// Number of slots: at least one a label.
    pub fn slots(&self) -> usize {
        self.layers.iter().flat_map(|l| &l.labels).filter(|l| **l != NODE).count()
    }
}
