//! Bad input of training, its memory limit, its cancellation and its progress.

use crate::common::{Lists, Rng, control, csr, lists, random_rows, refused, separable};
use aquila::control::{Control, Progress};
use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::xlinear::{Negatives, Relevance, TrainInputs, TrainParams, forecast, train};
use aquila::{Csr, ErrorCode, Features};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn refuse(x: &Features, y: &Csr, p: &TrainParams, inputs: TrainInputs, code: ErrorCode, words: &[&str]) {
    refused(train(x, y, p, inputs, &control(1, 0)), code, words);
}

#[test]
fn what_does_not_fit_is_named() {
    use ErrorCode::*;
    let (x, y) = separable(1, 30, 5);
    let p = TrainParams::default();
    let none = TrainInputs::default;
    let short: Features = csr(x.cols(), &lists(x.sparse())[..29]).into();
    refuse(&short, &y, &p, none(), ShapeMismatch, &["x has 29 rows", "y has 30"]);
    refuse(&csr(3, &[]).into(), &csr(2, &[]), &p, none(), InvalidArgument, &["0 rows"]);
    refuse(
        &csr(0, &[vec![]]).into(),
        &csr(1, &[vec![(0, 1.0)]]),
        &p,
        none(),
        InvalidArgument,
        &["0 features"],
    );
    refuse(&csr(1, &[vec![]]).into(), &csr(0, &[vec![]]), &p, none(), InvalidArgument, &["0 labels"]);
    for empty in [vec![], vec![(1, 0.0)]] {
        refuse(&x, &csr(5, &vec![empty; 30]), &p, none(), InvalidArgument, &["no labels at all"]);
    }
    let inputs = TrainInputs { tree: Some(LabelTree::flat(4).unwrap()), ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["tree has 4 labels", "5 columns"]);
    let inputs = TrainInputs { label_vectors: Some(csr(3, &vec![vec![(0, 1.0)]; 6])), ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["6 label vectors", "5 columns"]);
    let inputs = TrainInputs { negatives: Some(csr(4, &vec![vec![]; 30])), ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["30 x 4", "30 x 5"]);
    let inputs = TrainInputs { negatives: Some(csr(5, &vec![vec![]; 29])), ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["29 x 5", "30 x 5"]);
    let inputs = TrainInputs { label_names: vec!["one".into()], ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["1 label names", "5 columns"]);
    let inputs = TrainInputs { feature_names: vec!["one".into(); 2], ..none() };
    refuse(&x, &y, &p, inputs, ShapeMismatch, &["2 feature names", "columns"]);

    let mut other = lists(&y);
    other[0] = vec![];
    let wide = csr(6, &lists(&y));
    for relevance in [csr(5, &other), wide] {
        let inputs = TrainInputs { relevance: Some(relevance), ..none() };
        refuse(&x, &y, &p, inputs, ShapeMismatch, &["relevance", "pattern"]);
    }
    let mut less = lists(&y);
    less[3][0].1 = -0.25;
    let inputs = TrainInputs { relevance: Some(csr(5, &less)), ..none() };
    refuse(&x, &y, &p, inputs, InvalidArgument, &["at least 0", "-0.25"]);
    // Where y's own values weigh, they are relevances too.
    for relevance in [Relevance::Induce, Relevance::Leaves] {
        let mut p = p.clone();
        p.solver.relevance = relevance;
        refuse(&x, &csr(5, &less), &p, none(), InvalidArgument, &["-0.25", "solver.relevance"]);
    }
    train(&x, &csr(5, &less), &p, none(), &control(1, 0)).unwrap();
}

