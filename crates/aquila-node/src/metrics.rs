//! Measures of ranked predictions, batch after batch.

use crate::error::{IntoJs, Result, closed, error};
use crate::job::{self, Control};
use crate::matrix::{Matrix, Numbers, account};
use crate::params;
use aquila::ErrorCode::InvalidArgument;
use aquila::Features;
use aquila::Ranked;
use aquila::metrics::{self, MetricParams, Metrics, Propensity, PropensityParams};
use napi::bindgen_prelude::{Object, ObjectFinalize};
use napi::{Env, Unknown};
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Predictions as the facade holds them: of ranked arrays or, where there are none, of a score matrix.
#[napi(object, object_to_js = false)]
pub struct Predictions<'a> {
    /// Row pointers.
    #[napi(ts_type = "Uint32Array")]
    pub indptr: Unknown<'a>,
    /// Label ids, best first.
    #[napi(ts_type = "Uint32Array")]
    pub labels: Unknown<'a>,
    /// Scores.
    #[napi(ts_type = "Float32Array")]
    pub scores: Unknown<'a>,
}

fn read_ranked(from: &Predictions<'_>) -> Result<Ranked> {
    Ok(Ranked {
        indptr: Numbers::read(&from.indptr, "indptr")?.to_whole("indptr")?,
        labels: Numbers::read(&from.labels, "labels")?.to_whole("labels")?,
        scores: Numbers::read(&from.scores, "scores")?.to_f32("scores")?,
    })
}

/// How to measure.
#[napi(object, object_to_js = false)]
pub struct MetricOptions<'a> {
    /// The ranks to measure at.
    pub k: Vec<u32>,
    /// Values of the engine's metric parameters.
    #[napi(ts_type = "Record<string, boolean | number | string>")]
    pub params: Object<'a>,
    /// Values of the engine's propensity parameters.
    #[napi(ts_type = "Record<string, boolean | number | string>")]
    pub propensity: Object<'a>,
    /// Name of the data set whose published propensity constants are wanted.
    pub data_set: Option<String>,
}

/// What is measured and what was counted so far.
struct Measures {
    metrics: Metrics,
    /// The labels of the training rows and the constants, until propensities are made of them.
    train: Option<(Arc<Features>, PropensityParams)>,
    /// From the first batch on, which says how many labels there are.
    evaluator: Option<metrics::Evaluator>,
}

impl Measures {
    /// An evaluator that has counted nothing.
    fn blank(&mut self, labels: usize, control: &aquila::Control) -> aquila::Result<metrics::Evaluator> {
        let trained = self.train.as_ref().map_or(0, |(y, _)| y.cols());
        metrics::allowed(&self.metrics, labels.max(trained), self.train.is_some(), control)?;
        if let Some((y, constants)) = &self.train {
            self.metrics.propensity = Some(Propensity::from_counts(y.sparse(), constants.a, constants.b)?);
            self.train = None;
        }
        metrics::Evaluator::new(&self.metrics, labels)
    }

    fn add(&mut self, ranked: &Ranked, y: &Features, control: &aquila::Control) -> aquila::Result<()> {
        let y = y.sparse();
        if let Some(evaluator) = &mut self.evaluator {
            return evaluator.add_all(ranked, y, control);
        }
        let mut first = self.blank(y.cols(), control)?;
        first.add_all(ranked, y, control)?;
        self.evaluator = Some(first);
        Ok(())
    }

    fn report(&mut self, control: &aquila::Control) -> aquila::Result<metrics::Report> {
        if let Some(evaluator) = &self.evaluator {
            return Ok(evaluator.report());
        }
        let labels = self.train.as_ref().map_or(0, |(y, _)| y.cols());
        let labels = self.metrics.propensity.as_ref().map_or(labels, |p| p.weights().len());
        Ok(self.blank(labels, control)?.report())
    }
}

type Shared = Arc<Mutex<Measures>>;

/// A batch that failed leaves what was counted as it was, so that a panic's mark on the lock means nothing.
fn lock(shared: &Shared) -> MutexGuard<'_, Measures> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Predictions with their truth, taken hold of before their turn comes.
#[napi]
pub struct Batch {
    given: Option<(Guess, Arc<Features>)>,
}

