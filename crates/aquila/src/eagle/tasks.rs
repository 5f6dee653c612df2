//! One task per label, or for sixteen that share their groups: embeddings are learned in parallel, the largest first.

use super::assign::AssignParams;
use super::grlr::{Grlr, Learned};
use super::grlr_batch::{GrlrBatch, worthwhile};
use super::groups::Groups;
use super::narrow::Narrow;
use super::samples::Samples;
use crate::control::{Control, Progress};
use crate::data::{Csr, Features, Row};
use crate::error::Result;
use crate::kernels::batch16::BATCH16;
use crate::memory;
use crate::xlinear::TrainRows;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::time::Instant;

/// A label that has samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label<'a> {
    pub id: u32,
    /// The groups that carry it, with counts.
    carriers: Row<'a>,
    /// Number of their samples.
    pub samples: usize,
    /// The index of the label in its first group's bag.
    turn: usize,
}

impl<'a> Label<'a> {
    /// Labels without samples are left out; labels with the most samples come first.
    pub fn all(carriers: &'a Csr, groups: &Groups, bags: &Csr) -> Vec<Self> {
        let label = |id: u32| {
            let mut label = Self { id, carriers: carriers.row(id as usize), samples: 0, turn: 0 };
            label.samples = label.groups().map(|(j, _)| groups.members(j as usize).len()).sum();
            let first = label.groups().next();
            label.turn =
                first.map_or(0, |(j, _)| bags.row(j as usize).indices.partition_point(|other| *other < id));
            label
        };
        let mut labels: Vec<Self> =
            (0..bags.cols() as u32).map(label).filter(|label| label.samples > 0).collect();
        labels.sort_unstable_by_key(|label| (Reverse(label.samples), label.id));
        labels
    }

    /// The groups that carry it, with counts.
    pub fn groups(&self) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        self.carriers.iter().filter(|e| e.1 != 0.0)
    }
}

/// Memory that threads reuse.
struct Idle<W>(Mutex<Vec<W>>);

impl<W> Default for Idle<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W> Idle<W> {
    fn take(&self, new: impl FnOnce() -> W) -> W {
        let ready = self.0.lock().expect("no panic holds this lock").pop();
        ready.unwrap_or_else(new)
    }

    fn give(&self, done: W) {
        self.0.lock().expect("no panic holds this lock").push(done);
    }
}

/// Learns all embeddings and keeps the result of `take` for each, ascending by label; labels without samples are left
/// out.
///
/// The inputs have been checked. Runs inside the control's own pool, and reports progress as `stage`.
pub(super) fn each_label<T: Send>(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &AssignParams,
    stage: &'static str,
    control: &Control,
    take: impl Fn(&mut dyn Learned) -> T + Sync,
) -> Result<Vec<(u32, T)>> {
    let since = Instant::now();
    let x = x.as_csr();
    control.install(|| {
        let scaled = TrainRows::new(&x, params.normalize);
        control.check()?;
        let samples = Samples::new(&scaled);
        control.check()?;
        let rows = samples.view();
        let carriers = bags.transpose();
        let labels = Label::all(&carriers, groups, bags);
        control.check()?;
        let tasks: Vec<&[Label<'_>]> = labels
            .par_chunks(BATCH16)
            .flat_map_iter(|run| match worthwhile(run, groups, |i| rows.row(i).0.len(), rows.features()) {
                true => run.chunks(BATCH16),
                false => run.chunks(1),
            })
            .collect();
        let (work, done) = (labels.iter().map(|label| label.samples as u64).sum::<u64>(), Mutex::new(0u64));
        // At most one per thread; a new one for each label would cost more than most labels.
        let (idle, idle_batches) = (Idle::default(), Idle::default());
        let rounds = (params.iterations, f64::from(params.step));
        let alone = |label: &Label<'_>| {
            let mut grlr = idle.take(|| Grlr::new(rows));
            label.groups().for_each(|(j, count)| grlr.add_group(groups.members(j as usize), count));
            grlr.learn(rounds.0, rounds.1, label.turn, control)?;
            let found = (label.id, take(&mut grlr));
            grlr.clear();
            idle.give(grlr);
            Ok(found)
        };
        let batch = |labels: &[Label<'_>]| {
            let mut together = idle_batches.take(|| GrlrBatch::new(rows));
            let learned = together.learn(labels, groups, rounds, control)?;
            let found = labels.iter().enumerate().map(|(lane, label)| match learned >> lane & 1 {
                1 => Ok((label.id, take(&mut together.lane(lane)))),
                _ => alone(label),
            });
            let found = found.collect::<Result<Vec<_>>>()?;
            idle_batches.give(together);
            Ok(found)
        };
        let mut found: Vec<(u32, T)> = tasks
            .par_iter()
            .with_max_len(1)
            .map(|labels| {
                let found = match labels {
                    [label] => vec![alone(label)?],
                    labels => batch(labels)?,
                };
                let mut done = done.lock().expect("no panic holds this lock");
                *done += labels.iter().map(|label| label.samples as u64).sum::<u64>();
                let seconds = since.elapsed().as_secs_f64();
                control.report(&Progress {
                    stage,
                    done: *done,
                    total: work,
                    rows: x.rows() as u64,
                    labels: bags.cols() as u64,
                    seconds,
                    eta: seconds * (work - *done) as f64 / *done as f64,
                    ..Progress::default()
                });
                Ok(found)
            })
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        found.sort_unstable_by_key(|f| f.0);
        control.check()?;
        Ok(found)
    })?
}

/// The matrix labels × columns of the results for each label.
pub(super) fn matrix<T>(
    labels: usize,
    cols: usize,
    found: &[(u32, T)],
    of: impl Fn(&T) -> &[(u32, f32)],
) -> Result<Csr> {
    let mut indptr = memory::room(labels + 1, "the rows of labels")?;
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    indptr.push(0);
    let mut next = found.iter().peekable();
    for k in 0..labels as u32 {
        if let Some((_, found)) = next.next_if(|f| f.0 == k) {
            indices.extend(of(found).iter().map(|e| e.0));
            values.extend(of(found).iter().map(|e| e.1));
        }
        indptr.push(indices.len());
    }
    Ok(Csr::trusted(labels, cols, indptr, indices, values))
}

/// The matrix labels × features, `labels` of them in all, of what was found of those in use.
pub(super) fn embeddings<T>(
    narrow: &Narrow<'_>,
    labels: usize,
    mut found: Vec<(u32, T)>,
    of: impl Fn(&T) -> &[(u32, f32)],
) -> Result<Csr> {
    found.iter_mut().for_each(|found| found.0 = narrow.label(found.0));
    Ok(narrow.features(matrix(labels, narrow.x.cols(), &found, of)?))
}
