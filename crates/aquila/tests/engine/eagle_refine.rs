//! Refinement: what it must find, what must hold of any answer, and odd input.

use crate::common::{Lists, Rng, control, csr, lists, random_rows, refused};
use aquila::eagle::{
    GroupMethod, Groups, LearnParams, Merge, RefineParams, Refined, advise, learn, likeness, refine,
    statistics, union,
};
use aquila::xlinear::{PredictParams, Scope, TrainInputs, TrainParams};
use aquila::{Control, Csr, Dense, ErrorCode, Features};

fn texts(rng: &mut Rng, rows: usize, topics: usize) -> (Features, Csr) {
    texts_with(rng, rows, topics, 8)
}

/// Rows of some topics: a topic is a label, has words of its own, and there are words of all.
fn texts_with(rng: &mut Rng, rows: usize, topics: usize, background: usize) -> (Features, Csr) {
    let (mut x, mut y) = (Lists::new(), Lists::new());
    for _ in 0..rows {
        let mut own: Vec<u32> = (0..1 + rng.below(2)).map(|_| rng.below(topics) as u32).collect();
        own.sort_unstable();
        own.dedup();
        let mut words: Vec<u32> = (0..background).map(|_| (topics * 5 + rng.below(50)) as u32).collect();
        for topic in &own {
            words.extend((0..3).map(|_| topic * 5 + rng.below(5) as u32));
        }
        words.sort_unstable();
        words.dedup();
        x.push(words.into_iter().map(|j| (j, 1.0)).collect());
        y.push(own.into_iter().map(|k| (k, 1.0)).collect());
    }
    (csr(topics * 5 + 50, &x).into(), csr(topics, &y))
}

fn run(x: &Features, groups: &Groups, bags: &Csr, params: &RefineParams, control: &Control) -> Refined {
    refine(x, groups, bags, params, &TrainParams::default(), control).unwrap()
}

/// Every answer: confidences in (0, 1], labels of the sample's groups only, each label of a group at least once.
fn holds(found: &Csr, groups: &Groups, bags: &Csr) {
    let all = union(groups, bags, &Control::default()).unwrap();
    for (i, (row, allowed)) in found.iter_rows().zip(all.iter_rows()).enumerate() {
        for (k, v) in row.iter() {
            assert!(v > 0.0 && v <= 1.0, "sample {i}, label {k}: {v}");
            assert!(allowed.indices.contains(&k), "sample {i} got label {k} of no group of its own");
        }
    }
    for j in 0..groups.len() {
        for (k, _) in bags.row(j).iter().filter(|e| e.1 != 0.0) {
            let members = groups.members(j);
            let given = members.iter().any(|i| found.row(*i as usize).indices.contains(&k));
            assert!(given || members.is_empty(), "group {j}: nobody has label {k}");
        }
    }
}

/// The share of the true pairs among those found, and of those found among the true.
fn agreement(found: &Csr, y: &Csr) -> (f64, f64) {
    let both = found.iter_rows().zip(y.iter_rows());
    let both: usize = both.map(|(a, b)| a.indices.iter().filter(|k| b.indices.contains(k)).count()).sum();
    (both as f64 / found.nnz() as f64, both as f64 / y.nnz() as f64)
}

#[test]
fn labels_of_random_groups_are_found() {
    let mut rng = Rng::new(1);
    let (x, y) = texts(&mut rng, 1200, 12);
    for size in [2, 4, 8] {
        let groups = Groups::random(1200, size, 3).unwrap();
        for merge in [Merge::Set, Merge::List] {
            let bags = groups.aggregate(&y, merge, &Control::default()).unwrap();
            for rounds in [0, 2] {
                let params = RefineParams { rounds, ..RefineParams::default() };
                let found = run(&x, &groups, &bags, &params, &control(2, 0));
                holds(&found.y, &groups, &bags);
                let (precision, recall) = agreement(&found.y, &y);
                assert!(precision > 0.85 && recall > 0.65, "groups of {size}: {precision:.2}, {recall:.2}");
                assert!(found.likeness < 0.02 && found.threshold > 0.35);
            }
        }
    }
}

