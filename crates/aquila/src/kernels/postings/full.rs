//! Full sections: those with a code for every column of every chunk, as features have that weigh in most columns.
//!
//! A chunk's codes stand at a place known beforehand, and a code of zeros says that there is no weight: no number, no
//! mask and no packed weight waits to be found. As with [whole](super::whole) sections, chunk by chunk the rows of many
//! features are added in registers.

use super::codes::Codes;
use super::walk::Steps;
use super::{Layer, PAD};

/// Whole and full sections at hand before they are added: enough that taking a chunk's sums up costs little beside
/// them, few enough that their lines stay in the nearest cache from chunk to chunk.
pub(super) const AT_HAND: usize = 64;

/// A full section at hand. Its end was checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full {
    /// Where the codes begin.
    pub codes: usize,
    pub x: f32,
}

impl Full {
    /// The section whose form stands there, and where the next one begins. A byte says how many others stand in front of
    /// the codes.
    #[inline(always)]
    pub fn find<C: Codes>(layer: &Layer<'_>, at: usize, x: f32) -> Option<(Self, usize)> {
        let codes = at + 2 + usize::from(*layer.area.get(at + 1)?);
        let end = codes + 16 * layer.words * layer.chunks * C::BYTES;
        (end <= layer.area.len() - PAD).then_some((Self { codes, x }, end))
    }
}

/// The columns that a walk asks for: so many chunks of so many words, and the sums of one after the other.
pub(super) struct Columns<'a> {
    pub chunks: &'a [u32],
    pub words: usize,
    pub sums: &'a mut [f32],
}

impl<'a> Columns<'a> {
    /// For each chunk how many codes stand before its own, and its sums.
    pub fn each(self) -> impl Iterator<Item = (usize, &'a mut [[f32; 16]])> {
        let stride = 16 * self.words;
        let sums = self.sums.chunks_exact_mut(stride).map(|sums| sums.as_chunks_mut().0);
        self.chunks.iter().map(move |chunk| *chunk as usize * stride).zip(sums)
    }
}

/// Adds the full sections at hand.
///
/// # Safety
/// As [`super::walk::layer`]; the sections are of this layer.
#[inline(always)]
pub(super) unsafe fn add_full<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at_hand: &mut Vec<Full>,
    sums: &mut [f32],
) {
    // Damaged tables may ask for chunks that are not.
    if layer.active.iter().all(|chunk| (*chunk as usize) < layer.chunks) {
        let of = Columns { chunks: layer.active, words: layer.words, sums };
        // SAFETY: the sections' ends were checked, and each has codes for every chunk of the layer.
        unsafe { steps.full(layer.area, at_hand, of) };
    }
    at_hand.clear();
}
