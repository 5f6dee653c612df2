//! Forecasts of memory of work on labels of groups against what it takes, counted by the allocator.

mod common;
#[path = "common/counting.rs"]
mod counting;

use aquila::eagle::{
    AssignParams, ClusterParams, GroupMethod, Groups, LearnParams, Merge, RefineParams, advise, assign,
    embed, forecast, learn, likeness, refine, union,
};
use aquila::xlinear::{TrainInputs, TrainParams};
use aquila::{Control, Csr, Dense, ErrorCode, Features};
use common::{Rng, control, refused, texts};
use counting::{live, peak};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All tests count with the same allocator: one at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Case {
    name: &'static str,
    x: Features,
    groups: Groups,
    bags: Csr,
    threads: usize,
}

fn case(name: &'static str, (x, y): (Features, Csr), size: usize, threads: usize) -> Case {
    of(name, (x, &y), Groups::random(y.rows(), size, 3).unwrap(), threads)
}

fn of(name: &'static str, (x, y): (Features, &Csr), groups: Groups, threads: usize) -> Case {
    let bags = groups.aggregate(y, Merge::Set, &Control::default()).unwrap();
    Case { name, x, groups, bags, threads }
}

/// Groups of like samples, which refine to far more labels.
fn alike((x, y): (Features, Csr)) -> Case {
    let groups = Groups::kmeans(&x, &ClusterParams::default(), &Control::default()).unwrap();
    of("groups of like samples", (x, &y), groups, 2)
}

/// Everybody in two groups.
fn overlapping((x, y): (Features, Csr)) -> Case {
    let n = y.rows();
    let list = |stride: usize, j: usize| (0..5).map(|at| ((j * 5 + at) * stride % n) as u32).collect();
    let lists = (0..2 * (n / 5)).map(|j| list(if j < n / 5 { 1 } else { 7 }, j % (n / 5)));
    let groups = Groups::from_lists(n, lists).unwrap();
    of("two groups a sample", (x, &y), groups, 2)
}

fn cases() -> Vec<Case> {
    let ((x, y), cols) = (texts(3000, 5000, 300, 20), 200);
    let mut rng = Rng::new(8);
    let block = (0..x.rows() * cols).map(|_| rng.unit() as f32 - 0.5).collect();
    let block = Dense::new(x.rows(), cols, block).unwrap();
    let blocked = (Features::new(x.sparse().clone(), Some(block)).unwrap(), y);
    vec![
        case("texts", texts(6000, 10_000, 1500, 40), 5, 2),
        case("few labels", texts(8000, 5000, 60, 20), 5, 2),
        case("large groups", texts(6000, 5000, 300, 20), 20, 2),
        case("many features", texts(4000, 100_000, 500, 40), 4, 2),
        case("many labels", texts(6000, 5000, 4000, 20), 3, 2),
        case("many features and labels", texts(6000, 300_000, 2000, 40), 10, 2),
        case("one thread", texts(4000, 10_000, 400, 30), 5, 1),
        case("five threads", texts(4000, 10_000, 400, 30), 5, 5),
        case("a dense block", blocked, 5, 2),
        alike(texts(4000, 5000, 400, 30)),
        overlapping(texts(4000, 5000, 400, 20)),
    ]
}

/// The bytes of the rows.
fn bytes(x: &Features) -> u64 {
    x.sparse().bytes() + x.dense().map_or(0, |d| size_of_val(d.values()) as u64)
}

