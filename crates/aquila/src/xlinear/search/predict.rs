//! Many rows: parts of the rows in parallel, stitched in order.

use super::{Scope, Searcher};
use crate::control::{Control, Progress, stage};
use crate::data::{Csr, Dense, Features, Ranked};
use crate::error::{Result, fail};
use crate::xlinear::{Model, PredictParams, ScoreForm};
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

/// Labels of rows: where those of each row begin, and all of them.
pub(crate) type Lists<'a> = (&'a [usize], &'a [u32]);

/// Labels of some rows, and the places of their scores, the first of which is that of label `from` of all.
struct Asked<'a> {
    lists: Lists<'a>,
    from: usize,
    scores: &'a mut [f32],
}

impl<'a> Asked<'a> {
    /// Takes away what is asked of these rows, and of those before.
    fn split(&mut self, first: usize, last: usize) -> Self {
        let (lists, starts) = (self.lists, self.lists.0);
        let scores = std::mem::take(&mut self.scores).split_at_mut(starts[first] - self.from).1;
        let (scores, rest) = scores.split_at_mut(starts[last + 1] - starts[first]);
        (self.from, self.scores) = (starts[last + 1], rest);
        Self { lists, from: starts[first], scores }
    }

    /// The labels of a row, and the places of their scores.
    fn row(&mut self, i: usize) -> (&'a [u32], &mut [f32]) {
        let (starts, labels) = self.lists;
        let (begin, end) = (starts[i], starts[i + 1]);
        (&labels[begin..end], &mut self.scores[begin - self.from..end - self.from])
    }
}

impl Model {
    /// Ranks labels of every row, rows in parallel.
    ///
    /// Rows may have fewer sparse columns than the model has sparse features. Rows of a model with a dense block must
    /// have the block too, or all columns as sparse ones: without them nothing would be right, and nothing would tell.
    pub fn predict(
        &self,
        x: &Features,
        params: &PredictParams,
        scope: &Scope,
        control: &Control,
    ) -> Result<Ranked> {
        self.check_columns(x)?;
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
                stage: stage::PREDICT,
                done: done as u64,
                total: x.rows() as u64,
                rows: x.rows() as u64,
                labels: self.labels as u64,
                seconds,
                eta: seconds * (x.rows() - done) as f64 / done as f64,
                ..Progress::default()
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

    /// Scores the labels that are asked of these rows, in each of several lists, each in its place: `scores` are those of
    /// all labels of a list. The rows ascend.
    pub(crate) fn score<const N: usize>(
        &self,
        x: &Csr,
        rows: &[u32],
        asked: [(Lists<'_>, &mut [f32]); N],
        form: ScoreForm,
        control: &Control,
    ) -> Result<()> {
        let params = PredictParams { scores: form, ..PredictParams::default() };
        let mut rest = asked.map(|(lists, scores)| Asked { lists, from: 0, scores });
        let mut parts = Vec::with_capacity(rows.len().div_ceil(ROWS_OF_PART));
        for rows in rows.chunks(ROWS_OF_PART) {
            let (first, last) = (rows[0] as usize, rows[rows.len() - 1] as usize);
            parts.push((rows, rest.each_mut().map(|asked| asked.split(first, last))));
        }
        let score = |s: &mut Searcher, (rows, mut asked): (&[u32], [Asked<'_>; N])| {
            rows.iter().try_for_each(|i| {
                control.check()?;
                let i = *i as usize;
                self.score_chosen(s, x.row(i).into(), &params, asked.each_mut().map(|asked| asked.row(i)))
            })
        };
        control.install(|| parts.into_par_iter().try_for_each_init(Searcher::default, score))?
    }

    fn check_columns(&self, x: &Features) -> Result<()> {
        let (sparse, dense) = (x.sparse().cols(), x.dense().map_or(0, Dense::cols));
        let fits = if dense == self.dense() { sparse <= self.sparse() } else { x.cols() == self.features };
        if fits {
            return Ok(());
        }
        if dense == 0 && self.dense() == 0 {
            fail!(ShapeMismatch, "the rows have {sparse} columns but the model {} features", self.features);
        }
        fail!(
            ShapeMismatch,
            "the rows have {sparse} sparse and {dense} dense columns but the model {} sparse and {} dense features",
            self.sparse(),
            self.dense()
        )
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
        for i in rows {
            // A row of a flat tree of millions of labels takes milliseconds: ask before each.
            control.check()?;
            let row = x.row(i);
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
        searcher.out = out;
        Ok(part)
    }
}
