//! What giving labels to samples is worth: the simulation of EAGLE's Theorem 1 (Shen et al., ICML 2020, Figures 3 and 6).
//!
//! ```sh
//! cargo run --release -p aquila --example label_assignment -- [rounds] [seed]
//! ```
//!
//! prints one JSON object; `bench/simulation.mjs` makes a table and a picture of it.
//!
//! Samples come in groups and the responses of a group are known without their order. Three least-squares estimators:
//! NoAS regresses the groups' summed responses on their summed samples; AS gives each response to the sample of its
//! group for which NoAS predicts it best, and regresses on these pairs; the oracle knows the true pairs. Each round
//! divides the errors of NoAS and AS by the oracle's.
//!
//! *Regression:* samples `c_j + d_i` with `c_j ~ N(0, σ₁²I)` for a group and `d_i ~ N(0, σ₂²I)`, `σ₁ = 1`; responses
//! `xB + ε` with `ε ~ N(0, I)` and `‖B‖₂ = 1`. The error is the root mean square of `B̂ − B`.
//!
//! *Classification:* samples `e_k + N(0, σ₁²I)` with `σ₁ = 0.1` and unit vectors `e_k`, one a class; the response is the
//! unit vector of the class of largest `⟨e_k, x⟩`. A group draws the class of each sample with probability
//! `(1 + [k = h]·(exp σ₂ − 1)) / (l − 1 + exp σ₂)` for a random `h`: evenly at `σ₂ = 0`, nearly always `h` at 10. (The paper has
//! `exp σ₂` for `exp σ₂ − 1`, whose sum is above 1.) So groups grow more alike with σ₂ here. Answers are nearly always
//! right, and the share of wrong ones would be 0 over 0: the error is the root mean square of predicted less true
//! responses on fresh samples of all classes, and the share of wrong answers is told beside it.

use aquila::rng::Rng;
use serde_json::{Value, json};

/// The paper's sizes: samples, samples of a group, features, responses.
const N: usize = 1000;
const G: usize = 10;
const D: usize = 10;
const L: usize = 5;
/// The paper's values of σ₂.
const SPREADS: [f64; 5] = [0.0, 0.1, 1.0, 5.0, 10.0];

type Sample = [f64; D];
type Response = [f64; L];
/// A linear model: what each feature adds to each response.
type Weights = [Response; D];

/// A number from 0 up to 1.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Independent normal numbers (Box and Muller, 1958).
fn normals<const K: usize>(rng: &mut Rng, scale: f64) -> [f64; K] {
    std::array::from_fn(|_| {
        let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
        scale * radius * (std::f64::consts::TAU * unit(rng)).cos()
    })
}

fn add<const K: usize>(a: [f64; K], b: [f64; K]) -> [f64; K] {
    std::array::from_fn(|i| a[i] + b[i])
}

