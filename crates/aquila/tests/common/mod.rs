//! Random numbers, small data sets, trees, and where real data is; nothing of it comes from the engine.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use aquila::control::Control;
use aquila::kernels::dcd::DualLoss;
use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::{Csr, ErrorCode, Features, Result};
use std::path::PathBuf;

/// A small generator (xorshift): tests must not depend on the engine's.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) as usize) % n
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A control with these threads and this seed.
pub fn control(threads: usize, seed: u64) -> Control {
    let mut control = Control::with_threads(threads);
    control.seed = seed;
    control
}

/// A file of real data where it is there; where not, says that the test is skipped.
pub fn shared(name: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("AQUILA_DATA").unwrap_or_else(|_| default.to_owned());
    let path = PathBuf::from(&folder).join(name);
    let there = path.exists();
    if !there {
        println!("skipped: no {name} in {folder} (set AQUILA_DATA)");
    }
    there.then_some(path)
}

/// Rows of (column, value), columns ascending.
pub type Lists = Vec<Vec<(u32, f32)>>;

/// Rows as a checked matrix.
pub fn csr(cols: usize, rows: &[Vec<(u32, f32)>]) -> Csr {
    let mut indptr = vec![0];
    rows.iter().for_each(|r| indptr.push(indptr.last().unwrap() + r.len()));
    let (indices, values) = rows.iter().flatten().copied().unzip();
    Csr::new(rows.len(), cols, indptr, indices, values).unwrap()
}

/// A matrix as rows of (column, value).
pub fn lists(m: &Csr) -> Lists {
    m.iter_rows().map(|r| r.iter().collect()).collect()
}

/// Random rows; about `density` of the entries are there, some rows are empty.
pub fn random_rows(rng: &mut Rng, rows: usize, cols: usize, density: f64) -> Lists {
    let entry = |rng: &mut Rng, j| (rng.unit() < density).then(|| (j, (rng.unit() * 2.0 - 0.6) as f32));
    (0..rows).map(|_| (0..cols as u32).filter_map(|j| entry(rng, j)).collect()).collect()
}

/// Rows whose labels can be told from their features: each label owns three features, a row shows the features of its
/// one or two labels and some noise.
pub fn separable(seed: u64, rows: usize, labels: usize) -> (Features, Csr) {
    let mut rng = Rng::new(seed);
    let cols = labels * 3 + 20;
    let (mut x, mut y) = (Lists::new(), Lists::new());
    for i in 0..rows {
        let mut own = vec![(i % labels) as u32];
        if rng.below(3) == 0 {
            own.push(rng.below(labels) as u32);
        }
        own.sort_unstable();
        own.dedup();
        let mut row: Vec<(u32, f32)> = Vec::new();
        for l in &own {
            row.extend((0..3).map(|k| (l * 3 + k, 1.0 + rng.unit() as f32)));
        }
        row.extend((0..3).map(|_| ((labels * 3 + rng.below(20)) as u32, 0.5)));
        row.sort_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
        x.push(row);
        y.push(own.into_iter().map(|l| (l, 1.0)).collect());
    }
    (csr(cols, &x).into(), csr(labels, &y))
}

/// A tree of mixed depth, two to five children a node, in which some labels have several slots.
pub fn random_tree(rng: &mut Rng, labels: usize, copies: usize) -> LabelTree {
    let mut todo: Vec<u32> = (0..labels as u32).collect();
    todo.extend((0..copies).map(|_| rng.below(labels) as u32));
    rng.shuffle(&mut todo);
    let mut layers = Vec::new();
    let mut nodes = 1;
    while nodes > 0 {
        let mut layer = TreeLayer { starts: vec![0], labels: Vec::new() };
        let last = layers.len() >= 3 || todo.len() <= nodes * 3;
        let mut inner = 0;
        for node in 0..nodes {
            let mut own: Vec<u32> = Vec::new();
            let take = if !last {
                2 + rng.below(4)
            } else if node + 1 == nodes {
                todo.len()
            } else {
                todo.len() / (nodes - node)
            };
            for _ in 0..take {
                // A node of the last layer needs a label, whatever is left.
                if !last && (inner == 0 || rng.below(3) > 0) {
                    own.push(NODE);
                    inner += 1;
                } else if let Some(label) = todo.pop()
                    && !own.contains(&label)
                {
                    own.push(label);
                }
            }
            if own.is_empty() {
                own.push(rng.below(labels) as u32);
            }
            layer.labels.extend(own);
            layer.starts.push(layer.labels.len() as u32);
        }
        layers.push(layer);
        nodes = inner;
    }
    // A second slot under one node is left out above: a label may have lost its only one.
    let top = &mut layers[0];
    let seen: Vec<u32> = todo;
    let missing: Vec<u32> = seen.into_iter().filter(|l| !top.labels.contains(l)).collect();
    for label in missing {
        if !top.labels.contains(&label) {
            top.labels.push(label);
        }
    }
    for label in 0..labels as u32 {
        if !layers.iter().any(|l| l.labels.contains(&label)) {
            layers[0].labels.push(label);
        }
    }
    layers[0].starts[1] = layers[0].labels.len() as u32;
    LabelTree::new(labels, layers).unwrap()
}

