//! Training.

use crate::error::{IntoJs, Result, closed};
use crate::job::{self, Control};
use crate::matrix::Matrix;
use crate::params;
use crate::tree::TreeHandle;
use crate::xlinear::{ModelHandle, csr};
use aquila::Features;
use aquila::eagle::{Groups, LearnParams, learn};
use aquila::params::Params;
use aquila::tree::LabelTree;
use aquila::xlinear::{self as engine, Model, TrainInputs, TrainParams, TrainReport};
use napi::Env;
use napi::bindgen_prelude::{JsObjectValue, Object};
use napi_derive::napi;
use std::sync::Arc;

/// What a training is given.
struct Given {
    x: Arc<Features>,
    /// Labels of rows, or of groups.
    y: Arc<Features>,
    groups: Option<Arc<Features>>,
    label_vectors: Option<Arc<Features>>,
    relevance: Option<Arc<Features>>,
    negatives: Option<Arc<Features>>,
    tree: Option<Arc<LabelTree>>,
    /// The rest, without the three matrices and the tree.
    inputs: TrainInputs,
}

impl Given {
    /// What the engine is given beside rows and labels. Copies matrices and the tree: to be called on the job's thread.
    fn inputs(&mut self) -> TrainInputs {
        let owned = |matrix: Option<Arc<Features>>| matrix.map(|m| m.sparse().clone());
        TrainInputs {
            label_vectors: owned(self.label_vectors.take()),
            relevance: owned(self.relevance.take()),
            negatives: owned(self.negatives.take()),
            tree: self.tree.take().map(Arc::unwrap_or_clone),
            ..std::mem::take(&mut self.inputs)
        }
    }
}

/// What one training is given, gathered before it starts. Matrices and trees are taken hold of at once, so that JavaScript may
/// close them; names come piece by piece, for a million of them at once would hold the event loop.
#[napi]
pub struct Lesson {
    given: Option<Given>,
}

impl Lesson {
    fn given(&mut self) -> Result<&mut Given> {
        self.given.as_mut().ok_or_else(|| closed("the lesson"))
    }

    fn take(&mut self) -> Result<Given> {
        self.given.take().ok_or_else(|| closed("the lesson"))
    }
}

#[napi]
impl Lesson {
    /// Rows with labels of their own, or of groups.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        x: &Matrix,
        y: &Matrix,
        groups: Option<&Matrix>,
        tree: Option<&TreeHandle>,
        label_vectors: Option<&Matrix>,
        relevance: Option<&Matrix>,
        negatives: Option<&Matrix>,
    ) -> Result<Self> {
        let given = Given {
            x: x.features()?,
            y: y.features()?,
            groups: csr(groups)?,
            label_vectors: csr(label_vectors)?,
            relevance: csr(relevance)?,
            negatives: csr(negatives)?,
            tree: tree.map(TreeHandle::tree).transpose()?,
            inputs: TrainInputs::default(),
        };
        Ok(Self { given: Some(given) })
    }

    /// The next labels' names, one each.
    #[napi(catch_unwind)]
    pub fn push_label_names(&mut self, mut names: Vec<String>) -> Result<()> {
        self.given()?.inputs.label_names.append(&mut names);
        Ok(())
    }

    /// The next features' names, one each.
    #[napi(catch_unwind)]
    pub fn push_feature_names(&mut self, mut names: Vec<String>) -> Result<()> {
        self.given()?.inputs.feature_names.append(&mut names);
        Ok(())
    }

    /// A JSON text to keep with the model.
    #[napi(catch_unwind)]
    pub fn set_metadata(&mut self, text: String) -> Result<()> {
        self.given()?.inputs.metadata = text;
        Ok(())
    }

    /// Learns a model of the rows' own labels.
    #[napi(catch_unwind, ts_return_type = "Promise<{ model: ModelHandle, report: Report }>")]
    pub fn train<'env>(
        &mut self,
        env: &'env Env,
        #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let params: TrainParams = params::read(&options)?;
        let mut given = self.take()?;
        let work = move |control: &aquila::Control| {
            let inputs = given.inputs();
            engine::train(&given.x, given.y.sparse(), &params, inputs, control)
        };
        job::run(env, "train", control, work, |env, (model, report)| Ok(trained(&env, model, report)))
    }

    /// Learns a model of labels that are known for groups only.
    #[napi(catch_unwind, ts_return_type = "Promise<{ model: ModelHandle, report: Report }>")]
    pub fn train_groups<'env>(
        &mut self,
        env: &'env Env,
        #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let params: LearnParams = params::read(&options)?;
        let mut given = self.take()?;
        let groups = given.groups.take().ok_or_else(|| closed("the groups"))?;
        let work = move |control: &aquila::Control| {
            let groups = Groups::from_memberships_allowed(groups.sparse(), control)?;
            let inputs = given.inputs();
            learn(&given.x, &groups, given.y.sparse(), &params, inputs, control)
        };
        job::run(env, "train", control, work, |env, (model, report)| Ok(trained(&env, model, report)))
    }
}

/// What training took.
#[napi(object, object_from_js = false)]
pub struct Report {
    /// Seconds of the label vectors.
    pub label_vectors: f64,
    /// Seconds of the tree.
    pub tree: f64,
    /// Seconds of finding further leaves of labels.
    pub overlap: f64,
    /// Seconds of the layers' classifiers.
    pub layers: f64,
    /// Seconds of the layout.
    pub layout: f64,
    /// Seconds from matrices in memory to model in memory.
    pub total: f64,
    /// The forecast peak of memory.
    pub forecast_bytes: f64,
}

fn trained(env: &Env, model: Model, report: TrainReport) -> Trained {
    let report = Report {
        label_vectors: report.label_vectors,
        tree: report.tree,
        overlap: report.overlap,
        layers: report.layers,
        layout: report.layout,
        total: report.total,
        forecast_bytes: report.forecast_bytes as f64,
    };
    Trained { model: ModelHandle::held(env, Arc::new(model)), report }
}

/// A model and what its training took.
#[napi(object, object_from_js = false)]
pub struct Trained {
    /// The model.
    #[napi(ts_type = "ModelHandle")]
    pub model: ModelHandle,
    /// What its training took.
    pub report: Report,
}

/// The forecast peak of memory of such a training, in bytes.
#[napi(catch_unwind, ts_return_type = "Promise<number>")]
pub fn forecast<'env>(
    env: &'env Env,
    x: &Matrix,
    y: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, y) = (x.features()?, y.features()?);
    let params: TrainParams = params::read(&options)?;
    let work = move |control: &aquila::Control| {
        Ok(engine::forecast(&x, y.sparse(), &params, control.thread_count()))
    };
    job::run(env, "forecast", control, work, |_, bytes| Ok(bytes as f64))
}

/// Checks training options and returns all values, defaults included.
#[napi(catch_unwind, ts_return_type = "Record<string, boolean | number | string>")]
pub fn check_train_options<'env>(
    env: &'env Env,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
) -> Result<Object<'env>> {
    resolved::<TrainParams>(env, &options)
}

/// The same of options for training on groups.
#[napi(catch_unwind, ts_return_type = "Record<string, boolean | number | string>")]
pub fn check_learn_options<'env>(
    env: &'env Env,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
) -> Result<Object<'env>> {
    resolved::<LearnParams>(env, &options)
}

fn resolved<'env, P: Params>(env: &'env Env, options: &Object<'_>) -> Result<Object<'env>> {
    let params: P = params::read(options)?;
    let mut all = Object::new(env).js()?;
    for (name, value) in params.values() {
        all.set_named_property(name, params::show(value)).js()?;
    }
    Ok(all)
}
