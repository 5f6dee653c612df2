//! Linear classifiers of sibling labels, learned together.

mod kept;
mod solver;

pub use kept::Kept;
pub use solver::{REST, Scratch, Stop, lanes_of, solve, together, width_of};
