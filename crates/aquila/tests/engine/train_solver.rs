//! The blocked solver against liblinear's dual coordinate descent, one label at a time in f64.

use crate::common::{Lists, Rng, Single, random_rows};
use aquila::control::Control;
use aquila::kernels::Isa;
use aquila::kernels::dcd::{DualLoss, Entries, Problem, Rows, Span, Step};
use aquila::linear::{REST, Scratch, Stop, lanes_of, solve, width_of};
use proptest::prelude::*;

const LOSSES: [DualLoss; 3] = [DualLoss::SquaredHinge, DualLoss::Hinge, DualLoss::Logistic];

/// The rows as the solver takes them; `lone` features are left out of the columns.
struct Flat {
    idx: Vec<u32>,
    val: Vec<f32>,
    spans: Vec<Span>,
    cols: usize,
}

impl Flat {
    fn new(rows: &Lists, cols: usize, lone: &dyn Fn(u32) -> bool) -> Self {
        let mut out = Self { idx: vec![], val: vec![], spans: vec![], cols };
        for row in rows {
            let begin = out.idx.len();
            let squares =
                |keep: &dyn Fn(u32) -> bool| row.iter().filter(|e| keep(e.0)).map(|e| e.1 * e.1).sum::<f32>();
            for (j, v) in row.iter().filter(|e| !lone(e.0)) {
                out.idx.push(*j);
                out.val.push(*v);
            }
            out.spans.push(Span {
                begin,
                end: out.idx.len(),
                squared: squares(&|_| true),
                lone: squares(lone),
            });
        }
        out
    }

    fn rows(&self) -> Rows<'_> {
        Rows::new(Entries::new(&self.idx, &self.val, self.cols), &self.spans)
    }
}

/// What all labels of a block are learned from.
struct Case {
    rows: Lists,
    cols: usize,
    lanes: usize,
    positives: Vec<u32>,
    relevance: Option<Vec<f32>>,
    step: Step,
}

impl Case {
    fn new(seed: u64, n: usize, cols: usize, lanes: usize, step: Step, relevance: bool) -> Self {
        let mut rng = Rng::new(seed);
        let rows = random_rows(&mut rng, n, cols, 0.2);
        let positives =
            (0..n).map(|_| (0..lanes).fold(0, |m, l| m | u32::from(rng.below(4) == 0) << l)).collect();
        let width = width_of(lanes as u32);
        let relevance = relevance.then(|| (0..n * width).map(|_| 0.2 + 2.0 * rng.unit() as f32).collect());
        Self { rows, cols, lanes, positives, relevance, step }
    }

    fn single(&self, lane: usize) -> Single<'_> {
        let width = width_of(self.lanes as u32);
        let positive = |i: usize| self.positives[i] >> lane & 1 == 1;
        let cost = |i: usize| {
            let r = self.relevance.as_ref().map_or(1.0, |r| f64::from(r[i * width + lane]));
            r * f64::from(if positive(i) { self.step.cp } else { self.step.cn })
        };
        Single {
            loss: self.step.loss,
            rows: &self.rows,
            cols: self.cols,
            y: (0..self.rows.len()).map(|i| if positive(i) { 1.0 } else { -1.0 }).collect(),
            cost: (0..self.rows.len()).map(cost).collect(),
            bias: f64::from(self.step.bias),
        }
    }

    /// The engine's answer.
    fn learn(&self, isa: Isa, width: usize, active: u32, lone: &dyn Fn(u32) -> bool, stop: Stop) -> Scratch {
        let flat = Flat::new(&self.rows, self.cols, lone);
        let relevance = self.relevance.as_ref().map(|r| {
            let own = width_of(self.lanes as u32);
            (0..self.rows.len() * width)
                .map(|e| if e % width < own { r[e / width * own + e % width] } else { 1.0 })
                .collect::<Vec<f32>>()
        });
        let problem = Problem {
            rows: flat.rows(),
            positives: &self.positives,
            relevance: relevance.as_deref(),
            step: self.step,
        };
        let mut scratch = Scratch::default();
        let rng = aquila::rng::Rng::new(&[7]);
        solve(isa, &problem, None, active, width, stop, rng, &mut scratch, &Control::default()).unwrap();
        scratch
    }

    /// A lane's weights with the bias weight last; lone features from their row's dual variable.
    fn weights(&self, scratch: &Scratch, lane: usize, lone: &dyn Fn(u32) -> bool) -> Vec<f64> {
        let s = &scratch.siblings;
        let mut w: Vec<f64> = (0..self.cols).map(|j| f64::from(s.weights(j)[lane])).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let sign = if self.positives[i] >> lane & 1 == 1 { 1.0 } else { -1.0 };
            for (j, v) in row.iter().filter(|e| lone(e.0)) {
                w[*j as usize] = sign * f64::from(s.alpha(i)[lane]) * f64::from(*v);
            }
        }
        w.push(f64::from(s.bias()[lane]));
        w
    }
}

