//! Groups of samples, what they are like, and their labels assigned and refined.

use crate::error::{IntoJs, Result};
use crate::job::{self, Control};
use crate::matrix::{DenseMatrix, Matrix};
use crate::params;
use aquila::eagle::{self, AggregateParams, AssignParams, ClusterParams, Groups, RefineParams};
use aquila::xlinear::TrainParams;
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;
use std::time::Instant;

/// Random groups of `size` samples, as a matrix samples × groups, if these bytes suffice.
#[napi(catch_unwind)]
pub fn random_groups(env: Env, samples: u32, size: u32, seed: f64, memory_limit: f64) -> Result<Matrix> {
    let mut control = aquila::Control::default();
    control.memory_limit = memory_limit as u64;
    let (samples, size) = (samples as usize, size as usize);
    Groups::random_allowed(samples, size, &control).js()?;
    let groups = Groups::random(samples, size, seed as u64).js()?;
    Ok(Matrix::new(&env, groups.memberships().into()))
}

/// Clusters of samples.
#[napi(catch_unwind, ts_return_type = "Promise<Matrix>")]
pub fn cluster_groups<'env>(
    env: &'env Env,
    x: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let x = x.features()?;
    let params: ClusterParams = params::read(&options)?;
    let work = move |control: &aquila::Control| Ok(Groups::kmeans(&x, &params, control)?.memberships());
    job::run(env, "group", control, work, |env, groups| Ok(Matrix::new(&env, groups.into())))
}

/// The bags of known labels, groups × labels.
#[napi(catch_unwind, ts_return_type = "Promise<Matrix>")]
pub fn aggregate_labels<'env>(
    env: &'env Env,
    groups: &Matrix,
    y: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let params: AggregateParams = params::read(&options)?;
    let (groups, y) = (groups.features()?, y.features()?);
    let work = move |control: &aquila::Control| {
        Groups::from_memberships_allowed(groups.sparse(), control)?.aggregate(
            y.sparse(),
            params.merge,
            control,
        )
    };
    job::run(env, "aggregate", control, work, |env, bags| Ok(Matrix::new(&env, bags.into())))
}

/// Labels of samples, and the labels' embeddings where they were asked for.
#[napi(object, object_from_js = false)]
pub struct Assigned {
    /// Samples × labels.
    #[napi(ts_type = "Matrix")]
    pub y: Matrix,
    /// Labels × features.
    #[napi(ts_type = "Matrix | undefined")]
    pub embeddings: Option<Matrix>,
    /// Seconds of the engine's work.
    pub seconds: f64,
}

/// Gives every label of every group to a sample.
#[napi(catch_unwind, ts_return_type = "Promise<Assigned>")]
pub fn assign_labels<'env>(
    env: &'env Env,
    x: &Matrix,
    groups: &Matrix,
    bags: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    embeddings: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, groups, bags) = (x.features()?, groups.features()?, bags.features()?);
    let params: AssignParams = params::read(&options)?;
    let work = move |control: &aquila::Control| {
        let groups = Groups::from_memberships_allowed(groups.sparse(), control)?;
        eagle::assign(&x, &groups, bags.sparse(), &params, embeddings, control)
    };
    job::run(env, "assign", control, work, |env, assigned| {
        Ok(Assigned {
            y: Matrix::new(&env, assigned.y.into()),
            embeddings: assigned.embeddings.map(|e| Matrix::new(&env, e.into())),
            seconds: assigned.seconds,
        })
    })
}

/// Embeddings of labels, sparse or dense.
#[napi(object, object_from_js = false)]
pub struct Embedded {
    /// Labels × features.
    #[napi(ts_type = "Matrix | undefined")]
    pub sparse: Option<Matrix>,
    /// The same with all zeros.
    #[napi(ts_type = "DenseMatrix | undefined")]
    pub dense: Option<DenseMatrix>,
    /// Seconds of the engine's work.
    pub seconds: f64,
}

/// Learns the embeddings of labels.
#[napi(catch_unwind, ts_return_type = "Promise<Embedded>")]
pub fn embed_labels<'env>(
    env: &'env Env,
    x: &Matrix,
    groups: &Matrix,
    bags: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    dense: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, groups, bags) = (x.features()?, groups.features()?, bags.features()?);
    let params: AssignParams = params::read(&options)?;
    let work = move |control: &aquila::Control| {
        let groups = Groups::from_memberships_allowed(groups.sparse(), control)?;
        let since = Instant::now();
        if dense {
            eagle::dense_allowed(bags.sparse().cols(), x.cols(), control)?;
        }
        let sparse = eagle::embed(&x, &groups, bags.sparse(), &params, control)?;
        let dense = dense.then(|| eagle::dense(&sparse, control)).transpose()?;
        Ok((sparse, dense, since.elapsed().as_secs_f64()))
    };
    job::run(env, "embed", control, work, |env, (sparse, dense, seconds)| {
        Ok(Embedded {
            sparse: dense.is_none().then(|| Matrix::new(&env, sparse.into())),
            dense: dense.map(|d| DenseMatrix::new(&env, d)),
            seconds,
        })
    })
}

