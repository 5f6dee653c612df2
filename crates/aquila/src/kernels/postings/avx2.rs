//! The walk's steps with AVX2, FMA and the bit instructions: 8 weights at a time.

use super::codes::{Bf16Codes, ByteCodes, CodeKind, Codes, F32Codes};
use super::full::{Columns, Full};
use super::head::{self, Head};
use super::queue::Queue;
use super::walk::{self, Steps};
use super::{Cursor, HEAD, Layer, Scratch};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Avx2<C>(C);

/// For each mask of 8 lanes, where each lane's weight stands among the packed ones.
static EXPAND: [[u8; 8]; 256] = expand_table();

const fn expand_table() -> [[u8; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut packed) = (0, 0);
        while lane < 8 {
            if (mask >> lane) & 1 != 0 {
                table[mask][lane] = packed;
                packed += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
}

/// Decodes 8 weights.
trait Decode: Codes {
    /// # Safety
    /// 8 codes can be read and the processor has AVX2.
    unsafe fn decode8(self, codes: *const u8) -> __m256;

    /// Decodes 8 codes of a full section.
    ///
    /// # Safety
    /// As [`Self::decode8`].
    #[inline(always)]
    unsafe fn decode8_full(self, codes: *const u8) -> __m256 {
        // Zeros decode to 0.
        // SAFETY: as the caller's.
        unsafe { self.decode8(codes) }
    }
}

impl Decode for ByteCodes {
    #[inline(always)]
    unsafe fn decode8(self, codes: *const u8) -> __m256 {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm256_cvtepi8_epi32(_mm_loadl_epi64(codes.cast()));
            let moved = _mm256_sllv_epi32(c, _mm256_set1_epi32(self.shift as i32));
            let field = _mm256_and_si256(moved, _mm256_set1_epi32(self.field() as i32));
            _mm256_castsi256_ps(_mm256_or_si256(field, _mm256_set1_epi32(self.base as i32)))
        }
    }

    #[inline(always)]
    unsafe fn decode8_full(self, codes: *const u8) -> __m256 {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm256_cvtepi8_epi32(_mm_loadl_epi64(codes.cast()));
            let none = _mm256_castsi256_ps(_mm256_cmpeq_epi32(c, _mm256_setzero_si256()));
            _mm256_andnot_ps(none, self.decode8(codes))
        }
    }
}

impl Decode for Bf16Codes {
    #[inline(always)]
    unsafe fn decode8(self, codes: *const u8) -> __m256 {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm256_cvtepu16_epi32(_mm_loadu_si128(codes.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(c))
        }
    }
}

impl Decode for F32Codes {
    #[inline(always)]
    unsafe fn decode8(self, codes: *const u8) -> __m256 {
        // SAFETY: as the caller's.
        unsafe { _mm256_loadu_ps(codes.cast()) }
    }
}

