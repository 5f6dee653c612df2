//! The walk's steps in plain Rust: complete, safe, and what the vector forms are compared with.

use super::codes::{Bf16Codes, CodeKind, Codes, F32Codes};
use super::full::{Columns, Full};
use super::head::{self, Head};
use super::queue::Queue;
use super::walk::{self, Steps};
use super::{Cursor, HEAD, Layer, Scratch};

#[derive(Clone, Copy)]
struct Scalar<C>(C);

// SAFETY: every access is checked.
unsafe impl<C: Codes> Steps<C> for Scalar<C> {
    #[inline(always)]
    unsafe fn skip_rows(self, area: &[u8], at: usize, len: usize, nth: usize) -> usize {
        let mut left = nth;
        if left == 0 {
            return 0;
        }
        for (i, byte) in area.get(at..at + len).unwrap_or(&[]).iter().enumerate() {
            left -= usize::from(byte >> 7);
            if left == 0 {
                return i + 1;
            }
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
        let n = n.min(16);
        let codes = area.get(codes..codes + n * C::BYTES).unwrap_or(&[]).chunks_exact(C::BYTES);
        let mut taken = 0;
        for (child, code) in area.get(children..children + n).unwrap_or(&[]).iter().zip(codes) {
            queue.push(base + u32::from(child & 127), self.0.decode(code) * x);
            taken += 1;
            if child & 128 != 0 {
                return (taken, true);
            }
        }
        (taken, taken == 0)
    }

    #[inline(always)]
    unsafe fn columns(self, area: &[u8], columns: usize, codes: usize, n: usize, x: f32, queue: &mut Queue) {
        let codes = area.get(codes..codes + n * C::BYTES).unwrap_or(&[]).chunks_exact(C::BYTES);
        for (column, code) in area.get(columns..columns + n).unwrap_or(&[]).iter().zip(codes) {
            queue.push(u32::from(*column), self.0.decode(code) * x);
        }
    }

    #[inline(always)]
    unsafe fn masked(self, area: &[u8], codes: usize, mut mask: u16, x: f32, sums: &mut [f32; 16]) {
        let n = mask.count_ones() as usize;
        for code in area.get(codes..codes + n * C::BYTES).unwrap_or(&[]).chunks_exact(C::BYTES) {
            sums[mask.trailing_zeros() as usize & 15] += self.0.decode(code) * x;
            mask &= mask - 1;
        }
    }

    #[inline(always)]
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>) {
        for (before, sums) in of.each() {
            let before = before * C::BYTES;
            for s in sections {
                let codes = area.get(s.codes + before..).unwrap_or(&[]).chunks_exact(C::BYTES);
                for (sum, code) in sums.as_flattened_mut().iter_mut().zip(codes) {
                    *sum += self.0.decode_full(code) * s.x;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn read8(self, area: &[u8], at: usize) -> u64 {
        area.get(at..).and_then(|a| a.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
    }

    #[inline(always)]
    fn prefetch(self, _: &[u8], _: usize) {}
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
