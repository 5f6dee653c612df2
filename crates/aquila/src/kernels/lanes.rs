//! A few floats side by side: what the solver steps through sibling labels with.
//!
//! One trait: plain arrays on every target, the x86-64 registers of 4, 8 and 16 floats, and pairs of either.
//! A function that is generic over [`Lanes`] and marked `inline(always)` becomes vector code inside a
//! `#[target_feature]` function, as in the vector trait of aho-corasick's packed searchers.

use super::dcd::MOST;
use super::{Isa, halves};

/// A vector of `N` floats.
///
/// # Safety
/// The methods of an x86-64 implementation may only run where its instruction set was detected. `load` and
/// `store` need `N` valid floats at the pointer.
pub(crate) unsafe trait Lanes: Copy {
    /// How many floats.
    const N: usize;
    /// How many sums may run side by side before they no longer fit the registers: 1, 2 or 4.
    const STREAMS: usize = 4;
    /// How many rows' sums may run side by side beside a register of weights: 2, 4 or 8.
    const TILE: usize = 4;
    /// Reads `N` floats.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes `N` floats.
    unsafe fn store(self, to: *mut f32);
    /// The same float in every lane.
    unsafe fn splat(v: f32) -> Self;
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self - other`.
    unsafe fn sub(self, other: Self) -> Self;
    /// `self * other`.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self / other`.
    unsafe fn div(self, other: Self) -> Self;
    /// The smaller of each lane.
    unsafe fn min(self, other: Self) -> Self;
    /// The larger of each lane.
    unsafe fn max(self, other: Self) -> Self;
    /// `self * b + c`, fused where the set has it.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    /// A bit for each lane where `self < other`.
    unsafe fn less(self, other: Self) -> u32;
    /// Lanes of `yes` where the bit is set, of `no` elsewhere.
    unsafe fn select(bits: u32, yes: Self, no: Self) -> Self;
    /// The sum of all lanes.
    unsafe fn sum(self) -> f32;
    /// `self` plus both products of each lane, where the lanes of `a` and `b` are pairs of [`halves`](super::halves).
    #[inline(always)]
    unsafe fn add_products(self, a: Self, b: Self) -> Self {
        // SAFETY: the trait's contract, here and below.
        unsafe { a.high().mul_add(b.high(), a.low().mul_add(b.low(), self)) }
    }
    /// The first of each pair of halves.
    #[inline(always)]
    unsafe fn low(self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, self, |pair, _| halves::unpack(pair.to_bits())[0]) }
    }
    /// The second of each pair of halves.
    #[inline(always)]
    unsafe fn high(self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, self, |pair, _| halves::unpack(pair.to_bits())[1]) }
    }
    /// Rounded pairs of halves, these first, those of `high` second.
    #[inline(always)]
    unsafe fn pack(self, high: Self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, high, |a, b| f32::from_bits(halves::pack(a, b))) }
    }
}

/// Plain code on the lanes of two registers.
///
/// # Safety
/// The instruction set of `V` must have been detected.
#[inline(always)]
unsafe fn each<V: Lanes>(a: V, b: V, f: impl Fn(f32, f32) -> f32) -> V {
    let (mut x, mut y) = ([0f32; MOST], [0f32; MOST]);
    // SAFETY: so many floats take any V.
    unsafe {
        a.store(x.as_mut_ptr());
        b.store(y.as_mut_ptr());
        x.iter_mut().zip(y).for_each(|(a, b)| *a = f(*a, b));
        V::load(x.as_ptr())
    }
}

