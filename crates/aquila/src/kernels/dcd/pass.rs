//! One pass of dual coordinate descent over the rows of a problem, for any loss and any kind of rows.

use super::dense_rows::Values;
use super::hinge::Hinge;
use super::logistic::Logistic;
use super::row_by_row::RowByRow;
use super::{DualLoss, MOST, Rows, Rule, Siblings, Step};
use crate::kernels::lanes::{Lanes, dispatch};
use crate::kernels::tiles::Tiled;
use crate::kernels::{AHEAD, FURTHER, Isa, prefetch_line};

/// The input from which a block of siblings learns.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The node's rows.
    pub rows: Rows<'a>,
    /// For each row, a bit for each lane whose label the row has.
    pub positives: &'a [u32],
    /// If given, a factor on the cost of each row's lanes.
    pub relevance: Option<&'a [f32]>,
    /// The constants.
    pub step: Step,
}

/// Statistics of a pass, by lane.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// The largest projected gradient.
    pub max: [f32; MOST],
    /// The smallest.
    pub min: [f32; MOST],
    /// How much the pass raised the dual objective, up to a factor that is the same in all passes.
    pub gain: [f32; MOST],
}

/// Runs one pass over the rows in this order. Lanes outside `active` do not change.
pub fn pass(isa: Isa, problem: &Problem<'_>, order: &[u32], state: &mut Siblings, active: u32) -> Gap {
    let (n, width) = (problem.rows.len(), state.width());
    let (steps, paired) = (problem.rows.dense.steps(), problem.rows.dense.paired());
    assert!(problem.positives.len() == n && order.iter().all(|i| (*i as usize) < n));
    assert!(
        state.w.len() == problem.rows.cols() * width
            && state.alpha.len() == n * width
            && state.resting.len() == n
            && state.panel.len() == steps * width * if paired { 2 } else { 1 }
            && (!paired || state.rounded.len() == steps * width)
    );
    assert!(problem.relevance.is_none_or(|r| r.len() == n * width));
    let args = Args { problem, rows: problem.rows, order, state, active };
    match problem.step.loss {
        DualLoss::Logistic => run::<Logistic>(isa, width, args),
        DualLoss::Hinge => run::<Hinge<false>>(isa, width, args),
        DualLoss::SquaredHinge => run::<Hinge<true>>(isa, width, args),
    }
}

fn run<R: Rule>(isa: Isa, width: usize, args: Args<'_>) -> Gap {
    match args.rows.dense.values() {
        _ if args.rows.dense.cols() == 0 => dispatch(isa, width, RowByRow::<R>::new(args)),
        Values::Floats(_) => dispatch(isa, width, Tiled::<R, false, false>::new(args)),
        Values::Bf16(_) => dispatch(isa, width, Tiled::<R, true, false>::new(args)),
        Values::Products(_) => dispatch(isa, width, Tiled::<R, false, true>::new(args)),
    }
}

/// The data that a pass works on.
pub(in crate::kernels) struct Args<'a> {
    pub problem: &'a Problem<'a>,
    pub rows: Rows<'a>,
    pub order: &'a [u32],
    pub state: &'a mut Siblings,
    pub active: u32,
}

/// Problems with fewer rows than this visit every row in every pass.
pub(in crate::kernels) const MANY_ROWS: usize = 128;

/// Floats of a cache line.
const LINE: usize = 16;

impl Args<'_> {
    /// Prefetches rows that will be needed soon, and the weights of the next one if they are `far`.
    ///
    /// # Safety
    /// As [`Args::margins`] for all rows of the order.
    #[inline(always)]
    pub unsafe fn prefetch<V: Lanes>(&self, k: usize, far: bool) {
        // SAFETY: upheld by the caller.
        unsafe {
            if let Some(&i) = self.order.get(k + FURTHER) {
                prefetch_line(self.rows.spans.as_ptr().wrapping_add(i as usize));
                prefetch_line(self.problem.positives.as_ptr().wrapping_add(i as usize));
                prefetch_line(self.state.resting.as_ptr().wrapping_add(i as usize));
            }
            if let Some(&i) = self.order.get(k + AHEAD) {
                let i = i as usize;
                let (idx, val) = self.rows.entries_of(i);
                for line in (0..idx.len()).step_by(LINE) {
                    prefetch_line(idx.as_ptr().wrapping_add(line));
                    prefetch_line(val.as_ptr().wrapping_add(line));
                }
                for line in (0..V::N).step_by(LINE) {
                    prefetch_line(self.state.alpha.as_ptr().wrapping_add(i * V::N + line));
                }
            }
            if let Some(&i) = self.order.get(k + 1)
                && far
                && !self.state.resting.get_unchecked(i as usize)
            {
                self.prefetch_weights::<V>(i as usize);
            }
        }
    }

    /// Prefetches the sparse weights of a row.
    ///
    /// # Safety
    /// As [`Args::margins`].
    #[inline(always)]
    pub unsafe fn prefetch_weights<V: Lanes>(&self, i: usize) {
        // SAFETY: upheld by the caller; `Rows::new` checked the spans.
        let (idx, _) = unsafe { self.rows.entries_of(i) };
        for j in idx {
            let at = self.state.w.as_ptr().wrapping_add(*j as usize * V::N);
            (0..V::N).step_by(LINE).for_each(|lane| prefetch_line(at.wrapping_add(lane)));
        }
    }

    /// `w·x_i` of every lane.
    ///
    /// # Safety
    /// `i` is a row of `rows`, the state was reset for these rows and `V::N` lanes.
    #[inline(always)]
    pub unsafe fn margins<V: Lanes>(&self, i: usize) -> V {
        // SAFETY: upheld by the caller.
        unsafe { self.rows.margins::<V>(self.state.w.as_ptr(), i) }
    }

    /// `w += d·x_i`.
    ///
    /// # Safety
    /// As [`Args::margins`].
    #[inline(always)]
    pub unsafe fn add_row<V: Lanes>(&mut self, i: usize, d: V) {
        // SAFETY: upheld by the caller.
        unsafe { self.rows.add_row::<V>(self.state.w.as_mut_ptr(), i, d) }
    }

    /// The cost of row `i` in every lane.
    ///
    /// # Safety
    /// As [`Args::margins`].
    #[inline(always)]
    pub unsafe fn costs<V: Lanes>(&self, i: usize, cp: V, cn: V) -> V {
        // SAFETY: `pass` checked the length of `relevance`.
        unsafe {
            let c = V::select(*self.problem.positives.get_unchecked(i), cp, cn);
            match self.problem.relevance {
                None => c,
                Some(r) => c.mul(V::load(r.as_ptr().add(i * V::N))),
            }
        }
    }
}
