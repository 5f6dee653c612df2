//! The projection against the paper's theorems and a naive reference.

use aquila::Csr;
use aquila::control::Control;
use aquila::overlap::{Assignment, Bounds, Leaves, Reached, capped, most_counted};
use aquila::tree::{LabelTree, NODE, TreeLayer};

use crate::common::Rng;

/// A tree of two layers: leaf `l % leaves` holds label `l`.
fn tree(labels: usize, leaves: usize) -> LabelTree {
    let own: Vec<Vec<u32>> =
        (0..leaves).map(|c| (c..labels).step_by(leaves).map(|l| l as u32).collect()).collect();
    let starts = own.iter().fold(vec![0], |mut s: Vec<u32>, o| {
        s.push(s.last().unwrap() + o.len() as u32);
        s
    });
    LabelTree::new(
        labels,
        vec![
            TreeLayer { starts: vec![0, leaves as u32], labels: vec![NODE; leaves] },
            TreeLayer { starts, labels: own.concat() },
        ],
    )
    .unwrap()
}

/// Labels of rows, and which leaves rows reach: scores of a few sizes, so that ties abound.
struct Data {
    y: Csr,
    m: Vec<Vec<(u32, f32)>>,
    leaves: usize,
}

fn data(rng: &mut Rng, rows: usize, labels: usize, leaves: usize, beam: usize) -> Data {
    let lists: crate::common::Lists = (0..rows)
        .map(|_| {
            (0..labels as u32)
                .map(|l| (l, rng.below(3), f32::from(u8::from(rng.below(4) > 0))))
                .filter(|(_, dice, _)| *dice == 0)
                .map(|(l, _, v)| (l, v))
                .collect()
        })
        .collect();
    let m = (0..rows)
        .map(|_| {
            let mut all: Vec<u32> = (0..leaves as u32).collect();
            rng.shuffle(&mut all);
            all.truncate(beam);
            all.into_iter().map(|c| (c, [0.25, 0.5, 1.0][rng.below(3)])).collect()
        })
        .collect();
    Data { y: crate::common::csr(labels, &lists), m, leaves }
}

impl Data {
    fn reached(&self) -> Reached {
        Reached::new(self.leaves, self.m.iter().map(|row| row.iter().copied()))
    }

    fn has(&self, i: usize, l: usize) -> bool {
        self.y.row(i).iter().any(|(j, v)| j as usize == l && v != 0.0)
    }

    /// `A` and the sums of scores and of their roots, by definition.
    fn counts(&self, l: usize, c: usize) -> (u32, f64, f64) {
        let rows = (0..self.m.len()).filter(|i| self.has(*i, l));
        let met = rows.flat_map(|i| self.m[i].iter().filter(|m| m.0 as usize == c));
        met.fold((0, 0.0, 0.0), |(n, s, r), m| (n + 1, s + f64::from(m.1), r + f64::from(m.1).sqrt()))
    }

    /// `Tr(YᵀMCᵀ)`, or with `binary` the positives that are found at all.
    fn objective(&self, c: &Assignment, binary: bool) -> usize {
        let mut total = 0;
        for (i, reached) in self.m.iter().enumerate() {
            for l in (0..self.y.cols()).filter(|l| self.has(i, *l)) {
                let found = reached.iter().filter(|m| c[m.0 as usize].contains(&(l as u32))).count();
                total += if binary { found.min(1) } else { found };
            }
        }
        total
    }
}

fn control() -> Control {
    Control::with_threads(1)
}

#[test]
fn the_projection_is_best_among_all_assignments() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let (labels, leaves, copies) = (3, 3, 1 + seed as usize % 3);
        let data = data(&mut rng, 8, labels, leaves, 2);
        let tree = tree(labels, leaves);
        let ours = most_counted(&Leaves::of(&tree), &data.y.transpose(), &data.reached(), copies, &control())
            .unwrap();
        // One of those that are allowed, but that a leaf which would have lost all labels keeps the one it had.
        for l in 0..labels as u32 {
            let of =
                (0..leaves).filter(|c| ours[*c].contains(&l) && (ours[*c].len() > 1 || *c != l as usize));
            assert!(of.count() <= copies, "seed {seed}: {ours:?}");
        }
        let ours = data.objective(&ours, false);
        // All ways to put each of three labels under some of three leaves: eight choices each.
        let best = (0..512u32)
            .map(|code| [code & 7, code >> 3 & 7, code >> 6])
            .filter(|sets| sets.iter().all(|s| (1..=copies as u32).contains(&s.count_ones())))
            .map(|sets| {
                let under = |c: u32| (0..3u32).filter(|l| sets[*l as usize] >> c & 1 == 1).collect();
                data.objective(&(0..3).map(under).collect(), false)
            })
            .max();
        // Leaves that would have lost all labels keep theirs: never less than the best, which may have empty ones.
        assert!(Some(ours) >= best, "seed {seed}: {ours} of {best:?}");
    }
}

