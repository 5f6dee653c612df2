//! Whole trainings: what every parameter learns, which results never differ, and what comes out again.

mod common;
mod train_support;

use aquila::params::{Params, Value};
use aquila::tree::NODE;
use aquila::xlinear::{Negatives, TrainInputs, TrainParams, train};
use aquila::{Control, Features};
use common::{Lists, Rng, control, csr, labels_below, lists, random_tree, separable};
use std::cmp::Reverse;
use train_support::{learn, params, precision_at_1, small};

#[test]
fn learns_what_can_be_learned() {
    let (x, y) = separable(1, 400, 30);
    let (xt, yt) = separable(2, 200, 30);
    let mut sets = vec![TrainParams::default(), small()];
    for change in [
        [("tree.split", "kary")],
        [("tree.vectors", "pii")],
        [("tree.spherical", "false")],
        [("tree.collapse", "1")],
        [("tree.maxLeaf", "1")],
        [("solver.loss", "hinge")],
        [("solver.loss", "logistic")],
        [("solver.negatives", "man")],
        [("solver.negatives", "tfn+man")],
        [("solver.relevance", "induce")],
        [("solver.maxWeights", "4")],
        [("model.normalize", "false")],
        [("model.weights", "bf16")],
        [("model.weights", "f32")],
        [("solver.bias", "0")],
    ] {
        let mut p = small();
        change.iter().for_each(|(n, v)| p.set(n, &Value::Text((*v).into())).unwrap());
        sets.push(p);
    }
    for p in sets {
        let model = learn(&x, &y, &p, TrainInputs::default());
        // Without its rows' lengths or a bias, the score of a wide margin is no longer alike at every depth.
        let (own, other) = (precision_at_1(&model, &x, &y), precision_at_1(&model, &xt, &yt));
        assert!(own > 0.95 && other > 0.95, "{p:?}: {own} {other}");
        model.verify(&Control::default()).unwrap();
    }
}

#[test]
fn bytes_depend_on_the_seed_and_not_on_threads() {
    let (x, y) = separable(7, 300, 40);
    for change in [("tree.split", "balanced"), ("tree.split", "kary"), ("solver.negatives", "tfn+man")] {
        let mut p = small();
        p.set(change.0, &Value::Text(change.1.into())).unwrap();
        let bytes = |threads, seed| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("m.aquila");
            let model = train(&x, &y, &p, TrainInputs::default(), &control(threads, seed)).unwrap().0;
            model.save(&path, &Control::default()).unwrap();
            std::fs::read(path).unwrap()
        };
        let one = bytes(1, 1);
        assert!(one == bytes(2, 1) && one == bytes(5, 1) && one == bytes(1, 1), "{change:?}");
        assert!(one != bytes(1, 2), "{change:?}: two seeds made one model");
    }
}

#[test]
fn trees_of_the_user_come_out_again() {
    let (x, y) = separable(5, 200, 20);
    for (seed, copies) in [(1, 0), (2, 0), (3, 12), (4, 30)] {
        let tree = random_tree(&mut Rng::new(seed), 20, copies);
        for negatives in [Negatives::Siblings, Negatives::Both] {
            let mut p = TrainParams::default();
            p.solver.negatives = negatives;
            let inputs = TrainInputs { tree: Some(tree.clone()), ..TrainInputs::default() };
            let model = learn(&x, &y, &p, inputs);
            assert_eq!(model.tree().unwrap(), tree);
            let p1 = precision_at_1(&model, &x, &y);
            assert!(p1 > 0.95, "seed {seed}: {p1}");
        }
    }
}

#[test]
fn slots_of_our_own_trees_stand_by_their_labels_rows() {
    let (x, y) = separable(5, 300, 40);
    let mut counts = [0; 40];
    y.indices().iter().for_each(|l| counts[*l as usize] += 1);
    for change in [("tree.split", "balanced"), ("tree.split", "kary"), ("overlap.copies", "2")] {
        let mut p = small();
        p.set(change.0, &Value::Text(change.1.into())).unwrap();
        let tree = learn(&x, &y, &p, TrainInputs::default()).tree().unwrap();
        let mut rising = 0;
        for layer in tree.layers() {
            for parent in 0..layer.parents() {
                let slots = layer.labels[layer.children(parent)].iter().filter(|l| **l != NODE);
                let slots: Vec<u32> = slots.copied().collect();
                assert!(slots.is_sorted_by_key(|l| Reverse(counts[*l as usize])), "{change:?} {slots:?}");
                rising += slots.windows(2).filter(|w| counts[w[0] as usize] > counts[w[1] as usize]).count();
            }
        }
        assert!(rising > 5, "{change:?}: all labels have as many rows");
    }
}

#[test]
fn vectors_of_the_user_shape_the_tree() {
    // Even and odd labels, told apart by the vectors and by nothing in the rows.
    let (x, y) = separable(6, 100, 10);
    let own: Lists = (0..10u32).map(|l| vec![(l % 2, 1.0)]).collect();
    let p = params(&[("tree.maxLeaf", "5"), ("tree.arity", "2")]);
    let inputs = TrainInputs { label_vectors: Some(csr(2, &own)), ..TrainInputs::default() };
    let mut leaves = labels_below(&learn(&x, &y, &p, inputs).tree().unwrap())[0].clone();
    leaves.sort();
    assert_eq!(leaves, [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]);
}

#[test]
fn rows_of_any_length_are_one_where_rows_are_normalized() {
    let (x, y) = separable(10, 120, 10);
    let scaled: Lists = lists(x.sparse())
        .into_iter()
        .enumerate()
        .map(|(i, r)| r.into_iter().map(|e| (e.0, e.1 * [0.25, 4.0, 1024.0][i % 3])).collect())
        .collect();
    let scaled: Features = csr(x.cols(), &scaled).into();
    let (a, b) = (
        learn(&x, &y, &small(), TrainInputs::default()),
        learn(&scaled, &y, &small(), TrainInputs::default()),
    );
    assert_eq!(a.as_bytes(), b.as_bytes());
    let mut p = small();
    p.model.normalize = false;
    let (a, b) = (learn(&x, &y, &p, TrainInputs::default()), learn(&scaled, &y, &p, TrainInputs::default()));
    assert_ne!(a.as_bytes(), b.as_bytes());
}

#[test]
fn the_report_and_the_parts_tell_what_was_done() {
    let (x, y) = separable(15, 100, 10);
    let names: Vec<String> = (0..10).map(|l| format!("label {l}")).collect();
    let words: Vec<String> = (0..x.cols()).map(|f| format!("word {f}")).collect();
    let inputs = TrainInputs {
        label_names: names.clone(),
        feature_names: words.clone(),
        metadata: "{\"a\":1}".into(),
        ..TrainInputs::default()
    };
    let (model, report) = train(&x, &y, &small(), inputs, &control(2, 77)).unwrap();
    let info = model.info();
    assert_eq!((model.label_names(), model.feature_names()), (names, words));
    assert_eq!((info.metadata.as_str(), info.seed), ("{\"a\":1}", 77));
    assert_eq!((info.params, info.features, info.labels), (small(), x.cols(), 10));
    let parts = [report.label_vectors, report.tree, report.layers, report.layout];
    assert!(parts.iter().all(|s| *s >= 0.0) && parts.iter().sum::<f64>() <= report.total + 1e-3);
    assert_eq!(report.forecast_bytes, aquila::xlinear::forecast(&x, &y, &small(), 2));
}
