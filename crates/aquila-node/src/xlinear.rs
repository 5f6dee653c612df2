//! Training, and the model behind a handle.

use crate::error::{IntoJs, Result, closed};
use crate::job::{self, Control};
use crate::matrix::{Matrix, Numbers, account, to_u32};
use crate::params::{self, OptionValue};
use crate::tree::TreeHandle;
use crate::{query, registry};
use aquila::Features;
use aquila::eagle::{Groups, LearnParams, learn};
use aquila::params::Params;
use aquila::xlinear::{
    self as engine, Model, PredictParams, Ranked, Scope, TrainInputs, TrainParams, TrainReport,
};
use napi::bindgen_prelude::{Float32Array, JsObjectValue, Object, ObjectFinalize, Uint32Array};
use napi::{Env, Unknown};
use napi_derive::napi;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Where a model's handle and its searchers look for it: closing empties the place for all of them.
pub type Slot = RefCell<Option<Arc<Model>>>;

/// What a user may know of a model.
#[napi(object, object_from_js = false)]
pub struct Info {
    /// Number of feature columns.
    pub features: u32,
    /// How many of them, the last ones, are those of a dense block.
    pub dense_features: u32,
    /// Number of labels.
    pub labels: u32,
    /// Number of slots.
    pub slots: u32,
    /// Number of labels with more than one slot.
    pub several: u32,
    /// Columns of each layer, root layer first.
    pub layers: Vec<u32>,
    /// Number of stored weights.
    pub weights: f64,
    /// Bytes of the model file.
    pub bytes: f64,
    /// Whether the bytes are mapped from a file.
    pub mapped: bool,
    /// The file format's version.
    pub version: u32,
    /// The seed of its training.
    pub seed: f64,
    /// The user's JSON text.
    pub metadata: String,
    /// Names of the training parameters.
    pub names: Vec<&'static str>,
    /// Values of the training parameters, in the order of `names`.
    #[napi(ts_type = "Array<boolean | number | string>")]
    pub values: Vec<OptionValue>,
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

/// Predictions of many rows.
#[napi(object, object_from_js = false)]
pub struct RankedArrays {
    /// Row pointers.
    pub indptr: Uint32Array,
    /// Label ids, best first.
    pub labels: Uint32Array,
    /// Scores.
    pub scores: Float32Array,
}

/// What training may be given beside rows and labels.
#[napi(object, object_to_js = false)]
pub struct Inputs {
    /// Names of the labels, one each.
    pub label_names: Option<Vec<String>>,
    /// Names of the features, one each.
    pub feature_names: Option<Vec<String>>,
    /// A JSON text to keep with the model.
    pub metadata: Option<String>,
}

impl Inputs {
    /// What is kept in the model as it is.
    fn kept(self) -> TrainInputs {
        TrainInputs {
            label_names: self.label_names.unwrap_or_default(),
            feature_names: self.feature_names.unwrap_or_default(),
            metadata: self.metadata.unwrap_or_default(),
            ..TrainInputs::default()
        }
    }
}

/// A trained model.
#[napi(custom_finalize)]
pub struct ModelHandle {
    slot: Rc<Slot>,
    counted: i64,
}

impl ObjectFinalize for ModelHandle {
    fn finalize(self, env: Env) -> napi::Result<()> {
        account(&env, -self.counted);
        Ok(())
    }
}

impl ModelHandle {
    /// A handle of a model in memory: V8 is told of it.
    fn held(env: &Env, model: Arc<Model>) -> Self {
        let counted = model.as_bytes().len() as i64;
        account(env, counted);
        Self { slot: Rc::new(RefCell::new(Some(model))), counted }
    }

    /// A handle of a mapped model: its pages are the system's to take back, so that they do not count.
    fn mapped(model: Arc<Model>) -> Self {
        Self { slot: Rc::new(RefCell::new(Some(model))), counted: 0 }
    }

    pub(crate) fn model(&self) -> Result<Arc<Model>> {
        self.slot.borrow().clone().ok_or_else(|| closed("the model"))
    }
}

/// Opens a model file; its memory is shared with everyone in the process who has the same file open.
#[napi(catch_unwind, ts_return_type = "Promise<ModelHandle>")]
pub fn open_model<'env>(
    env: &'env Env,
    path: String,
    verify: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let work = move |_: &aquila::Control| {
        let model = registry::open(&PathBuf::from(path))?;
        if verify {
            model.verify()?;
        }
        Ok(model)
    };
    job::run(env, "open", control, work, |_, model| Ok(ModelHandle::mapped(model)))
}

