//! A pass over sparse rows, one after the other.

use super::Rule;
use super::pass::{Args, Gap, MANY_ROWS};
use crate::kernels::lanes::{Lanes, Work};
use std::marker::PhantomData;

/// Above this many bytes, weights are prefetched one row ahead: about one core's share of a shared last-level cache.
/// For weights in nearer caches the processor looks far enough ahead on its own; prefetching would take a tenth longer.
const FAR: usize = 8 << 20;

/// A pass over sparse rows, one after the other.
pub(super) struct RowByRow<'a, R> {
    args: Args<'a>,
    rule: PhantomData<R>,
}

impl<'a, R> RowByRow<'a, R> {
    pub fn new(args: Args<'a>) -> Self {
        Self { args, rule: PhantomData }
    }
}

impl<R: Rule> Work for RowByRow<'_, R> {
    type Out = Gap;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Gap {
        let Self { mut args, .. } = self;
        // SAFETY: `pass` checked every length and that `order` names rows; the dispatcher checked `V`.
        unsafe {
            let mut pass = R::begin::<V>(&args.problem.step);
            let bias = V::splat(args.problem.step.bias);
            let mut b = V::load(args.state.bias.as_ptr());
            let far = args.state.w.len() * size_of::<f32>() > FAR;
            for k in 0..args.order.len() {
                args.prefetch::<V>(k, far);
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
