//! Nodes with few rows: products of rows with rows instead of weights.
//!
//! Until the last pass ends, weights are only needed for margins, and with `w = Σ α·y·x` a margin is
//! `⟨w, x_r⟩ = Σ_s ⟨x_s, x_r⟩ · α_s·y_s`. In a node with no more rows than dense columns, the products of all its rows
//! are therefore computed once, for all siblings and passes. They form a dense block with as many columns as rows,
//! whose weights are the signed duals. A margin is the product of a row of this block, which is shorter than the row
//! itself, with the duals; a step changes one line of them and no weight. Weights are computed at the end by adding
//! each row once. This is the kernel form of dual coordinate descent (Hsieh et al., ICML 2008, section 3), chosen
//! because of size and not to use a kernel; only rounding differs.
//!
//! Products are summed like margins, with 16 rows at a time in the place of weights. A row's product with itself is
//! kept apart from the block, like that of entries that no other row has ([`Span::lone`]), because it is the largest.
//!
//! Cost: rows² · (dense columns and sparse entries of a row) multiply-adds for the products; rows² per pass for each
//! register of lanes; rows · columns for the weights.

use super::Isa;
use super::aligned::Aligned;
use super::dcd::{DenseRows, Entries, Rows, Siblings, Span};
use super::lanes::{Lanes, Work, dispatch};
use super::tiles::{MOST_ROWS, Nothing, add_rows, products};

/// Number of rows that are multiplied with all rows at a time.
const LANES: usize = 16;

/// Maximum bytes of products: half of a typical second-level cache.
const NEAR: usize = 512 << 10;

/// The products of a node's rows with each other; memory is reused from node to node.
#[derive(Debug, Default)]
pub struct Gram {
    products: Aligned,
    stride: usize,
    spans: Vec<Span>,
    places: Vec<u32>,
    lanes: Siblings,
}

impl Gram {
    /// Whether steps take less time with products than with weights.
    pub fn pays(rows: &Rows<'_>) -> bool {
        rows.len() <= rows.dense.cols() && rows.len() * rows.len() * size_of::<f32>() <= NEAR
    }

    /// Computes the products of these rows with each other.
    pub fn of(&mut self, isa: Isa, rows: &Rows<'_>) {
        let n = rows.len();
        self.stride = n.next_multiple_of(LANES);
        self.products.reset(n * self.stride);
        self.lanes.reset(rows, LANES);
        for first in (0..n).step_by(LANES) {
            let some = first..n.min(first + LANES);
            self.lanes.place(rows, some.clone());
            let work = (*rows, &self.lanes, &mut self.products[first..], self.stride);
            match rows.dense.paired() {
                true => dispatch(isa, LANES, Products::<true>::of(work)),
                false => dispatch(isa, LANES, Products::<false>::of(work)),
            }
            self.lanes.clear(rows, some);
        }
        self.spans.clear();
        self.places.clear();
        for (i, span) in rows.spans.iter().enumerate() {
            let own = std::mem::take(&mut self.products[i * self.stride + i]);
            self.spans.push(Span { begin: 0, end: 0, squared: span.squared, lone: span.lone + own });
            self.places.push(i as u32);
        }
    }

    /// The rows for the solver: no entries, and the products as the dense block.
    pub fn rows(&self) -> Rows<'_> {
        let block = DenseRows::products(&self.products, self.stride, &self.places);
        Rows::new(Entries::new(&[], &[], 0), &self.spans).beside(block)
    }
}

impl Siblings {
    /// Stores rows in the place of the weights of lanes.
    fn place(&mut self, rows: &Rows<'_>, some: std::ops::Range<usize>) {
        let panel = if rows.dense.paired() { &mut self.rounded } else { &mut self.panel };
        panel.fill(0.0);
        for (lane, i) in some.enumerate() {
            for (j, v) in panel[lane..].iter_mut().step_by(LANES).zip(rows.dense.row(i)) {
                *j = v;
            }
            let span = rows.spans[i];
            let (idx, val) = rows.entries.slices(span.begin..span.end);
            idx.iter().zip(val).for_each(|(j, v)| self.w[*j as usize * LANES + lane] = *v);
        }
    }

