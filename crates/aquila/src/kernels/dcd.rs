//! One pass of dual coordinate descent over the rows of a node, for up to 32 sibling labels at once.
//!
//! For label `l` with signs `y ∈ {−1, +1}` and costs `C` the problem is
//! `min ½‖w‖² + Σ C·loss(y·(w·x + b·β))`; its dual has one variable `α ≥ 0` a row, and `w = Σ α·y·x`. A step on
//! row `i` takes the gradient `G = y·(w·x_i + b·β) − 1 + D·α_i`, moves `α_i` to `clip(α_i − ω·G/Q_i, 0, U)` with
//! `Q_i = x_i·x_i + β² + D`, and adds `Δα·y·x_i` to `w` (Hsieh et al., ICML 2008). Squared hinge: `D = 1/(2C)`,
//! `U = ∞`. Hinge: `D = 0`, `U = C`. Logistic: see `logistic_root` in the source.
//!
//! Two departures, both measured at equal P@k. Steps are over-relaxed by ω = 1.3 (any 0 < ω < 2 descends; 1.0 takes
//! a fifth more passes, 1.5 more again on some sets). A row that moved no lane rests for one pass: it is near its
//! optimum in all these problems, and a look at it costs as much as a step. What others move while it rests may go
//! unseen in the last pass; among many rows that is of no matter, so only large problems let rows rest.
//!
//! Siblings share their rows, so `w` is stored feature by feature with one float a lane: a row's entry costs one
//! load, one broadcast and one fused multiply-add for all lanes.

use super::Isa;
use super::aligned::Aligned;
use super::lanes::{Lanes, Work, dispatch};
use super::tiles::Tiled;
use std::marker::PhantomData;

/// Most lanes that step together.
pub const MOST: usize = 32;

/// Sparse entries whose column ids were checked once, so that the passes may index freely.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    pub(super) idx: &'a [u32],
    pub(super) val: &'a [f32],
    cols: usize,
}

impl<'a> Entries<'a> {
    /// Takes column ids and values.
    ///
    /// # Panics
    /// If the arrays do not fit together: callers build them, so that would be a defect.
    pub fn new(idx: &'a [u32], val: &'a [f32], cols: usize) -> Self {
        assert_eq!(idx.len(), val.len());
        assert!(idx.is_empty() || (idx.iter().fold(0, |m, j| m.max(*j)) as usize) < cols);
        Self { idx, val, cols }
    }

    /// Number of columns.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// The ids and values of a span.
    #[inline(always)]
    pub(crate) fn slices(&self, span: std::ops::Range<usize>) -> (&'a [u32], &'a [f32]) {
        (&self.idx[span.clone()], &self.val[span])
    }
}

/// One row among [`Entries`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Its first entry.
    pub begin: usize,
    /// The end of its entries.
    pub end: usize,
    /// `x·x` of the row, entries that are left out included.
    pub squared: f32,
    /// `x·x` of entries that are left out because no other row has their column: their weights are `α·y·x`, so they
    /// add `α·y` times this to the row's own margin and nothing to any other.
    pub lone: f32,
}

/// Rows of a dense block: any of them, where they stand.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenseRows<'a> {
    values: Values<'a>,
    cols: usize,
    places: &'a [u32],
}

