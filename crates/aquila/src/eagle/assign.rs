//! Assignment: each label of a group goes to the group's sample that is most like the label's embedding.
//!
//! Formula: for every group `j` and label `k` of its bag, the sample `argmax_{i∈N_j} ⟨e_k, x_i⟩`, the first on a tie.
//! Cost: that of the embeddings; labels in parallel, largest first.

use super::grlr::Grlr;
use super::groups::{Groups, union_of};
use super::samples::Samples;
use crate::control::{Control, Progress};
use crate::data::{Csr, Features};
use crate::error::Result;
use crate::params::{Kind, Params};
use crate::xlinear::TrainRows;
use rayon::prelude::*;
use std::sync::Mutex;
use std::time::Instant;

crate::params! {
    /// How group labels are assigned.
    pub struct AssignParams {
        /// Rounds of the embeddings; 0 takes the mean of all samples of the label's groups (EAGLE-0).
        pub iterations: u32 = 20, "iterations", Kind::Integer { min: 0.0, max: 60_000.0 };
        /// How far each round goes towards the samples that are most like the embedding.
        pub step: f32 = 0.1, "step", Kind::Number { min: 1e-6, max: 1e6 };
        /// Scale rows to length 1 first.
        pub normalize: bool = true, "normalize", Kind::Bool;
    }
}

/// What an assignment gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    /// Samples × labels: the similarity of each assignment, which may be negative; 0 is written as the smallest
    /// positive number, for an entry of 0 is no label.
    pub y: Csr,
    /// Labels × features, each row of length 1 (empty for labels of no group), where they were asked for.
    pub embeddings: Option<Csr>,
    /// Seconds from matrices in memory to result in memory.
    pub seconds: f64,
}

/// What one label's task found.
#[derive(Default)]
struct Found {
    /// (sample, similarity), ascending by sample.
    samples: Vec<(u32, f32)>,
    embedding: Vec<(u32, f32)>,
}

/// Assigns every label of every group to a sample.
///
/// Labels of a group without samples go to nobody.
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
    let x = x.as_csr();
    control.install(|| {
        let scaled = TrainRows::new(&x, params.normalize);
        let samples = Samples::new(&scaled);
        let rows = samples.view();
        let carriers = bags.transpose();
        let mut order: Vec<(usize, u32)> = (0..bags.cols() as u32)
            .map(|k| {
                (carriers.row(k as usize).iter().map(|(j, _)| groups.members(j as usize).len()).sum(), k)
            })
            .filter(|(samples, _)| *samples > 0)
            .collect();
        order.sort_unstable_by_key(|(samples, k)| (std::cmp::Reverse(*samples), *k));
        let (work, done) = (order.iter().map(|o| o.0 as u64).sum::<u64>(), Mutex::new(0u64));
        let mut found: Vec<(u32, Found)> = order
            .par_iter()
            .with_max_len(1)
            .map_init(
                || Grlr::new(rows),
                |grlr, (samples, k)| {
                    for (j, count) in carriers.row(*k as usize).iter().filter(|e| e.1 != 0.0) {
                        grlr.add_group(groups.members(j as usize), count);
                    }
                    grlr.learn(params.iterations, f64::from(params.step), control)?;
                    let similar = |(i, s): (u32, f32)| (i, if s == 0.0 { f32::MIN_POSITIVE } else { s });
                    let mut found =
                        Found { samples: grlr.best().into_iter().map(similar).collect(), ..Found::default() };
                    // A sample of several groups may be chosen more than once: its best counts.
                    found.samples.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
                    found.samples.dedup_by_key(|e| e.0);
                    if with_embeddings {
                        found.embedding = grlr.embedding();
                    }
                    grlr.clear();
                    let mut done = done.lock().expect("no panic holds this lock");
                    *done += *samples as u64;
                    let seconds = since.elapsed().as_secs_f64();
                    control.report(&Progress {
                        stage: "assign",
                        done: *done,
                        total: work,
                        rows: x.rows() as u64,
                        labels: bags.cols() as u64,
                        seconds,
                        eta: seconds * (work - *done) as f64 / *done as f64,
                    });
                    Ok((*k, found))
                },
            )
            .collect::<Result<_>>()?;
        found.sort_unstable_by_key(|f| f.0);
        let of = |part: fn(&Found) -> &[(u32, f32)]| {
            let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            let mut next = found.iter().peekable();
            for k in 0..bags.cols() as u32 {
                if let Some((_, found)) = next.next_if(|f| f.0 == k) {
                    indices.extend(part(found).iter().map(|e| e.0));
                    values.extend(part(found).iter().map(|e| e.1));
                }
                indptr.push(indices.len());
            }
            (indptr, indices, values)
        };
        let (indptr, indices, values) = of(|f| &f.samples);
        let y = Csr::trusted(bags.cols(), x.rows(), indptr, indices, values).transpose();
        let embeddings = with_embeddings.then(|| {
            let (indptr, indices, values) = of(|f| &f.embedding);
            Csr::trusted(bags.cols(), x.cols(), indptr, indices, values)
        });
        Ok(Assigned { y, embeddings, seconds: since.elapsed().as_secs_f64() })
    })?
}

/// The baseline: every sample gets all labels of its groups, with their counts summed.
pub fn union(groups: &Groups, bags: &Csr) -> Result<Csr> {
    groups.check_bags(bags)?;
    Ok(union_of(groups, bags))
}
