//! A pass over rows with a dense block, a few rows at a time.
//!
//! A row processed on its own loads every weight of the block twice, for its margin and for its step, and stores it
//! once. Therefore up to eight rows, a *tile*, share these loads. With `W` the weights at the start of the tile, row
//! `r` of it has the margin `⟨W, x_r⟩ + Σ_{s<r} ⟨x_s, x_r⟩ · δ_s`, where `δ_s` is the step `Δα·y` of an earlier row of
//! the tile; at the end `W += Σ_s x_s · δ_s`. This is algebraically the same as one row after the other, in the same
//! order: only rounding differs. Sparse entries are added row by row as usual. Source of the idea: the blocked updates
//! of dense factorisations.
//!
//! Where the processor multiplies pairs of [`bf16`] values in the time of one product of floats, rows are stored as
//! such pairs, and margins and products of rows with rows are sums of them. Weights remain f32, and steps are added to
//! them in f32. Margins use rounded weights, with an error of about 10⁻⁴ of the length of the weights, far below any
//! `eps` in use.
//!
//! Cost per row: a multiply-add for each of its dense columns and each register of lanes, and again if it moved; half a
//! load for each, instead of two; and half of the products of a tile's rows with rows.

use super::bf16;
use super::dcd::{Args, Gap, MANY_ROWS, Rule};
use super::lanes::{Lanes, Work};
use std::marker::PhantomData;

/// Above this many bytes (half of a typical second-level cache), the sparse weights of a row are prefetched while the
/// previous row is stepped on: sums with the block leave memory idle. (Weights prefetched a whole tile ahead are
/// evicted from the nearest cache before they are needed.)
const NEAR: usize = 512 << 10;

/// Maximum number of rows in a tile.
pub(super) const MOST_ROWS: usize = 8;

/// A pass over rows with a dense block, or over products of rows ([`gram`](super::gram)): then a row of the block holds
/// the products with earlier rows, and a step changes one line of weights.
pub(super) struct Tiled<'a, R, const BF16: bool, const PRODUCTS: bool> {
    args: Args<'a>,
    rule: PhantomData<R>,
}

impl<'a, R, const BF16: bool, const PRODUCTS: bool> Tiled<'a, R, BF16, PRODUCTS> {
    pub fn new(args: Args<'a>) -> Self {
        Self { args, rule: PhantomData }
    }
}

impl<R: Rule, const BF16: bool, const PRODUCTS: bool> Work for Tiled<'_, R, BF16, PRODUCTS> {
    type Out = Gap;
    const BF16: bool = BF16;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Gap {
        let Self { mut args, .. } = self;
        let (order, cols) = (args.order, args.rows.dense.steps());
        let far = args.state.w.len() * size_of::<f32>() > NEAR;
        // SAFETY: `pass` checked every length, that `order` names rows and that the panel has `cols` lines of lanes;
        // `DenseRows::new` that each row has `cols` values at its place. The dispatcher checked `V`.
        unsafe {
            let mut pass = R::begin::<V>(&args.problem.step);
            let bias = V::splat(args.problem.step.bias);
            let mut b = V::load(args.state.bias.as_ptr());
            let (mut rows, mut at) = ([0; MOST_ROWS], [std::ptr::null(); MOST_ROWS]);
            let mut next = 0;
            while next < order.len() {
                let mut n = 0;
                while n < V::TILE && next < order.len() {
                    let i = *order.get_unchecked(next) as usize;
                    next += 1;
                    if !R::RESTS || !std::mem::take(args.state.resting.get_unchecked_mut(i)) {
                        rows[n] = i;
                        at[n] = args.rows.dense.at(i);
                        n += 1;
                    }
                }
                let coming = order.get_unchecked(next..order.len().min(next + V::TILE));
                let later = order
                    .get_unchecked((next + V::TILE).min(order.len())..order.len().min(next + 2 * V::TILE));
                let ahead = Ahead { args: &args, coming, later, lines: cols.div_ceil(LINE) };
                if far && n > 0 {
                    args.prefetch_weights::<V>(rows[0]);
                }
                let mut margins = [V::splat(0.0); MOST_ROWS];
                let weights = if BF16 { args.state.rounded.as_ptr() } else { args.state.panel.as_ptr() };
                products::<V, BF16>(weights, cols, &at[..n], &ahead, &mut margins);
                // The rows that moved, with their steps.
                let mut moved = 0;
                let (mut movers, mut steps) =
                    ([(0, std::ptr::null()); MOST_ROWS], [V::splat(0.0); MOST_ROWS]);
                for r in 0..n {
                    let i = rows[r];
                    if far && r + 1 < n {
                        args.prefetch_weights::<V>(rows[r + 1]);
                    }
                    let ready = R::ready(&pass, &args, i);
                    let mut dense = margins[r];
                    for (x, step) in movers.iter().zip(&steps).take(moved) {
                        let product =
                            if PRODUCTS { *at[r].add(x.0) } else { dot::<V, BF16>(x.1, at[r], cols) };
                        dense = V::splat(product).mul_add(*step, dense);
                    }
                    let margin = bias.mul_add(b, args.margins::<V>(i).add(dense));
                    let Some(step) = R::step(&mut pass, &mut args, i, ready, margin) else {
                        *args.state.resting.get_unchecked_mut(i) = R::RESTS && order.len() >= MANY_ROWS;
                        continue;
                    };
                    args.add_row(i, step);
                    b = bias.mul_add(step, b);
                    (movers[moved], steps[moved]) = ((i, at[r]), step);
                    moved += 1;
                }
                let (panel, rounded) = (args.state.panel.as_mut_ptr(), args.state.rounded.as_mut_ptr());
                if PRODUCTS {
                    for ((i, _), step) in movers.iter().zip(&steps).take(moved) {
                        let at = panel.add(i * V::N);
                        V::load(at).add(*step).store(at);
                    }
                } else {
                    let movers = movers.map(|(_, at)| at);
                    add_rows::<V, BF16>(panel, rounded, cols, &movers[..moved], &steps);
                }
            }
            b.store(args.state.bias.as_mut_ptr());
            R::end(pass)
        }
    }
}

