//! The walk's steps with AVX2, FMA and the bit instructions: 8 weights at a time.

use super::codes::{Bf16Codes, ByteCodes, CodeKind, Codes, F32Codes};
use super::full::{Columns, Full};
use super::head::{self, Head};
use super::queue::Queue;
use super::walk::{self, Steps};
use super::whole::Whole;
use super::{Cursor, HEAD, Layer, Scratch};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Avx2<C>(C);

/// For each mask of 8 lanes, which of the packed weights each lane has; bit 7 is set where it has none.
static EXPAND: [[u8; 8]; 256] = expand_table();

const fn expand_table() -> [[u8; 8]; 256] {
    let mut table = [[0x80; 8]; 256];
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

/// Loads the row of [`EXPAND`] of each half of a mask.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn lanes_of(mask: u16) -> [__m128i; 2] {
    // SAFETY: a row has 8 bytes.
    unsafe {
        let low = _mm_loadl_epi64(EXPAND[usize::from(mask & 255)].as_ptr().cast());
        [low, _mm_loadl_epi64(EXPAND[usize::from(mask >> 8)].as_ptr().cast())]
    }
}

/// Decodes weights.
trait Decode: Codes {
    /// The weights of a mask's lanes, and 0 in the others: lanes 0 to 7 and 8 to 15.
    ///
    /// # Safety
    /// 16 codes can be read and the processor has AVX2.
    unsafe fn expand16(self, codes: *const u8, mask: u16) -> [__m256; 2];

    /// Decodes 8 codes.
    ///
    /// # Safety
    /// 8 codes can be read and the processor has AVX2.
    unsafe fn decode8(self, codes: *const u8) -> __m256;

    /// Decodes 16 codes of a full section, ordered as [`crossed`] orders them.
    ///
    /// # Safety
    /// As [`Self::expand16`].
    #[inline(always)]
    unsafe fn decode16_full(self, codes: *const u8) -> [__m256; 2] {
        // Zeros are 0 in both formats of floats.
        // SAFETY: as the caller's.
        unsafe { crossed([self.decode8(codes), self.decode8(codes.add(8 * Self::BYTES))]) }
    }
}

/// Of lanes 0 to 7 and 8 to 15, 0 to 3 beside 8 to 11 and 4 to 7 beside 12 to 15, and back again: the order in which
/// sixteen halves become floats.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn crossed([a, b]: [__m256; 2]) -> [__m256; 2] {
    // SAFETY: as the caller's.
    unsafe { [_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)] }
}

/// The floats whose upper halves these are, as [`crossed`] orders them.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn floats(halves: __m256i) -> [__m256; 2] {
    // SAFETY: as the caller's.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (low, high) = (_mm256_unpacklo_epi16(zero, halves), _mm256_unpackhi_epi16(zero, halves));
        [_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)]
    }
}

impl Decode for ByteCodes {
    #[inline(always)]
    unsafe fn expand16(self, codes: *const u8, mask: u16) -> [__m256; 2] {
        // Bytes are moved to their lanes before they are decoded, and a weight's bits fit the upper half of an f32: all
        // sixteen are decoded in one register, in the order that becomes two ascending ones of floats.
        // SAFETY: as the caller's.
        unsafe {
            let [low, high] = lanes_of(mask);
            let high_codes = codes.add((mask & 255).count_ones() as usize);
            let packed =
                _mm_unpacklo_epi64(_mm_loadl_epi64(codes.cast()), _mm_loadl_epi64(high_codes.cast()));
            let lanes = _mm_unpacklo_epi32(low, _mm_add_epi8(high, _mm_set1_epi8(8)));
            let c = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(packed, lanes));
            let moved = _mm256_sll_epi16(c, _mm_cvtsi32_si128(self.shift as i32 - 16));
            let field = _mm256_and_si256(moved, _mm256_set1_epi16((self.field() >> 16) as i16));
            let present = _mm256_cmpgt_epi16(_mm256_cvtepi8_epi16(lanes), _mm256_set1_epi16(-1));
            let base = _mm256_and_si256(present, _mm256_set1_epi16((self.base >> 16) as i16));
            floats(_mm256_or_si256(field, base))
        }
    }

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
    unsafe fn decode16_full(self, codes: *const u8) -> [__m256; 2] {
        // SAFETY: as the caller's.
        unsafe {
            let c = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.cast()));
            let moved = _mm256_sll_epi16(c, _mm_cvtsi32_si128(self.shift as i32 - 16));
            let field = _mm256_and_si256(moved, _mm256_set1_epi16((self.field() >> 16) as i16));
            let any = _mm256_or_si256(field, _mm256_set1_epi16((self.base >> 16) as i16));
            floats(_mm256_andnot_si256(_mm256_cmpeq_epi16(c, _mm256_setzero_si256()), any))
        }
    }
}

