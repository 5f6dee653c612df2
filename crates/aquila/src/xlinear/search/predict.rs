//! Many rows: parts of the rows in parallel, stitched in order.

use super::{Scope, Searcher};
use crate::control::{Control, Progress};
use crate::data::{Features, Row};
use crate::error::{Result, fail};
use crate::xlinear::{Model, PredictParams, Ranked};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Rows that one thread takes at a time: some hundred microseconds of work.
const ROWS_OF_PART: usize = 64;

/// The result of some rows: labels of each, then all labels and scores.
#[derive(Default)]
struct Part {
    lengths: Vec<u32>,
    labels: Vec<u32>,
    scores: Vec<f32>,
}

impl Model {
    /// Ranks labels of every row, rows in parallel.
    ///
    /// Rows may have fewer columns than the model has features, unless they have a dense block, whose columns'
    /// numbers depend on the sparse part's width.
    pub fn predict(
        &self,
        x: &Features,
        params: &PredictParams,
        scope: &Scope,
        control: &Control,
    ) -> Result<Ranked> {
        if x.cols() > self.features || (x.dense().is_some() && x.cols() != self.features) {
            fail!(
                ShapeMismatch,
                "the rows have {} columns but the model {} features",
                x.cols(),
                self.features
            );
        }
        if let Scope::Chosen(labels) = scope
            && (labels.rows() != x.rows() || labels.cols() != self.labels)
        {
            fail!(
                ShapeMismatch,
                "{} rows need a {} x {} matrix of chosen labels but received {} x {}",
                x.rows(),
                x.rows(),
                self.labels,
                labels.rows(),
                labels.cols()
            );
        }
        let begun = Instant::now();
        let done = AtomicUsize::new(0);
        let idle: Mutex<Vec<Searcher>> = Mutex::new(Vec::new());
        let part = |part: usize| -> Result<Part> {
            control.check()?;
            let taken = idle.lock().ok().and_then(|mut idle| idle.pop());
            let mut searcher = taken.unwrap_or_default();
            let rows = part * ROWS_OF_PART..((part + 1) * ROWS_OF_PART).min(x.rows());
            let made = self.part(x, rows.clone(), params, scope, control, &mut searcher)?;
            if let Ok(mut idle) = idle.lock() {
                idle.push(searcher);
            }
            let done = done.fetch_add(rows.len(), Ordering::Relaxed) + rows.len();
            let seconds = begun.elapsed().as_secs_f64();
            control.report(&Progress {
                stage: "predict",
                done: done as u64,
                total: x.rows() as u64,
                rows: x.rows() as u64,
                labels: self.labels as u64,
                seconds,
                eta: seconds * (x.rows() - done) as f64 / done as f64,
            });
            Ok(made)
        };
        let parts = x.rows().div_ceil(ROWS_OF_PART);
        // Threads cost more than a part or a single thread's work.
        let made: Vec<Part> = if parts <= 1 || control.thread_count() == 1 {
            (0..parts).map(part).collect::<Result<_>>()?
        } else {
            control.install(|| (0..parts).into_par_iter().map(part).collect::<Result<_>>())??
        };
        let mut ranked = Ranked { indptr: Vec::with_capacity(x.rows() + 1), ..Ranked::default() };
        let total = made.iter().map(|p| p.labels.len()).sum();
        ranked.labels.reserve_exact(total);
        ranked.scores.reserve_exact(total);
        ranked.indptr.push(0);
        let mut end = 0;
        for part in made {
            ranked.indptr.extend(part.lengths.iter().map(|n| {
                end += *n as usize;
                end
            }));
            ranked.labels.extend_from_slice(&part.labels);
            ranked.scores.extend_from_slice(&part.scores);
        }
        Ok(ranked)
    }

    fn part(
        &self,
        x: &Features,
        rows: std::ops::Range<usize>,
        params: &PredictParams,
        scope: &Scope,
        control: &Control,
        searcher: &mut Searcher,
    ) -> Result<Part> {
        let mut part = Part::default();
        let mut out = std::mem::take(&mut searcher.out);
        let (mut indices, mut values) =
            (std::mem::take(&mut searcher.indices), std::mem::take(&mut searcher.values));
        for i in rows {
            // A row of a flat tree of millions of labels takes milliseconds: ask before each.
            control.check()?;
            let mut row = x.sparse().row(i);
            if let Some(dense) = x.dense() {
                indices.clear();
                values.clear();
                indices.extend_from_slice(row.indices);
                values.extend_from_slice(row.values);
                let first = x.sparse().cols() as u32;
                indices.extend(first..first + dense.cols() as u32);
                values.extend_from_slice(dense.row(i));
                row = Row { indices: &indices, values: &values };
            }
            match scope {
                Scope::All => self.search_beam(searcher, row, params, None, &mut out),
                Scope::Allowed(allowed) => self.search_beam(searcher, row, params, Some(allowed), &mut out),
                Scope::Chosen(labels) => {
                    self.search_chosen(searcher, row, params, labels.row(i).indices, &mut out)
                }
            }
            .map_err(|e| e.at(format_args!("row {i}")))?;
            part.lengths.push(out.len() as u32);
            part.labels.extend(out.iter().map(|o| o.0));
            part.scores.extend(out.iter().map(|o| o.1));
        }
        (searcher.out, searcher.indices, searcher.values) = (out, indices, values);
        Ok(part)
    }
}