#[test]
fn parameters_out_of_range_are_named() {
    let (x, y) = separable(1, 30, 5);
    type Set = fn(&mut TrainParams);
    let set: [(&str, Set); 6] = [
        ("tree.maxLeaf", |p| p.tree.max_leaf = 0),
        ("tree.arity", |p| p.tree.arity = 1),
        ("solver.cp", |p| p.solver.cp = f32::NAN),
        ("solver.cn", |p| p.solver.cn = -1.0),
        ("solver.maxPasses", |p| p.solver.max_passes = 0),
        ("solver.threshold", |p| p.solver.threshold = f32::INFINITY),
    ];
    for (name, set) in set {
        let mut p = TrainParams::default();
        set(&mut p);
        refuse(&x, &y, &p, TrainInputs::default(), ErrorCode::InvalidArgument, &["Expected", name]);
    }
}

#[test]
fn a_limit_below_the_forecast_is_kept() {
    let (x, y) = separable(1, 200, 20);
    let p = TrainParams::default();
    let need = forecast(&x, &y, &p, 1);
    let mut c = control(1, 0);
    c.memory_limit = need - 1;
    let words = ["forecast to need", "raise the limit", "tree.vectorEntries"];
    refused(train(&x, &y, &p, TrainInputs::default(), &c), ErrorCode::MemoryLimit, &words);
    c.memory_limit = need;
    assert_eq!(train(&x, &y, &p, TrainInputs::default(), &c).unwrap().1.forecast_bytes, need);
    // A claim of billions of labels or features is forecast, not allocated.
    let wide = csr(4_000_000_000, &[vec![(3_999_999_999, 1.0)]]);
    let narrow = csr(1, &[vec![(0, 1.0)]]);
    c.memory_limit = 1 << 30;
    let inputs = TrainInputs::default;
    refused(train(&wide.clone().into(), &narrow, &p, inputs(), &c), ErrorCode::MemoryLimit, &words[..2]);
    refused(train(&narrow.into(), &wide, &p, inputs(), &c), ErrorCode::MemoryLimit, &words[..2]);
}

/// Rows that keep a thread busy for a second or more.
fn heavy() -> (Features, Csr, TrainParams) {
    let mut rng = Rng::new(5);
    let x: Features = csr(2000, &random_rows(&mut rng, 12_000, 2000, 0.03)).into();
    let y: Lists = (0..12_000)
        .map(|_| {
            let mut own: Vec<u32> = (0..4).map(|_| rng.below(3000) as u32).collect();
            own.sort_unstable();
            own.dedup();
            own.into_iter().map(|l| (l, 1.0)).collect()
        })
        .collect();
    let mut p = TrainParams::default();
    (p.solver.eps, p.solver.max_passes, p.tree.max_leaf) = (1e-6, 300, 300);
    (x, csr(3000, &y), p)
}

#[test]
fn a_cancelled_call_does_not_begin() {
    let (x, y, p) = heavy();
    for tree in [None, Some(LabelTree::flat(3000).unwrap())] {
        let c = control(2, 0);
        c.cancel_flag().store(true, Ordering::Relaxed);
        let since = Instant::now();
        let inputs = TrainInputs { tree, ..TrainInputs::default() };
        refused(train(&x, &y, &p, inputs, &c), ErrorCode::Cancelled, &[]);
        assert!(since.elapsed() < Duration::from_millis(200), "{:?}", since.elapsed());
    }
}

#[test]
fn another_thread_cancels() {
    let (x, y, p) = heavy();
    for after in [5, 60, 250] {
        let c = control(2, 0);
        let flag = c.cancel_flag();
        let cancelled = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            flag.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let result = train(&x, &y, &p, TrainInputs::default(), &c);
        let late = cancelled.join().unwrap().elapsed();
        refused(result, ErrorCode::Cancelled, &[]);
        assert!(late < Duration::from_millis(200), "after {after} ms: {late:?} late");
    }
}