impl Decode for Bf16Codes {
    #[inline(always)]
    unsafe fn expand16(self, codes: *const u8, mask: u16) -> [__m256; 2] {
        // SAFETY: as the caller's.
        unsafe {
            let [low, high] = lanes_of(mask);
            let high_codes = codes.add(2 * (mask & 255).count_ones() as usize);
            [expand8_halves(codes, low), expand8_halves(high_codes, high)]
        }
    }

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
    unsafe fn expand16(self, codes: *const u8, mask: u16) -> [__m256; 2] {
        // SAFETY: as the caller's.
        unsafe {
            let [low, high] = lanes_of(mask);
            let high_codes = codes.add(4 * (mask & 255).count_ones() as usize);
            [expand8_floats(codes, low), expand8_floats(high_codes, high)]
        }
    }

    #[inline(always)]
    unsafe fn decode8(self, codes: *const u8) -> __m256 {
        // SAFETY: as the caller's.
        unsafe { _mm256_loadu_ps(codes.cast()) }
    }
}

/// Half an [`Decode::expand16`] of the upper halves of f32s.
///
/// # Safety
/// 8 codes can be read and the processor has AVX2.
#[inline(always)]
unsafe fn expand8_halves(codes: *const u8, lanes: __m128i) -> __m256 {
    // SAFETY: as the caller's.
    unsafe {
        // Twice the place, and one more for the second byte; a sum that saturates keeps bit 7 where there is none.
        let twice = _mm_adds_epi8(_mm_unpacklo_epi8(lanes, lanes), _mm_unpacklo_epi8(lanes, lanes));
        let bytes = _mm_or_si128(twice, _mm_set1_epi16(0x100));
        let halves = _mm_shuffle_epi8(_mm_loadu_si128(codes.cast()), bytes);
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
    }
}

