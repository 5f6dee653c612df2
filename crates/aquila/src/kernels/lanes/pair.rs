//! Twice as many lanes: two registers of any kind.

use super::Lanes;

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
