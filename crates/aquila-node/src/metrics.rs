//! Measures of ranked predictions.

use crate::error::{Result, error};
use crate::job::{self, Control};
use crate::matrix::{Matrix, Numbers};
use crate::params;
use aquila::ErrorCode::InvalidArgument;
use aquila::metrics::{self, MetricParams, Metrics, Propensity, PropensityParams};
use aquila::xlinear::Ranked;
use napi::bindgen_prelude::Object;
use napi::{Env, Unknown};
use napi_derive::napi;

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

/// Measures predictions, given as ranked arrays or as a score matrix, against the truth. Resolves to the report as
/// a JSON text.
#[napi(catch_unwind, ts_return_type = "Promise<string>")]
pub fn evaluate<'env>(
    env: &'env Env,
    predictions: Option<Predictions<'_>>,
    scores: Option<&Matrix>,
    y: &Matrix,
    options: MetricOptions<'_>,
    train_y: Option<&Matrix>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let ranked = predictions.as_ref().map(read_ranked).transpose()?;
    let (scores, train_y) =
        (scores.map(Matrix::features).transpose()?, train_y.map(Matrix::features).transpose()?);
    if ranked.is_none() && scores.is_none() {
        return Err(error(InvalidArgument, "Expected predictions"));
    }
    let y = y.features()?;
    let mut metrics = Metrics::at(options.k);
    metrics.params = params::read::<MetricParams>(&options.params)?;
    let constants = match &options.data_set {
        Some(name) => PropensityParams::for_dataset(name),
        None => params::read::<PropensityParams>(&options.propensity)?,
    };
    let work = move |_: &aquila::Control| {
        if let Some(train_y) = train_y {
            metrics.propensity = Some(Propensity::from_counts(train_y.sparse(), constants.a, constants.b)?);
        }
        let ranked = ranked.or_else(|| scores.map(|s| metrics::rank(s.sparse()))).unwrap_or_default();
        Ok(metrics::evaluate(&ranked, y.sparse(), &metrics)?.to_json().to_string())
    };
    job::run(env, "evaluate", control, work, |_, report| Ok(report))
}