#[derive(Debug, Clone, Copy)]
enum Values<'a> {
    Floats(&'a [f32]),
    Halves(&'a [u32]),
    Products(&'a [f32]),
}

impl Default for Values<'_> {
    fn default() -> Self {
        Self::Floats(&[])
    }
}

impl<'a> DenseRows<'a> {
    /// Takes a block of so many columns and the places of the node's rows in it; with no columns there is no block.
    ///
    /// # Panics
    /// If a place is beyond the block.
    pub fn new(values: &'a [f32], cols: usize, places: &'a [u32]) -> Self {
        Self::of(Values::Floats(values), values.len(), cols, places)
    }

    /// The same for a block in pairs of halves. Weights are f32; they are rounded to
    /// halves for margins alone.
    ///
    /// # Panics
    /// If a place is beyond the block.
    pub fn halves(pairs: &'a [u32], cols: usize, places: &'a [u32]) -> Self {
        Self::of(Values::Halves(pairs), pairs.len(), cols, places)
    }

    /// The same for products of the node's rows with each other, as many columns as rows or more: a row's weights are
    /// its signed duals.
    pub(super) fn products(products: &'a [f32], cols: usize, places: &'a [u32]) -> Self {
        assert!(places.len() <= cols);
        Self::of(Values::Products(products), products.len(), cols, places)
    }

    fn of(values: Values<'a>, len: usize, cols: usize, places: &'a [u32]) -> Self {
        if cols == 0 {
            return Self::default();
        }
        let rows = Self { values, cols, places };
        assert!(places.iter().all(|i| (*i as usize + 1) * rows.steps() <= len));
        rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of floats or pairs of a row.
    #[inline(always)]
    pub(super) fn steps(&self) -> usize {
        match self.values {
            Values::Floats(_) | Values::Products(_) => self.cols,
            Values::Halves(_) => self.cols.div_ceil(2),
        }
    }

    /// Whether values are pairs of halves.
    pub(super) fn paired(&self) -> bool {
        matches!(self.values, Values::Halves(_))
    }

    /// A row's floats, or the bits of its pairs.
    pub(super) fn row(&self, i: usize) -> impl Iterator<Item = f32> + 'a {
        let span = self.places[i] as usize * self.steps()..(self.places[i] as usize + 1) * self.steps();
        let (floats, pairs) = match self.values {
            Values::Floats(values) | Values::Products(values) => (&values[span], &[][..]),
            Values::Halves(pairs) => (&[][..], &pairs[span]),
        };
        floats.iter().copied().chain(pairs.iter().map(|p| f32::from_bits(*p)))
    }

    /// Where a row's floats, or pairs, begin.
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> *const f32 {
        let values = match self.values {
            Values::Floats(values) | Values::Products(values) => values.as_ptr(),
            Values::Halves(pairs) => pairs.as_ptr().cast(),
        };
        values.wrapping_add(self.places[i] as usize * self.steps())
    }
}

/// The rows of a node: any rows among the entries of a matrix, its own or a larger one, and what they have in a dense
/// block.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub(super) entries: Entries<'a>,
    pub(super) spans: &'a [Span],
    pub(super) dense: DenseRows<'a>,
}

impl<'a> Rows<'a> {
    /// Takes spans of entries.
    ///
    /// # Panics
    /// If a span reaches beyond the entries.
    pub fn new(entries: Entries<'a>, spans: &'a [Span]) -> Self {
        assert!(spans.iter().all(|s| s.begin <= s.end && s.end <= entries.idx.len()));
        Self { entries, spans, dense: DenseRows::default() }
    }

