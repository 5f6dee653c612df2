//! Groups, bags and assignment, against a plain reading of the paper and what must hold of any answer.

use crate::common::{Lists, Rng, control, csr, lists, random_rows, refused};
use aquila::eagle::{
    AssignParams, Assigned, ClusterParams, Groups, Merge, advise, assign, dense as with_zeros, embed, union,
};
use aquila::tree::{Cut, Pifa};
use aquila::{Control, Csr, ErrorCode, Features};
use proptest::prelude::*;

/// Random samples with features, in groups of up to `size`, some samples in several groups or none.
fn random_groups(rng: &mut Rng, samples: usize, groups: usize) -> Groups {
    let lists = (0..groups).map(|_| {
        let n = rng.below(6);
        (0..n).map(|_| rng.below(samples) as u32).collect()
    });
    Groups::from_lists(samples, lists.collect::<Vec<_>>()).unwrap()
}

fn dense(x: &Csr) -> Vec<Vec<f64>> {
    let row = |r: aquila::Row<'_>| {
        let mut out = vec![0.0; x.cols()];
        let norm = r.iter().map(|(_, v)| f64::from(v).powi(2)).sum::<f64>().sqrt();
        r.iter().for_each(|(j, v)| out[j as usize] = if norm > 0.0 { f64::from(v) / norm } else { 0.0 });
        out
    };
    x.iter_rows().map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn project(v: &mut [f64]) -> bool {
    let norm = dot(v, v).sqrt();
    if norm < 1e-9 {
        return false;
    }
    v.iter_mut().for_each(|v| *v /= norm);
    true
}

/// The embedding of label `k`, round by round as the paper writes it; `None` where two samples of a group come so close
/// that rounding decides.
fn embedding(
    x: &[Vec<f64>],
    groups: &Groups,
    bags: &Csr,
    k: u32,
    rounds: usize,
    step: f64,
) -> Option<Vec<f64>> {
    let of_label: Vec<(usize, f64)> = (0..groups.len())
        .filter_map(|j| bags.row(j).iter().find(|e| e.0 == k && e.1 > 0.0).map(|e| (j, f64::from(e.1))))
        .collect();
    let mut e = vec![0.0; x[0].len()];
    let add = |to: &mut Vec<f64>, c: f64, i: u32| {
        to.iter_mut().zip(&x[i as usize]).for_each(|(t, v)| *t += c * v);
    };
    for &(j, c) in &of_label {
        groups.members(j).iter().for_each(|i| add(&mut e, c, *i));
    }
    if !project(&mut e) {
        let mut all = of_label.iter().flat_map(|(j, _)| groups.members(*j));
        let first = all.find(|i| x[**i as usize].iter().any(|v| *v != 0.0))?;
        e = x[*first as usize].clone();
    }
    for _ in 0..rounds {
        let mut g = vec![0.0; e.len()];
        for &(j, c) in &of_label {
            let scores: Vec<f64> = groups.members(j).iter().map(|i| dot(&e, &x[*i as usize])).collect();
            let most = scores.iter().fold(f64::NEG_INFINITY, |m, s| m.max(*s));
            for (i, s) in groups.members(j).iter().zip(&scores) {
                // What is within 10⁻⁶ is a tie.
                if most - s < 3e-7 {
                    add(&mut g, c, *i);
                } else if most - s < 3e-6 {
                    return None;
                }
            }
        }
        if !project(&mut g) {
            break;
        }
        e.iter_mut().zip(&g).for_each(|(e, g)| *e += step * g);
        if !project(&mut e) {
            return None;
        }
    }
    Some(e)
}

