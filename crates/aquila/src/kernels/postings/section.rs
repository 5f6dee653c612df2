//! One section: its numbers, and which of its rows are of active chunks.

#![expect(clippy::too_many_arguments, reason = "frames of one inner loop, split for reading")]

use super::codes::Codes;
use super::rows::{Row, Rows};
use super::walk::{Batch, Steps};
use super::{FORM_PAGES, Layer, PAD, PAGE, group_shift};

/// A hit of a section: in a list the row and the active chunk's number plus 1; in a bitmap 0 and the number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hit {
    row: u32,
    active: u32,
}

#[inline(always)]
fn get<const N: usize>(area: &[u8], at: usize) -> Option<[u8; N]> {
    area.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A u16 or a u32, as `count` says.
#[inline(always)]
pub(super) fn number(area: &[u8], at: usize, count: usize) -> Option<usize> {
    if count == 2 {
        get(area, at).map(|b| u16::from_le_bytes(b) as usize)
    } else {
        get(area, at).map(|b| u32::from_le_bytes(b) as usize)
    }
}

/// Whether products of a file's numbers, of 32 bits each, may leave those of the machine: damaged ones then become the
/// largest, which is behind every area.
const NARROW: bool = usize::BITS <= 32;

#[inline(always)]
fn times(a: usize, b: usize) -> usize {
    if NARROW { a.saturating_mul(b) } else { a * b }
}

#[inline(always)]
fn plus(a: usize, b: usize) -> usize {
    if NARROW { a.saturating_add(b) } else { a + b }
}

/// How a section says which chunks it has rows in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parents {
    Gaps8,
    Gaps16,
    Bitmap,
}

/// What stands at a section's begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub rows: usize,
    /// Weights.
    pub n: usize,
    pub parents: Parents,
    /// Whether rows are masks, not entries.
    pub masks: bool,
    /// Bytes of a number.
    pub count: usize,
    /// Where the list or bitmap begins.
    pub at: usize,
}

impl Header {
    /// Reads the header of a section that is neither empty nor of pages.
    #[inline(always)]
    pub fn read(area: &[u8], at: usize) -> Option<Self> {
        let form = *area.get(at)?;
        if form >= 16 {
            let rows = usize::from(form >> 4);
            let n = rows + usize::from(form & 15);
            return Some(Self { rows, n, parents: Parents::Gaps8, masks: false, count: 2, at: at + 1 });
        }
        if form == 0 || form >= FORM_PAGES {
            return None;
        }
        let form = form - 1;
        let count = 2 + 2 * usize::from(form & 1);
        let rows = number(area, at + 1, count)?;
        let n = number(area, at + 1 + count, count)?;
        let parents = match form >> 2 {
            0 => Parents::Gaps8,
            1 => Parents::Gaps16,
            _ => Parents::Bitmap,
        };
        Some(Self { rows, n, parents, masks: form & 2 != 0, count, at: at + 1 + 2 * count })
    }

    /// The places behind the list or bitmap, which ends at `at`, and the section's end if that is [`PAD`] bytes
    /// before the area's.
    #[inline(always)]
    pub fn place<C: Codes>(&self, layer: &Layer<'_>, at: usize, x: f32) -> Option<(Parsed, usize)> {
        let Self { rows, n, masks, count, .. } = *self;
        let mut s = Parsed { at, codes: at, rows, n, x, masks, count };
        let before = match (masks, layer.words) {
            (false, _) => n,
            (true, 1) => plus(s.eights(), times(2, rows)),
            (true, words) => times(2 * words + count, rows),
        };
        s.codes = plus(s.codes, before);
        let end = plus(s.codes, times(n, C::BYTES));
        (end <= layer.area.len() - PAD).then_some((s, end))
    }
}

/// A page with active chunks, asked from memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Where its section begins.
    place: usize,
    /// Its number.
    number: u32,
    /// Which of the active chunks are its own.
    from: u32,
    to: u32,
    x: f32,
}

/// Bytes of a page that are asked for: its header, its bitmap and the first of the numbers behind.
const ASKED: usize = 5 + PAGE / 8 + 64;

