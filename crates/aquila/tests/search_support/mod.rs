//! Random trees, weights and rows, and a naive reference predictor that shares no code with the engine's.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use aquila::control::Control;
use aquila::tree::{LabelTree, NODE, TreeLayer};
use aquila::xlinear::{
    Block, DenseCodes, Merge, Model, ModelParts, PredictParams, ScoreForm, WeightFormat, WeightKind,
};
use aquila::{Csr, Dense, FeatureRow, Features};
use std::collections::{BTreeMap, HashMap};

/// A small generator (xorshift): tests must not depend on the engine's.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) as usize) % n
    }

    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// What a random model looks like.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: &'static str,
    pub seed: u64,
    pub features: usize,
    /// How many of the features, the last ones, are a dense block.
    pub dense: usize,
    pub labels: usize,
    /// Children of each node of each layer but the last: from and to.
    pub inner: Vec<(usize, usize)>,
    /// The chance that a child above the last layer is a slot.
    pub early: f32,
    /// Further slots of labels that have one already.
    pub copies: usize,
    /// Labels that have a slot under the root too.
    pub at_root: usize,
    /// The chance of a (feature, column) weight.
    pub density: f32,
    /// Every so many-th feature is rare; 0: none.
    pub rare: u32,
    /// The chance that a column was never trained.
    pub untrained: f32,
    pub kind: WeightKind,
    /// How slots of a label are merged.
    pub merge: Merge,
    /// Whether rows are scaled to length 1.
    pub normalize: bool,
}

impl Plan {
    pub fn new(name: &'static str, labels: usize, inner: &[(usize, usize)]) -> Self {
        Self {
            name,
            seed: 1,
            features: 200,
            dense: 0,
            labels,
            inner: inner.to_vec(),
            early: 0.0,
            copies: 0,
            at_root: 0,
            density: 0.2,
            rare: 0,
            untrained: 0.0,
            kind: WeightKind::Byte,
            merge: Merge::All,
            normalize: true,
        }
    }
}