fn run(x: &Csr, groups: &Groups, bags: &Csr, iterations: u32, threads: usize) -> Assigned {
    let params = AssignParams { iterations, ..AssignParams::default() };
    let mut found =
        assign(&x.clone().into(), groups, bags, &params, true, &Control::with_threads(threads)).unwrap();
    found.seconds = 0.0;
    let alone = embed(&x.clone().into(), groups, bags, &params, &Control::with_threads(threads)).unwrap();
    assert_eq!(Some(&alone), found.embeddings.as_ref());
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn choices_and_embeddings_are_the_papers(seed in any::<u64>(), rounds in prop_oneof![Just(0u32), 1u32..30]) {
        let mut rng = Rng::new(seed);
        // In more groups choices change in more rounds.
        let (samples, features, sets) = if rng.below(2) == 0 { (40, 12, 15) } else { (400, 30, 150) };
        let x = csr(features, &random_rows(&mut rng, samples, features, 0.4));
        let groups = random_groups(&mut rng, samples, sets);
        // Few labels are learned alone, many that share their groups in batches.
        let (labels, share) = [(2, 0.3), (6, 0.3), (16, 0.6)][rng.below(3)];
        let truth = csr(labels, &random_rows(&mut rng, samples, labels, share));
        let merge = if rng.below(2) == 0 { Merge::List } else { Merge::Set };
        let bags = groups.aggregate(&truth, merge, &Control::default()).unwrap();
        let found = run(&x, &groups, &bags, rounds, 1);
        let rows = dense(&x);
        let embeddings = found.embeddings.as_ref().unwrap();
        for k in 0..labels as u32 {
            let Some(e) = embedding(&rows, &groups, &bags, k, rounds as usize, 0.1f32.into()) else { continue };
            let mut got = vec![0.0; features];
            embeddings.row(k as usize).iter().for_each(|(j, v)| got[j as usize] = f64::from(v));
            let carried = (0..sets).any(|j| bags.row(j).indices.contains(&k) && !groups.members(j).is_empty());
            prop_assert_eq!(carried, !embeddings.row(k as usize).is_empty() || dot(&e, &e) == 0.0);
            for (a, b) in got.iter().zip(&e) {
                prop_assert!(!carried || (a - b).abs() < 1e-4, "label {}: {:?}, not {:?}", k, got, e);
            }
            for j in (0..sets).filter(|j| bags.row(*j).indices.contains(&k)) {
                let best = groups.members(j).iter().map(|i| dot(&e, &rows[*i as usize]));
                let Some(best) = best.reduce(f64::max) else { continue };
                // The group's label went to a sample that is as similar as any.
                let given = groups.members(j).iter().filter(|i| found.y.row(**i as usize).indices.contains(&k));
                let given = given.map(|i| dot(&e, &rows[*i as usize])).fold(f64::NEG_INFINITY, f64::max);
                prop_assert!(given >= best - 1e-4, "group {} label {}: {} of {}", j, k, given, best);
            }
        }
        for (i, row) in found.y.iter_rows().enumerate() {
            for (k, v) in row.iter() {
                let mut e = vec![0.0; features];
                embeddings.row(k as usize).iter().for_each(|(j, v)| e[j as usize] = f64::from(v));
                prop_assert!((f64::from(v) - dot(&e, &rows[i])).abs() < 1e-4);
                prop_assert!(v != 0.0);
            }
        }
    }

    #[test]
    fn every_label_of_a_group_goes_to_one_of_its_samples_and_threads_do_not_matter(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let x = csr(30, &random_rows(&mut rng, 200, 30, 0.2));
        let groups = random_groups(&mut rng, 200, 60);
        let truth = csr(20, &random_rows(&mut rng, 200, 20, 0.2));
        let bags = groups.aggregate(&truth, Merge::Set, &Control::default()).unwrap();
        let found = run(&x, &groups, &bags, 20, 1);
        prop_assert_eq!(&found, &run(&x, &groups, &bags, 20, 3));
        let all = union(&groups, &bags, &Control::default()).unwrap();
        for (i, row) in found.y.iter_rows().enumerate() {
            prop_assert!(row.indices.iter().all(|k| all.row(i).indices.contains(k)));
        }
        for j in 0..groups.len() {
            for k in bags.row(j).indices {
                let given = groups.members(j).iter().any(|i| found.y.row(*i as usize).indices.contains(k));
                prop_assert!(given || groups.members(j).is_empty(), "group {} label {}", j, k);
            }
        }
    }

    #[test]
    fn the_order_of_samples_and_groups_means_nothing(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let (samples, sets, labels, features) = (120, 40, 8, 20);
        let x = csr(features, &random_rows(&mut rng, samples, features, 0.4));
        let groups = random_groups(&mut rng, samples, sets);
        let truth = csr(labels, &random_rows(&mut rng, samples, labels, 0.2));
        let bags = groups.aggregate(&truth, Merge::List, &Control::default()).unwrap();
        let shuffled = |rng: &mut Rng, n: usize| {
            let mut order: Vec<u32> = (0..n as u32).collect();
            rng.shuffle(&mut order);
            order
        };
        // What stands at each place, and where each sample went.
        let (of_sample, of_group) = (shuffled(&mut rng, samples), shuffled(&mut rng, sets));
        let mut to = vec![0u32; samples];
        (0u32..).zip(&of_sample).for_each(|(place, i)| to[*i as usize] = place);
        let moved = of_group.iter().map(|j| groups.members(*j as usize).iter().map(|i| to[*i as usize]).collect());
        let moved = Groups::from_lists(samples, moved.collect::<Vec<_>>()).unwrap();
        let here = run(&x, &groups, &bags, 20, 1);
        let there = run(&x.select(&of_sample), &moved, &bags.select(&of_group), 20, 1);

        let rows = dense(&x);
        let row_of = |m: &Csr, k: u32| {
            let mut e = vec![0.0; features];
            m.row(k as usize).iter().for_each(|(j, v)| e[j as usize] = f64::from(v));
            e
        };
        for k in 0..labels as u32 {
            // Where samples of a group are all but as similar, rounding decides, and of equal ones the order.
            let Some(e) = embedding(&rows, &groups, &bags, k, 20, 0.1f32.into()) else { continue };
            let (a, b) =
                (row_of(here.embeddings.as_ref().unwrap(), k), row_of(there.embeddings.as_ref().unwrap(), k));
            prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-4), "label {}: {:?}, {:?}", k, a, b);
            for j in (0..sets).filter(|j| bags.row(*j).indices.contains(&k)) {
                let mut similar: Vec<f64> = groups.members(j).iter().map(|i| dot(&e, &rows[*i as usize])).collect();
                similar.sort_by(|a, b| b.total_cmp(a));
                if similar.len() > 1 && similar[0] - similar[1] < 1e-4 {
                    continue;
                }
                for i in groups.members(j) {
                    let has = |y: &Csr, i: u32| y.row(i as usize).indices.contains(&k);
                    let best = dot(&e, &rows[*i as usize]) >= similar[0];
                    prop_assert!(!best || (has(&here.y, *i) && has(&there.y, to[*i as usize])), "group {} label {}", j, k);
                }
            }
        }
        prop_assert!(here.y.nnz() > 0);
    }

    #[test]
    fn bags_are_the_product_and_groups_come_back(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let groups = random_groups(&mut rng, 30, 12);
        let y = csr(9, &random_rows(&mut rng, 30, 9, 0.3));
        prop_assert_eq!(&Groups::from_memberships(&groups.memberships()).unwrap(), &groups);
        let (list, set) = (groups.aggregate(&y, Merge::List, &Control::default()).unwrap(), groups.aggregate(&y, Merge::Set, &Control::default()).unwrap());
        let all = union(&groups, &list, &Control::default()).unwrap();
        for j in 0..12 {
            for k in 0..9u32 {
                let count = groups.members(j).iter().filter(|i| y.row(**i as usize).indices.contains(&k)).count();
                let at = |m: &Csr| m.row(j).iter().find(|e| e.0 == k).map_or(0.0, |e| e.1);
                prop_assert_eq!((at(&list), at(&set)), (count as f32, f32::from(u8::from(count > 0))));
                let shared = groups.members(j).iter().all(|i| all.row(*i as usize).indices.contains(&k));
                prop_assert!(count == 0 || shared);
            }
        }
    }
}

