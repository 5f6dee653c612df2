//! Label vectors, splits and trees, against closed forms and invariants.

use crate::common::{Lists, Rng, control, csr, labels_below, lists, random_rows, refused};
use aquila::control::Control;
use aquila::tree::{
    Bisection, Clustering, Cut, LabelTree, NODE, Pifa, Points, Shape, Split, build, given, pii,
    whole_is_better,
};
use aquila::{Csr, ErrorCode};
use proptest::prelude::*;

fn dense(m: &Csr) -> Vec<Vec<f64>> {
    let mut out = vec![vec![0.0; m.cols()]; m.rows()];
    for (to, row) in out.iter_mut().zip(m.iter_rows()) {
        row.iter().for_each(|(j, v)| to[j as usize] = f64::from(v));
    }
    out
}

fn unit(row: &mut [f64]) {
    let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
    if norm > 0.0 {
        row.iter_mut().for_each(|v| *v /= norm);
    }
}

fn near(got: &Csr, want: &[Vec<f64>]) {
    for (l, (a, b)) in dense(got).iter().zip(want).enumerate() {
        for (j, (a, b)) in a.iter().zip(b).enumerate() {
            assert!((a - b).abs() < 1e-5, "row {l} column {j}: {a}, not {b}");
        }
    }
    assert_eq!(got.rows(), want.len());
}

fn pifa(x: &Csr, y: &Csr, cut: Cut) -> Csr {
    let labels_rows = y.transpose();
    Pifa::new(x, x.values(), &labels_rows).all(cut, &Control::default()).unwrap().into()
}

/// Z = norm(norm(Y)ᵀ X).
fn naive_pifa(x: &Csr, y: &Csr) -> Vec<Vec<f64>> {
    let (x, mut y) = (dense(x), dense(y));
    let mut z = vec![vec![0.0; x[0].len()]; y[0].len()];
    for (x, y) in x.iter().zip(&mut y) {
        y.iter_mut().for_each(|v| *v = f64::from(u8::from(*v != 0.0)));
        unit(y);
        for (z, share) in z.iter_mut().zip(y) {
            z.iter_mut().zip(x).for_each(|(z, x)| *z += *share * x);
        }
    }
    z.iter_mut().for_each(|z| unit(z));
    z
}

#[test]
fn pifa_is_the_product_of_scaled_labels_and_rows() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let x = csr(40, &random_rows(&mut rng, 30, 40, 0.2));
        let mut labels = random_rows(&mut rng, 30, 150, 0.03);
        // Values do not matter, but zeros are no labels.
        labels.iter_mut().flatten().for_each(|e| e.1 = [0.0, 1.0, 2.5][rng.below(3)]);
        let y = csr(150, &labels);
        let got = pifa(&x, &y, Cut::NONE);
        near(&got, &naive_pifa(&x, &y));
    }
}

#[test]
fn pii_and_given_are_rows_of_length_one() {
    let mut rng = Rng::new(1);
    for seed in 0..10 {
        let m = csr(30, &random_rows(&mut rng, 20 + seed, 30, 0.2));
        let mut want = dense(&m);
        want.iter_mut().for_each(|r| unit(r));
        near(&given(&m, Cut::to(0), &Control::default()).unwrap(), &want);
        near(&pii(&m, Cut::to(0), &Control::default()).unwrap(), &want);
    }
}