    /// The same rows with what they have in a dense block beside it.
    ///
    /// # Panics
    /// If the block is of another number of rows.
    pub fn beside(self, dense: DenseRows<'a>) -> Self {
        assert!(dense.cols == 0 || dense.places.len() == self.spans.len());
        Self { dense, ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Number of columns of the entries.
    pub fn cols(&self) -> usize {
        self.entries.cols
    }

    /// Whether they have more dense values than sparse entries.
    pub fn mostly_dense(&self) -> bool {
        self.spans.iter().map(|s| s.end - s.begin).sum::<usize>() < self.len() * self.dense.cols
    }

    /// `w·x_i` of every lane, the sparse part alone, summed in several streams so that additions need not wait for each other.
    ///
    /// # Safety
    /// `i` is a row, `w` holds `V::N` floats for each column, and the instruction set of `V` was detected.
    #[inline(always)]
    pub(super) unsafe fn margins<V: Lanes>(&self, w: *const f32, i: usize) -> V {
        // SAFETY: `Rows::new` checked that spans lie within the entries and `Entries::new` that every id is below
        // `cols`.
        unsafe {
            let Span { begin, end, .. } = *self.spans.get_unchecked(i);
            let (idx, val) = (self.entries.idx.as_ptr(), self.entries.val.as_ptr());
            let at = |j: usize| V::load(w.add(*idx.add(j) as usize * V::N));
            let mut sums = [V::splat(0.0); 4];
            let mut j = begin;
            while j + V::STREAMS <= end {
                for (k, sum) in sums.iter_mut().enumerate().take(V::STREAMS) {
                    *sum = V::splat(*val.add(j + k)).mul_add(at(j + k), *sum);
                }
                j += V::STREAMS;
            }
            for (k, sum) in sums.iter_mut().enumerate().take(V::STREAMS - 1) {
                if j + k < end {
                    *sum = V::splat(*val.add(j + k)).mul_add(at(j + k), *sum);
                }
            }
            match V::STREAMS {
                1 => sums[0],
                2 => sums[0].add(sums[1]),
                _ => sums[0].add(sums[1]).add(sums[2].add(sums[3])),
            }
        }
    }

    /// `w += d·x_i`.
    ///
    /// # Safety
    /// As [`Rows::margins`].
    #[inline(always)]
    pub(super) unsafe fn add_row<V: Lanes>(&self, w: *mut f32, i: usize, d: V) {
        // SAFETY: as in `margins`; ids within a row differ, so no store is lost.
        unsafe {
            let Span { begin, end, .. } = *self.spans.get_unchecked(i);
            let (idx, val) = (self.entries.idx.as_ptr(), self.entries.val.as_ptr());
            for j in begin..end {
                let at = w.add(*idx.add(j) as usize * V::N);
                V::splat(*val.add(j)).mul_add(d, V::load(at)).store(at);
            }
        }
    }

    /// A row as the passes see it.
    #[cfg(test)]
    pub(crate) fn row(&self, i: usize) -> (Span, &'a [u32], &'a [f32]) {
        let span = self.spans[i];
        (span, &self.entries.idx[span.begin..span.end], &self.entries.val[span.begin..span.end])
    }
}

/// What a row's error costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DualLoss {
    /// max(0, 1 − margin)².
    SquaredHinge,
    /// max(0, 1 − margin).
    Hinge,
    /// ln(1 + exp(−margin)).
    Logistic,
}

/// The constants of a pass.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The loss.
    pub loss: DualLoss,
    /// Cost of rows that have the label.
    pub cp: f32,
    /// Cost of rows that lack it.
    pub cn: f32,
    /// Value of the constant feature.
    pub bias: f32,
    /// Lanes whose projected gradient is no larger rest.
    pub rest: f32,
}

/// The siblings' state: `w` feature by feature, `alpha` row by row, one float a lane each.
#[derive(Debug, Default)]
pub struct Siblings {
    width: usize,
    pub(super) w: Aligned,
    pub(super) panel: Aligned,
    /// The panel rounded to pairs of halves, where rows are such pairs.
    pub(super) rounded: Aligned,
    pub(super) alpha: Aligned,
    pub(super) bias: [f32; MOST],
    pub(super) resting: Vec<bool>,
}

impl Siblings {
    /// Starts anew at zero for these rows and 4, 8, 16 or 32 lanes; memory is kept from one use to the next.
    pub fn reset(&mut self, rows: &Rows<'_>, width: usize) {
        assert!(matches!(width, 4 | 8 | 16 | 32));
        self.width = width;
        self.w.reset(rows.cols() * width);
        let (steps, paired) = (rows.dense.steps(), rows.dense.paired());
        // A column that fills up the last pair has a weight too, always 0.
        self.panel.reset(if paired { 2 * steps } else { steps } * width);
        self.rounded.reset(if paired { steps * width } else { 0 });
        self.alpha.reset(rows.len() * width);
        self.bias = [0.0; MOST];
        self.resting.clear();
        self.resting.resize(rows.len(), false);
    }

    /// Lanes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Weights of a local feature, one a lane.
    pub fn weights(&self, feature: usize) -> &[f32] {
        &self.w[feature * self.width..(feature + 1) * self.width]
    }

