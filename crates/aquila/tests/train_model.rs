//! Whole trainings: what leaves learn, what every parameter does, and which results never differ.

mod common;

use aquila::kernels::dcd::DualLoss;
use aquila::params::{Params, Value};
use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::xlinear::{
    Loss, Model, Negatives, PredictParams, Relevance, RelevanceNorm, Scope, ScoreForm, TrainInputs,
    TrainParams, WeightKind, train,
};
use aquila::{Csr, Features};
use common::{Lists, Rng, Single, control, csr, labels_below, lists, random_rows, random_tree, separable};

fn learn(x: &Features, y: &Csr, params: &TrainParams, inputs: TrainInputs) -> Model {
    train(x, y, params, inputs, &control(2, 1)).unwrap().0
}

fn params(pairs: &[(&str, &str)]) -> TrainParams {
    let pairs: Vec<(&str, Value)> = pairs.iter().map(|(n, v)| (*n, Value::Text((*v).to_owned()))).collect();
    TrainParams::from_pairs(pairs.iter().map(|(n, v)| (*n, v))).unwrap()
}

/// Leaves of eight labels and nodes of three children: three layers on the sets below.
fn small() -> TrainParams {
    params(&[("tree.maxLeaf", "8"), ("tree.arity", "3")])
}

fn precision_at_1(model: &Model, x: &Features, y: &Csr) -> f64 {
    let search = PredictParams { k: 1, ..PredictParams::default() };
    let found = model.predict(x, &search, &Scope::All, &control(2, 0)).unwrap();
    let hit = |i: usize| {
        let label = found.labels[found.indptr[i]];
        y.row(i).iter().any(|e| e == (label, 1.0))
    };
    (0..x.rows()).filter(|i| hit(*i)).count() as f64 / x.rows() as f64
}