/// Floats of a cache line.
const LINE: usize = 16;

/// Data that will be needed soon, prefetched in small parts while margins are summed: all at once would exceed the
/// number of loads that a core can have in flight, and everything would wait.
struct Ahead<'a, 'b> {
    args: &'a Args<'b>,
    /// The rows of the next tile.
    coming: &'a [u32],
    /// The rows after those: the data that tells where they are stored.
    later: &'a [u32],
    /// Number of prefetch calls.
    lines: usize,
}

/// What to prefetch while margins are summed.
pub(super) trait Ask {
    /// Prefetches the part that belongs to a line of dense columns.
    ///
    /// # Safety
    /// Rows are those of the pass.
    unsafe fn ask<V: Lanes>(&self, line: usize);
}

/// For contiguous rows, which the processor prefetches on its own.
pub(super) struct Nothing;

impl Ask for Nothing {
    #[inline(always)]
    unsafe fn ask<V: Lanes>(&self, _: usize) {}
}

impl Ask for Ahead<'_, '_> {
    #[inline(always)]
    unsafe fn ask<V: Lanes>(&self, line: usize) {
        let rows = self.args.rows;
        let (idx, val) = (rows.entries.idx.as_ptr(), rows.entries.val.as_ptr());
        for &i in self.coming {
            super::prefetch_line(rows.dense.at(i as usize).wrapping_add(line * LINE));
            // SAFETY: upheld by the caller.
            let span = unsafe { rows.spans.get_unchecked(i as usize) };
            let mut at = span.begin + line * LINE;
            while at < span.end {
                super::prefetch_line(idx.wrapping_add(at));
                super::prefetch_line(val.wrapping_add(at));
                at += self.lines * LINE;
            }
            if line * LINE < V::N {
                super::prefetch_line(
                    self.args.state.alpha.as_ptr().wrapping_add(i as usize * V::N + line * LINE),
                );
            }
        }
        if let Some(&i) = self.later.get(line) {
            super::prefetch_line(rows.spans.as_ptr().wrapping_add(i as usize));
            super::prefetch_line(self.args.problem.positives.as_ptr().wrapping_add(i as usize));
        }
    }
}

/// Calls a function with a number of rows that is known at compile time.
macro_rules! for_rows {
    ($n:expr, $f:ident::<$v:ident, $h:ident>($($arg:expr),*)) => {
        match $n {
            0 => {}
            1 => $f::<$v, $h, 1>($($arg),*),
            2 => $f::<$v, $h, 2>($($arg),*),
            3 => $f::<$v, $h, 3>($($arg),*),
            4 => $f::<$v, $h, 4>($($arg),*),
            5 => $f::<$v, $h, 5>($($arg),*),
            6 => $f::<$v, $h, 6>($($arg),*),
            7 => $f::<$v, $h, 7>($($arg),*),
            _ => $f::<$v, $h, 8>($($arg),*),
        }
    };
}

/// The margins of up to eight rows.
///
/// # Safety
/// Each row has `cols` values and the panel `cols` lines of `V::N`; `V`'s instruction set was detected.
#[inline(always)]
pub(super) unsafe fn products<V: Lanes, const BF16: bool>(
    panel: *const f32,
    cols: usize,
    rows: &[*const f32],
    ahead: &impl Ask,
    out: &mut [V; MOST_ROWS],
) {
    // SAFETY: upheld by the caller.
    unsafe { for_rows!(rows.len(), products_of::<V, BF16>(panel, cols, rows.as_ptr(), ahead, out)) }
}