#[test]
fn groups_of_one_give_back_labels_and_label_vectors() {
    let mut rng = Rng::new(3);
    let x = csr(20, &random_rows(&mut rng, 50, 20, 0.3));
    // One label a sample, so that scaling the rows of Y changes nothing.
    let y = csr(7, &(0..50).map(|_| vec![(rng.below(7) as u32, 1.0)]).collect::<Lists>());
    let groups = Groups::random(50, 1, 4).unwrap();
    let bags = groups.aggregate(&y, Merge::List, &Control::default()).unwrap();
    let found = run(&x, &groups, &bags, 20, 2);
    assert_eq!(found.y.indptr(), y.indptr());
    assert_eq!(found.y.indices(), y.indices());
    let unit = Features::from(csr(20, &lists(&x)));
    let rows: Vec<f32> = dense(unit.sparse())
        .iter()
        .zip(x.iter_rows())
        .flat_map(|(d, r)| r.indices.iter().map(|j| d[*j as usize] as f32).collect::<Vec<_>>())
        .collect();
    let labels_rows = y.transpose();
    let pifa = Pifa::new(&x, &rows, &labels_rows);
    let vectors = aquila::Csr::from(pifa.all(Cut::NONE, &Control::default()).unwrap());
    let embeddings = found.embeddings.unwrap();
    assert_eq!(embeddings.indices(), vectors.indices());
    for (a, b) in embeddings.values().iter().zip(vectors.values()) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn a_label_whose_samples_cancel_still_finds_an_answer() {
    // The paper's example: x and -x, each with its label, always in one group.
    let x = csr(1, &(0..20).map(|i| vec![(0, if i % 2 == 0 { 1.0 } else { -1.0 })]).collect::<Lists>());
    let groups = Groups::from_lists(20, (0..10).map(|j| vec![2 * j, 2 * j + 1])).unwrap();
    let bags = csr(1, &vec![vec![(0, 1.0)]; 10]);
    let found = run(&x, &groups, &bags, 20, 1);
    assert_eq!(found.y.nnz(), 10);
    assert!((0..10).all(|j| found.y.row(2 * j).indices == [0]), "all on the side of the first");
    // With two labels in each group, each finds its own side.
    let both = csr(2, &vec![vec![(0, 1.0), (1, 1.0)]; 10]);
    let found = run(&x, &groups, &both, 20, 1);
    assert!((0..20).all(|i| found.y.row(i).indices == [(i % 2) as u32]), "one label a side");
    // The same holds for so many that they form batches, beside one that does not cancel out.
    let all = || (0..14).map(|k| (k, 1.0)).collect::<Vec<_>>();
    let mut many = vec![all(); 10];
    many.push(vec![(14, 1.0)]);
    let apart = Groups::from_lists(20, (0..10).map(|j| vec![2 * j, 2 * j + 1]).chain([vec![0, 2]])).unwrap();
    let found = run(&x, &apart, &csr(15, &many), 20, 1);
    for i in 0..20usize {
        let of_side: Vec<u32> = found.y.row(i).indices.iter().copied().filter(|k| *k < 14).collect();
        assert_eq!(of_side, (0..14).filter(|k| *k as usize % 2 == i % 2).collect::<Vec<u32>>(), "sample {i}");
    }
    assert_eq!(found.y.row(0).indices.last(), Some(&14));
    // Two labels, one of which stands alone in a group, are told apart.
    let groups =
        Groups::from_lists(20, (0..9).map(|j| vec![2 * j, 2 * j + 1]).chain([vec![18], vec![19]])).unwrap();
    let bags = csr(2, &[vec![vec![(0, 1.0), (1, 1.0)]; 9], vec![vec![(0, 1.0)], vec![(1, 1.0)]]].concat());
    let found = run(&x, &groups, &bags, 20, 1);
    for i in 0..20 {
        assert_eq!(found.y.row(i).indices, [(i % 2) as u32], "sample {i}");
    }
}

#[test]
fn embeddings_stay_in_range_however_many_and_large_the_steps() {
    let mut rng = Rng::new(5);
    let x = csr(8, &random_rows(&mut rng, 40, 8, 0.5));
    let rows = dense(&x);
    let groups = random_groups(&mut rng, 40, 15);
    for labels in [3, 16] {
        let truth = csr(labels, &random_rows(&mut rng, 40, labels, 0.6));
        let bags = groups.aggregate(&truth, Merge::List, &Control::default()).unwrap();
        for (iterations, step) in [(8000, 0.1), (60, 1e6)] {
            let params = AssignParams { iterations, step, ..AssignParams::default() };
            let found =
                assign(&Features::from(x.clone()), &groups, &bags, &params, true, &Control::default());
            let found = found.unwrap();
            let embeddings = found.embeddings.unwrap();
            for k in 0..labels as u32 {
                let Some(e) = embedding(&rows, &groups, &bags, k, iterations as usize, step.into()) else {
                    continue;
                };
                let mut got = vec![0.0; 8];
                embeddings.row(k as usize).iter().for_each(|(j, v)| got[j as usize] = f64::from(v));
                let length = dot(&got, &got).sqrt();
                assert!((length - 1.0).abs() < 1e-3, "label {k} of {labels}, step {step}: length {length}");
                // Large steps leap between selections, and there the smallest difference decides.
                if step < 1.0 {
                    assert!(dot(&got, &e) > 0.999, "label {k} of {labels}: {got:?}, not {e:?}");
                }
            }
        }
    }
}

#[test]
fn samples_without_features_are_the_last_resort_but_get_labels_where_there_are_no_others() {
    let x = csr(2, &[vec![(0, 1.0)], vec![], vec![(0, 0.5)], vec![], vec![]]);
    let groups = Groups::from_lists(5, [vec![0, 1], vec![2, 1], vec![3, 4]]).unwrap();
    let bags = csr(1, &vec![vec![(0, 1.0)]; 3]);
    for iterations in [0, 20] {
        let found = run(&x, &groups, &bags, iterations, 1);
        let with: Vec<usize> = (0..5).filter(|i| !found.y.row(*i).is_empty()).collect();
        assert_eq!(with, [0, 2, 3]);
        assert!(found.y.values().iter().all(|v| *v > 0.0));
    }
    let none = csr(2, &vec![vec![]; 5]);
    let found = run(&none, &groups, &bags, 20, 1);
    assert_eq!(found.embeddings.unwrap().nnz(), 0);
    assert_eq!(found.y.nnz(), 3);
}

#[test]
fn sizes_of_counts_and_values_do_not_matter() {
    let rows = |v: f32| csr(6, &[vec![(0, v)], vec![(1, v)], vec![(1, v)], vec![(2, v)], vec![(5, 3.0)]]);
    let groups = Groups::from_lists(5, [vec![0, 1], vec![2, 3], vec![4]]).unwrap();
    let bags = |count: f32| csr(2, &[vec![(0, count)], vec![(0, count)], vec![(1, 1.0)]]);
    let params = AssignParams { normalize: false, ..AssignParams::default() };
    for value in [1.0, 1e-12, 1e-4, 1e15] {
        for count in [1.0, 3e38, 1e-30] {
            let x = rows(value).into();
            let found = assign(&x, &groups, &bags(count), &params, true, &control(1, 0)).unwrap();
            let own: Vec<usize> = (0..5).filter(|i| found.y.row(*i).indices == [0]).collect();
            assert_eq!(own, [1, 2], "{value} {count}");
            let length = found.embeddings.unwrap().row(0).norm();
            assert!((length - 1.0).abs() < 1e-3, "{value} {count}: {length}");
            let similarity = found.y.row(1).values[0] / value;
            assert!((similarity - 0.99).abs() < 0.02, "{value} {count}: {similarity}");
        }
    }
}

#[test]
fn a_tie_goes_to_the_first_whatever_rounding_says() {
    let mut rng = Rng::new(11);
    for _ in 0..100 {
        let x = csr(9, &[random_rows(&mut rng, 1, 9, 0.9), random_rows(&mut rng, 1, 9, 0.9)].concat());
        let groups = Groups::from_lists(2, [vec![0, 1]]).unwrap();
        let found = run(&x, &groups, &csr(1, &[vec![(0, 1.0)]]), 20, 1);
        if !x.row(0).is_empty() && !x.row(1).is_empty() {
            assert_eq!(found.y.row(0).indices, [0], "{x:?}");
        }
    }
}

#[test]
fn clusters_hold_every_sample_once_and_noise_mixes_them() {
    // Two crowds that share no feature, and some samples without any.
    let mut rng = Rng::new(8);
    let mut crowd_row = |crowd: u32| {
        let mut row: Vec<u32> = (0..5).map(|_| crowd * 10 + rng.below(10) as u32).collect();
        row.sort_unstable();
        row.dedup();
        row.into_iter().map(|j| (j, 1.0)).collect()
    };
    let rows: Lists = (0..101).map(|i| if i % 25 == 7 { vec![] } else { crowd_row(i % 2) }).collect();
    let x: Features = csr(20, &rows).into();
    let make = |depth, noise, threads| {
        let params = ClusterParams { depth, noise, ..ClusterParams::default() };
        Groups::kmeans(&x, &params, &control(threads, 5)).unwrap()
    };
    let two = make(1, 0.0, 1);
    assert_eq!((two.len(), two.memberships_count()), (2, 101));
    let crowd = |j: usize| two.members(j).iter().filter(|i| **i % 25 != 7).map(|i| i % 2).collect::<Vec<_>>();
    assert!((0..2).all(|j| crowd(j).windows(2).filter(|w| w[0] != w[1]).count() <= 2));
    assert_eq!(two, make(1, 0.0, 3));
    let mixed = make(1, 1.0, 1);
    assert_eq!(mixed.memberships_count(), 101);
    assert_ne!(mixed, two);
    let params = ClusterParams { size: 8, ..ClusterParams::default() };
    let small = Groups::kmeans(&x, &params, &control(1, 0)).unwrap();
    assert!((0..small.len()).all(|j| small.members(j).len() <= 8), "16 groups of at most 7");
    let mut all: Vec<u32> = (0..small.len()).flat_map(|j| small.members(j)).copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..101).collect::<Vec<_>>());
    let few: Features = csr(2, &[vec![(0, 1.0)], vec![(1, 1.0)], vec![], vec![]]).into();
    for (depth, size) in [(30, 8), (0, 1)] {
        let params = ClusterParams { depth, size, ..ClusterParams::default() };
        let groups = Groups::kmeans(&few, &params, &control(1, 0)).unwrap();
        assert!((0..groups.len()).all(|j| groups.members(j).len() == 1) && groups.len() == 4);
    }
    let random = Groups::random(101, 4, 9).unwrap();
    assert_eq!((random.len(), random.members(25).len()), (26, 1));
    assert_eq!(random, Groups::random(101, 4, 9).unwrap());
    assert_ne!(random, Groups::random(101, 4, 8).unwrap());
}

