//! How the weights of dense columns are stored: whole columns, one after another.
//!
//! A dense column has a weight for every feature of the dense block, and none is pruned, so only the codes are stored:
//! the column's `cols` weights, padded with zeros to a multiple of [`LINE`] so that a product has no tail.
//!
//! * u8: one signed byte per weight, `round(127 · w / m)` with `m` the largest magnitude of the column, and one scale
//!   `m / 127` per column. The minifloat of sparse weights is unsuitable: dense weights go down to 0, which it cannot
//!   store, and with its three or four mantissa bits it errs by more than 1/254 of the largest weight.
//! * bf16 and f32: as for sparse weights; the scale is 1 and is not stored.

use super::{WeightFormat, WeightKind};
use crate::kernels::panels::{DenseKind, LINE};

/// The format of the dense columns of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenseCodes {
    kind: DenseKind,
    cols: usize,
}

impl DenseCodes {
    /// For weights of this kind over this many dense features.
    pub fn new(kind: WeightKind, cols: usize) -> Self {
        let kind = match kind {
            WeightKind::Byte => DenseKind::Byte,
            WeightKind::Bf16 => DenseKind::Bf16,
            WeightKind::F32 => DenseKind::F32,
        };
        Self { kind, cols }
    }

    /// Number of dense features.
    pub const fn cols(self) -> usize {
        self.cols
    }

    /// Number of dense features, including padding.
    pub const fn padded(self) -> usize {
        self.cols.next_multiple_of(LINE)
    }

    /// Bytes per column.
    pub const fn stride(self) -> usize {
        self.padded() * self.kind.bytes()
    }

    pub(crate) const fn kind(self) -> DenseKind {
        self.kind
    }

    /// Whether columns have scales.
    pub const fn scaled(self) -> bool {
        matches!(self.kind, DenseKind::Byte)
    }

    /// Appends the codes of a column and returns its scale.
    pub fn encode(self, weights: &[f32], out: &mut Vec<u8>) -> f32 {
        debug_assert_eq!(weights.len(), self.cols);
        let end = out.len() + self.stride();
        let mut scale = 1.0;
        match self.kind {
            DenseKind::Byte => {
                let most = weights.iter().fold(0f32, |m, w| m.max(w.abs()));
                scale = most / 127.0;
                // A column of zeros, or of numbers whose inverse is infinite, is stored as zeros.
                let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
                out.extend(weights.iter().map(|w| (w * inverse).round() as i8 as u8));
            }
            DenseKind::Bf16 => weights.iter().for_each(|w| WeightFormat::Bf16.encode(*w, out)),
            DenseKind::F32 => weights.iter().for_each(|w| WeightFormat::F32.encode(*w, out)),
        }
        out.resize(end, 0);
        scale
    }
}
