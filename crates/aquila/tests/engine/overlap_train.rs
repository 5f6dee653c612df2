//! Training with labels under several leaves, from rows to predictions.

use aquila::control::Control;
use aquila::tree::{LabelTree, NODE};
use aquila::xlinear::{Model, PredictParams, Scope, TrainInputs, TrainParams, train};
use aquila::{Csr, ErrorCode, Features};
use std::sync::{Arc, Mutex};

use crate::common::{Rng, control, csr, random_tree, separable};

fn params(copies: u32) -> TrainParams {
    let mut p = TrainParams::default();
    (p.tree.max_leaf, p.overlap.copies) = (4, copies);
    p
}

fn learn(x: &Features, y: &Csr, p: &TrainParams, inputs: TrainInputs, threads: usize) -> Model {
    train(x, y, p, inputs, &control(threads, 5)).unwrap().0
}

/// For each label how many slots it has.
fn slots(tree: &LabelTree) -> Vec<usize> {
    let mut slots = vec![0; tree.labels()];
    let all = tree.layers().iter().flat_map(|l| &l.labels);
    all.filter(|l| (**l as usize) < tree.labels()).for_each(|l| slots[*l as usize] += 1);
    slots
}

/// The labels under the root, ascending.
fn at_root(tree: &LabelTree) -> Vec<u32> {
    let root = tree.layers()[0].labels.iter().copied();
    let mut labels: Vec<u32> = root.filter(|l| (*l as usize) < tree.labels()).collect();
    labels.sort_unstable();
    labels
}

/// The labels under each parent of the last layer.
fn leaves(tree: &LabelTree) -> Vec<Vec<u32>> {
    let last = tree.layers().last().unwrap();
    (0..last.parents()).map(|p| last.labels[last.children(p)].to_vec()).collect()
}

/// Kind, layer and bytes.
type Section<'a> = (u32, u32, &'a [u8]);

/// The sections of a model file but the description, of kind 1, and that as JSON.
fn sections(model: &Model) -> (Vec<Section<'_>>, serde_json::Value) {
    let bytes = model.as_bytes();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let all = (64..u32_at(12) as usize).step_by(32).map(|e| {
        let begin = u64_at(e + 8);
        (u32_at(e), u32_at(e + 4), &bytes[begin..begin + u64_at(e + 16)])
    });
    let (description, others): (Vec<_>, Vec<_>) = all.partition(|s| s.0 == 1);
    (others, serde_json::from_slice(description[0].2).unwrap())
}

#[test]
fn one_copy_is_a_training_without_overlap_to_the_byte() {
    let (x, y) = separable(3, 240, 30);
    let mut without = TrainParams::default();
    without.tree.max_leaf = 4;
    let plain = learn(&x, &y, &without, TrainInputs::default(), 2);
    let one = learn(&x, &y, &params(1), TrainInputs::default(), 1);
    assert!(plain.as_bytes() == one.as_bytes());
    // Other options of overlap are written down in the description; all else is the same.
    let mut other = params(1);
    (other.overlap.rounds, other.overlap.update, other.overlap.leaf_cap) = (3, false, 0.0);
    let other = learn(&x, &y, &other, TrainInputs::default(), 2);
    let ((plain, mut told), (other, tells)) = (sections(&plain), sections(&other));
    assert!(plain == other && plain.len() > 6);
    for (name, value) in tells["params"].as_object().unwrap().iter().filter(|p| p.0.starts_with("overlap.")) {
        told["params"][name] = value.clone();
    }
    assert_eq!(told, tells);
}