enum Guess {
    Ranked(Ranked),
    Scores(Arc<Features>),
}

#[napi]
impl Batch {
    /// Copies ranked arrays, and holds matrices, which may be closed then.
    #[napi(catch_unwind, constructor)]
    pub fn new(predictions: Option<Predictions<'_>>, scores: Option<&Matrix>, y: &Matrix) -> Result<Self> {
        let guess = match (&predictions, scores) {
            (Some(ranked), _) => Guess::Ranked(read_ranked(ranked)?),
            (None, Some(scores)) => Guess::Scores(scores.features()?),
            (None, None) => return Err(error(InvalidArgument, "Expected predictions")),
        };
        Ok(Self { given: Some((guess, y.features()?)) })
    }
}

/// Measures of batches. The facade gives its calls one after another.
#[napi(custom_finalize)]
pub struct EvaluatorHandle {
    inner: Option<Shared>,
    counted: i64,
}

impl ObjectFinalize for EvaluatorHandle {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        self.close(env);
        Ok(())
    }
}

impl EvaluatorHandle {
    fn shared(&self) -> Result<Shared> {
        self.inner.clone().ok_or_else(|| closed("the evaluator"))
    }
}

#[napi]
impl EvaluatorHandle {
    /// An evaluator that has counted nothing. Propensities are made of `train_y` when the first job needs them.
    #[napi(catch_unwind, constructor)]
    pub fn new(options: MetricOptions<'_>, train_y: Option<&Matrix>) -> Result<Self> {
        let mut metrics = Metrics::at(options.k);
        metrics.params = params::read::<MetricParams>(&options.params)?;
        let constants = match &options.data_set {
            Some(name) => PropensityParams::for_dataset(name).js()?,
            None => params::read::<PropensityParams>(&options.propensity)?,
        };
        let train = train_y.map(Matrix::features).transpose()?.map(|y| (y, constants));
        let measures = Measures { metrics, train, evaluator: None };
        Ok(Self { inner: Some(Arc::new(Mutex::new(measures))), counted: 0 })
    }

    /// A second handle of the same evaluator, for a call whose turn comes after this one may be closed.
    #[napi(catch_unwind)]
    pub fn hold(&self) -> Result<Self> {
        Ok(Self { inner: Some(self.shared()?), counted: 0 })
    }

    /// Counts a batch, whole or not at all.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add<'env>(
        &self,
        env: &'env Env,
        batch: &mut Batch,
        control: &mut Control,
    ) -> Result<Object<'env>> {
        let shared = self.shared()?;
        let (guess, y) = batch.given.take().ok_or_else(|| closed("the batch"))?;
        let work = move |control: &aquila::Control| {
            let ranked = match guess {
                Guess::Ranked(ranked) => ranked,
                Guess::Scores(scores) => metrics::rank(scores.sparse()),
            };
            lock(&shared).add(&ranked, &y, control)
        };
        job::run(env, "evaluate", control, work, |_, ()| Ok(()))
    }

    /// The measures of all rows so far, as a JSON text.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn report<'env>(&self, env: &'env Env, control: &mut Control) -> Result<Object<'env>> {
        let shared = self.shared()?;
        let work = move |control: &aquila::Control| {
            control.check()?;
            Ok(lock(&shared).report(control)?.to_json().to_string())
        };
        job::run(env, "evaluate", control, work, |_, report| Ok(report))
    }

    /// Tells V8 of the counters. To be called when no job is under way, for it waits for those.
    #[napi(catch_unwind)]
    pub fn tell(&mut self, env: Env) {
        let Some(shared) = &self.inner else { return };
        let bytes = lock(shared).evaluator.as_ref().map_or(0, metrics::Evaluator::bytes) as i64;
        account(&env, bytes - self.counted);
        self.counted = bytes;
    }

    /// Whether it is not closed.
    #[napi(catch_unwind, getter)]
    pub fn is_open(&self) -> bool {
        self.inner.is_some()
    }

    /// Lets go of the memory; calls that are running keep theirs.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        let counted = std::mem::take(&mut self.counted);
        account(&env, -counted);
        job::free(self.inner.take(), counted as usize);
    }
}
