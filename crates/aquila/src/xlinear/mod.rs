//! Partition-based extreme classification: a linear classifier at every edge of a label tree.

mod block;
mod dense_codes;
mod file;
mod forecast;
mod layers;
mod layout;
mod learn;
mod meanings;
mod model;
mod names;
mod node;
mod params;
mod positives;
mod relevance;
mod rounds;
mod search;
mod tables;
mod train;
mod weight_format;
mod worker;

pub use block::{Block, LANES};
pub use dense_codes::DenseCodes;
pub(crate) use forecast::Sizes;
pub use forecast::{forecast, forecast_given};
pub use meanings::{Leaf, Meanings, Telling};
pub use model::{Model, ModelInfo, ModelParts, Ranked};
pub(crate) use node::TrainRows;
pub use params::{
    Loss, Merge, ModelParams, Negatives, OverlapParams, PredictParams, Relevance, RelevanceNorm, ScoreForm,
    SolverParams, SplitKind, TrainParams, TreeParams, VectorCut, VectorKind,
};
pub(crate) use search::Lists;
pub use search::{Allowed, Scope, Searcher};
pub(crate) use train::label_tree;
pub use train::{TrainInputs, TrainReport, train};
pub use weight_format::{WeightFormat, WeightKind};
