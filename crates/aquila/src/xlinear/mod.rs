//! Partition-based extreme classification: a linear classifier at every edge of a label tree.

mod block;
mod layers;
mod model;
mod node;
mod params;
mod positives;
mod relevance;
mod train;
mod weight_format;

pub use block::{Block, LANES};
pub use model::{Allowed, Model, ModelInfo, ModelParts, Ranked, Scope, Searcher};
pub use params::{
    Loss, ModelParams, Negatives, PredictParams, Relevance, RelevanceNorm, ScoreForm, SolverParams,
    SplitKind, TrainParams, TreeParams, VectorKind,
};
pub use train::{TrainInputs, TrainReport, forecast, train};
pub use weight_format::{WeightFormat, WeightKind};
