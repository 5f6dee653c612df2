//! Partition-based extreme classification: a linear classifier at every edge of a label tree.

mod block;
mod file;
mod layout;
mod model;
mod params;
mod search;
mod tables;
mod train;
mod weight_format;

pub use block::{Block, LANES};
pub use model::{Model, ModelInfo, ModelParts, Ranked};
pub use params::{
    Loss, ModelParams, Negatives, PredictParams, Relevance, RelevanceNorm, ScoreForm, SolverParams,
    SplitKind, TrainParams, TreeParams, VectorKind,
};
pub use search::{Allowed, Scope, Searcher};
pub use train::{TrainInputs, TrainReport, forecast, train};
pub use weight_format::{WeightFormat, WeightKind};
