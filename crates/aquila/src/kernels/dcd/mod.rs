//! One pass of dual coordinate descent over the rows of a node, for up to 32 sibling labels at once.
//!
//! For label `l` with signs `y ∈ {−1, +1}` and costs `C` the problem is `min ½‖w‖² + Σ C·loss(y·(w·x + b·β))`; its dual
//! has one variable `α ≥ 0` per row, and `w = Σ α·y·x`. A step on row `i` computes the gradient
//! `G = y·(w·x_i + b·β) − 1 + D·α_i`, moves `α_i` to `clip(α_i − ω·G/Q_i, 0, U)` with `Q_i = x_i·x_i + β² + D`, and
//! adds `Δα·y·x_i` to `w` (Hsieh et al., ICML 2008). Squared hinge: `D = 1/(2C)`, `U = ∞`. Hinge: `D = 0`, `U = C`.
//! Logistic: see `logistic`.
//!
//! There are two differences, both measured at equal P@k. Steps are over-relaxed by ω = 1.3 (any 0 < ω < 2 descends;
//! 1.0 takes a fifth more passes, 1.5 more again on some sets). A row that moved no lane rests for one pass: it is near
//! its optimum in all these problems, and testing it costs as much as a step. The last pass may miss changes that other
//! rows made while it rested; with many rows that does not matter, so only large problems let rows rest.
//!
//! Siblings share their rows, so `w` is stored feature by feature with one float per lane: each entry of a row costs
//! one load, one broadcast and one fused multiply-add for all lanes.
//!
//! [`pass`] is the entry point; `rule` is the interface of a loss, `hinge` and `logistic` implement the steps, and
//! `row_by_row` and `kernels::tiles` implement the loops over the rows.

mod dense_rows;
mod hinge;
mod logistic;
mod pass;
mod row_by_row;
mod rows;
mod rule;
mod siblings;

pub use super::lanes::MOST;
pub use dense_rows::DenseRows;
pub(super) use pass::{Args, MANY_ROWS};
pub use pass::{Gap, Problem, pass};
pub use rows::{Entries, Rows, Span};
pub(super) use rule::Rule;
pub use rule::{DualLoss, Step};
pub use siblings::Siblings;
