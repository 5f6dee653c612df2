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

    /// Whether the places of all weights of a full section, four bytes each, and of all tables are at most so many: walks
    /// and searches multiply without looking.
    pub fn addressable(&self, most: usize) -> bool {
        let fits = |count: usize, each: usize| count.checked_mul(each).is_some_and(|bytes| bytes <= most);
        fits(self.chunks, 4 * self.stride()) && fits(self.columns.max(self.parents) + 1, 4)
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

#[cfg(test)]
mod tests {
    use super::LayerShape;

    #[test]
    fn layers_whose_weights_no_machine_of_32_bits_can_address_are_known() {
        let most = i32::MAX as usize;
        let layer = |chunks, words| LayerShape {
            chunks,
            words,
            columns: chunks,
            parents: 1,
            ..LayerShape::default()
        };
        assert!(layer(1 << 24, 1).addressable(most) && layer((1 << 22) - 1, 8).addressable(most));
        assert!(!layer(1 << 25, 1).addressable(most) && !layer(1 << 22, 8).addressable(most));
        assert!(!LayerShape { parents: 1 << 29, ..layer(1, 1) }.addressable(most));
        assert!(
            layer(u32::MAX as usize - 1, 8).addressable(isize::MAX as usize)
                || cfg!(target_pointer_width = "32")
        );
    }
}
