//! Every parameter of training and prediction: bounds, kinds, names, round trips.

use crate::common::refused;
use aquila::ErrorCode;
use aquila::params::{Kind, ParamSpec, Params, Value};
use aquila::xlinear::{PredictParams, TrainParams};
use std::collections::BTreeSet;

/// Values that a parameter must take, and values that it must not.
fn good_and_bad(spec: &ParamSpec) -> (Vec<Value>, Vec<Value>) {
    let number = |v: f64| [Value::Number(v), Value::Text(v.to_string())];
    let (nan, inf) = (number(f64::NAN), number(f64::INFINITY));
    let mut bad: Vec<Value> = [nan, inf, number(f64::NEG_INFINITY)].concat();
    bad.extend(["", "1 2", "0x10", "seven", "True", "null"].map(|t| Value::Text(t.to_owned())));
    let good = match spec.kind {
        Kind::Integer { min, max } => {
            bad.extend([number(min - 1.0), number(max + 1.0), number(min + 0.5), number(1e300)].concat());
            bad.push(Value::Bool(true));
            [number(min), number(max), number(min + 1.0)].concat()
        }
        Kind::Number { min, max } => {
            let below = if min == 0.0 { -1e-9 } else { min - min.abs() * 1e-6 };
            bad.extend([number(below), number(max + max.abs() * 1e-6)].concat());
            bad.push(Value::Bool(false));
            [number(min), number(max), number(0.5 * (min.max(-1.0) + max.min(1.0)))].concat()
        }
        Kind::Bool => {
            bad.extend(number(1.0));
            ["true", "false"]
                .map(|t| Value::Text(t.into()))
                .into_iter()
                .chain([true, false].map(Value::Bool))
                .collect()
        }
        Kind::Choice(all) => {
            bad.extend(number(0.0));
            bad.extend([
                Value::Bool(true),
                Value::Text(all[0].to_uppercase()),
                Value::Text(format!("{} ", all[0])),
            ]);
            all.iter().map(|t| Value::Text((*t).to_owned())).collect()
        }
    };
    (good, bad)
}

fn keeps_its_promises<P: Params + PartialEq + std::fmt::Debug + Clone>() {
    let specs = P::specs();
    let names: BTreeSet<_> = specs.iter().map(|s| s.name).collect();
    assert_eq!(names.len(), specs.len(), "two parameters of one name");
    for (spec, (name, value)) in specs.iter().zip(P::default().values()) {
        assert_eq!((spec.name, &spec.default), (name, &value));
        assert!(spec.doc.len() > 10 && spec.doc.ends_with('.'), "{}: \"{}\"", spec.name, spec.doc);
        let (good, bad) = good_and_bad(spec);
        for value in good {
            let mut p = P::default();
            p.set(spec.name, &value).unwrap_or_else(|e| panic!("{value}: {e}"));
            // What was set is what is shown, and what is shown can be set again.
            let shown = p.values().into_iter().find(|v| v.0 == spec.name).unwrap().1;
            let number = |v: &Value| match v {
                Value::Number(v) => Some(*v as f32),
                Value::Text(t) => t.parse().ok(),
                Value::Bool(_) => None,
            };
            match (number(&shown), number(&value)) {
                (Some(a), Some(b)) => assert_eq!(a, b, "{}", spec.name),
                _ => assert_eq!(shown.to_string().trim_matches('"'), value.to_string().trim_matches('"')),
            }
            let values = p.values();
            let again = P::from_pairs(values.iter().map(|(n, v)| (*n, v)));
            assert_eq!(again.as_ref(), Ok(&p), "{} = {value}", spec.name);
        }
        for value in bad {
            let mut p = P::default();
            refused(
                p.set(spec.name, &value),
                ErrorCode::InvalidArgument,
                &[spec.name, &value.to_string(), "Expected"],
            );
            assert_eq!(p, P::default(), "{}: a refused value left a trace", spec.name);
        }
        // One letter off.
        let near = format!("{}x", spec.name);
        if !names.contains(near.as_str()) {
            let mut p = P::default();
            refused(p.set(&near, &Value::Number(1.0)), ErrorCode::UnknownOption, &[&near, "did you mean"]);
        }
    }
    let mut p = P::default();
    let far = p.set("entirely.unlike.anything", &Value::Bool(true));
    refused(far, ErrorCode::UnknownOption, &["entirely.unlike.anything", "known are", specs[0].name]);
}

#[test]
fn training_parameters() {
    keeps_its_promises::<TrainParams>();
}

#[test]
fn prediction_parameters() {
    keeps_its_promises::<PredictParams>();
}

#[test]
fn the_nearest_name_is_named() {
    let mut p = TrainParams::default();
    for (typed, meant) in [
        ("tree.maxLeaves", "tree.maxLeaf"),
        ("solver.epss", "solver.eps"),
        ("modelnormalize", "model.normalize"),
    ] {
        refused(
            p.set(typed, &Value::Number(1.0)),
            ErrorCode::UnknownOption,
            &[typed, &format!("did you mean {meant}?")],
        );
    }
}

#[test]
fn values_set_past_the_checks_are_found() {
    assert_eq!(TrainParams::default().check(), Ok(()));
    let mut p = TrainParams::default();
    p.tree.arity = 1;
    refused(p.check(), ErrorCode::InvalidArgument, &["tree.arity", "1"]);
    let mut p = TrainParams::default();
    p.solver.cp = f32::NAN;
    refused(p.check(), ErrorCode::InvalidArgument, &["solver.cp", "NaN"]);
}