#[test]
fn what_does_not_fit_is_refused() {
    use ErrorCode::{IndexOutOfRange, InvalidArgument, ShapeMismatch};
    let x: Features = csr(2, &[vec![(0, 1.0)], vec![(1, 1.0)]]).into();
    let groups = Groups::random(2, 2, 0).unwrap();
    let bags = csr(1, &[vec![(0, 1.0)]]);
    let go =
        |groups: &Groups, bags: &Csr, p: &AssignParams| assign(&x, groups, bags, p, false, &control(1, 0));
    let p = AssignParams::default();
    refused(go(&Groups::random(3, 2, 0).unwrap(), &bags, &p), ShapeMismatch, &["2 rows", "3 samples"]);
    refused(go(&groups, &csr(1, &[vec![], vec![]]), &p), ShapeMismatch, &["1 groups", "2 rows"]);
    refused(go(&groups, &csr(1, &[vec![(0, -1.0)]]), &p), InvalidArgument, &["group 0", "label 0", "-1"]);
    refused(go(&groups, &bags, &AssignParams { step: 0.0, ..p.clone() }), InvalidArgument, &["step"]);
    refused(
        groups.aggregate(&csr(1, &[vec![]]), Merge::Set, &Control::default()),
        ShapeMismatch,
        &["2 samples", "1 rows"],
    );
    refused(Groups::random(5, 0, 0), InvalidArgument, &["at least 1"]);
    refused(Groups::from_lists(3, [vec![0], vec![3]]), IndexOutOfRange, &["group 1", "sample 3"]);
    refused(
        Groups::kmeans(&x, &ClusterParams { noise: 2.0, ..ClusterParams::default() }, &control(1, 0)),
        InvalidArgument,
        &["noise"],
    );
    let c = control(1, 0);
    c.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    refused(assign(&x, &groups, &bags, &p, false, &c), ErrorCode::Cancelled, &[]);
    let far = Csr::new(1, 4_000_000_000, vec![0, 1], vec![3_999_999_999], vec![1.0]).unwrap();
    refused(Groups::from_memberships(&far), InvalidArgument, &["4000000000", "without gaps"]);
    // Nothing to do is no error.
    let nobody = Groups::from_lists(2, Vec::<Vec<u32>>::new()).unwrap();
    assert_eq!(go(&nobody, &Csr::new(0, 4, vec![0], vec![], vec![]).unwrap(), &p).unwrap().y.nnz(), 0);
}

