//! Beam search: the best labels of a row, layer by layer from the root.
//!
//! 1. The row's features find their blocks: directory, bucket, block, each asked for before it is read.
//! 2. In each layer the children of the beam's nodes become *active chunks*; their sums begin at the biases and
//!    the kernels of `kernels::postings` add what the row's features have there.
//! 3. `kernels::select` turns margins into keys (logarithms of scores, so that paths add and nothing
//!    underflows) and finds the best: inner nodes become the next beam, slots become candidates for the
//!    result. Slots of upper layers (trees of mixed depth) do not take places of the beam.
//! 4. The best `k` candidates are the result; only their scores, and those that may equal the last of them, see an
//!    exponential.
//!
//! ## Order
//! Results are ordered by score, and those of equal scores by label id: by what is returned, so that whoever merges lists
//! can do the same. Nodes of the beam are ordered by key, those of equal keys by column. Several keys may show the same
//! score, near 1 for want of digits and below about 10⁻³⁸ for want of smaller numbers; log forms keep these apart.
//!
//! ## Range
//! Scores of product forms are from 0 to 1, those of log forms at most 0, and bare margins finite, whatever the rows and
//! weights are; only the sum of several slots' scores may pass 1. A margin that is no number, as ∞ − ∞ where a sum has
//! overflowed, is lower than all others and scores what a column without training does.
//!
//! ## Columns without training
//! A column whose bias is −∞ was never trained. It ranks after all others, with score 0 in product forms
//! and `f32::MIN` in log forms and bare margins: it shows only when nothing else fills `k`.
//!
//! ## Damaged files
//! Every label that is returned is one of the model, and chosen labels come back exactly as they were asked for: one that
//! no table leads to any more scores what a column without training does.
//!
//! ## Labels with several slots
//! Where a label has more than one slot, the scores of those that the search reached are merged as the model says
//! ([`Merge`](super::Merge), [`merge`]), and only for labels that can be among the best ([`multi_leaf`]). Models whose labels have one slot each skip this step. Log forms score the logarithms of what the
//! product forms do, merged or not.
//!
//! ## Cost
//! Per row: one cache miss or two for each feature, two adds for each weight met, nothing allocated
//! once the [`Searcher`] is warm.
//!
//! ## Where peers differ
//! PECOS and omikuji multiply scores in f32, where deep trees and hinges underflow and the order is lost; PECOS orders
//! ties by permuted column. Here ties are by label.

mod beam;
mod chosen_labels;
mod merge;
mod multi_leaf;
mod predict;
mod scope;
mod searcher;
mod weights;

pub(super) use chosen_labels::SlotsOf;
pub(crate) use predict::Lists;
pub use scope::{Allowed, Scope};
pub use searcher::Searcher;
pub(super) use weights::{Column, Sum, Weights};
