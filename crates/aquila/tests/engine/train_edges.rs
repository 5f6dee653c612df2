//! Trainings on data that has little to say: zeros, labels without rows, rows without labels, one of everything.

use crate::common::{Lists, control, csr, lists, separable};
use crate::train_support::{everything, learn, params, small, weights};
use aquila::params::{Params, Value};
use aquila::xlinear::{PredictParams, Relevance, Scope, ScoreForm, TrainInputs};
use aquila::{Control, Csr, Features};

#[test]
fn zeros_of_y_are_no_labels() {
    let (x, y) = separable(11, 120, 16);
    let mut padded = lists(&y);
    for (i, row) in padded.iter_mut().enumerate() {
        let extra = (i * 7 % 16) as u32;
        if row.iter().all(|e| e.0 != extra) {
            row.push((extra, 0.0));
            row.sort_by_key(|e| e.0);
        }
    }
    for change in [("tree.vectors", "pifa"), ("tree.vectors", "pii"), ("solver.relevance", "induce")] {
        let mut p = small();
        p.set(change.0, &Value::Text(change.1.into())).unwrap();
        let plain = learn(&x, &y, &p, TrainInputs::default());
        let zeros = learn(&x, &csr(16, &padded), &p, TrainInputs::default());
        assert!(plain.as_bytes() == zeros.as_bytes(), "{change:?}");
    }
    // A relevance does not make a label of them either.
    let mut p = small();
    p.solver.relevance = Relevance::Induce;
    let ones =
        |rows: &Lists| -> Lists { rows.iter().map(|r| r.iter().map(|e| (e.0, 1.0)).collect()).collect() };
    let inputs = TrainInputs { relevance: Some(csr(16, &ones(&padded))), ..TrainInputs::default() };
    let zeros = learn(&x, &csr(16, &padded), &p, inputs);
    assert!(learn(&x, &y, &p, TrainInputs::default()).as_bytes() == zeros.as_bytes());
}

#[test]
fn zeros_of_x_say_nothing() {
    let (x, y) = separable(12, 120, 16);
    let mut padded = lists(x.sparse());
    for (i, row) in padded.iter_mut().enumerate() {
        for extra in [(i * 7 % x.cols()) as u32, (i * 3 % x.cols()) as u32] {
            if row.iter().all(|e| e.0 != extra) {
                row.push((extra, 0.0));
                row.sort_by_key(|e| e.0);
            }
        }
    }
    let padded: Features = csr(x.cols(), &padded).into();
    let zeros = learn(&padded, &y, &small(), TrainInputs::default());
    let plain = learn(&x, &y, &small(), TrainInputs::default());
    assert_eq!(zeros.tree().unwrap(), plain.tree().unwrap());
    for (a, b) in weights(&zeros).iter().zip(&weights(&plain)) {
        for (a, b) in a.as_ref().unwrap().iter().zip(b.as_ref().unwrap()) {
            // Sums run over other entries: a weight at the threshold may fall on either side.
            assert!((a - b).abs() < 2e-3 || a.abs().max(b.abs()) < 0.11, "{a} {b}");
        }
    }
}

#[test]
fn labels_without_samples_come_last() {
    let (x, y) = separable(13, 120, 20);
    // Labels 20 to 29 have no rows; every fifth row has no labels, every sixth no features.
    let rows = |m: &Csr, every: usize| -> Lists {
        lists(m).into_iter().enumerate().map(|(i, r)| if i % every == 3 { vec![] } else { r }).collect()
    };
    let x: Features = csr(x.cols(), &rows(x.sparse(), 6)).into();
    let y = csr(30, &rows(&y, 5));
    for change in
        [("tree.split", "balanced"), ("tree.split", "kary"), ("tree.maxLeaf", "1000"), ("tree.collapse", "2")]
    {
        for scores in [ScoreForm::L3Hinge, ScoreForm::LogSigmoid, ScoreForm::Margin] {
            let mut p = small();
            p.set(change.0, &Value::Text(change.1.into())).unwrap();
            let model = learn(&x, &y, &p, TrainInputs::default());
            let search = PredictParams { k: 30, beam: 100, scores, ..PredictParams::default() };
            let found = model.predict(&x, &search, &Scope::All, &control(1, 0)).unwrap();
            for i in 0..x.rows() {
                let row = &found.labels[found.indptr[i]..found.indptr[i + 1]];
                assert_eq!(row.len(), 30);
                assert!(row[..20].iter().all(|l| *l < 20), "{change:?} {scores:?} row {i}: {row:?}");
                assert!(found.scores[found.indptr[i]..found.indptr[i + 1]].iter().all(|s| s.is_finite()));
            }
        }
    }
}

#[test]
fn the_smallest_inputs_train() {
    let one = |row: Vec<(u32, f32)>, cols| Features::from(csr(cols, &[row]));
    let rows = |x: Lists, cols| Features::from(csr(cols, &x));
    let cases: Vec<(&str, Features, Csr)> = vec![
        ("one of everything", one(vec![(0, 1.0)], 1), csr(1, &[vec![(0, 1.0)]])),
        ("one row", one(vec![(0, 1.0), (3, -2.0)], 5), csr(4, &[vec![(1, 1.0), (2, 1.0)]])),
        ("one empty row", one(vec![], 2), csr(1, &[vec![(0, 1.0)]])),
        (
            "one feature",
            rows(vec![vec![(0, 1.0)], vec![(0, -1.0)], vec![]], 1),
            csr(2, &[vec![(0, 1.0)], vec![(1, 1.0)], vec![]]),
        ),
        (
            "all rows zero",
            rows(vec![vec![]; 6], 3),
            csr(5, &[vec![(0, 1.0)], vec![(4, 1.0)], vec![], vec![], vec![], vec![]]),
        ),
        (
            "twins",
            rows(vec![vec![(0, 1.0), (1, 2.0)]; 30], 2),
            csr(12, &(0..30).map(|i| vec![(i % 12, 1.0)]).collect::<Lists>()),
        ),
        (
            "every label on every row",
            rows(vec![vec![(0, 1.0)], vec![(1, 1.0)]], 2),
            csr(9, &vec![(0..9).map(|l| (l, 1.0)).collect(); 2]),
        ),
        (
            "extreme values",
            rows(vec![vec![(0, 3e38), (1, 3e38)], vec![(0, 1e-37)], vec![(1, -1e30), (2, 1e18)]], 3),
            csr(3, &[vec![(0, 1.0)], vec![(1, 1.0)], vec![(2, 1.0)]]),
        ),
    ];
    for (name, x, y) in cases {
        for change in [
            ("model.normalize", "true"),
            ("model.normalize", "false"),
            ("tree.maxLeaf", "1"),
            ("tree.split", "kary"),
            ("solver.negatives", "tfn+man"),
            ("solver.relevance", "induce"),
            ("solver.loss", "logistic"),
            ("solver.loss", "hinge"),
            ("solver.threshold", "0"),
            ("solver.bias", "0"),
        ] {
            let mut p = params(&[("tree.maxLeaf", "2"), ("tree.arity", "2"), ("model.weights", "f32")]);
            p.set(change.0, &Value::Text(change.1.into())).unwrap();
            let model = learn(&x, &y, &p, TrainInputs::default());
            model.verify(&Control::default()).unwrap();
            let found = everything(&model, &x, ScoreForm::L3Hinge);
            for (i, row) in found.iter().enumerate() {
                assert_eq!(row.len(), y.cols(), "{name}, {change:?}");
                assert!(row.iter().all(|e| e.1.is_finite()), "{name}, {change:?}, row {i}: {row:?}");
            }
        }
    }
}
