//! The forecast of memory against what training takes, counted by the allocator.

mod common;

use aquila::xlinear::{TrainInputs, TrainParams, forecast, train};
use aquila::{Csr, Dense, Features};
use common::{Lists, Rng, control, csr};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed to the system's allocator; only numbers are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }
    // Large blocks are moved by the page tables alone, without a second copy.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let live = LIVE.fetch_add(size, Ordering::Relaxed) + size - layout.size();
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rows with features and labels of Zipf's frequencies, as texts have them.
fn texts(rows: usize, features: usize, labels: usize, words: usize) -> (Features, Csr) {
    let mut rng = Rng::new(rows as u64);
    let zipf = |rng: &mut Rng, n: usize| ((n as f64).powf(rng.unit()) - 1.0) as u32;
    let (mut x, mut y) = (Lists::new(), Lists::new());
    for i in 0..rows {
        let mut own: Vec<u32> = vec![(i % labels) as u32];
        own.extend((0..3).map(|_| zipf(&mut rng, labels)));
        own.sort_unstable();
        own.dedup();
        let mut row: Vec<u32> = (0..words).map(|_| zipf(&mut rng, features)).collect();
        // Words of its labels.
        row.extend(own.iter().flat_map(|l| (1..4u32).map(move |k| (l * 31 + k * 977) % features as u32)));
        row.sort_unstable();
        row.dedup();
        x.push(row.into_iter().map(|j| (j, 0.2 + rng.unit() as f32)).collect());
        y.push(own.into_iter().map(|l| (l, 1.0)).collect());
    }
    (csr(features, &x).into(), csr(labels, &y))
}

#[test]
fn the_forecast_is_at_least_the_peak_and_not_three_times_it() {
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
    for (name, labels) in [("a dense block", 2000), ("a dense block, few labels", 100)] {
        let ((x, y), cols) = (texts(6000, 10_000, labels, 30), 300);
        let mut rng = Rng::new(8);
        let block = (0..x.rows() * cols).map(|_| rng.unit() as f32 - 0.5).collect();
        let block = Dense::new(x.rows(), cols, block).unwrap();
        sets.push((name, (Features::new(x.sparse().clone(), Some(block)).unwrap(), y), default(), 2));
    }
    let mut wrong = Vec::new();
    for (name, (x, y), p, threads) in sets {
        let c = control(threads, 0);
        let need = forecast(&x, &y, &p, threads) as f64;
        let block = x.dense().map_or(0, |d| size_of_val(d.values()) as u64);
        let before = LIVE.load(Ordering::Relaxed) as u64 - x.sparse().bytes() - y.bytes() - block;
        PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
        let model = train(&x, &y, &p, TrainInputs::default(), &c).unwrap().0;
        let peak = (PEAK.load(Ordering::Relaxed) as u64 - before) as f64;
        drop(model);
        println!("{name}: forecast {:.1} MB, peak {:.1} MB, {:.2}", need / 1e6, peak / 1e6, need / peak);
        if !(1.0..3.0).contains(&(need / peak)) {
            wrong.push(format!("{name}: forecast {:.1} MB, peak {:.1} MB", need / 1e6, peak / 1e6));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
