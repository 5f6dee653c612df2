//! Labels that are known only for groups of samples: EAGLE (Shen et al., ICML 2020).
//!
//! A page has tags, its paragraphs have none. The data's way: samples stand in [`Groups`]; a group's labels are its
//! *bag* (groups × labels, [`Groups::aggregate`] makes bags where true labels are known); [`grlr`](self) learns one
//! embedding a label from the groups that carry it ([`embed`]); [`assign`] gives each label of a group to the sample that
//! is most like the label's embedding. [`refine`] goes further: rankers and what groups say together make the labels of
//! each group's samples probable or not. Any solver may learn from the result, and [`learn`] goes to a model at once.

mod advice;
mod assign;
mod candidates;
mod cooccurrence;
mod embed;
pub mod forecast;
mod grlr;
mod grlr_batch;
mod groups;
mod learn;
mod lesson;
mod likeness;
mod narrow;
mod posterior;
mod refine;
mod rules;
mod samples;
mod score_bounds;
mod score_reliability;
mod tasks;

pub use advice::{Advice, GroupStatistics, advise, statistics};
pub use assign::{AssignParams, Assigned, assign, union};
pub use embed::{dense, dense_allowed, embed};
pub use groups::{AggregateParams, Groups, Merge};
pub use learn::{GroupMethod, GroupParams, LearnParams, learn};
pub use likeness::likeness;
pub use refine::{RefineParams, Refined, refine};
pub use rules::ClusterParams;