/// All labels of each row with their scores.
fn everything(model: &Model, x: &Features, scores: ScoreForm) -> Vec<Vec<(u32, f32)>> {
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
fn weights(model: &Model) -> Vec<Option<Vec<f64>>> {
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

/// Layer, parent and column of a label's slot.
fn slot(tree: &LabelTree, label: usize) -> (usize, usize, usize) {
    let find = |t: &TreeLayer| t.labels.iter().position(|l| *l == label as u32);
    let (t, column) = (0..).zip(tree.layers()).find_map(|(t, l)| find(l).map(|c| (t, c))).unwrap();
    let parent =
        (0..tree.layers()[t].parents()).find(|p| tree.layers()[t].children(*p).contains(&column)).unwrap();
    (t, parent, column)
}

/// The labels that hang below a parent.
fn below_parent(tree: &LabelTree, t: usize, parent: usize) -> Vec<u32> {
    let below = labels_below(tree);
    let mut out = tree.layers()[t].children(parent).flat_map(|c| below[t][c].clone()).collect::<Vec<_>>();
    out.sort_unstable();
    out
}

/// Small random rows of length 1 and labels; labels 0 to 2 are frequent, the last one has no rows.
fn random_problem(seed: u64, rows: usize, labels: usize) -> (Lists, Lists) {
    let mut rng = Rng::new(seed);
    let mut x = random_rows(&mut rng, rows, 25, 0.25);
    for row in &mut x {
        let norm = row.iter().map(|e| f64::from(e.1).powi(2)).sum::<f64>().sqrt() as f32;
        row.iter_mut().for_each(|e| e.1 /= norm);
    }
    let y = (0..rows)
        .map(|_| {
            let has = |l: u32, rng: &mut Rng| rng.below(if l < 3 { 3 } else { 9 }) == 0;
            let own: Vec<u32> = (0..labels as u32 - 1).filter(|l| has(*l, &mut rng)).collect();
            own.into_iter().map(|l| (l, 1.0)).collect()
        })
        .collect();
    (x, y)
}

/// Requires that each label with one slot has learned: all rows at the root, elsewhere those with a label below its
/// parent; its own rows against the others.
fn leaves_learn_their_problem(solver: &[(&str, &str)], relevance: Option<fn(usize, u32) -> f32>) {
    let mut p = params(solver);
    p.model.weights = WeightKind::F32;
    (p.solver.threshold, p.solver.eps, p.solver.max_passes) = (0.0, 1e-4, 4000);
    let loss = match p.solver.loss {
        Loss::SquaredHinge => DualLoss::SquaredHinge,
        Loss::Hinge => DualLoss::Hinge,
        Loss::Logistic => DualLoss::Logistic,
    };
    for seed in 0..3 {
        let (x, y) = random_problem(seed, 70, 14);
        let tree = random_tree(&mut Rng::new(seed), 14, 0);
        let weigh = |norm: bool| {
            let mut r = y.clone();
            for (i, row) in r.iter_mut().enumerate() {
                row.iter_mut().for_each(|e| e.1 = relevance.map_or(1.0, |f| f(i, e.0)));
                let sum: f32 = row.iter().map(|e| e.1).sum();
                row.iter_mut().filter(|_| norm && sum > 0.0).for_each(|e| e.1 /= sum);
            }
            r
        };
        let inputs = TrainInputs {
            tree: Some(tree.clone()),
            relevance: relevance.map(|_| csr(14, &weigh(false))),
            ..TrainInputs::default()
        };
        let model = learn(&csr(25, &x).into(), &csr(14, &y), &p, inputs);
        let costs = weigh(false);
        let slots =
            |l: usize| tree.layers().iter().flat_map(|t| &t.labels).filter(|s| **s == l as u32).count();
        for (l, w) in weights(&model).into_iter().enumerate().filter(|(l, _)| slots(*l) == 1) {
            let has = |i: usize, l: u32| y[i].iter().any(|e| e.0 == l);
            let Some(mut w) = w else {
                assert!((0..70).all(|i| !has(i, l as u32)), "label {l} was not trained");
                continue;
            };
            let bias = f64::from(p.solver.bias);
            *w.last_mut().unwrap() /= if bias > 0.0 { bias } else { 1.0 };
            let (t, parent, _) = slot(&tree, l);
            let family = below_parent(&tree, t, parent);
            let seen: Vec<usize> = (0..70).filter(|i| t == 0 || family.iter().any(|l| has(*i, *l))).collect();
            let rows: Lists = seen.iter().map(|i| x[*i].clone()).collect();
            let positive: Vec<bool> = seen.iter().map(|i| has(*i, l as u32)).collect();
            let cost = |(i, positive): (&usize, &bool)| {
                let r = costs[*i].iter().find(|e| e.0 == l as u32).map_or(1.0, |e| f64::from(e.1));
                if *positive { r.max(1e-9) * f64::from(p.solver.cp) } else { f64::from(p.solver.cn) }
            };
            let single = Single {
                loss,
                rows: &rows,
                cols: 25,
                y: positive.iter().map(|p| if *p { 1.0 } else { -1.0 }).collect(),
                cost: seen.iter().zip(&positive).map(cost).collect(),
                bias,
            };
            let (got, best) = (single.objective(&w), single.objective(&single.solve()));
            assert!(
                (got - best).abs() < 1e-3 * best.max(1.0),
                "{solver:?} seed {seed} label {l}: {got}, not {best}"
            );
        }
    }
}

#[test]
fn leaves_learn_from_the_rows_of_their_siblings() {
    leaves_learn_their_problem(&[], None);
    leaves_learn_their_problem(&[("solver.cp", "3"), ("solver.cn", "0.5"), ("solver.bias", "0")], None);
    leaves_learn_their_problem(&[("solver.loss", "hinge"), ("solver.bias", "2")], None);
    leaves_learn_their_problem(&[("solver.loss", "logistic"), ("solver.cp", "8")], None);
}

#[test]
fn relevances_weigh_the_rows_of_their_label() {
    let some: fn(usize, u32) -> f32 = |i, l| [0.5, 1.0, 3.0][(i + l as usize) % 3];
    let zeros: fn(usize, u32) -> f32 = |i, l| [0.0, 1.0][(i + l as usize) % 2];
    for relevance in [some, zeros] {
        leaves_learn_their_problem(&[("solver.relevance", "induce"), ("solver.cp", "2")], Some(relevance));
        leaves_learn_their_problem(
            &[("solver.relevance", "induce"), ("solver.loss", "logistic")],
            Some(relevance),
        );
    }
    // Relevances without the option say nothing; above all, a 0 does not turn a positive into a negative.
    leaves_learn_their_problem(&[], Some(|_, _| 1.0));
    let (x, y) = separable(3, 80, 9);
    let zero = csr(
        9,
        &lists(&y).into_iter().map(|r| r.into_iter().map(|e| (e.0, 0.0)).collect()).collect::<Vec<_>>(),
    );
    let inputs = TrainInputs { relevance: Some(zero), ..TrainInputs::default() };
    let (a, b) = (learn(&x, &y, &small(), inputs), learn(&x, &y, &small(), TrainInputs::default()));
    assert_eq!(a.as_bytes(), b.as_bytes());
}

#[test]
fn a_relevance_of_two_is_twice_the_cost() {
    let (x, y) = separable(4, 90, 12);
    let two = csr(
        12,
        &lists(&y).into_iter().map(|r| r.into_iter().map(|e| (e.0, 2.0)).collect()).collect::<Vec<_>>(),
    );
    let mut plain = params(&[("solver.cp", "2")]);
    let mut weighted = params(&[("solver.relevance", "leaves")]);
    let tree = LabelTree::flat(12).unwrap();
    let of = |p: &TrainParams, relevance| {
        let inputs = TrainInputs { tree: Some(tree.clone()), relevance, ..TrainInputs::default() };
        everything(&learn(&x, &y, p, inputs), &x, ScoreForm::Margin)
    };
    for loss in [Loss::SquaredHinge, Loss::Hinge, Loss::Logistic] {
        (plain.solver.loss, weighted.solver.loss) = (loss, loss);
        assert_eq!(of(&plain, None), of(&weighted, Some(two.clone())));
    }
    // Scaled to a maximum of 1 it is no weight at all.
    (weighted.solver.relevance_norm, plain.solver.cp) = (RelevanceNorm::Max, 1.0);
    assert_eq!(of(&plain, None), of(&weighted, Some(two)));
}

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
        model.verify().unwrap();
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
            model.save(&path).unwrap();
            std::fs::read(path).unwrap()
        };
        let one = bytes(1, 1);
        assert!(one == bytes(2, 1) && one == bytes(5, 1) && one == bytes(1, 1), "{change:?}");
        assert!(one != bytes(1, 2), "{change:?}: two seeds made one model");
    }
}

