//! What tests of whole trainings share: short ways to train, and to ask a model for everything that it knows.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::common::{Lists, control, csr};
use aquila::params::{Params, Value};
use aquila::xlinear::{Model, PredictParams, Scope, ScoreForm, TrainInputs, TrainParams, train};
use aquila::{Csr, Features};

/// A model on two threads.
pub fn learn(x: &Features, y: &Csr, params: &TrainParams, inputs: TrainInputs) -> Model {
    train(x, y, params, inputs, &control(2, 1)).unwrap().0
}

/// Parameters by name, the others being the defaults.
pub fn params(pairs: &[(&str, &str)]) -> TrainParams {
    let pairs: Vec<(&str, Value)> = pairs.iter().map(|(n, v)| (*n, Value::Text((*v).to_owned()))).collect();
    TrainParams::from_pairs(pairs.iter().map(|(n, v)| (*n, v))).unwrap()
}

/// Leaves of eight labels and nodes of three children: three layers on the sets below.
pub fn small() -> TrainParams {
    params(&[("tree.maxLeaf", "8"), ("tree.arity", "3")])
}

/// The share of rows whose first label is theirs.
pub fn precision_at_1(model: &Model, x: &Features, y: &Csr) -> f64 {
    let search = PredictParams { k: 1, ..PredictParams::default() };
    let found = model.predict(x, &search, &Scope::All, &control(2, 0)).unwrap();
    let hit = |i: usize| {
        let label = found.labels[found.indptr[i]];
        y.row(i).iter().any(|e| e == (label, 1.0))
    };
    (0..x.rows()).filter(|i| hit(*i)).count() as f64 / x.rows() as f64
}

/// All labels of each row with their scores.
pub fn everything(model: &Model, x: &Features, scores: ScoreForm) -> Vec<Vec<(u32, f32)>> {
    let all: Lists = vec![(0..model.labels() as u32).map(|l| (l, 1.0)).collect(); x.rows()];
    let scope = Scope::Chosen(csr(model.labels(), &all));
    let search = PredictParams { scores, ..PredictParams::default() };
    let found = model.predict(x, &search, &scope, &control(1, 0)).unwrap();
    (0..x.rows())
        .map(|i| {
            let span = found.indptr[i]..found.indptr[i + 1];
            let mut row: Vec<_> =
                found.labels[span.clone()].iter().copied().zip(found.scores[span].iter().copied()).collect();
            row.sort_by_key(|e| e.0);
            row
        })
        .collect()
}

/// Every label's weights, its bias last, read off the margins of rows of a single feature; `None` where the label was
/// never trained. Only for labels of a single slot.
pub fn weights(model: &Model) -> Vec<Option<Vec<f64>>> {
    let d = model.features();
    let mut rows: Lists = (0..d as u32).map(|j| vec![(j, 1.0)]).collect();
    rows.push(vec![]);
    let margins = everything(model, &csr(d, &rows).into(), ScoreForm::Margin);
    (0..model.labels())
        .map(|l| {
            let bias = f64::from(margins[d][l].1);
            let weight = |j: usize| f64::from(margins[j][l].1) - bias;
            (margins[d][l].1 > f32::MIN).then(|| (0..d).map(weight).chain([bias]).collect())
        })
        .collect()
}