/// Compares what `forecast` says of each case with the peak of `work`.
fn compare<T>(forecast: impl Fn(&Case) -> u64, work: impl Fn(&Case, &Control) -> T) {
    let mut wrong = Vec::new();
    for case in cases() {
        let need = forecast(&case) as f64;
        let groups = (8 * case.groups.len() + 4 * case.groups.memberships_count()) as u64;
        let before = live() - bytes(&case.x) - groups - case.bags.bytes();
        let (done, peak) = peak(|| work(&case, &control(case.threads, 0)));
        drop(done);
        let peak = (peak - before) as f64;
        let line = format!(
            "{}: forecast {:.1} MB, peak {:.1} MB, {:.2}",
            case.name,
            need / 1e6,
            peak / 1e6,
            need / peak
        );
        println!("{line}");
        if !(1.0..3.0).contains(&(need / peak)) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn forecasts_are_at_least_the_peak_and_not_three_times_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let embeddings = AssignParams::default();
    for kept in [false, true] {
        compare(
            |c| forecast::embeddings(&c.x, &c.groups, &c.bags, kept, c.threads),
            |c, control| assign(&c.x, &c.groups, &c.bags, &embeddings, kept, control).unwrap(),
        );
    }
    compare(
        |c| forecast::embeddings(&c.x, &c.groups, &c.bags, true, c.threads),
        |c, control| embed(&c.x, &c.groups, &c.bags, &embeddings, control).unwrap(),
    );
    let rankers = TrainParams::default();
    for rounds in [0, 1] {
        let params = RefineParams { rounds, ..RefineParams::default() };
        compare(
            |c| {
                let control = control(c.threads, 0);
                let likeness = likeness(&c.x, &c.groups, &control).unwrap();
                forecast::refinement(&c.x, &c.groups, &c.bags, likeness, &params, &rankers, &control).unwrap()
            },
            |c, control| refine(&c.x, &c.groups, &c.bags, &params, &rankers, control).unwrap(),
        );
    }
    for method in [GroupMethod::Union, GroupMethod::Eagle, GroupMethod::Refine] {
        let mut params = LearnParams::default();
        params.group.method = method;
        compare(
            |c| {
                let control = control(c.threads, 0);
                let likeness = likeness(&c.x, &c.groups, &control).unwrap();
                forecast::learning(&c.x, &c.groups, &c.bags, likeness, &params, &control).unwrap()
            },
            |c, control| learn(&c.x, &c.groups, &c.bags, &params, TrainInputs::default(), control).unwrap(),
        );
    }
}

#[test]
fn forecasts_of_groups_and_their_labels_are_too() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // Rows are counted where they are not looked at, and what is, is not counted where it is not made yet.
    compare(
        |c| forecast::union(&c.groups, &c.bags) + bytes(&c.x),
        |c, control| union(&c.groups, &c.bags, control).unwrap(),
    );
    let params = ClusterParams::default();
    let groups = |c: &Case| (8 * c.groups.len() + 4 * c.groups.memberships_count()) as u64 + c.bags.bytes();
    compare(
        |c| forecast::clusters(&c.x, 10, c.threads) + groups(c),
        |c, control| Groups::kmeans(&c.x, &params, control).unwrap(),
    );
    for merge in [Merge::Set, Merge::List] {
        compare(
            |c| {
                forecast::bags(&c.groups, c.x.sparse(), merge) + c.bags.bytes() + bytes(&c.x)
                    - c.x.sparse().bytes()
            },
            |c, control| c.groups.aggregate(c.x.sparse(), merge, control).unwrap(),
        );
    }
    for (samples, size) in [(100_000, 1), (100_000, 10), (1000, 1000)] {
        let before = live();
        let (memberships, peak) = peak(|| Groups::random(samples, size, 0).unwrap().memberships());
        let ratio = forecast::random(samples, size) as f64 / (peak - before) as f64;
        println!("{samples} samples in groups of {size}: {ratio:.2}, {}", memberships.nnz());
        assert!((1.0..3.0).contains(&ratio), "{samples} samples in groups of {size}: {ratio:.2}");
    }
}

#[test]
fn a_dense_block_is_not_copied_to_forecast() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(case) = cases().into_iter().find(|c| c.x.dense().is_some()) else { panic!("no such case") };
    let block = case.x.dense().map_or(0, |d| size_of_val(d.values()) as u64);
    let mut limited = control(2, 0);
    limited.memory_limit = 1;
    let before = live();
    let (refused_all, peak) = peak(|| {
        let refined = RefineParams::default();
        let trained = TrainParams::default();
        let Case { x, groups, bags, .. } = &case;
        refine(x, groups, bags, &refined, &trained, &limited).is_err()
            && learn(x, groups, bags, &LearnParams::default(), TrainInputs::default(), &limited).is_err()
    });
    assert!(refused_all);
    assert!(peak - before < block / 2, "{} beside a block of {block}", peak - before);
}

#[test]
fn a_limit_below_the_forecast_refuses_before_the_work() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let case = case("few", texts(300, 200, 20, 10), 5, 1);
    let (x, groups, bags) = (&case.x, &case.groups, &case.bags);
    let (rankers, refinement) = (TrainParams::default(), RefineParams::default());
    let (embeddings, learning) = (AssignParams::default(), LearnParams::default());
    let (kept, alone) =
        (forecast::embeddings(x, groups, bags, true, 1), forecast::embeddings(x, groups, bags, false, 1));
    let alike = likeness(x, groups, &control(1, 0)).unwrap();
    let refining =
        forecast::refinement(x, groups, bags, alike, &refinement, &rankers, &control(1, 0)).unwrap();
    let both = forecast::learning(x, groups, bags, alike, &learning, &control(1, 0)).unwrap();
    assert!(alone < kept && refining <= both);
    type Work<'a> = &'a dyn Fn(&Control) -> aquila::Result<()>;
    let clusters = forecast::clusters(x, 6, 1);
    let together = forecast::union(groups, bags);
    let of_groups = forecast::bags(groups, x.sparse(), Merge::Set);
    let work: [(&str, u64, Work<'_>); 8] = [
        ("clustering", clusters, &|c| Groups::kmeans(x, &ClusterParams::default(), c).map(drop)),
        ("the union", together, &|c| union(groups, bags, c).map(drop)),
        ("labels of groups", of_groups, &|c| groups.aggregate(x.sparse(), Merge::Set, c).map(drop)),
        ("assignment", alone, &|c| assign(x, groups, bags, &embeddings, false, c).map(drop)),
        ("assignment", kept, &|c| assign(x, groups, bags, &embeddings, true, c).map(drop)),
        ("embedding", kept, &|c| embed(x, groups, bags, &embeddings, c).map(drop)),
        ("refinement", refining, &|c| refine(x, groups, bags, &refinement, &rankers, c).map(drop)),
        ("learning from groups", both, &|c| {
            let report = learn(x, groups, bags, &learning, TrainInputs::default(), c)?.1;
            assert_eq!(report.forecast_bytes, both);
            Ok(())
        }),
    ];
    for (what, need, work) in work {
        let mut c = control(1, 0);
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        c.on_progress(move |_| tell.store(true, Ordering::Relaxed));
        c.memory_limit = need - 1;
        refused(
            work(&c),
            ErrorCode::MemoryLimit,
            &[&format!("{what} is forecast to need"), "raise the limit"],
        );
        assert!(!told.load(Ordering::Relaxed), "{what}: work had begun");
        c.memory_limit = need;
        work(&c).unwrap();
    }
}

