//! The walk itself, written once over the steps that each instruction set has its own form of.

#![expect(clippy::too_many_arguments, reason = "frames of one inner loop, split for reading")]

use super::codes::{CodeKind, Codes};
use super::{Cursor, FORM_PAGES, HEAD, HEAD_MASKS, Layer, PAD, PAGE, Scratch, group_shift};

/// The head of a model: layers so small that all their columns are summed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub area: &'a [u8],
    pub words: usize,
    pub codes: CodeKind,
}

/// A hit of a section: in a list the row and the active chunk's number plus 1; in a bitmap 0 and the number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hit {
    row: u32,
    active: u32,
}

/// A row that waits to be added.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    /// Where the known place's children or masks stand; later the row's own.
    table: usize,
    /// Where the known place's weights stand; later the row's own.
    codes: usize,
    /// Weights of the section from there on.
    left: u32,
    rank: u32,
    /// The chunk's first accumulator.
    sums: u32,
    x: f32,
}

/// Hits of one section, and rows at hand by their kind.
#[derive(Debug, Default)]
pub(super) struct Batch {
    hits: Vec<Hit>,
    entries: Rows,
    masks: Rows,
}

/// Rows at hand; room for a batch and one section's hits more is made beforehand.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    len: usize,
}

impl Rows {
    #[inline(always)]
    fn push(&mut self, row: Row) {
        if let Some(to) = self.rows.get_mut(self.len) {
            *to = row;
            self.len += 1;
        }
    }

    /// Whether the rows at hand should be added before another section's come.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len >= BATCH
    }
}

/// Rows at hand before they are added. So many are listed, then found, then added, each step asking for
/// the cache lines of the next: the walk waits for memory else.
const BATCH: usize = 256;

/// (accumulator, product) pairs that wait to be added.
#[derive(Debug)]
pub(super) struct Queue {
    pub places: Box<[u32; QUEUE + 16]>,
    pub products: Box<[f32; QUEUE + 16]>,
    pub len: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { places: Box::new([0; QUEUE + 16]), products: Box::new([0.0; QUEUE + 16]), len: 0 }
    }
}

/// Pairs in the queue before it is emptied; the vectors hold 16 more.
pub(super) const QUEUE: usize = 1024;

impl Queue {
    /// Adds all products to their sums.
    #[inline(always)]
    fn empty(&mut self, sums: &mut [f32]) {
        let len = self.len.min(QUEUE + 16);
        for (place, product) in self.places[..len].iter().zip(&self.products[..len]) {
            // The place is within the sums by the caller's sizes; the check costs nothing beside the add.
            if let Some(sum) = sums.get_mut(*place as usize) {
                *sum += product;
            }
        }
        self.len = 0;
    }

    /// Appends one pair. The queue has room: it is emptied whenever it holds [`QUEUE`].
    #[inline(always)]
    pub fn push(&mut self, place: u32, product: f32) {
        if let (Some(p), Some(v)) = (self.places.get_mut(self.len), self.products.get_mut(self.len)) {
            (*p, *v) = (place, product);
            self.len += 1;
        }
    }

    /// Whether 16 more pairs might not fit afterwards.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len >= QUEUE
    }
}

impl Scratch {
    /// Makes room for the hits of that many chunks.
    pub(super) fn prepare(&mut self, active: usize) {
        if self.batch.hits.len() < active + 1 {
            self.batch.hits.resize(active + 1, Hit::default());
            self.batch.entries.rows.resize(BATCH + active, Row::default());
            self.batch.masks.rows.resize(BATCH + active, Row::default());
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

    /// Queues up to 16 entries of a row: `child & mask` plus `base` with the weight times `x`, up to the last of
    /// the row. Returns how many there were in front of the end and whether the row ended.
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

    /// Adds the weights of a mask's lanes, times `x`, to 16 sums.
    unsafe fn masked(self, area: &[u8], codes: usize, mask: u16, x: f32, sums: &mut [f32; 16]);

    /// The eight bytes at a place of a section.
    unsafe fn read8(self, area: &[u8], at: usize) -> u64;

    /// Asks for the cache line of a place that will be read soon; the place may be anywhere.
    fn prefetch(self, area: &[u8], at: usize);
}

#[inline(always)]
fn get<const N: usize>(area: &[u8], at: usize) -> Option<[u8; N]> {
    area.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A u16 or a u32, as `count` says.
#[inline(always)]
fn number(area: &[u8], at: usize, count: usize) -> Option<usize> {
    if count == 2 {
        get(area, at).map(|b| u16::from_le_bytes(b) as usize)
    } else {
        get(area, at).map(|b| u32::from_le_bytes(b) as usize)
    }
}

/// Where the cursor of a feature goes whose block is damaged: past every area, with room to add to.
const NOWHERE: usize = usize::MAX / 2;

/// Features ahead that are asked for while one is worked on.
const AHEAD: usize = 12;

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
    (batch.entries.len, batch.masks.len) = (0, 0);
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
            pages::<C, S>(steps, layer, at, x, batch).unwrap_or(NOWHERE)
        } else {
            section::<C, S>(steps, layer, 0, layer.chunks, at, x, batch).unwrap_or(NOWHERE)
        };
        if batch.entries.is_full() {
            // SAFETY: as the caller's; the rows are of this layer's sections.
            unsafe { add_entries::<C, S>(steps, layer, &mut batch.entries, queue, sums) };
        }
        if batch.masks.is_full() {
            // SAFETY: as above.
            unsafe { add_masks::<C, S>(steps, layer, &mut batch.masks, sums) };
        }
    }
    // SAFETY: as above.
    unsafe {
        add_entries::<C, S>(steps, layer, &mut batch.entries, queue, sums);
        add_masks::<C, S>(steps, layer, &mut batch.masks, sums);
    }
    queue.empty(sums);
}

