//! The dimensions of a tree's layers that the layout needs.

use super::{CHUNK, HEAD};
use crate::tree::{LabelTree, NODE};

/// The dimensions of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LayerShape {
    /// Number of parents: nodes of the layer above, or the root.
    pub parents: usize,
    /// Number of columns.
    pub columns: usize,
    /// Number of chunks: one per parent, unless a parent has more children than a chunk holds.
    pub chunks: usize,
    /// Number of words of 16 columns in a chunk.
    pub words: usize,
    /// Number of columns that are inner nodes.
    pub nodes: usize,
    /// The first of the layer's columns in the head, for layers of the head.
    pub head: Option<usize>,
}

impl LayerShape {
    /// Number of accumulators of a chunk.
    pub fn stride(&self) -> usize {
        self.words * 16
    }

    /// Whether some columns are inner nodes and some are slots.
    pub fn mixed(&self) -> bool {
        self.nodes > 0 && self.nodes < self.columns
    }
}

/// The dimensions of the layers and of the head.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    /// The layers, root first.
    pub layers: Vec<LayerShape>,
    /// Number of columns of the head, a multiple of 16.
    pub head_columns: usize,
}

impl Shape {
    /// The dimensions of a tree.
    pub fn of(tree: &LabelTree) -> Self {
        let mut layers: Vec<LayerShape> = tree
            .layers()
            .iter()
            .map(|layer| {
                let mut widths: Vec<usize> = (0..layer.parents()).map(|p| layer.children(p).len()).collect();
                let words = words_of(&mut widths);
                let chunks = widths.iter().map(|w| w.div_ceil(16 * words)).sum();
                let nodes = layer.labels.iter().filter(|l| **l == NODE).count();
                LayerShape {
                    parents: layer.parents(),
                    columns: layer.columns(),
                    chunks,
                    words,
                    nodes,
                    head: None,
                }
            })
            .collect();
        let head_columns = Self::place_head(&mut layers);
        Self { layers, head_columns }
    }

    /// Determines which layers belong to the head and returns the number of the head's columns.
    pub fn place_head(layers: &mut [LayerShape]) -> usize {
        let mut taken = 0;
        for layer in layers {
            let wanted = layer.columns.next_multiple_of(16);
            if taken + wanted > HEAD {
                break;
            }
            layer.head = Some(taken);
            taken += wanted;
        }
        taken
    }

    /// Number of layers in the head.
    pub fn head_layers(&self) -> usize {
        self.layers.iter().take_while(|l| l.head.is_some()).count()
    }
}

/// The number of words in a layer's chunks: the fewest, up to [`CHUNK`] columns, that hold all children of 15 of 16
/// parents. Otherwise a few wide parents (one holds all labels without rows) would make the masks and sums of every
/// chunk wide.
fn words_of(widths: &mut [usize]) -> usize {
    if widths.is_empty() {
        return 1;
    }
    let (_, width, _) = widths.select_nth_unstable((widths.len() - 1) * 15 / 16);
    (*width).clamp(1, CHUNK).div_ceil(16)
}