/// Work that is written once over [`Lanes`]. Mark `run` as `inline(always)`: it takes on the instruction set of the
/// function that [`dispatch`] calls it from.
pub(crate) trait Work {
    /// What comes out.
    type Out;
    /// Whether it multiplies halves.
    const HALVES: bool = false;
    /// Does the work.
    ///
    /// # Safety
    /// The instruction set of `V` must have been detected.
    unsafe fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs the work with this many lanes (4, 8, 16 or 32), in the registers of the instruction set.
pub(crate) fn dispatch<W: Work>(isa: Isa, width: usize, work: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX2 and FMA.
            unsafe { work.run::<V>() }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn avx512<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX-512.
            unsafe { work.run::<V>() }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
        fn bf16<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX-512 with BF16.
            unsafe { work.run::<V>() }
        }
        let isa = isa.min(Isa::of_processor());
        // SAFETY: `isa` is no more than what the processor was found to have.
        unsafe {
            if W::HALVES && isa == Isa::Avx512 && halves::native() {
                match width {
                    32 => return bf16::<Pair<x86::H16>, W>(work),
                    16 => return bf16::<x86::H16, W>(work),
                    8 => return bf16::<x86::H8, W>(work),
                    4 => return bf16::<x86::H4, W>(work),
                    _ => {}
                }
            }
            match (isa, width) {
                (Isa::Avx512, 32) => return avx512::<Pair<x86::X16>, W>(work),
                (Isa::Avx512, 16) => return avx512::<x86::X16, W>(work),
                (Isa::Avx512, 8) => return avx512::<x86::X8, W>(work),
                (Isa::Avx512, 4) => return avx512::<x86::X4, W>(work),
                (Isa::Avx2, 32) => return avx2::<Pair<Pair<x86::X8>>, W>(work),
                (Isa::Avx2, 16) => return avx2::<Pair<x86::X8>, W>(work),
                (Isa::Avx2, 8) => return avx2::<x86::X8, W>(work),
                (Isa::Avx2, 4) => return avx2::<x86::X4, W>(work),
                _ => {}
            }
        }
    }
    let _ = isa;
    // SAFETY: plain code needs no instruction set.
    unsafe {
        match width {
            4 => work.run::<Plain<4>>(),
            8 => work.run::<Plain<8>>(),
            16 => work.run::<Plain<16>>(),
            32 => work.run::<Plain<32>>(),
            _ => panic!("lanes come in 4, 8, 16 or 32, not {width}"),
        }
    }
}

/// The scalar twin.
#[derive(Clone, Copy)]
pub(crate) struct Plain<const W: usize>([f32; W]);

impl<const W: usize> Plain<W> {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self;
        for (o, b) in out.0.iter_mut().zip(other.0) {
            *o = f(*o, b);
        }
        out
    }
}

// SAFETY: plain Rust, no instruction set needed; pointers are used as the trait allows.
unsafe impl<const W: usize> Lanes for Plain<W> {
    const N: usize = W;
    const STREAMS: usize = if W > 16 { 1 } else { 4 };
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for N floats at `from`; an array of f32 has the alignment of f32.
        Self(unsafe { from.cast::<[f32; W]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as in `load`.
        unsafe { to.cast::<[f32; W]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        Self([v; W])
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        let mut out = c;
        for ((o, a), b) in out.0.iter_mut().zip(self.0).zip(b.0) {
            *o += a * b;
        }
        out
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).enumerate().fold(0, |bits, (i, (a, b))| bits | u32::from(*a < b) << i)
    }
    #[inline(always)]
    unsafe fn select(bits: u32, yes: Self, no: Self) -> Self {
        let mut out = no;
        for (i, (o, y)) in out.0.iter_mut().zip(yes.0).enumerate() {
            if bits >> i & 1 == 1 {
                *o = y;
            }
        }
        out
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.0.iter().sum()
    }
    #[inline(always)]
    unsafe fn low(self) -> Self {
        Self(self.0.map(|pair| halves::unpack(pair.to_bits())[0]))
    }
    #[inline(always)]
    unsafe fn high(self) -> Self {
        Self(self.0.map(|pair| halves::unpack(pair.to_bits())[1]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
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
         $(, halves($pairs:ty) $products:ident pack($a2:ident, $b2:ident) $pack:expr)?) => {
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
        /// 4 floats and pairs of halves; AVX-512 (VL, BW, BF16).
        H4(__m128, 4), _mm_loadu_ps _mm_storeu_ps _mm_set1_ps _mm_add_ps _mm_sub_ps _mm_mul_ps _mm_div_ps
        _mm_min_ps _mm_max_ps _mm_fmadd_ps,
        less(a, b) _mm_movemask_ps(_mm_cmplt_ps(a, b)) as u32,
        select(bits, yes, no) _mm_blendv_ps(no, yes, _mm256_castps256_ps128(spread(bits))),
        sum(all) sum4(all), tile 8,
        _mm_castps_si128(_mm_slli_epi32 _mm_and_si128 _mm_set1_epi32 _mm_castsi128_ps),
        halves(__m128bh) _mm_dpbf16_ps
        pack(a, b) {
            let halves = std::mem::transmute::<__m128bh, __m128i>(_mm_cvtne2ps_pbh(b, a));
            _mm_unpacklo_epi16(halves, _mm_srli_si128::<8>(halves))
        }
    );
    lanes!(
        /// 8 floats and pairs of halves; AVX-512 (VL, BW, BF16).
        H8(__m256, 8), _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps
        _mm256_div_ps _mm256_min_ps _mm256_max_ps _mm256_fmadd_ps,
        less(a, b) _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) as u32,
        select(bits, yes, no) _mm256_blendv_ps(no, yes, spread(bits)),
        sum(all) sum4(_mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all))), tile 8,
        _mm256_castps_si256(_mm256_slli_epi32 _mm256_and_si256 _mm256_set1_epi32 _mm256_castsi256_ps),
        halves(__m256bh) _mm256_dpbf16_ps
        pack(a, b) {
            let halves = std::mem::transmute::<__m256bh, __m256i>(_mm256_cvtne2ps_pbh(b, a));
            _mm256_permutexvar_epi16(_mm256_setr_epi16(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), halves)
        }
    );
    lanes!(
        /// 16 floats and pairs of halves; AVX-512 (F, BW, BF16).
        H16(__m512, 16), _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps
        _mm512_div_ps _mm512_min_ps _mm512_max_ps _mm512_fmadd_ps,
        less(a, b) u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b)),
        select(bits, yes, no) _mm512_mask_blend_ps(bits as u16, no, yes),
        sum(all) _mm512_reduce_add_ps(all), tile 8,
        _mm512_castps_si512(_mm512_slli_epi32 _mm512_and_si512 _mm512_set1_epi32 _mm512_castsi512_ps),
        halves(__m512bh) _mm512_dpbf16_ps
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
}

