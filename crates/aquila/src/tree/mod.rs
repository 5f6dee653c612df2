//! The label tree: label vectors, k-means over them, and the tree that comes out.

mod label_tree;

pub use label_tree::{LabelTree, NODE, TreeLayer};
