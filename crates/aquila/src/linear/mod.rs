//! Linear classifiers of sibling labels, learned together.

mod prune;
mod solver;

pub use prune::survivors;
pub use solver::{REST, Scratch, Stop, solve, width_of};
