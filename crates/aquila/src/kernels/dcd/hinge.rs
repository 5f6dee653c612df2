//! The step of hinge and squared hinge: closed form in every lane.

use super::{Args, Gap, MOST, Rule, Span, Step};
use crate::kernels::lanes::Lanes;

/// Over-relaxation of a step.
const OMEGA: f32 = 1.3;

/// Hinge (`false`) and squared hinge (`true`).
pub(super) struct Hinge<const SQUARED: bool>;

/// The constants of a pass in every lane, and its extremes so far.
pub(super) struct HingePass<V> {
    cp: V,
    cn: V,
    rest: V,
    minus_rest: V,
    beta: f32,
    max: V,
    min: V,
    gain: V,
}

/// The inputs of a step on a row, except its margins.
pub(super) struct HingeReady<V> {
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
        // SAFETY: by the trait's contract, here and below.
        unsafe {
            HingePass {
                cp: V::splat(step.cp),
                cn: V::splat(step.cn),
                rest: V::splat(step.rest),
                minus_rest: V::splat(-step.rest),
                beta: step.bias * step.bias,
                max: V::splat(f32::NEG_INFINITY),
                min: V::splat(f32::INFINITY),
                gain: V::splat(0.0),
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
            // Nothing here depends on the previous row, so the division costs no time.
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
            // The projected gradient: at a bound, only the direction back into the box counts.
            let mut pg = V::select(zero.less(a), g, g.min(zero));
            if !SQUARED {
                pg = V::select(a.less(c), pg, pg.max(zero));
            }
            (pass.max, pass.min) = (pass.max.max(pg), pass.min.min(pg));
            // A step of ω·G/Q raises the dual by (ω − ω²/2)·G²/Q.
            pass.gain = pg.mul(pg).mul_add(pace, pass.gain);
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
        // SAFETY: by the trait's contract.
        unsafe { gap(&pass) }
    }
}

/// # Safety
/// The instruction set of `V` must have been detected.
#[inline(always)]
unsafe fn gap<V: Lanes>(pass: &HingePass<V>) -> Gap {
    let mut gap = Gap { max: [0.0; MOST], min: [0.0; MOST], gain: [0.0; MOST] };
    // SAFETY: the arrays have room for any `V`.
    unsafe {
        pass.max.store(gap.max.as_mut_ptr());
        pass.min.store(gap.min.as_mut_ptr());
        pass.gain.store(gap.gain.as_mut_ptr());
    }
    gap
}
