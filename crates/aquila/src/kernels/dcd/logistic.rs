//! The step of the logistic loss: a one-dimensional root for each lane.

use super::{Args, Gap, MOST, Rule, Span, Step};
use crate::kernels::lanes::Lanes;

/// Logistic: each lane solves its own one-dimensional problem; everything else is shared.
pub(super) struct Logistic;

impl Rule for Logistic {
    const RESTS: bool = false;
    type Pass<V: Lanes> = Gap;
    type Ready<V: Lanes> = ();

    #[inline(always)]
    unsafe fn begin<V: Lanes>(_: &Step) -> Gap {
        Gap { max: [0.0; MOST], min: [0.0; MOST], gain: [0.0; MOST] }
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
                    gap.gain[l] += ((to - *a) * gradient).abs();
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
/// With `z = C·σ(u)` its derivative is `q(C·σ(u) − α) + m + u`. It increases with slope at least 1 everywhere and has
/// no logarithm of 0; liblinear's form steps in `z` and must work around that. Where `q·C` is large, the slope near 0
/// is many times that of the tails, and Newton's iteration would jump from tail to tail: a step that leaves the
/// interval known to hold the root goes to its midpoint instead.
fn logistic_root(q: f32, margin: f32, alpha: f32, cost: f32) -> (f32, f32) {
    const FAR: f32 = 16.0; // σ(±16) is 0 or 1 within f32
    let inside = (alpha / cost).clamp(1e-7, 1.0 - 1e-7);
    let now = (inside / (1.0 - inside)).ln();
    let mut gradient = margin + now;
    if (inside <= 1e-7 && gradient > 0.0) || (inside >= 1.0 - 1e-7 && gradient < 0.0) {
        gradient = 0.0; // at the limit of f32 precision, and pointing outwards
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_where_the_derivative_is_zero() {
        for (q, cost) in [(0.01, 1.0), (1.0, 1.0), (2.0, 0.1), (5.0, 20.0), (1.0, 1e3)] {
            for share in [1e-4, 0.1, 0.5, 0.999] {
                for margin in [-8.0, -1.0, 0.0, 0.3, 5.0] {
                    let alpha = share * cost;
                    let (gradient, z) = logistic_root(q, margin, alpha, cost);
                    let at = |z: f32| q * (z - alpha) + margin + (z / (cost - z)).ln();
                    assert!((gradient - at(alpha)).abs() < 1e-2, "{q} {cost} {share} {margin}: {gradient}");
                    assert!(z > 0.0 && z < cost, "{q} {cost} {share} {margin}: {z}");
                    // The derivative increases: below the root it is negative, above it positive.
                    let (below, above) = (z * 0.999, z + 0.001 * (cost - z));
                    assert!(at(below) < 0.0 && at(above) > 0.0, "{q} {cost} {share} {margin}: {z}");
                }
            }
        }
    }
}