/// The matrix in so many columns, its own spread over them: the n-th goes to where `place` says.
fn spread(matrix: &Csr, cols: usize, place: impl Fn(u32) -> u32) -> Csr {
    let indices = matrix.indices().iter().map(|j| place(*j)).collect();
    Csr::new(matrix.rows(), cols, matrix.indptr().to_vec(), indices, matrix.values().to_vec()).unwrap()
}

#[test]
fn columns_that_nobody_has_take_no_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    const MOST: usize = u32::MAX as usize;
    let (x, y) = texts(200, 50, 20, 5);
    let groups = Groups::random(y.rows(), 4, 3).unwrap();
    let place = |j: u32| 40_000_000 * j + 7;
    let (wide_x, wide_y) = (Features::from(spread(x.sparse(), MOST, place)), spread(&y, MOST, place));
    let mut c = control(2, 0);
    c.memory_limit = 200_000_000;
    let (params, refinement) = (AssignParams::default(), RefineParams::default());
    let before = live();
    let (_, peak) = peak(|| {
        let bags = groups.aggregate(&y, Merge::Set, &c).unwrap();
        let wide = groups.aggregate(&wide_y, Merge::Set, &c).unwrap();
        assert_eq!(wide, spread(&bags, MOST, place));
        assert_eq!(
            union(&groups, &wide, &c).unwrap(),
            spread(&union(&groups, &bags, &c).unwrap(), MOST, place)
        );
        let narrow = assign(&x, &groups, &bags, &params, false, &c).unwrap().y;
        let of_wide = assign(&wide_x, &groups, &wide, &params, false, &c).unwrap().y;
        assert_eq!(of_wide, spread(&narrow, MOST, place));
        let narrow = refine(&x, &groups, &bags, &refinement, &TrainParams::default(), &c).unwrap();
        let of_wide = refine(&wide_x, &groups, &wide, &refinement, &TrainParams::default(), &c).unwrap();
        assert_eq!(of_wide.y, spread(&narrow.y, MOST, place));
        assert_eq!(likeness(&wide_x, &groups, &c), likeness(&x, &groups, &c));
        assert_eq!(advise(&wide_x, &groups, &wide, &c), advise(&x, &groups, &bags, &c));
        let embedded = embed(&wide_x, &groups, &bags, &params, &c).unwrap();
        assert_eq!(embedded, spread(&embed(&x, &groups, &bags, &params, &c).unwrap(), MOST, place));
        let clusters = ClusterParams::default();
        assert_eq!(Groups::kmeans(&wide_x, &clusters, &c), Groups::kmeans(&x, &clusters, &c));
        // What has a row for each label, or a model, is as large as there are columns.
        let kept = |c: &Control| assign(&x, &groups, &wide, &params, true, c).map(drop);
        let learned = |x: &Features, bags: &Csr, c: &Control, method| {
            let mut params = LearnParams::default();
            params.group.method = method;
            learn(x, &groups, bags, &params, TrainInputs::default(), c).map(drop)
        };
        refused(kept(&c), ErrorCode::MemoryLimit, &["assignment is forecast to need"]);
        refused(embed(&x, &groups, &wide, &params, &c), ErrorCode::MemoryLimit, &["embedding is forecast"]);
        for method in [GroupMethod::Union, GroupMethod::Eagle, GroupMethod::Refine] {
            let what = &["learning from groups is forecast to need"];
            refused(learned(&wide_x, &bags, &c, method), ErrorCode::MemoryLimit, what);
            refused(learned(&x, &wide, &c, method), ErrorCode::MemoryLimit, what);
        }
        let propensity = aquila::metrics::Propensity::from_counts(&wide_y, 0.5, 1.0);
        refused(propensity, ErrorCode::MemoryLimit, &["counters"]);
        let measured = aquila::metrics::evaluate(
            &aquila::metrics::rank(&wide_y),
            &wide_y,
            &aquila::metrics::Metrics::default(),
        );
        refused(measured, ErrorCode::MemoryLimit, &["counters"]);
        let metrics = aquila::metrics::Metrics::default();
        let measuring = |labels| aquila::metrics::allowed(&metrics, labels, true, &c);
        refused(measuring(30_000_000), ErrorCode::MemoryLimit, &["measuring is forecast to need 1.2 GB"]);
        measuring(1_000_000).unwrap();
    });
    assert!(peak - before < c.memory_limit, "{} bytes", peak - before);
}
