//! The walk itself, written once over the steps that each instruction set has its own form of.

#![expect(clippy::too_many_arguments, reason = "frames of one inner loop, split for reading")]

use super::codes::Codes;
use super::full::{AT_HAND, Columns, Full, add_full};
use super::queue::Queue;
use super::rows::{Rows, add_entries, add_masks};
use super::section::{Header, Hit, Page, pages, section};
use super::whole::{Whole, add_whole};
use super::{Cursor, FORM_FULL, FORM_PAGES, Layer, PAGE, Scratch};

/// Hits of one section, and what is at hand by its kind.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub hits: Vec<Hit>,
    pub entries: Rows,
    pub masks: Rows,
    pub whole: Vec<Whole>,
    pub full: Vec<Full>,
    pub pages: Vec<Page>,
}

impl Scratch {
    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        let Batch { hits, entries, masks, whole, full, pages } = &self.batch;
        let rows = entries.bytes() + masks.bytes() + size_of::<Hit>() * hits.capacity();
        let sections = size_of::<Whole>() * whole.capacity() + size_of::<Full>() * full.capacity();
        rows + sections + size_of::<Page>() * pages.capacity() + self.queue.bytes()
    }

    /// Makes room for the hits of that many chunks.
    pub(super) fn prepare(&mut self, active: usize) {
        if self.batch.hits.len() < active + 1 {
            self.batch.hits.resize(active + 1, Hit::default());
            self.batch.entries.prepare(active);
            self.batch.masks.prepare(active);
            self.batch.whole.reserve(AT_HAND);
            self.batch.full.reserve(AT_HAND);
            self.batch.pages.reserve(PAGES_AT_HAND + active);
        }
    }
}

/// The steps that each instruction set has its own form of.
///
/// # Safety
/// Every method reads up to [`PAD`] bytes behind the `len`, `count` or `n` items at its place: the caller has checked
/// that the items end [`PAD`] bytes before the area does. The processor has the instruction set.
pub(super) unsafe trait Steps<C: Codes>: Copy {
    /// The bytes from `at` to behind the `nth` byte that has bit 7 set; `len` if there are fewer within `len`.
    unsafe fn skip_rows(self, area: &[u8], at: usize, len: usize, nth: usize) -> usize;

    /// Queues up to 16 entries of a row: `child & 127` plus `base` with the weight times `x`, up to the last of the row.
    /// Returns how many there were in front of the end and whether the row ended.
    unsafe fn entries(
        self,
        area: &[u8],
        children: usize,
        codes: usize,
        n: usize,
        base: u32,
        x: f32,
        queue: &mut Queue,
    ) -> (usize, bool);

    /// Queues `n ≤ 16` columns of the head.
    unsafe fn columns(self, area: &[u8], columns: usize, codes: usize, n: usize, x: f32, queue: &mut Queue);

    /// Adds a row of masks: the weights of the masks' lanes, times `x`, to the sums of as many words, at most eight.
    unsafe fn masked(self, area: &[u8], codes: usize, masks: u128, x: f32, sums: &mut [[f32; 16]]);

    /// Adds the rows that whole sections have in one chunk, in their order, to the sums of its words.
    unsafe fn whole(self, area: &[u8], sections: &[Whole], chunk: usize, sums: &mut [[f32; 16]]);

    /// Adds what full sections have in some chunks, in their order.
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>);

    /// The eight bytes at a place of a section.
    unsafe fn read8(self, area: &[u8], at: usize) -> u64;

    /// The masks of up to eight words from a place of a section on, and no bits behind them.
    #[inline(always)]
    unsafe fn masks(self, area: &[u8], at: usize, words: usize) -> u128 {
        // SAFETY: as the caller's; 16 bytes from a mask on are within the padding.
        let (low, high) = unsafe { (self.read8(area, at), self.read8(area, at + 8)) };
        (u128::from(low) | u128::from(high) << 64) & u128::MAX >> (128 - 16 * words)
    }

    /// Asks for the cache line of a place that will be read soon; the place may be anywhere.
    fn prefetch(self, area: &[u8], at: usize);
}

/// Where the cursor of a feature goes whose block is damaged: past every area, with room to add to.
pub(crate) const NOWHERE: usize = usize::MAX / 2;

/// Pages at hand before they are opened: asked for one by one, each would be waited for.
const PAGES_AT_HAND: usize = 16;

/// Features ahead that are asked for while one is worked on.
pub(super) const AHEAD: usize = 12;

