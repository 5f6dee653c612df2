//! Training the classifiers of layers: one task for each node, largest first.
//!
//! With sibling negatives no layer waits for another, so the nodes of all layers are one list of tasks. A worker
//! takes the next task from a counter; there are no barriers. A node that holds a large share of the rows is cut
//! into one task a block of 16 siblings, so that the last task is never long. A node's result depends on the seed
//! and its place in the tree alone, so neither threads nor their timing change a byte.

use super::block::{Block, LANES};
use super::node::{Gatherer, TrainRows};
use super::positives::{Pairs, Positives};
use super::{Loss, SolverParams, WeightFormat};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::kernels::Isa;
use crate::kernels::dcd::{DualLoss, Problem, Step};
use crate::linear::{REST, Scratch, Stop, solve, survivors};
use crate::rng::Rng;
use crate::tree::TreeLayer;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    /// Threads, seed, cancellation, progress.
    pub control: &'a Control,
    /// When training began, for progress.
    pub since: Instant,
}

#[derive(Debug, Clone)]
struct Task {
    job: usize,
    parent: usize,
    blocks: std::ops::Range<usize>,
    cost: u64,
}

impl Trainer<'_> {
    /// Trains the layers; blocks come back ordered by layer, parent and first child.
    pub fn train(&self, jobs: &[LayerJob<'_>]) -> Result<Vec<Block>> {
        let tasks = self.tasks(jobs);
        let total: u64 = tasks.iter().map(|t| t.cost).sum();
        let columns: u64 = jobs.iter().map(|j| j.layer.columns() as u64).sum();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let results: Mutex<Vec<Block>> = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
        let begin = Instant::now();
        let entries = self.rows.entries();
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads().min(tasks.len()) {
                scope.spawn(|_| {
                    let mut worker = Worker::default();
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(e) = worker.run(self, entries, &jobs[task.job], task) {
                            failure.lock().expect("no panic holds this lock").get_or_insert(e);
                            return;
                        }
                        let sum = done.fetch_add(task.cost, Ordering::Relaxed) + task.cost;
                        let share = sum as f64 / total.max(1) as f64;
                        self.control.report(&Progress {
                            stage: "layers",
                            done: (share * columns as f64) as u64,
                            total: columns,
                            rows: self.rows.rows() as u64,
                            labels: columns,
                            seconds: self.since.elapsed().as_secs_f64(),
                            eta: begin.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-9),
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
                let blocks = j.layer.children(parent).len().div_ceil(LANES);
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
                    tasks.extend((0..blocks).map(|b| Task { job, parent, blocks: b..b + 1, cost: cost(1) }));
                } else {
                    tasks.push(Task { job, parent, blocks: 0..blocks, cost: cost(blocks) });
                }
            }
        }
        tasks.sort_by_key(|t| std::cmp::Reverse(t.cost));
        tasks
    }

    fn step(&self) -> Step {
        let p = self.params;
        let loss = match p.loss {
            Loss::SquaredHinge => DualLoss::SquaredHinge,
            Loss::Hinge => DualLoss::Hinge,
            Loss::Logistic => DualLoss::Logistic,
        };
        Step { loss, cp: p.cp, cn: p.cn, bias: p.bias, rest: REST * p.eps }
    }
}

fn count_distinct(sorted: &[u32]) -> usize {
    sorted.chunk_by(|a, b| a == b).count()
}

/// One thread's memory.
#[derive(Debug, Default)]
struct Worker {
    gatherer: Gatherer,
    scratch: Scratch,
    rows: Vec<u32>,
    pair_rows: Vec<u32>,
    masks: Vec<u16>,
    relevance: Vec<f32>,
    kept: Vec<u16>,
    blocks: Vec<Block>,
}

impl Worker {
    fn run(
        &mut self,
        trainer: &Trainer<'_>,
        entries: crate::kernels::dcd::Entries<'_>,
        job: &LayerJob<'_>,
        task: &Task,
    ) -> Result<()> {
        let pairs = job.positives.of(task.parent);
        self.choose_rows(trainer, job, task.parent, pairs);
        let node = self.gatherer.gather(trainer.rows, entries, &self.rows);
        let isa = Isa::detect();
        let (params, control) = (trainer.params, trainer.control);
        let stop = Stop { eps: params.eps, max_passes: params.max_passes };
        for b in task.blocks.clone() {
            let first = (b * LANES) as u32;
            let lanes = (job.layer.children(task.parent).len() - b * LANES).min(LANES) as u32;
            let width = crate::linear::width_of(lanes);
            self.masks.clear();
            self.masks.resize(self.rows.len(), 0);
            self.relevance.clear();
            if job.weighted {
                self.relevance.resize(self.rows.len() * width, 1.0);
            }
            for (e, child) in pairs.children.iter().enumerate() {
                let lane = child.wrapping_sub(first);
                if lane < lanes {
                    let row = self.pair_rows[e] as usize;
                    self.masks[row] |= 1 << lane;
                    if job.weighted {
                        self.relevance[row * width + lane as usize] = pairs.values[e];
                    }
                }
            }
            let active = u32::from(self.masks.iter().fold(0, |a, m| a | m));
            if active == 0 {
                continue;
            }
            let problem = Problem {
                rows: node.rows,
                positives: &self.masks,
                relevance: job.weighted.then_some(&self.relevance),
                step: trainer.step(),
            };
            let rng = Rng::new(&[control.seed, u64::from(job.number), task.parent as u64, u64::from(first)]);
            solve(isa, &problem, active, width, stop, rng, &mut self.scratch, control)?;
            let siblings = &self.scratch.siblings;
            survivors(isa, siblings, params.threshold, params.max_weights as usize, &mut self.kept);
            let mut block = Block {
                layer: job.number,
                parent: task.parent as u32,
                first,
                lanes,
                features: Vec::new(),
                masks: Vec::new(),
                codes: Vec::new(),
                bias: [f32::NEG_INFINITY; LANES],
            };
            for lane in (0..lanes as usize).filter(|l| active >> l & 1 == 1) {
                block.bias[lane] = siblings.bias()[lane] * params.bias;
            }
            harvest(&mut block, siblings, &self.kept, node.features, trainer.format);
            self.blocks.push(block);
        }
        Ok(())
    }

    /// All rows at the root; elsewhere those with a positive and those added. Fills `rows` and, for each pair, the
    /// place of its row.
    fn choose_rows(&mut self, trainer: &Trainer<'_>, job: &LayerJob<'_>, parent: usize, pairs: Pairs<'_>) {
        self.rows.clear();
        self.pair_rows.clear();
        if job.number == 0 {
            self.rows.extend(0..trainer.rows.rows() as u32);
            self.pair_rows.extend_from_slice(pairs.rows);
            return;
        }
        self.rows.extend_from_slice(pairs.rows);
        if let Some(more) = job.more {
            self.rows.extend_from_slice(more.of(parent).rows);
            self.rows.sort_unstable();
        }
        self.rows.dedup();
        let mut at = 0;
        for row in pairs.rows {
            while self.rows[at] != *row {
                at += 1;
            }
            self.pair_rows.push(at as u32);
        }
    }
}

fn harvest(
    block: &mut Block,
    siblings: &crate::kernels::dcd::Siblings,
    kept: &[u16],
    features: Option<&[u32]>,
    format: WeightFormat,
) {
    let (rows, weights) =
        kept.iter().fold((0, 0), |(r, w), m| (r + usize::from(*m != 0), w + m.count_ones() as usize));
    block.features.reserve_exact(rows);
    block.masks.reserve_exact(rows);
    block.codes.reserve_exact(weights * format.bytes());
    for (f, mask) in kept.iter().enumerate().filter(|(_, m)| **m != 0) {
        block.features.push(features.map_or(f as u32, |names| names[f]));
        block.masks.push(*mask);
        let (w, mut bits) = (siblings.weights(f), *mask);
        while bits != 0 {
            format.encode(w[bits.trailing_zeros() as usize], &mut block.codes);
            bits &= bits - 1;
        }
    }
}
