//! The walk's steps with AVX-512 (F, BW, DQ, VL): 16 weights at a time.

use super::codes::{Bf16Codes, ByteCodes, CodeKind, Codes, F32Codes};
use super::full::{Columns, Full};
use super::head::{self, Head};
use super::queue::Queue;
use super::walk::{self, Steps};
use super::whole::Whole;
use super::{Cursor, HEAD, Layer, Scratch};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Avx512<C>(C);

/// Decodes 16 weights.
trait Decode: Codes {
    /// # Safety
    /// 16 codes can be read and the processor has AVX-512.
    unsafe fn decode16(self, codes: *const u8) -> __m512;

    /// Decodes 32 codes of a full section: those at even places and those at odd ones.
    ///
    /// # Safety
    /// As [`Self::decode16`], for 32 codes.
    unsafe fn decode32_full(self, codes: *const u8) -> [__m512; 2];
}

impl Decode for ByteCodes {
    #[inline(always)]
    unsafe fn decode16(self, codes: *const u8) -> __m512 {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm512_cvtepi8_epi32(_mm_loadu_si128(codes.cast()));
            let moved = _mm512_sllv_epi32(c, _mm512_set1_epi32(self.shift as i32));
            let field = _mm512_set1_epi32(self.field() as i32);
            // moved & field | base
            let base = _mm512_set1_epi32(self.base as i32);
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xea>(moved, field, base))
        }
    }

    #[inline(always)]
    unsafe fn decode32_full(self, codes: *const u8) -> [__m512; 2] {
        // A weight's bits fit the upper half of an f32: two are decoded in one lane.
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm512_cvtepi8_epi16(_mm256_loadu_si256(codes.cast()));
            let moved = _mm512_sll_epi16(c, _mm_cvtsi32_si128(self.shift as i32 - 16));
            let field = _mm512_set1_epi16((self.field() >> 16) as i16);
            let base = _mm512_set1_epi16((self.base >> 16) as i16);
            let any = _mm512_ternarylogic_epi32::<0xea>(moved, field, base);
            halves(_mm512_maskz_mov_epi16(_mm512_test_epi16_mask(c, c), any))
        }
    }
}

impl Decode for Bf16Codes {
    #[inline(always)]
    unsafe fn decode16(self, codes: *const u8) -> __m512 {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm512_cvtepu16_epi32(_mm256_loadu_si256(codes.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(c))
        }
    }

    #[inline(always)]
    unsafe fn decode32_full(self, codes: *const u8) -> [__m512; 2] {
        // SAFETY: as the caller's.
        unsafe { halves(_mm512_loadu_si512(codes.cast())) }
    }
}

impl Decode for F32Codes {
    #[inline(always)]
    unsafe fn decode16(self, codes: *const u8) -> __m512 {
        // SAFETY: as the caller's.
        unsafe { _mm512_loadu_ps(codes.cast()) }
    }

    #[inline(always)]
    unsafe fn decode32_full(self, codes: *const u8) -> [__m512; 2] {
        // SAFETY: as the caller's.
        unsafe { split(self.decode16(codes), self.decode16(codes.add(64))) }
    }
}

/// The f32s whose upper halves are the even words, and those whose upper halves are the odd ones.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn halves(words: __m512i) -> [__m512; 2] {
    // SAFETY: as the caller's.
    unsafe {
        let odd = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000_u32 as i32));
        [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)), _mm512_castsi512_ps(odd)]
    }
}

/// Of 32 numbers those at even places and those at odd ones.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn split(low: __m512, high: __m512) -> [__m512; 2] {
    // SAFETY: as the caller's.
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
        [_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high)]
    }
}

/// The inverse of [`split`].
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn join([even, odd]: [__m512; 2]) -> [__m512; 2] {
    // SAFETY: as the caller's.
    unsafe {
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
        [_mm512_permutex2var_ps(even, low, odd), _mm512_permutex2var_ps(even, high, odd)]
    }
}

