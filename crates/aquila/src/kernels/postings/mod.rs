//! Adds what a query's features have in the active chunks of one layer: the inner loop of beam search.
//!
//! The bytes walked here are those of `xlinear::layout`'s weight area; its page states every form. They may
//! come from a damaged file, so nothing in them is believed: a section must end [`PAD`] bytes before the area does, a
//! child id keeps its seven bits, chunks are looked up with a check, and every loop ends with the section. A damaged
//! section gives wrong sums or is left out; it never reaches memory that is not the area's or the accumulators'.
//!
//! For each feature the walk has a cursor. A layer's section is met in two steps: *hits*, the rows of active chunks,
//! are listed without branches; then each hit's row is found (by counting "last" bits or mask bits), decoded and
//! added. Entries go through a queue of (accumulator, product) that is emptied by one plain loop, so that rows of
//! two entries cost no mispredicted branch each.
//!
//! Sections of popular features, which have a row of masks in every chunk, go another way ([`whole`]): no row is looked
//! up, and chunk by chunk the rows of many features are added in registers. So are *full* sections, which have a code
//! for every column ([`full`]).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod codes;
mod full;
mod head;
mod queue;
mod rows;
mod scalar;
mod section;
mod walk;
mod whole;

use super::Isa;
pub(crate) use codes::{ByteCodes, CodeKind};
pub(crate) use walk::NOWHERE;

/// Most columns of a chunk: a child id has seven bits.
pub(crate) const CHUNK: usize = 128;
/// Most columns of the head: a column has one byte.
pub(crate) const HEAD: usize = 256;
/// Chunks of a page.
pub(crate) const PAGE: usize = 2048;
/// Chunks of a group of a bitmap, as a power of two: 64, or fewer (down to 8) where 64 have many weights, so that few
/// need be counted to find a row of entries. `n` are the section's weights, `chunks` the bitmap's bits.
#[inline(always)]
pub(crate) fn group_shift(masks: bool, n: usize, chunks: usize) -> u32 {
    if masks {
        return 6;
    }
    let share = 48 * chunks.div_ceil(64);
    6 - u32::from(n > share) - u32::from(n > 2 * share) - u32::from(n > 4 * share)
}

/// Zero bytes behind the weight area: vector loads may read past a section's end.
pub(crate) const PAD: usize = 512;
/// Head sections with this count byte hold masks.
pub(crate) const HEAD_MASKS: u8 = 255;
/// Head sections with this count byte hold a code for every column.
pub(crate) const HEAD_FULL: u8 = 254;
/// The form of a section of pages.
pub(crate) const FORM_PAGES: u8 = 13;
/// The form of a section with a code for every column.
pub(crate) const FORM_FULL: u8 = 14;

/// A feature of the query: where its next section begins, and its value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// The section's place in the area.
    pub at: usize,
    /// The feature's value.
    pub x: f32,
}

/// The layer that a walk meets and the chunks that it asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer<'a> {
    /// The weight area, [`PAD`] bytes of padding included.
    pub area: &'a [u8],
    /// How weights are stored.
    pub codes: CodeKind,
    /// Chunks of the layer.
    pub chunks: usize,
    /// Words of 16 columns of its widest chunk.
    pub words: usize,
    /// The active chunks, ascending.
    pub active: &'a [u32],
    /// The number of the first of them: 0 but within pages.
    pub first_slot: u32,
    /// For each chunk 0, or its place among the active ones plus 1; at least `chunks` entries.
    pub slots: &'a [u16],
}

/// Scratch memory of a walk.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    batch: walk::Batch,
    queue: queue::Queue,
}

/// Most chunks that one walk may ask for.
pub(crate) const MOST_ACTIVE: usize = 4096;

/// Moves every cursor over the layer's section and adds what it has for the active chunks: accumulator
/// `16 · words · i + child` for the `i`-th of them. `sums` holds [`CHUNK`] floats more than that needs.
pub(crate) fn add_layer(
    isa: Isa,
    layer: &Layer<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    assert!(layer.active.len() <= MOST_ACTIVE && layer.area.len() >= PAD && (1..=8).contains(&layer.words));
    assert!(sums.len() >= layer.active.len() * layer.words * 16 + CHUNK);
    assert!(layer.slots.len() >= layer.chunks);
    scratch.prepare(layer.active.len());
    match isa {
        // SAFETY: the instruction sets were detected, the sizes are asserted above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if Isa::Avx512.runs_here() => unsafe { avx512::layer(layer, cursors, scratch, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx2 if Isa::Avx2.runs_here() => unsafe {
            avx2::layer(layer, cursors, scratch, sums)
        },
        // SAFETY: the sizes are asserted above; the scalar form asks for nothing else.
        _ => unsafe { scalar::layer(layer, cursors, scratch, sums) },
    }
}

/// Moves every cursor over the head section and adds it to the sums of the head's `16 · words` columns.
pub(crate) fn add_head(
    isa: Isa,
    area: &[u8],
    codes: CodeKind,
    words: usize,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    assert!(area.len() >= PAD && words <= HEAD / 16);
    scratch.prepare(0);
    let of = head::Head { area, words, codes };
    match isa {
        // SAFETY: the instruction sets were detected, the sizes are asserted above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if Isa::Avx512.runs_here() => unsafe { avx512::head(&of, cursors, scratch, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx2 if Isa::Avx2.runs_here() => unsafe {
            avx2::head(&of, cursors, scratch, sums)
        },
        // SAFETY: the sizes are asserted above; the scalar form asks for nothing else.
        _ => unsafe { scalar::head(&of, cursors, scratch, sums) },
    }
}
