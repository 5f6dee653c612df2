//! Partition-based extreme classification: a linear classifier for every edge of a label tree.
//!
//! This is the model of Parabel (Prabhu et al., WWW 2018), Bonsai (Khandagale et al., Machine Learning 2020) and XR-Linear
//! (PECOS; Yu et al., JMLR 2022): a tree over the labels ([`crate::tree`]), one linear classifier for each child of each
//! node, learned from the rows that belong at the node, and a beam search from the root for prediction.
//!
//! | module | what it does |
//! |---|---|
//! | `params` | every parameter of training and prediction |
//! | `train` | the whole of training, from matrices to a model |
//! | `positives` | carries the rows' labels up the tree: which rows are positive at which child |
//! | `negatives` | chooses each node's negatives: teacher-forcing (TFN) or matcher-aware (MAN) |
//! | `layer_training` | trains the nodes of all layers as one list of tasks |
//! | `node_solver`, `row_gather` | train one node: its rows gathered, the solver run, the weights pruned |
//! | `overlap_rounds` | alternates matcher and label assignment (label disentanglement) |
//! | `weight_block`, `weight_format`, `dense_codes` | pruned weights on their way to the model, and how each is stored |
//! | `layout` | puts the weights of all layers in feature-major order |
//! | `file`, `names`, `layer_tables`, `model` | the model as one image of bytes, the same in memory and on disk |
//! | `search` | beam search, restricted to allowed labels or scoring chosen ones |
//! | `meanings` | which features tell the leaves of a label apart |
//! | `forecast` | the estimate of memory made before training |

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
pub use forecast::{forecast, forecast_given};
pub use meanings::{Leaf, Meanings, Telling};
pub use model::{Model, ModelInfo, ModelParts};
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