#[test]
fn the_projection_finds_no_fewer_positives_than_any_partition() {
    // A positive is found once at most where each label has one leaf: for partitions and C* of one copy both objectives
    // are the same, and more copies only add.
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (labels, leaves) = (12, 4);
        let data = data(&mut rng, 30, labels, leaves, 1 + seed as usize % 3);
        let own = tree(labels, leaves);
        let leaves_of = Leaves::of(&own);
        for copies in 1..=4 {
            let ours =
                most_counted(&leaves_of, &data.y.transpose(), &data.reached(), copies, &control()).unwrap();
            let mut partition: Assignment = vec![Vec::new(); leaves];
            (0..labels as u32).for_each(|l| partition[rng.below(leaves)].push(l));
            assert!(data.objective(&ours, true) >= data.objective(&partition, true), "seed {seed}, {copies}");
        }
    }
    // And all partitions of a few labels.
    for seed in 0..30 {
        let mut rng = Rng::new(1000 + seed);
        let data = data(&mut rng, 12, 5, 3, 1 + seed as usize % 2);
        let own = tree(5, 3);
        let leaves = Leaves::of(&own);
        let best = (0..243u32).map(|code| {
            let of = |l: u32| code / 3u32.pow(l) % 3;
            let partition = (0..3).map(|c| (0..5).filter(|l| of(*l) == c).collect()).collect();
            data.objective(&partition, true)
        });
        let best = best.max().unwrap();
        for copies in 1..=3 {
            let ours =
                most_counted(&leaves, &data.y.transpose(), &data.reached(), copies, &control()).unwrap();
            assert!(data.objective(&ours, true) >= best, "seed {seed}, {copies}");
        }
    }
}

#[test]
fn leaves_that_are_found_beat_as_many_dealt_at_random() {
    // Each label means two things: its rows go to either of two leaves, and to another by chance.
    let (labels, leaves) = (40u32, 8usize);
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let rows: Vec<u32> = (0..800).map(|i| i % labels).collect();
        let y =
            crate::common::csr(labels as usize, &rows.iter().map(|l| vec![(*l, 1.0)]).collect::<Vec<_>>());
        let own = tree(labels as usize, leaves);
        let go = |l: &u32| {
            let meant = if rng.below(2) == 0 { l % 8 } else { (l / 8 + l % 8 + 1) % 8 };
            let other = (meant + 1 + rng.below(7) as u32) % 8;
            vec![(meant, 1.0), (other, 0.25)]
        };
        let data = Data { y, m: rows.iter().map(go).collect(), leaves };
        let leaves_of = Leaves::of(&own);
        let (labels_rows, reached) = (data.y.transpose(), data.reached());
        let bounds = Bounds { copies: 2, cap: 10, min_score: 0.0, settled: &[] };
        let ours = capped(&leaves_of, &labels_rows, &reached, bounds, &control()).unwrap();
        let star = most_counted(&leaves_of, &labels_rows, &reached, 2, &control()).unwrap();
        let slots = |c: &Assignment| c.iter().map(Vec::len).sum::<usize>();
        let mut random = leaves_of.labels().to_vec();
        while slots(&random) < slots(&star) {
            let (leaf, label) = (rng.below(leaves), rng.below(labels as usize) as u32);
            if !random[leaf].contains(&label) {
                random[leaf].push(label);
            }
        }
        let [ours, star, random] = [&ours, &star, &random].map(|c| data.objective(c, true));
        // All but few rows are found, against about two in three.
        assert!(star > 780 && ours > 780 && random < 640, "seed {seed}: {ours} {star} {random}");
    }
}

/// The capped form by its words: all wishes in one sorted list.
fn naive(data: &Data, own: &[Vec<u32>], bounds: Bounds<'_>) -> Assignment {
    let mut wishes = Vec::new();
    for l in 0..data.y.cols() {
        let rows = (0..data.m.len()).filter(|i| data.has(*i, l)).count();
        for (c, own) in own.iter().enumerate() {
            let (n, s, r) = data.counts(l, c);
            let label = l as u32;
            let may = !own.contains(&label) && !bounds.settled.contains(&label);
            if n > 0 && s >= bounds.min_score * rows as f64 && may {
                wishes.push((r, n, label, c));
            }
        }
    }
    wishes.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3)));
    let mut out = own.to_vec();
    for (_, _, l, c) in wishes {
        let has = out.iter().filter(|o| o.contains(&l)).count();
        if has < bounds.copies && out[c].len() < bounds.cap {
            out[c].push(l);
        }
    }
    out
}

