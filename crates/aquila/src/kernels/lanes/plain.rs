//! Lanes as a plain array: the scalar twin of every register.

use super::Lanes;
use crate::kernels::bf16;

/// `W` floats.
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
        Self(self.0.map(|pair| bf16::unpack(pair.to_bits())[0]))
    }
    #[inline(always)]
    unsafe fn high(self) -> Self {
        Self(self.0.map(|pair| bf16::unpack(pair.to_bits())[1]))
    }
}