/// The shapes that every property is tested over.
pub fn plans() -> Vec<Plan> {
    let base = Plan::new;
    vec![
        base("one label", 1, &[]),
        base("flat in the head", 90, &[]),
        base("flat, many chunks", 1500, &[]),
        Plan { density: 0.7, ..base("dense leaves", 400, &[(8, 8)]) },
        base("narrow leaves", 600, &[(16, 16), (4, 6)]),
        Plan { density: 0.02, features: 1000, ..base("sparse", 3000, &[(2, 2), (16, 16), (8, 16)]) },
        Plan { density: 0.05, ..base("wide leaves", 3000, &[(3, 3)]) },
        Plan { density: 0.05, ..base("wide inner nodes", 3000, &[(1200, 1200)]) },
        Plan { early: 0.3, ..base("mixed depth", 500, &[(6, 9), (3, 9), (2, 5)]) },
        Plan { early: 0.2, copies: 300, ..base("mixed depth, several slots", 300, &[(5, 9), (10, 20)]) },
        Plan { copies: 400, ..base("several slots", 400, &[(20, 20)]) },
        Plan { copies: 400, merge: Merge::Average, ..base("several slots, average", 400, &[(20, 20)]) },
        Plan { copies: 400, merge: Merge::Max, ..base("several slots, max", 400, &[(20, 20)]) },
        Plan { copies: 400, merge: Merge::Sum, ..base("several slots, sum", 400, &[(20, 20)]) },
        Plan {
            copies: 300,
            merge: Merge::Average,
            ..base("mixed depth, several slots, average", 300, &[(5, 9), (10, 20)])
        },
        Plan { copies: 400, untrained: 0.3, ..base("several slots, some untrained", 400, &[(20, 20)]) },
        // Slots under the root beside those of the leaves; the root in one chunk, in several, with few in the head.
        Plan { copies: 500, at_root: 30, ..base("several slots and the root's", 400, &[(20, 20)]) },
        Plan {
            copies: 500,
            at_root: 40,
            untrained: 0.2,
            merge: Merge::Sum,
            ..base("several slots and the root's, sum, deep", 400, &[(4, 4), (5, 6)])
        },
        Plan {
            copies: 300,
            at_root: 300,
            merge: Merge::Max,
            ..base("all labels under the root too, max", 300, &[(12, 12)])
        },
        Plan { at_root: 200, dense: 20, ..base("one leaf and the root, dense block", 500, &[(100, 100)]) },
        Plan {
            at_root: 60,
            early: 0.2,
            merge: Merge::Average,
            ..base("mixed depth and the root's, average", 300, &[(5, 9), (6, 9), (3, 4)])
        },
        Plan { untrained: 0.4, ..base("untrained columns", 300, &[(20, 20)]) },
        Plan { features: 60, density: 0.02, ..base("pages", 9000, &[(60, 60), (80, 100)]) },
        Plan { features: 40, density: 0.3, ..base("full pages", 9000, &[(60, 60), (80, 100)]) },
        Plan { features: 40, density: 0.001, ..base("nearly empty", 9000, &[(60, 60), (80, 100)]) },
        // Sections with a code for every column: all of a layer, rare features' too, and those of some features.
        Plan { density: 1.3, rare: 5, ..base("full layers", 700, &[(12, 12)]) },
        Plan { density: 1.3, kind: WeightKind::Bf16, ..base("full layers, bf16", 300, &[(4, 4)]) },
        Plan { density: 1.3, ..base("full layers, wide leaves", 2000, &[(3, 3), (4, 6)]) },
        Plan { kind: WeightKind::Bf16, ..base("bf16", 700, &[(16, 16)]) },
        Plan { kind: WeightKind::F32, ..base("f32", 700, &[(16, 16), (2, 3)]) },
        Plan { kind: WeightKind::F32, density: 0.8, ..base("f32, dense", 700, &[(16, 16)]) },
        Plan { dense: 70, ..base("dense block", 700, &[(7, 9), (2, 6)]) },
        Plan {
            dense: 33,
            copies: 100,
            untrained: 0.2,
            early: 0.2,
            ..base("dense block, mixed depth", 300, &[(5, 9), (10, 20)])
        },
        Plan { dense: 48, features: 48, ..base("dense alone, wide leaves", 1500, &[(3, 3)]) },
        Plan { dense: 20, kind: WeightKind::Bf16, ..base("dense block, bf16", 300, &[(16, 16)]) },
        Plan { dense: 100, kind: WeightKind::F32, ..base("dense block, f32, flat", 500, &[]) },
    ]
}

/// A shape with over 65,535 weights of a feature in one section, and yet less than half of all: too large for each
/// property.
pub fn wide_counts() -> Plan {
    Plan { features: 4, density: 0.55, ..Plan::new("wide counts", 180_000, &[(1700, 1700)]) }
}

/// A model with everything the reference needs.
pub struct Made {
    pub plan: Plan,
    pub tree: LabelTree,
    pub format: WeightFormat,
    /// For each layer and column: the bias and the weights by feature, as stored.
    pub columns: Vec<Vec<(f32, HashMap<u32, f32>)>>,
    pub model: Model,
}

fn tree(plan: &Plan, rng: &mut Rng) -> LabelTree {
    let mut todo: Vec<u32> = (0..plan.labels as u32).collect();
    for i in (1..todo.len()).rev() {
        todo.swap(i, rng.below(i + 1));
    }
    let mut layers = Vec::new();
    let mut parents = 1;
    for (t, &(from, to)) in plan.inner.iter().enumerate() {
        let (mut starts, mut labels) = (vec![0], Vec::new());
        for _ in 0..parents {
            for child in 0..from + rng.below(to - from + 1) {
                let early = t > 0 && child > 0 && rng.unit() < plan.early && todo.len() > 1;
                labels.push(if early { todo.pop().unwrap() } else { NODE });
            }
            starts.push(labels.len() as u32);
        }
        parents = labels.iter().filter(|l| **l == NODE).count();
        layers.push(TreeLayer { starts, labels });
    }
    // Every leaf gets a label at least: where there are too few, labels repeat.
    let mut leaves: Vec<Vec<u32>> = vec![Vec::new(); parents];
    for (i, leaf) in leaves.iter_mut().enumerate() {
        let again = (i % plan.labels) as u32;
        leaf.push(todo.pop().unwrap_or(again));
    }
    for label in todo {
        let leaf = rng.below(parents);
        leaves[leaf].push(label);
    }
    for _ in 0..plan.copies {
        let (leaf, label) = (rng.below(parents), rng.below(plan.labels) as u32);
        if !leaves[leaf].contains(&label) {
            leaves[leaf].push(label);
        }
    }
    let mut starts = vec![0];
    for leaf in &leaves {
        starts.push(starts.last().unwrap() + leaf.len() as u32);
    }
    layers.push(TreeLayer { starts, labels: leaves.concat() });
    if plan.at_root > 0 {
        // Between its nodes and after them.
        let root = &mut layers[0].labels;
        for i in 0..plan.at_root {
            let label = (i * 7 % plan.labels) as u32;
            if !root.contains(&label) {
                root.insert(rng.below(root.len() + 1), label);
            }
        }
        layers[0].starts = vec![0, layers[0].labels.len() as u32];
    }
    LabelTree::new(plan.labels, layers).unwrap()
}