#[test]
fn groups_of_like_samples_are_seen_and_all_their_candidates_kept() {
    let mut rng = Rng::new(2);
    let (x, y) = texts_with(&mut rng, 600, 6, 2);
    // Samples of one first label stand together.
    let mut order: Vec<u32> = (0..600).collect();
    order.sort_by_key(|i| y.row(*i as usize).indices.to_vec());
    let groups = Groups::from_lists(600, order.chunks(10).map(<[u32]>::to_vec)).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let found = run(&x, &groups, &bags, &RefineParams::default(), &control(2, 0));
    assert!(found.likeness > 0.16, "{}", found.likeness);
    assert_eq!(found.threshold, 0.0);
    assert_eq!(found.y.indices(), union(&groups, &bags, &Control::default()).unwrap().indices());
    holds(&found.y, &groups, &bags);
}

#[test]
fn likeness_counts_a_dense_block_as_its_entries() {
    let mut rng = Rng::new(3);
    let sparse = csr(20, &random_rows(&mut rng, 60, 20, 0.3));
    let block = (0..60 * 19).map(|_| rng.unit() as f32 - 0.3).collect();
    let x = Features::new(sparse, Some(Dense::new(60, 19, block).unwrap())).unwrap();
    let joined = x.as_csr().into_owned().into();
    let groups = Groups::random(60, 4, 0).unwrap();
    let of = |x: &Features, threads| likeness(x, &groups, &control(threads, 0)).unwrap();
    let (found, want) = (of(&x, 1), of(&joined, 1));
    assert!((found - want).abs() < 1e-6, "{found} for {want}");
    assert_eq!(found, of(&x, 4));
}

#[test]
fn likeness_is_the_excess_of_cosines() {
    let rows: Lists = [0, 0, 1, 1].map(|j| vec![(j, 2.0)]).to_vec();
    let x = Features::from(csr(2, &rows));
    let of = |lists: Vec<Vec<u32>>| {
        likeness(&x, &Groups::from_lists(4, lists).unwrap(), &Control::default()).unwrap()
    };
    // Of the six pairs two are equal, the others at right angles: 1/3 at random.
    assert!((of(vec![vec![0, 1], vec![2, 3]]) - 1.0).abs() < 1e-9);
    assert_eq!(of(vec![vec![0, 2], vec![1, 3]]), 0.0);
    assert!((of(vec![vec![0, 1], vec![2], vec![3, 0]]) - (0.5 - 1.0 / 3.0) / (2.0 / 3.0)).abs() < 1e-9);
    assert_eq!(of(vec![vec![0], vec![], vec![2]]), 0.0);
    let short = Groups::from_lists(3, [vec![0]]).unwrap();
    refused(likeness(&x, &short, &Control::default()), ErrorCode::ShapeMismatch, &["4 rows", "3 samples"]);
}

#[test]
fn groups_of_one_keep_their_labels() {
    let mut rng = Rng::new(4);
    let (x, y) = texts(&mut rng, 300, 5);
    let groups = Groups::random(300, 1, 0).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let found = run(&x, &groups, &bags, &RefineParams::default(), &control(2, 0));
    assert_eq!((found.y.indptr(), found.y.indices()), (y.indptr(), y.indices()));
}

#[test]
fn threads_change_nothing_and_seeds_only_folds() {
    let mut rng = Rng::new(5);
    let (x, y) = texts(&mut rng, 500, 8);
    let groups = Groups::random(500, 5, 1).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let of = |threads, seed| run(&x, &groups, &bags, &RefineParams::default(), &control(threads, seed)).y;
    let one = of(1, 7);
    for threads in [2, 3, 5] {
        assert_eq!(of(threads, 7), one, "{threads} threads");
    }
    assert_ne!(of(1, 8), one);
}