    /// Weights of the dense columns, column after column, one a lane.
    pub fn panel(&self) -> &[f32] {
        &self.panel
    }

    /// The bias weight of each lane.
    pub fn bias(&self) -> &[f32; MOST] {
        &self.bias
    }

    /// The dual variables of a row, one a lane.
    pub fn alpha(&self, row: usize) -> &[f32] {
        &self.alpha[row * self.width..(row + 1) * self.width]
    }

    /// For each feature the lanes with a weight of at least this magnitude.
    pub fn survivors(&self, isa: Isa, threshold: f32, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.w.len() / self.width, 0);
        dispatch(isa, self.width, Survivors { w: &self.w, threshold, out });
    }
}

/// Largest and smallest projected gradient that a pass met, by lane.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// The largest.
    pub max: [f32; MOST],
    /// The smallest.
    pub min: [f32; MOST],
}

/// What a block of siblings is to learn from.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The node's rows.
    pub rows: Rows<'a>,
    /// For each row a bit for each lane whose label the row has.
    pub positives: &'a [u32],
    /// Where given, one factor on the cost of each row's lanes.
    pub relevance: Option<&'a [f32]>,
    /// The constants.
    pub step: Step,
}

/// One pass over the rows in this order. Lanes outside `active` stay as they are.
pub fn pass(isa: Isa, problem: &Problem<'_>, order: &[u32], state: &mut Siblings, active: u32) -> Gap {
    let (n, width) = (problem.rows.len(), state.width);
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
    match args.rows.dense.values {
        _ if args.rows.dense.cols == 0 => dispatch(isa, width, RowByRow::<R>::new(args)),
        Values::Floats(_) => dispatch(isa, width, Tiled::<R, false, false>::new(args)),
        Values::Halves(_) => dispatch(isa, width, Tiled::<R, true, false>::new(args)),
        Values::Products(_) => dispatch(isa, width, Tiled::<R, false, true>::new(args)),
    }
}

pub(super) struct Args<'a> {
    pub problem: &'a Problem<'a>,
    pub rows: Rows<'a>,
    pub order: &'a [u32],
    pub state: &'a mut Siblings,
    pub active: u32,
}

/// Over-relaxation of a step.
const OMEGA: f32 = 1.3;

/// Problems of fewer rows look at every row in every pass.
pub(super) const MANY_ROWS: usize = 128;

/// How many rows ahead of the current one are asked from memory: in random order no hardware prefetcher helps.
const AHEAD: usize = 2;