/// A section of pages: the pages of active chunks are found by their numbers.
#[inline(always)]
fn pages<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at: usize,
    x: f32,
    batch: &mut Batch,
) -> Option<usize> {
    let bytes = number(layer.area, at + 1, 4)?;
    let count = number(layer.area, at + 5, 4)?;
    let end = at + 5 + bytes;
    let directory = layer.area.get(at + 9..at.checked_add(9 + 8 * count)?)?.as_chunks::<8>().0;
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
            let first = page as usize * PAGE;
            let chunks = PAGE.min(layer.chunks.saturating_sub(first));
            let part = Layer {
                active: &active[..of_page],
                first_slot: (layer.active.len() - active.len()) as u32,
                slots: layer.slots.get(first..)?,
                chunks,
                ..*layer
            };
            let place = at + entry(low).1;
            if !matches!(layer.area.get(place), None | Some(&0 | &FORM_PAGES)) {
                section::<C, S>(steps, &part, first as u32, PAGE, place, x, batch);
            }
        }
        active = &active[of_page..];
    }
    Some(end)
}

/// Lists the hits of a section that is not of pages. Returns where the next section begins.
#[inline(always)]
fn section<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    first: u32,
    span: usize,
    at: usize,
    x: f32,
    batch: &mut Batch,
) -> Option<usize> {
    let area = layer.area;
    let form = *area.get(at)?;
    let (rows, n, kind, masks, count, mut at) = if form >= 16 {
        let rows = usize::from(form >> 4);
        (rows, rows + usize::from(form & 15), 0, false, 2, at + 1)
    } else if form == 0 || form >= FORM_PAGES {
        return None;
    } else {
        let form = form - 1;
        let count = 2 + 2 * usize::from(form & 1);
        let rows = number(area, at + 1, count)?;
        let n = number(area, at + 1 + count, count)?;
        (rows, n, form >> 2, form & 2 != 0, count, at + 1 + 2 * count)
    };
    let mut s = Parsed { at: 0, codes: 0, rows, n, x, masks, count };
    if kind == 2 {
        let bits = at;
        let bases = at + span.div_ceil(8);
        let shift = group_shift(masks, n, span);
        let groups = span.div_ceil(1 << shift) - 1;
        at = bases + groups * count;
        let end = s.place::<C>(layer, at)?;
        // SAFETY: the section's end was checked just now.
        unsafe { bitmap::<C, S>(steps, layer, first, span, bits, bases, shift, &s, batch) };
        return Some(end);
    }
    let found;
    if kind == 0 {
        (found, at) = list_hits::<1>(layer, rows, at, &mut batch.hits)?;
    } else {
        (found, at) = list_hits::<2>(layer, rows, at, &mut batch.hits)?;
    }
    let end = s.place::<C>(layer, at)?;
    let Batch { hits, entries, masks: masked } = batch;
    for hit in &hits[..found] {
        if masks {
            s.mask_row::<C, S>(steps, layer, hit.row as usize, hit.active - 1, masked);
        } else {
            s.entry_row::<C, S>(steps, layer, hit.row, 0, hit.active - 1, entries);
        }
    }
    Some(end)
}

/// A section's numbers. Its places are checked by [`Parsed::place`].
struct Parsed {
    /// Where its children, masks or row bases begin, and its weights but for masks of several words.
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

