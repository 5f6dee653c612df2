//! The dense weights of each layer, column by column.
//!
//! Every query with a dense part uses every dense feature, so the layout of sparse features (weights of all layers
//! together, one miss per feature) would only scatter data that is read anyway. Here a column's dense weights are
//! contiguous and the columns of a layer follow each other, so a chunk is one run of bytes, multiplied as a matrix with
//! the row.

use super::Shape;
use crate::error::{Result, fail};
use crate::tree::LabelTree;
use crate::xlinear::{Block, DenseCodes, LANES};

/// The dense weights of some columns of a layer.
struct Part {
    layer: usize,
    begin: usize,
    lanes: usize,
    trained: usize,
    codes: Vec<u8>,
    scales: [f32; LANES],
}

/// The dense weights of all layers.
pub(crate) struct Panels {
    form: DenseCodes,
    parts: Vec<Part>,
}

impl Panels {
    /// Moves the dense weights out of the blocks.
    pub fn take(shape: &Shape, tree: &LabelTree, form: DenseCodes, blocks: &mut [Block]) -> Result<Self> {
        let stride = form.stride();
        let mut parts = Vec::with_capacity(if stride > 0 { blocks.len() } else { 0 });
        for b in blocks {
            let name = || format!("block of layer {}, parent {}, child {}", b.layer, b.parent, b.first);
            let lanes = b.lanes as usize;
            if b.dense.len() != lanes * stride {
                fail!(Internal, "{}: {} bytes of dense weights, not {lanes}·{stride}", name(), b.dense.len());
            }
            if stride == 0 {
                continue;
            }
            let layer = b.layer as usize;
            let known = tree.layers().get(layer).filter(|l| (b.parent as usize) < l.parents());
            let children = known.map_or(0..0, |l| l.children(b.parent as usize));
            let begin = children.start + b.first as usize;
            if lanes > LANES || begin + lanes > children.end || children.end > shape.layers[layer].columns {
                fail!(Internal, "{}: {lanes} lanes do not fit {} children", name(), children.len());
            }
            if let Some(scale) = b.scales[..lanes].iter().find(|s| !s.is_finite()) {
                fail!(NotFinite, "{}: the scale of dense weights is {scale}", name());
            }
            let trained = b.bias[..lanes].iter().filter(|v| **v > f32::NEG_INFINITY).count();
            parts.push(Part {
                layer,
                begin,
                lanes,
                trained,
                codes: std::mem::take(&mut b.dense),
                scales: b.scales,
            });
        }
        Ok(Self { form, parts })
    }

    fn of(&self, layer: usize) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |p| p.layer == layer)
    }

    /// Appends a layer's codes; columns without a block get zeros.
    pub fn write(&self, layer: usize, columns: usize, image: &mut Vec<u8>) {
        let (area, stride) = (image.len(), self.form.stride());
        image.resize(area + columns * stride, 0);
        for p in self.of(layer) {
            image[area + p.begin * stride..][..p.lanes * stride].copy_from_slice(&p.codes);
        }
    }

    /// A layer's scales, one per column.
    pub fn scales(&self, layer: usize, columns: usize) -> Vec<f32> {
        let mut scales = vec![0.0; columns];
        self.of(layer).for_each(|p| scales[p.begin..][..p.lanes].copy_from_slice(&p.scales[..p.lanes]));
        scales
    }

    /// Number of weights in the columns that were trained.
    pub fn weights(&self) -> u64 {
        self.parts.iter().map(|p| (p.trained * self.form.cols()) as u64).sum()
    }
}
