//! What the classifiers of labels learn: from which rows, at which costs, and which weights are kept of it.

use crate::common::{Lists, Rng, Single, csr, labels_below, lists, random_rows, random_tree, separable};
use crate::train_support::{everything, learn, params, small, weights};
use aquila::kernels::dcd::DualLoss;
use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::xlinear::{Loss, Negatives, RelevanceNorm, ScoreForm, TrainInputs, TrainParams, WeightKind};
use aquila::{Csr, Features};

/// Layer, parent and column of a label's slot.
fn slot(tree: &LabelTree, label: usize) -> (usize, usize, usize) {
    let find = |t: &TreeLayer| t.labels.iter().position(|l| *l == label as u32);
    let (t, column) = (0..).zip(tree.layers()).find_map(|(t, l)| find(l).map(|c| (t, c))).unwrap();
    let parent =
        (0..tree.layers()[t].parents()).find(|p| tree.layers()[t].children(*p).contains(&column)).unwrap();
    (t, parent, column)
}

/// The labels that are placed below a parent.
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