/// Makes the model of a plan, with this many threads.
pub fn make(plan: &Plan, threads: usize) -> Made {
    let mut rng = Rng(plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let tree = tree(plan, &mut rng);
    let format = WeightFormat::new(plan.kind, 0.1);
    let dense = DenseCodes::new(plan.kind, plan.dense);
    let (mut blocks, mut columns) = (Vec::new(), Vec::new());
    for (t, layer) in tree.layers().iter().enumerate() {
        let mut of_layer = vec![(f32::NEG_INFINITY, HashMap::new()); layer.columns()];
        for parent in 0..layer.parents() {
            let children = layer.children(parent);
            for first in (0..children.len()).step_by(16) {
                let lanes = (children.len() - first).min(16);
                let mut block = Block {
                    layer: t as u32,
                    parent: parent as u32,
                    first: first as u32,
                    lanes: lanes as u32,
                    features: vec![],
                    masks: vec![],
                    codes: vec![],
                    dense: vec![],
                    scales: [0.0; 16],
                    bias: [f32::NEG_INFINITY; 16],
                };
                let trained: Vec<bool> = (0..lanes).map(|_| rng.unit() >= plan.untrained).collect();
                for lane in (0..lanes).filter(|l| trained[*l]) {
                    block.bias[lane] = rng.unit() * 2.0 - 1.5;
                    of_layer[children.start + first + lane].0 = block.bias[lane];
                }
                let sparse = plan.features - plan.dense;
                for lane in (0..lanes).filter(|_| plan.dense > 0) {
                    let weight = |_| if trained[lane] { rng.unit() * 2.0 - 1.0 } else { 0.0 };
                    let weights: Vec<f32> = (0..plan.dense).map(weight).collect();
                    block.scales[lane] = dense.encode(&weights, &mut block.dense);
                    let own = &mut of_layer[children.start + first + lane].1;
                    let codes = &block.dense[block.dense.len() - dense.stride()..];
                    let stored = |j: usize| match plan.kind {
                        WeightKind::Byte => f32::from(codes[j] as i8) * block.scales[lane],
                        WeightKind::Bf16 => format.decode(&codes[2 * j..]),
                        WeightKind::F32 => format.decode(&codes[4 * j..]),
                    };
                    for j in (0..plan.dense).filter(|_| trained[lane]) {
                        assert!((stored(j) - weights[j]).abs() < 0.005, "{:?}", plan.kind);
                        own.insert((sparse + j) as u32, stored(j));
                    }
                }
                for f in 0..sparse as u32 {
                    let mut mask = 0u16;
                    // Some features are common, most are not.
                    let often = plan.density * if f % 10 == 0 { 3.0 } else { 0.7 };
                    let rare = plan.rare > 0 && f % plan.rare == 1;
                    for lane in (0..lanes).filter(|l| trained[*l]) {
                        if rng.unit() < if rare { 0.1 } else { often } {
                            let w = (0.1 + 2.0 * rng.unit()) * if rng.below(2) == 0 { 1.0 } else { -1.0 };
                            // The code of zeros.
                            let w = if f % 20 == 10 && lane == 3 { 0.0625 } else { w };
                            let mut code = Vec::new();
                            format.encode(w, &mut code);
                            of_layer[children.start + first + lane].1.insert(f, format.decode(&code));
                            block.codes.extend_from_slice(&code);
                            mask |= 1 << lane;
                        }
                    }
                    if mask != 0 {
                        block.features.push(f);
                        block.masks.push(mask);
                    }
                }
                if trained.contains(&true) {
                    blocks.push(block);
                }
            }
        }
        columns.push(of_layer);
    }
    // Any order of blocks makes the same model.
    for i in (1..blocks.len()).rev() {
        blocks.swap(i, rng.below(i + 1));
    }
    let mut parts =
        ModelParts { features: plan.features, dense: plan.dense, seed: plan.seed, ..ModelParts::default() };
    parts.params.overlap.merge = plan.merge;
    parts.params.model.normalize = plan.normalize;
    let model = Model::assemble(parts, &tree, format, blocks, &Control::with_threads(threads)).unwrap();
    Made { plan: plan.clone(), tree, format, columns, model }
}

/// Random rows: some empty, some with explicit zeros, of very different lengths.
pub fn rows(features: usize, n: usize, seed: u64) -> Features {
    let mut rng = Rng(seed | 1);
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let share = [0.0, 0.02, 0.1, 0.3, 1.0][i % 5];
        for f in 0..features as u32 {
            if rng.unit() < share {
                indices.push(f);
                values.push(if rng.below(20) == 0 { 0.0 } else { rng.unit() * 2.0 - 0.7 });
            }
        }
        indptr.push(indices.len());
    }
    Csr::new(n, features, indptr, indices, values).unwrap().into()
}

