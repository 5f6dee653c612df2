//! The model behind a handle: opening, searching, saving.

use crate::error::{IntoJs, Result, closed, error};
use crate::job::{self, Control};
use crate::matrix::{Matrix, Numbers, account, to_u32};
use crate::params::{self, OptionValue};
use crate::tree::TreeHandle;
use crate::{query, registry};
use aquila::Ranked;
use aquila::params::Params;
use aquila::xlinear::{Model, PredictParams, Scope};
use aquila::{ErrorCode, Features};
use napi::bindgen_prelude::{Float32Array, Object, ObjectFinalize, Uint32Array};
use napi::{Env, Unknown};
use napi_derive::napi;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Where a model's handle and its searchers look for it, and the memory that their queries share: closing empties the place
/// for all of them.
#[derive(Default)]
pub struct Slot {
    pub(crate) model: RefCell<Option<Arc<Model>>>,
    pub(crate) scratch: RefCell<query::Scratch>,
}

impl Slot {
    fn new(model: Arc<Model>) -> Rc<Self> {
        Rc::new(Self { model: RefCell::new(Some(model)), ..Self::default() })
    }

    /// Lets go of the model and of the queries' memory.
    pub(crate) fn clear(&self, env: &Env) {
        self.scratch.borrow_mut().clear(env);
        if let Some(model) = self.model.replace(None) {
            let bytes = model.as_bytes().len();
            job::free(model, bytes);
        }
    }
}

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
    /// Number of labels under more than one leaf.
    pub several: u32,
    /// Number of labels with a slot under the root beside their leaves.
    pub at_root: u32,
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

/// A trained model.
#[napi(custom_finalize)]
pub struct ModelHandle {
    slot: Rc<Slot>,
    counted: i64,
}

impl ObjectFinalize for ModelHandle {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        // Searchers may still look for the model in its place.
        if Rc::strong_count(&self.slot) == 1 {
            self.close(env);
        } else {
            account(&env, -self.counted);
        }
        Ok(())
    }
}

impl ModelHandle {
    /// A handle of a model in memory: V8 is told of it.
    pub(crate) fn held(env: &Env, model: Arc<Model>) -> Self {
        let counted = model.as_bytes().len() as i64;
        account(env, counted);
        Self { slot: Slot::new(model), counted }
    }

    /// A handle of a mapped model: its pages are the system's to take back, so that they do not count.
    fn mapped(model: Arc<Model>) -> Self {
        Self { slot: Slot::new(model), counted: 0 }
    }

    pub(crate) fn model(&self) -> Result<Arc<Model>> {
        self.slot.model.borrow().clone().ok_or_else(|| closed("the model"))
    }

    pub(crate) fn slot(&self) -> Rc<Slot> {
        Rc::clone(&self.slot)
    }
}

/// Opens a model file. Mapped, its memory is shared with everyone in the process who has the same file open.
#[napi(catch_unwind, ts_return_type = "Promise<ModelHandle>")]
pub fn open_model<'env>(
    env: &'env Env,
    path: String,
    verify: bool,
    map: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let work = move |control: &aquila::Control| {
        control.run_detached(move |control| {
            let path = PathBuf::from(path);
            let model = if map { registry::open(&path)? } else { Arc::new(Model::read(&path, control)?) };
            if verify {
                model.verify(control)?;
            }
            Ok(model)
        })
    };
    job::run(env, "open", control, work, move |env, model| {
        Ok(if map { ModelHandle::mapped(model) } else { ModelHandle::held(&env, model) })
    })
}

/// The bytes of a model file, taken over piece by piece: all at once would hold the event loop.
#[napi]
pub struct ModelBytes {
    bytes: Vec<u8>,
}

