//! Learns the siblings of one node: gathers its rows, runs its solver, and keeps the weights above the threshold as
//! blocks.

use super::layer_training::{LayerJob, Task, Trainer};
use super::positives::Pairs;
use super::row_gather::{Columns, Gatherer, LONE};
use super::weight_block::{Block, LANES};
use crate::error::Result;
use crate::kernels::Isa;
use crate::kernels::dcd::{Entries, Problem, Siblings};
use crate::kernels::gram::Gram;
use crate::linear::{Kept, Scratch, Stop, lanes_of, solve, width_of};
use crate::rng::Rng;
use crate::tree::NODE;
use std::ops::Range;

/// Replaces a relevance of 0: the row is not a negative of the label, and its error costs almost nothing.
const LEAST: f32 = 1e-9;

/// A lane ends when its last pass contributed less than this share of all gains, at the default `eps`. Doubling it
/// costs `delicious` 0.1 to 0.3 points of P@k.
const GAIN: f32 = 0.0005;
/// The same where all children are inner nodes, whose scores mainly determine the beam: ten times the share keeps P@k
/// of all data sets within the noise of seeds, with a third fewer passes.
const INNER_GAIN: f32 = 0.005;
/// The `eps` at which these were measured. Gains are squares of gradients, so a smaller `eps` reduces these shares by
/// its square; a larger one ends lanes on its own.
const EPS: f32 = 0.1;

/// One thread's memory.
#[derive(Debug, Default)]
pub(super) struct NodeSolver {
    gatherer: Gatherer,
    gram: Gram,
    scratch: Scratch,
    rows: Vec<u32>,
    pair_rows: Vec<u32>,
    masks: Vec<u32>,
    relevance: Vec<f32>,
    survivors: Vec<u32>,
    kept: Kept,
    column: Vec<f32>,
    /// The learned blocks.
    pub blocks: Vec<Block>,
}

impl NodeSolver {
    /// Learns the task's siblings.
    pub fn run(
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
        let products = Gram::pays(&node.rows).then(|| {
            self.gram.of(isa, &node.rows);
            &self.gram
        });
        let children = job.layer.children(task.parent);
        let inner = job.layer.labels[children.clone()].iter().all(|label| *label == NODE);
        let gain = (params.eps / EPS).min(1.0).powi(2) * if inner { INNER_GAIN } else { GAIN };
        let stop = Stop { eps: params.eps, gain, max_passes: params.max_passes };
        let end = (task.blocks.end * LANES).min(children.len());
        let mostly_dense = node.rows.mostly_dense();
        let mut next = task.blocks.start * LANES;
        while next < end {
            let first = next;
            let lanes = lanes_of(end - first, isa, node.rows.cols(), mostly_dense);
            next += lanes;
            let width = width_of(lanes as u32);
            self.masks.clear();
            self.masks.resize(self.rows.len(), 0);
            self.relevance.clear();
            if job.weighted {
                self.relevance.resize(self.rows.len() * width, 1.0);
            }
            for (e, child) in pairs.children.iter().enumerate() {
                let lane = (*child as usize).wrapping_sub(first);
                if lane < lanes {
                    let row = self.pair_rows[e] as usize;
                    self.masks[row] |= 1 << lane;
                    if job.weighted {
                        self.relevance[row * width + lane] = pairs.values[e].max(LEAST);
                    }
                }
            }
            let active = self.masks.iter().fold(0, |a, m| a | m);
            if active == 0 {
                continue;
            }
            let problem = Problem {
                rows: node.rows,
                positives: &self.masks,
                relevance: job.weighted.then_some(&self.relevance),
                step: trainer.step(),
            };
            let rng = Rng::new(&[control.seed, u64::from(job.number), task.parent as u64, first as u64]);
            solve(isa, &problem, products, active, width, stop, rng, &mut self.scratch, control)?;
            self.scratch.siblings.survivors(isa, params.threshold, &mut self.survivors);
            for from in (0..lanes).step_by(LANES).filter(|from| active >> from & 0xffff != 0) {
                let learned = Learned {
                    siblings: &self.scratch.siblings,
                    survivors: &self.survivors,
                    positives: &self.masks,
                    lanes: from..(from + LANES).min(lanes),
                };
                learned.harvest(&mut self.kept, node.columns, params.threshold);
                if params.max_weights > 0 {
                    self.kept.keep_largest(params.max_weights as usize);
                }
                let mut block = Block {
                    layer: job.number,
                    parent: task.parent as u32,
                    first: (first + from) as u32,
                    lanes: learned.lanes.len() as u32,
                    features: self.kept.features.clone(),
                    masks: self.kept.masks.clone(),
                    codes: Vec::with_capacity(self.kept.weights.len() * trainer.format.bytes()),
                    dense: Vec::new(),
                    scales: [0.0; LANES],
                    bias: [f32::NEG_INFINITY; LANES],
                };
                let (panel, cols) = (learned.siblings.panel(), trainer.dense.cols());
                block.dense.reserve_exact(learned.lanes.len() * trainer.dense.stride());
                for lane in learned.lanes.clone().filter(|_| cols > 0) {
                    self.column.clear();
                    self.column.extend((0..cols).map(|j| panel[j * width + lane]));
                    block.scales[lane - from] = trainer.dense.encode(&self.column, &mut block.dense);
                }
                for lane in learned.lanes.clone().filter(|l| active >> l & 1 == 1) {
                    block.bias[lane - from] = learned.siblings.bias()[lane] * params.bias;
                }
                self.kept.weights.iter().for_each(|w| trainer.format.encode(*w, &mut block.codes));
                self.blocks.push(block);
            }
        }
        Ok(())
    }

