//! Whole trainings: what every parameter learns, which results never differ, and what comes out again.

use crate::common::{Lists, Rng, control, csr, labels_below, lists, random_tree, separable};
use crate::train_support::{learn, params, precision_at_1, small, weights};
use aquila::params::{Params, Value};
use aquila::tree::{NODE, TreeLayer};
use aquila::xlinear::{Model, Negatives, PredictParams, Scope, ScoreForm, TrainInputs, TrainParams, train};
use aquila::{Control, Csr, Features, Row};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The most children of a node, and the most labels of a leaf.
fn widest(model: &Model) -> (usize, usize) {
    let tree = model.tree().unwrap();
    let (last, inner) = tree.layers().split_last().unwrap();
    let most = |layer: &TreeLayer| (0..layer.parents()).map(|p| layer.children(p).len()).max().unwrap();
    (inner.iter().map(most).max().unwrap_or(0), most(last))
}

/// Whether two models have the same tree and yet other weights.
fn other_weights(one: &Model, other: &Model) -> bool {
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.02);
    let alike = |(a, b): (&Option<Vec<f64>>, &Option<Vec<f64>>)| match (a, b) {
        (Some(a), Some(b)) => close(a, b),
        _ => a == b,
    };
    one.tree().unwrap() == other.tree().unwrap() && !weights(one).iter().zip(&weights(other)).all(alike)
}

/// What an option makes of the training that it changes: the model of the others, and its own.
type Effect = fn(&Model, &Model) -> bool;

#[test]
fn learns_what_can_be_learned_and_each_option_in_its_own_way() {
    let (x, y) = separable(1, 400, 30);
    let (xt, yt) = separable(2, 200, 30);
    let usual = learn(&x, &y, &small(), TrainInputs::default());
    let effects: [(&str, &str, Effect); 14] = [
        ("tree.split", "kary", |a, b| a.tree().unwrap() != b.tree().unwrap()),
        ("tree.vectors", "pii", |a, b| a.tree().unwrap() != b.tree().unwrap()),
        ("tree.collapse", "1", |a, b| b.info().layers.len() < a.info().layers.len()),
        ("tree.maxLeaf", "1", |a, b| widest(a).1 > 1 && widest(b).1 == 1),
        ("solver.loss", "hinge", other_weights),
        ("solver.loss", "logistic", other_weights),
        ("solver.negatives", "man", other_weights),
        ("solver.negatives", "tfn+man", other_weights),
        ("solver.relevance", "induce", other_weights),
        ("solver.maxWeights", "4", |a, b| {
            let columns: usize = b.info().layers.iter().sum();
            a.info().weights as usize > 4 * columns && b.info().weights as usize <= 4 * columns
        }),
        ("model.normalize", "false", |a, b| {
            let longer = |m: &Model, by| {
                let row = Row { indices: &[0, 1], values: &[by, by] };
                let params = PredictParams { scores: ScoreForm::Margin, k: 1, ..PredictParams::default() };
                let mut out = Vec::new();
                m.search(&mut m.searcher(), row, &params, &Scope::All, &mut out).unwrap();
                out[0].1
            };
            (longer(a, 8.0) - longer(a, 1.0)).abs() < 1e-5 && longer(b, 8.0) > longer(b, 1.0) + 1.0
        }),
        ("model.weights", "bf16", |a, b| b.info().bytes > a.info().bytes),
        ("model.weights", "f32", |a, b| b.info().bytes > a.info().bytes + a.info().weights),
        ("solver.bias", "0", |a, b| {
            let biases = |m: &Model| -> Vec<f64> {
                weights(m).into_iter().flatten().filter_map(|w| w.last().copied()).collect()
            };
            biases(a).iter().any(|v| *v != 0.0) && biases(b).iter().all(|v| *v == 0.0)
        }),
    ];
    let default = learn(&x, &y, &TrainParams::default(), TrainInputs::default());
    // What that does shows in labels that are more scattered than these: see below.
    let flat = params(&[("tree.maxLeaf", "8"), ("tree.arity", "3"), ("tree.spherical", "false")]);
    let flat = learn(&x, &y, &flat, TrainInputs::default());
    let mut models = vec![("the defaults".to_owned(), default), ("tree.spherical=false".to_owned(), flat)];
    let (own, other) = (precision_at_1(&usual, &x, &y), precision_at_1(&usual, &xt, &yt));
    assert!(own > 0.95 && other > 0.95, "{own} {other}");
    for (name, value, effect) in effects {
        let mut p = small();
        p.set(name, &Value::Text(value.into())).unwrap();
        // Relevances are the one input that an option is about.
        let relevance = (name == "solver.relevance").then(|| {
            let values = y.indices().iter().map(|l| if l % 2 == 0 { 1.0 } else { 0.2 }).collect();
            Csr::new(y.rows(), y.cols(), y.indptr().to_vec(), y.indices().to_vec(), values).unwrap()
        });
        let model = learn(&x, &y, &p, TrainInputs { relevance, ..TrainInputs::default() });
        assert!(effect(&usual, &model), "{name}={value} has no effect, or another");
        models.push((format!("{name}={value}"), model));
    }
    for (name, model) in models {
        // Without its rows' lengths or a bias, the score of a wide margin is no longer alike at every depth.
        let (own, other) = (precision_at_1(&model, &x, &y), precision_at_1(&model, &xt, &yt));
        assert!(own > 0.95 && other > 0.95, "{name}: {own} {other}");
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
fn trees_of_directions_are_not_those_of_points() {
    // Some labels point nearly the same way, the others anywhere, so that their centre is short: directions pass over that,
    // points do not.
    let (x, y) = separable(6, 400, 120);
    let mut rng = Rng::new(8);
    let vector = |l: u32| -> Vec<(u32, f32)> {
        let scattered = if l.is_multiple_of(3) { 5 } else { 1 };
        let mut row: BTreeMap<u32, f32> =
            (0..scattered).map(|_| (1 + rng.below(20) as u32, 2.0 * rng.unit() as f32 - 1.0)).collect();
        row.insert(0, if l.is_multiple_of(3) { 0.1 } else { 1.5 });
        row.into_iter().collect()
    };
    let vectors: Lists = (0..120).map(vector).collect();
    let tree = |spherical| {
        let p = params(&[("tree.maxLeaf", "8"), ("tree.spherical", spherical)]);
        let inputs = TrainInputs { label_vectors: Some(csr(21, &vectors)), ..TrainInputs::default() };
        learn(&x, &y, &p, inputs).tree().unwrap()
    };
    assert_eq!(tree("true"), tree("true"));
    assert_ne!(tree("true"), tree("false"));
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