#[test]
fn odd_groups_are_fine() {
    let mut rng = Rng::new(6);
    let (x, y) = texts(&mut rng, 120, 5);
    let params = RefineParams::default();
    // Nobody in a group; an empty group with labels; groups without labels; samples of several groups and of none.
    for seed in 0..20 {
        let mut rng = Rng::new(100 + seed);
        let groups = (0..25).map(|_| (0..rng.below(7)).map(|_| rng.below(120) as u32).collect());
        let groups = Groups::from_lists(120, groups.collect::<Vec<_>>()).unwrap();
        let mut bags = lists(&groups.aggregate(&y, Merge::Set, &Control::default()).unwrap());
        bags[rng.below(25)] = vec![(0, 1.0), (3, 0.0)];
        bags[rng.below(25)].clear();
        let bags = csr(5, &bags);
        holds(&run(&x, &groups, &bags, &params, &control(2, seed)).y, &groups, &bags);
    }
    // One group of everything: each label still has a sample.
    let all = Groups::from_lists(120, [(0..120).collect()]).unwrap();
    let bags = all.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    holds(&run(&x, &all, &bags, &params, &control(2, 0)).y, &all, &bags);
    // No groups, no labels, samples without features.
    let none = Groups::from_lists(120, Vec::<Vec<u32>>::new()).unwrap();
    assert_eq!(run(&x, &none, &csr(5, &Lists::new()), &params, &control(1, 0)).y.nnz(), 0);
    let empty = Features::from(csr(3, &vec![Vec::new(); 120]));
    let groups = Groups::random(120, 4, 0).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    holds(&run(&empty, &groups, &bags, &params, &control(1, 0)).y, &groups, &bags);
    let bare = csr(5, &vec![Vec::new(); groups.len()]);
    assert_eq!(run(&x, &groups, &bare, &params, &control(1, 0)).y.nnz(), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut rng = Rng::new(7);
    let (x, y) = texts(&mut rng, 40, 4);
    let groups = Groups::random(40, 4, 0).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let (params, rankers, c) = (RefineParams::default(), TrainParams::default(), control(1, 0));
    let other = Groups::random(39, 4, 0).unwrap();
    let refuse = |got: aquila::Result<Refined>, code, words: &[&str]| refused(got.map(|_| ()), code, words);
    refuse(
        refine(&x, &other, &bags, &params, &rankers, &c),
        ErrorCode::ShapeMismatch,
        &["40 rows", "39 samples"],
    );
    let short = csr(4, &vec![Vec::new(); 3]);
    refuse(
        refine(&x, &groups, &short, &params, &rankers, &c),
        ErrorCode::ShapeMismatch,
        &["10 groups", "3 rows"],
    );
    let mut below = lists(&bags);
    below[2] = vec![(1, -1.0)];
    let below = csr(4, &below);
    refuse(
        refine(&x, &groups, &below, &params, &rankers, &c),
        ErrorCode::InvalidArgument,
        &["group 2", "-1"],
    );
    let folds = RefineParams { folds: 1, ..params };
    refuse(refine(&x, &groups, &bags, &folds, &rankers, &c), ErrorCode::InvalidArgument, &["folds", "1"]);
    let cancelled = control(2, 0);
    cancelled.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    refuse(refine(&x, &groups, &bags, &params, &rankers, &cancelled), ErrorCode::Cancelled, &[]);
}

#[test]
fn progress_counts_rankers() {
    let mut rng = Rng::new(8);
    let (x, y) = texts(&mut rng, 200, 4);
    let groups = Groups::random(200, 4, 0).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut c = control(2, 0);
    let to = seen.clone();
    c.on_progress(move |p| to.lock().unwrap().push((p.stage, p.done, p.total)));
    run(&x, &groups, &bags, &RefineParams { rounds: 1, folds: 4, threshold: 0.5 }, &c);
    let rankers = (1..=8).map(|n| ("refine", n, 8));
    assert_eq!(*seen.lock().unwrap(), [("forecast", 1, 1)].into_iter().chain(rankers).collect::<Vec<_>>());
}

#[test]
fn rounds_are_left_out_where_the_first_score_tells_nothing() {
    let mut rng = Rng::new(12);
    let (_, y) = texts(&mut rng, 400, 20);
    let (x, _) = texts(&mut rng, 400, 20);
    let groups = Groups::random(400, 4, 0).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut c = control(2, 0);
    let to = seen.clone();
    c.on_progress(move |p| to.lock().unwrap().push((p.done, p.total)));
    let found = run(&x, &groups, &bags, &RefineParams { rounds: 2, ..RefineParams::default() }, &c).y;
    assert_eq!(seen.lock().unwrap()[1..], [(1, 9), (2, 9), (3, 9), (9, 9)]);
    // Nor is it believed: labels are hardly surer than chance, which finds one of about three of them.
    let sure = found.values().iter().sum::<f32>() / found.nnz() as f32;
    let (right, _) = agreement(&found, &y);
    assert!(f64::from(sure) < right + 0.2, "{right} are true, {sure} believed");
}

#[test]
fn a_model_learns_from_groups() {
    let mut rng = Rng::new(9);
    let (x, y) = texts(&mut rng, 1500, 10);
    let (xt, yt) = texts(&mut rng, 300, 10);
    let groups = Groups::random(1200, 6, 0).unwrap();
    // 300 samples stand in no group.
    let members = (0..groups.len()).map(|j| groups.members(j).to_vec());
    let groups = Groups::from_lists(1500, members).unwrap();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let right = |method| {
        let mut params = LearnParams::default();
        params.group.method = method;
        let (model, report) =
            learn(&x, &groups, &bags, &params, TrainInputs::default(), &control(2, 0)).unwrap();
        assert!(report.total > 0.0);
        let found = model.predict(&xt, &PredictParams::default(), &Scope::All, &control(2, 0)).unwrap();
        let first = |i: &usize| yt.row(*i).indices.contains(&found.labels[found.indptr[*i]]);
        (0..300).filter(first).count()
    };
    let [refined, eagle, all] = [GroupMethod::Refine, GroupMethod::Eagle, GroupMethod::Union].map(right);
    assert!(refined > 280 && refined >= eagle.max(all), "{refined}, {eagle}, {all} of 300");
    let inputs = TrainInputs { relevance: Some(y.clone()), ..TrainInputs::default() };
    let got = learn(&x, &groups, &bags, &LearnParams::default(), inputs, &control(2, 0)).map(|_| ());
    refused(got, ErrorCode::InvalidArgument, &["relevance"]);
}

#[test]
fn groups_without_samples_or_labels_teach_nothing() {
    let x = Features::from(csr(2, &[0, 1, 1].map(|j| vec![(j, 1.0)])));
    let nobody = Groups::from_lists(3, [vec![], vec![]]).unwrap();
    let groups = Groups::from_lists(3, [vec![0, 1, 2], vec![]]).unwrap();
    let labels = csr(2, &[vec![(0, 1.0)], vec![(1, 1.0)]]);
    let none = csr(2, &[vec![], vec![]]);
    let apart = csr(2, &[vec![], vec![(1, 1.0)]]);
    for (groups, bags) in [(&nobody, &labels), (&groups, &none), (&groups, &apart)] {
        for method in [GroupMethod::Union, GroupMethod::Eagle, GroupMethod::Refine] {
            let mut params = LearnParams::default();
            params.group.method = method;
            let got = learn(&x, groups, bags, &params, TrainInputs::default(), &control(1, 0)).map(|_| ());
            refused(
                got,
                ErrorCode::InvalidArgument,
                &["no sample stands in a group with labels", "check groups and bags"],
            );
        }
    }
}

#[test]
fn rows_without_a_feature_teach_nothing() {
    let x = Features::from(csr(0, &vec![vec![]; 4]));
    let groups = Groups::from_lists(4, [vec![0, 1], vec![2, 3]]).unwrap();
    let bags = csr(1, &[vec![(0, 1.0)], vec![]]);
    let words = ["x has no features to tell 4 samples apart by", "give some"];
    let (params, rankers) = (RefineParams::default(), TrainParams::default());
    let refined = refine(&x, &groups, &bags, &params, &rankers, &control(1, 0));
    refused(refined, ErrorCode::InvalidArgument, &words);
    let learned = learn(&x, &groups, &bags, &LearnParams::default(), TrainInputs::default(), &control(1, 0));
    refused(learned.map(drop), ErrorCode::InvalidArgument, &words);
}

#[test]
fn advice_follows_from_what_groups_are_like() {
    let x = Features::from(csr(2, &[0, 0, 1, 1, 0].map(|j| vec![(j, 1.0)])));
    let groups = Groups::from_lists(5, [vec![0, 1], vec![2, 3], vec![]]).unwrap();
    let bags = csr(4, &[vec![(0, 1.0), (1, 2.0)], vec![(0, 1.0), (2, 0.0)], vec![(3, 1.0)]]);
    let s = statistics(&x, &groups, &bags, &Control::default()).unwrap();
    assert_eq!((s.groups, s.samples, s.size, s.largest), (2, 4, 2.0, 2));
    assert_eq!((s.labels_of_group, s.labels, s.lone_labels, s.common_labels), (1.5, 2, 1, 1));
    assert!((s.likeness - 1.0).abs() < 1e-9);
    let advice = advise(&x, &groups, &bags, &Control::default()).unwrap();
    assert_eq!((advice.method, advice.statistics), (GroupMethod::Refine, s));
    let said = advice.reasons.join(" ");
    for part in
        ["2.0 samples and 1.5 labels", "likeness 1.00", "1 of 2 labels", "1 labels", "1 samples stand in no"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }

    let mixed = Groups::from_lists(5, [vec![0, 2], vec![1, 3]]).unwrap();
    let two = csr(4, &[vec![(0, 1.0)], vec![(1, 1.0)]]);
    assert!(advise(&x, &mixed, &two, &Control::default()).unwrap().reasons[1].contains("no more alike"));
    let ones = Groups::from_lists(5, (0..5).map(|i| vec![i])).unwrap();
    let of_ones = csr(1, &vec![vec![(0, 1.0)]; 5]);
    let advice = advise(&x, &ones, &of_ones, &Control::default()).unwrap();
    assert_eq!((advice.method, advice.reasons.len()), (GroupMethod::Union, 1));
    let none = advise(&x, &ones, &csr(1, &vec![Vec::new(); 5]), &Control::default()).unwrap();
    assert!(none.reasons[0].contains("nothing to learn"));
    refused(
        advise(&x, &groups, &two, &Control::default()),
        ErrorCode::ShapeMismatch,
        &["3 groups", "2 rows"],
    );
}

#[test]
fn advice_says_what_refinement_does_whatever_the_size_of_groups() {
    let mut rng = Rng::new(9);
    let mut met = std::collections::BTreeSet::new();
    for size in [2, 3, 5, 8, 16, 40, 100] {
        // Of each group a share of the samples has a first feature in common, so that groups are more or less alike.
        for share in [0.0, 0.15, 0.25, 0.4, 0.6, 1.0] {
            let rows: Lists = (0..400usize)
                .map(|i| {
                    let like = rng.unit() < share;
                    let first = if like { i / size } else { 400 + rng.below(300) };
                    let mut row = vec![(first as u32, 1.0), (700 + rng.below(300) as u32, 1.0)];
                    row.sort_by_key(|e| e.0);
                    row
                })
                .collect();
            let x = Features::from(csr(1000, &rows));
            let lists = (0..400u32).collect::<Vec<_>>();
            let groups = Groups::from_lists(400, lists.chunks(size).map(<[u32]>::to_vec)).unwrap();
            let y = csr(20, &(0..400).map(|_| vec![(rng.below(20) as u32, 1.0)]).collect::<Lists>());
            let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
            let params = RefineParams { rounds: 0, ..RefineParams::default() };
            let found = run(&x, &groups, &bags, &params, &control(1, 0));
            let said = advise(&x, &groups, &bags, &Control::default()).unwrap().reasons[1].clone();
            let left = found.threshold / params.threshold;
            let alike = left == 0.0 && found.relevance.values().iter().all(|v| *v == 1.0);
            let kind = match left {
                _ if alike => "weighs the same",
                0.0 => "as much as it is likely",
                _ if left > 0.8 => "no more alike than any",
                _ => "somewhat alike",
            };
            assert!(said.contains(kind), "{size}, {share}: {left}, but {said}");
            met.insert(kind);
        }
    }
    assert_eq!(met.len(), 4, "{met:?}");
}

#[test]
fn what_refinement_finds_teaches_in_two_steps_what_learning_learns_in_one() {
    let mut rng = Rng::new(4);
    let (x, y) = texts(&mut rng, 600, 8);
    let random = Groups::random(600, 4, 1).unwrap();
    let mut order: Vec<u32> = (0..600).collect();
    order.sort_by_key(|i| y.row(*i as usize).indices.to_vec());
    let alike = Groups::from_lists(600, order.chunks(10).map(<[u32]>::to_vec)).unwrap();
    for groups in [random, alike] {
        let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
        let control = control(2, 3);
        let once = learn(&x, &groups, &bags, &LearnParams::default(), TrainInputs::default(), &control);
        let found = run(&x, &groups, &bags, &RefineParams::default(), &control);
        let params = found.lesson(&TrainParams::default());
        let inputs = TrainInputs { relevance: Some(found.relevance), ..TrainInputs::default() };
        let twice = aquila::xlinear::train(&x, &found.y, &params, inputs, &control);
        assert!(once.unwrap().0.as_bytes() == twice.unwrap().0.as_bytes());
    }
}