    /// Selects all rows at the root, and elsewhere the rows with a positive and the added ones. Fills `rows` and, for
    /// each pair, the index of its row.
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

/// A block of siblings that were learned together.
struct Learned<'a> {
    siblings: &'a Siblings,
    survivors: &'a [u32],
    positives: &'a [u32],
    lanes: Range<usize>,
}

impl Learned<'_> {
    /// Collects the weights whose magnitude is at least the threshold, by ascending feature: shared features from their
    /// columns, lone ones from the dual variables of their rows.
    fn harvest(&self, kept: &mut Kept, columns: Columns<'_>, threshold: f32) {
        kept.clear();
        let from = self.lanes.start;
        let shared = |kept: &mut Kept, feature: u32, column: usize| {
            let mask = (self.survivors[column] >> from) as u16;
            kept.push(feature, mask, &self.siblings.weights(column)[self.lanes.clone()]);
        };
        let Columns::Own { features, homes, lone } = columns else {
            for f in 0..self.survivors.len() {
                shared(kept, f as u32, f);
            }
            return;
        };
        let alphas = |row: usize| &self.siblings.alpha(row)[self.lanes.clone()];
        let largest: Vec<f32> =
            (0..self.positives.len()).map(|i| alphas(i).iter().fold(0f32, |m, a| m.max(*a))).collect();
        for (feature, home) in features.iter().zip(homes) {
            if home & LONE == 0 {
                shared(kept, *feature, *home as usize);
                continue;
            }
            let (row, value) = lone[(home & !LONE) as usize];
            let row = row as usize;
            if largest[row] * value.abs() < threshold || value == 0.0 {
                continue;
            }
            let mut lanes = [0f32; LANES];
            let mut mask = 0u16;
            for (lane, a) in alphas(row).iter().enumerate() {
                lanes[lane] =
                    if self.positives[row] >> (from + lane) & 1 == 1 { a * value } else { -a * value };
                mask |= u16::from(lanes[lane].abs() >= threshold && *a > 0.0) << lane;
            }
            kept.push(*feature, mask, &lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::data::Csr;
    use crate::kernels::dcd::{DualLoss, Rows, Span, Step};
    use crate::xlinear::row_gather::TrainRows;

    const LOSSES: [DualLoss; 3] = [DualLoss::SquaredHinge, DualLoss::Hinge, DualLoss::Logistic];

    /// 30 rows: six shared features, and in every second row one or two features of its own.
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

    /// The kept weights of a block, as lanes by feature.
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
        let masks: Vec<u32> = (0..30).map(|i| [0b00001, 0b00110, 0b10000, 0b01001][i % 4]).collect();
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
                    let stop = Stop { eps: 1e-4, gain: 0.0, max_passes: 3000 };
                    let (mut scratch, mut survivors) = (Scratch::default(), Vec::new());
                    let control = Control::default();
                    let isa = Isa::detect();
                    solve(isa, &problem, None, 0b11111, 8, stop, Rng::new(&[1]), &mut scratch, &control)
                        .unwrap();
                    let mut kept = Kept::default();
                    scratch.siblings.survivors(isa, threshold, &mut survivors);
                    let learned = Learned {
                        siblings: &scratch.siblings,
                        survivors: &survivors,
                        positives: &masks,
                        lanes: 0..5,
                    };
                    learned.harvest(&mut kept, columns, threshold);
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