/// A section of pages: the pages of active chunks are found by their numbers and asked for. Returns where the next
/// section begins.
#[inline(always)]
pub(super) fn pages<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at: usize,
    x: f32,
    at_hand: &mut Vec<Page>,
) -> Option<usize> {
    let bytes = number(layer.area, at + 1, 4)?;
    let count = number(layer.area, at + 5, 4)?;
    let end = plus(at + 5, bytes);
    let directory = layer.area.get(at + 9..at.checked_add(plus(9, times(8, count)))?)?.as_chunks::<8>().0;
    let entry = |i: usize| {
        let [a, b, c, d, e, f, g, h] = directory[i];
        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]) as usize)
    };
    let mut active = layer.active;
    while let Some(&chunk) = active.first() {
        let page = chunk / PAGE as u32;
        // At least one, whatever the order of untrusted numbers.
        let of_page = active.partition_point(|c| c / PAGE as u32 <= page).max(1);
        // A binary search over untrusted numbers ends in any case.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            if entry(middle).0 < page { low = middle + 1 } else { high = middle }
        }
        if low < count && entry(low).0 == page {
            let place = plus(at, entry(low).1);
            for line in (0..ASKED).step_by(64) {
                steps.prefetch(layer.area, place.wrapping_add(line));
            }
            let from = (layer.active.len() - active.len()) as u32;
            at_hand.push(Page { place, number: page, from, to: from + of_page as u32, x });
        }
        active = &active[of_page..];
    }
    Some(end)
}

impl Page {
    /// Lists the hits of the page.
    #[inline(always)]
    pub fn open<C: Codes, S: Steps<C>>(&self, steps: S, layer: &Layer<'_>, batch: &mut Batch) {
        let first = self.number as usize * PAGE;
        let Some(slots) = layer.slots.get(first..) else { return };
        let part = Layer {
            active: &layer.active[self.from as usize..self.to as usize],
            first_slot: self.from,
            slots,
            chunks: PAGE.min(layer.chunks.saturating_sub(first)),
            ..*layer
        };
        if let Some(header) = Header::read(layer.area, self.place) {
            section::<C, S>(steps, &part, first as u32, PAGE, &header, self.x, batch);
        }
    }
}

/// Lists the hits of a section that is not of pages. Returns where the next section begins.
#[inline(always)]
pub(super) fn section<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    first: u32,
    span: usize,
    header: &Header,
    x: f32,
    batch: &mut Batch,
) -> Option<usize> {
    let Header { rows, n, parents, masks, count, mut at } = *header;
    if parents == Parents::Bitmap {
        let bits = at;
        let bases = at + span.div_ceil(8);
        let shift = group_shift(masks, n, span);
        let groups = span.div_ceil(1 << shift) - 1;
        at = bases + groups * count;
        let (s, end) = header.place::<C>(layer, at, x)?;
        // SAFETY: the section's end was checked just now.
        unsafe { bitmap::<C, S>(steps, layer, first, span, bits, bases, shift, &s, batch) };
        return Some(end);
    }
    let found;
    if parents == Parents::Gaps8 {
        (found, at) = list_hits::<1>(layer, rows, at, &mut batch.hits)?;
    } else {
        (found, at) = list_hits::<2>(layer, rows, at, &mut batch.hits)?;
    }
    let (s, end) = header.place::<C>(layer, at, x)?;
    let Batch { hits, entries, masks: masked, .. } = batch;
    for hit in &hits[..found] {
        if masks {
            s.mask_row::<C, S>(steps, layer, hit.row as usize, hit.active - 1, masked);
        } else {
            s.entry_row::<C, S>(steps, layer, hit.row, 0, hit.active - 1, entries);
        }
    }
    Some(end)
}

/// A section's numbers, its places checked by [`Header::place`].
pub(super) struct Parsed {
    /// Where its children, masks or row bases begin, and its weights except for masks of several words.
    at: usize,
    codes: usize,
    rows: usize,
    n: usize,
    x: f32,
    masks: bool,
    count: usize,
}

impl Parsed {
    /// Bytes of the table of what stands before every eight rows of masks.
    #[inline(always)]
    fn eights(&self) -> usize {
        self.count * ((self.rows.max(1) - 1) / 8)
    }

    /// Puts a row of entries at hand: `rank` rows after `known` weights.
    #[inline(always)]
    fn entry_row<C: Codes, S: Steps<C>>(
        &self,
        steps: S,
        layer: &Layer<'_>,
        rank: u32,
        known: usize,
        active: u32,
        at_hand: &mut Rows,
    ) {
        let known = known.min(self.n);
        // Rows are counted from the known place on. Weights of ten rows and of one differ little beside a cache line: two
        // a row is a fair guess of where the wanted one is.
        let guess = known + 2 * rank as usize;
        steps.prefetch(layer.area, self.at + known);
        steps.prefetch(layer.area, self.at + guess);
        steps.prefetch(layer.area, self.codes + guess * C::BYTES);
        at_hand.push(Row {
            table: self.at + known,
            codes: self.codes + known * C::BYTES,
            left: (self.n - known) as u32,
            rank,
            sums: active * 16 * layer.words as u32,
            x: self.x,
        });
    }