#[test]
fn a_matcher_that_finds_nothing_new_changes_nothing() {
    // Every row has a label under each of two nodes; under a flat tree there is no matcher at all.
    let mut rng = Rng::new(1);
    let x: Features = csr(20, &random_rows(&mut rng, 60, 20, 0.3)).into();
    let y: Lists =
        (0..60).map(|_| vec![(rng.below(3) as u32, 1.0), (3 + rng.below(3) as u32, 1.0)]).collect();
    let y = csr(6, &y);
    let two = LabelTree::new(
        6,
        vec![
            TreeLayer { starts: vec![0, 2], labels: vec![NODE; 2] },
            TreeLayer { starts: vec![0, 3, 6], labels: (0..6).collect() },
        ],
    );
    for tree in [LabelTree::flat(6).unwrap(), two.unwrap()] {
        let of = |negatives| {
            let mut p = TrainParams::default();
            p.solver.negatives = negatives;
            let inputs = TrainInputs { tree: Some(tree.clone()), ..TrainInputs::default() };
            everything(&learn(&x, &y, &p, inputs), &x, ScoreForm::L3Hinge)
        };
        let plain = of(Negatives::Siblings);
        assert_eq!(plain, of(Negatives::Matcher));
        assert_eq!(plain, of(Negatives::Both));
    }
}

/// Labels 0 and 1 under one node, 2 and 3 under the other. Label 0's rows have feature 0, and so do, unseen by its
/// node, half of label 2's.
fn two_leaves() -> (Features, Csr, LabelTree) {
    let x: Lists = (0..40)
        .map(|i| match i % 4 {
            2 if i % 8 == 2 => vec![(0, 1.0), (2, 1.0)],
            l => vec![(l as u32, 1.0)],
        })
        .collect();
    let y: Lists = (0..40).map(|i| vec![(i % 4, 1.0)]).collect();
    let tree = LabelTree::new(
        4,
        vec![
            TreeLayer { starts: vec![0, 2], labels: vec![NODE; 2] },
            TreeLayer { starts: vec![0, 2, 4], labels: vec![0, 1, 2, 3] },
        ],
    );
    (csr(4, &x).into(), csr(4, &y), tree.unwrap())
}

