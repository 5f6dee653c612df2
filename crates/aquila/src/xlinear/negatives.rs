//! Which rows are a node's negatives, and the training of layers with them.
//!
//! - *Teacher-forcing negatives* (TFN, `solver.negatives` = `tfn`, the default): a node learns from the rows that are
//!   positive at it, so that the negatives of a child are the positives of its siblings.
//! - *Matcher-aware negatives* (MAN, `man`): a node learns from the rows that the layers above it, trained first, send to
//!   it by beam search, as prediction will. Its positives take part in any case.
//! - `tfn+man`: the rows of both.
//!
//! Source: PECOS (Yu et al., JMLR 2022, section 4.2). With TFN no layer waits for another, so all nodes of the tree are
//! trained as one list of tasks; with MAN layers are trained from the top, and the trained ones are the *matcher*: a model
//! whose labels are the nodes of the next layer. Overlap asks the same matcher which leaves rows reach.

use super::layer_training::{LayerJob, Trainer};
use super::positives::Positives;
use super::relevance;
use super::row_gather::TrainRows;
use super::weight_block::Block;
use super::{
    DenseCodes, Model, ModelParts, Negatives, PredictParams, Relevance, Scope, ScoreForm, SolverParams,
    TrainParams, WeightFormat,
};
use crate::control::Control;
use crate::data::{Csr, Features, Ranked};
use crate::error::Result;
use crate::tree::{LabelTree, NODE, TreeLayer};
use std::time::Instant;

/// What the layers of a training are learned from, whatever the tree.
#[derive(Debug, Clone, Copy)]
pub struct Learner<'a> {
    /// The rows.
    pub x: &'a Features,
    /// The same, as the solver sees them.
    pub rows: &'a TrainRows<'a>,
    /// Their labels.
    pub y: &'a Csr,
    /// The labels' relevances, where they are not `y`'s values.
    pub relevance: Option<&'a Csr>,
    /// Further negatives.
    pub negatives: Option<&'a Csr>,
    /// What goes into the model, the parameters among it.
    pub parts: &'a ModelParts,
    /// Threads, seed, cancellation, progress.
    pub control: &'a Control,
    /// When training began, for progress.
    pub since: Instant,
}

impl Learner<'_> {
    /// The parameters.
    pub fn params(&self) -> &TrainParams {
        &self.parts.params
    }

    /// How weights are stored.
    pub fn format(&self) -> WeightFormat {
        WeightFormat::new(self.params().model.weights, self.params().solver.threshold)
    }

    /// Learns the first `upto` layers. Where blocks are `known`, they are those of all nodes without slots: only the
    /// leaves are learned.
    pub fn layers(
        &self,
        tree: &LabelTree,
        upto: usize,
        solver: &SolverParams,
        stage: &'static str,
        known: Vec<Block>,
    ) -> Result<Vec<Block>> {
        let trainer = Trainer {
            rows: self.rows,
            params: solver,
            format: self.format(),
            dense: DenseCodes::new(self.params().model.weights, self.rows.dense().1),
            control: self.control,
            stage,
            labels: self.y.cols(),
            columns: tree.layers()[..upto].iter().map(|l| l.columns() as u64).sum(),
            since: self.since,
            begun: Instant::now(),
        };
        let weights = self.relevance.unwrap_or(self.y).values();
        let mut positives = Positives::of_labels(self.y, weights, tree);
        relevance::scale(&mut positives, solver.relevance_norm);
        let more = self.negatives.map(|n| Positives::of_labels(n, n.values(), tree));
        let weighted = |t: usize| match solver.relevance {
            Relevance::Off => false,
            Relevance::Induce => true,
            Relevance::Leaves => t + 1 == tree.layers().len(),
        };
        let job = |t: usize| LayerJob {
            number: t as u32,
            layer: &tree.layers()[t],
            positives: &positives[t],
            more: None,
            weighted: weighted(t),
            leaves_alone: !known.is_empty(),
        };
        let given = |t: usize| more.as_ref().map(|m: &Vec<Positives>| &m[t]);
        if solver.negatives == Negatives::Siblings {
            let jobs: Vec<_> = (0..upto).map(|t| LayerJob { more: given(t), ..job(t) }).collect();
            let mut blocks = trainer.train(&jobs, 0)?;
            blocks.extend(known);
            return Ok(blocks);
        }
        let (mut blocks, mut before) = (known.clone(), 0);
        for t in 0..upto {
            let mut learn = given(t).cloned().unwrap_or_else(|| Positives::none(tree.layers()[t].parents()));
            if t > 0 {
                let nodes = tree.layers()[t].parents();
                let mut pairs: Vec<Vec<u32>> = vec![Vec::new(); nodes];
                let found = self.reached(tree, t, &blocks)?;
                for i in 0..self.x.rows() {
                    let span = found.indptr[i]..found.indptr[i + 1];
                    found.labels[span].iter().for_each(|node| pairs[*node as usize].push(i as u32));
                }
                learn = learn.and(Positives::of_rows(&pairs));
            }
            blocks.extend(trainer.train(&[LayerJob { more: Some(&learn), ..job(t) }], before)?);
            before += tree.layers()[t].columns() as u64;
        }
        Ok(blocks)
    }

    /// Which parents of layer `t` the layers above it, learned in `blocks`, send each row to: the beam's nodes, with
    /// the logarithms of their scores.
    pub fn reached(&self, tree: &LabelTree, t: usize, blocks: &[Block]) -> Result<Ranked> {
        let ModelParts { features, dense, params, seed, .. } = self.parts;
        let parts = ModelParts {
            features: *features,
            dense: *dense,
            params: params.clone(),
            seed: *seed,
            ..ModelParts::default()
        };
        let top = matcher(tree, t)?;
        let nodes = tree.layers()[t].parents();
        let control = &self.control.without_progress();
        let upper = blocks.iter().filter(|b| (b.layer as usize) < t).cloned().collect();
        let model = Model::assemble(parts, &top, self.format(), upper, control)?;
        let beam = self.params().solver.matcher_beam;
        let search = PredictParams {
            // The best nodes, whatever slots of upper layers stand between them.
            k: beam.saturating_add((top.labels() - nodes) as u32),
            beam,
            scores: ScoreForm::LogL3Hinge,
            ..PredictParams::default()
        };
        let found = model.predict(self.x, &search, &Scope::All, control)?;
        let mut beams = Ranked { indptr: vec![0], ..Ranked::default() };
        for i in 0..self.x.rows() {
            let span = found.indptr[i]..found.indptr[i + 1];
            let row = found.labels[span.clone()].iter().zip(&found.scores[span]);
            for (node, score) in row.filter(|(l, _)| (**l as usize) < nodes).take(beam as usize) {
                beams.labels.push(*node);
                beams.scores.push(*score);
            }
            beams.indptr.push(beams.labels.len());
        }
        Ok(beams)
    }
}

/// The layers above `t` as a tree of their own, whose labels are the nodes that have children in layer `t`; slots
/// of the upper layers come after them.
fn matcher(tree: &LabelTree, t: usize) -> Result<LabelTree> {
    let nodes = tree.layers()[t].parents() as u32;
    let mut layers: Vec<TreeLayer> = tree.layers()[..t].to_vec();
    let (mut node, mut other) = (0, nodes);
    for (depth, layer) in layers.iter_mut().enumerate() {
        for label in &mut layer.labels {
            let next = if *label != NODE {
                &mut other
            } else if depth + 1 == t {
                &mut node
            } else {
                continue;
            };
            *label = *next;
            *next += 1;
        }
    }
    LabelTree::new(other as usize, layers)
}
