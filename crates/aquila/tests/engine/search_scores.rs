//! Scores keep their range and their order, whatever the sums are.

use crate::search_support::*;
use aquila::control::Control;
use aquila::kernels::Isa;
use aquila::tree::LabelTree;
use aquila::xlinear::{Block, Model, ModelParts, PredictParams, Scope, ScoreForm, Searcher, WeightFormat};
use aquila::{Csr, Row};

/// Plans of small trees, as they are and for rows of any length.
fn small() -> Vec<Plan> {
    let wanted = |p: &Plan| p.labels <= 700;
    let plans: Vec<Plan> = plans().into_iter().filter(wanted).collect();
    let long = plans.iter().map(|p| Plan { normalize: false, ..p.clone() });
    plans.iter().cloned().chain(long).collect()
}

/// Rows of wild values: long ones, such as overflow a sum, and short ones.
fn wild(plan: &Plan, n: usize) -> Csr {
    let mut rng = Rng(77);
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let scale = [1e-30, 1.0, 30.0, 1e6, 1e20, 3e38][i % 6];
        for f in (0..plan.features as u32).filter(|f| (*f as usize + i).is_multiple_of(3)) {
            indices.push(f);
            values.push((rng.unit() * 1.9 - 0.9) * scale);
        }
        indptr.push(indices.len());
    }
    Csr::new(n, plan.features, indptr, indices, values).unwrap()
}

#[test]
fn scores_keep_their_range() {
    for plan in small() {
        let made = make(&plan, 2);
        let rows = wild(&plan, 12);
        let mut out = Vec::new();
        for &form in ScoreForm::ALL {
            // The sum of several scores may pass 1.
            let sums = plan.merge == aquila::xlinear::Merge::Sum && form != ScoreForm::Margin;
            for k in [5, 1000] {
                let params = PredictParams { k, beam: 20, scores: form, ..Default::default() };
                for i in 0..rows.rows() {
                    for isa in Isa::available() {
                        let mut searcher = Searcher::with_isa(isa);
                        made.model
                            .search(&mut searcher, rows.row(i), &params, &Scope::All, &mut out)
                            .unwrap();
                        for (_, score) in &out {
                            let fits = match (is_product(form), form) {
                                (true, _) => (0.0..=if sums { 100.0 } else { 1.0 }).contains(score),
                                (false, ScoreForm::Margin) => score.is_finite(),
                                (false, _) => (f32::MIN..=if sums { 5.0 } else { 0.0 }).contains(score),
                            };
                            assert!(fits, "{}, {form:?}, {isa:?}, row {i}: {score}", plan.name);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn equal_scores_are_in_the_order_of_labels_and_k_is_a_cut() {
    for plan in small() {
        let made = make(&plan, 2);
        let some = wild(&plan, 6);
        let usual = rows_of(&plan, 10, 3);
        for x in [&aquila::Features::from(some), &usual] {
            for &form in ScoreForm::ALL {
                let predict = |k| {
                    let params = PredictParams { k, beam: 30, scores: form, ..Default::default() };
                    made.model.predict(x, &params, &Scope::All, &Control::with_threads(1)).unwrap()
                };
                let all = predict(100_000);
                for k in [1, 2, 5, 17, 100] {
                    let best = predict(k);
                    for i in 0..x.rows() {
                        let of = |r: &aquila::Ranked| -> Vec<(u32, f32)> {
                            let span = r.indptr[i]..r.indptr[i + 1];
                            r.labels[span.clone()]
                                .iter()
                                .copied()
                                .zip(r.scores[span].iter().copied())
                                .collect()
                        };
                        let (all, best) = (of(&all), of(&best));
                        let place = format!("{}, {form:?}, row {i}, k {k}", plan.name);
                        let ordered = |a: &(u32, f32), b: &(u32, f32)| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0);
                        assert!(all.is_sorted_by(ordered), "{place}");
                        assert!(best == all[..all.len().min(k as usize)], "{place}");
                    }
                }
            }
        }
    }
}

/// Four labels under the root, of two features, with these weights and biases of 0.
fn flat(weights: [[f32; 4]; 2]) -> Model {
    let block = Block {
        layer: 0,
        parent: 0,
        first: 0,
        lanes: 4,
        features: vec![0, 1],
        masks: vec![15, 15],
        codes: weights.as_flattened().iter().flat_map(|w| w.to_le_bytes()).collect(),
        dense: vec![],
        scales: [0.0; 16],
        bias: [0.0; 16],
    };
    let mut parts = ModelParts { features: 2, ..ModelParts::default() };
    parts.params.model.normalize = false;
    let tree = LabelTree::flat(4).unwrap();
    Model::assemble(parts, &tree, WeightFormat::F32, vec![block], &Control::with_threads(1)).unwrap()
}

#[test]
fn a_sum_that_is_no_number_ranks_last() {
    // Of label 1 the sum is ∞ − ∞, of label 2 it is ∞, of label 3 it is −∞. Finite weights make no such sum on every
    // processor, as those that multiply and add in one step overflow later.
    const MANY: f32 = f32::INFINITY;
    let model = flat([[0.5, MANY, 3e38, -3e38], [0.25, -MANY, 3e38, -3e38]]);
    let row = Row { indices: &[0, 1], values: &[2.0, 2.0] };
    let (mut out, all) = (Vec::new(), Csr::new(1, 4, vec![0, 4], vec![0, 1, 2, 3], vec![1.0; 4]).unwrap());
    for &form in ScoreForm::ALL {
        let params = PredictParams { scores: form, ..Default::default() };
        for isa in Isa::available() {
            for scope in [Scope::All, Scope::Chosen(all.clone())] {
                model.search(&mut Searcher::with_isa(isa), row, &params, &scope, &mut out).unwrap();
                let labels: Vec<u32> = out.iter().map(|o| o.0).collect();
                assert_eq!(labels, [2, 0, 1, 3], "{form:?}, {isa:?}: {out:?}");
                let lowest = if is_product(form) { 0.0 } else { f32::MIN };
                assert_eq!((out[2].1, out[3].1), (lowest, lowest), "{form:?}, {isa:?}");
                assert!(out[0].1 > out[1].1 && out[0].1.is_finite(), "{form:?}, {isa:?}: {out:?}");
            }
        }
    }
}

#[test]
fn margins_beyond_a_hinge_still_order_labels() {
    let model = flat([[1.5, 2.5, 1.0, 9.0], [0.0; 4]]);
    let row = Row { indices: &[0], values: &[1.0] };
    let mut out = Vec::new();
    for form in [ScoreForm::L1Hinge, ScoreForm::L3Hinge, ScoreForm::LogL2Hinge] {
        let params = PredictParams { scores: form, ..Default::default() };
        model.search(&mut model.searcher(), row, &params, &Scope::All, &mut out).unwrap();
        assert_eq!(out.iter().map(|o| o.0).collect::<Vec<_>>(), [3, 1, 0, 2], "{form:?}: {out:?}");
        let end = if is_product(form) { 1.0 } else { 0.0 };
        assert!(out.iter().all(|o| o.1 <= end && o.1 > end - 3e-5), "{form:?}: {out:?}");
    }
}
