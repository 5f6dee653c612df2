//! A pass over rows with a dense block: a few rows at a time.
//!
//! One row alone must load every weight of the block twice, for its margin and for its step, and store it once. So up
//! to eight rows, a *tile*, share these loads. With `W` the weights when the tile begins, row `r` of it has the margin
//! `⟨W, x_r⟩ + Σ_{s<r} ⟨x_s, x_r⟩ · δ_s`, where `δ_s` is the step `Δα·y` of an earlier row of the tile; at its end
//! `W += Σ_s x_s · δ_s`. This is the algebra of one row after the other, in the same order: only rounding differs.
//! Sparse entries are added row by row as ever. Source of the idea: the blocked updates of dense factorisations.
//!
//! Cost of a row: a multiply-add for each of its dense columns and register of lanes, and again if it moved; half a
//! load for each, not two; and half a tile's products of rows with rows.

use super::dcd::{Args, Gap, MANY_ROWS, Rule};
use super::lanes::{Lanes, Work};
use std::marker::PhantomData;

/// Most rows of a tile.
const MOST_ROWS: usize = 8;

/// A pass over rows with a dense block.
pub(super) struct Tiled<'a, R> {
    args: Args<'a>,
    rule: PhantomData<R>,
}

impl<'a, R> Tiled<'a, R> {
    pub fn new(args: Args<'a>) -> Self {
        Self { args, rule: PhantomData }
    }
}

impl<R: Rule> Work for Tiled<'_, R> {
    type Out = Gap;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Gap {
        let Self { mut args, .. } = self;
        let (order, cols) = (args.order, args.rows.dense.cols());
        // SAFETY: `pass` checked every length, that `order` names rows and that the panel has `cols` lines of lanes;
        // `DenseRows::new` that each row has `cols` values at its place. `V` is the dispatcher's.
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
                for &i in order.get_unchecked(next..order.len().min(next + V::TILE)) {
                    let row = args.rows.dense.at(i as usize);
                    (0..cols).step_by(16).for_each(|j| super::prefetch_line(row.wrapping_add(j)));
                    args.prefetch_row(i as usize, V::N);
                }
                let mut margins = [V::splat(0.0); MOST_ROWS];
                products::<V>(args.state.panel.as_ptr(), cols, &at[..n], &mut margins);
                // The rows that moved, with their steps.
                let mut moved = 0;
                let (mut movers, mut steps) = ([std::ptr::null(); MOST_ROWS], [V::splat(0.0); MOST_ROWS]);
                for r in 0..n {
                    let i = rows[r];
                    let ready = R::ready(&pass, &args, i);
                    let mut dense = margins[r];
                    for (x, step) in movers.iter().zip(&steps).take(moved) {
                        dense = V::splat(dot::<V>(*x, at[r], cols)).mul_add(*step, dense);
                    }
                    let margin = bias.mul_add(b, args.margins::<V>(i).add(dense));
                    let Some(step) = R::step(&mut pass, &mut args, i, ready, margin) else {
                        *args.state.resting.get_unchecked_mut(i) = R::RESTS && order.len() >= MANY_ROWS;
                        continue;
                    };
                    args.add_row(i, step);
                    b = bias.mul_add(step, b);
                    (movers[moved], steps[moved]) = (at[r], step);
                    moved += 1;
                }
                add_rows::<V>(args.state.panel.as_mut_ptr(), cols, &movers[..moved], &steps);
            }
            b.store(args.state.bias.as_mut_ptr());
            R::end(pass)
        }
    }
}

/// Calls a function for a number of rows that the compiler knows.
macro_rules! for_rows {
    ($n:expr, $f:ident::<$v:ident>($($arg:expr),*)) => {
        match $n {
            0 => {}
            1 => $f::<$v, 1>($($arg),*),
            2 => $f::<$v, 2>($($arg),*),
            3 => $f::<$v, 3>($($arg),*),
            4 => $f::<$v, 4>($($arg),*),
            5 => $f::<$v, 5>($($arg),*),
            6 => $f::<$v, 6>($($arg),*),
            7 => $f::<$v, 7>($($arg),*),
            _ => $f::<$v, 8>($($arg),*),
        }
    };
}

