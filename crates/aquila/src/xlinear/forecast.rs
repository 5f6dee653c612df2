//! The forecast of a training's peak of memory, from sizes and from the label vectors of a sample.

use super::{Negatives, Relevance, SplitKind, TrainInputs, TrainParams, VectorCut, VectorKind};
use crate::data::{Columns, Csr, Features};
use crate::kernels::{Isa, bf16};
use crate::linear::together;
use crate::rng::Rng;
use crate::tree::{TRIAL_SAMPLE, TRIED_FROM};
use std::collections::BTreeMap;

/// What helps where the limit is too low.
pub(super) const CURE: &str =
    "set tree.vectorCut to always, or lower tree.vectorEntries or the number of features";

/// The forecast peak of memory of such a training on this many threads, in bytes, the two matrices included.
///
/// It is the largest of four stages, each a sum of what is known (the matrices, a scaled copy, label vectors while
/// they are built and split, each thread's solver) and of the weights, which are estimated: at a threshold of 0.1 a
/// label keeps no more weights than its own rows have entries on all sets that we measured; a lower threshold lets
/// in features of its siblings' rows, by a power law fitted to the same sets. Tests hold the forecast between one and
/// three times the peak that an allocator counts.
///
/// Where a trial decides whether label vectors are cut, they are taken for cut ones.
pub fn forecast(x: &Features, y: &Csr, params: &TrainParams, threads: usize) -> u64 {
    forecast_given(x, y, params, &TrainInputs::default(), threads)
}

/// The same of a training that is given more than rows and labels, which counts as well.
pub fn forecast_given(
    x: &Features,
    y: &Csr,
    params: &TrainParams,
    inputs: &TrainInputs,
    threads: usize,
) -> u64 {
    let mut sizes = Sizes::of(x, y.cols(), y.nnz() as f64);
    let given = [&inputs.label_vectors, &inputs.relevance, &inputs.negatives];
    sizes.given = given.into_iter().flatten().map(|matrix| matrix.bytes() as f64).sum();
    sizes.negatives = inputs.negatives.as_ref().map_or(0.0, |negatives| negatives.nnz() as f64);
    if inputs.tree.is_none()
        && let Some(vectors) = &inputs.label_vectors
    {
        let (columns, narrowing) = Columns::most(vectors);
        sizes.vectors = Some([columns as f64, vectors.nnz() as f64, narrowing as f64]);
        return sizes.stages(params, threads).most() as u64;
    }
    let cut = params.tree.vectors == VectorKind::Pifa && params.tree.vector_cut != VectorCut::Never;
    let entries = match params.tree.vector_entries {
        0 => f64::INFINITY,
        most => f64::from(most),
    };
    // Where even full vectors are small beside the rows, a sample would tell nothing that counts.
    if cut && 8.0 * sizes.labels * entries > sizes.x_bytes() {
        sizes.cut = Some(cut_entries(x.sparse(), y, params.tree.vector_mass));
    }
    sizes.stages(params, threads).most() as u64
}

/// Labels whose vectors are looked at, and most of their rows.
const SAMPLE: usize = 512;
const ROWS: usize = 64;

/// Entries of all PIFA vectors, each cut to the fewest that hold this share of its squared length. Of labels drawn as
/// often as they have rows, each stands for its entries divided by its rows. (That of more rows than [`ROWS`] counts
/// too much for what it is, but its part of all entries is small.)
fn cut_entries(x: &Csr, y: &Csr, mass: f32) -> f64 {
    let pairs = y.nnz();
    if pairs == 0 {
        return 0.0;
    }
    let mut rng = Rng::new(&[0x0073_616d_706c_6500]);
    let drawn: Vec<u32> =
        (0..SAMPLE).map(|_| y.indices()[(rng.next_u64() % pairs as u64) as usize]).collect();
    let mut labels = drawn.clone();
    labels.sort_unstable();
    labels.dedup();
    let mut rows: Vec<(usize, Vec<u32>)> = vec![Default::default(); labels.len()];
    for (i, row) in y.iter_rows().enumerate() {
        for label in row.indices {
            if let Ok(at) = labels.binary_search(label) {
                let (count, some) = &mut rows[at];
                *count += 1;
                if some.len() < ROWS {
                    some.push(i as u32);
                }
            }
        }
    }
    let of_label = |(count, some): &(usize, Vec<u32>)| {
        let mut sum: BTreeMap<u32, f32> = BTreeMap::new();
        for i in some {
            x.row(*i as usize).iter().for_each(|(j, v)| *sum.entry(j).or_default() += v);
        }
        let mut squares: Vec<f32> = sum.values().map(|v| v * v).collect();
        squares.sort_unstable_by(|a, b| b.total_cmp(a));
        let wanted = mass * squares.iter().sum::<f32>();
        let (mut held, mut entries) = (0.0, 0);
        while entries < squares.len() && held < wanted {
            held += squares[entries];
            entries += 1;
        }
        entries as f64 / *count as f64
    };
    let shares: BTreeMap<u32, f64> = labels.into_iter().zip(rows.iter().map(of_label)).collect();
    pairs as f64 / SAMPLE as f64 * drawn.iter().map(|label| shares[label]).sum::<f64>()
}

