//! Rows at hand: so many are listed, then found, then added.

use super::Layer;
use super::codes::Codes;
use super::queue::Queue;
use super::walk::Steps;

/// A row that waits to be added.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    /// Where the known place's children or masks stand; later the row's own.
    pub table: usize,
    /// Where the known place's weights stand; later the row's own.
    pub codes: usize,
    /// Weights of the section from there on.
    pub left: u32,
    pub rank: u32,
    /// The chunk's first accumulator.
    pub sums: u32,
    pub x: f32,
}

/// Rows at hand; room for a batch and one section's hits more is made beforehand.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    len: usize,
}

impl Rows {
    /// Makes room for a batch and the hits of that many chunks.
    pub fn prepare(&mut self, active: usize) {
        self.rows.resize(BATCH + active, Row::default());
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        size_of::<Row>() * self.rows.capacity()
    }

    /// Forgets all rows.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub fn push(&mut self, row: Row) {
        if let Some(to) = self.rows.get_mut(self.len) {
            *to = row;
            self.len += 1;
        }
    }

    /// Whether the rows at hand should be added before another section's come.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len >= BATCH
    }
}

/// Rows at hand before they are added. So many are listed, then found, then added, each step asking for
/// the cache lines of the next: the walk waits for memory else.
const BATCH: usize = 256;

/// Finds and adds the rows of entries at hand.
///
/// # Safety
/// As [`super::walk::layer`]; each row's place and weights are within a section that ends [`PAD`] bytes before the area.
#[inline(always)]
pub(super) unsafe fn add_entries<C: Codes, S: Steps<C>>(
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
pub(super) unsafe fn add_masks<C: Codes, S: Steps<C>>(
    steps: S,
    layer: &Layer<'_>,
    at_hand: &mut Rows,
    sums: &mut [f32],
) {
    let rows = &mut at_hand.rows[..at_hand.len];
    if layer.words == 1 {
        for row in rows.iter_mut() {
            // SAFETY: 16 bytes from a mask on are within the padding.
            let eight = unsafe { steps.masks(layer.area, row.table, 8) };
            let before = (eight & !(u128::MAX << (16 * (row.rank & 7)))).count_ones() as usize;
            row.table += 2 * row.rank as usize;
            row.codes += before.min(row.left as usize) * C::BYTES;
            steps.prefetch(layer.area, row.codes);
        }
    }
    let words = layer.words.min(8);
    for row in rows.iter() {
        // SAFETY: 16 bytes from a mask on are within the padding.
        let masks = unsafe { steps.masks(layer.area, row.table, words) };
        let first = row.sums as usize;
        let Some(sums) = sums.get_mut(first..first + 16 * words) else { continue };
        if masks.count_ones() > row.left {
            continue;
        }
        // SAFETY: the codes begin within the section; those of eight words are no more than PAD bytes.
        unsafe { steps.masked(layer.area, row.codes, masks, row.x, sums.as_chunks_mut().0) };
    }
    at_hand.len = 0;
}