/// The margins of up to eight rows.
///
/// # Safety
/// Each row has `cols` values and the panel `cols` lines of `V::N`; `V`'s instruction set was detected.
#[inline(always)]
unsafe fn products<V: Lanes>(panel: *const f32, cols: usize, rows: &[*const f32], out: &mut [V; MOST_ROWS]) {
    // SAFETY: the caller's.
    unsafe { for_rows!(rows.len(), products_of::<V>(panel, cols, rows.as_ptr(), out)) }
}

/// # Safety
/// As [`products`], for `N` rows.
#[inline(always)]
unsafe fn products_of<V: Lanes, const N: usize>(
    panel: *const f32,
    cols: usize,
    rows: *const *const f32,
    out: &mut [V; MOST_ROWS],
) {
    // SAFETY: the caller's.
    unsafe {
        let rows: [*const f32; N] = std::array::from_fn(|r| *rows.add(r));
        // Two streams, so that few rows do not wait for their sums; they share the registers of a full tile.
        let (mut even, mut odd) = ([V::splat(0.0); N], [V::splat(0.0); N]);
        let mut j = 0;
        if N <= V::TILE / 2 {
            while j + 2 <= cols {
                let (first, second) = (V::load(panel.add(j * V::N)), V::load(panel.add((j + 1) * V::N)));
                for r in 0..N {
                    even[r] = V::splat(*rows[r].add(j)).mul_add(first, even[r]);
                    odd[r] = V::splat(*rows[r].add(j + 1)).mul_add(second, odd[r]);
                }
                j += 2;
            }
        }
        while j < cols {
            let weights = V::load(panel.add(j * V::N));
            for r in 0..N {
                even[r] = V::splat(*rows[r].add(j)).mul_add(weights, even[r]);
            }
            j += 1;
        }
        for r in 0..N {
            out[r] = even[r].add(odd[r]);
        }
    }
}

/// `panel += Σ row · step`.
///
/// # Safety
/// As [`products`], with a step for each row.
#[inline(always)]
unsafe fn add_rows<V: Lanes>(panel: *mut f32, cols: usize, rows: &[*const f32], steps: &[V; MOST_ROWS]) {
    // SAFETY: the caller's.
    unsafe { for_rows!(rows.len(), add_rows_of::<V>(panel, cols, rows.as_ptr(), steps)) }
}

/// # Safety
/// As [`add_rows`], for `N` rows.
#[inline(always)]
unsafe fn add_rows_of<V: Lanes, const N: usize>(
    panel: *mut f32,
    cols: usize,
    rows: *const *const f32,
    steps: &[V; MOST_ROWS],
) {
    // SAFETY: the caller's.
    unsafe {
        let rows: [*const f32; N] = std::array::from_fn(|r| *rows.add(r));
        let steps: [V; N] = std::array::from_fn(|r| steps[r]);
        for j in 0..cols {
            let at = panel.add(j * V::N);
            let mut weights = V::load(at);
            for r in 0..N {
                weights = V::splat(*rows[r].add(j)).mul_add(steps[r], weights);
            }
            weights.store(at);
        }
    }
}

/// The product of two rows.
///
/// # Safety
/// Both have `cols` values; `V`'s instruction set was detected.
#[inline(always)]
unsafe fn dot<V: Lanes>(a: *const f32, b: *const f32, cols: usize) -> f32 {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [V::splat(0.0); 2];
        let mut j = 0;
        while j + 2 * V::N <= cols {
            for (k, sum) in sums.iter_mut().enumerate() {
                let at = j + k * V::N;
                *sum = V::load(a.add(at)).mul_add(V::load(b.add(at)), *sum);
            }
            j += 2 * V::N;
        }
        let mut sum = sums[0].add(sums[1]).sum();
        while j < cols {
            sum += *a.add(j) * *b.add(j);
            j += 1;
        }
        sum
    }
}