/// What a forecast knows of rows and their labels, which need not exist yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sizes {
    pub rows: f64,
    /// All features, those of a dense block included.
    pub features: f64,
    /// Columns of the dense block.
    pub block: f64,
    /// Entries of the sparse part.
    pub entries: f64,
    pub labels: f64,
    /// Labels of all rows together.
    pub pairs: f64,
    /// Sparse entries of the rows of each label, of all labels together: most that vectors of labels can hold.
    pub support: f64,
    /// Entries of all cut label vectors, where a sample told.
    pub cut: Option<f64>,
    /// Bytes of what is given beside rows and labels.
    pub given: f64,
    /// Further negatives of all rows together.
    pub negatives: f64,
    /// Columns and entries of label vectors that are given, and the bytes that leaving out empty columns takes.
    pub vectors: Option<[f64; 3]>,
}

/// The peak of each stage of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stages {
    pub building: f64,
    pub splitting: f64,
    pub learning: f64,
    pub laying: f64,
}

impl Stages {
    /// The largest.
    pub fn most(self) -> f64 {
        self.tree().max(self.classifiers())
    }

    /// The larger of those that make the tree.
    pub fn tree(self) -> f64 {
        self.building.max(self.splitting)
    }

    /// The larger of those after it.
    pub fn classifiers(self) -> f64 {
        self.learning.max(self.laying)
    }
}

impl Sizes {
    pub fn of(x: &Features, labels: usize, pairs: f64) -> Self {
        let entries = x.sparse().nnz() as f64;
        Self {
            rows: x.rows() as f64,
            features: x.cols() as f64,
            block: x.dense().map_or(0.0, |d| d.cols() as f64),
            entries,
            labels: labels as f64,
            pairs,
            support: pairs * entries / (x.rows() as f64).max(1.0),
            cut: None,
            given: 0.0,
            negatives: 0.0,
            vectors: None,
        }
    }

    /// The bytes of the rows.
    pub fn x_bytes(self) -> f64 {
        8.0 * (self.rows + 1.0) + 8.0 * self.entries + 4.0 * self.rows * self.block
    }

    /// The bytes of the labels.
    pub fn y_bytes(self) -> f64 {
        8.0 * (self.rows + 1.0) + 8.0 * self.pairs
    }