/// # Safety
/// As [`products`], for `N` rows.
#[inline(always)]
unsafe fn products_of<V: Lanes, const BF16: bool, const N: usize>(
    panel: *const f32,
    cols: usize,
    rows: *const *const f32,
    ahead: &impl Ask,
    out: &mut [V; MOST_ROWS],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        let rows: [*const f32; N] = std::array::from_fn(|r| *rows.add(r));
        // Two streams, so that few rows do not wait for their sums; they share the registers of a full tile.
        let (mut even, mut odd) = ([V::splat(0.0); N], [V::splat(0.0); N]);
        for line in 0..cols.div_ceil(LINE) {
            ahead.ask::<V>(line);
            let (mut j, end) = (line * LINE, cols.min((line + 1) * LINE));
            if N <= V::TILE / 2 {
                while j + 2 <= end {
                    let (first, second) = (V::load(panel.add(j * V::N)), V::load(panel.add((j + 1) * V::N)));
                    for r in 0..N {
                        even[r] = add::<V, BF16>(even[r], V::splat(*rows[r].add(j)), first);
                        odd[r] = add::<V, BF16>(odd[r], V::splat(*rows[r].add(j + 1)), second);
                    }
                    j += 2;
                }
            }
            while j < end {
                let weights = V::load(panel.add(j * V::N));
                for r in 0..N {
                    even[r] = add::<V, BF16>(even[r], V::splat(*rows[r].add(j)), weights);
                }
                j += 1;
            }
        }
        for r in 0..N {
            out[r] = even[r].add(odd[r]);
        }
    }
}

/// `sum + a · b`, for floats or for bf16 pairs.
///
/// # Safety
/// `V`'s instruction set was detected.
#[inline(always)]
unsafe fn add<V: Lanes, const BF16: bool>(sum: V, a: V, b: V) -> V {
    // SAFETY: upheld by the caller.
    unsafe { if BF16 { sum.add_products(a, b) } else { a.mul_add(b, sum) } }
}

/// `panel += Σ row · step`; for bf16 values also updates the rounded panel.
///
/// # Safety
/// As [`products`], with a step for each row. For bf16 values the panel has two lines for each line of `rounded`.
#[inline(always)]
pub(super) unsafe fn add_rows<V: Lanes, const BF16: bool>(
    panel: *mut f32,
    rounded: *mut f32,
    cols: usize,
    rows: &[*const f32],
    steps: &[V; MOST_ROWS],
) {
    // SAFETY: upheld by the caller.
    unsafe { for_rows!(rows.len(), add_rows_of::<V, BF16>(panel, rounded, cols, rows.as_ptr(), steps)) }
}

/// # Safety
/// As [`add_rows`], for `N` rows.
#[inline(always)]
unsafe fn add_rows_of<V: Lanes, const BF16: bool, const N: usize>(
    panel: *mut f32,
    rounded: *mut f32,
    cols: usize,
    rows: *const *const f32,
    steps: &[V; MOST_ROWS],
) {
    // SAFETY: upheld by the caller.
    unsafe {
        let rows: [*const f32; N] = std::array::from_fn(|r| *rows.add(r));
        let steps: [V; N] = std::array::from_fn(|r| steps[r]);
        for j in 0..cols {
            if BF16 {
                let at = panel.add(2 * j * V::N);
                let (mut low, mut high) = (V::load(at), V::load(at.add(V::N)));
                for r in 0..N {
                    let pair = V::splat(*rows[r].add(j));
                    low = pair.low().mul_add(steps[r], low);
                    high = pair.high().mul_add(steps[r], high);
                }
                low.store(at);
                high.store(at.add(V::N));
                low.pack(high).store(rounded.add(j * V::N));
            } else {
                let at = panel.add(j * V::N);
                let mut weights = V::load(at);
                for r in 0..N {
                    weights = V::splat(*rows[r].add(j)).mul_add(steps[r], weights);
                }
                weights.store(at);
            }
        }
    }
}

/// The product of two rows.
///
/// # Safety
/// Both have `cols` values; `V`'s instruction set was detected.
#[inline(always)]
unsafe fn dot<V: Lanes, const BF16: bool>(a: *const f32, b: *const f32, cols: usize) -> f32 {
    // SAFETY: upheld by the caller.
    unsafe {
        let mut sums = [V::splat(0.0); 2];
        let mut j = 0;
        while j + 2 * V::N <= cols {
            for (k, sum) in sums.iter_mut().enumerate() {
                let at = j + k * V::N;
                *sum = add::<V, BF16>(*sum, V::load(a.add(at)), V::load(b.add(at)));
            }
            j += 2 * V::N;
        }
        let mut sum = sums[0].add(sums[1]).sum();
        while j < cols {
            sum += if BF16 {
                let (a, b) = (bf16::unpack((*a.add(j)).to_bits()), bf16::unpack((*b.add(j)).to_bits()));
                a[0] * b[0] + a[1] * b[1]
            } else {
                *a.add(j) * *b.add(j)
            };
            j += 1;
        }
        sum
    }
}
