//! The registers of x86-64: AVX2, AVX-512, and those that multiply pairs of bf16 values.

use super::Lanes;
use std::arch::x86_64::*;

/// The lanes' bits spread over a register of 8: lane i is all ones where bit i is set.
#[inline(always)]
unsafe fn spread(bits: u32) -> __m256 {
    // SAFETY: called from implementations that need AVX2.
    unsafe {
        let one = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let at = _mm256_and_si256(_mm256_set1_epi32(bits as i32), one);
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, one))
    }
}

/// The sum of four floats.
#[inline(always)]
unsafe fn sum4(v: __m128) -> f32 {
    // SAFETY: called from implementations that need AVX2.
    unsafe {
        let pairs = _mm_add_ps(v, _mm_movehl_ps(v, v));
        _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)))
    }
}

macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident($reg:ty, $n:literal), $load:ident $store:ident $splat:ident $add:ident $sub:ident
     $mul:ident $div:ident $min:ident $max:ident $fma:ident, less($a:ident, $b:ident) $less:expr,
     select($bits:ident, $yes:ident, $no:ident) $select:expr, sum($all:ident) $sum:expr, tile $tile:literal,
     $whole:ident($low:ident $mask:ident $of:ident $back:ident)
     $(, bf16($pairs:ty) $products:ident pack($a2:ident, $b2:ident) $pack:expr)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($reg);
        // SAFETY: each method is one instruction of the set that the caller detected; `load` and `store`
        // use the unaligned forms on the floats that the caller vouches for.
        unsafe impl Lanes for $name {
            const N: usize = $n;
            const TILE: usize = $tile;
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($load(from)) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: see the impl.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn splat(v: f32) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($splat(v)) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($add(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($sub(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($mul(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn div(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($div(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn min(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($min(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($max(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($fma(self.0, b.0, c.0)) }
            }
            #[inline(always)]
            unsafe fn less(self, other: Self) -> u32 {
                let ($a, $b) = (self.0, other.0);
                // SAFETY: see the impl.
                unsafe { $less }
            }
            #[inline(always)]
            unsafe fn select($bits: u32, yes: Self, no: Self) -> Self {
                let ($yes, $no) = (yes.0, no.0);
                // SAFETY: see the impl.
                unsafe { Self($select) }
            }
            #[inline(always)]
            unsafe fn sum(self) -> f32 {
                let $all = self.0;
                // SAFETY: see the impl.
                unsafe { $sum }
            }
            #[inline(always)]
            unsafe fn low(self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($back($low::<16>($whole(self.0)))) }
            }
            #[inline(always)]
            unsafe fn high(self) -> Self {
                // SAFETY: see the impl.
                unsafe { Self($back($mask($whole(self.0), $of(!0xffff)))) }
            }
            $(
            #[inline(always)]
            unsafe fn add_products(self, a: Self, b: Self) -> Self {
                // SAFETY: see the impl; a register of pairs is a register, whatever its type.
                unsafe {
                    let pairs = [a.0, b.0].map(|v| std::mem::transmute::<$reg, $pairs>(v));
                    Self($products(self.0, pairs[0], pairs[1]))
                }
            }
            #[inline(always)]
            unsafe fn pack(self, high: Self) -> Self {
                let ($a2, $b2) = (self.0, high.0);
                // SAFETY: see the impl; as in `add_products`.
                unsafe { Self($back($pack)) }
            }
            )?
        }
    };
}

lanes!(
    /// 4 floats; AVX2 and FMA.
    X4(__m128, 4), _mm_loadu_ps _mm_storeu_ps _mm_set1_ps _mm_add_ps _mm_sub_ps _mm_mul_ps _mm_div_ps
    _mm_min_ps _mm_max_ps _mm_fmadd_ps,
    less(a, b) _mm_movemask_ps(_mm_cmplt_ps(a, b)) as u32,
    select(bits, yes, no) _mm_blendv_ps(no, yes, _mm256_castps256_ps128(spread(bits))),
    sum(all) sum4(all), tile 4,
    _mm_castps_si128(_mm_slli_epi32 _mm_and_si128 _mm_set1_epi32 _mm_castsi128_ps)
);
lanes!(
    /// 8 floats; AVX2 and FMA.
    X8(__m256, 8), _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps
    _mm256_div_ps _mm256_min_ps _mm256_max_ps _mm256_fmadd_ps,
    less(a, b) _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) as u32,
    select(bits, yes, no) _mm256_blendv_ps(no, yes, spread(bits)),
    sum(all) sum4(_mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))), tile 4,
    _mm256_castps_si256(_mm256_slli_epi32 _mm256_and_si256 _mm256_set1_epi32 _mm256_castsi256_ps)
);
lanes!(
    /// 16 floats; AVX-512 F.
    X16(__m512, 16), _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps
    _mm512_div_ps _mm512_min_ps _mm512_max_ps _mm512_fmadd_ps,
    less(a, b) u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b)),
    select(bits, yes, no) _mm512_mask_blend_ps(bits as u16, no, yes),
    sum(all) _mm512_reduce_add_ps(all), tile 8,
    _mm512_castps_si512(_mm512_slli_epi32 _mm512_and_si512 _mm512_set1_epi32 _mm512_castsi512_ps)
);

lanes!(
    /// 4 floats and pairs of bf16 values; AVX-512 (VL, BW, BF16).
    H4(__m128, 4), _mm_loadu_ps _mm_storeu_ps _mm_set1_ps _mm_add_ps _mm_sub_ps _mm_mul_ps _mm_div_ps
    _mm_min_ps _mm_max_ps _mm_fmadd_ps,
    less(a, b) _mm_movemask_ps(_mm_cmplt_ps(a, b)) as u32,
    select(bits, yes, no) _mm_blendv_ps(no, yes, _mm256_castps256_ps128(spread(bits))),
    sum(all) sum4(all), tile 8,
    _mm_castps_si128(_mm_slli_epi32 _mm_and_si128 _mm_set1_epi32 _mm_castsi128_ps),
    bf16(__m128bh) _mm_dpbf16_ps
    pack(a, b) {
        let halves = std::mem::transmute::<__m128bh, __m128i>(_mm_cvtne2ps_pbh(b, a));
        _mm_unpacklo_epi16(halves, _mm_srli_si128::<8>(halves))
    }
);
lanes!(
    /// 8 floats and pairs of bf16 values; AVX-512 (VL, BW, BF16).
    H8(__m256, 8), _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps
    _mm256_div_ps _mm256_min_ps _mm256_max_ps _mm256_fmadd_ps,
    less(a, b) _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) as u32,
    select(bits, yes, no) _mm256_blendv_ps(no, yes, spread(bits)),
    sum(all) sum4(_mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))), tile 8,
    _mm256_castps_si256(_mm256_slli_epi32 _mm256_and_si256 _mm256_set1_epi32 _mm256_castsi256_ps),
    bf16(__m256bh) _mm256_dpbf16_ps
    pack(a, b) {
        let halves = std::mem::transmute::<__m256bh, __m256i>(_mm256_cvtne2ps_pbh(b, a));
        _mm256_permutexvar_epi16(_mm256_setr_epi16(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), halves)
    }
);
lanes!(
    /// 16 floats and pairs of bf16 values; AVX-512 (F, BW, BF16).
    H16(__m512, 16), _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps
    _mm512_div_ps _mm512_min_ps _mm512_max_ps _mm512_fmadd_ps,
    less(a, b) u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b)),
    select(bits, yes, no) _mm512_mask_blend_ps(bits as u16, no, yes),
    sum(all) _mm512_reduce_add_ps(all), tile 8,
    _mm512_castps_si512(_mm512_slli_epi32 _mm512_and_si512 _mm512_set1_epi32 _mm512_castsi512_ps),
    bf16(__m512bh) _mm512_dpbf16_ps
    pack(a, b) {
        let halves = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(b, a));
        // 0, 16, 1, 17, …
        let order = _mm512_add_epi32(
            _mm512_set1_epi32(16 << 16),
            _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(0x1_0001)),
        );
        _mm512_permutexvar_epi16(order, halves)
    }
);