/// Random rows for the model of a plan, with a dense block where it has one: some rows of zeros there, some zeros in
/// others, all multiples of 1/255 with one of 1, which a query keeps as they are.
pub fn rows_of(plan: &Plan, n: usize, seed: u64) -> Features {
    let sparse = rows(plan.features - plan.dense, n, seed);
    if plan.dense == 0 {
        return sparse;
    }
    let mut rng = Rng(seed + 12_345);
    let value = |e: usize| match (e / plan.dense % 4, e % plan.dense) {
        (1, _) => 0.0,
        (_, 0) => 1.0,
        _ => (rng.below(511) as f32 - 255.0) / 255.0,
    };
    let values = (0..n * plan.dense).map(value).collect();
    Features::new(sparse.sparse().clone(), Some(Dense::new(n, plan.dense, values).unwrap())).unwrap()
}

fn log_score(form: ScoreForm, v: f64) -> f64 {
    let t = (1.0 - v).max(0.0);
    let lacks = (3.0 - v).clamp(0.0, 2.0) + (11.0 - v).clamp(0.0, 8.0) / 8.0;
    let beyond = -lacks / f64::from(1 << 20);
    match form {
        ScoreForm::L1Hinge | ScoreForm::LogL1Hinge => beyond - t,
        ScoreForm::L2Hinge | ScoreForm::LogL2Hinge => beyond - t.powi(2),
        ScoreForm::L3Hinge | ScoreForm::LogL3Hinge => beyond - t.powi(3),
        ScoreForm::L4Hinge | ScoreForm::LogL4Hinge => beyond - t.powi(4),
        ScoreForm::Sigmoid | ScoreForm::LogSigmoid => -((-v).exp().ln_1p()),
        ScoreForm::Margin => v,
    }
}

pub fn is_product(form: ScoreForm) -> bool {
    matches!(
        form,
        ScoreForm::L1Hinge
            | ScoreForm::L2Hinge
            | ScoreForm::L3Hinge
            | ScoreForm::L4Hinge
            | ScoreForm::Sigmoid
    )
}

