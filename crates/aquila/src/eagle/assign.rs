//! Assignment: each label of a group goes to the sample of the group that is most similar to the label's embedding.
//!
//! Formula: for every group `j` and label `k` of its bag, the sample `argmax_{i∈N_j} ⟨e_k, x_i⟩`, the first on a tie.
//! Cost: that of the embeddings, with labels in parallel, largest first.

use super::forecast;
use super::groups::{Groups, union_of};
use super::narrow::Narrow;
use super::tasks::{each_label, embeddings, matrix};
use crate::control::{Control, stage};
use crate::data::{Csr, Features};
use crate::error::Result;
use crate::params::{Kind, Params};
use std::time::Instant;

crate::params! {
    /// How group labels are assigned.
    pub struct AssignParams {
        /// Number of rounds of the embeddings; 0 uses the mean of all samples of the label's groups (EAGLE-0).
        pub iterations: u32 = 20, "iterations", Kind::Integer { min: 0.0, max: 60_000.0 };
        /// How far each round moves towards the samples most similar to the embedding.
        pub step: f32 = 0.1, "step", Kind::Number { min: 1e-6, max: 1e6 };
        /// Scale rows to length 1 first.
        pub normalize: bool = true, "normalize", Kind::Bool;
    }
}

/// The result of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// Samples × labels: the similarity of each assignment, which may be negative. 0 is stored as the smallest positive
    /// number, because an entry of 0 is not a label; what exceeds the range of f32 is stored as its end.
    pub y: Csr,
    /// Labels × features, each row of length 1 (empty for labels without groups), if requested.
    pub embeddings: Option<Csr>,
    /// Seconds from matrices in memory to the result in memory.
    pub seconds: f64,
}

/// The result of one label's task.
struct Found {
    /// (sample, similarity), ascending by sample.
    samples: Vec<(u32, f32)>,
    embedding: Vec<(u32, f32)>,
}

/// Assigns every label of every group to a sample.
///
/// Labels of a group without samples are not assigned.
pub fn assign(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &AssignParams,
    with_embeddings: bool,
    control: &Control,
) -> Result<Assigned> {
    let since = Instant::now();
    params.check()?;
    groups.check_rows(x.rows())?;
    groups.check_bags(bags)?;
    let narrow = Narrow::new(x, bags);
    forecast::check_embeddings("assignment", (&narrow, groups, bags.cols()), with_embeddings, control)?;
    let (x, bags, all) = (&narrow.x, &*narrow.bags, bags.cols());
    let found = each_label(x, groups, bags, params, stage::ASSIGN, control, |grlr| {
        // Rows that are not scaled may be so long that similarities leave the range of f32.
        let within = |s: f32| if s == 0.0 { f32::MIN_POSITIVE } else { s.clamp(f32::MIN, f32::MAX) };
        let similar = |(i, s): (u32, f32)| (i, within(s));
        let mut samples: Vec<_> = grlr.best().into_iter().map(similar).collect();
        // A sample of several groups may be chosen more than once: its highest similarity counts.
        samples.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        samples.dedup_by_key(|e| e.0);
        Found { samples, embedding: if with_embeddings { grlr.embedding() } else { Vec::new() } }
    })?;
    let y = narrow.labels(matrix(bags.cols(), x.rows(), &found, |f| &f.samples)?.transpose());
    let embeddings =
        with_embeddings.then(|| embeddings(&narrow, all, found, |f| &f.embedding)).transpose()?;
    Ok(Assigned { y, embeddings, seconds: since.elapsed().as_secs_f64() })
}

/// The baseline: every sample gets all labels of its groups, with their counts summed, at most up to the largest float.
pub fn union(groups: &Groups, bags: &Csr, control: &Control) -> Result<Csr> {
    groups.check_bags(bags)?;
    forecast::check_union((groups, bags), control)?;
    union_of(groups, bags, control)
}
