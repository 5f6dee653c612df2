//! The head: all its columns are summed, whatever the beam.

use super::codes::{CodeKind, Codes};
use super::full::{AT_HAND, Columns, Full};
use super::queue::QUEUE;
use super::section::number;
use super::walk::{NOWHERE, Steps};
use super::{Cursor, HEAD, HEAD_FULL, HEAD_MASKS, PAD, Scratch};

/// The head of a model: layers so small that all their columns are summed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub area: &'a [u8],
    pub words: usize,
    pub codes: CodeKind,
}

/// See [`super::add_head`].
///
/// # Safety
/// The area holds [`PAD`] bytes or more; the processor has the steps' instruction set.
#[inline(always)]
pub(super) unsafe fn add<C: Codes, S: Steps<C>>(
    steps: S,
    codes: C,
    head: &Head<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    let Scratch { queue, batch } = scratch;
    batch.full.clear();
    let area = head.area;
    for cursor in cursors {
        let Cursor { at, x } = *cursor;
        let x = x * codes.unit();
        cursor.at = NOWHERE;
        let Some(&n) = area.get(at) else { continue };
        let at = at + 1;
        if n == HEAD_FULL {
            let end = at + 16 * head.words * C::BYTES;
            if end > area.len() - PAD {
                continue;
            }
            batch.full.push(Full { codes: at, x });
            cursor.at = end;
            if batch.full.len() >= AT_HAND {
                // SAFETY: the sections' ends were checked.
                unsafe { add_full::<C, S>(steps, head, &mut batch.full, sums) };
            }
            continue;
        }
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
            cursor.at = end;
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
            unsafe { steps.masked(area, code, mask as u128, x, std::slice::from_mut(sums)) };
            code += mask.count_ones() as usize * C::BYTES;
        }
        cursor.at = code;
    }
    // SAFETY: as above.
    unsafe { add_full::<C, S>(steps, head, &mut batch.full, sums) };
    queue.empty(sums);
}

/// Adds the full sections at hand.
///
/// # Safety
/// As [`add`]; the sections end [`PAD`] bytes before the area or earlier.
#[inline(always)]
unsafe fn add_full<C: Codes, S: Steps<C>>(
    steps: S,
    head: &Head<'_>,
    at_hand: &mut Vec<Full>,
    sums: &mut [f32; HEAD],
) {
    let of = Columns { chunks: &[0], words: head.words, sums };
    // SAFETY: as the caller's; a section has codes for all words.
    unsafe { steps.full(head.area, at_hand, of) };
    at_hand.clear();
}