/// See [`super::add_layer`].
///
/// # Safety
/// The sizes are those that [`super::add_layer`] asserts; the processor has the steps' instruction set.
#[inline(always)]
pub(super) unsafe fn layer<C: Codes, S: Steps<C>>(
    steps: S,
    codes: C,
    layer: &Layer<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    let Scratch { batch, queue } = scratch;
    batch.entries.clear();
    batch.masks.clear();
    batch.whole.clear();
    batch.full.clear();
    batch.pages.clear();
    // A bitmap and its bases fill several lines.
    let lines = (layer.chunks.min(PAGE) * 5 / 32 / 64 + 2).min(8);
    for i in 0..cursors.len() {
        if let Some(next) = cursors.get(i + AHEAD) {
            for line in 0..lines {
                steps.prefetch(layer.area, next.at + 64 * line);
            }
        }
        let Cursor { at, x } = cursors[i];
        let x = x * codes.unit();
        let Some(&form) = layer.area.get(at) else { continue };
        cursors[i].at = if form == 0 {
            at + 1
        } else if form == FORM_PAGES {
            pages::<C, S>(steps, layer, at, x, &mut batch.pages).unwrap_or(NOWHERE)
        } else if form == FORM_FULL {
            match Full::find::<C>(layer, at, x) {
                Some((full, end)) => {
                    batch.full.push(full);
                    end
                }
                None => NOWHERE,
            }
        } else {
            place(steps, codes, layer, at, x, batch).unwrap_or(NOWHERE)
        };
        // SAFETY: as the caller's; the rows are of this layer's sections.
        unsafe { add_rows::<C, S>(steps, layer, batch, queue, sums) };
        if batch.pages.len() >= PAGES_AT_HAND {
            // SAFETY: as above.
            unsafe { open_pages::<C, S>(steps, layer, batch, queue, sums) };
        }
        if batch.whole.len() >= AT_HAND {
            // SAFETY: as above.
            unsafe { add_whole::<C, S>(steps, layer, &mut batch.whole, sums) };
        }
        if batch.full.len() >= AT_HAND {
            // SAFETY: as above.
            unsafe { add_full::<C, S>(steps, layer, &mut batch.full, sums) };
        }
    }
    // SAFETY: as above.
    unsafe {
        open_pages::<C, S>(steps, layer, batch, queue, sums);
        add_entries::<C, S>(steps, layer, &mut batch.entries, queue, sums);
        add_masks::<C, S>(steps, layer, &mut batch.masks, sums);
        add_whole::<C, S>(steps, layer, &mut batch.whole, sums);
        add_full::<C, S>(steps, layer, &mut batch.full, sums);
    }
    queue.empty(sums);
}

/// Adds the rows at hand where they are many.
///
/// # Safety
/// As [`layer`]; the rows are of its sections.
#[inline(always)]
unsafe fn add_rows<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    batch: &mut Batch,
    queue: &mut Queue,
    sums: &mut [f32],
) {
    if batch.entries.is_full() {
        // SAFETY: as the caller's.
        unsafe { add_entries::<C, S>(steps, layer, &mut batch.entries, queue, sums) };
    }
    if batch.masks.is_full() {
        // SAFETY: as the caller's.
        unsafe { add_masks::<C, S>(steps, layer, &mut batch.masks, sums) };
    }
}

/// Lists the hits of the pages at hand.
///
/// # Safety
/// As [`add_rows`].
#[inline(always)]
unsafe fn open_pages<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    batch: &mut Batch,
    queue: &mut Queue,
    sums: &mut [f32],
) {
    for i in 0..batch.pages.len() {
        let page = batch.pages[i];
        page.open::<C, S>(steps, layer, batch);
        // SAFETY: as the caller's.
        unsafe { add_rows::<C, S>(steps, layer, batch, queue, sums) };
    }
    batch.pages.clear();
}

/// Puts a section that is not of pages at hand. Returns where the next section begins.
#[inline(always)]
fn place<C: Codes, S: Steps<C>>(
    steps: S,
    _: C,
    layer: &Layer<'_>,
    at: usize,
    x: f32,
    batch: &mut Batch,
) -> Option<usize> {
    let header = Header::read(layer.area, at)?;
    if header.is_whole(layer) {
        let (whole, end) = Whole::find::<C>(&header, layer, x)?;
        batch.whole.push(whole);
        Some(end)
    } else {
        section::<C, S>(steps, layer, 0, layer.chunks, &header, x, batch)
    }
}