/// Takes the bytes of a model file.
#[napi(catch_unwind, ts_return_type = "Promise<ModelHandle>")]
pub fn model_from_bytes<'env>(
    env: &'env Env,
    bytes: &[u8],
    verify: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let bytes = bytes.to_vec();
    let work = move |_: &aquila::Control| {
        let model = Model::from_bytes(bytes)?;
        if verify {
            model.verify()?;
        }
        Ok(Arc::new(model))
    };
    job::run(env, "open", control, work, |env, model| Ok(ModelHandle::held(&env, model)))
}

fn csr(matrix: Option<&Matrix>) -> Result<Option<Arc<Features>>> {
    matrix.map(Matrix::features).transpose()
}

fn owned(matrix: Option<Arc<Features>>) -> Option<aquila::Csr> {
    matrix.map(|m| m.sparse().clone())
}

/// Learns a model. Resolves to `{ model, report }`.
#[napi(catch_unwind, ts_return_type = "Promise<{ model: ModelHandle, report: Report }>")]
#[allow(clippy::too_many_arguments)] // Matrices cannot stand inside an options object of Node-API.
pub fn train<'env>(
    env: &'env Env,
    x: &Matrix,
    y: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    inputs: Inputs,
    tree: Option<&TreeHandle>,
    label_vectors: Option<&Matrix>,
    relevance: Option<&Matrix>,
    negatives: Option<&Matrix>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, y) = (x.features()?, y.features()?);
    let params: TrainParams = params::read(&options)?;
    let tree = tree.map(|t| t.tree().clone());
    let (label_vectors, relevance, negatives) = (csr(label_vectors)?, csr(relevance)?, csr(negatives)?);
    let work = move |control: &aquila::Control| {
        let inputs = TrainInputs {
            tree,
            label_vectors: owned(label_vectors),
            relevance: owned(relevance),
            negatives: owned(negatives),
            ..inputs.kept()
        };
        engine::train(&x, y.sparse(), &params, inputs, control)
    };
    job::run(env, "train", control, work, |env, (model, report)| Ok(trained(&env, model, report)))
}

/// Learns a model from samples whose labels are known for groups only.
#[napi(catch_unwind, ts_return_type = "Promise<{ model: ModelHandle, report: Report }>")]
#[allow(clippy::too_many_arguments)] // As above.
pub fn train_groups<'env>(
    env: &'env Env,
    x: &Matrix,
    groups: &Matrix,
    bags: &Matrix,
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
    inputs: Inputs,
    tree: Option<&TreeHandle>,
    label_vectors: Option<&Matrix>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, groups, bags) = (x.features()?, groups.features()?, bags.features()?);
    let params: LearnParams = params::read(&options)?;
    let tree = tree.map(|t| t.tree().clone());
    let label_vectors = csr(label_vectors)?;
    let work = move |control: &aquila::Control| {
        let groups = Groups::from_memberships(groups.sparse())?;
        let inputs = TrainInputs { tree, label_vectors: owned(label_vectors), ..inputs.kept() };
        learn(&x, &groups, bags.sparse(), &params, inputs, control)
    };
    job::run(env, "train", control, work, |env, (model, report)| Ok(trained(&env, model, report)))
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
    let params: TrainParams = params::read(&options)?;
    let mut all = Object::new(env).js()?;
    for (name, value) in params.values() {
        all.set_named_property(name, params::show(value)).js()?;
    }
    Ok(all)
}

fn ranked((indptr, ranked): (Vec<u32>, Ranked)) -> RankedArrays {
    RankedArrays {
        indptr: Uint32Array::new(indptr),
        labels: Uint32Array::new(ranked.labels),
        scores: Float32Array::new(ranked.scores),
    }
}

fn scope(model: &Model, allowed: Option<Vec<u32>>, chosen: Option<Arc<Features>>) -> aquila::Result<Scope> {
    match (allowed, chosen) {
        (Some(labels), _) => Ok(Scope::Allowed(model.allow(&labels)?)),
        (None, Some(chosen)) => Ok(Scope::Chosen(chosen.sparse().clone())),
        (None, None) => Ok(Scope::All),
    }
}

pub(crate) fn read_labels(labels: Option<Unknown<'_>>, name: &str) -> Result<Option<Vec<u32>>> {
    labels.map(|l| Numbers::read(&l, name)?.to_whole(name)).transpose()
}

