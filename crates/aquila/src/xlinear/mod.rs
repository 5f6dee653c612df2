//! Partition-based extreme classification: a linear classifier at every edge of a label tree.

mod dense_codes;
mod file;
mod forecast;
mod layer_tables;
mod layer_training;
mod layout;
mod meanings;
mod model;
mod names;
mod negatives;
mod node_solver;
mod overlap_rounds;
mod params;
mod positives;
mod relevance;
mod row_gather;
mod search;
mod train;
mod weight_block;
mod weight_format;

pub use dense_codes::DenseCodes;
pub(crate) use forecast::Sizes;
pub use forecast::forecast;
pub use meanings::{Leaf, Meanings, Telling};
pub use model::{Model, ModelInfo, ModelParts, Ranked};
pub use params::{
    Loss, Merge, ModelParams, Negatives, OverlapParams, PredictParams, Relevance, RelevanceNorm, ScoreForm,
    SolverParams, SplitKind, TrainParams, TreeParams, VectorCut, VectorKind,
};
pub(crate) use row_gather::TrainRows;
pub(crate) use search::Lists;
pub use search::{Allowed, Scope, Searcher};
pub(crate) use train::label_tree;
pub use train::{TrainInputs, TrainReport, train};
pub use weight_block::{Block, LANES};
pub use weight_format::{WeightFormat, WeightKind};
