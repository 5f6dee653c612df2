//! Trains the classifiers of layers: one task per node, most expensive first.
//!
//! With teacher-forcing negatives no layer waits for another, so the nodes of all layers are one list of tasks. Each worker
//! takes the next task from a counter; there are no barriers. A node that holds a large share of the rows is split into tasks
//! of as many siblings as the solver steps together, so that the last task is never long. A node's result depends only on
//! the seed and on its place in the tree, so neither the number of threads nor their timing changes a byte.

use super::node_solver::NodeSolver;
use super::positives::Positives;
use super::row_gather::TrainRows;
use super::weight_block::{Block, LANES};
use super::{DenseCodes, Loss, SolverParams, WeightFormat};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::kernels::dcd::{self, DualLoss, Step};
use crate::linear::REST;
use crate::tree::{NODE, TreeLayer};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One layer to be trained.
#[derive(Debug, Clone, Copy)]
pub struct LayerJob<'a> {
    /// Its number in the tree.
    pub number: u32,
    /// Its columns.
    pub layer: &'a TreeLayer,
    /// Its positives.
    pub positives: &'a Positives,
    /// Rows that learn at each parent beside those with a positive there: pairs whose children do not matter.
    pub more: Option<&'a Positives>,
    /// Whether the positives' values weigh their costs.
    pub weighted: bool,
    /// Learn parents with slots alone: the others are known.
    pub leaves_alone: bool,
}

/// What all tasks share.
#[derive(Debug, Clone, Copy)]
pub struct Trainer<'a> {
    /// The rows.
    pub rows: &'a TrainRows<'a>,
    /// How to learn.
    pub params: &'a SolverParams,
    /// How to store.
    pub format: WeightFormat,
    /// How to store dense columns.
    pub dense: DenseCodes,
    /// Threads, seed, cancellation, progress.
    pub control: &'a Control,
    /// What progress calls it.
    pub stage: &'static str,
    /// Labels of the input, for progress.
    pub labels: usize,
    /// Columns of all layers, for progress.
    pub columns: u64,
    /// When training began, for progress.
    pub since: Instant,
    /// When the first of its layers began, for progress.
    pub begun: Instant,
}

/// Blocks of siblings that a solver may step together.
const TOGETHER: usize = dcd::MOST / LANES;

/// Some siblings to learn.
#[derive(Debug, Clone)]
pub(super) struct Task {
    job: usize,
    /// Their parent in its layer.
    pub parent: usize,
    /// Which blocks of the parent's children.
    pub blocks: Range<usize>,
    cost: u64,
}

impl Trainer<'_> {
    /// Trains the layers, `before` columns after the first; blocks come back ordered by layer, parent and first
    /// child.
    pub fn train(&self, jobs: &[LayerJob<'_>], before: u64) -> Result<Vec<Block>> {
        let tasks = self.tasks(jobs);
        let total: u64 = tasks.iter().map(|t| t.cost).sum();
        let columns: u64 = jobs.iter().map(|j| j.layer.columns() as u64).sum();
        let next = AtomicUsize::new(0);
        // Held while the listener is told, so that it never hears of less than before.
        let mut left = vec![0usize; jobs.len()];
        tasks.iter().for_each(|t| left[t.job] += 1);
        let state = Mutex::new((0u64, left));
        let results: Mutex<Vec<Block>> = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
        let entries = self.rows.entries();
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads().min(tasks.len()) {
                scope.spawn(|_| {
                    let mut worker = NodeSolver::default();
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(e) = worker.run(self, entries, &jobs[task.job], task) {
                            failure.lock().expect("no panic holds this lock").get_or_insert(e);
                            return;
                        }
                        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                        let (done, left) = &mut *state;
                        *done += task.cost;
                        left[task.job] -= 1;
                        let open = left.iter().position(|left| *left > 0);
                        let last = jobs.last().map_or(0, |job| job.number);
                        let now = before + (*done as f64 / total.max(1) as f64 * columns as f64) as u64;
                        let share = now as f64 / self.columns.max(1) as f64;
                        self.control.report(&Progress {
                            stage: self.stage,
                            done: now,
                            total: self.columns,
                            layer: Some(open.map_or(last + 1, |job| jobs[job].number)),
                            rows: self.rows.rows() as u64,
                            labels: self.labels as u64,
                            seconds: self.since.elapsed().as_secs_f64(),
                            eta: self.begun.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-9),
                            ..Progress::default()
                        });
                    }
                    results.lock().expect("no panic holds this lock").append(&mut worker.blocks);
                });
            }
        });
        if let Some(e) = failure.into_inner().expect("no panic holds this lock") {
            return Err(e);
        }
        let mut blocks = results.into_inner().expect("no panic holds this lock");
        blocks.sort_unstable_by_key(|b| (b.layer, b.parent, b.first));
        Ok(blocks)
    }

    fn tasks(&self, jobs: &[LayerJob<'_>]) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (job, j) in jobs.iter().enumerate() {
            for parent in 0..j.layer.parents() {
                let children = &j.layer.labels[j.layer.children(parent)];
                if j.leaves_alone && children.iter().all(|l| *l == NODE) {
                    continue;
                }
                let blocks = children.len().div_ceil(LANES);
                let rows = match j.number {
                    0 => self.rows.rows(),
                    _ => {
                        count_distinct(j.positives.of(parent).rows)
                            + j.more.map_or(0, |m| m.of(parent).rows.len())
                    }
                };
                if j.number > 0 && rows == 0 {
                    continue;
                }
                let cost = |blocks: usize| 1 + (rows * blocks) as u64;
                if rows * 4 > self.rows.rows() && blocks > 1 {
                    tasks.extend((0..blocks).step_by(TOGETHER).map(|b| {
                        let some = b..(b + TOGETHER).min(blocks);
                        Task { job, parent, cost: cost(some.len()), blocks: some }
                    }));
                } else {
                    tasks.push(Task { job, parent, blocks: 0..blocks, cost: cost(blocks) });
                }
            }
        }
        tasks.sort_by_key(|t| std::cmp::Reverse(t.cost));
        tasks
    }

    /// The solver's constants.
    pub(super) fn step(&self) -> Step {
        let p = self.params;
        let loss = match p.loss {
            Loss::SquaredHinge => DualLoss::SquaredHinge,
            Loss::Hinge => DualLoss::Hinge,
            Loss::Logistic => DualLoss::Logistic,
        };
        Step { loss, cp: p.cp, cn: p.cn, bias: p.bias, rest: REST * p.eps }
    }
}

/// How many rows a sorted list of pairs names.
fn count_distinct(sorted: &[u32]) -> usize {
    sorted.chunk_by(|a, b| a == b).count()
}
