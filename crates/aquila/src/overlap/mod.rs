//! Label disentanglement: which further leaves a label should be placed under.
//!
//! A tree that puts each label under one leaf assumes that a label has one meaning. The apple of orchards and the Apple
//! of telephones are one label, and rows of both must find the same leaf. Here a label may be placed under several
//! leaves, and each slot has weights of its own, learned against the other labels of that leaf.
//!
//! ## Formula
//! `M` (rows × leaves) is 1 where the matcher (the layers above the labels) sends a training row to a leaf; `Y` (rows ×
//! labels) is 1 where a row has a label. `A = YᵀM` counts, for each label and leaf, the label's rows that reach the
//! leaf. If `C` (labels × leaves) indicates which labels are placed under which leaves, `Tr(YᵀMCᵀ)` counts the
//! positives that the matcher can still find. Among all `C` with at most `λ` leaves per label, `C* = Proj(A)`, the `λ`
//! most counted leaves of each label, maximises it ([`most_counted`]).
//!
//! Source: Liu, Chang, Yu, Hsieh, Dhillon: Label Disentanglement in Partition-based Extreme Multilabel Classification,
//! NeurIPS 2021. The tests check its Theorems 2 and 3.
//!
//! ## Where we differ
//! - [`capped`], the default: every label keeps the leaf that clustering gave it, and no leaf takes more than a
//!   multiple of the mean. Without a bound, popular labels crowd into every leaf that many rows reach: with two leaves
//!   per label, one leaf of `debian-related` holds 11,700 of 38,910 labels, and training takes 28 times as long as
//!   without overlap (`docs/algorithms/overlap.md`).
//! - In this form, further leaves are granted by the sum of the square roots of the rows' scores at the leaf. A count
//!   treats a row that only filled the rest of the beam like a row that belongs there; a sum of scores depends almost
//!   only on the rows that reach their leaf with certainty. No leaf is granted where the mean score is below a minimum.
//! - Ties are resolved by count (in the paper's form by score), then by the lower label and leaf.
//! - The most frequent labels also get a slot under the root, where they learn from all rows ([`UnderRoot`]).
//! - A label is not cloned: it has several slots in one tree, and training, search and files handle them.
//!
//! ## Cost
//! `nnz(Y) · beam` for counting, in parallel; `A` is never materialised. Each label keeps its best few leaves and is
//! counted again in the rare case that all of them are full.

mod counts;
mod leaves;
mod project;
mod root;

pub use counts::{Reached, Wish};
pub use leaves::Leaves;
pub use project::{Assignment, Bounds, capped, most_counted};
pub use root::UnderRoot;
