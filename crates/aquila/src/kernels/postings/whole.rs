//! Whole sections: those with a row of masks in every chunk, as popular features have.
//!
//! Nothing need be looked up there, since a chunk's number is its row's. So the loops change places: chunk by chunk,
//! the rows of many features are added while the chunk's sums stay in registers, and no row is noted down in between.
//! Rows of hundreds of features, where most are popular ones, take half the time of a walk feature by feature.

use super::Layer;
use super::codes::Codes;
use super::section::{Header, Parents};
use super::walk::Steps;

/// A whole section at hand. Its end was checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// Where the numbers of weights before each row begin.
    befores: usize,
    /// Whether those have four bytes, not two.
    wide: bool,
    /// Where the rows begin.
    rows: usize,
    n: usize,
    pub x: f32,
}

impl Header {
    /// Whether the section has a row of several words in every chunk of the layer.
    #[inline(always)]
    pub fn is_whole(&self, layer: &Layer<'_>) -> bool {
        self.masks && self.rows == layer.chunks && layer.words > 1
    }
}

impl Whole {
    /// A whole section and where the next one begins.
    #[inline(always)]
    pub fn find<C: Codes>(header: &Header, layer: &Layer<'_>, x: f32) -> Option<(Self, usize)> {
        let Header { rows, n, parents, count, at, .. } = *header;
        // The parents are known: no gap is above 0, or every bit is set.
        let befores = at
            + match parents {
                Parents::Gaps8 => rows,
                Parents::Gaps16 => 2 * rows,
                Parents::Bitmap => rows.div_ceil(8) + count * (rows.div_ceil(64) - 1),
            };
        let (_, end) = header.place::<C>(layer, befores, x)?;
        Some((Self { befores, wide: count == 4, rows: befores + count * rows, n, x }, end))
    }

    /// Where a chunk's masks and weights begin.
    ///
    /// # Safety
    /// The chunk is one of the section's and has that many words.
    #[inline(always)]
    pub unsafe fn row<C: Codes, S: Steps<C>>(
        &self,
        steps: S,
        area: &[u8],
        chunk: usize,
        words: usize,
    ) -> (usize, usize) {
        // SAFETY: the numbers are within the section.
        let before = unsafe {
            if self.wide {
                steps.read8(area, self.befores + 4 * chunk) as u32 as usize
            } else {
                usize::from(steps.read8(area, self.befores + 2 * chunk) as u16)
            }
        };
        // However damaged the number is, all masks and weights up to there are within the section.
        let table = self.rows + 2 * words * chunk + before.min(self.n) * C::BYTES;
        (table, table + 2 * words)
    }
}

/// Adds the whole sections at hand.
///
/// # Safety
/// As [`super::walk::layer`]; the sections are of this layer.
#[inline(always)]
pub(super) unsafe fn add_whole<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at_hand: &mut Vec<Whole>,
    sums: &mut [f32],
) {
    for (&chunk, sums) in layer.active.iter().zip(sums.chunks_exact_mut(16 * layer.words)) {
        // Damaged tables may ask for chunks that are not.
        if (chunk as usize) < layer.chunks {
            // SAFETY: the sections' ends were checked, and each has a row for every chunk of the layer.
            unsafe { steps.whole(layer.area, at_hand, chunk as usize, sums.as_chunks_mut().0) };
        }
    }
    at_hand.clear();
}
