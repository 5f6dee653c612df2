//! The output of training for the layout: the pruned weights of up to 16 sibling columns.

/// Number of columns in a block. The solver steps this many siblings at a time, and the layout's masks have this width.
pub const LANES: usize = 16;

/// The weights of up to [`LANES`] siblings: children `first..first + lanes` of one parent.
///
/// Each feature has a mask of the lanes with a weight, and one code (see [`WeightFormat`](super::WeightFormat)) for
/// each bit of the mask, lowest lane first; the codes of all rows are contiguous in `codes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The layer, root layer 0.
    pub layer: u32,
    /// The parent's number in the layer.
    pub parent: u32,
    /// Index of the first lane among the parent's children: a multiple of [`LANES`].
    pub first: u32,
    /// Number of lanes in use.
    pub lanes: u32,
    /// Features with at least one weight, strictly ascending.
    pub features: Vec<u32>,
    /// For each of these features, the lanes that have a weight; never 0.
    pub masks: Vec<u16>,
    /// Weight codes, by feature and then by lane.
    pub codes: Vec<u8>,
    /// The codes of the dense columns, lane by lane, in the format of [`DenseCodes`](super::DenseCodes); empty if there
    /// is no dense block.
    pub dense: Vec<u8>,
    /// The factor of each lane's dense codes.
    pub scales: [f32; LANES],
    /// The bias of each lane; `f32::NEG_INFINITY` for a column that no training row is positive for.
    pub bias: [f32; LANES],
}

impl Block {
    /// Number of sparse weights.
    pub fn weights(&self) -> usize {
        self.masks.iter().map(|m| m.count_ones() as usize).sum()
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> usize {
        self.features.len() * 6 + self.codes.len() + self.dense.len() + size_of::<Self>()
    }
}
