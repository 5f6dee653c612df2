//! Groups straight to a model: labels are given to samples, and a model learns from them.

use super::assign::{AssignParams, assign};
use super::forecast;
use super::groups::{Groups, union_of};
use super::likeness::likeness_for;
use super::narrow::Narrow;
use super::refine::{DEFAULT_FOLDS, DEFAULT_ROUNDS, DEFAULT_THRESHOLD, RefineParams, refine_alike};
use crate::control::Control;
use crate::data::{Csr, Features};
use crate::error::{Result, fail};
use crate::params::{Kind, ParamSpec, Params, Value};
use crate::xlinear::{Model, TrainInputs, TrainParams, TrainReport, train};
use std::time::Instant;

/// What memory is asked for.
pub(super) const LEARNING: &str = "learning from groups";

crate::choice! {
    /// How samples get labels from their groups.
    pub enum GroupMethod {
        /// Each sample all labels of its groups: the baseline.
        Union = "union",
        /// Each label of a group one sample, that most like the label's embedding.
        Eagle = "eagle",
        /// By a posterior over all of them, refined by rankers.
        Refine = "refine",
    }
}

crate::params! {
    /// How a model learns from groups.
    pub struct GroupParams {
        /// union (every sample gets all labels of its groups), eagle (each label of a group goes to one sample) or
        /// refine (a posterior, refined by rankers).
        pub method: GroupMethod = GroupMethod::Refine, "group.method", Kind::Choice(GroupMethod::TEXTS);
        /// refine: rounds of rankers, if the first score is good enough to teach; 0 is the fast form, whose folds are always two.
        pub rounds: u32 = DEFAULT_ROUNDS, "group.rounds", Kind::Integer { min: 0.0, max: 100.0 };
        /// refine: parts of the groups, each scored by rankers that learned from the others.
        pub folds: u32 = DEFAULT_FOLDS, "group.folds", Kind::Integer { min: 2.0, max: 100.0 };
        /// refine: least probability of a label, for random groups; less for groups of like samples.
        pub threshold: f32 = DEFAULT_THRESHOLD, "group.threshold", Kind::Number { min: 0.0, max: 1.0 };
    }
}

impl GroupParams {
    /// How labels are refined on the way.
    pub(super) fn refinement(&self) -> RefineParams {
        RefineParams { rounds: self.rounds, folds: self.folds, threshold: self.threshold }
    }
}

/// All parameters of learning from groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LearnParams {
    /// How samples get labels.
    pub group: GroupParams,
    /// How the model learns them.
    pub train: TrainParams,
}

impl Params for LearnParams {
    fn specs() -> Vec<ParamSpec> {
        [GroupParams::specs(), TrainParams::specs()].concat()
    }

    fn try_set(&mut self, name: &str, value: &Value) -> Result<bool> {
        Ok(self.group.try_set(name, value)? || self.train.try_set(name, value)?)
    }

    fn values(&self) -> Vec<(&'static str, Value)> {
        [self.group.values(), self.train.values()].concat()
    }
}

/// Refuses what teaches nothing: rows without features, groups of which none has a sample and labels.
fn check_lessons(x: &Features, groups: &Groups, bags: &Csr) -> Result<()> {
    if x.cols() == 0 {
        fail!(InvalidArgument, "x has no features to tell {} samples apart by: give some", x.rows());
    }
    if !(0..groups.len()).any(|j| !groups.members(j).is_empty() && !bags.row(j).indices.is_empty()) {
        fail!(InvalidArgument, "no sample stands in a group with labels: check groups and bags");
    }
    Ok(())
}

/// Learns a model from samples whose labels are known for groups only. Samples of no group teach nothing: nobody
/// knows their labels.
///
/// `inputs` may have whatever [`train`] takes but relevances and negatives. The report's total includes the labelling.
pub fn learn(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &LearnParams,
    inputs: TrainInputs,
    control: &Control,
) -> Result<(Model, TrainReport)> {
    let since = Instant::now();
    params.check()?;
    let (all, LearnParams { group: how, train: params }) = (params, params);
    if inputs.relevance.is_some() || inputs.negatives.is_some() {
        fail!(
            InvalidArgument,
            "relevance and negatives of samples cannot be given where labels are of groups"
        );
    }
    groups.check_rows(x.rows())?;
    groups.check_bags(bags)?;
    check_lessons(x, groups, bags)?;
    let likeness =
        if how.method == GroupMethod::Refine { likeness_for(LEARNING, x, groups, control)? } else { 0.0 };
    let narrow = Narrow::new(x, bags);
    let given = (&narrow, groups, bags.cols());
    let forecast_bytes = forecast::check_learning(given, x.cols(), likeness, all, control)?;
    let control = &control.subrun();
    let (model, mut report) = control.install(|| -> Result<_> {
        let bags = &*narrow.bags;
        let (y, params) = match how.method {
            GroupMethod::Union => (union_of(groups, bags, control)?, params.clone()),
            GroupMethod::Eagle => {
                let assigned = assign(&narrow.x, groups, bags, &AssignParams::default(), false, control)?;
                (assigned.y, params.clone())
            }
            GroupMethod::Refine => {
                let (y, lesson) =
                    refine_alike(&narrow.x, groups, bags, likeness, &how.refinement(), params, control)?;
                let y = lesson.weighed(&y);
                let params = lesson.ranker(params, &y);
                (y, params)
            }
        };
        let y = narrow.labels(y);
        let grouped = groups.grouped();
        if grouped.iter().all(|g| *g) {
            train(x, &y, &params, inputs, control)
        } else {
            let rows: Vec<u32> = (0..x.rows() as u32).filter(|i| grouped[*i as usize]).collect();
            train(&x.select(&rows), &y.select(&rows), &params, inputs, control)
        }
    })??;
    report.forecast_bytes = forecast_bytes;
    report.total = since.elapsed().as_secs_f64();
    Ok((model, report))
}
