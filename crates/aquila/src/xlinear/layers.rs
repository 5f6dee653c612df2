//! Training the classifiers of layers: one task for each node, largest first.
//!
//! With sibling negatives no layer waits for another, so the nodes of all layers are one list of tasks. A worker
//! takes the next task from a counter; there are no barriers. A node that holds a large share of the rows is cut
//! into one task a block of 16 siblings, so that the last task is never long. A node's result depends on the seed
//! and its place in the tree alone, so neither threads nor their timing change a byte.

use super::block::{Block, LANES};
use super::node::{Columns, Gatherer, LONE, TrainRows};
use super::positives::{Pairs, Positives};
use super::{Loss, SolverParams, WeightFormat};
use crate::control::{Control, Progress};
use crate::error::Result;
use crate::kernels::Isa;
use crate::kernels::dcd::{DualLoss, Entries, Problem, Siblings, Step};
use crate::linear::{Kept, REST, Scratch, Stop, solve};
use crate::rng::Rng;
use crate::tree::TreeLayer;
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
    /// Labels of the input, for progress.
    pub labels: usize,
    /// Columns of all layers, for progress.
    pub columns: u64,
    /// When training began, for progress.
    pub since: Instant,
    /// When the first of its layers began, for progress.
    pub begun: Instant,
}

/// What a relevance of 0 is taken for: the row is not the label's negative, and its error costs next to nothing.
const LEAST: f32 = 1e-9;