// SAFETY: reads stay within the padding that the trait promises: at most 64 bytes behind the items.
unsafe impl<C: Decode> Steps<C> for Avx2<C> {
    #[inline(always)]
    unsafe fn skip_rows(self, area: &[u8], at: usize, len: usize, nth: usize) -> usize {
        // SAFETY: the items begin in the area, 64 bytes further is within the padding.
        let lasts = |done: usize| unsafe {
            let p = area.as_ptr().add(at + done);
            let low = _mm256_movemask_epi8(_mm256_loadu_si256(p.cast())) as u32;
            let high = _mm256_movemask_epi8(_mm256_loadu_si256(p.add(32).cast())) as u32;
            u64::from(low) | u64::from(high) << 32
        };
        // Bit i says that a row begins at byte i: at the first, and behind each last one.
        let first = lasts(0);
        let begins = first << 1 | 1;
        if (begins.count_ones() as usize) > nth {
            // SAFETY: the processor has BMI2, see `Isa`.
            let bit = unsafe { _pdep_u64(1 << nth, begins) };
            return (bit.trailing_zeros() as usize).min(len);
        }
        let mut left = nth as u32 - first.count_ones();
        let mut done = 64;
        while done < len {
            if left == 0 {
                return done;
            }
            let lasts = lasts(done);
            let here = lasts.count_ones();
            if here >= left {
                // SAFETY: as above.
                let bit = unsafe { _pdep_u64(1 << (left - 1), lasts) };
                return (done + bit.trailing_zeros() as usize + 1).min(len);
            }
            left -= here;
            done += 64;
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
        // SAFETY: 8 children and 8 codes from a place within the section are within the padding; the queue
        // holds 16 pairs more than it may be filled with.
        unsafe {
            let c = _mm_loadl_epi64(area.as_ptr().add(children).cast());
            let lasts = _mm_movemask_epi8(c) as u32;
            // Bit 7 stands in for "none".
            let last = (lasts | 0x80).trailing_zeros();
            let taken = (last as usize + 1).min(n);
            let low = _mm256_cvtepu8_epi32(_mm_and_si128(c, _mm_set1_epi8(127)));
            let places = _mm256_add_epi32(low, _mm256_set1_epi32(base as i32));
            let products = _mm256_mul_ps(self.0.decode8(area.as_ptr().add(codes)), _mm256_set1_ps(x));
            queue.put8(places, products, taken);
            (taken, taken == n || lasts >> last & 1 != 0)
        }
    }

    #[inline(always)]
    unsafe fn columns(self, area: &[u8], columns: usize, codes: usize, n: usize, x: f32, queue: &mut Queue) {
        for from in (0..n).step_by(8) {
            // SAFETY: as in `entries`.
            unsafe {
                let c = _mm_loadl_epi64(area.as_ptr().add(columns + from).cast());
                let weights = self.0.decode8(area.as_ptr().add(codes + from * C::BYTES));
                let products = _mm256_mul_ps(weights, _mm256_set1_ps(x));
                queue.put8(_mm256_cvtepu8_epi32(c), products, (n - from).min(8));
            }
        }
    }

    #[inline(always)]
    unsafe fn masked(self, area: &[u8], codes: usize, mask: u16, x: f32, sums: &mut [f32; 16]) {
        let mut codes = codes;
        for (mask, sums) in [mask & 255, mask >> 8].into_iter().zip(sums.as_chunks_mut::<8>().0) {
            // SAFETY: 8 codes from a place within the section are within the padding; there are 8 sums.
            unsafe {
                let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let hit = _mm256_and_si256(_mm256_set1_epi32(i32::from(mask)), bits);
                let present = _mm256_castsi256_ps(_mm256_cmpeq_epi32(hit, bits));
                let order = u64::from_le_bytes(EXPAND[usize::from(mask) & 255]);
                let order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order as i64));
                let packed = self.0.decode8(area.as_ptr().add(codes));
                let weights = _mm256_and_ps(_mm256_permutevar8x32_ps(packed, order), present);
                let sum = _mm256_loadu_ps(sums.as_ptr());
                _mm256_storeu_ps(sums.as_mut_ptr(), _mm256_fmadd_ps(weights, _mm256_set1_ps(x), sum));
            }
            codes += mask.count_ones() as usize * C::BYTES;
        }
    }

    #[inline(always)]
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>) {
        for (before, sums) in of.each() {
            let before = before * C::BYTES;
            for (pair, sums) in sums.chunks_mut(2).enumerate() {
                // Up to four registers of sums: sixteen hold those, four of weights and what decoding needs.
                let sums = sums.as_flattened_mut().as_chunks_mut::<8>().0;
                let word = before + 32 * pair * C::BYTES;
                // SAFETY: as the caller's; a section has 16 codes for each word.
                unsafe {
                    match sums.len() {
                        2 => self.full_eights::<2>(area, sections, word, sums),
                        _ => self.full_eights::<4>(area, sections, word, sums),
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn read8(self, area: &[u8], at: usize) -> u64 {
        // SAFETY: the place is within a section, eight bytes further is within the padding.
        u64::from_le(unsafe { area.as_ptr().add(at).cast::<u64>().read_unaligned() })
    }

    #[inline(always)]
    fn prefetch(self, area: &[u8], at: usize) {
        // SAFETY: a prefetch of any address reads nothing that can be seen.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(area.as_ptr().wrapping_add(at).cast()) };
    }
}

impl<C: Decode> Avx2<C> {
    /// See [`Steps::full`]: `N` times eight sums stay in registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn full_eights<const N: usize>(
        self,
        area: &[u8],
        sections: &[Full],
        before: usize,
        sums: &mut [[f32; 8]],
    ) {
        let Some(sums) = sums.first_chunk_mut::<N>() else { return };
        // SAFETY: as the caller's; a section has a code for each sum.
        unsafe {
            let mut held = sums.each_ref().map(|s| _mm256_loadu_ps(s.as_ptr()));
            for s in sections {
                let codes = area.as_ptr().add(s.codes + before);
                let x = _mm256_set1_ps(s.x);
                for (eight, held) in held.iter_mut().enumerate() {
                    let weights = self.0.decode8_full(codes.add(8 * eight * C::BYTES));
                    *held = _mm256_fmadd_ps(weights, x, *held);
                }
            }
            for (sums, held) in sums.iter_mut().zip(held) {
                _mm256_storeu_ps(sums.as_mut_ptr(), held);
            }
        }
    }
}

impl Queue {
    /// Appends the first `n` of 8 pairs.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[inline(always)]
    unsafe fn put8(&mut self, places: __m256i, products: __m256, n: usize) {
        let len = self.len;
        let (Some(p), Some(v)) = (self.places.get_mut(len..len + 8), self.products.get_mut(len..len + 8))
        else {
            return;
        };
        // SAFETY: both slices have 8 elements.
        unsafe {
            _mm256_storeu_si256(p.as_mut_ptr().cast(), places);
            _mm256_storeu_ps(v.as_mut_ptr(), products);
        }
        self.len = len + n;
    }
}

/// See [`super::add_layer`].
///
/// # Safety
/// As [`walk::layer`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn layer(
    layer: &Layer<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    // SAFETY: as the caller's.
    unsafe {
        match layer.codes {
            CodeKind::Byte(c) => walk::layer(Avx2(c), c, layer, cursors, scratch, sums),
            CodeKind::Bf16 => walk::layer(Avx2(Bf16Codes), Bf16Codes, layer, cursors, scratch, sums),
            CodeKind::F32 => walk::layer(Avx2(F32Codes), F32Codes, layer, cursors, scratch, sums),
        }
    }
}

/// See [`super::add_head`].
///
/// # Safety
/// As [`head::add`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn head(
    of: &Head<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    // SAFETY: as the caller's.
    unsafe {
        match of.codes {
            CodeKind::Byte(c) => head::add(Avx2(c), c, of, cursors, scratch, sums),
            CodeKind::Bf16 => head::add(Avx2(Bf16Codes), Bf16Codes, of, cursors, scratch, sums),
            CodeKind::F32 => head::add(Avx2(F32Codes), F32Codes, of, cursors, scratch, sums),
        }
    }
}