#[test]
fn labels_keep_their_leaf_and_get_others_within_bounds_for_any_number_of_threads() {
    let (x, y) = separable(4, 400, 60);
    let plain = leaves(&learn(&x, &y, &params(1), TrainInputs::default(), 1).tree().unwrap());
    for (copies, cap, update, rounds) in
        [(2, 2.0, true, 1), (3, 1.5, true, 3), (2, 2.0, false, 1), (2, 0.0, true, 1)]
    {
        let mut p = params(copies);
        p.overlap.min_score = 0.0;
        (p.overlap.leaf_cap, p.overlap.update, p.overlap.rounds) = (cap, update, rounds);
        let one = learn(&x, &y, &p, TrainInputs::default(), 1);
        let three = learn(&x, &y, &p, TrainInputs::default(), 3);
        assert!(one.as_bytes() == three.as_bytes(), "{p:?}");
        let tree = one.tree().unwrap();
        let of = slots(&tree);
        assert!(of.iter().any(|n| *n > 1), "nobody has a second leaf: {p:?}");
        assert!(of.iter().all(|n| (1..=copies as usize + 1).contains(n)));
        let under_root = at_root(&tree);
        assert_eq!(under_root.is_empty(), cap == 0.0 || !update, "{p:?}");
        if cap > 0.0 {
            let most = (cap as f64 * 60.0 / plain.len() as f64).ceil() as usize;
            let leaves_of = |l: usize| of[l] - usize::from(under_root.contains(&(l as u32)));
            assert!((0..60).all(|l| leaves_of(l) <= copies as usize));
            for (own, now) in plain.iter().zip(leaves(&tree)) {
                let kept = own.iter().all(|l| now.contains(l));
                assert!(kept && now.len() <= most.max(own.len()), "{own:?} {now:?}");
            }
        }
        let top = one.predict(&x, &PredictParams::default(), &Scope::All, &Control::with_threads(2)).unwrap();
        let right = (0..x.rows()).filter(|i| {
            let row = y.row(*i);
            row.is_empty() || row.indices.contains(&top.labels[top.indptr[*i]])
        });
        assert!(right.count() * 10 > x.rows() * 9);
    }
}

