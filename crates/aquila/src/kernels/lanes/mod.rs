//! A few floats side by side: what the solver steps through sibling labels with.
//!
//! One trait: plain arrays on every target, the x86-64 registers of 4, 8 and 16 floats, and pairs of either.
//! A function that is generic over [`Lanes`] and marked `inline(always)` becomes vector code inside a
//! `#[target_feature]` function, as in the vector trait of aho-corasick's packed searchers.

mod dispatch;
mod pair;
mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::bf16;
pub(crate) use dispatch::{Work, dispatch};

/// Most floats side by side.
pub const MOST: usize = 32;

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
    /// `self` plus both products of each lane, where the lanes of `a` and `b` are pairs of [`bf16`](super::bf16) values.
    #[inline(always)]
    unsafe fn add_products(self, a: Self, b: Self) -> Self {
        // SAFETY: the trait's contract, here and below.
        unsafe { a.high().mul_add(b.high(), a.low().mul_add(b.low(), self)) }
    }
    /// The first of each pair of halves.
    #[inline(always)]
    unsafe fn low(self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, self, |pair, _| bf16::unpack(pair.to_bits())[0]) }
    }
    /// The second of each pair of halves.
    #[inline(always)]
    unsafe fn high(self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, self, |pair, _| bf16::unpack(pair.to_bits())[1]) }
    }
    /// Bf16Rows pairs of bf16 values, these first, those of `high` second.
    #[inline(always)]
    unsafe fn pack(self, high: Self) -> Self {
        // SAFETY: as above.
        unsafe { each(self, high, |a, b| f32::from_bits(bf16::pack(a, b))) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Isa;

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

    struct Bf16;

    impl Work for Bf16 {
        type Out = (Vec<u32>, Vec<f32>);
        const BF16: bool = true;
        #[inline(always)]
        unsafe fn run<V: Lanes>(self) -> Self::Out {
            // Some of them in the middle between two bf16 values.
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
            let plain = dispatch(Isa::Scalar, width, Bf16);
            for isa in Isa::available() {
                let other = dispatch(isa, width, Bf16);
                assert_eq!(plain.0, other.0, "{isa:?} {width}");
                for (a, b) in plain.1.iter().zip(&other.1) {
                    assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{isa:?} {width}: {a} {b}");
                }
            }
        }
    }
}