impl Args<'_> {
    /// Asks the caches for a row that will be needed soon.
    #[inline(always)]
    pub fn prefetch(&self, k: usize, lanes: usize) {
        if let Some(&i) = self.order.get(k + AHEAD) {
            self.prefetch_row(i as usize, lanes);
        }
    }

    /// Asks the caches for a row's entries and duals.
    #[inline(always)]
    pub fn prefetch_row(&self, i: usize, lanes: usize) {
        let span = self.rows.spans[i];
        let mut j = span.begin;
        while j < span.end {
            super::prefetch_line(self.rows.entries.idx.as_ptr().wrapping_add(j));
            super::prefetch_line(self.rows.entries.val.as_ptr().wrapping_add(j));
            j += 16;
        }
        super::prefetch_line(self.state.alpha.as_ptr().wrapping_add(i * lanes));
    }

    /// `w·x_i` of every lane.
    ///
    /// # Safety
    /// `i` is a row of `rows`, the state was reset for these rows and `V::N` lanes.
    #[inline(always)]
    pub unsafe fn margins<V: Lanes>(&self, i: usize) -> V {
        // SAFETY: the caller's.
        unsafe { self.rows.margins::<V>(self.state.w.as_ptr(), i) }
    }

    /// `w += d·x_i`.
    ///
    /// # Safety
    /// As [`Args::margins`].
    #[inline(always)]
    pub unsafe fn add_row<V: Lanes>(&mut self, i: usize, d: V) {
        // SAFETY: the caller's.
        unsafe { self.rows.add_row::<V>(self.state.w.as_mut_ptr(), i, d) }
    }

    /// The cost of row `i` in every lane.
    ///
    /// # Safety
    /// As [`Args::margins`].
    #[inline(always)]
    unsafe fn costs<V: Lanes>(&self, i: usize, cp: V, cn: V) -> V {
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

/// How a loss steps on one row, whatever the order of rows and the way to their margins.
pub(super) trait Rule {
    /// Whether rows that moved no lane rest for one pass.
    const RESTS: bool;
    /// What is kept from row to row of a pass.
    type Pass<V: Lanes>;
    /// What a step needs and does not wait for margins.
    type Ready<V: Lanes>;

    /// # Safety
    /// The instruction set of `V` must have been detected, here and below.
    unsafe fn begin<V: Lanes>(step: &Step) -> Self::Pass<V>;
    /// # Safety
    /// `i` is a row.
    unsafe fn ready<V: Lanes>(pass: &Self::Pass<V>, args: &Args<'_>, i: usize) -> Self::Ready<V>;
    /// Steps on row `i`, whose margins are `margin`; `Δα·y`, or none if no lane moved.
    ///
    /// # Safety
    /// As [`Rule::ready`].
    unsafe fn step<V: Lanes>(
        pass: &mut Self::Pass<V>,
        args: &mut Args<'_>,
        i: usize,
        ready: Self::Ready<V>,
        margin: V,
    ) -> Option<V>;
    /// # Safety
    /// As [`Rule::begin`].
    unsafe fn end<V: Lanes>(pass: Self::Pass<V>) -> Gap;
}

/// A pass over sparse rows, one after the other.
struct RowByRow<'a, R> {
    args: Args<'a>,
    rule: PhantomData<R>,
}

impl<'a, R> RowByRow<'a, R> {
    fn new(args: Args<'a>) -> Self {
        Self { args, rule: PhantomData }
    }
}

impl<R: Rule> Work for RowByRow<'_, R> {
    type Out = Gap;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Gap {
        let Self { mut args, .. } = self;
        // SAFETY: `pass` checked every length and that `order` names rows; `V` is the dispatcher's.
        unsafe {
            let mut pass = R::begin::<V>(&args.problem.step);
            let bias = V::splat(args.problem.step.bias);
            let mut b = V::load(args.state.bias.as_ptr());
            for k in 0..args.order.len() {
                args.prefetch(k, V::N);
                let i = *args.order.get_unchecked(k) as usize;
                if R::RESTS && std::mem::take(args.state.resting.get_unchecked_mut(i)) {
                    continue;
                }
                let ready = R::ready(&pass, &args, i);
                let margin = bias.mul_add(b, args.margins::<V>(i));
                match R::step(&mut pass, &mut args, i, ready, margin) {
                    None if R::RESTS => {
                        *args.state.resting.get_unchecked_mut(i) = args.order.len() >= MANY_ROWS;
                    }
                    None => {}
                    Some(step) => {
                        args.add_row(i, step);
                        b = bias.mul_add(step, b);
                    }
                }
            }
            b.store(args.state.bias.as_mut_ptr());
            R::end(pass)
        }
    }
}

/// Hinge (`false`) and squared hinge (`true`).
struct Hinge<const SQUARED: bool>;

/// The constants of a pass in every lane, and its extremes so far.
struct HingePass<V> {
    cp: V,
    cn: V,
    rest: V,
    minus_rest: V,
    beta: f32,
    max: V,
    min: V,
}

struct HingeReady<V> {
    y: V,
    c: V,
    a: V,
    pace: V,
    own: V,
}

impl<const SQUARED: bool> Rule for Hinge<SQUARED> {
    const RESTS: bool = true;
    type Pass<V: Lanes> = HingePass<V>;
    type Ready<V: Lanes> = HingeReady<V>;