// SAFETY: reads stay within the padding that the trait promises: at most 64 bytes behind the items.
unsafe impl<C: Decode> Steps<C> for Avx512<C> {
    #[inline(always)]
    unsafe fn skip_rows(self, area: &[u8], at: usize, len: usize, nth: usize) -> usize {
        // SAFETY: the items begin in the area, 64 bytes further is within the padding.
        let lasts = |done: usize| unsafe {
            _mm512_movepi8_mask(_mm512_loadu_si512(area.as_ptr().add(at + done).cast()))
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
        // SAFETY: 16 children and 16 codes from a place within the section are within the padding; the queue
        // holds 16 pairs more than it may be filled with.
        unsafe {
            let c = _mm_loadu_si128(area.as_ptr().add(children).cast());
            let lasts = u32::from(_mm_movepi8_mask(c));
            // Bit 15 stands in for "none".
            let last = (lasts | 0x8000).trailing_zeros();
            let taken = (last as usize + 1).min(n);
            let low = _mm512_cvtepu8_epi32(_mm_and_si128(c, _mm_set1_epi8(127)));
            let places = _mm512_add_epi32(low, _mm512_set1_epi32(base as i32));
            let products = _mm512_mul_ps(self.0.decode16(area.as_ptr().add(codes)), _mm512_set1_ps(x));
            queue.put(places, products, taken);
            (taken, taken == n || lasts >> last & 1 != 0)
        }
    }

    #[inline(always)]
    unsafe fn columns(self, area: &[u8], columns: usize, codes: usize, n: usize, x: f32, queue: &mut Queue) {
        // SAFETY: as in `entries`.
        unsafe {
            let places = _mm512_cvtepu8_epi32(_mm_loadu_si128(area.as_ptr().add(columns).cast()));
            let products = _mm512_mul_ps(self.0.decode16(area.as_ptr().add(codes)), _mm512_set1_ps(x));
            queue.put(places, products, n);
        }
    }

    #[inline(always)]
    unsafe fn masked(self, area: &[u8], codes: usize, masks: u128, x: f32, sums: &mut [[f32; 16]]) {
        // Every word's place is counted anew, so that no word waits for another.
        for (word, sums) in sums.iter_mut().enumerate() {
            let before = (masks & !(u128::MAX << (16 * word))).count_ones() as usize;
            // SAFETY: 16 codes from a place within the section are within the padding; there are 16 sums.
            unsafe {
                let packed = self.0.decode16(area.as_ptr().add(codes + before * C::BYTES));
                let weights = _mm512_maskz_expand_ps((masks >> (16 * word)) as u16, packed);
                let sum = _mm512_loadu_ps(sums.as_ptr());
                _mm512_storeu_ps(sums.as_mut_ptr(), _mm512_fmadd_ps(weights, _mm512_set1_ps(x), sum));
            }
        }
    }

    #[inline(always)]
    unsafe fn whole(self, area: &[u8], sections: &[Whole], chunk: usize, sums: &mut [[f32; 16]]) {
        // SAFETY: as the caller's.
        unsafe {
            match sums.len() {
                2 => self.words::<2>(area, sections, chunk, sums),
                3 => self.words::<3>(area, sections, chunk, sums),
                4 => self.words::<4>(area, sections, chunk, sums),
                5 => self.words::<5>(area, sections, chunk, sums),
                6 => self.words::<6>(area, sections, chunk, sums),
                7 => self.words::<7>(area, sections, chunk, sums),
                _ => self.words::<8>(area, sections, chunk, sums),
            }
        }
    }

    #[inline(always)]
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>) {
        // SAFETY: as the caller's.
        unsafe {
            for (first, sums) in of.each() {
                // The head may have more words than a chunk.
                for (eight, sums) in sums.chunks_mut(8).enumerate() {
                    let before = (first + 128 * eight) * C::BYTES;
                    match sums.len() {
                        1 => self.full_words::<1, 1>(area, sections, before, sums),
                        2 => self.full_words::<2, 1>(area, sections, before, sums),
                        3 => self.full_words::<3, 2>(area, sections, before, sums),
                        4 => self.full_words::<4, 2>(area, sections, before, sums),
                        5 => self.full_words::<5, 3>(area, sections, before, sums),
                        6 => self.full_words::<6, 3>(area, sections, before, sums),
                        7 => self.full_words::<7, 4>(area, sections, before, sums),
                        _ => self.full_words::<8, 4>(area, sections, before, sums),
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

impl<C: Decode> Avx512<C> {
    /// See [`Steps::whole`]: the sums of `W` words stay in registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn words<const W: usize>(
        self,
        area: &[u8],
        sections: &[Whole],
        chunk: usize,
        sums: &mut [[f32; 16]],
    ) {
        let Some(sums) = sums.first_chunk_mut::<W>() else { return };
        // SAFETY: as the caller's; the words before one have at most 16 weights each.
        unsafe {
            let mut held = sums.each_ref().map(|s| _mm512_loadu_ps(s.as_ptr()));
            for s in sections {
                let (table, codes) = s.row::<C, Self>(self, area, chunk, W);
                let low = self.read8(area, table);
                let high = if W > 4 { self.read8(area, table + 8) } else { 0 };
                let x = _mm512_set1_ps(s.x);
                for (word, held) in held.iter_mut().enumerate() {
                    // Every word's place is counted anew, so that no word waits for another.
                    let (masks, others) = if word < 4 { (low, 0) } else { (high, low.count_ones()) };
                    let before = others + (masks & !(u64::MAX << (16 * (word % 4)))).count_ones();
                    let packed = self.0.decode16(area.as_ptr().add(codes + before as usize * C::BYTES));
                    let weights = _mm512_maskz_expand_ps((masks >> (16 * (word % 4))) as u16, packed);
                    *held = _mm512_fmadd_ps(weights, x, *held);
                }
            }
            for (sums, held) in sums.iter_mut().zip(held) {
                _mm512_storeu_ps(sums.as_mut_ptr(), held);
            }
        }
    }
}

impl<C: Decode> Avx512<C> {
    /// See [`Steps::full`]: the sums of `W` words, in `P` pairs, stay in registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn full_words<const W: usize, const P: usize>(
        self,
        area: &[u8],
        sections: &[Full],
        before: usize,
        sums: &mut [[f32; 16]],
    ) {
        let Some(sums) = sums.first_chunk_mut::<W>() else { return };
        // SAFETY: as the caller's; a section has 16 codes for each word, and 16 more are within the padding.
        unsafe {
            let mut held = [[_mm512_setzero_ps(); 2]; P];
            for (held, sums) in held.iter_mut().zip(sums.chunks(2)) {
                let low = _mm512_loadu_ps(sums[0].as_ptr());
                // Of a lone word the other half is added to, too, but never read.
                let high = if let [_, high] = sums { _mm512_loadu_ps(high.as_ptr()) } else { low };
                *held = split(low, high);
            }
            for s in sections {
                let codes = area.as_ptr().add(s.codes + before);
                let x = _mm512_set1_ps(s.x);
                for (pair, held) in held.iter_mut().enumerate() {
                    let weights = self.0.decode32_full(codes.add(32 * pair * C::BYTES));
                    held[0] = _mm512_fmadd_ps(weights[0], x, held[0]);
                    held[1] = _mm512_fmadd_ps(weights[1], x, held[1]);
                }
            }
            for (sums, held) in sums.chunks_mut(2).zip(held) {
                let [low, high] = join(held);
                _mm512_storeu_ps(sums[0].as_mut_ptr(), low);
                if let [_, sums] = sums {
                    _mm512_storeu_ps(sums.as_mut_ptr(), high);
                }
            }
        }
    }
}

impl Queue {
    /// Appends the first `n` of 16 pairs.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline(always)]
    unsafe fn put(&mut self, places: __m512i, products: __m512, n: usize) {
        let len = self.len;
        let (Some(p), Some(v)) = (self.places.get_mut(len..len + 16), self.products.get_mut(len..len + 16))
        else {
            return;
        };
        // SAFETY: both slices have 16 elements.
        unsafe {
            _mm512_storeu_si512(p.as_mut_ptr().cast(), places);
            _mm512_storeu_ps(v.as_mut_ptr(), products);
        }
        self.len = len + n;
    }
}

/// See [`super::add_layer`].
///
/// # Safety
/// As [`walk::layer`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn layer(
    layer: &Layer<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32],
) {
    // SAFETY: as the caller's.
    unsafe {
        match layer.codes {
            CodeKind::Byte(c) => walk::layer(Avx512(c), c, layer, cursors, scratch, sums),
            CodeKind::Bf16 => walk::layer(Avx512(Bf16Codes), Bf16Codes, layer, cursors, scratch, sums),
            CodeKind::F32 => walk::layer(Avx512(F32Codes), F32Codes, layer, cursors, scratch, sums),
        }
    }
}

/// See [`super::add_head`].
///
/// # Safety
/// As [`head::add`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
pub(super) unsafe fn head(
    of: &Head<'_>,
    cursors: &mut [Cursor],
    scratch: &mut Scratch,
    sums: &mut [f32; HEAD],
) {
    // SAFETY: as the caller's.
    unsafe {
        match of.codes {
            CodeKind::Byte(c) => head::add(Avx512(c), c, of, cursors, scratch, sums),
            CodeKind::Bf16 => head::add(Avx512(Bf16Codes), Bf16Codes, of, cursors, scratch, sums),
            CodeKind::F32 => head::add(Avx512(F32Codes), F32Codes, of, cursors, scratch, sums),
        }
    }
}
