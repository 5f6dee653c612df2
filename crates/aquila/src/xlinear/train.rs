//! Training: label vectors, tree, layers, layout.

use super::{Model, TrainParams};
use crate::control::Control;
use crate::data::{Csr, Features};
use crate::error::{Result, fail};
use crate::tree::LabelTree;

/// What training may be given beside rows and labels.
#[derive(Debug, Clone, Default)]
pub struct TrainInputs {
    /// A tree of the user's own instead of k-means.
    pub tree: Option<LabelTree>,
    /// Label vectors of the user's own (labels × anything) instead of PIFA or PII.
    pub label_vectors: Option<Csr>,
    /// Relevance of each label of each row, with exactly the labels' pattern.
    pub relevance: Option<Csr>,
    /// Further negatives: rows × labels; a listed label learns from the row though the tree would not show it.
    pub negatives: Option<Csr>,
    /// One name a label, or none at all.
    pub label_names: Vec<String>,
    /// Whatever the user wants to keep with the model: a JSON text.
    pub metadata: String,
}

/// What training took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrainReport {
    /// Seconds of the label vectors.
    pub label_vectors: f64,
    /// Seconds of the tree.
    pub tree: f64,
    /// Seconds of the layers' classifiers.
    pub layers: f64,
    /// Seconds of the layout.
    pub layout: f64,
    /// Seconds from matrices in memory to model in memory.
    pub total: f64,
    /// The forecast peak of memory, in bytes, made before training began.
    pub forecast_bytes: u64,
}

/// Learns a model from rows and their labels.
pub fn train(
    x: &Features,
    y: &Csr,
    params: &TrainParams,
    inputs: TrainInputs,
    control: &Control,
) -> Result<(Model, TrainReport)> {
    let _ = (x, y, params, inputs, control);
    fail!(Unsupported, "stub")
}

/// The forecast peak of memory of such a training, in bytes, the two matrices included.
pub fn forecast(x: &Features, y: &Csr, params: &TrainParams) -> u64 {
    let _ = params;
    x.sparse().bytes() + y.bytes()
}
