//! One task a label: every label's embedding is learned from its groups, labels in parallel, largest first.

use super::assign::AssignParams;
use super::grlr::Grlr;
use super::groups::Groups;
use super::samples::Samples;
use crate::control::{Control, Progress};
use crate::data::{Csr, Features};
use crate::error::Result;
use crate::params::Params;
use crate::xlinear::TrainRows;
use rayon::prelude::*;
use std::sync::Mutex;
use std::time::Instant;

/// Learns all embeddings and keeps what `take` takes of each, ascending by label; labels of no samples are left out.
///
/// Runs inside the control's own pool, and reports progress as `stage`.
pub(super) fn each_label<T: Send>(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &AssignParams,
    stage: &'static str,
    control: &Control,
    take: impl Fn(&Grlr<'_>) -> T + Sync,
) -> Result<Vec<(u32, T)>> {
    let since = Instant::now();
    params.check()?;
    groups.check_rows(x.rows())?;
    groups.check_bags(bags)?;
    let x = x.as_csr();
    control.install(|| {
        let scaled = TrainRows::new(&x, params.normalize);
        control.check()?;
        let samples = Samples::new(&scaled);
        control.check()?;
        let rows = samples.view();
        let carriers = bags.transpose();
        let size = |j: u32| groups.members(j as usize).len();
        let mut order: Vec<(usize, u32)> = (0..bags.cols() as u32)
            .map(|k| (carriers.row(k as usize).iter().map(|(j, _)| size(j)).sum(), k))
            .filter(|(samples, _)| *samples > 0)
            .collect();
        order.sort_unstable_by_key(|(samples, k)| (std::cmp::Reverse(*samples), *k));
        let (work, done) = (order.iter().map(|o| o.0 as u64).sum::<u64>(), Mutex::new(0u64));
        // As many as threads; a new one for each label would cost more than most labels.
        let idle: Mutex<Vec<Grlr<'_>>> = Mutex::default();
        let mut found: Vec<(u32, T)> = order
            .par_iter()
            .with_max_len(1)
            .map(|(samples, k)| {
                let ready = idle.lock().expect("no panic holds this lock").pop();
                let mut grlr = ready.unwrap_or_else(|| Grlr::new(rows));
                for (j, count) in carriers.row(*k as usize).iter().filter(|e| e.1 != 0.0) {
                    grlr.add_group(groups.members(j as usize), count);
                }
                let first = carriers.row(*k as usize).iter().find(|e| e.1 != 0.0);
                let turn =
                    first.map_or(0, |(j, _)| bags.row(j as usize).indices.partition_point(|other| other < k));
                grlr.learn(params.iterations, f64::from(params.step), turn, control)?;
                let found = take(&grlr);
                grlr.clear();
                idle.lock().expect("no panic holds this lock").push(grlr);
                let mut done = done.lock().expect("no panic holds this lock");
                *done += *samples as u64;
                let seconds = since.elapsed().as_secs_f64();
                control.report(&Progress {
                    stage,
                    done: *done,
                    total: work,
                    rows: x.rows() as u64,
                    labels: bags.cols() as u64,
                    seconds,
                    eta: seconds * (work - *done) as f64 / *done as f64,
                });
                Ok((*k, found))
            })
            .collect::<Result<_>>()?;
        found.sort_unstable_by_key(|f| f.0);
        control.check()?;
        Ok(found)
    })?
}

/// The matrix labels × columns of what was found of each label.
pub(super) fn matrix<T>(
    labels: usize,
    cols: usize,
    found: &[(u32, T)],
    of: impl Fn(&T) -> &[(u32, f32)],
) -> Csr {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut next = found.iter().peekable();
    for k in 0..labels as u32 {
        if let Some((_, found)) = next.next_if(|f| f.0 == k) {
            indices.extend(of(found).iter().map(|e| e.0));
            values.extend(of(found).iter().map(|e| e.1));
        }
        indptr.push(indices.len());
    }
    Csr::trusted(labels, cols, indptr, indices, values)
}