#[test]
fn dense_embeddings_are_the_sparse_ones_within_the_limit() {
    let mut rng = Rng::new(5);
    let x = csr(12, &random_rows(&mut rng, 40, 12, 0.3));
    let groups = random_groups(&mut rng, 40, 15);
    let y = csr(5, &random_rows(&mut rng, 40, 5, 0.3));
    let mut control = Control::default();
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let sparse = embed(&x.into(), &groups, &bags, &AssignParams::default(), &control).unwrap();
    let dense = with_zeros(&sparse, &control).unwrap();
    for k in 0..5 {
        let row = sparse.row(k);
        let value = |f: u32| row.iter().find(|e| e.0 == f).map_or(0.0, |e| e.1);
        assert_eq!(dense.row(k), (0..12).map(value).collect::<Vec<_>>());
    }
    control.memory_limit = 4 * 5 * 12;
    assert!(with_zeros(&sparse, &control).is_ok());
    control.memory_limit -= 1;
    refused(with_zeros(&sparse, &control), ErrorCode::MemoryLimit, &["5 dense embeddings of 12 features"]);
}

#[test]
fn work_that_was_cancelled_ends() {
    let mut rng = Rng::new(6);
    let x: Features = csr(12, &random_rows(&mut rng, 40, 12, 0.3)).into();
    let groups = random_groups(&mut rng, 40, 15);
    let y = csr(5, &random_rows(&mut rng, 40, 5, 0.3));
    let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
    let stopped = Control::default();
    stopped.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let params = AssignParams::default();
    refused(groups.aggregate(&y, Merge::Set, &stopped), ErrorCode::Cancelled, &[]);
    refused(union(&groups, &bags, &stopped), ErrorCode::Cancelled, &[]);
    refused(advise(&x, &groups, &bags, &stopped), ErrorCode::Cancelled, &[]);
    refused(embed(&x, &groups, &bags, &params, &stopped), ErrorCode::Cancelled, &[]);
    refused(assign(&x, &groups, &bags, &params, true, &stopped), ErrorCode::Cancelled, &[]);
    refused(Groups::kmeans(&x, &ClusterParams::default(), &stopped), ErrorCode::Cancelled, &[]);
}