#[napi]
impl ModelBytes {
    /// Room for so many bytes.
    #[napi(catch_unwind, constructor)]
    pub fn new(length: f64) -> Result<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize).map_err(|_| {
            error(ErrorCode::OutOfMemory, format!("there is no memory for a model of {length} bytes"))
        })?;
        Ok(Self { bytes })
    }

    /// Copies the next piece.
    #[napi(catch_unwind)]
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Makes a model of the bytes, which are gone then.
    #[napi(catch_unwind, ts_return_type = "Promise<ModelHandle>")]
    pub fn open<'env>(
        &mut self,
        env: &'env Env,
        verify: bool,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let bytes = std::mem::take(&mut self.bytes);
        let work = move |control: &aquila::Control| {
            let model = Model::from_bytes(bytes)?;
            if verify {
                model.verify(control)?;
            }
            Ok(Arc::new(model))
        };
        job::run(env, "open", control, work, |env, model| Ok(ModelHandle::held(&env, model)))
    }
}

pub(crate) fn csr(matrix: Option<&Matrix>) -> Result<Option<Arc<Features>>> {
    matrix.map(Matrix::features).transpose()
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
        self.slot.model.borrow().is_some()
    }

    /// What a user may know of it.
    #[napi(catch_unwind)]
    pub fn info(&self) -> Result<Info> {
        let info = self.model()?.info();
        let (names, values): (Vec<_>, Vec<_>) = info.params.values().into_iter().unzip();
        Ok(Info {
            features: info.features as u32,
            dense_features: info.dense as u32,
            labels: info.labels as u32,
            slots: info.slots as u32,
            several: info.several as u32,
            at_root: info.at_root as u32,
            layers: info.layers.iter().map(|c| *c as u32).collect(),
            weights: info.weights as f64,
            bytes: info.bytes as f64,
            mapped: info.mapped,
            version: info.version,
            seed: info.seed as f64,
            metadata: info.metadata,
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
        Ok(self.model()?.label_names())
    }

    /// The name of one feature, where the model has names.
    #[napi(catch_unwind)]
    pub fn feature_name(&self, feature: u32) -> Result<Option<String>> {
        Ok(self.model()?.feature_name(feature).map(str::to_owned))
    }

    /// The tree.
    #[napi(catch_unwind)]
    pub fn tree(&self, env: Env) -> Result<TreeHandle> {
        self.model()?.tree().js().map(|tree| TreeHandle::new(&env, tree))
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

    /// The function of single queries.
    #[napi(
        catch_unwind,
        ts_return_type = "(indices: Uint32Array, values: Float32Array, answer: Uint32Array, dense?: Float32Array, allowed?: Uint32Array) => number"
    )]
    pub fn lookup<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        self.model()?;
        query::open(env, self.slot(), None)
    }

    /// Prepares a set of allowed labels for a searcher.
    #[napi(catch_unwind)]
    pub fn narrow(
        &self,
        env: Env,
        #[napi(ts_arg_type = "Uint32Array")] allowed: Unknown<'_>,
    ) -> Result<query::Narrowing> {
        let labels: Vec<u32> = Numbers::read(&allowed, "allowed")?.to_whole("allowed")?;
        query::Narrowing::new(&env, &*self.model()?, &labels)
    }

    /// Number of labels.
    #[napi(catch_unwind, getter)]
    pub fn labels(&self) -> Result<u32> {
        Ok(self.model()?.labels() as u32)
    }

    /// Writes the model to a file, whole or not at all.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn save<'env>(&self, env: &'env Env, path: String, control: &mut Control) -> Result<Object<'env>> {
        let model = self.model()?;
        let work = move |control: &aquila::Control| model.save(&PathBuf::from(path), control);
        job::run(env, "save", control, work, |_, ()| Ok(()))
    }

    /// Compares every byte with the file's checksums.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn verify<'env>(&self, env: &'env Env, control: &mut Control) -> Result<Object<'env>> {
        let model = self.model()?;
        let work =
            move |control: &aquila::Control| control.run_detached(move |control| model.verify(control));
        job::run(env, "verify", control, work, |_, ()| Ok(()))
    }

    /// Lets go of the model, for its searchers too; running jobs keep theirs until they end.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        account(&env, -std::mem::take(&mut self.counted));
        self.slot.clear(&env);
    }
}