    #[inline(always)]
    unsafe fn begin<V: Lanes>(step: &Step) -> HingePass<V> {
        // SAFETY: the trait's contract, here and below.
        unsafe {
            HingePass {
                cp: V::splat(step.cp),
                cn: V::splat(step.cn),
                rest: V::splat(step.rest),
                minus_rest: V::splat(-step.rest),
                beta: step.bias * step.bias,
                max: V::splat(f32::NEG_INFINITY),
                min: V::splat(f32::INFINITY),
            }
        }
    }

    #[inline(always)]
    unsafe fn ready<V: Lanes>(pass: &HingePass<V>, args: &Args<'_>, i: usize) -> HingeReady<V> {
        // SAFETY: `i` is a row, for which `pass` checked every length.
        unsafe {
            let (zero, one) = (V::splat(0.0), V::splat(1.0));
            let y = V::select(*args.problem.positives.get_unchecked(i), one, V::splat(-1.0));
            let c = args.costs(i, pass.cp, pass.cn);
            let d = if SQUARED { V::splat(0.5).div(c) } else { zero };
            let a = V::load(args.state.alpha.as_ptr().add(i * V::N));
            let Span { squared, lone, .. } = *args.rows.spans.get_unchecked(i);
            // Nothing here waits for the row before, so the division costs no time.
            let pace = V::splat(OMEGA).div(V::splat(squared + pass.beta).add(d).max(V::splat(1e-12)));
            let own = a.mul_add(V::splat(lone).add(d), V::splat(-1.0));
            HingeReady { y, c, a, pace, own }
        }
    }

    #[inline(always)]
    unsafe fn step<V: Lanes>(
        pass: &mut HingePass<V>,
        args: &mut Args<'_>,
        i: usize,
        ready: HingeReady<V>,
        margin: V,
    ) -> Option<V> {
        let HingeReady { y, c, a, pace, own } = ready;
        // SAFETY: as in `ready`.
        unsafe {
            let zero = V::splat(0.0);
            let g = y.mul_add(margin, own);
            // The projected gradient: at a bound only the way back into the box counts.
            let mut pg = V::select(zero.less(a), g, g.min(zero));
            if !SQUARED {
                pg = V::select(a.less(c), pg, pg.max(zero));
            }
            (pass.max, pass.min) = (pass.max.max(pg), pass.min.min(pg));
            let moved = args.active & (pass.rest.less(pg) | pg.less(pass.minus_rest));
            if moved == 0 {
                return None;
            }
            let mut to = a.sub(g.mul(pace)).max(zero);
            if !SQUARED {
                to = to.min(c);
            }
            let to = V::select(moved, to, a);
            to.store(args.state.alpha.as_mut_ptr().add(i * V::N));
            Some(to.sub(a).mul(y))
        }
    }

    #[inline(always)]
    unsafe fn end<V: Lanes>(pass: HingePass<V>) -> Gap {
        // SAFETY: the trait's contract.
        unsafe { gap(pass.max, pass.min) }
    }
}

/// # Safety
/// The instruction set of `V` must have been detected.
#[inline(always)]
unsafe fn gap<V: Lanes>(max: V, min: V) -> Gap {
    let mut gap = Gap { max: [0.0; MOST], min: [0.0; MOST] };
    // SAFETY: so many floats take any V.
    unsafe {
        max.store(gap.max.as_mut_ptr());
        min.store(gap.min.as_mut_ptr());
    }
    gap
}

/// Logistic: each lane solves its one-dimensional problem; the rest is shared.
struct Logistic;

impl Rule for Logistic {
    const RESTS: bool = false;
    type Pass<V: Lanes> = Gap;
    type Ready<V: Lanes> = ();

    #[inline(always)]
    unsafe fn begin<V: Lanes>(_: &Step) -> Gap {
        Gap { max: [0.0; MOST], min: [0.0; MOST] }
    }

