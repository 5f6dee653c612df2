//! Embeddings of labels that are known only for groups: GRLR without an assignment.
//!
//! An embedding is a vector over the features, of length 1: an estimate of what the samples that have the label, among
//! the samples of its groups, have in common. With groups of one sample it is the label vector that trees are built
//! from (PIFA), so it can replace that vector. Similarities of samples to embeddings are inner products.

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

/// Labels × features, each row of length 1. Rows of labels without samples, or whose samples have no features, are
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

/// Refuses embeddings of this many labels and features that, with all their zeros, would exceed the control's memory
/// limit.
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

/// Embeddings with all their zeros, the input of exact search over dense vectors.
///
/// They may be far larger than the data they were learned from, so the control's memory limit applies to them.
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