    /// Puts a row of masks at hand.
    #[inline(always)]
    fn mask_row<C: Codes, S: Steps<C>>(
        &self,
        steps: S,
        layer: &Layer<'_>,
        row: usize,
        active: u32,
        at_hand: &mut Rows,
    ) {
        if row >= self.rows {
            return;
        }
        let one = layer.words == 1;
        // Of one word, the first eight rows have no number; what is read in its place is not used.
        let place = if one { (row / 8).max(1) - 1 } else { row };
        let weights = number(layer.area, self.at + self.count * place, self.count).unwrap_or(0);
        let weights = if one && row < 8 { 0 } else { weights.min(self.n) };
        let (table, codes, rank) = if one {
            let codes = self.codes + weights * C::BYTES;
            (self.at + self.eights() + 16 * (row / 8), codes, row % 8)
        } else {
            let masks = 2 * layer.words;
            let table = self.at + self.count * self.rows + masks * row + weights * C::BYTES;
            (table, table + masks, 0)
        };
        steps.prefetch(layer.area, table);
        steps.prefetch(layer.area, codes + 2 * rank * C::BYTES);
        at_hand.push(Row {
            table,
            codes,
            left: (self.n - weights) as u32,
            rank: rank as u32,
            sums: active * 16 * layer.words as u32,
            x: self.x,
        });
    }
}

/// Lists the rows of active chunks in a list of gaps; returns their number and the place behind the list.
#[inline(always)]
fn list_hits<const BYTES: usize>(
    layer: &Layer<'_>,
    rows: usize,
    at: usize,
    hits: &mut [Hit],
) -> Option<(usize, usize)> {
    let go_on = (1usize << (8 * BYTES)) - 1;
    let area = layer.area;
    let slots = &layer.slots[..layer.chunks];
    let (mut at, mut found, mut next) = (at, 0, 0);
    for row in 0..rows {
        let mut gap = read_gap::<BYTES>(area, at)?;
        at += BYTES;
        while gap == go_on {
            next += go_on;
            if next >= slots.len() {
                return None;
            }
            gap = read_gap::<BYTES>(area, at)?;
            at += BYTES;
        }
        next += gap;
        let slot = *slots.get(next)?;
        next += 1;
        // A chunk comes once, so there are no more hits than active chunks.
        *hits.get_mut(found)? = Hit { row: row as u32, active: u32::from(slot) };
        found += usize::from(slot != 0);
    }
    Some((found, at))
}

#[inline(always)]
fn read_gap<const BYTES: usize>(area: &[u8], at: usize) -> Option<usize> {
    if BYTES == 1 { area.get(at).map(|b| usize::from(*b)) } else { number(area, at, 2) }
}

/// Puts the rows of active chunks whose bit is set at hand.
///
/// # Safety
/// The section's end was checked; its bitmap at `bits` has `span` bits.
#[inline(always)]
unsafe fn bitmap<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    first: u32,
    span: usize,
    bits: usize,
    bases: usize,
    shift: u32,
    s: &Parsed,
    batch: &mut Batch,
) {
    let area = layer.area;
    let Batch { hits, entries, masks: masked, .. } = batch;
    // Which bits are set, without a branch: half of the active chunks have no row, in no order.
    let mut found = 0;
    for (i, &chunk) in layer.active.iter().enumerate() {
        let chunk = chunk.wrapping_sub(first) as usize;
        // Damaged tables may ask a page for chunks of another.
        let Some(byte) = area.get(bits + chunk / 8).filter(|_| chunk < span) else { continue };
        let Some(hit) = hits.get_mut(found) else { break };
        *hit = Hit { row: chunk as u32, active: layer.first_slot + i as u32 };
        found += usize::from(byte >> (chunk % 8) & 1);
    }
    for hit in &hits[..found] {
        let (group, bit) = ((hit.row >> shift) as usize, hit.row & ((1 << shift) - 1));
        // SAFETY: a bit of the group is within the section, by the caller; groups begin at whole bytes.
        let word = unsafe { steps.read8(area, bits + (group << shift) / 8) };
        let rank = (word & !(u64::MAX << bit)).count_ones();
        // The weights or rows before the group; the first group has none.
        let at = bases + group.saturating_sub(1) * s.count;
        // SAFETY: the table of bases is within the section as its group's bits are.
        let number = unsafe { steps.read8(area, at) };
        let wanted = if s.count == 2 { 0xffff } else { 0xffff_ffff };
        let base = if group > 0 { (number & wanted) as usize } else { 0 };
        if s.masks {
            s.mask_row::<C, S>(steps, layer, base + rank as usize, hit.active, masked);
        } else {
            s.entry_row::<C, S>(steps, layer, rank, base, hit.active, entries);
        }
    }
}
