//! The walk's steps in plain Rust: complete, safe, and what the vector forms are compared with.

use super::codes::{Bf16Codes, CodeKind, Codes, F32Codes};
use super::full::{Columns, Full};
use super::head::{self, Head};
use super::queue::Queue;
use super::walk::{self, Steps};
use super::whole::Whole;
use super::{Cursor, HEAD, Layer, Scratch};
use crate::kernels::prefetch;

#[derive(Clone, Copy)]
struct Scalar<C>(C);

// SAFETY: every access is checked.
unsafe impl<C: Codes> Steps<C> for Scalar<C> {
    #[inline(always)]
    unsafe fn skip_rows(self, area: &[u8], at: usize, len: usize, nth: usize) -> usize {
        // A product with ONES adds up, in each byte, the bits of all bytes up to it.
        const ONES: u64 = 0x0101_0101_0101_0101;
        let (mut left, mut done) = (nth as u64, 0);
        if left == 0 {
            return 0;
        }
        while done < len {
            // Which of four words it is in is found without a branch.
            let (mut words, mut before, mut sum) = ([0; 4], [0; 5], 0);
            for (i, counts) in words.iter_mut().enumerate() {
                // SAFETY: as the caller's; 32 bytes from within a section on are within the padding.
                let word = unsafe { <Self as Steps<C>>::read8(self, area, at + done + 8 * i) };
                *counts = (word >> 7 & ONES).wrapping_mul(ONES);
                sum += *counts >> 56;
                before[i + 1] = sum;
            }
            if sum >= left {
                let word = before[1..4].iter().map(|b| usize::from(*b < left)).sum::<usize>();
                // Bit 7 of a byte stays set where fewer than `left` were counted: those are the bytes in front.
                let fewer = (ONES * (left - before[word] - 1) + 0x80 * ONES) - words[word];
                let front = (fewer >> 7 & ONES).wrapping_mul(ONES) >> 56;
                return (done + 8 * word + front as usize + 1).min(len);
            }
            left -= sum;
            done += 32;
        }
        len
    }

    #[inline(always)]
    unsafe fn entries(
        self,
        area: &[u8],
        children: usize,
        codes: usize,
        n: usize,
        base: u32,
        x: f32,
        queue: &mut Queue,
    ) -> (usize, bool) {
        // Four at a time, however many the row has: where a row ends is mispredicted.
        let Some(children) = area.get(children..).and_then(|a| a.first_chunk::<4>()) else {
            return (n, true);
        };
        let weights = self.0.decode4(area.get(codes..).unwrap_or(&[]));
        let places = children.map(|child| base + u32::from(child & 127));
        let products = weights.map(|weight| weight * x);
        let lasts = u32::from_le_bytes(*children) & 0x8080_8080;
        // Bit 31 stands in for "none".
        let last = (lasts | 1 << 31).trailing_zeros();
        let taken = (last as usize / 8 + 1).min(n);
        queue.put4(places, products, taken);
        (taken, taken == n || lasts >> last & 1 != 0)
    }

    #[inline(always)]
    unsafe fn columns(self, area: &[u8], columns: usize, codes: usize, n: usize, x: f32, queue: &mut Queue) {
        let codes = area.get(codes..codes + n * C::BYTES).unwrap_or(&[]).chunks_exact(C::BYTES);
        for (column, code) in area.get(columns..columns + n).unwrap_or(&[]).iter().zip(codes) {
            queue.push(u32::from(*column), self.0.decode(code) * x);
        }
    }

    #[inline(always)]
    unsafe fn masked(self, area: &[u8], codes: usize, masks: u128, x: f32, sums: &mut [[f32; 16]]) {
        let mut codes = area.get(codes..).unwrap_or(&[]).chunks_exact(C::BYTES);
        // One loop for four words: a loop's end is mispredicted, and rows are short.
        for (mut masks, sums) in [masks as u64, (masks >> 64) as u64].into_iter().zip(sums.chunks_mut(4)) {
            let sums = sums.as_flattened_mut();
            while masks != 0 {
                let Some(code) = codes.next() else { return };
                if let Some(sum) = sums.get_mut(masks.trailing_zeros() as usize) {
                    *sum += self.0.decode(code) * x;
                }
                masks &= masks - 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn whole(self, area: &[u8], sections: &[Whole], chunk: usize, sums: &mut [[f32; 16]]) {
        for s in sections {
            // SAFETY: as the caller's.
            unsafe {
                let (table, codes) = s.row::<C, Self>(self, area, chunk, sums.len());
                let masks = <Self as Steps<C>>::masks(self, area, table, sums.len());
                self.masked(area, codes, masks, s.x, sums);
            }
        }
    }

    #[inline(always)]
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>) {
        for (before, sums) in of.each() {
            for (word, sums) in sums.iter_mut().enumerate() {
                let mut held = *sums;
                for s in sections {
                    let at = s.codes + (before + 16 * word) * C::BYTES;
                    let weights = self.0.decode_full(area.get(at..at + 16 * C::BYTES).unwrap_or(&[]));
                    for (sum, weight) in held.iter_mut().zip(weights) {
                        *sum += weight * s.x;
                    }
                }
                *sums = held;
            }
        }
    }

    #[inline(always)]
    unsafe fn read8(self, area: &[u8], at: usize) -> u64 {
        area.get(at..).and_then(|a| a.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
    }

    #[inline(always)]
    fn prefetch(self, area: &[u8], at: usize) {
        prefetch(area, at);
    }
}

/// See [`super::add_layer`].
///
/// # Safety
/// As [`walk::layer`].
pub(super) unsafe fn layer(
    layer: &Layer<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    // SAFETY: as the caller's.
    unsafe {
        match layer.codes {
            CodeKind::Byte(c) => walk::layer(Scalar(c), c, layer, cursors, scratch, sums),
            CodeKind::Bf16 => walk::layer(Scalar(Bf16Codes), Bf16Codes, layer, cursors, scratch, sums),
            CodeKind::F32 => walk::layer(Scalar(F32Codes), F32Codes, layer, cursors, scratch, sums),
        }
    }
}

/// See [`super::add_head`].
///
/// # Safety
/// As [`head::add`].
pub(super) unsafe fn head(
    of: &Head<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    // SAFETY: as the caller's.
    unsafe {
        match of.codes {
            CodeKind::Byte(c) => head::add(Scalar(c), c, of, cursors, scratch, sums),
            CodeKind::Bf16 => head::add(Scalar(Bf16Codes), Bf16Codes, of, cursors, scratch, sums),
            CodeKind::F32 => head::add(Scalar(F32Codes), F32Codes, of, cursors, scratch, sums),
        }
    }
}