#[test]
fn negatives_add_rows_to_a_node() {
    let (x, y, tree) = two_leaves();
    let margin = |negatives: Option<Csr>, mode| {
        let mut p = TrainParams::default();
        (p.solver.negatives, p.solver.matcher_beam) = (mode, 2);
        let inputs = TrainInputs { tree: Some(tree.clone()), negatives, ..TrainInputs::default() };
        everything(&learn(&x, &y, &p, inputs), &x, ScoreForm::Margin)[2][0].1
    };
    let listed: Lists = (0..40).map(|i| if i % 8 == 2 { vec![(1, 1.0)] } else { vec![] }).collect();
    let zeros: Lists = listed.iter().map(|r| r.iter().map(|e| (e.0, 0.0)).collect()).collect();
    let plain = margin(None, Negatives::Siblings);
    assert!(plain > 0.3, "{plain}");
    let shown = margin(Some(csr(4, &listed)), Negatives::Siblings);
    assert!(shown < -0.3, "{shown}");
    assert_eq!(margin(Some(csr(4, &zeros)), Negatives::Siblings), plain);
    // A beam of both nodes shows every row to both.
    let matched = margin(None, Negatives::Both);
    assert!(matched < -0.3, "{matched}");
    let both = margin(Some(csr(4, &listed)), Negatives::Both);
    assert_eq!(both, matched);
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
fn pruning_keeps_the_largest_weights() {
    let (x, y) = separable(8, 150, 12);
    let of = |threshold, max_weights| {
        let mut p = TrainParams::default();
        p.model.weights = WeightKind::F32;
        (p.solver.threshold, p.solver.max_weights) = (threshold, max_weights);
        weights(&learn(&x, &y, &p, TrainInputs::default()))
    };
    let all = of(0.0, 0);
    for (threshold, most) in [(0.1, 0), (0.4, 0), (0.0, 3), (0.1, 5), (100.0, 0)] {
        for (label, (got, all)) in of(threshold, most).iter().zip(&all).enumerate() {
            let (got, all) = (got.as_ref().unwrap(), all.as_ref().unwrap());
            let d = all.len() - 1;
            assert_eq!(got[d], all[d], "the bias is never pruned");
            let mut want: Vec<usize> = (0..d).filter(|j| all[*j].abs() > f64::from(threshold)).collect();
            want.sort_by(|a, b| all[*b].abs().total_cmp(&all[*a].abs()));
            want.truncate(if most == 0 { d } else { most as usize });
            for j in 0..d {
                let kept = if want.contains(&j) { all[j] } else { 0.0 };
                // Differences of margins carry their rounding; ties and borders may go either way.
                let edge = (all[j].abs() - f64::from(threshold)).abs() < 1e-5
                    || want.last().is_some_and(|l| (all[*l].abs() - all[j].abs()).abs() < 1e-5);
                assert!((got[j] - kept).abs() < 1e-5 || edge, "label {label} w[{j}]: {}, not {kept}", got[j]);
            }
        }
    }
}

#[test]
fn stored_weights_are_those_learned() {
    let (x, y) = separable(9, 150, 12);
    let of = |kind| {
        let mut p = TrainParams::default();
        p.model.weights = kind;
        weights(&learn(&x, &y, &p, TrainInputs::default()))
    };
    let exact = of(WeightKind::F32);
    for (kind, error) in [(WeightKind::Bf16, 1.0 / 256.0), (WeightKind::Byte, 1.0 / 31.0)] {
        for (a, b) in of(kind).iter().zip(&exact) {
            for (a, b) in a.as_ref().unwrap().iter().zip(b.as_ref().unwrap()) {
                assert!((a - b).abs() <= error * b.abs() + 1e-5, "{kind:?}: {a}, not {b}");
            }
        }
    }
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
            model.verify().unwrap();
            let found = everything(&model, &x, ScoreForm::L3Hinge);
            for (i, row) in found.iter().enumerate() {
                assert_eq!(row.len(), y.cols(), "{name}, {change:?}");
                assert!(row.iter().all(|e| e.1.is_finite()), "{name}, {change:?}, row {i}: {row:?}");
            }
        }
    }
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
    assert_eq!((info.parts.label_names, info.parts.feature_names), (names, words));
    assert_eq!((info.parts.metadata.as_str(), info.parts.seed), ("{\"a\":1}", 77));
    assert_eq!((info.parts.params, info.features, info.labels), (small(), x.cols(), 10));
    let parts = [report.label_vectors, report.tree, report.layers, report.layout];
    assert!(parts.iter().all(|s| *s >= 0.0) && parts.iter().sum::<f64>() <= report.total + 1e-3);
    assert_eq!(report.forecast_bytes, aquila::xlinear::forecast(&x, &y, &small(), 2));
}