/// A model and the reports of its training, each as stage and total.
fn watched(x: &Features, y: &Csr, p: &TrainParams) -> (Model, Vec<(&'static str, u64)>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut control = control(2, 5);
    let to = Arc::clone(&told);
    control.on_progress(move |report| to.lock().unwrap().push((report.stage, report.total)));
    let (model, _) = train(x, y, p, TrainInputs::default(), &control).unwrap();
    let told = told.lock().unwrap().clone();
    (model, told)
}

#[test]
fn matchers_learn_no_labels_and_rounds_end_where_nothing_changes() {
    let (x, y) = separable(4, 400, 60);
    for leaf_cap in [2.0, 0.0] {
        let mut p = params(2);
        (p.overlap.rounds, p.overlap.leaf_cap) = (100, leaf_cap);
        let (all, told) = watched(&x, &y, &p);
        let layers = all.tree().unwrap().layers().to_vec();
        let nodes = |labels: &[u32]| labels.iter().filter(|l| **l == NODE).count() as u64;
        let upper: u64 = layers.iter().map(|l| nodes(&l.labels)).sum();
        let of = |stage| told.iter().filter(move |t| t.0 == stage);
        assert!(of("matcher").count() > 0 && of("matcher").all(|t| t.1 == upper), "{told:?}");
        // A report when the matcher is learned and one when labels are placed.
        let rounds = of("overlap").count() as u32 / 2;
        assert!((2..100).contains(&rounds), "leaf cap {leaf_cap}: {rounds} rounds");
        // The last one found nothing to change, the one before it did.
        let mut with = |rounds| {
            p.overlap.rounds = rounds;
            learn(&x, &y, &p, TrainInputs::default(), 1).tree().unwrap()
        };
        let [last, before, earlier] = [rounds, rounds - 1, rounds - 2].map(|n| with(n.max(1)));
        assert_eq!((&all.tree().unwrap(), &last), (&before, &before));
        assert!(rounds == 2 || before != earlier, "leaf cap {leaf_cap}: {rounds} rounds");
    }
}

#[test]
fn without_update_the_upper_layers_stay_those_of_the_first_matcher() {
    let (x, y) = separable(4, 400, 60);
    let mut p = params(2);
    p.overlap.root_cap = 0.0;
    let upper = |p: &TrainParams| {
        let model = learn(&x, &y, p, TrainInputs::default(), 2);
        let last = model.tree().unwrap().layers().len() as u32 - 1;
        let (all, _) = sections(&model);
        // The biases, of kind 6, that the solver learned.
        let own: Vec<_> = all.iter().filter(|s| s.0 == 6 && s.1 < last).map(|s| s.2.to_vec()).collect();
        (own, model.info().several)
    };
    let (plain, _) = upper(&params(1));
    p.overlap.update = false;
    let (kept, several) = upper(&p);
    assert!(several > 0 && !plain.is_empty());
    p.overlap.update = true;
    let (updated, _) = upper(&p);
    assert!(plain == kept && plain != updated);
}

#[test]
fn the_papers_form_of_one_copy_moves_labels_to_their_most_counted_leaf() {
    // Label 0 stands beside 1 to 3, but in some of the rows of 5 and nowhere else.
    let of = |i: usize| 1 + i as u32 % 7;
    let x: Vec<Vec<(u32, f32)>> = (0..420).map(|i| vec![(of(i), 1.0), (8, 0.5)]).collect();
    let also = |i: usize| of(i) == 5 && i.is_multiple_of(3);
    let y: Vec<Vec<(u32, f32)>> =
        (0..420).map(|i| also(i).then_some((0, 1.0)).into_iter().chain([(of(i), 1.0)]).collect()).collect();
    let (x, y) = (Features::from(csr(9, &x)), csr(8, &y));
    let tree =
        LabelTree::from_json(r#"{ "aquilaTree": 1, "labels": 8, "root": [[0, 1, 2, 3], [4, 5, 6, 7]] }"#);
    let inputs = TrainInputs { tree: Some(tree.unwrap()), ..TrainInputs::default() };
    let mut p = params(1);
    (p.overlap.leaf_cap, p.solver.matcher_beam) = (0.0, 1);
    let moved = learn(&x, &y, &p, inputs.clone(), 1);
    assert!(moved.as_bytes() == learn(&x, &y, &p, inputs.clone(), 3).as_bytes());
    assert_eq!(leaves(&moved.tree().unwrap()), [vec![1, 2, 3], vec![4, 5, 6, 7, 0]]);
    // Without update, and with a bound, one copy leaves all where they are.
    for (leaf_cap, update) in [(0.0, false), (2.0, true)] {
        (p.overlap.leaf_cap, p.overlap.update) = (leaf_cap, update);
        let same = learn(&x, &y, &p, inputs.clone(), 2).tree().unwrap();
        assert_eq!(leaves(&same), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    }
}

#[test]
fn further_labels_open_no_further_chunk() {
    // Two leaves of 76 labels, and room for 152 in each: but a chunk has 128 columns.
    let (x, y) = separable(6, 900, 152);
    let mut p = params(2);
    (p.tree.max_leaf, p.overlap.min_score) = (100, 0.0);
    let model = learn(&x, &y, &p, TrainInputs::default(), 2);
    let sizes: Vec<usize> = leaves(&model.tree().unwrap()).iter().map(Vec::len).collect();
    assert_eq!(sizes, [128, 128]);
}

#[test]
fn the_most_frequent_labels_hang_under_the_root_too() {
    let (x, y) = separable(4, 400, 60);
    let mut counts = vec![0usize; 60];
    y.iter_rows().for_each(|r| r.indices.iter().for_each(|l| counts[*l as usize] += 1));
    let mut by_count: Vec<u32> = (0..60).collect();
    by_count.sort_by_key(|l| (std::cmp::Reverse(counts[*l as usize]), *l));
    let plain = learn(&x, &y, &params(1), TrainInputs::default(), 1).tree().unwrap();
    assert!(at_root(&plain).is_empty());
    let nodes = plain.layers()[0].columns();
    for (cap, most) in [(0.0, 0), (0.5, nodes.div_ceil(2)), (1.0, nodes), (1e6, 60)] {
        let mut p = params(2);
        p.overlap.root_cap = cap;
        p.overlap.rounds = 2;
        let model = learn(&x, &y, &p, TrainInputs::default(), 2);
        let tree = model.tree().unwrap();
        let mut want = by_count[..most].to_vec();
        want.sort_unstable();
        assert_eq!(at_root(&tree), want);
        // Slots under the root are no leaves, and no reason to call a label one of several leaves.
        let further = slots(&tree).iter().sum::<usize>() - 60 - most;
        assert_eq!(model.info().several, further);
        assert_eq!(model.info().at_root, most);
        for meanings in model.meanings(&want, 0, &Control::default()).unwrap() {
            assert!(meanings.leaves.iter().all(|leaf| leaf.layer > 0), "{meanings:?}");
        }
    }
}

#[test]
fn a_label_whose_rows_would_crowd_a_leaf_gets_a_slot_under_the_root_instead() {
    // Label 0 is in every row, wherever its other labels lead; leaves hold up to 8 labels.
    let (x, y) = separable(12, 400, 60);
    let rows: Vec<Vec<(u32, f32)>> =
        y.iter_rows().map(|r| [(0, 1.0)].into_iter().chain(r.iter().filter(|e| e.0 > 0)).collect()).collect();
    let y = csr(60, &rows);
    let tree = |cap| {
        let mut p = params(2);
        (p.overlap.root_cap, p.overlap.min_score, p.overlap.leaf_cap) = (cap, 0.0, 3.0);
        learn(&x, &y, &p, TrainInputs::default(), 2).tree().unwrap()
    };
    let (without, with) = (tree(0.0), tree(1.0));
    assert_eq!((slots(&without)[0], at_root(&without)), (2, vec![]));
    assert_eq!((slots(&with)[0], at_root(&with).contains(&0)), (2, true));
}

#[test]
fn a_label_of_two_meanings_gets_a_leaf_for_each() {
    // Labels 2m and 2m + 1 become one: rows of either show features of their own.
    let (x, y) = separable(9, 1200, 60);
    let fused: Vec<Vec<(u32, f32)>> = y
        .iter_rows()
        .map(|r| {
            let mut labels: Vec<u32> = r.indices.iter().map(|l| l % 30).collect();
            labels.sort_unstable();
            labels.dedup();
            labels.into_iter().map(|l| (l, 1.0)).collect()
        })
        .collect();
    let y = csr(30, &fused);
    let model = learn(&x, &y, &params(2), TrainInputs::default(), 2);
    let several = slots(&model.tree().unwrap()).iter().filter(|n| **n > 1).count();
    assert!(several > 0, "{several}");
}

#[test]
fn trees_with_no_choice_stay_as_they_are() {
    let (x, y) = separable(5, 120, 12);
    for max_leaf in [100, 12] {
        // All labels under the root.
        let mut p = params(7);
        p.tree.max_leaf = max_leaf;
        let model = learn(&x, &y, &p, TrainInputs::default(), 2);
        assert_eq!(model.tree().unwrap().layers().len(), 1);
        assert_eq!(model.info().slots, 12);
    }
    // More copies than leaves: at most every leaf, under no cap.
    let mut p = params(1000);
    (p.overlap.min_score, p.overlap.leaf_cap) = (0.0, 1000.0);
    let tree = learn(&x, &y, &p, TrainInputs::default(), 2).tree().unwrap();
    let most = leaves(&tree).len();
    assert!(slots(&tree).iter().all(|n| *n <= most + 1), "{most}");
}

#[test]
fn trees_of_any_shape_and_all_kinds_of_negatives_are_served() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let (x, y) = separable(seed + 1, 200, 40);
        let tree = random_tree(&mut rng, 40, seed as usize * 3);
        let mut p = params(3);
        p.overlap.min_score = 0.0;
        p.overlap.update = seed % 2 == 0;
        p.solver.negatives = [
            aquila::xlinear::Negatives::Siblings,
            aquila::xlinear::Negatives::Matcher,
            aquila::xlinear::Negatives::Both,
        ][seed as usize % 3];
        let inputs = TrainInputs { tree: Some(tree.clone()), ..TrainInputs::default() };
        let model = learn(&x, &y, &p, inputs.clone(), 2);
        let now = model.tree().unwrap();
        for (before, after) in slots(&tree).iter().zip(slots(&now)) {
            assert!(after >= *before && after <= (*before).max(3) + 1);
        }
        assert_eq!(LabelTree::from_json(&now.to_json()).unwrap(), now);
        assert!(model.as_bytes() == learn(&x, &y, &p, inputs, 3).as_bytes());
    }
}

#[test]
fn labels_without_rows_keep_their_one_leaf() {
    let (x, y) = separable(6, 200, 20);
    let rows: Vec<Vec<(u32, f32)>> =
        y.iter_rows().map(|r| r.iter().filter(|e| e.0 % 5 > 0).collect()).collect();
    let y = csr(20, &rows);
    let mut p = params(2);
    p.overlap.min_score = 0.0;
    let tree = learn(&x, &y, &p, TrainInputs::default(), 2).tree().unwrap();
    let of = slots(&tree);
    assert!((0..20).step_by(5).all(|l| of[l] == 1), "{of:?}");
    assert!(at_root(&tree).iter().all(|l| l % 5 > 0));
    assert!(of.iter().any(|n| *n > 1));
}

#[test]
fn bad_parameters_are_named() {
    let (x, y) = separable(7, 60, 8);
    let mut p = params(0);
    let refuse = |p: &TrainParams| {
        let e = train(&x, &y, p, TrainInputs::default(), &Control::with_threads(1)).unwrap_err();
        assert_eq!(e.code(), ErrorCode::InvalidArgument);
        e.message().to_owned()
    };
    assert_eq!(refuse(&p), "Expected an integer from 1 to 1000 for overlap.copies but received 0");
    p.overlap.copies = 2;
    p.overlap.leaf_cap = -1.0;
    assert!(refuse(&p).contains("overlap.leafCap"));
    p.overlap.leaf_cap = 2.0;
    p.overlap.min_score = f32::NAN;
    assert!(refuse(&p).contains("overlap.minScore"));
    p.overlap.min_score = 0.1;
    p.overlap.root_cap = -1.0;
    assert!(refuse(&p).contains("overlap.rootCap"));
}