    /// Removes their sparse entries again.
    fn clear(&mut self, rows: &Rows<'_>, some: std::ops::Range<usize>) {
        for (lane, i) in some.enumerate() {
            let span = rows.spans[i];
            let (idx, _) = rows.entries.slices(span.begin..span.end);
            idx.iter().for_each(|j| self.w[*j as usize * LANES + lane] = 0.0);
        }
    }

    /// Takes the result of learning with products: duals, bias, and the weights that follow from them.
    pub fn follow(&mut self, isa: Isa, rows: &Rows<'_>, learned: &Siblings) {
        self.reset(rows, learned.width());
        self.alpha.copy_from_slice(&learned.alpha);
        self.bias = learned.bias;
        let work = (*rows, self, &learned.panel[..]);
        match rows.dense.paired() {
            true => dispatch(isa, learned.width(), Weights::<true>::of(work)),
            false => dispatch(isa, learned.width(), Weights::<false>::of(work)),
        }
    }
}

/// The products of all rows with those stored in lanes.
struct Products<'a, const BF16: bool> {
    rows: Rows<'a>,
    lanes: &'a Siblings,
    out: &'a mut [f32],
    stride: usize,
}

impl<'a, const BF16: bool> Products<'a, BF16> {
    fn of((rows, lanes, out, stride): (Rows<'a>, &'a Siblings, &'a mut [f32], usize)) -> Self {
        assert!(rows.is_empty() || out.len() >= (rows.len() - 1) * stride + LANES);
        Self { rows, lanes, out, stride }
    }
}

impl<const BF16: bool> Work for Products<'_, BF16> {
    type Out = ();
    const BF16: bool = BF16;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, lanes, out, stride } = self;
        // SAFETY: `lanes` was reset for these rows and 16 lanes, which is `V::N`; `of` checked the length of `out`.
        unsafe {
            let weights = if BF16 { lanes.rounded.as_ptr() } else { lanes.panel.as_ptr() };
            for first in (0..rows.len()).step_by(V::TILE) {
                let n = V::TILE.min(rows.len() - first);
                let at: [*const f32; MOST_ROWS] =
                    std::array::from_fn(|r| rows.dense.at((first + r).min(rows.len() - 1)));
                let mut margins = [V::splat(0.0); MOST_ROWS];
                products::<V, BF16>(weights, rows.dense.steps(), &at[..n], &Nothing, &mut margins);
                for (r, dense) in margins.iter().enumerate().take(n) {
                    let sum = rows.margins::<V>(lanes.w.as_ptr(), first + r).add(*dense);
                    sum.store(out.as_mut_ptr().add((first + r) * stride));
                }
            }
        }
    }
}

/// The weights that follow from the signed duals.
struct Weights<'a, const BF16: bool> {
    rows: Rows<'a>,
    state: &'a mut Siblings,
    duals: &'a [f32],
}

impl<'a, const BF16: bool> Weights<'a, BF16> {
    fn of((rows, state, duals): (Rows<'a>, &'a mut Siblings, &'a [f32])) -> Self {
        assert!(duals.len() >= rows.len() * state.width());
        Self { rows, state, duals }
    }
}

impl<const BF16: bool> Work for Weights<'_, BF16> {
    type Out = ();
    const BF16: bool = BF16;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, state, duals } = self;
        // SAFETY: `follow` reset the state for these rows and `V::N` lanes; `of` checked that each row has its duals.
        unsafe {
            let mut next = 0;
            while next < rows.len() {
                let mut moved = 0;
                let (mut movers, mut steps) = ([std::ptr::null(); MOST_ROWS], [V::splat(0.0); MOST_ROWS]);
                while moved < V::TILE && next < rows.len() {
                    let step = V::load(duals.as_ptr().add(next * V::N));
                    let zero = V::splat(0.0);
                    if step.less(zero) | zero.less(step) != 0 {
                        rows.add_row::<V>(state.w.as_mut_ptr(), next, step);
                        (movers[moved], steps[moved]) = (rows.dense.at(next), step);
                        moved += 1;
                    }
                    next += 1;
                }
                let (panel, rounded) = (state.panel.as_mut_ptr(), state.rounded.as_mut_ptr());
                add_rows::<V, BF16>(panel, rounded, rows.dense.steps(), &movers[..moved], &steps);
            }
        }
    }
}