/// For each column of each layer, the labels at and below it, ascending; a slow walk down from every column.
pub fn labels_below(tree: &LabelTree) -> Vec<Vec<Vec<u32>>> {
    fn walk(tree: &LabelTree, t: usize, column: usize, out: &mut Vec<u32>) {
        let layer = &tree.layers()[t];
        if layer.labels[column] != NODE {
            out.push(layer.labels[column]);
            return;
        }
        let node = layer.labels[..column].iter().filter(|l| **l == NODE).count();
        tree.layers()[t + 1].children(node).for_each(|c| walk(tree, t + 1, c, out));
    }
    let of = |t: usize, c: usize| {
        let mut out = Vec::new();
        walk(tree, t, c, &mut out);
        out.sort_unstable();
        out
    };
    (0..tree.layers().len()).map(|t| (0..tree.layers()[t].columns()).map(|c| of(t, c)).collect()).collect()
}

/// Requires this code, and these words in the message.
pub fn refused<T>(result: Result<T>, code: ErrorCode, words: &[&str]) {
    let e = match result {
        Ok(_) => panic!("expected {code}, but it went through"),
        Err(e) => e,
    };
    assert_eq!(e.code(), code, "{e}");
    for word in words {
        assert!(e.message().contains(word), "\"{e}\" does not name \"{word}\"");
    }
}

/// One label's problem: rows, signs, costs, the constant feature.
pub struct Single<'a> {
    pub loss: DualLoss,
    pub rows: &'a Lists,
    pub cols: usize,
    pub y: Vec<f64>,
    pub cost: Vec<f64>,
    pub bias: f64,
}

impl Single<'_> {
    pub fn margin(&self, w: &[f64], i: usize) -> f64 {
        let x: f64 = self.rows[i].iter().map(|(j, v)| w[*j as usize] * f64::from(*v)).sum();
        self.y[i] * (x + w[self.cols] * self.bias)
    }

    /// ½‖w‖² + Σ C·loss(margin); the bias weight stands last in `w`.
    pub fn objective(&self, w: &[f64]) -> f64 {
        let loss = |m: f64| match self.loss {
            DualLoss::SquaredHinge => (1.0 - m).max(0.0).powi(2),
            DualLoss::Hinge => (1.0 - m).max(0.0),
            DualLoss::Logistic => (-m).exp().ln_1p(),
        };
        let errors: f64 = (0..self.rows.len()).map(|i| self.cost[i] * loss(self.margin(w, i))).sum();
        0.5 * w.iter().map(|v| v * v).sum::<f64>() + errors
    }

    /// Plain dual coordinate descent, as liblinear writes it (hinges), and with bisection on the derivative
    /// (logistic), until nothing moves.
    pub fn solve(&self) -> Vec<f64> {
        let mut w = vec![0.0; self.cols + 1];
        let mut alpha = vec![0.0; self.rows.len()];
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let mut rng = Rng::new(5);
        for _ in 0..3000 {
            rng.shuffle(&mut order);
            let mut largest = 0f64;
            for &i in &order {
                let squared: f64 = self.rows[i].iter().map(|(_, v)| f64::from(*v).powi(2)).sum();
                let q = squared + self.bias * self.bias;
                let (m, a, c) = (self.margin(&w, i), alpha[i], self.cost[i]);
                let to = match self.loss {
                    DualLoss::SquaredHinge => {
                        let d = 0.5 / c;
                        (a - (m - 1.0 + d * a) / (q + d)).max(0.0)
                    }
                    DualLoss::Hinge if q > 0.0 => (a - (m - 1.0) / q).clamp(0.0, c),
                    DualLoss::Hinge => c,
                    DualLoss::Logistic => {
                        let (mut low, mut high) = (0.0, c);
                        for _ in 0..60 {
                            let z = 0.5 * (low + high);
                            let slope = q * (z - a) + m + (z / (c - z)).ln();
                            if slope > 0.0 { high = z } else { low = z }
                        }
                        0.5 * (low + high)
                    }
                };
                alpha[i] = to;
                let d = (to - a) * self.y[i];
                self.rows[i].iter().for_each(|(j, v)| w[*j as usize] += d * f64::from(*v));
                w[self.cols] += d * self.bias;
                largest = largest.max((to - a).abs());
            }
            if largest < 1e-7 {
                break;
            }
        }
        w
    }
}

/// Rows with features and labels of Zipf's frequencies, as texts have them.
pub fn texts(rows: usize, features: usize, labels: usize, words: usize) -> (Features, Csr) {
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