#[napi]
impl ModelHandle {
    /// Whether it is not closed.
    #[napi(catch_unwind, getter)]
    pub fn is_open(&self) -> bool {
        self.slot.borrow().is_some()
    }

    /// What a user may know of it.
    #[napi(catch_unwind)]
    pub fn info(&self) -> Result<Info> {
        let info = self.model()?.info();
        let (names, values): (Vec<_>, Vec<_>) = info.parts.params.values().into_iter().unzip();
        Ok(Info {
            features: info.features as u32,
            dense_features: info.dense as u32,
            labels: info.labels as u32,
            slots: info.slots as u32,
            several: info.several as u32,
            layers: info.layers.iter().map(|c| *c as u32).collect(),
            weights: info.weights as f64,
            bytes: info.bytes as f64,
            mapped: info.mapped,
            version: info.version,
            seed: info.parts.seed as f64,
            metadata: info.parts.metadata,
            names,
            values: values.into_iter().map(params::show).collect(),
        })
    }

    /// The name of one label, where the model has names.
    #[napi(catch_unwind)]
    pub fn label_name(&self, label: u32) -> Result<Option<String>> {
        Ok(self.model()?.label_name(label).map(str::to_owned))
    }

    /// The labels' names, one each or none at all.
    #[napi(catch_unwind)]
    pub fn label_names(&self) -> Result<Vec<String>> {
        Ok(self.model()?.info().parts.label_names)
    }

    /// The name of one feature, where the model has names.
    #[napi(catch_unwind)]
    pub fn feature_name(&self, feature: u32) -> Result<Option<String>> {
        Ok(self.model()?.feature_name(feature).map(str::to_owned))
    }

    /// The tree.
    #[napi(catch_unwind)]
    pub fn tree(&self) -> Result<TreeHandle> {
        self.model()?.tree().js().map(TreeHandle::new)
    }

    /// Ranks labels of every row: of all labels, of the `allowed` ones, or of those `chosen` for each row.
    #[napi(catch_unwind, ts_return_type = "Promise<RankedArrays>")]
    pub fn predict<'env>(
        &self,
        env: &'env Env,
        x: &Matrix,
        #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
        #[napi(ts_arg_type = "Uint32Array | undefined")] allowed: Option<Unknown<'_>>,
        chosen: Option<&Matrix>,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let (model, x) = (self.model()?, x.features()?);
        let params: PredictParams = params::read(&options)?;
        let (allowed, chosen) = (read_labels(allowed, "allowed")?, csr(chosen)?);
        let work = move |control: &aquila::Control| {
            let scope = scope(&model, allowed, chosen)?;
            let ranked = model.predict(&x, &params, &scope, control)?;
            Ok((to_u32(&ranked.indptr)?, ranked))
        };
        job::run(env, "predict", control, work, |_, result| Ok(ranked(result)))
    }

    /// A warm searcher for single queries: `{ search, labels, scores }`.
    #[napi(
        catch_unwind,
        ts_return_type = "{ search(indices: Uint32Array, values: Float32Array, dense?: Float32Array): number, labels: Uint32Array, scores: Float32Array }"
    )]
    pub fn searcher<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
        #[napi(ts_arg_type = "Uint32Array | undefined")] allowed: Option<Unknown<'_>>,
    ) -> Result<Object<'env>> {
        let model = self.model()?;
        let mut params: PredictParams = params::read(&options)?;
        // No answer is longer than the number of labels, and the result arrays need be no longer either.
        params.k = params.k.min(model.labels().max(1) as u32);
        let scope = scope(&model, read_labels(allowed, "allowed")?, None).js()?;
        query::open(env, Rc::clone(&self.slot), params, scope)
    }

    /// Writes the model to a file, whole or not at all.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn save<'env>(&self, env: &'env Env, path: String, control: &mut Control) -> Result<Object<'env>> {
        let model = self.model()?;
        let work = move |_: &aquila::Control| model.save(&PathBuf::from(path));
        job::run(env, "save", control, work, |_, ()| Ok(()))
    }

    /// Compares every byte with the file's checksums.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn verify<'env>(&self, env: &'env Env, control: &mut Control) -> Result<Object<'env>> {
        let model = self.model()?;
        job::run(env, "verify", control, move |_| model.verify(), |_, ()| Ok(()))
    }

    /// Lets go of the model, for its searchers too; running jobs keep theirs until they end.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        self.slot.replace(None);
        account(&env, -std::mem::take(&mut self.counted));
    }
}
