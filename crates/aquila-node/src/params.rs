//! Options from JavaScript into the engine's parameters, and the engine's tables out to the facade.

use crate::error::{IntoJs, Result};
use aquila::eagle::{AggregateParams, AssignParams, ClusterParams, GroupParams, RefineParams};
use aquila::metrics::{MetricParams, PropensityParams};
use aquila::params::{Kind, ParamSpec, Params, Value};
use aquila::xlinear::{PredictParams, TrainParams};
use napi::bindgen_prelude::{Either3, Object};
use napi_derive::napi;

/// The value of an option or a default.
pub type OptionValue = Either3<bool, f64, String>;

/// One parameter of the engine: the facade's option types, the command line's help and the first checks come
/// from this table.
#[napi(object, object_from_js = false)]
pub struct ParameterSpec {
    /// Its full name: `"tree.maxLeaf"`.
    pub name: &'static str,
    /// Meaning, unit, when to change it, cost.
    pub doc: String,
    /// `"integer"`, `"number"`, `"boolean"` or `"choice"`.
    pub kind: &'static str,
    /// What it takes, in words.
    pub takes: String,
    /// Smallest number.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// The texts of a choice.
    pub choices: Option<Vec<&'static str>>,
    /// The default.
    #[napi(ts_type = "boolean | number | string")]
    pub default: OptionValue,
}

/// The parameters of each kind of call.
#[napi(object, object_from_js = false)]
pub struct ParameterSpecs {
    /// Of training.
    pub train: Vec<ParameterSpec>,
    /// Of prediction.
    pub predict: Vec<ParameterSpec>,
    /// Of evaluation.
    pub metrics: Vec<ParameterSpec>,
    /// Of clustering samples.
    pub cluster: Vec<ParameterSpec>,
    /// Of making bags.
    pub aggregate: Vec<ParameterSpec>,
    /// Of assigning labels.
    pub assign: Vec<ParameterSpec>,
    /// Of refining labels.
    pub refine: Vec<ParameterSpec>,
    /// Of learning from groups, beside those of training.
    pub groups: Vec<ParameterSpec>,
}

fn spec(spec: ParamSpec) -> ParameterSpec {
    let (kind, min, max, choices) = match spec.kind {
        Kind::Integer { min, max } => ("integer", Some(min), Some(max), None),
        Kind::Number { min, max } => ("number", Some(min), Some(max), None),
        Kind::Bool => ("boolean", None, None, None),
        Kind::Choice(all) => ("choice", None, None, Some(all.to_vec())),
    };
    let takes = spec.kind.to_string();
    ParameterSpec {
        name: spec.name,
        doc: spec.doc,
        kind,
        takes,
        min,
        max,
        choices,
        default: show(spec.default),
    }
}

/// An engine's value for JavaScript.
pub fn show(value: Value) -> OptionValue {
    match value {
        Value::Bool(v) => Either3::A(v),
        Value::Number(v) => Either3::B(v),
        Value::Text(v) => Either3::C(v),
    }
}

/// The tables of all parameters.
#[napi(catch_unwind)]
pub fn parameter_specs() -> ParameterSpecs {
    let table = |specs: Vec<ParamSpec>| specs.into_iter().map(spec).collect();
    ParameterSpecs {
        train: table(TrainParams::specs()),
        predict: table(PredictParams::specs()),
        metrics: table([MetricParams::specs(), PropensityParams::specs()].concat()),
        cluster: table(ClusterParams::specs()),
        aggregate: table(AggregateParams::specs()),
        assign: table(AssignParams::specs()),
        refine: table(RefineParams::specs()),
        groups: table(GroupParams::specs()),
    }
}

/// Checked parameters from a flat object of full names: the engine refuses unknown names and values.
pub fn read<P: Params>(options: &Object<'_>) -> Result<P> {
    let mut params = P::default();
    for name in Object::keys(options).js()? {
        let value = match options.get::<OptionValue>(&name).js()? {
            Some(Either3::A(v)) => Value::Bool(v),
            Some(Either3::B(v)) => Value::Number(v),
            Some(Either3::C(v)) => Value::Text(v),
            None => continue,
        };
        params.set(&name, &value).js()?;
    }
    Ok(params)
}