fn dot<const K: usize>(a: &[f64; K], b: &[f64; K]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The squared distance.
fn apart<const K: usize>(a: &[f64; K], b: &[f64; K]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn predict(weights: &Weights, x: &Sample) -> Response {
    std::array::from_fn(|k| (0..D).map(|f| weights[f][k] * x[f]).sum())
}

/// The place of the largest number.
fn top(of: &Response) -> usize {
    (0..L).max_by(|a, b| of[*a].total_cmp(&of[*b])).expect("responses are not empty")
}

/// Least squares by the normal equations, `(Σ xxᵀ)⁻¹ Σ xzᵀ`, solved by elimination with pivots.
fn regress(pairs: impl Iterator<Item = (Sample, Response)>) -> Weights {
    let mut system = [[0.0; D + L]; D];
    for (x, z) in pairs {
        for (row, a) in system.iter_mut().zip(x) {
            row.iter_mut().zip(x.iter().chain(&z)).for_each(|(sum, b)| *sum += a * b);
        }
    }
    for f in 0..D {
        let pivot = (f..D).max_by(|a, b| system[*a][f].abs().total_cmp(&system[*b][f].abs()));
        system.swap(f, pivot.expect("f is below D"));
        let row = system[f];
        for other in (0..D).filter(|other| *other != f) {
            let factor = system[other][f] / row[f];
            system[other].iter_mut().zip(row).for_each(|(a, b)| *a -= factor * b);
        }
    }
    std::array::from_fn(|f| std::array::from_fn(|k| system[f][D + k] / system[f][f]))
}

/// Samples with their responses, group after group.
struct Data {
    samples: Vec<Sample>,
    responses: Vec<Response>,
}

impl Data {
    fn groups(&self) -> impl Iterator<Item = (&[Sample], &[Response])> {
        self.samples.chunks(G).zip(self.responses.chunks(G))
    }

    /// Without label assignment: sums of groups.
    fn no_as(&self) -> Weights {
        regress(self.groups().map(|(samples, responses)| {
            let sum = samples.iter().copied().reduce(add).expect("groups are not empty");
            (sum, responses.iter().copied().reduce(add).expect("groups are not empty"))
        }))
    }

    /// With it: each response at the sample for which `weights` predict it best, the first of equals.
    fn with_as(&self, weights: &Weights) -> Weights {
        regress(self.groups().flat_map(|(samples, responses)| {
            let told: Vec<Response> = samples.iter().map(|x| predict(weights, x)).collect();
            responses.iter().map(move |z| {
                let nearest = (0..G).min_by(|a, b| apart(&told[*a], z).total_cmp(&apart(&told[*b], z)));
                (samples[nearest.expect("groups are not empty")], *z)
            })
        }))
    }

    /// With the true pairs.
    fn oracle(&self) -> Weights {
        regress(self.samples.iter().copied().zip(self.responses.iter().copied()))
    }
}

/// What one round found: errors of NoAS and AS divided by the oracle's, and the shares of wrong answers of all three.
struct Found {
    relative: [f64; 2],
    wrong: [f64; 3],
}

impl Found {
    fn new(data: &Data, error: impl Fn(&Weights) -> f64, wrong: impl Fn(&Weights) -> f64) -> Self {
        let no_as = data.no_as();
        let (with_as, oracle) = (data.with_as(&no_as), data.oracle());
        let unit = error(&oracle);
        Self {
            relative: [error(&no_as) / unit, error(&with_as) / unit],
            wrong: [wrong(&no_as), wrong(&with_as), wrong(&oracle)],
        }
    }
}

/// A random model of spectral norm 1.
fn truth(rng: &mut Rng) -> Weights {
    let weights: Weights = std::array::from_fn(|_| normals(rng, 1.0));
    // Power iteration on BᵀB.
    let (mut v, mut squared) = ([1.0; L], 1.0);
    for _ in 0..200 {
        let across: Sample = std::array::from_fn(|f| dot(&weights[f], &v));
        let back: Response = std::array::from_fn(|k| (0..D).map(|f| weights[f][k] * across[f]).sum());
        squared = dot(&back, &back).sqrt();
        v = back.map(|b| b / squared);
    }
    weights.map(|row| row.map(|w| w / squared.sqrt()))
}

fn regression(rng: &mut Rng, spread: f64) -> Found {
    let weights = truth(rng);
    let mut samples = Vec::with_capacity(N);
    for _ in 0..N / G {
        let centre = normals(rng, 1.0);
        samples.extend((0..G).map(|_| add(centre, normals(rng, spread))));
    }
    let responses = samples.iter().map(|x| add(predict(&weights, x), normals(rng, 1.0))).collect();
    let error = |found: &Weights| found.iter().zip(&weights).map(|(a, b)| apart(a, b)).sum::<f64>().sqrt();
    Found::new(&Data { samples, responses }, error, |_| 0.0)
}

fn classification(rng: &mut Rng, spread: f64) -> Found {
    let classes: [Sample; L] = std::array::from_fn(|_| {
        let e = normals(rng, 1.0);
        let length = dot(&e, &e).sqrt();
        e.map(|v| v / length)
    });
    let sample = |rng: &mut Rng, class: usize| -> (Sample, Response) {
        let x = add(classes[class], normals(rng, 0.1));
        let own = top(&std::array::from_fn(|k| dot(&classes[k], &x)));
        (x, std::array::from_fn(|k| if k == own { 1.0 } else { 0.0 }))
    };
    let at_home = (spread.exp() - 1.0) / (L as f64 - 1.0 + spread.exp());
    let (mut samples, mut responses) = (Vec::with_capacity(N), Vec::with_capacity(N));
    for _ in 0..N / G {
        let home = rng.below(L as u32) as usize;
        for _ in 0..G {
            let class = if unit(rng) < at_home { home } else { rng.below(L as u32) as usize };
            let (x, z) = sample(rng, class);
            samples.push(x);
            responses.push(z);
        }
    }
    let fresh: Vec<_> = (0..N).map(|i| sample(rng, i % L)).collect();
    let error = |found: &Weights| fresh.iter().map(|(x, z)| apart(&predict(found, x), z)).sum::<f64>().sqrt();
    let wrong = |found: &Weights| {
        fresh.iter().filter(|(x, z)| top(&predict(found, x)) != top(z)).count() as f64 / N as f64
    };
    Found::new(&Data { samples, responses }, error, wrong)
}

/// Mean and standard deviation.
fn summary(values: &[f64]) -> Value {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    json!({ "mean": mean, "sd": (squares / (n - 1.0).max(1.0)).sqrt() })
}

/// A task at every spread.
fn run(task: fn(&mut Rng, f64) -> Found, number: u64, rounds: u64, seed: u64) -> Value {
    let at = |(i, spread): (usize, &f64)| {
        let round = |round| task(&mut Rng::new(&[seed, number, i as u64, round]), *spread);
        let found: Vec<Found> = (0..rounds).map(round).collect();
        let of = |measure: &dyn Fn(&Found) -> f64| summary(&found.iter().map(measure).collect::<Vec<_>>());
        json!({
            "spread": spread,
            "noAs": of(&|f| f.relative[0]),
            "as": of(&|f| f.relative[1]),
            "wrong": { "noAs": of(&|f| f.wrong[0]), "as": of(&|f| f.wrong[1]), "oracle": of(&|f| f.wrong[2]) },
        })
    };
    SPREADS.iter().enumerate().map(at).collect()
}

fn main() {
    let given: Result<Vec<u64>, _> = std::env::args().skip(1).map(|arg| arg.parse()).collect();
    let (rounds, seed) = match given.as_deref() {
        Ok([]) => (200, 0),
        Ok([rounds @ 1..=u64::MAX]) => (*rounds, 0),
        Ok([rounds @ 1..=u64::MAX, seed]) => (*rounds, *seed),
        _ => {
            eprintln!("Expected at most two whole numbers: rounds, at least 1, and a seed");
            std::process::exit(1);
        }
    };
    let found = json!({
        "rounds": rounds,
        "seed": seed,
        "sizes": { "samples": N, "groupSize": G, "features": D, "responses": L },
        "regression": run(regression, 0, rounds, seed),
        "classification": run(classification, 1, rounds, seed),
    });
    println!("{found}");
}