#[derive(Debug, Clone)]
struct Task {
    job: usize,
    parent: usize,
    blocks: std::ops::Range<usize>,
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
        let done = Mutex::new(0u64);
        let results: Mutex<Vec<Block>> = Mutex::new(Vec::new());
        let failure = Mutex::new(None);
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
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        *done += task.cost;
                        let now = before + (*done as f64 / total.max(1) as f64 * columns as f64) as u64;
                        let share = now as f64 / self.columns.max(1) as f64;
                        self.control.report(&Progress {
                            stage: "layers",
                            done: now,
                            total: self.columns,
                            rows: self.rows.rows() as u64,
                            labels: self.labels as u64,
                            seconds: self.since.elapsed().as_secs_f64(),
                            eta: self.begun.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-9),
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
    survivors: Vec<u16>,
    kept: Kept,
    blocks: Vec<Block>,
}

impl Worker {
    fn run(
        &mut self,
        trainer: &Trainer<'_>,
        entries: Entries<'_>,
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
                        self.relevance[row * width + lane as usize] = pairs.values[e].max(LEAST);
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
            siblings.survivors(isa, params.threshold, &mut self.survivors);
            harvest(&mut self.kept, siblings, &self.survivors, node.columns, &self.masks, params.threshold);
            if params.max_weights > 0 {
                self.kept.keep_largest(params.max_weights as usize);
            }
            let mut block = Block {
                layer: job.number,
                parent: task.parent as u32,
                first,
                lanes,
                features: self.kept.features.clone(),
                masks: self.kept.masks.clone(),
                codes: Vec::with_capacity(self.kept.weights.len() * trainer.format.bytes()),
                bias: [f32::NEG_INFINITY; LANES],
            };
            for lane in (0..lanes as usize).filter(|l| active >> l & 1 == 1) {
                block.bias[lane] = siblings.bias()[lane] * params.bias;
            }
            self.kept.weights.iter().for_each(|w| trainer.format.encode(*w, &mut block.codes));
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

/// Collects the weights of at least the threshold, features ascending: shared features from their columns, lone ones
/// from the dual variables of their rows.
fn harvest(
    kept: &mut Kept,
    siblings: &Siblings,
    survivors: &[u16],
    columns: Columns<'_>,
    positives: &[u16],
    threshold: f32,
) {
    kept.clear();
    let Columns::Own { features, homes, lone } = columns else {
        for (f, mask) in survivors.iter().enumerate() {
            kept.push(f as u32, *mask, siblings.weights(f));
        }
        return;
    };
    let largest: Vec<f32> =
        (0..positives.len()).map(|i| siblings.alpha(i).iter().fold(0f32, |m, a| m.max(*a))).collect();
    for (feature, home) in features.iter().zip(homes) {
        if home & LONE == 0 {
            let column = *home as usize;
            kept.push(*feature, survivors[column], siblings.weights(column));
            continue;
        }
        let (row, value) = lone[(home & !LONE) as usize];
        let row = row as usize;
        if largest[row] * value.abs() < threshold || value == 0.0 {
            continue;
        }
        let mut lanes = [0f32; LANES];
        let mut mask = 0u16;
        for (lane, a) in siblings.alpha(row).iter().enumerate() {
            lanes[lane] = if positives[row] >> lane & 1 == 1 { a * value } else { -a * value };
            mask |= u16::from(lanes[lane].abs() >= threshold && *a > 0.0) << lane;
        }
        kept.push(*feature, mask, &lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::kernels::dcd::{Rows, Span};

    const LOSSES: [DualLoss; 3] = [DualLoss::SquaredHinge, DualLoss::Hinge, DualLoss::Logistic];

    /// 30 rows: six shared features, and one or two of its own in every second row.
    fn data() -> Csr {
        let mut rng = Rng::new(&[3]);
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for i in 0..30u32 {
            let mut row: Vec<u32> = (0..6).filter(|_| rng.below(2) == 0).collect();
            if i % 2 == 0 {
                row.extend([10 + 3 * i, 11 + 3 * i]);
            }
            values.extend(row.iter().map(|_| rng.below(20) as f32 * 0.1 - 0.7));
            indices.extend(row);
            indptr.push(indices.len());
        }
        Csr::new(30, 120, indptr, indices, values).unwrap()
    }

    /// What is kept of a block, as lanes by feature.
    fn lanes(kept: &Kept) -> Vec<[f32; 16]> {
        let mut out = vec![[0f32; 16]; 120];
        let mut at = 0;
        for (f, mask) in kept.features.iter().zip(&kept.masks) {
            for lane in (0..16).filter(|l| mask >> l & 1 == 1) {
                out[*f as usize][lane] = kept.weights[at];
                at += 1;
            }
        }
        assert_eq!(at, kept.weights.len());
        out
    }

    #[test]
    fn a_gathered_node_learns_the_weights_of_the_plain_matrix() {
        let x = data();
        let rows = TrainRows::new(&x, true);
        let masks: Vec<u16> = (0..30).map(|i| [0b00001, 0b00110, 0b10000, 0b01001][i % 4]).collect();
        let spans: Vec<Span> = (0..30)
            .map(|i| {
                let squared = rows.row(i).1.iter().map(|v| v * v).sum();
                Span { begin: x.indptr()[i], end: x.indptr()[i + 1], squared, lone: 0.0 }
            })
            .collect();
        let mut gatherer = Gatherer::default();
        let gathered = gatherer.gather(&rows, rows.entries(), &(0..30).collect::<Vec<_>>());
        assert!(matches!(gathered.columns, Columns::Own { lone, .. } if lone.len() > 20));
        for loss in LOSSES {
            for threshold in [0.0, 0.1] {
                let learn = |rows: Rows<'_>, columns: Columns<'_>| {
                    let step = Step { loss, cp: 2.0, cn: 1.0, bias: 1.0, rest: 1e-5 };
                    let problem = Problem { rows, positives: &masks, relevance: None, step };
                    let stop = Stop { eps: 1e-4, max_passes: 3000 };
                    let (mut scratch, mut survivors) = (Scratch::default(), Vec::new());
                    let control = Control::default();
                    let isa = Isa::detect();
                    solve(isa, &problem, 0b11111, 8, stop, Rng::new(&[1]), &mut scratch, &control).unwrap();
                    let mut kept = Kept::default();
                    scratch.siblings.survivors(isa, threshold, &mut survivors);
                    harvest(&mut kept, &scratch.siblings, &survivors, columns, &masks, threshold);
                    assert!(kept.features.is_sorted_by(|a, b| a < b));
                    assert!(kept.weights.iter().all(|w| w.abs() >= threshold && *w != 0.0));
                    lanes(&kept)
                };
                let plain = learn(Rows::new(rows.entries(), &spans), Columns::Same);
                let own = learn(gathered.rows, gathered.columns);
                assert!(plain.iter().flatten().any(|w| *w != 0.0));
                for (f, (a, b)) in plain.iter().zip(&own).enumerate() {
                    for (lane, (a, b)) in a.iter().zip(b).enumerate() {
                        // A weight at the threshold may fall on either side of it.
                        let edge = a.abs().max(b.abs()) < threshold + 1e-3 && threshold > 0.0;
                        assert!((a - b).abs() < 1e-3 || edge, "{loss:?} feature {f} lane {lane}: {a} {b}");
                    }
                }
            }
        }
    }
}
