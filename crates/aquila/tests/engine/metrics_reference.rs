//! Measures against a dense reference written straight from the formulas, on random input.

use aquila::Ranked;
use aquila::metrics::{AtK, Evaluator, Metrics, Propensity, Report, Unlabelled, evaluate, rank};
use aquila::{Control, Csr};
use proptest::prelude::*;

/// A random test set: `scores[row][label]` is None where nothing is predicted.
#[derive(Debug, Clone)]
struct Case {
    labels: usize,
    scores: Vec<Vec<Option<f32>>>,
    truth: Vec<Vec<bool>>,
    weights: Vec<f32>,
    ks: Vec<u32>,
    floor: Option<f32>,
    skip: bool,
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..8, 0usize..7).prop_flat_map(|(labels, rows)| {
        // Few distinct scores, so that ties are the rule.
        let score = prop_oneof![Just(None), (-2i8..3).prop_map(|s| Some(f32::from(s) / 2.0))];
        let dense =
            |p: f64| prop::collection::vec(prop::collection::vec(prop::bool::weighted(p), labels), rows);
        (
            prop::collection::vec(prop::collection::vec(score, labels), rows),
            dense(0.3),
            prop::collection::vec(1.0f32..9.0, labels),
            prop::collection::vec(1u32..10, 1..5),
            prop::option::of((-2i8..3).prop_map(|s| f32::from(s) / 2.0)),
            any::<bool>(),
        )
            .prop_map(move |(scores, truth, weights, ks, floor, skip)| Case {
                labels,
                scores,
                truth,
                weights,
                ks,
                floor,
                skip,
            })
    })
}

impl Case {
    fn metrics(&self) -> Metrics {
        let mut metrics = Metrics {
            propensity: Some(Propensity::new(self.weights.clone()).unwrap()),
            ..Metrics::at(self.ks.clone())
        };
        metrics.params.floor = self.floor.unwrap_or(f32::MIN);
        metrics.params.unlabelled = if self.skip { Unlabelled::Skip } else { Unlabelled::Keep };
        metrics
    }

    fn csr(&self, entry: impl Fn(usize, usize) -> Option<f32>) -> Csr {
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for i in 0..self.truth.len() {
            for l in 0..self.labels {
                if let Some(v) = entry(i, l) {
                    indices.push(l as u32);
                    values.push(v);
                }
            }
            indptr.push(indices.len());
        }
        Csr::new(self.truth.len(), self.labels, indptr, indices, values).unwrap()
    }

    fn scores(&self) -> Csr {
        self.csr(|i, l| self.scores[i][l])
    }

    /// Every third false entry is stored as an explicit zero; true ones hold odd values.
    fn truth(&self) -> Csr {
        self.csr(|i, l| match self.truth[i][l] {
            true => Some([1.0, -2.0, 0.5][(i + l) % 3]),
            false => ((i + l) % 3 == 0).then_some(0.0),
        })
    }

    /// Labels of row i, best first, found by looking for the best one again and again.
    fn list(&self, i: usize) -> Vec<usize> {
        let mut left = self.scores[i].clone();
        let mut list = Vec::new();
        loop {
            let mut best: Option<usize> = None;
            for l in 0..self.labels {
                if left[l].is_some() && best.is_none_or(|b| left[l] > left[b]) {
                    best = Some(l);
                }
            }
            let Some(l) = best else { return list };
            left[l] = None;
            list.push(l);
        }
    }

    fn reference(&self, k: usize) -> [f64; 10] {
        let log = |rank: usize| ((rank + 1) as f64).ln();
        let d = |n: usize| (1..=n).map(|l| 1.0 / log(l)).sum::<f64>();
        let kept: Vec<usize> =
            (0..self.truth.len()).filter(|i| !self.skip || self.truth[*i].contains(&true)).collect();
        let n = kept.len().max(1) as f64;
        let weight = |l: usize| f64::from(self.weights[l]);
        // The rank of each label, from 1, for the model's list and for the best one.
        let gain = |i: usize, list: &[usize], value: &dyn Fn(usize, usize) -> f64| -> f64 {
            (1..=k.min(list.len()))
                .filter(|r| self.truth[i][list[r - 1]])
                .map(|r| value(list[r - 1], r))
                .sum()
        };
        let size = |i: usize| self.truth[i].iter().filter(|t| **t).count();
        let ideal = |i: usize| {
            let mut list: Vec<usize> = (0..self.labels).filter(|l| self.truth[i][*l]).collect();
            list.sort_by(|a, b| self.weights[*b].partial_cmp(&self.weights[*a]).unwrap());
            list
        };
        let mean = |of: &dyn Fn(usize) -> f64| kept.iter().map(|i| of(*i)).sum::<f64>() / n;
        let over = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a / b };
        // As printed on the page, factors that cancel included.
        let scored = |value: &dyn Fn(usize, usize) -> f64, scale: &dyn Fn(usize) -> f64| {
            over(
                mean(&|i| over(gain(i, &self.list(i), value), scale(i))),
                mean(&|i| over(gain(i, &ideal(i), value), scale(i))),
            )
        };
        let chosen = |i: usize, l: usize| {
            let floor = self.floor.unwrap_or(f32::NEG_INFINITY);
            self.list(i).iter().take(k).any(|c| *c == l) && self.scores[i][l].unwrap() >= floor
        };
        let f1 = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
            let (mut both, mut either) = (0.0, 0.0);
            for (i, l) in pairs {
                both += f64::from(chosen(i, l) && self.truth[i][l]);
                either += f64::from(chosen(i, l)) + f64::from(self.truth[i][l]);
            }
            over(2.0 * both, either)
        };
        let grid = || kept.iter().flat_map(|i| (0..self.labels).map(|l| (*i, l)));
        [
            mean(&|i| gain(i, &self.list(i), &|_, _| 1.0) / k as f64),
            mean(&|i| over(gain(i, &self.list(i), &|_, r| 1.0 / log(r)), d(k.min(size(i))))),
            mean(&|i| over(gain(i, &self.list(i), &|_, _| 1.0), size(i) as f64)),
            scored(&|l, _| weight(l), &|_| k as f64),
            scored(&|l, r| weight(l) / log(r), &|_| d(k)),
            scored(&|l, r| weight(l) / log(r), &|i| d(k.min(size(i)))),
            f1(&mut grid()),
            (0..self.labels).map(|l| f1(&mut kept.iter().map(|i| (*i, l)))).sum::<f64>() / self.labels as f64,
            mean(&|i| f1(&mut (0..self.labels).map(|l| (i, l)))),
            over(
                grid().filter(|(i, l)| chosen(*i, *l) == self.truth[*i][*l]).count() as f64,
                grid().count() as f64,
            ),
        ]
    }
}

