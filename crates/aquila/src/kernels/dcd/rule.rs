//! What the losses have in common: the constants of a pass, and the interface of a step on one row.

use super::{Args, Gap};
use crate::kernels::lanes::Lanes;

/// The loss of a row.
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
    /// Lanes whose projected gradient is no larger than this do not step.
    pub rest: f32,
}

/// How a loss steps on one row, independent of the order of rows and of how margins are computed.
pub(in crate::kernels) trait Rule {
    /// Whether rows that moved no lane rest for one pass.
    const RESTS: bool;
    /// State kept between the rows of a pass.
    type Pass<V: Lanes>;
    /// The inputs of a step that do not depend on margins.
    type Ready<V: Lanes>;

    /// # Safety
    /// The instruction set of `V` must have been detected, here and below.
    unsafe fn begin<V: Lanes>(step: &Step) -> Self::Pass<V>;
    /// # Safety
    /// `i` is a row.
    unsafe fn ready<V: Lanes>(pass: &Self::Pass<V>, args: &Args<'_>, i: usize) -> Self::Ready<V>;
    /// Steps on row `i`, whose margins are `margin`; returns `Δα·y`, or `None` if no lane moved.
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