    pub fn stages(self, params: &TrainParams, threads: usize) -> Stages {
        let Self { rows: n, features: d, block, labels, pairs, .. } = self;
        let threads = threads.max(1) as f64;
        let width = params.model.weights_bytes() as f64;
        let dense = n * block;
        let nnz = self.entries + dense;
        let (tree, solver) = (&params.tree, &params.solver);

        let matrices = self.x_bytes() + self.y_bytes() + self.given;
        let bf16_block =
            if bf16::faster(Isa::detect()) { 2.0 * n * (block + 1.0) * dense.min(1.0) } else { 0.0 };
        let scaled = 8.0 * n + bf16_block + if params.model.normalize { 4.0 * nnz } else { 0.0 };
        let (widest, support) = match tree.vectors {
            VectorKind::Pifa => (d - block, self.support),
            VectorKind::Pii => (n, pairs),
        };
        let cut = match tree.vector_cut {
            VectorCut::Always => true,
            VectorCut::Auto => self.cut.is_some() || labels < TRIED_FROM as f64,
            VectorCut::Never => false,
        } || tree.vectors == VectorKind::Pii;
        let entries = match tree.vector_entries {
            most if cut && most > 0 => widest.min(f64::from(most)),
            _ => widest,
        };
        // A quarter more than the sample says, for what it does not see.
        let sampled = self.cut.map_or(f64::INFINITY, |entries| 1.25 * entries);
        let vectors = 8.0 * support.min(labels * entries).min(sampled);
        // Of a block all columns stay, in two bytes each.
        let beside = if tree.vectors == VectorKind::Pifa {
            2.0 * labels * (block + 31.0) * block.min(1.0)
        } else {
            0.0
        };
        // Lists of a number or two for each label, in the stages where labels are many.
        let lists = 100.0 * labels;
        let centres = match tree.split {
            SplitKind::Balanced => 24.0 * d,
            // Below the root each thread has a node of its own, most of whose columns are its alone.
            SplitKind::Kary => 4.0 * (d + block) * f64::from(tree.arity).min(labels) * threads.min(2.0),
        };
        // The trial of cut vectors has whole ones of a sample, and copies of them as they are split.
        let tried = tree.vector_cut == VectorCut::Auto && labels >= TRIED_FROM as f64;
        let trial = match tried {
            true => 32.0 * support * (TRIAL_SAMPLE as f64 / labels).min(1.0) + 12.0 * d * threads,
            false => 0.0,
        };
        let mut building =
            matrices + scaled + lists + beside + 8.0 * pairs + (2.5 * vectors + 4.0 * d * threads).max(trial);
        let mut splitting =
            matrices + scaled + lists + beside + (2.0 * vectors + 24.0 * d).max(vectors + centres);
        if let Some([columns, entries, narrowing]) = self.vectors {
            let most = if tree.vector_entries > 0 { f64::from(tree.vector_entries) } else { columns };
            let vectors = 8.0 * entries.min(labels * most);
            let centres = match tree.split {
                SplitKind::Balanced => vectors + 24.0 * columns,
                SplitKind::Kary => 4.0 * columns * f64::from(tree.arity).min(labels) * threads.min(2.0),
            };
            // They are cut one after the other, into lists that grow, and copied to their place.
            building = matrices + scaled + lists + narrowing + 3.0 * vectors + 4.0 * columns;
            splitting = matrices + scaled + lists + vectors + centres;
        }

        let leaves = (labels / f64::from(tree.max_leaf.max(1))).max(1.0);
        let layers = 1.0 + (leaves.ln() / f64::from(tree.arity.max(2)).ln()).ceil().max(0.0);
        let spread = (0.1 / f64::from(solver.threshold).max(1e-9))
            .powf(0.6)
            .clamp(1.0, f64::from(tree.max_leaf).max(1.0));
        // Further leaves: each slot has weights, and a row stands at every leaf of each of its labels.
        let overlap = &params.overlap;
        let copies = match f64::from(overlap.leaf_cap) {
            cap if cap > 0.0 => f64::from(overlap.copies).min(cap.max(1.0)),
            _ => f64::from(overlap.copies),
        }
        .min(leaves);
        // And the most frequent labels have slots under the root.
        let nodes = if tree.collapse > 0 { leaves } else { leaves.min(f64::from(tree.arity)) };
        let capped = overlap.copies > 1 && overlap.leaf_cap > 0.0 && overlap.update;
        let under_root = if capped { (f64::from(overlap.root_cap) * nodes).min(labels) } else { 0.0 };
        let slots = copies * labels + under_root;
        let sparse = d - block;
        // What is learned from all rows has the fewest weights: of many features a sixth of the rows' entries, as measured.
        let of_root = (under_root * sparse).min(0.5 * self.support);
        let mut weights = (copies * (labels * sparse).min(self.support * spread)) + of_root;
        if solver.max_weights > 0 {
            weights = weights.min((slots + leaves) * f64::from(solver.max_weights));
        }
        // Every column has all dense weights.
        let panels = (slots + 2.0 * leaves) * (block + 32.0) * width;
        let blocks = weights * (3.0 + width) + panels;
        // Of a node of all rows: its features with their columns, and what each row has in all lanes.
        let (entries, used) = (self.entries, sparse.min(self.entries));
        let shared = sparse.min(entries / 2.0);
        let lanes = 4.0 * together(Isa::detect(), shared as usize, block > 0.0) as f64;
        let weighted = if solver.relevance == Relevance::Off { 0.0 } else { lanes };
        let worker = n * (48.0 + lanes + weighted)
            + 4.25 * sparse
            + 16.0 * used
            + (8.0 + lanes) * shared
            + 8.0 * entries.min(4.0 * sparse)
            + 1.5 * lanes * block
            + if dense > 0.0 { 4.0 * n } else { 0.0 };
        let matcher = match solver.negatives {
            Negatives::Siblings if !overlap.asked() => 0.0,
            _ => 24.0 * n * f64::from(solver.matcher_beam).min(leaves),
        };
        let learning = matrices
            + scaled
            + lists
            + 24.0 * (pairs + self.negatives) * (layers * copies + under_root.min(1.0))
            + worker * threads
            + blocks
            + matcher;
        let laying =
            matrices + lists + blocks + panels + 2.0 * weights * (1.5 + width) + 2.0 * weights + 12.0 * d;
        Stages { building, splitting, learning, laying }
    }
}