#[test]
fn what_passes_the_range_of_floats_is_its_end() {
    let groups = Groups::from_lists(4, [vec![0, 1], vec![0, 2, 3]]).unwrap();
    let bags = csr(2, &[vec![(0, 3e38), (1, 3e38)], vec![(0, 3e38), (1, 1.0)]]);
    let summed = union(&groups, &bags, &Control::default()).unwrap();
    assert_eq!(summed.row(0).values, [f32::MAX, 3e38]);
    // The longest row is longer than any float, and so is what it has in common with an embedding.
    let x: Features = csr(3, &[3e38, 2e38, 1e38, -3e38].map(|v| vec![(0, v), (1, v), (2, v)])).into();
    for iterations in [0, 20] {
        let params = AssignParams { normalize: false, iterations, ..AssignParams::default() };
        let found = assign(&x, &groups, &bags, &params, true, &Control::default()).unwrap();
        assert!(found.y.nnz() > 0 && found.y.values().iter().all(|v| v.is_finite()), "{:?}", found.y);
        assert!(found.y.values().contains(&f32::MAX), "{:?}", found.y);
        assert!(found.embeddings.unwrap().values().iter().all(|v| v.is_finite()));
    }
    // Whoever says that a column stands twice has it summed, and hears of it where no float holds the sum.
    let twice = Csr::from_unsorted(1, 1, vec![0, 2], vec![0, 0], vec![3e38, 3e38]);
    refused(twice, ErrorCode::NotFinite, &["row 0", "column 0"]);
}
