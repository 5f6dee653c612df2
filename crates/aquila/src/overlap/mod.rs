//! Label disentanglement: which further leaves a label should be placed under.
//!
//! A tree that puts each label under one leaf takes it that a label means one thing. The apple of orchards and the
//! Apple of telephones are one label, and rows of both must find the same leaf. Here a label may be placed under several
//! leaves, and each slot has weights of its own, learned against that leaf's other labels.
//!
//! ## Formula
//! `M` (rows × leaves) is 1 where the matcher, the layers above the labels, sends a training row to a leaf; `Y` (rows ×
//! labels) is 1 where a row has a label. `A = YᵀM` counts, for each label and leaf, the label's rows that reach the
//! leaf. Where `C` (labels × leaves) says which labels are placed where, `Tr(YᵀMCᵀ)` counts the positives that the matcher can still
//! find, and among all `C` of at most `λ` leaves a label `C* = Proj(A)`, the `λ` most counted leaves of each label, makes
//! it largest ([`most_counted`]).
//!
//! Source: Liu, Chang, Yu, Hsieh, Dhillon: Label Disentanglement in Partition-based Extreme Multilabel Classification,
//! NeurIPS 2021, whose Theorems 2 and 3 the tests repeat.
//!
//! ## Where we differ
//! - [`capped`], the default: every label keeps the leaf that clustering gave it, and no leaf takes more than a multiple
//!   of the mean. Without a bound popular labels crowd in wherever many rows go: with two leaves a label one leaf of
//!   `debian-related` holds 11,700 of 38,910 labels, and training takes 28 times as long as without overlap
//!   (`docs/algorithms/overlap.md`).
//! - There further leaves are granted by the sum of the roots of the rows' scores at the leaf. A count takes a row for
//!   which the beam had room left for one that belongs there; a sum of scores sees none but the rows that are sure of
//!   their leaf. No leaf is granted where the mean score is below a least one.
//! - Ties go by count (in the paper's form by score), then to the lower label and leaf.
//! - The most frequent labels get a slot under the root as well, where they learn from all rows ([`UnderRoot`]).
//! - A label is not cloned: it has several slots in one tree, which training, search and files know.
//!
//! ## Cost
//! `nnz(Y) · beam` to count, in parallel; `A` is never held. Each label keeps its best few leaves and is counted anew in
//! the rare case that all of those are full.

mod counts;
mod leaves;
mod project;
mod root;

pub use counts::{Reached, Wish};
pub use leaves::Leaves;
pub use project::{Assignment, Bounds, capped, most_counted};
pub use root::UnderRoot;