#[test]
fn a_cut_keeps_the_largest_and_the_first_of_equals() {
    let row = |entries: &[(u32, f32)]| csr(10, &[entries.to_vec()]);
    let kept = |m: &Csr, keep: usize| {
        let cut = given(m, Cut::to(keep), &Control::default()).unwrap();
        cut.row(0).indices.to_vec()
    };
    let m = row(&[(0, 1.0), (2, -3.0), (3, 2.0), (5, 2.0), (7, -2.0), (9, 0.5)]);
    assert_eq!(kept(&m, 0), [0, 2, 3, 5, 7, 9]);
    assert_eq!(kept(&m, 1), [2]);
    assert_eq!(kept(&m, 2), [2, 3]);
    assert_eq!(kept(&m, 3), [2, 3, 5]);
    assert_eq!(kept(&m, 4), [2, 3, 5, 7]);
    assert_eq!(kept(&m, 5), [0, 2, 3, 5, 7]);
    assert_eq!(kept(&m, 6), kept(&m, 100));
    let cut = given(&m, Cut::to(2), &Control::default()).unwrap();
    let norm = 13f32.sqrt();
    assert!((cut.row(0).values[0] + 3.0 / norm).abs() < 1e-6 && (cut.row(0).norm() - 1.0).abs() < 1e-6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Sums that meet 0 on the way, from values that cancel or explicit zeros, are cut like any others.
    #[test]
    fn a_cut_of_sums_keeps_the_largest_that_are_enough(
        entries in prop::collection::vec(prop::collection::btree_map(0u32..12, -2i8..3, 0..10), 1..6),
        most in 0usize..8,
        mass in prop_oneof![Just(1.0f32), 0.01f32..1.0],
    ) {
        let x: Lists = entries.iter().map(|r| r.iter().map(|(j, v)| (*j, f32::from(*v))).collect()).collect();
        let x = csr(12, &x);
        let y = csr(1, &entries.iter().map(|_| vec![(0, 1.0)]).collect::<Lists>());
        let got = pifa(&x, &y, Cut { most, mass });
        let mut sums = [0i32; 12];
        entries.iter().flatten().for_each(|(j, v)| sums[*j as usize] += i32::from(*v));
        let mut sizes: Vec<i32> = sums.iter().map(|s| s.abs()).filter(|s| *s > 0).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut wanted = f64::from(mass) * sizes.iter().map(|s| f64::from(s * s)).sum::<f64>();
        let enough = sizes.iter().take_while(|s| { let more = wanted > 0.0; wanted -= f64::from(*s * *s); more });
        let enough = enough.count();
        sizes.truncate(if most == 0 { enough } else { enough.min(most) });
        let mut kept: Vec<i32> = got.row(0).indices.iter().map(|j| sums[*j as usize].abs()).collect();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert_eq!(kept, sizes);
    }
}

#[test]
fn extreme_values_make_finite_vectors() {
    let x = csr(3, &[vec![(0, 3e38), (1, 1.0)], vec![(0, 3e38), (2, -3e38)], vec![(1, 1e-38), (2, 1e-40)]]);
    let y = csr(2, &[vec![(0, 1.0)], vec![(0, 1.0)], vec![(1, 1.0)]]);
    let got = pifa(&x, &y, Cut::NONE);
    let shares = given(&x, Cut::to(2), &Control::default()).unwrap();
    for row in got.iter_rows().chain(shares.iter_rows()) {
        assert!(row.values.iter().all(|v| v.is_finite()), "{row:?}");
        assert!((row.norm() - 1.0).abs() < 1e-3, "{row:?}");
    }
}

#[test]
fn vectors_of_some_labels_are_rows_of_those_of_all() {
    let mut rng = Rng::new(3);
    let x = csr(40, &random_rows(&mut rng, 50, 40, 0.2));
    let y = csr(150, &random_rows(&mut rng, 50, 150, 0.05)).transpose();
    let pifa = Pifa::new(&x, x.values(), &y);
    let cut = Cut { most: 20, mass: 0.9 };
    let all: Csr = pifa.all(cut, &Control::default()).unwrap().into();
    let labels = [3, 77, 78, 149];
    let some: Csr = pifa.some(&labels, cut, &Control::default()).unwrap().into();
    for (row, label) in some.iter_rows().zip(labels) {
        let want = all.row(label as usize);
        assert_eq!((row.indices, row.values), (want.indices, want.values));
    }
}

/// 6000 labels in two branches, each with a row of its own: ten large features of random meaning, and small ones that
/// all rows of the branch share. Rows have three labels of their branch.
fn branches(shared: f32) -> (Csr, Csr) {
    let (mut rng, labels) = (Rng::new(5), 6000);
    let branch = |label: usize| label % 2;
    let (mut x, mut y) = (Lists::new(), Lists::new());
    for i in 0..labels {
        let mut row: Vec<(u32, f32)> = (0..10).map(|_| (80 + rng.below(4000) as u32, 1.0)).collect();
        row.extend((0..40).map(|k| ((branch(i) * 40 + k) as u32, shared)));
        row.sort_unstable_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
        x.push(row);
        let mut own: Vec<u32> =
            [i, i + 2 * rng.below(3000), i + 2 * rng.below(3000)].map(|l| (l % labels) as u32).to_vec();
        own.sort_unstable();
        own.dedup();
        y.push(own.into_iter().map(|l| (l, 1.0)).collect());
    }
    (csr(4080, &x), csr(labels, &y))
}

#[test]
fn a_trial_finds_branches_that_a_cut_would_hide() {
    let cut = Cut { most: 0, mass: 0.8 };
    let how = Bisection { spherical: true, iterations: 20, sample: 0 };
    for (shared, want) in [(0.12, true), (0.0, false)] {
        let (x, y) = branches(shared);
        let labels_rows = y.transpose();
        let pifa = Pifa::new(&x, x.values(), &labels_rows);
        for threads in [1, 3] {
            let control = control(threads, 0);
            let found = control.install(|| whole_is_better(&pifa, cut, how, &control)).unwrap().unwrap();
            assert_eq!(found, want, "shared {shared}, {threads} threads");
        }
    }
}

#[test]
fn a_trial_of_few_labels_keeps_the_cut() {
    let (x, y) = branches(0.12);
    let mut few = lists(&y.transpose());
    few.truncate(4000);
    let few = csr(6000, &few);
    let pifa = Pifa::new(&x, x.values(), &few);
    let how = Bisection { spherical: true, iterations: 20, sample: 0 };
    assert!(!whole_is_better(&pifa, Cut { most: 0, mass: 0.8 }, how, &Control::default()).unwrap());
}

/// Two crowds of rows that share no feature, in random places.
fn crowds(rng: &mut Rng, n: usize, cols: usize) -> (Points, Vec<bool>) {
    let mut side: Vec<bool> = (0..n).map(|i| i < n / 2).collect();
    rng.shuffle(&mut side);
    let rows: Lists = side
        .iter()
        .map(|s| {
            let first = if *s { 0 } else { cols as u32 };
            let mut row: Vec<(u32, f32)> = vec![(first, 1.0)];
            for j in 1..cols as u32 {
                if rng.below(3) == 0 {
                    row.push((first + j, rng.unit() as f32));
                }
            }
            row
        })
        .collect();
    (Points::new(csr(2 * cols, &rows)), side)
}

fn bisection(spherical: bool, sample: usize) -> Bisection {
    Bisection { spherical, iterations: 20, sample }
}

fn rng(seed: u64) -> aquila::rng::Rng {
    aquila::rng::Rng::new(&[seed])
}

#[test]
fn halves_are_of_equal_size_and_find_two_crowds() {
    for spherical in [true, false] {
        // 1500 and 6000 rows go through the coarse stages; a sample places the rest.
        for (n, sample) in [(10, 0), (40, 0), (1500, 0), (6000, 0), (6000, 1100), (40, 12)] {
            let mut found = 0;
            for seed in 0..5 {
                let (points, side) = crowds(&mut Rng::new(seed), n, 10);
                let how = bisection(spherical, sample);
                let (left, right) = how.split(&points, rng(seed), &Control::default()).unwrap();
                assert_eq!((left.len(), right.len()), (n / 2, n - n / 2));
                let pure = |half: &[u32]| half.iter().all(|r| side[*r as usize] == side[half[0] as usize]);
                found += usize::from(pure(&left) && pure(&right));
            }
            // Two first rows of one crowd can leave it split where every row takes part at once.
            assert!(found >= if n > 1024 { 5 } else { 3 }, "spherical {spherical}, {n} rows: {found} of 5");
        }
    }
}

#[test]
fn halves_depend_on_the_seed_alone() {
    let points = Points::new(csr(300, &random_rows(&mut Rng::new(3), 3001, 300, 0.2)));
    for sample in [0, 1500] {
        let split = |threads, seed| {
            let how = bisection(true, sample);
            control(threads, 0)
                .install(|| how.split(&points, rng(seed), &Control::default()))
                .unwrap()
                .unwrap()
        };
        let one = split(1, 1);
        assert_eq!((one.0.len(), one.1.len()), (1500, 1501));
        let mut all = [&one.0[..], &one.1[..]].concat();
        assert!(one.0.is_sorted() && one.1.is_sorted());
        all.sort_unstable();
        assert_eq!(all, (0..3001).collect::<Vec<_>>());
        assert_eq!(one, split(2, 1));
        assert_eq!(one, split(5, 1));
        assert_ne!(one, split(1, 2));
    }
}

#[test]
fn rows_that_cannot_be_told_apart_are_halved_too() {
    for row in [vec![(0, 1.0)], vec![(0, 0.0)], vec![(0, 1e30), (1, -1e30)]] {
        for n in [2, 3, 7, 2100] {
            let points = Points::new(csr(2, &vec![row.clone(); n]));
            for spherical in [true, false] {
                let (left, right) =
                    bisection(spherical, 0).split(&points, rng(1), &Control::default()).unwrap();
                assert_eq!((left.len(), right.len()), (n / 2, n - n / 2));
            }
        }
    }
}

#[test]
fn kary_clusters_are_never_empty() {
    let mut r = Rng::new(9);
    for n in [2, 3, 10, 200] {
        for k in [2, 3, 10, 500] {
            for spherical in [true, false] {
                let mut rows = random_rows(&mut r, n, 20, 0.2);
                rows.iter_mut().filter(|x| x.is_empty()).for_each(|x| x.push((0, 1.0)));
                let same = vec![vec![(3, 0.5)]; n];
                let zero = vec![vec![(3, 0.0)]; n];
                for rows in [rows, same, zero] {
                    let points = Points::new(csr(20, &rows));
                    let how = Clustering { k, spherical, iterations: 20 };
                    let parts = how.split(&points, rng(1), &Control::default()).unwrap();
                    assert!(parts.len() >= 2 && parts.len() <= k.min(n), "{n} rows, k {k}: {}", parts.len());
                    assert!(parts.iter().all(|p| !p.is_empty()));
                    let mut all = parts.concat();
                    all.sort_unstable();
                    assert_eq!(all, (0..n as u32).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn kary_finds_crowds() {
    for spherical in [true, false] {
        let mut found = 0;
        for seed in 0..8 {
            let (points, side) = crowds(&mut Rng::new(seed), 60, 8);
            let how = Clustering { k: 2, spherical, iterations: 20 };
            let parts = how.split(&points, rng(seed), &Control::default()).unwrap();
            let pure = |half: &Vec<u32>| half.iter().all(|r| side[*r as usize] == side[half[0] as usize]);
            found += usize::from(parts.iter().all(pure));
        }
        assert!(found >= 4, "spherical {spherical}: {found} of 8");
    }
}

/// Labels under each node whose children are all slots.
fn leaves(tree: &LabelTree) -> Vec<Vec<u32>> {
    let mut out = Vec::new();
    for layer in tree.layers() {
        for p in 0..layer.parents() {
            let own = &layer.labels[layer.children(p)];
            if own.iter().all(|l| *l != NODE) {
                out.push(own.to_vec());
            }
        }
    }
    out
}

fn shape(max_leaf: usize, arity: usize, kary: bool) -> Shape {
    let split = if kary {
        Split::Kary(Clustering { k: arity, spherical: true, iterations: 10 })
    } else {
        Split::Balanced(bisection(true, 0))
    };
    Shape { max_leaf, arity, split }
}

/// Label vectors; every seventh label has none.
fn vectors(labels: usize, with_empty: bool) -> Csr {
    let mut rows = random_rows(&mut Rng::new(labels as u64), labels, 40, 0.2);
    for (l, row) in rows.iter_mut().enumerate() {
        if with_empty && l % 7 == 3 {
            row.clear();
        } else if row.is_empty() {
            row.push((5, 1.0));
        }
    }
    csr(40, &rows)
}

#[test]
fn every_shape_holds_every_label_once() {
    for kary in [false, true] {
        for labels in [1, 2, 3, 5, 9, 17, 100, 333] {
            for max_leaf in [1, 2, 3, 10, 1000] {
                for arity in [2, 3, 10] {
                    for with_empty in [false, true] {
                        let place = format!(
                            "kary {kary}, {labels} labels, leaf {max_leaf}, arity {arity}, {with_empty}"
                        );
                        let v = vectors(labels, with_empty);
                        let empty: Vec<u32> =
                            (0..labels as u32).filter(|l| v.row(*l as usize).is_empty()).collect();
                        let full = labels - empty.len();
                        let tree =
                            build(v, &shape(max_leaf, arity, kary), &Control::default()).expect(&place);
                        let mut slots: Vec<u32> = tree
                            .layers()
                            .iter()
                            .flat_map(|l| &l.labels)
                            .copied()
                            .filter(|l| *l != NODE)
                            .collect();
                        slots.sort_unstable();
                        assert_eq!(slots, (0..labels as u32).collect::<Vec<_>>(), "{place}");
                        if full <= max_leaf {
                            assert_eq!(tree.layers().len(), 1, "{place}");
                            continue;
                        }
                        let root = &tree.layers()[0].labels;
                        let own = usize::from(!empty.is_empty());
                        assert!(root.len() <= arity + own, "{place}: {} under the root", root.len());
                        if own == 1 {
                            let last = &labels_below(&tree)[0][root.len() - 1];
                            assert_eq!(*last, empty, "{place}");
                            // They are placed together, in the last layer.
                            let layer = tree.layers().last().unwrap();
                            let at = layer.parents() - 1;
                            assert_eq!(layer.labels[layer.children(at)], empty[..], "{place}");
                        }
                        for leaf in leaves(&tree).iter().filter(|l| **l != empty) {
                            assert!(leaf.len() <= max_leaf, "{place}: a leaf of {}", leaf.len());
                        }
                        for layer in &tree.layers()[1..] {
                            for p in 0..layer.parents() {
                                let own = &layer.labels[layer.children(p)];
                                assert!(
                                    own[0] != NODE || own.len() <= arity,
                                    "{place}: {} children",
                                    own.len()
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn balanced_leaves_differ_by_one_at_most() {
    for labels in [100, 333, 1025] {
        let tree = build(vectors(labels, false), &shape(10, 4, false), &Control::default()).unwrap();
        let sizes: Vec<usize> = leaves(&tree).iter().map(Vec::len).collect();
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(most - least <= 1, "{labels}: {least} to {most}");
    }
}

#[test]
fn trees_depend_on_the_seed_alone() {
    for kary in [false, true] {
        let make = |threads, seed| {
            let c = control(threads, seed);
            c.install(|| build(vectors(500, true), &shape(6, 5, kary), &c)).unwrap().unwrap()
        };
        let one = make(1, 4);
        assert_eq!(one, make(2, 4));
        assert_eq!(one, make(5, 4));
        assert_ne!(one, make(1, 5));
    }
}

#[test]
fn labels_alone_and_none_with_vectors() {
    let none = build(csr(4, &vec![vec![]; 5]), &shape(2, 2, false), &Control::default()).unwrap();
    assert_eq!(none, LabelTree::flat(5).unwrap());
    let one = build(csr(4, &[vec![(0, 1.0)]]), &shape(1, 2, true), &Control::default()).unwrap();
    assert_eq!(one, LabelTree::flat(1).unwrap());
}

#[test]
fn impossible_shapes_are_refused() {
    for kary in [false, true] {
        for (max_leaf, arity) in [(0, 2), (3, 1), (3, 0)] {
            let made = build(vectors(20, false), &shape(max_leaf, arity, kary), &Control::default());
            refused(made, ErrorCode::InvalidArgument, &[]);
        }
    }
}

#[test]
fn a_cancelled_build_ends() {
    for kary in [false, true] {
        let c = Control::default();
        c.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
        refused(build(vectors(100, false), &shape(5, 4, kary), &c), ErrorCode::Cancelled, &[]);
    }
}

#[test]
fn collapse_widens_the_root_and_keeps_every_label() {
    for seed in 0..20 {
        let tree = crate::common::random_tree(&mut Rng::new(seed), 30, 10);
        let depth = tree.layers().len();
        let mut labels: Vec<Vec<u32>> = Vec::new();
        for times in 0..5 {
            let now = tree.clone().collapse(times);
            assert_eq!(now.layers().len(), depth.saturating_sub(times as usize).max(1));
            let below = labels_below(&now);
            let mut all = below[0].concat();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all, (0..30).collect::<Vec<u32>>());
            labels.push(all);
            // What is placed under the root now is placed `times` layers below it.
            let nodes: Vec<&Vec<u32>> = below[0]
                .iter()
                .zip(&now.layers()[0].labels)
                .filter(|(_, l)| **l == NODE)
                .map(|e| e.0)
                .collect();
            if (times as usize) < depth {
                let old = labels_below(&tree);
                let here = &tree.layers()[times as usize].labels;
                let want: Vec<&Vec<u32>> =
                    old[times as usize].iter().zip(here).filter(|(_, l)| **l == NODE).map(|e| e.0).collect();
                assert_eq!(nodes, want);
            }
        }
    }
}

#[test]
fn a_subset_of_points_keeps_rows_and_products() {
    let mut r = Rng::new(2);
    let m = csr(50, &random_rows(&mut r, 40, 50, 0.1));
    let points = Points::new(m.clone());
    let full: Vec<u32> = (0..40).filter(|l| !m.row(*l as usize).is_empty()).collect();
    assert_eq!(points.labels, full);
    let chosen: Vec<u32> = (0..points.len() as u32).filter(|i| i % 3 == 1).collect();
    let part = points.subset(&chosen);
    assert!(part.cols() <= 50);
    for (a, i) in chosen.iter().enumerate() {
        assert_eq!(part.labels[a], full[*i as usize]);
        for (b, j) in chosen.iter().enumerate() {
            let mut scratch = vec![0f32; 50];
            let mut products = [0f32; 2];
            points.add(&[(*j, 1.0)], &mut scratch);
            points.dots(&[*i], &scratch, &mut products[..1]);
            let mut scratch = vec![0f32; part.cols()];
            part.add(&[(b as u32, 1.0)], &mut scratch);
            part.dots(&[a as u32], &scratch, &mut products[1..]);
            assert!((products[0] - products[1]).abs() < 1e-5);
        }
    }
    assert_eq!(lists(&m).iter().flatten().count(), points.nnz());
}
