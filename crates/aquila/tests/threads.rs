//! Every heavy call works in a pool of its own size: none of them starts rayon's global pool.

mod common;

use aquila::data::{LibsvmOptions, read_libsvm, read_xmc, write_libsvm, write_xmc};
use aquila::eagle::{
    AggregateParams, AssignParams, ClusterParams, Groups, LearnParams, RefineParams, advise, assign, embed,
    learn, likeness, refine,
};
use aquila::metrics::{Evaluator, Metrics};
use aquila::overlap::{Bounds, Leaves, Reached, capped, most_counted};
use aquila::tree::{
    Bisection, Clustering, Cut, LabelVectors, Pifa, Points, Shape, Split, build, given, pii, whole_is_better,
};
use aquila::xlinear::{OverlapParams, PredictParams, Scope, TrainInputs, TrainParams, train};
use aquila::{Csr, Dense, Features};
use common::{Rng, csr};

/// Labels that two features each tell apart, and two features of chance.
fn data(rows: usize, labels: usize) -> (Csr, Csr) {
    let mut rng = Rng::new(7);
    let x: common::Lists = (0..rows)
        .map(|i| {
            let label = (i % labels) as u32;
            vec![(label, 1.0), (labels as u32 + label, 0.5), ((2 * labels + rng.below(20)) as u32, 0.3)]
        })
        .collect();
    let y: common::Lists = (0..rows).map(|i| vec![((i % labels) as u32, 1.0)]).collect();
    (csr(2 * labels + 20, &x), csr(labels, &y))
}

#[test]
fn no_heavy_call_starts_the_global_pool() {
    let control = &common::control(2, 0);
    let (x, y) = data(2400, 1200);
    let dense = Dense::new(x.rows(), 3, (0..3 * x.rows()).map(|i| (i % 7) as f32 * 0.1).collect()).unwrap();
    let both = Features::new(x.clone(), Some(dense)).unwrap();
    let features = Features::from(x.clone());

    let mut params = TrainParams::default();
    params.tree.max_leaf = 20;
    let (model, _) = train(&both, &y, &params, TrainInputs::default(), control).unwrap();
    params.overlap = OverlapParams { copies: 2, ..OverlapParams::default() };
    let (overlap, _) = train(&features, &y, &params, TrainInputs::default(), control).unwrap();
    overlap.meanings(&[0, 1], 3, control).unwrap();
    overlap.verify(control).unwrap();
    let found = model.predict(&both, &PredictParams::default(), &Scope::All, control).unwrap();
    model.predict(&both, &PredictParams::default(), &Scope::Chosen(y.clone()), control).unwrap();
    let mut evaluator = Evaluator::new(&Metrics::default(), y.cols()).unwrap();
    evaluator.add_all(&found, &y, control).unwrap();

    let labels_rows = y.transpose();
    let pifa = Pifa::new(&x, x.values(), &labels_rows);
    let vectors = || pifa.all(Cut::to(4), control).unwrap();
    pifa.some(&[1, 2], Cut::to(4), control).unwrap();
    pii(&labels_rows, Cut::to(4), control).unwrap();
    let own: LabelVectors = given(&labels_rows, Cut::to(4), control).unwrap().into();
    let bisection = Bisection { spherical: true, iterations: 5, sample: 100 };
    let clustering = Clustering { k: 4, spherical: true, iterations: 5 };
    whole_is_better(&pifa, Cut::to(4), bisection, control).unwrap();
    let shape = |split| Shape { max_leaf: 20, arity: 8, split };
    let tree = build(vectors(), &shape(Split::Balanced(bisection)), control).unwrap();
    build(own, &shape(Split::Kary(clustering)), control).unwrap();
    let rng = || aquila::rng::Rng::new(&[1]);
    bisection.split(&Points::new(vectors()), rng(), control).unwrap();
    clustering.split(&Points::new(vectors()), rng(), control).unwrap();

    let leaves = Leaves::of(&tree);
    let width = leaves.count();
    let reached = Reached::new(
        width,
        (0..x.rows()).map(|i| [(i % width, 0.5), ((i + 1) % width, 0.4)].map(|(c, s)| (c as u32, s))),
    );
    most_counted(&leaves, &labels_rows, &reached, 2, control).unwrap();
    let bounds = Bounds { copies: 2, cap: 100, min_score: 0.0, settled: &[] };
    capped(&leaves, &labels_rows, &reached, bounds, control).unwrap();

    let groups = Groups::random(x.rows(), 4, 0).unwrap();
    Groups::kmeans(&both, &ClusterParams::default(), control).unwrap();
    let bags = groups.aggregate(&y, AggregateParams::default().merge, control).unwrap();
    likeness(&both, &groups, control).unwrap();
    advise(&both, &groups, &bags, control).unwrap();
    assign(&both, &groups, &bags, &AssignParams::default(), true, control).unwrap();
    embed(&both, &groups, &bags, &AssignParams::default(), control).unwrap();
    refine(&features, &groups, &bags, &RefineParams::default(), &TrainParams::default(), control).unwrap();
    learn(&both, &groups, &bags, &LearnParams::default(), TrainInputs::default(), control).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.txt");
    write_xmc(&path, &features, &y, control).unwrap();
    read_xmc(&path, control).unwrap();
    write_libsvm(&path, &features, &y, false, control).unwrap();
    read_libsvm(&path, LibsvmOptions::default(), control).unwrap();

    // It can be made only once: so nobody has.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("a heavy call used the global pool");
}