    /// Sets the places behind the list or bitmap, which ends at `at`. Returns the section's end if that is
    /// [`PAD`] bytes before the area's.
    #[inline(always)]
    fn place<C: Codes>(&mut self, layer: &Layer<'_>, at: usize) -> Option<usize> {
        let body = match (self.masks, layer.words) {
            (false, _) => self.n,
            (true, 1) => self.eights() + 2 * self.rows,
            (true, words) => (2 * words + self.count) * self.rows,
        };
        self.at = at;
        self.codes = at + body;
        let end = self.codes + self.n * C::BYTES;
        (end <= layer.area.len() - PAD).then_some(end)
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
        // Weights of ten rows and of one differ little beside a cache line: two a row is a fair guess.
        let guess = known + 2 * rank as usize;
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

/// Finds and adds the rows of entries at hand.
///
/// # Safety
/// As [`layer`]; each row's place and weights are within a section that ends [`PAD`] bytes before the area.
#[inline(always)]
unsafe fn add_entries<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at_hand: &mut Rows,
    queue: &mut Queue,
    sums: &mut [f32],
) {
    let rows = &mut at_hand.rows[..at_hand.len];
    for row in rows.iter_mut() {
        // SAFETY: as the caller's.
        let skipped = unsafe { steps.skip_rows(layer.area, row.table, row.left as usize, row.rank as usize) };
        row.table += skipped;
        row.codes += skipped * C::BYTES;
        row.left -= skipped as u32;
        steps.prefetch(layer.area, row.codes);
    }
    for row in rows.iter() {
        let Row { mut table, mut codes, left, sums: base, x, .. } = *row;
        let mut left = left as usize;
        while left > 0 {
            // SAFETY: as the caller's, and something is left.
            let (taken, ended) = unsafe { steps.entries(layer.area, table, codes, left, base, x, queue) };
            if queue.is_full() {
                queue.empty(sums);
            }
            if ended {
                break;
            }
            table += taken;
            codes += taken * C::BYTES;
            left -= taken;
        }
    }
    at_hand.len = 0;
}

/// Finds and adds the rows of masks at hand.
///
/// # Safety
/// As [`add_entries`].
#[inline(always)]
unsafe fn add_masks<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at_hand: &mut Rows,
    sums: &mut [f32],
) {
    let rows = &mut at_hand.rows[..at_hand.len];
    if layer.words == 1 {
        for row in rows.iter_mut() {
            // SAFETY: 16 bytes from a mask on are within the padding.
            let eight = unsafe {
                let (low, high) =
                    (steps.read8(layer.area, row.table), steps.read8(layer.area, row.table + 8));
                u128::from(low) | u128::from(high) << 64
            };
            let before = (eight & !(u128::MAX << (16 * (row.rank & 7)))).count_ones() as usize;
            row.table += 2 * row.rank as usize;
            row.codes += before.min(row.left as usize) * C::BYTES;
            steps.prefetch(layer.area, row.codes);
        }
    }
    let words = layer.words.min(8);
    for row in rows.iter() {
        // SAFETY: 16 bytes from a mask on are within the padding.
        let masks = unsafe {
            let (low, high) = (steps.read8(layer.area, row.table), steps.read8(layer.area, row.table + 8));
            (u128::from(low) | u128::from(high) << 64) & u128::MAX >> (128 - 16 * words)
        };
        let first = row.sums as usize;
        let Some(sums) = sums.get_mut(first..first + 16 * words) else { continue };
        if masks.count_ones() > row.left {
            continue;
        }
        // Every word's place is counted anew, so that no word waits for another.
        for (word, sums) in sums.as_chunks_mut().0.iter_mut().enumerate() {
            let before = (masks & !(u128::MAX << (16 * word))).count_ones() as usize;
            let mask = (masks >> (16 * word)) as u16;
            // SAFETY: the codes begin within the section; 16 of them are fewer than PAD bytes.
            unsafe { steps.masked(layer.area, row.codes + before * C::BYTES, mask, row.x, sums) };
        }
    }
    at_hand.len = 0;
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
    let Batch { hits, entries, masks: masked } = batch;
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

/// See [`super::add_head`].
///
/// # Safety
/// The area holds [`PAD`] bytes or more; the processor has the steps' instruction set.
#[inline(always)]
pub(super) unsafe fn head<C: Codes, S: Steps<C>>(
    steps: S,
    codes: C,
    head: &Head<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    let queue = &mut scratch.queue;
    let area = head.area;
    for i in 0..cursors.len() {
        if let Some(next) = cursors.get(i + AHEAD) {
            steps.prefetch(area, next.at);
            steps.prefetch(area, next.at + 64);
        }
        let Cursor { at, x } = cursors[i];
        let x = x * codes.unit();
        cursors[i].at = NOWHERE;
        let Some(&n) = area.get(at) else { continue };
        let at = at + 1;
        if n != HEAD_MASKS {
            let n = usize::from(n);
            let (first, end) = (at + n, at + n + n * C::BYTES);
            if end > area.len() - PAD {
                continue;
            }
            for from in (0..n).step_by(16) {
                let left = (n - from).min(16);
                // SAFETY: the section ends PAD bytes before the area.
                unsafe { steps.columns(area, at + from, first + from * C::BYTES, left, x, queue) };
            }
            cursors[i].at = end;
            if queue.len >= QUEUE / 2 {
                queue.empty(sums);
            }
            continue;
        }
        let mut code = at + 2 * head.words;
        for (word, sums) in sums.as_chunks_mut().0.iter_mut().enumerate().take(head.words) {
            let Some(mask) = number(area, at + 2 * word, 2) else { break };
            // The codes' end is known only behind the masks, so each word is checked.
            if code > area.len() - PAD {
                break;
            }
            // SAFETY: the codes begin PAD bytes before the area's end; 16 of them are fewer bytes.
            unsafe { steps.masked(area, code, mask as u16, x, sums) };
            code += mask.count_ones() as usize * C::BYTES;
        }
        cursors[i].at = code;
    }
    queue.empty(sums);
}
