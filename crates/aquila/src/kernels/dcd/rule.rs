//! What the losses share: the constants of a pass, and how a step on one row is asked for.

use super::{Args, Gap};
use crate::kernels::lanes::Lanes;

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

/// How a loss steps on one row, whatever the order of rows and the way to their margins.
pub(in crate::kernels) trait Rule {
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
