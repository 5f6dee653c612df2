//! The forecast of memory against what training takes, counted by the allocator.

mod common;
#[path = "common/counting.rs"]
mod counting;

use aquila::xlinear::{TrainInputs, TrainParams, forecast, forecast_given, train};
use aquila::{Csr, Dense, Features};
use common::{Rng, control, texts};
use counting::{live, peak};
use std::sync::{Mutex, PoisonError};

/// All tests count with the same allocator: one at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn the_forecast_is_at_least_the_peak_and_not_three_times_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let default = TrainParams::default;
    let mut sets: Vec<(&str, (Features, Csr), TrainParams, usize)> = vec![
        ("texts", texts(8000, 20_000, 2000, 40), default(), 2),
        ("many labels", texts(8000, 10_000, 8000, 20), default(), 2),
        ("many features", texts(4000, 200_000, 1000, 60), default(), 2),
        ("many rows", texts(20_000, 5000, 200, 20), default(), 2),
    ];
    let mut f32s = default();
    f32s.model.weights = aquila::xlinear::WeightKind::F32;
    f32s.tree.vector_entries = 0;
    f32s.solver.threshold = 0.01;
    sets.push(("f32, whole vectors, nearly all weights", texts(6000, 20_000, 1500, 40), f32s, 2));
    let mut kary = default();
    kary.tree.split = aquila::xlinear::SplitKind::Kary;
    sets.push(("kary", texts(4000, 20_000, 2000, 30), kary, 2));
    sets.push(("one thread", texts(8000, 20_000, 2000, 40), default(), 1));
    sets.push(("five threads", texts(8000, 20_000, 2000, 40), default(), 5));
    let mut matcher = default();
    matcher.solver.negatives = aquila::xlinear::Negatives::Both;
    matcher.tree.max_leaf = 20;
    matcher.solver.relevance = aquila::xlinear::Relevance::Induce;
    sets.push(("negatives of the matcher", texts(6000, 10_000, 2000, 30), matcher, 2));
    let mut few = default();
    (few.solver.max_weights, few.model.normalize) = (50, false);
    sets.push(("few weights", texts(6000, 10_000, 2000, 30), few, 2));
    for (name, copies, cap, labels) in [
        ("two leaves a label", 2, 1.0, 2000),
        ("two leaves a label, all labels under the root", 2, 1e6, 300),
        ("four leaves a label, many labels", 4, 1.0, 8000),
    ] {
        let mut overlap = default();
        (overlap.tree.max_leaf, overlap.overlap.copies) = (20, copies);
        (overlap.overlap.leaf_cap, overlap.overlap.root_cap) = (4.0, cap);
        sets.push((name, texts(6000, 10_000, labels, 30), overlap, 2));
    }
    for (name, labels) in [("a dense block", 2000), ("a dense block, few labels", 100)] {
        let ((x, y), cols) = (texts(6000, 10_000, labels, 30), 300);
        let mut rng = Rng::new(8);
        let block = (0..x.rows() * cols).map(|_| rng.unit() as f32 - 0.5).collect();
        let block = Dense::new(x.rows(), cols, block).unwrap();
        sets.push((name, (Features::new(x.sparse().clone(), Some(block)).unwrap(), y), default(), 2));
    }
    let (x, y) = texts(3000, 10_000, 12_000, 30);
    let block = (0..x.rows() * 256).map(|e| (e % 97) as f32 - 48.0).collect();
    sets.push((
        "many labels, a dense block alone",
        (Dense::new(x.rows(), 256, block).unwrap().into(), y),
        default(),
        2,
    ));
    let mut wrong = Vec::new();
    for (name, (x, y), p, threads) in sets {
        let c = control(threads, 0);
        let need = forecast(&x, &y, &p, threads) as f64;
        let block = x.dense().map_or(0, |d| size_of_val(d.values()) as u64);
        let before = live() - x.sparse().bytes() - y.bytes() - block;
        let (model, peak) = peak(|| train(&x, &y, &p, TrainInputs::default(), &c).unwrap().0);
        let peak = (peak - before) as f64;
        drop(model);
        println!("{name}: forecast {:.1} MB, peak {:.1} MB, {:.2}", need / 1e6, peak / 1e6, need / peak);
        if !(1.0..3.0).contains(&(need / peak)) {
            wrong.push(format!("{name}: forecast {:.1} MB, peak {:.1} MB", need / 1e6, peak / 1e6));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Label vectors of so many columns with so many entries each.
fn given(labels: usize, cols: usize, entries: usize) -> Csr {
    let mut rng = Rng::new(5);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for _ in 0..labels {
        let mut row: Vec<u32> = (0..entries).map(|_| rng.below(cols) as u32).collect();
        row.sort_unstable();
        row.dedup();
        indices.extend(row);
        indptr.push(indices.len());
    }
    let ones = vec![1.0; indices.len()];
    Csr::new(labels, cols, indptr, indices, ones).unwrap()
}

#[test]
fn label_vectors_that_are_given_count() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (x, y) = texts(2000, 3000, 500, 20);
    for (name, cols, entries, vector_entries, kary) in [
        ("many entries", 100_000, 2000, 0, false),
        ("cut ones", 100_000, 2000, 256, false),
        ("many columns", 2_000_000, 3000, 0, false),
        ("many columns, clusters of any size", 2_000_000, 3000, 0, true),
        ("most columns that nobody has", 30_000_000, 50, 0, false),
    ] {
        let mut p = TrainParams::default();
        p.tree.vector_entries = vector_entries;
        if kary {
            p.tree.split = aquila::xlinear::SplitKind::Kary;
        }
        let before = live() - x.sparse().bytes() - y.bytes();
        let inputs = TrainInputs { label_vectors: Some(given(500, cols, entries)), ..TrainInputs::default() };
        let need = forecast_given(&x, &y, &p, &inputs, 2);
        let mut c = control(2, 0);
        c.memory_limit = need - 1;
        let error = train(&x, &y, &p, inputs.clone(), &c).unwrap_err();
        assert_eq!(error.code(), aquila::ErrorCode::MemoryLimit);
        c.memory_limit = need;
        let (model, peak) = peak(|| train(&x, &y, &p, inputs, &c).unwrap().0);
        drop(model);
        let peak = (peak - before) as f64;
        let ratio = need as f64 / peak;
        println!("{name}: forecast {:.1} MB, peak {:.1} MB, {ratio:.2}", need as f64 / 1e6, peak / 1e6);
        assert!((1.0..3.0).contains(&ratio), "{name}: {ratio:.2}");
    }
}