/// The logarithm of the score (bare margins: the margin) of every label that the search reaches, −∞ for those never
/// trained. `enter(layer, column)` says whether a node or slot is looked at, apart from the beam.
pub fn reference(
    made: &Made,
    x: &Features,
    row: usize,
    params: &PredictParams,
    beam: usize,
    enter: &dyn Fn(usize, usize) -> bool,
) -> BTreeMap<u32, f64> {
    let FeatureRow { sparse, dense } = x.row(row);
    let last = (x.sparse().cols() as u32..).zip(dense.iter().copied());
    let row: Vec<(u32, f32)> = sparse.iter().chain(last).collect();
    let norm = row.iter().map(|(_, v)| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let scale = if norm > 0.0 { 1.0 / norm } else { 1.0 };
    let form = params.scores;
    // For each label the keys of its slots, and what their classifiers have in them.
    let mut slots: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    let mut nodes = vec![(0usize, 0.0f64)];
    let mut edge = f64::NEG_INFINITY;
    for (t, layer) in made.tree.layers().iter().enumerate() {
        let mut next: Vec<(usize, f64)> = Vec::new();
        for &(parent, above) in &nodes {
            for column in layer.children(parent) {
                if !enter(t, column) {
                    continue;
                }
                let (bias, weights) = &made.columns[t][column];
                let mut margin = f64::from(*bias);
                for &(f, v) in &row {
                    margin += weights.get(&f).map_or(0.0, |w| f64::from(*w) * f64::from(v) * scale);
                }
                let own = log_score(form, margin);
                let key = if form == ScoreForm::Margin { own } else { above + own };
                match layer.labels[column] {
                    NODE => {
                        let node = layer.labels[..column].iter().filter(|l| **l == NODE).count();
                        next.push((node, key));
                    }
                    label => slots.entry(label).or_default().push((key, own)),
                }
            }
        }
        next.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        next.truncate(beam);
        if next.len() == beam {
            edge = next[beam - 1].1;
        }
        next.sort_by_key(|n| n.0);
        nodes = next;
    }
    // Scores themselves, scaled by that of the label's best slot, as the definitions have them.
    let merged = |label: u32, slots: Vec<(f64, f64)>| {
        let best = slots.iter().copied().filter(|s| s.0.is_finite()).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((best, own)) = best else {
            return f64::NEG_INFINITY;
        };
        let trained: Vec<f64> = slots.iter().map(|s| s.0).filter(|k| k.is_finite()).collect();
        let margins = form == ScoreForm::Margin;
        let reached = trained.len() as f64;
        let of_label =
            made.tree.layers().iter().flat_map(|l| &l.labels).filter(|l| **l == label).count() as f64;
        let sum: f64 =
            if margins { trained.iter().sum() } else { trained.iter().map(|k| (k - best).exp()).sum() };
        let score = match made.plan.merge {
            Merge::Max => return best,
            Merge::Sum => sum,
            Merge::All if !margins => {
                let roots: f64 = trained.iter().map(|k| (k - best).exp().sqrt()).sum();
                let missing = ((edge - best).exp() * own.exp().sqrt()).sqrt().min(roots / reached);
                ((roots + (of_label - reached) * missing) / of_label).powi(2)
            }
            Merge::All | Merge::Average => sum / reached,
        };
        if margins { score } else { best + score.ln() }
    };
    slots.into_iter().map(|(label, keys)| (label, merged(label, keys))).collect()
}

/// The score that is shown for a key.
pub fn shown(form: ScoreForm, key: f64) -> f64 {
    match (key.is_finite(), is_product(form)) {
        (true, true) => key.exp(),
        (true, false) => key,
        (false, true) => 0.0,
        (false, false) => f64::from(f32::MIN),
    }
}

/// Compares a result with the reference: the right number, order and scores; labels may differ only among keys that are
/// equal within the tolerance, or whose scores are.
pub fn agree(form: ScoreForm, got: &[(u32, f32)], want: &BTreeMap<u32, f64>, k: usize, place: &str) {
    let mut sorted: Vec<(u32, f64)> = want.iter().map(|(l, v)| (*l, *v)).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sorted.truncate(k);
    assert_eq!(got.len(), sorted.len(), "{place}: results");
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= 2e-3 * a.abs().max(1.0);
    for (i, ((label, score), (_, key))) in got.iter().zip(&sorted).enumerate() {
        let own = *want.get(label).unwrap_or_else(|| panic!("{place}: label {label} was not reached"));
        // Scores next to nothing are alike when shown, and their labels ascend.
        let tied = shown(form, own).max(shown(form, *key)) < 1e-40 && is_product(form);
        assert!(near(own, *key) || tied, "{place}, rank {i}: label {label} has key {own}, expected {key}");
        let expected = shown(form, own);
        let close = (f64::from(*score) - expected).abs() <= 2e-3 * expected.abs().max(1e-2);
        assert!(close, "{place}, rank {i}: label {label} scores {score}, expected {expected}");
    }
    let mut labels: Vec<u32> = got.iter().map(|g| g.0).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), got.len(), "{place}: a label twice");
}