#[test]
fn the_listener_cancels_in_every_stage() {
    let (x, y) = separable(3, 300, 60);
    let mut p = TrainParams::default();
    (p.tree.max_leaf, p.tree.arity) = (5, 3);
    for negatives in [Negatives::Siblings, Negatives::Both] {
        p.solver.negatives = negatives;
        for stage in ["labelVectors", "tree", "layers", "layout"] {
            let mut c = control(2, 0);
            let (flag, at) = (c.cancel_flag(), Arc::new(Mutex::new(None)));
            let seen = Arc::clone(&at);
            c.on_progress(move |now: &Progress| {
                if now.stage == stage && !flag.swap(true, Ordering::Relaxed) {
                    *seen.lock().unwrap() = Some(Instant::now());
                }
            });
            refused(train(&x, &y, &p, TrainInputs::default(), &c), ErrorCode::Cancelled, &[]);
            let late = at.lock().unwrap().expect(stage).elapsed();
            assert!(late < Duration::from_millis(200), "{stage}: {late:?} late");
        }
    }
}

/// Every report of a training.
fn reports(p: &TrainParams, inputs: TrainInputs, threads: usize) -> Vec<Progress> {
    let (x, y) = separable(3, 300, 60);
    let all = Arc::new(Mutex::new(Vec::new()));
    let mut c = control(threads, 0);
    let sink = Arc::clone(&all);
    c.on_progress(move |now: &Progress| sink.lock().unwrap().push(*now));
    train(&x, &y, p, inputs, &c).unwrap();
    drop(c);
    Arc::into_inner(all).unwrap().into_inner().unwrap()
}

#[test]
fn progress_goes_forward_stage_by_stage() {
    let tree = LabelTree::new(
        60,
        vec![
            TreeLayer { starts: vec![0, 2], labels: vec![NODE; 2] },
            TreeLayer { starts: vec![0, 30, 60], labels: (0..60).collect() },
        ],
    );
    let stages = ["forecast", "labelVectors", "tree", "layers", "layout"];
    let mut p = TrainParams::default();
    (p.tree.max_leaf, p.tree.arity) = (5, 3);
    for negatives in [Negatives::Siblings, Negatives::Both] {
        p.solver.negatives = negatives;
        for threads in [1, 2, 5] {
            for tree in [None, Some(tree.clone().unwrap())] {
                let given = tree.is_some();
                let expected = if given { [&stages[..1], &stages[3..]].concat() } else { stages.to_vec() };
                let all = reports(&p, TrainInputs { tree, ..TrainInputs::default() }, threads);
                let mut order: Vec<&str> = all.iter().map(|r| r.stage).collect();
                order.dedup();
                assert_eq!(order, expected, "{negatives:?}, {threads} threads");
                let need = all[0].forecast_bytes;
                assert!(need.is_some_and(|bytes| bytes > 1000), "{need:?}");
                assert!(all[1..].iter().all(|r| r.forecast_bytes.is_none()));
                for r in &all {
                    assert!(r.done <= r.total && r.total > 0, "{r:?}");
                    assert!(r.eta.is_finite() && r.seconds.is_finite() && r.seconds >= 0.0, "{r:?}");
                    assert_eq!((r.rows, r.labels), (300, 60));
                }
                for w in all.windows(2).filter(|w| w[0].stage == w[1].stage) {
                    assert!(w[0].done <= w[1].done && w[0].total == w[1].total, "{threads} threads: {w:?}");
                }
                let of_layers: Vec<Option<u32>> =
                    all.iter().filter(|r| r.stage == "layers").map(|r| r.layer).collect();
                assert!(of_layers.is_sorted() && of_layers[0].is_some(), "{of_layers:?}");
                let depth = of_layers.last().unwrap().unwrap();
                assert!(if given { depth == 2 } else { depth >= 2 }, "{depth} layers");
                assert!(all.iter().all(|r| r.layer.is_some() == (r.stage == "layers")));
                let layers = all.iter().rfind(|r| r.stage == "layers").unwrap();
                assert_eq!((layers.done, layers.eta), (layers.total, 0.0));
            }
        }
    }
}

#[test]
fn a_control_without_its_listener_shares_the_flag() {
    let mut c = Control::default();
    c.on_progress(|_| panic!("told"));
    let quiet = c.without_progress();
    quiet.report(&Progress { stage: "x", ..Progress::default() });
    c.cancel_flag().store(true, Ordering::Relaxed);
    refused(quiet.check(), ErrorCode::Cancelled, &["cancelled"]);
}
