//! The model: what training makes, files hold and queries ask.

use super::{Block, PredictParams, TrainParams, WeightFormat};
use crate::control::Control;
use crate::data::{Csr, Features, Row};
use crate::error::{Result, fail};
use crate::tree::LabelTree;
use std::path::Path;

/// A trained model, in memory or mapped from its file.
#[derive(Debug)]
pub struct Model {}

/// What goes into a model beside its weights.
#[derive(Debug, Clone, Default)]
pub struct ModelParts {
    /// Number of feature columns.
    pub features: usize,
    /// The parameters of its training, all of them.
    pub params: TrainParams,
    /// The seed of its training.
    pub seed: u64,
    /// One name a label, or none at all.
    pub label_names: Vec<String>,
    /// Whatever the user wants to keep with the model: a JSON text.
    pub metadata: String,
}

/// What a user may know of a model.
#[derive(Debug, Clone, Default)]
pub struct ModelInfo {
    /// Number of feature columns.
    pub features: usize,
    /// Number of labels.
    pub labels: usize,
    /// Number of slots: leaves' columns, at least one a label.
    pub slots: usize,
    /// Columns of each layer, root layer first.
    pub layers: Vec<usize>,
    /// Number of stored weights.
    pub weights: u64,
    /// Bytes of the model file.
    pub bytes: u64,
    /// Whether the bytes are mapped from a file rather than held in memory.
    pub mapped: bool,
    /// The file format's version.
    pub version: u32,
    /// The parts given when it was made.
    pub parts: ModelParts,
}

/// Predictions of many rows: row `i` has the labels `indptr[i]..indptr[i + 1]`, best first, ties by label id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// Row pointers.
    pub indptr: Vec<usize>,
    /// Label ids.
    pub labels: Vec<u32>,
    /// Scores.
    pub scores: Vec<f32>,
}

impl Model {
    /// Lays out trained blocks (any order) over a tree.
    pub fn assemble(
        parts: ModelParts,
        tree: &LabelTree,
        format: WeightFormat,
        blocks: Vec<Block>,
        control: &Control,
    ) -> Result<Self> {
        let _ = (parts, tree, format, blocks, control);
        fail!(Unsupported, "stub")
    }

    /// Maps a model file. The structure is checked, the weights' checksums are not: see [`Model::verify`].
    pub fn open(path: &Path) -> Result<Self> {
        fail!(Unsupported, "stub {}", path.display())
    }

    /// Takes the bytes of a model file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        fail!(Unsupported, "stub {}", bytes.len())
    }

    /// Writes the model to a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        fail!(Unsupported, "stub {}", path.display())
    }

    /// Compares every byte with the file's checksums.
    pub fn verify(&self) -> Result<()> {
        fail!(Unsupported, "stub")
    }

    /// What a user may know of it.
    pub fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    /// The tree.
    pub fn tree(&self) -> Result<LabelTree> {
        fail!(Unsupported, "stub")
    }

    /// Ranks labels of every row, rows in parallel.
    pub fn predict(
        &self,
        x: &Features,
        params: &PredictParams,
        scope: &Scope,
        control: &Control,
    ) -> Result<Ranked> {
        let _ = (x, params, scope, control);
        fail!(Unsupported, "stub")
    }

    /// The scratch memory of one thread's queries.
    pub fn searcher(&self) -> Searcher {
        Searcher::default()
    }

    /// Ranks labels of one row into `out`; no allocation once `searcher` and `out` are warm.
    pub fn search(
        &self,
        searcher: &mut Searcher,
        row: Row<'_>,
        params: &PredictParams,
        scope: &Scope,
        out: &mut Vec<(u32, f32)>,
    ) -> Result<()> {
        let _ = (searcher, row, params, scope, out);
        fail!(Unsupported, "stub")
    }
}

/// Which labels a prediction may name.
#[derive(Debug, Default)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Only these: see [`Model::allow`].
    Allowed(Allowed),
    /// For each row just these labels, all of them scored whatever the beam: rows × labels, values ignored.
    Chosen(Csr),
}

/// A set of labels prepared for search: subtrees without any of them are never entered.
#[derive(Debug)]
pub struct Allowed {}

impl Model {
    /// Prepares a set of labels, ascending and unique, for [`Scope::Allowed`].
    pub fn allow(&self, labels: &[u32]) -> Result<Allowed> {
        fail!(Unsupported, "stub {}", labels.len())
    }
}

/// The scratch memory of one thread's queries.
#[derive(Debug, Default)]
pub struct Searcher {}