/// Labels of samples with their confidence.
#[napi(object, object_from_js = false)]
pub struct Refined {
    /// Samples × labels.
    #[napi(ts_type = "Matrix")]
    pub y: Matrix,
    /// What each label weighs in a training.
    #[napi(ts_type = "Matrix")]
    pub relevance: Matrix,
    /// The costs with which to learn them.
    pub cp: f64,
    /// The same of negatives.
    pub cn: f64,
    /// How like the samples of one group are.
    pub likeness: f64,
    /// The least probability of a label that followed from it.
    pub threshold: f64,
    /// Seconds of the engine's work.
    pub seconds: f64,
}

/// Refines labels of groups to labels of samples.
#[napi(catch_unwind, ts_return_type = "Promise<Refined>")]
pub fn refine_labels<'env>(
    env: &'env Env,
    x: &Matrix,
    groups: &Matrix,
    bags: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, groups, bags) = (x.features()?, groups.features()?, bags.features()?);
    let params: RefineParams = params::read(&options)?;
    let work = move |control: &aquila::Control| {
        let groups = Groups::from_memberships_allowed(groups.sparse(), control)?;
        let usual = TrainParams::default();
        let refined = eagle::refine(&x, &groups, bags.sparse(), &params, &usual, control)?;
        let lesson = refined.lesson(&usual).solver;
        Ok((refined, lesson))
    };
    job::run(env, "refine", control, work, |env, (refined, lesson)| {
        Ok(Refined {
            y: Matrix::new(&env, refined.y.into()),
            relevance: Matrix::new(&env, refined.relevance.into()),
            cp: f64::from(lesson.cp),
            cn: f64::from(lesson.cn),
            likeness: refined.likeness,
            threshold: f64::from(refined.threshold),
            seconds: refined.seconds,
        })
    })
}

/// Which method suits groups, and why.
#[napi(object, object_from_js = false)]
pub struct Advice {
    /// The method for training: union, eagle or refine.
    pub method: String,
    /// The reasons.
    pub reasons: Vec<String>,
    /// What they rest on.
    pub statistics: Statistics,
}

/// What groups and their labels are like.
#[napi(object, object_from_js = false)]
pub struct Statistics {
    /// Groups that have samples.
    pub groups: u32,
    /// Samples that stand in a group.
    pub samples: u32,
    /// Samples of a group, on average.
    pub size: f64,
    /// The largest group.
    pub largest: u32,
    /// Labels of a group, on average.
    pub labels_of_group: f64,
    /// Labels that some group carries.
    pub labels: u32,
    /// Labels that one group alone carries.
    pub lone_labels: u32,
    /// Labels that more than 95 % of the groups carry.
    pub common_labels: u32,
    /// How much more alike samples of one group are than any.
    pub likeness: f64,
}

/// Looks at groups and says what to do with them.
#[napi(catch_unwind, ts_return_type = "Promise<Advice>")]
pub fn advise_groups<'env>(
    env: &'env Env,
    x: &Matrix,
    groups: &Matrix,
    bags: &Matrix,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, groups, bags) = (x.features()?, groups.features()?, bags.features()?);
    let work = move |control: &aquila::Control| {
        eagle::advise(
            &x,
            &Groups::from_memberships_allowed(groups.sparse(), control)?,
            bags.sparse(),
            control,
        )
    };
    job::run(env, "advise", control, work, |_, advice| {
        let s = advice.statistics;
        Ok(Advice {
            method: advice.method.as_str().to_owned(),
            reasons: advice.reasons,
            statistics: Statistics {
                groups: s.groups as u32,
                samples: s.samples as u32,
                size: s.size,
                largest: s.largest as u32,
                labels_of_group: s.labels_of_group,
                labels: s.labels as u32,
                lone_labels: s.lone_labels as u32,
                common_labels: s.common_labels as u32,
                likeness: s.likeness,
            },
        })
    })
}

/// Gives every sample all labels of its groups.
#[napi(catch_unwind, ts_return_type = "Promise<Matrix>")]
pub fn union_labels<'env>(
    env: &'env Env,
    groups: &Matrix,
    bags: &Matrix,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (groups, bags) = (groups.features()?, bags.features()?);
    let work = move |control: &aquila::Control| {
        eagle::union(&Groups::from_memberships_allowed(groups.sparse(), control)?, bags.sparse(), control)
    };
    job::run(env, "union", control, work, |env, y| Ok(Matrix::new(&env, y.into())))
}
