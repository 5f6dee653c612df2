//! The tables of a model's layers, as views of the image's bytes.
//!
//! Opening a model only compares their lengths with the description; their content is checked where it is used.

use super::DenseCodes;
use super::file::{Kind, Sections};
use super::layout::Shape;
use crate::error::{Result, fail};
use crate::kernels::prefetch;
use std::ops::Range;

/// The positions of a layer's tables in the image.
#[derive(Debug, Clone)]
pub(crate) struct LayerTables {
    pub starts: Range<usize>,
    pub chunks: Option<Range<usize>>,
    pub bias: Range<usize>,
    pub labels: Option<Range<usize>>,
    pub nodes: Option<Range<usize>>,
    pub panel: Range<usize>,
    pub scales: Range<usize>,
}

impl LayerTables {
    /// Finds the tables of all layers.
    pub fn find(shape: &Shape, dense: DenseCodes, sections: &Sections) -> Result<Vec<Self>> {
        let mut all = Vec::with_capacity(shape.layers.len());
        for (t, layer) in shape.layers.iter().enumerate() {
            let bytes = |kind, bytes: Option<usize>| {
                let span = sections.need(kind, t)?;
                if Some(span.len()) != bytes {
                    fail!(BadModel, "the model's table {kind:?} of layer {t} has {} bytes", span.len());
                }
                Ok(span)
            };
            let table = |kind, numbers: usize| bytes(kind, numbers.checked_mul(4));
            let some = |wanted: bool, kind, numbers| wanted.then(|| table(kind, numbers)).transpose();
            let (mut panel, mut scales) = (0..0, 0..0);
            if dense.cols() > 0 {
                panel = bytes(Kind::Panel, layer.columns.checked_mul(dense.stride()))?;
                if dense.scaled() {
                    scales = table(Kind::Scales, layer.columns)?;
                }
            }
            all.push(Self {
                starts: table(Kind::Starts, layer.parents + 1)?,
                chunks: some(layer.chunks != layer.parents, Kind::Chunks, layer.parents + 1)?,
                bias: table(Kind::Bias, layer.columns)?,
                labels: some(layer.nodes < layer.columns, Kind::Labels, layer.columns)?,
                nodes: some(layer.mixed(), Kind::Nodes, layer.columns)?,
                panel,
                scales,
            });
        }
        Ok(all)
    }
}

/// A table of little-endian u32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct U32s<'a>(&'a [[u8; 4]]);

impl<'a> U32s<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    /// The number at a position.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<u32> {
        self.0.get(i).map(|b| u32::from_le_bytes(*b))
    }

    /// All numbers.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.iter().map(|b| u32::from_le_bytes(*b))
    }

    /// Number of entries of an ascending table that are at most `value`.
    pub fn at_most(self, value: u32) -> usize {
        self.0.partition_point(|b| u32::from_le_bytes(*b) <= value)
    }
}

/// The positions of all buckets.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub words: &'a [u8],
    /// Whether a position has eight bytes instead of four.
    pub wide: bool,
}

impl Directory<'_> {
    /// The position of a bucket in the area; beyond the end of any area if there is none.
    #[inline(always)]
    pub fn bucket(self, bucket: usize) -> usize {
        let place = if self.wide {
            self.words
                .as_chunks::<8>()
                .0
                .get(bucket)
                .and_then(|b| usize::try_from(u64::from_le_bytes(*b)).ok())
        } else {
            self.words.as_chunks::<4>().0.get(bucket).map(|b| u32::from_le_bytes(*b) as usize)
        };
        place.unwrap_or(usize::MAX)
    }

    /// Prefetches a bucket's word.
    #[inline(always)]
    pub fn prefetch(self, bucket: usize) {
        prefetch(self.words, bucket * if self.wide { 8 } else { 4 });
    }
}