/// Two registers side by side, under the conditions of one.
#[derive(Clone, Copy)]
pub(crate) struct Pair<V>(V, V);

// SAFETY: each method is that of `V` on either half; `load` and `store` reach twice as far, as `N` says.
unsafe impl<V: Lanes> Lanes for Pair<V> {
    const N: usize = 2 * V::N;
    const STREAMS: usize = if V::N > 8 { 2 } else { V::STREAMS };
    const TILE: usize = if V::N > 8 && V::TILE < 8 { 2 } else { V::TILE };
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for `N` floats at `from`, so for half as many from the middle on.
        unsafe { Self(V::load(from), V::load(from.add(V::N))) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as in `load`.
        unsafe {
            self.0.store(to);
            self.1.store(to.add(V::N));
        }
    }
    #[inline(always)]
    unsafe fn splat(v: f32) -> Self {
        // SAFETY: the instruction set of `V`, by the trait's contract, here and below.
        unsafe { Self(V::splat(v), V::splat(v)) }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.add(o.0), self.1.add(o.1)) }
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.sub(o.0), self.1.sub(o.1)) }
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.mul(o.0), self.1.mul(o.1)) }
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.div(o.0), self.1.div(o.1)) }
    }
    #[inline(always)]
    unsafe fn min(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.min(o.0), self.1.min(o.1)) }
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.max(o.0), self.1.max(o.1)) }
    }
    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.mul_add(b.0, c.0), self.1.mul_add(b.1, c.1)) }
    }
    #[inline(always)]
    unsafe fn less(self, o: Self) -> u32 {
        // SAFETY: see `splat`.
        unsafe { self.0.less(o.0) | self.1.less(o.1) << V::N }
    }
    #[inline(always)]
    unsafe fn select(bits: u32, yes: Self, no: Self) -> Self {
        // SAFETY: see `splat`; registers ignore bits beyond their own.
        unsafe { Self(V::select(bits, yes.0, no.0), V::select(bits >> V::N, yes.1, no.1)) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: see `splat`.
        unsafe { self.0.sum() + self.1.sum() }
    }
    #[inline(always)]
    unsafe fn add_products(self, a: Self, b: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.add_products(a.0, b.0), self.1.add_products(a.1, b.1)) }
    }
    #[inline(always)]
    unsafe fn low(self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.low(), self.1.low()) }
    }
    #[inline(always)]
    unsafe fn high(self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.high(), self.1.high()) }
    }
    #[inline(always)]
    unsafe fn pack(self, high: Self) -> Self {
        // SAFETY: see `splat`.
        unsafe { Self(self.0.pack(high.0), self.1.pack(high.1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on fixed odd values, as plain numbers: lanes of all, then the bits.
    #[inline(always)]
    unsafe fn everything<V: Lanes>() -> (Vec<f32>, u32) {
        let a: Vec<f32> = (0..V::N).map(|i| (i as f32 - 3.5) * 1.25).collect();
        let b: Vec<f32> = (0..V::N).map(|i| 2.0 - (i * i % 7) as f32 * 0.75 + 0.1).collect();
        let mut out = Vec::new();
        // SAFETY: both vectors hold N floats; callers vouch for the instruction set.
        unsafe {
            let (x, y) = (V::load(a.as_ptr()), V::load(b.as_ptr()));
            let bits = x.less(y);
            out.push(x.sum());
            for v in [
                x.add(y),
                x.sub(y),
                x.mul(y),
                x.div(y),
                x.min(y),
                x.max(y),
                x.mul_add(y, V::splat(0.5)),
                V::select(0x3c5a_5a69, x, y),
            ] {
                let mut row = vec![0.0; V::N];
                v.store(row.as_mut_ptr());
                out.extend(row);
            }
            (out, bits)
        }
    }

    struct Everything;

    impl Work for Everything {
        type Out = (Vec<f32>, u32);
        #[inline(always)]
        unsafe fn run<V: Lanes>(self) -> Self::Out {
            // SAFETY: the trait's contract.
            unsafe { everything::<V>() }
        }
    }

    #[test]
    fn every_register_equals_its_scalar_twin() {
        for width in [4, 8, 16, 32] {
            let plain = dispatch(Isa::Scalar, width, Everything);
            assert_eq!(plain.0.len(), 1 + 8 * width);
            for isa in Isa::available() {
                let other = dispatch(isa, width, Everything);
                assert_eq!(plain.1, other.1, "{isa:?} {width}");
                for (a, b) in plain.0.iter().zip(&other.0) {
                    assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{isa:?} {width}: {a} {b}");
                }
            }
        }
    }

    struct Halves;

    impl Work for Halves {
        type Out = (Vec<u32>, Vec<f32>);
        const HALVES: bool = true;
        #[inline(always)]
        unsafe fn run<V: Lanes>(self) -> Self::Out {
            // Some of them in the middle between two halves.
            let floats = |from: f32| -> Vec<f32> {
                (0..V::N).map(|i| (from + i as f32 / 256.0) * [1.0, -3.0][i % 2]).collect()
            };
            let (a, b, c) = (floats(1.0), floats(-0.3), floats(7.7));
            let (mut bits, mut sums) = (Vec::new(), vec![0.0; V::N]);
            // SAFETY: the trait's contract; vectors hold N floats.
            unsafe {
                let (a, b, c) = (V::load(a.as_ptr()), V::load(b.as_ptr()), V::load(c.as_ptr()));
                let (ab, bc) = (a.pack(b), b.pack(c));
                for v in [ab, bc, ab.low(), ab.high(), bc.high()] {
                    let mut row = vec![0.0; V::N];
                    v.store(row.as_mut_ptr());
                    bits.extend(row.iter().map(|v: &f32| v.to_bits()));
                }
                c.add_products(ab, bc).store(sums.as_mut_ptr());
            }
            (bits, sums)
        }
    }

    #[test]
    fn pairs_of_halves_equal_their_scalar_twin() {
        for width in [4, 8, 16, 32] {
            let plain = dispatch(Isa::Scalar, width, Halves);
            for isa in Isa::available() {
                let other = dispatch(isa, width, Halves);
                assert_eq!(plain.0, other.0, "{isa:?} {width}");
                for (a, b) in plain.1.iter().zip(&other.1) {
                    assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{isa:?} {width}: {a} {b}");
                }
            }
        }
    }
}