fn columns(r: &Report) -> [&AtK; 10] {
    [
        &r.precision,
        &r.ndcg,
        &r.recall,
        r.psp.as_ref().unwrap(),
        r.psndcg.as_ref().unwrap(),
        r.psndcg_per_row.as_ref().unwrap(),
        &r.micro_f1,
        &r.macro_f1,
        &r.example_f1,
        &r.hamming_accuracy,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn equals_the_reference(case in case()) {
        let ranked = rank(&case.scores());
        for i in 0..case.truth.len() {
            let list: Vec<u32> = case.list(i).into_iter().map(|l| l as u32).collect();
            prop_assert_eq!(&ranked.labels[ranked.indptr[i]..ranked.indptr[i + 1]], &list[..]);
        }
        let report = evaluate(&ranked, &case.truth(), &case.metrics()).unwrap();
        for &k in &case.ks {
            for (m, (at, expected)) in columns(&report).into_iter().zip(case.reference(k as usize)).enumerate() {
                prop_assert!((at[&k] - expected).abs() < 1e-9, "measure {} at {}: {} instead of {}", m, k, at[&k], expected);
                prop_assert!((0.0..=1.0 + 1e-12).contains(&at[&k]), "measure {} at {}: {}", m, k, at[&k]);
            }
        }
    }

    #[test]
    fn the_ideal_list_reaches_one(case in case()) {
        // Labels scored by their weight: nothing can be better.
        let best = case.csr(|i, l| case.truth[i][l].then_some(case.weights[l]));
        let report = evaluate(&rank(&best), &case.truth(), &case.metrics()).unwrap();
        if case.truth.iter().flatten().any(|t| *t) {
            for at in &columns(&report)[3..6] {
                for v in at.values() {
                    prop_assert!((v - 1.0).abs() < 1e-12, "{}", v);
                }
            }
        }
    }

    #[test]
    fn merged_parts_equal_the_whole(case in case(), cut in 0usize..7) {
        let (ranked, truth) = (rank(&case.scores()), case.truth());
        let whole = evaluate(&ranked, &truth, &case.metrics()).unwrap();
        let mut parts = [(); 2].map(|()| Evaluator::new(&case.metrics(), case.labels).unwrap());
        for i in 0..truth.rows() {
            let span = ranked.indptr[i]..ranked.indptr[i + 1];
            let part = &mut parts[usize::from(i >= cut)];
            part.add(&ranked.labels[span.clone()], Some(&ranked.scores[span]), truth.row(i)).unwrap();
        }
        // One evaluator that takes part after part has the same bits as one that takes all at once.
        let mut streamed = Evaluator::new(&case.metrics(), case.labels).unwrap();
        let cut = cut.min(truth.rows());
        for rows in [0..cut, cut..truth.rows()] {
            let start = ranked.indptr[rows.start];
            let span = start..ranked.indptr[rows.end];
            let some = Ranked {
                indptr: ranked.indptr[rows.start..=rows.end].iter().map(|p| p - start).collect(),
                labels: ranked.labels[span.clone()].to_vec(),
                scores: ranked.scores[span].to_vec(),
            };
            let part = Case { truth: case.truth[rows].to_vec(), ..case.clone() }.truth();
            streamed.add_all(&some, &part, &Control::default()).unwrap();
        }
        prop_assert_eq!(&streamed.report(), &whole);
        let [mut first, second] = parts;
        first.merge(&second).unwrap();
        let merged = first.report();
        prop_assert_eq!((merged.rows, merged.unlabelled_rows), (whole.rows, whole.unlabelled_rows));
        for (a, b) in columns(&merged).into_iter().zip(columns(&whole)) {
            for (k, v) in a {
                prop_assert!((v - b[k]).abs() < 1e-12);
            }
        }
    }
}