    #[inline(always)]
    unsafe fn ready<V: Lanes>(_: &Gap, _: &Args<'_>, _: usize) {}

    #[inline(always)]
    unsafe fn step<V: Lanes>(gap: &mut Gap, args: &mut Args<'_>, i: usize, (): (), margin: V) -> Option<V> {
        // SAFETY: as for the hinges.
        unsafe {
            let step = &args.problem.step;
            let (cp, cn) = (V::splat(step.cp), V::splat(step.cn));
            let (mut margins, mut c, mut d) = ([0f32; MOST], [0f32; MOST], [0f32; MOST]);
            margin.store(margins.as_mut_ptr());
            args.costs(i, cp, cn).store(c.as_mut_ptr());
            let Span { squared, lone, .. } = *args.rows.spans.get_unchecked(i);
            let q = squared + step.bias * step.bias;
            let (mut moved, positives) = (false, *args.problem.positives.get_unchecked(i));
            for l in (0..V::N).filter(|l| args.active >> l & 1 == 1) {
                let y = if positives >> l & 1 == 1 { 1.0 } else { -1.0 };
                let a = args.state.alpha.get_unchecked_mut(i * V::N + l);
                let (gradient, to) = logistic_root(q, y * margins[l] + lone * *a, *a, c[l]);
                gap.max[l] = gap.max[l].max(gradient.abs());
                if gradient.abs() > step.rest {
                    d[l] = (to - *a) * y;
                    *a = to;
                    moved = true;
                }
            }
            moved.then(|| V::load(d.as_ptr()))
        }
    }

    #[inline(always)]
    unsafe fn end<V: Lanes>(gap: Gap) -> Gap {
        gap
    }
}

/// The gradient at `α` and the minimiser of the logistic dual in one variable:
/// `½q(z−α)² + m(z−α) + z ln z + (C−z) ln(C−z)` over `0 < z < C` (Yu, Huang and Lin, Machine Learning 2011).
///
/// With `z = C·σ(u)` its derivative is `q(C·σ(u) − α) + m + u`, which rises with slope at least 1 everywhere and has
/// no logarithm of 0; liblinear's form steps in `z` and must step around that. Where `q·C` is large the slope near
/// 0 is many times that of the tails, and Newton's iteration would leap from tail to tail: a step that leaves the
/// interval known to hold the root goes to its middle instead.
fn logistic_root(q: f32, margin: f32, alpha: f32, cost: f32) -> (f32, f32) {
    const FAR: f32 = 16.0; // σ(±16) is 0 or 1 within f32
    let inside = (alpha / cost).clamp(1e-7, 1.0 - 1e-7);
    let now = (inside / (1.0 - inside)).ln();
    let mut gradient = margin + now;
    if (inside <= 1e-7 && gradient > 0.0) || (inside >= 1.0 - 1e-7 && gradient < 0.0) {
        gradient = 0.0; // at the rim of what f32 can tell, and pushing outwards
    }
    let (mut u, mut low, mut high) = (now, -FAR, FAR);
    for _ in 0..30 {
        let s = 1.0 / (1.0 + (-u).exp());
        let value = q * (cost * s - alpha) + margin + u;
        if value > 0.0 {
            high = high.min(u)
        } else {
            low = low.max(u)
        }
        let newton = u - value / (q * cost * s * (1.0 - s) + 1.0);
        let next = if newton >= low && newton <= high { newton } else { 0.5 * (low + high) };
        let done = (next - u).abs() < 1e-5;
        u = next;
        if done {
            break;
        }
    }
    (gradient, cost / (1.0 + (-u).exp()))
}

struct Survivors<'a> {
    w: &'a [f32],
    threshold: f32,
    out: &'a mut [u32],
}

impl Work for Survivors<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        assert!(self.w.len() == self.out.len() * V::N);
        // SAFETY: the length was just checked.
        unsafe {
            let (high, low) = (V::splat(self.threshold), V::splat(-self.threshold));
            let zero = V::splat(0.0);
            for (f, bits) in self.out.iter_mut().enumerate() {
                let w = V::load(self.w.as_ptr().add(f * V::N));
                let small = w.less(high) & low.less(w);
                let present = w.less(zero) | zero.less(w);
                *bits = !small & present;
            }
        }
    }
}
