//! Extreme multi-label classification: the few right labels of an input among thousands or millions.
//!
//! A model is a tree over the labels with a linear classifier at every edge (XR-Linear, Parabel); prediction is a beam
//! search from the root. Training also takes labels that are known only for groups of rows, and labels may be placed
//! under several leaves.
//!
//! # Training and prediction
//!
//! Rows are sparse ([`Csr`]), dense ([`Dense`]), or both side by side ([`Features`]). Every heavy call takes a
//! [`Control`]: threads, seed, cancellation, progress, and a limit for memory.
//!
//! ```
//! use aquila::xlinear::{PredictParams, Scope, TrainInputs, TrainParams, train};
//! use aquila::{Control, Csr, Features};
//!
//! # fn main() -> aquila::Result<()> {
//! // Four rows of three features; the rows of labels 0 and 1 differ in their first two features.
//! let x = Csr::new(4, 3, vec![0, 2, 4, 6, 8], vec![0, 2, 1, 2, 0, 2, 1, 2], vec![1.0, 0.3, 1.0, 0.3, 0.9, 0.2, 0.9, 0.2])?;
//! let y = Csr::new(4, 2, vec![0, 1, 2, 3, 4], vec![0, 1, 0, 1], vec![1.0; 4])?;
//! let x = Features::from(x);
//! let control = Control::with_threads(2);
//!
//! let (model, report) = train(&x, &y, &TrainParams::default(), TrainInputs::default(), &control)?;
//! println!("trained in {:.3} s", report.total);
//!
//! let best = model.predict(&x, &PredictParams { k: 1, ..PredictParams::default() }, &Scope::All, &control)?;
//! assert_eq!(best.labels, [0, 1, 0, 1]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Model::save`](xlinear::Model::save) writes a model to one file, [`Model::open`](xlinear::Model::open) maps it into
//! memory, and [`Model::search`](xlinear::Model::search) answers single queries without allocating.
//!
//! # Labels of groups
//!
//! Where labels are known only for groups of rows (a page has tags, its paragraphs have none), [`eagle::learn`] finds out
//! which rows have them and trains a model:
//!
//! ```
//! use aquila::eagle::{GroupMethod, GroupParams, Groups, LearnParams, learn};
//! use aquila::xlinear::{PredictParams, Scope, TrainInputs, TrainParams};
//! use aquila::{Control, Csr, Features};
//!
//! # fn main() -> aquila::Result<()> {
//! let x = Csr::new(6, 3, vec![0, 1, 2, 3, 4, 5, 6], vec![0, 1, 0, 2, 1, 2], vec![1.0; 6])?;
//! // Three groups of two rows, and the labels of each group.
//! let groups = Groups::from_lists(6, [vec![0, 1], vec![2, 3], vec![4, 5]])?;
//! let bags = Csr::new(3, 3, vec![0, 2, 4, 6], vec![0, 1, 0, 2, 1, 2], vec![1.0; 6])?;
//!
//! let params = LearnParams {
//!     train: TrainParams::default(),
//!     group: GroupParams { method: GroupMethod::Eagle, ..GroupParams::default() },
//! };
//! let (x, control) = (Features::from(x), Control::default());
//! let (model, _) = learn(&x, &groups, &bags, &params, TrainInputs::default(), &control)?;
//! let best = model.predict(&x, &PredictParams { k: 1, ..PredictParams::default() }, &Scope::All, &control)?;
//! assert_eq!(best.labels, [0, 1, 0, 2, 1, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! # Overlapping leaves
//!
//! With `overlap.copies` above 1 a label may be placed under several leaves, with weights of its own in each (label
//! disentanglement):
//!
//! ```
//! use aquila::xlinear::{OverlapParams, TrainInputs, TrainParams, TreeParams, train};
//! use aquila::{Control, Csr, Features};
//!
//! # fn main() -> aquila::Result<()> {
//! # let (mut indices, mut labels) = (Vec::new(), Vec::new());
//! # for i in 0..64u32 {
//! #     indices.extend([i % 8, 8 + i % 3]);
//! #     labels.extend([i % 8]);
//! # }
//! # let x = Csr::new(64, 11, (0..=64).map(|i| 2 * i).collect(), indices, vec![1.0; 128])?;
//! # let y = Csr::new(64, 8, (0..=64).collect(), labels, vec![1.0; 64])?;
//! let params = TrainParams {
//!     tree: TreeParams { max_leaf: 2, ..TreeParams::default() },
//!     overlap: OverlapParams { copies: 2, ..OverlapParams::default() },
//!     ..TrainParams::default()
//! };
//! let (model, _) = train(&Features::from(x), &y, &params, TrainInputs::default(), &Control::default())?;
//! assert!(model.tree()?.slots() >= model.labels());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! From top to bottom, the path of the data through the engine; a module never uses one listed after it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`error`] | the one error type: code, message, cure, source |
//! | [`mod@params`] | how a parameter states its meaning, range and default once |
//! | [`rng`] | seeded random numbers, the same on every platform |
//! | [`memory`] | memory that the system may refuse |
//! | [`control`] | threads, cancellation, progress and the memory limit of a heavy call |
//! | [`data`] | matrices in memory; readers and writers of every file format |
//! | [`kernels`] | the only `unsafe` arithmetic, each kernel with a scalar twin |
//! | [`tree`] | label vectors (PIFA, PII), balanced and k-ary k-means, the label tree |
//! | [`overlap`] | label disentanglement: which further leaves a label is placed under |
//! | [`linear`] | blocked dual coordinate descent, losses, pruning |
//! | [`xlinear`] | training per layer, the feature-major layout, beam search, the model file |
//! | [`eagle`] | labels of groups: grouping rules, GRLR embeddings, assignment, refinement |
//! | [`metrics`] | precision, nDCG, recall, propensity-scored forms, F1s |
//!
//! Each module's page states its algorithm with formula, source and cost, and where it differs from the source and why.

pub mod control;
pub mod data;
pub mod eagle;
pub mod error;
pub mod kernels;
pub mod linear;
pub mod memory;
pub mod metrics;
pub mod overlap;
pub mod params;
pub mod rng;
pub mod tree;
pub mod xlinear;

pub use control::{Control, Progress};
pub use data::{Csr, Dense, FeatureRow, Features, Ranked, Row};
pub use error::{Error, ErrorCode, Result};

/// The engine's version, as written into model files.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
