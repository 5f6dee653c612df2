//! Beam search against a naive predictor, over every kind of tree, weight format, score form, scope and instruction set.

use crate::search_support::*;
use aquila::Csr;
use aquila::control::Control;
use aquila::kernels::Isa;
use aquila::params::{ParamType, Params, Value};
use aquila::xlinear::{PredictParams, Scope, ScoreForm, Searcher};
use std::collections::BTreeSet;

fn forms() -> Vec<ScoreForm> {
    let specs = PredictParams::specs();
    let scores = specs.iter().find(|s| s.name == "scores").unwrap();
    let read = |t: &&str| ScoreForm::read(scores, &Value::Text((*t).to_owned())).unwrap();
    ScoreForm::TEXTS.iter().map(read).collect()
}

/// The reference's beam is decided in f64, the engine's in f32: near-ties at the beam's edge may fall differently.
/// With these beams the edge is either absent or, over the fixed seeds, clear.
#[test]
fn every_tree_scores_as_the_reference_does() {
    for plan in plans() {
        let made = make(&plan, 2);
        let x = rows_of(&plan, 10, 7);
        let mut out = Vec::new();
        let mut searchers: Vec<_> =
            Isa::available().into_iter().map(|isa| (isa, Searcher::with_isa(isa))).collect();
        let widest = made.tree.layers().iter().map(|l| l.columns()).max().unwrap();
        for form in forms() {
            for (beam, k) in [(10, 10), (3, 200), (widest, 5)] {
                let params =
                    PredictParams { k: k as u32, beam: beam as u32, scores: form, ..Default::default() };
                for i in 0..if form == ScoreForm::L3Hinge { x.rows() } else { 4 } {
                    let want = reference(&made, &x, i, &params, beam, &|_, _| true);
                    for (isa, searcher) in &mut searchers {
                        let place = format!("{}, {isa:?}, {form:?}, beam {beam}, k {k}, row {i}", plan.name);
                        made.model.search(searcher, x.row(i), &params, &Scope::All, &mut out).unwrap();
                        agree(form, &out, &want, k, &place);
                    }
                }
            }
        }
    }
}

#[test]
fn sections_of_very_many_weights_are_read() {
    let plan = wide_counts();
    let (made, x) = (make(&plan, 2), rows_of(&plan, 3, 7));
    let params = PredictParams { k: 50, beam: 60, ..Default::default() };
    let mut out = Vec::new();
    for i in 0..x.rows() {
        let want = reference(&made, &x, i, &params, 60, &|_, _| true);
        for isa in Isa::available() {
            made.model
                .search(&mut Searcher::with_isa(isa), x.row(i), &params, &Scope::All, &mut out)
                .unwrap();
            agree(params.scores, &out, &want, 50, &format!("{isa:?}, row {i}"));
        }
    }
}

#[test]
fn allowed_labels_are_ranked_as_if_no_other_existed() {
    for plan in plans() {
        let made = make(&plan, 1);
        let x = rows_of(&plan, 6, 11);
        for step in [1, 3, 37] {
            let labels: Vec<u32> = (0..plan.labels as u32).step_by(step).collect();
            let set: BTreeSet<u32> = labels.iter().copied().collect();
            // A column is entered where an allowed label is at or below it.
            let layers = made.tree.layers();
            let mut inside: Vec<Vec<bool>> = layers.iter().map(|l| vec![false; l.columns()]).collect();
            for t in (0..layers.len()).rev() {
                let mut node = 0;
                for c in 0..layers[t].columns() {
                    inside[t][c] = if layers[t].labels[c] == aquila::tree::NODE {
                        node += 1;
                        inside[t + 1][layers[t + 1].children(node - 1)].contains(&true)
                    } else {
                        set.contains(&layers[t].labels[c])
                    };
                }
            }
            let scope = Scope::Allowed(made.model.allow(&labels).unwrap());
            let params = PredictParams { k: 7, beam: 6, ..Default::default() };
            let ranked = made.model.predict(&x, &params, &scope, &Control::with_threads(1)).unwrap();
            for i in 0..x.rows() {
                let span = ranked.indptr[i]..ranked.indptr[i + 1];
                let got: Vec<_> = span.map(|j| (ranked.labels[j], ranked.scores[j])).collect();
                let want = reference(&made, &x, i, &params, 6, &|t, c| inside[t][c]);
                let place = format!("{}, every {step}th, row {i}", plan.name);
                agree(params.scores, &got, &want, 7, &place);
            }
        }
        let none = Scope::Allowed(made.model.allow(&[]).unwrap());
        let ranked =
            made.model.predict(&x, &PredictParams::default(), &none, &Control::with_threads(1)).unwrap();
        assert!(ranked.labels.is_empty());
    }
}

#[test]
fn chosen_labels_are_all_scored_whatever_the_beam() {
    for plan in plans() {
        let made = make(&plan, 1);
        let x = rows_of(&plan, 6, 13);
        let mut rng = Rng(5);
        let (mut indptr, mut indices) = (vec![0], Vec::new());
        for i in 0..x.rows() {
            indices.extend((0..plan.labels as u32).filter(|_| rng.unit() < 0.05 * i as f32));
            indptr.push(indices.len());
        }
        let values = vec![1.0; indices.len()];
        let chosen = Csr::new(x.rows(), plan.labels, indptr, indices, values).unwrap();
        for form in [ScoreForm::L3Hinge, ScoreForm::Margin] {
            let params = PredictParams { k: 1, beam: 1, scores: form, ..Default::default() };
            let scope = Scope::Chosen(chosen.clone());
            let ranked = made.model.predict(&x, &params, &scope, &Control::with_threads(2)).unwrap();
            for i in 0..x.rows() {
                let span = ranked.indptr[i]..ranked.indptr[i + 1];
                let got: Vec<_> = span.map(|j| (ranked.labels[j], ranked.scores[j])).collect();
                let mut want = reference(&made, &x, i, &params, usize::MAX, &|_, _| true);
                want.retain(|l, _| chosen.row(i).indices.contains(l));
                assert_eq!(want.len(), chosen.row(i).len());
                agree(form, &got, &want, usize::MAX, &format!("{}, {form:?}, row {i}", plan.name));
            }
        }
    }
}

#[test]
fn bytes_and_results_do_not_depend_on_threads() {
    for plan in plans() {
        let (one, three) = (make(&plan, 1), make(&plan, 3));
        assert!(one.model.as_bytes() == three.model.as_bytes(), "{}", plan.name);
        let x = rows_of(&plan, 200, 3);
        let params = PredictParams::default();
        let predict = |m: &Made, threads| {
            m.model.predict(&x, &params, &Scope::All, &Control::with_threads(threads)).unwrap()
        };
        assert_eq!(predict(&one, 1), predict(&three, 3), "{}", plan.name);
    }
}

#[test]
fn the_tree_comes_back() {
    for plan in plans() {
        let made = make(&plan, 1);
        assert_eq!(made.model.tree().unwrap(), made.tree, "{}", plan.name);
        let info = made.model.info();
        assert_eq!((info.labels, info.slots), (plan.labels, made.tree.slots()));
        let weights: usize = made.columns.iter().flatten().map(|c| c.1.len()).sum();
        assert_eq!(info.weights as usize, weights);
    }
}