#[test]
fn the_capped_form_is_the_sorted_list_of_all_wishes() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let (labels, leaves) = (30 + rng.below(90), 3 + rng.below(25));
        let tree = tree(labels, leaves);
        let beam = (1 + rng.below(12)).min(leaves);
        let data = data(&mut rng, 40, labels, leaves, beam);
        let mean = labels.div_ceil(leaves);
        let settled: Vec<u32> = (0..labels as u32).filter(|_| seed % 3 == 0 && rng.below(4) == 0).collect();
        let bounds = Bounds {
            copies: 1 + rng.below(4),
            cap: mean * (1 + rng.below(3)) + rng.below(2),
            min_score: [0.0, 0.1, 0.4][rng.below(3)],
            settled: &settled,
        };
        let leaves = Leaves::of(&tree);
        let rows = data.y.transpose();
        let run = |threads: usize| {
            let control = Control::with_threads(threads);
            control.install(|| capped(&leaves, &rows, &data.reached(), bounds, &control)).unwrap().unwrap()
        };
        let ours = run(1);
        assert_eq!(ours, naive(&data, leaves.labels(), bounds), "seed {seed}, {bounds:?}");
        assert_eq!(ours, run(3), "seed {seed}: threads");
        for (own, now) in leaves.labels().iter().zip(&ours) {
            assert!(now.starts_with(own) && now.len() <= bounds.cap.max(own.len()), "seed {seed}");
        }
        let placed = leaves.place(&ours).unwrap();
        assert_eq!(placed.slots(), ours.iter().map(Vec::len).sum::<usize>());
        let mut sorted: Vec<Vec<u32>> = Leaves::of(&placed).labels().to_vec();
        let mut want = ours.clone();
        sorted.iter_mut().chain(&mut want).for_each(|l| l.sort_unstable());
        assert_eq!(sorted, want, "seed {seed}");
    }
}

#[test]
fn ties_go_to_the_lower_label_and_leaf() {
    // Two rows with both labels reach leaves 1 and 2 alike; leaf 1 has one place left.
    let y = crate::common::csr(3, &[vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (1, 1.0)], vec![(2, 1.0)]]);
    let tree = LabelTree::new(
        3,
        vec![
            TreeLayer { starts: vec![0, 3], labels: vec![NODE; 3] },
            TreeLayer { starts: vec![0, 2, 3, 4], labels: vec![0, 1, 2, 2] },
        ],
    )
    .unwrap();
    let both = vec![(2, 0.5), (1, 0.5)];
    let reached = Reached::new(3, [both.clone(), both, vec![]].into_iter());
    let leaves = Leaves::of(&tree);
    let bounds = Bounds { copies: 2, cap: 2, min_score: 0.0, settled: &[] };
    let ours = capped(&leaves, &y.transpose(), &reached, bounds, &control()).unwrap();
    assert_eq!(ours, [vec![0, 1], vec![2, 0], vec![2, 1]]);
}

#[test]
fn ties_of_the_projection_go_by_score_then_to_the_lower_leaf() {
    // Two rows of label 0 reach leaves 0, 1 and 2, the last with the larger scores; those of label 1 all alike; those of
    // label 2 reach leaf 1 twice with less than leaf 0 has of one.
    let y = crate::common::csr(
        3,
        &[vec![(0, 1.0)], vec![(0, 1.0)], vec![(1, 1.0)], vec![(2, 1.0)], vec![(2, 1.0)]],
    );
    let tree = tree(3, 3);
    let reached = [
        vec![(0, 0.5), (1, 0.25), (2, 0.5)],
        vec![(2, 0.5), (1, 0.25), (0, 0.25)],
        vec![(2, 0.5), (1, 0.5), (0, 0.5)],
        vec![(1, 0.25), (0, 1.0)],
        vec![(1, 0.25)],
    ];
    let reached = Reached::new(3, reached.into_iter());
    let star = |copies| {
        let leaves = Leaves::of(&tree);
        most_counted(&leaves, &y.transpose(), &reached, copies, &control()).unwrap()
    };
    assert_eq!(star(1), [vec![1], vec![2], vec![0]]);
    assert_eq!(star(2), [vec![0, 1, 2], vec![1, 2], vec![0]]);
    assert_eq!(star(3), [vec![0, 1, 2], vec![0, 1, 2], vec![0, 1]]);
}

#[test]
fn labels_under_the_root_and_labels_without_rows_stay_where_they_are() {
    let y = crate::common::csr(4, &[vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0), (2, 1.0)]]);
    // Label 0 is placed under the root; label 3 has no row.
    let tree = LabelTree::new(
        4,
        vec![
            TreeLayer { starts: vec![0, 3], labels: vec![NODE, 0, NODE] },
            TreeLayer { starts: vec![0, 2, 3], labels: vec![1, 3, 2] },
        ],
    )
    .unwrap();
    let leaves = Leaves::of(&tree);
    assert_eq!((leaves.count(), leaves.at_root(0), leaves.at_root(1)), (2, true, false));
    let all = [(0, 1.0), (1, 1.0)];
    let reached = Reached::new(2, [all, all].into_iter());
    let bounds = Bounds { copies: 9, cap: 9, min_score: 0.0, settled: &[] };
    let ours = capped(&leaves, &y.transpose(), &reached, bounds, &control()).unwrap();
    assert_eq!(ours, [vec![1, 3, 2], vec![2, 1]]);
    assert_eq!(
        most_counted(&leaves, &y.transpose(), &reached, 1, &control()).unwrap(),
        [vec![1, 2, 3], vec![2]]
    );
    let placed = leaves.place(&ours).unwrap();
    assert_eq!(placed.layers()[0], tree.layers()[0]);
}
