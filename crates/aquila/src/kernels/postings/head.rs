//! The head: all its columns are summed, whatever the beam.

use super::codes::{CodeKind, Codes};
use super::queue::QUEUE;
use super::section::number;
use super::walk::{AHEAD, NOWHERE, Steps};
use super::{Cursor, HEAD, HEAD_MASKS, PAD, Scratch};

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
