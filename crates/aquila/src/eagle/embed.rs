//! Embeddings of labels that are known for groups only: GRLR alone, without an assignment.
//!
//! An embedding is a vector over the features, of length 1: what the samples of the label's groups that have the label
//! are thought to have in common. Of groups of one it is the label vector that trees are made of (PIFA), so that it can
//! take its place; similarities of samples to embeddings are products.

use super::assign::AssignParams;
use super::forecast;
use super::grlr::Learned;
use super::groups::Groups;
use super::narrow::Narrow;
use super::tasks::{each_label, embeddings};
use crate::control::{Control, beyond, stage};
use crate::data::{Csr, Dense, Features};
use crate::error::{Result, fail};
use crate::memory;
use crate::params::Params;

/// Labels × features, each row of length 1; rows of labels without samples, or whose samples have no features, are
/// empty.
pub fn embed(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &AssignParams,
    control: &Control,
) -> Result<Csr> {
    params.check()?;
    groups.check_rows(x.rows())?;
    groups.check_bags(bags)?;
    let narrow = Narrow::new(x, bags);
    forecast::check_embeddings("embedding", (&narrow, groups, bags.cols()), true, control)?;
    let take = |grlr: &mut dyn Learned| grlr.embedding();
    let found = each_label(&narrow.x, groups, &narrow.bags, params, stage::EMBED, control, take)?;
    embeddings(&narrow, bags.cols(), found, |embedding| embedding)
}

/// Refuses embeddings of so many labels and features that would be larger than the control's limit with all their
/// zeros.
pub fn dense_allowed(labels: usize, features: usize, control: &Control) -> Result<()> {
    let bytes = 4 * labels as u128 * features as u128;
    let limit = match control.memory_limit {
        0 => isize::MAX as u64,
        limit => limit,
    };
    if bytes > u128::from(limit) {
        fail!(
            MemoryLimit,
            "{labels} dense embeddings of {features} features need {}: raise the limit, or take sparse ones",
            beyond(bytes, limit)
        );
    }
    Ok(())
}

/// Embeddings with all their zeros, as exact search over dense vectors takes them.
///
/// They may be far larger than what they were learned from, so the control's limit of memory holds for them.
pub fn dense(embeddings: &Csr, control: &Control) -> Result<Dense> {
    let (labels, features) = (embeddings.rows(), embeddings.cols());
    dense_allowed(labels, features, control)?;
    let mut values = memory::filled(0f32, labels * features, "dense embeddings")?;
    for (k, row) in embeddings.iter_rows().enumerate() {
        control.check()?;
        row.iter().for_each(|(f, v)| values[k * features + f as usize] = v);
    }
    Dense::new(labels, features, values)
}
