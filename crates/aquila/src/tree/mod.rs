//! The label tree: label vectors, k-means over them, and the tree that comes out.

mod exchange_chain;
mod exchange_json;
mod label_tree;

pub use label_tree::{LabelTree, NODE, TreeLayer};