/// Half an [`Decode::expand16`] of f32s.
///
/// # Safety
/// As [`expand8_halves`].
#[inline(always)]
unsafe fn expand8_floats(codes: *const u8, lanes: __m128i) -> __m256 {
    // SAFETY: as the caller's.
    unsafe {
        let lanes = _mm256_cvtepi8_epi32(lanes);
        let weights = _mm256_permutevar8x32_ps(_mm256_loadu_ps(codes.cast()), lanes);
        _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_srai_epi32::<31>(lanes)), weights)
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
    unsafe fn masked(self, area: &[u8], codes: usize, masks: u128, x: f32, sums: &mut [[f32; 16]]) {
        // Every word's place is counted anew, so that no word waits for another.
        for (word, sums) in sums.iter_mut().enumerate() {
            let before = (masks & !(u128::MAX << (16 * word))).count_ones() as usize;
            // SAFETY: 16 codes from a place within the section are within the padding; there are 16 sums.
            unsafe {
                let codes = area.as_ptr().add(codes + before * C::BYTES);
                let [low, high] = self.0.expand16(codes, (masks >> (16 * word)) as u16);
                let (x, held) = (_mm256_set1_ps(x), load16(sums));
                store16(sums, [_mm256_fmadd_ps(low, x, held[0]), _mm256_fmadd_ps(high, x, held[1])]);
            }
        }
    }

    #[inline(always)]
    unsafe fn whole(self, area: &[u8], sections: &[Whole], chunk: usize, sums: &mut [[f32; 16]]) {
        let words = sums.len();
        // Eight registers of sums at a time: sixteen hold those and what decoding needs.
        for (quad, sums) in sums.chunks_mut(4).enumerate() {
            // SAFETY: as the caller's.
            unsafe {
                match sums.len() {
                    1 => self.words::<1>(area, sections, chunk, (words, 4 * quad), sums),
                    2 => self.words::<2>(area, sections, chunk, (words, 4 * quad), sums),
                    3 => self.words::<3>(area, sections, chunk, (words, 4 * quad), sums),
                    _ => self.words::<4>(area, sections, chunk, (words, 4 * quad), sums),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn full(self, area: &[u8], sections: &[Full], of: Columns<'_>) {
        for (before, sums) in of.each() {
            let before = before * C::BYTES;
            for (quad, sums) in sums.chunks_mut(4).enumerate() {
                // Eight registers of sums at a time: sixteen hold those and what decoding needs.
                let before = before + 64 * quad * C::BYTES;
                // SAFETY: as the caller's; a section has 16 codes for each word.
                unsafe {
                    match sums.len() {
                        1 => self.full_words::<1>(area, sections, before, sums),
                        2 => self.full_words::<2>(area, sections, before, sums),
                        3 => self.full_words::<3>(area, sections, before, sums),
                        _ => self.full_words::<4>(area, sections, before, sums),
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
    /// See [`Steps::whole`]: the sums of `W` words of a chunk, from its `first` on, stay in registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn words<const W: usize>(
        self,
        area: &[u8],
        sections: &[Whole],
        chunk: usize,
        (words, first): (usize, usize),
        sums: &mut [[f32; 16]],
    ) {
        let Some(sums) = sums.first_chunk_mut::<W>() else { return };
        // SAFETY: as the caller's; the words before one have at most 16 weights each.
        unsafe {
            let mut held = [[_mm256_setzero_ps(); 2]; W];
            for (held, sums) in held.iter_mut().zip(&*sums) {
                *held = load16(sums);
            }
            for s in sections {
                let (table, codes) = s.row::<C, Self>(self, area, chunk, words);
                let mut codes = area.as_ptr().add(codes);
                if first > 0 {
                    codes = codes.add(self.read8(area, table).count_ones() as usize * C::BYTES);
                }
                let masks = self.read8(area, table + 2 * first);
                let x = _mm256_set1_ps(s.x);
                for (word, held) in held.iter_mut().enumerate() {
                    // Every word's place is counted anew, so that no word waits for another.
                    let before = (masks & !(u64::MAX << (16 * word))).count_ones() as usize;
                    let mask = (masks >> (16 * word)) as u16;
                    let [low, high] = self.0.expand16(codes.add(before * C::BYTES), mask);
                    *held = [_mm256_fmadd_ps(low, x, held[0]), _mm256_fmadd_ps(high, x, held[1])];
                }
            }
            for (sums, held) in sums.iter_mut().zip(held) {
                store16(sums, held);
            }
        }
    }

    /// See [`Steps::full`]: the sums of `W` words stay in registers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn full_words<const W: usize>(
        self,
        area: &[u8],
        sections: &[Full],
        before: usize,
        sums: &mut [[f32; 16]],
    ) {
        let Some(sums) = sums.first_chunk_mut::<W>() else { return };
        // SAFETY: as the caller's; a section has a code for each sum.
        unsafe {
            let mut held = [[_mm256_setzero_ps(); 2]; W];
            for (held, sums) in held.iter_mut().zip(&*sums) {
                *held = crossed(load16(sums));
            }
            for s in sections {
                let codes = area.as_ptr().add(s.codes + before);
                let x = _mm256_set1_ps(s.x);
                for (word, held) in held.iter_mut().enumerate() {
                    let [low, high] = self.0.decode16_full(codes.add(16 * word * C::BYTES));
                    *held = [_mm256_fmadd_ps(low, x, held[0]), _mm256_fmadd_ps(high, x, held[1])];
                }
            }
            for (sums, held) in sums.iter_mut().zip(held) {
                store16(sums, crossed(held));
            }
        }
    }
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn load16(sums: &[f32; 16]) -> [__m256; 2] {
    // SAFETY: as the caller's; there are 16.
    unsafe { [_mm256_loadu_ps(sums.as_ptr()), _mm256_loadu_ps(sums.as_ptr().add(8))] }
}

/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn store16(sums: &mut [f32; 16], [low, high]: [__m256; 2]) {
    // SAFETY: as the caller's; there are 16.
    unsafe {
        _mm256_storeu_ps(sums.as_mut_ptr(), low);
        _mm256_storeu_ps(sums.as_mut_ptr().add(8), high);
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
