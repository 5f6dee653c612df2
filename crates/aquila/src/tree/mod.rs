//! The label tree: label vectors, k-means over them, and the resulting tree.

mod bisect;
mod build;
mod cohesion;
mod exchange_chain;
mod exchange_json;
mod kary;
mod label_tree;
mod label_vectors;
mod points;
mod vectors;

pub use bisect::Bisection;
pub(crate) use build::halves;
pub use build::{Shape, Split, build};
pub use cohesion::{SAMPLE as TRIAL_SAMPLE, TRIED_FROM, whole_is_better};
pub use kary::Clustering;
pub use label_tree::{LabelTree, NODE, TreeLayer};
pub use label_vectors::LabelVectors;
pub use points::Points;
pub use vectors::{Cut, Pifa, given, pii};