const FINE: Stop = Stop { eps: 3e-4, gain: 0.0, max_passes: 4000 };

fn step(loss: DualLoss, cp: f32, cn: f32, bias: f32) -> Step {
    Step { loss, cp, cn, bias, rest: REST * FINE.eps }
}

fn none(_: u32) -> bool {
    false
}

#[test]
fn reaches_the_optimum_of_the_reference_on_every_register() {
    for loss in LOSSES {
        for (n, (cp, cn, bias, relevance)) in
            [(1.0, 1.0, 1.0, false), (1.0, 1.0, 0.0, false), (3.0, 0.5, 1.0, false), (1.0, 2.0, 2.5, true)]
                .into_iter()
                .enumerate()
        {
            for lanes in [3, 7, 13] {
                let case = Case::new(n as u64 + 1, 50, 30, lanes, step(loss, cp, cn, bias), relevance);
                let best: Vec<f64> = (0..lanes)
                    .map(|l| {
                        let single = case.single(l);
                        single.objective(&single.solve())
                    })
                    .collect();
                for isa in Isa::available() {
                    for width in [4, 8, 16, 32].into_iter().filter(|w| *w >= lanes) {
                        let active = (1 << lanes) - 1;
                        let scratch = case.learn(isa, width, active, &none, FINE);
                        for (lane, best) in best.iter().enumerate() {
                            let got = case.single(lane).objective(&case.weights(&scratch, lane, &none));
                            assert!(
                                (got - best).abs() <= 1e-3 * best,
                                "{loss:?} {isa:?} {width} lane {lane} cp {cp} cn {cn} bias {bias}: {got}, not {best}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn logistic_bears_large_costs() {
    // Newton's iteration on the one-variable dual leaps from tail to tail here unless it is held back.
    for cost in [20.0, 300.0] {
        let case = Case::new(23, 40, 20, 4, step(DualLoss::Logistic, cost, cost / 2.0, 2.0), false);
        let scratch = case.learn(Isa::detect(), 4, 0b1111, &none, FINE);
        for lane in 0..4 {
            let single = case.single(lane);
            let best = single.objective(&single.solve());
            let got = single.objective(&case.weights(&scratch, lane, &none));
            assert!((got - best).abs() <= 1e-3 * best, "cost {cost} lane {lane}: {got}, not {best}");
        }
    }
}

#[test]
fn every_register_takes_the_same_way() {
    // Few passes: not only the end but each step agrees.
    for loss in LOSSES {
        let case = Case::new(11, 60, 25, 4, step(loss, 1.5, 0.7, 1.0), true);
        let stop = Stop { eps: 1e-6, gain: 0.0, max_passes: 5 };
        let plain = case.learn(Isa::Scalar, 4, 0b1111, &none, stop);
        for isa in Isa::available() {
            for width in [4, 8, 16, 32] {
                let other = case.learn(isa, width, 0b1111, &none, stop);
                for lane in 0..4 {
                    let (a, b) = (case.weights(&plain, lane, &none), case.weights(&other, lane, &none));
                    for (j, (a, b)) in a.iter().zip(&b).enumerate() {
                        assert!((a - b).abs() < 2e-4, "{loss:?} {isa:?} {width} lane {lane} w[{j}]: {a} {b}");
                    }
                }
            }
        }
    }
}

#[test]
fn lanes_that_are_not_asked_for_stay_at_zero() {
    for loss in LOSSES {
        let case = Case::new(3, 30, 20, 8, step(loss, 1.0, 1.0, 1.0), false);
        for isa in Isa::available() {
            let scratch = case.learn(isa, 8, 0b1010_0110, &none, FINE);
            for lane in 0..8 {
                let zero = case.weights(&scratch, lane, &none).iter().all(|w| *w == 0.0);
                assert_eq!(zero, 0b1010_0110 >> lane & 1 == 0, "{loss:?} {isa:?} lane {lane}");
            }
        }
    }
}

#[test]
fn features_of_a_single_row_may_be_left_out() {
    for loss in LOSSES {
        let mut case = Case::new(17, 40, 20, 5, step(loss, 2.0, 1.0, 1.0), true);
        // Every second row gets two features of its own behind the shared ones.
        for i in (0..40).step_by(2) {
            case.rows[i].extend([(20 + i as u32, 0.8), (21 + i as u32, -1.1)]);
        }
        case.cols = 60;
        let lone = |j: u32| j >= 20;
        for isa in Isa::available() {
            let plain = case.learn(isa, 8, 0b11111, &none, FINE);
            let apart = case.learn(isa, 8, 0b11111, &lone, FINE);
            for lane in 0..5 {
                let (a, b) = (case.weights(&plain, lane, &none), case.weights(&apart, lane, &lone));
                for (j, (a, b)) in a.iter().zip(&b).enumerate() {
                    assert!((a - b).abs() < 2e-3, "{loss:?} {isa:?} lane {lane} w[{j}]: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_single_row_is_solved_too() {
    // ½(v² + v²) + (1 − 2v)²: v = 2/(1 + 4·…), by hand: alpha·(q + D) = 1 with q = 2, D = ½.
    for isa in Isa::available() {
        let case = Case {
            rows: vec![vec![(0, 1.0)]],
            cols: 1,
            lanes: 1,
            positives: vec![1],
            relevance: None,
            step: step(DualLoss::SquaredHinge, 1.0, 1.0, 1.0),
        };
        let w = case.weights(&case.learn(isa, 4, 1, &none, FINE), 0, &none);
        assert!((w[0] - 0.4).abs() < 1e-3 && (w[1] - 0.4).abs() < 1e-3, "{isa:?}: {w:?}");
    }
}

#[test]
fn rows_of_one_kind_that_share_nothing_are_solved_too() {
    // Every row is a problem of its own: all gradients agree, which is not the same as being small.
    for loss in LOSSES {
        let case = Case {
            rows: (0..6).map(|i| vec![(i, 1.0)]).collect(),
            cols: 6,
            lanes: 1,
            positives: vec![1; 6],
            relevance: None,
            step: step(loss, 1.0, 1.0, 0.0),
        };
        let single = case.single(0);
        let best = single.objective(&single.solve());
        let got = single.objective(&case.weights(&case.learn(Isa::Scalar, 4, 1, &none, FINE), 0, &none));
        assert!((got - best).abs() < 1e-3 * best, "{loss:?}: {got}, not {best}");
    }
}

#[test]
fn stops_at_the_passes_and_at_a_cancelled_call() {
    let case = Case::new(1, 40, 20, 2, step(DualLoss::SquaredHinge, 1.0, 1.0, 1.0), false);
    let flat = Flat::new(&case.rows, case.cols, &none);
    let problem = Problem { rows: flat.rows(), positives: &case.positives, relevance: None, step: case.step };
    let mut scratch = Scratch::default();
    let mut run = |max_passes, eps, control: &Control| {
        let rng = aquila::rng::Rng::new(&[1]);
        solve(
            Isa::Scalar,
            &problem,
            None,
            0b11,
            4,
            Stop { eps, gain: 0.0, max_passes },
            rng,
            &mut scratch,
            control,
        )
    };
    assert_eq!(run(3, 1e-6, &Control::default()).unwrap(), 3);
    assert!(run(1000, 0.1, &Control::default()).unwrap() < 100);
    let control = Control::default();
    control.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    crate::common::refused(run(3, 0.1, &control), aquila::ErrorCode::Cancelled, &[]);
}

#[test]
fn a_lane_ends_where_a_pass_gains_little() {
    for loss in LOSSES {
        let case = Case::new(3, 300, 40, 3, step(loss, 1.0, 1.0, 1.0), false);
        let flat = Flat::new(&case.rows, case.cols, &none);
        let problem =
            Problem { rows: flat.rows(), positives: &case.positives, relevance: None, step: case.step };
        let passes = |gain| {
            let (stop, rng) = (Stop { eps: 0.0, gain, max_passes: 500 }, aquila::rng::Rng::new(&[1]));
            let mut scratch = Scratch::default();
            solve(Isa::Scalar, &problem, None, 0b111, 4, stop, rng, &mut scratch, &Control::default())
                .unwrap()
        };
        // Less is asked for with each, and the first asks for nothing.
        let [never, fine, coarse] = [0.0, 1e-4, 1e-2].map(passes);
        assert!(
            never == 500 && fine < 100 && coarse < fine && coarse > 1,
            "{loss:?}: {never} {fine} {coarse}"
        );
        let objective = |stop| {
            let scratch = case.learn(Isa::Scalar, 4, 0b111, &none, stop);
            case.single(1).objective(&case.weights(&scratch, 1, &none))
        };
        let (best, got) = (objective(FINE), objective(Stop { eps: 0.0, gain: 1e-4, max_passes: 500 }));
        assert!(got - best < 0.01 * best, "{loss:?}: {got}, not {best}");
    }
}

#[test]
fn survivors_are_the_weights_of_at_least_the_threshold() {
    let case = Case::new(2, 50, 37, 11, step(DualLoss::SquaredHinge, 1.0, 1.0, 1.0), false);
    for isa in Isa::available() {
        for width in [16, 32] {
            let scratch = case.learn(isa, width, 0x7ff, &none, FINE);
            for threshold in [0.0, 0.1, 0.3] {
                let mut got = Vec::new();
                scratch.siblings.survivors(isa, threshold, &mut got);
                for (j, mask) in got.iter().enumerate() {
                    for (lane, w) in scratch.siblings.weights(j).iter().enumerate() {
                        let want = w.abs() >= threshold && *w != 0.0;
                        assert_eq!(mask >> lane & 1 == 1, want, "{isa:?} {threshold}: {w}");
                    }
                }
            }
        }
    }
}

#[test]
fn siblings_are_stepped_through_together_but_for_the_last_few() {
    let steps = |mut left: usize, cols| {
        let mut steps = Vec::new();
        while left > 0 {
            steps.push(lanes_of(left, Isa::Avx2, cols, false));
            left -= steps[steps.len() - 1];
        }
        steps
    };
    let [near, between, far] = [1000, 100_000, 1_000_000];
    assert_eq!((steps(82, near), steps(17, near)), (vec![32, 32, 18], vec![17]));
    assert_eq!((steps(40, between), steps(17, between)), (vec![16, 16, 8], vec![16, 1]));
    assert_eq!(
        (steps(82, far), steps(57, far), steps(17, far)),
        (vec![32, 32, 16, 2], vec![32, 25], vec![16, 1])
    );
}

#[test]
fn widths_hold_their_lanes() {
    for lanes in 1..=32 {
        let width = width_of(lanes);
        assert!(width >= lanes as usize && (width == 4 || width / 2 < lanes as usize));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Karush, Kuhn and Tucker: `w = Σ α·y·x`; each `α` is within its bounds; away from a bound the gradient is
    /// 0, at a bound it points outwards.
    #[test]
    fn the_end_is_a_point_of_kkt(
        seed in any::<u64>(),
        n in 2usize..40,
        cols in 1usize..25,
        lanes in 1usize..33,
        which in 0usize..3,
        cp in 0.2f32..4.0,
        cn in 0.2f32..4.0,
        bias in prop_oneof![Just(0.0f32), 0.3f32..2.0],
        relevance in any::<bool>(),
    ) {
        let case = Case::new(seed, n, cols, lanes, step(LOSSES[which], cp, cn, bias), relevance);
        let width = width_of(lanes as u32);
        let scratch = case.learn(Isa::detect(), width, u32::MAX >> (32 - lanes), &none, Stop { eps: 1e-3, gain: 0.0, max_passes: 5000 });
        for lane in 0..lanes {
            let single = case.single(lane);
            let w = case.weights(&scratch, lane, &none);
            let mut sum = vec![0.0; cols + 1];
            for (i, row) in case.rows.iter().enumerate() {
                let a = f64::from(scratch.siblings.alpha(i)[lane]);
                row.iter().for_each(|(j, v)| sum[*j as usize] += a * single.y[i] * f64::from(*v));
                sum[cols] += a * single.y[i] * single.bias;
                let (m, c) = (single.margin(&w, i), single.cost[i]);
                prop_assert!(a >= 0.0);
                let tolerance = 0.02;
                match single.loss {
                    DualLoss::Logistic => {
                        prop_assert!(a <= c * 1.00001);
                        let gap = (a / c - 1.0 / (1.0 + m.exp())).abs();
                        prop_assert!(gap < tolerance, "row {i} lane {lane}: α/C {} margin {m}", a / c);
                    }
                    loss => {
                        let d = if loss == DualLoss::SquaredHinge { 0.5 / c } else { 0.0 };
                        let g = m - 1.0 + d * a;
                        if loss == DualLoss::Hinge {
                            prop_assert!(a <= c * 1.00001);
                        }
                        if a == 0.0 {
                            prop_assert!(g > -tolerance, "row {i} lane {lane}: at 0, gradient {g}");
                        } else if loss == DualLoss::Hinge && a >= c * 0.99999 {
                            prop_assert!(g < tolerance, "row {i} lane {lane}: at C, gradient {g}");
                        } else {
                            prop_assert!(g.abs() < tolerance, "row {i} lane {lane}: inside, gradient {g}");
                        }
                    }
                }
            }
            for (j, (a, b)) in w.iter().zip(&sum).enumerate() {
                prop_assert!((a - b).abs() < 2e-3 * b.abs().max(1.0), "w[{j}] {a}, but Σ αyx {b}");
            }
        }
    }
}
