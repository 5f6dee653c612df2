//! Blocked dual coordinate descent: the sibling labels of a node, up to 32 at a time.
//!
//! PECOS, omikuji and napkinXC solve one label after another, each over the same rows. Here up to 32 siblings step
//! through a row together, so each row is fetched once for all of them; [`dcd`] has the step, its formula and its
//! source. A pass visits the rows in a new random order. (A fixed order, or one shuffled in chunks for better cache
//! use, costs up to 5 points of P@1.) A lane is done when the largest and the smallest projected gradient of a pass,
//! and 0, are within `eps` of each other, or when the pass raised its dual objective by no more than the share `gain`
//! of what all passes gained. The block ends when all lanes are done or after `max_passes`.
//!
//! The second rule is ours. With a million rows, the extreme gradients are large long after the rest have converged:
//! each pass over half a million rows halves the remaining gain, and at a gain of 0.3 % P@k has its final value, while
//! the extremes require twice as many passes. The rule is scale-free, so one share works for nodes of a hundred rows
//! and of millions.
//!
//! Differences from liblinear and PECOS:
//! - No shrinking (rows are shared, so a row would have to be at its bound in all lanes), but a row that moved no lane
//!   rests for one pass.
//! - Steps are over-relaxed.
//! - Gradients that agree but are far from 0 do not end a lane (theirs do: with a single row they stop after one step).
//! - A lane skips a step if its projected gradient is below [`REST`] of `eps`.
//! - f32 throughout.
//!
//! Rows with a dense block are processed a few at a time, in the same order: `kernels::tiles`. Where there are no more
//! rows than columns of the block, products of rows replace weights until the end: [`gram`](crate::kernels::gram).
//!
//! Cost: passes × non-zeros of the node × blocks, one vector multiply-add each, and about half as many again for the
//! steps.

use crate::control::Control;
use crate::error::Result;
use crate::kernels::Isa;
use crate::kernels::dcd::{self, Problem, Siblings};
use crate::kernels::gram::Gram;
use crate::rng::Rng;

/// When a block of siblings is done.
#[derive(Debug, Clone, Copy)]
pub struct Stop {
    /// Maximum difference of a finished lane's projected gradients, from each other and from 0.
    pub eps: f32,
    /// A lane is done when a pass raises its dual objective by no more than this share of its total gain; with 0, only
    /// `eps` decides.
    pub gain: f32,
    /// Maximum number of passes.
    pub max_passes: u32,
}

/// Memory that a solver reuses from one block to the next, so that training does not allocate.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The state of the siblings; after [`solve`], the result.
    pub siblings: Siblings,
    duals: Siblings,
    order: Vec<u32>,
}

/// A lane does not step while its projected gradient is below this share of `eps`.
pub const REST: f32 = 0.15;

/// Learns the lanes of `active` from a problem in `width` lanes (see [`width_of`]); returns the number of passes. If
/// the products of its rows are given, the steps use them.
#[expect(
    clippy::too_many_arguments,
    reason = "each is a thing of its own, and the one caller names them all"
)]
pub fn solve(
    isa: Isa,
    problem: &Problem<'_>,
    products: Option<&Gram>,
    active: u32,
    width: usize,
    stop: Stop,
    mut rng: Rng,
    scratch: &mut Scratch,
    control: &Control,
) -> Result<u32> {
    let Scratch { siblings, duals, order } = scratch;
    let passes = match products {
        None => run(isa, problem, active, width, stop, &mut rng, siblings, order, control),
        Some(products) => {
            let problem = Problem { rows: products.rows(), ..*problem };
            run(isa, &problem, active, width, stop, &mut rng, duals, order, control)
        }
    }?;
    if products.is_some() {
        siblings.follow(isa, &problem.rows, duals);
    }
    Ok(passes)
}

#[expect(clippy::too_many_arguments, reason = "as of `solve`")]
fn run(
    isa: Isa,
    problem: &Problem<'_>,
    active: u32,
    width: usize,
    stop: Stop,
    rng: &mut Rng,
    siblings: &mut Siblings,
    order: &mut Vec<u32>,
    control: &Control,
) -> Result<u32> {
    siblings.reset(&problem.rows, width);
    order.clear();
    order.extend(0..problem.rows.len() as u32);
    let (mut open, mut gained) = (active, [0f32; dcd::MOST]);
    for passes in 0..stop.max_passes {
        control.check()?;
        rng.shuffle(order);
        let gap = dcd::pass(isa, problem, order, siblings, open);
        for (lane, gained) in gained.iter_mut().enumerate().take(siblings.width()) {
            *gained += gap.gain[lane];
            // 0 is included: gradients that are equal but large, as with a single row, are not converged.
            let within = gap.max[lane].max(0.0) - gap.min[lane].min(0.0) <= stop.eps;
            if within || gap.gain[lane] < stop.gain * *gained {
                open &= !(1 << lane);
            }
        }
        if open == 0 {
            return Ok(passes + 1);
        }
    }
    Ok(stop.max_passes)
}

/// Maximum bytes of weights to step through with 32 lanes: half of a typical second-level cache. Above it, 32 lanes per
/// feature miss that cache more often than sharing work pays for.
const NEAR: usize = 512 << 10;

/// Bytes of weights above which no cache holds them: about a typical last-level cache.
const FAR: usize = 32 << 20;

/// How many siblings to step together through rows with this many sparse columns.
///
/// In narrow problems a step waits for its own chain of sums, and a second register in flight costs almost nothing. In
/// wide problems it waits for weights from far caches, and in the widest for memory, where two adjacent lines take
/// little longer than one (a quarter less time at 544,000 features, a tenth more at 176,000). Rows that are mostly
/// dense wait for more than these weights, and their values in the block are loaded once for all lanes.
pub fn together(isa: Isa, cols: usize, mostly_dense: bool) -> usize {
    let bytes = bytes_of(cols);
    // Scalar code has no registers for 32 sums.
    if (bytes <= NEAR || bytes > FAR || mostly_dense) && isa > Isa::Scalar {
        dcd::MOST
    } else {
        dcd::MOST / 2
    }
}

/// How many of the remaining siblings to step through together: as many as [`together`] returns. If weights come from
/// memory, the last few are processed on their own instead of using registers twice as wide for all.
pub fn lanes_of(left: usize, isa: Isa, cols: usize, mostly_dense: bool) -> usize {
    const HALF: usize = dcd::MOST / 2;
    let few = bytes_of(cols) > FAR && left <= HALF + HALF / 2;
    left.min(if few { HALF } else { together(isa, cols, mostly_dense) })
}

/// Bytes of the weights of this many columns in all lanes.
fn bytes_of(cols: usize) -> usize {
    cols * dcd::MOST * size_of::<f32>()
}

/// The narrowest register, or pair of registers, for this many lanes.
pub fn width_of(lanes: u32) -> usize {
    match lanes {
        0..=4 => 4,
        5..=8 => 8,
        9..=16 => 16,
        _ => 32,
    }
}
