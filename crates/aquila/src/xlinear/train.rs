//! Training: label vectors, tree, layers, layout.
//!
//! The data's way: rows are scaled ([`TrainRows`]), labels become vectors and a tree ([`crate::tree`]), labels are
//! carried up the tree ([`Positives`]), every node's classifiers are learned ([`Trainer`]) and laid out
//! ([`Model::assemble`]).

use super::learn::Learner;
use super::node::TrainRows;
use super::rounds;
use super::{Model, ModelParts, Negatives, Relevance, SplitKind, TrainParams, VectorCut, VectorKind};
use crate::control::{Control, Progress};
use crate::data::{Csr, Features};
use crate::error::{Result, fail};
use crate::kernels::{Isa, halves};
use crate::linear::together;
use crate::params::Params;
use crate::tree::{self, Bisection, Clustering, Cut, LabelTree, Pifa, Shape, Split, TRIED_FROM};
use std::time::Instant;

/// What training may be given beside rows and labels.
#[derive(Debug, Clone, Default)]
pub struct TrainInputs {
    /// A tree of the user's own instead of k-means.
    pub tree: Option<LabelTree>,
    /// Label vectors of the user's own (labels × anything) instead of PIFA or PII.
    pub label_vectors: Option<Csr>,
    /// Relevance of each label of each row, with exactly the labels' pattern. At 0 the row still has the label, and its
    /// error there costs nothing.
    pub relevance: Option<Csr>,
    /// Further negatives: rows × labels; a row learns at every leaf of a listed label though the tree would not
    /// show it there.
    pub negatives: Option<Csr>,
    /// One name a label, or none at all.
    pub label_names: Vec<String>,
    /// One name a feature, those of a dense block last, or none at all.
    pub feature_names: Vec<String>,
    /// Whatever the user wants to keep with the model: a JSON text.
    pub metadata: String,
}

/// What training took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrainReport {
    /// Seconds of the label vectors.
    pub label_vectors: f64,
    /// Seconds of the tree.
    pub tree: f64,
    /// Seconds of finding further leaves of labels, the matchers' learning included.
    pub overlap: f64,
    /// Seconds of the layers' classifiers.
    pub layers: f64,
    /// Seconds of the layout.
    pub layout: f64,
    /// Seconds from matrices in memory to model in memory.
    pub total: f64,
    /// The forecast peak of memory, in bytes, made before training began.
    pub forecast_bytes: u64,
}

/// Learns a model from rows and their labels.
pub fn train(
    x: &Features,
    y: &Csr,
    params: &TrainParams,
    inputs: TrainInputs,
    control: &Control,
) -> Result<(Model, TrainReport)> {
    params.check()?;
    check(x, y, params, &inputs)?;
    let forecast_bytes = forecast(x, y, params, control.thread_count());
    if control.memory_limit > 0 && forecast_bytes > control.memory_limit {
        fail!(
            MemoryLimit,
            "training is forecast to need {} MB, more than the limit of {} MB: raise the limit, set \
             tree.vectorCut to always, or lower tree.vectorEntries or the number of features",
            forecast_bytes.div_ceil(1 << 20),
            control.memory_limit >> 20
        );
    }
    control.install(|| run(x, y, params, inputs, forecast_bytes, control))?
}

fn check(x: &Features, y: &Csr, params: &TrainParams, inputs: &TrainInputs) -> Result<()> {
    let (rows, labels) = (x.rows(), y.cols());
    if rows != y.rows() {
        fail!(ShapeMismatch, "x has {rows} rows but y has {}", y.rows());
    }
    if rows == 0 || x.cols() == 0 || labels == 0 {
        fail!(InvalidArgument, "cannot train on {rows} rows, {} features and {labels} labels", x.cols());
    }
    if y.values().iter().all(|v| *v == 0.0) {
        fail!(InvalidArgument, "y has no labels at all: nothing can be learned");
    }
    if let Some(tree) = &inputs.tree
        && tree.labels() != labels
    {
        fail!(ShapeMismatch, "the tree has {} labels but y has {labels} columns", tree.labels());
    }
    if let Some(v) = &inputs.label_vectors
        && v.rows() != labels
    {
        fail!(ShapeMismatch, "there are {} label vectors but y has {labels} columns", v.rows());
    }
    if let Some(r) = &inputs.relevance {
        if r.indptr() != y.indptr() || r.indices() != y.indices() || r.cols() != labels {
            fail!(ShapeMismatch, "relevance must have exactly the labels' pattern");
        }
        if let Some(v) = r.values().iter().find(|v| **v < 0.0) {
            fail!(InvalidArgument, "Expected relevances of at least 0 but received {v}");
        }
    }
    if params.solver.relevance != Relevance::Off
        && inputs.relevance.is_none()
        && let Some(v) = y.values().iter().find(|v| **v < 0.0)
    {
        fail!(
            InvalidArgument,
            "y has a value of {v}, and solver.relevance weighs by y's values: they must be at least 0, or give \
             relevances"
        );
    }
    if let Some(n) = &inputs.negatives
        && (n.rows() != rows || n.cols() != labels)
    {
        fail!(ShapeMismatch, "negatives are {} x {} but must be {rows} x {labels}", n.rows(), n.cols());
    }
    for (names, what, of, count) in
        [(&inputs.label_names, "label", "y", labels), (&inputs.feature_names, "feature", "x", x.cols())]
    {
        if !names.is_empty() && names.len() != count {
            fail!(ShapeMismatch, "there are {} {what} names but {of} has {count} columns", names.len());
        }
    }
    Ok(())
}

fn run(
    x: &Features,
    y: &Csr,
    params: &TrainParams,
    inputs: TrainInputs,
    forecast_bytes: u64,
    control: &Control,
) -> Result<(Model, TrainReport)> {
    let since = Instant::now();
    let mut report = TrainReport { forecast_bytes, ..TrainReport::default() };
    let mut lap = {
        let mut last = 0.0;
        move || {
            let now = since.elapsed().as_secs_f64();
            now - std::mem::replace(&mut last, now)
        }
    };
    let tell = |stage, done| {
        let (rows, labels) = (x.rows() as u64, y.cols() as u64);
        let seconds = since.elapsed().as_secs_f64();
        control.report(&Progress { stage, done, total: 1, rows, labels, seconds, eta: -1.0 });
    };
    let rows = TrainRows::of_features(x, params.model.normalize);
    let tree = match inputs.tree {
        Some(tree) => tree,
        None => {
            tell("labelVectors", 0);
            let vectors = vectors(&rows, y, inputs.label_vectors.as_ref(), params, control)?;
            report.label_vectors = lap();
            tell("tree", 0);
            tree::build(vectors, &shape(params), control)?.collapse(params.tree.collapse)
        }
    };
    report.tree = lap();
    let parts = ModelParts {
        features: x.cols(),
        dense: rows.dense().1,
        params: params.clone(),
        seed: control.seed,
        label_names: inputs.label_names,
        feature_names: inputs.feature_names,
        metadata: inputs.metadata,
    };
    let learner = Learner {
        x,
        rows: &rows,
        y,
        relevance: inputs.relevance.as_ref(),
        negatives: inputs.negatives.as_ref(),
        parts: &parts,
        control,
        since,
    };
    let (tree, known) = match params.overlap.copies {
        1 => (tree, Vec::new()),
        _ => rounds::disentangle(&learner, tree)?,
    };
    report.overlap = lap();
    let blocks = learner.layers(&tree, tree.layers().len(), &params.solver, "layers", known)?;
    let format = learner.format();
    drop(rows);
    report.layers = lap();
    tell("layout", 0);
    let model = Model::assemble(parts, &tree, format, blocks, control)?;
    report.layout = lap();
    report.total = since.elapsed().as_secs_f64();
    tell("layout", 1);
    Ok((model, report))
}

/// The tree that a training on these rows and labels would learn in.
pub(crate) fn label_tree(
    rows: &TrainRows<'_>,
    y: &Csr,
    params: &TrainParams,
    control: &Control,
) -> Result<LabelTree> {
    let vectors = vectors(rows, y, None, params, control)?;
    Ok(tree::build(vectors, &shape(params), control)?.collapse(params.tree.collapse))
}

fn vectors(
    rows: &TrainRows<'_>,
    y: &Csr,
    own: Option<&Csr>,
    params: &TrainParams,
    control: &Control,
) -> Result<Csr> {
    let p = &params.tree;
    let most = Cut::to(p.vector_entries as usize);
    if let Some(own) = own {
        return tree::given(own, most, control);
    }
    let labels_rows = y.transpose();
    match p.vectors {
        VectorKind::Pifa => {
            let (dense, dense_cols) = rows.dense();
            let (x, values) = (rows.matrix(), rows.values());
            let pifa = Pifa { dense, dense_cols, ..Pifa::new(x, values, &labels_rows) };
            let cut = Cut { mass: p.vector_mass, ..most };
            let whole = match p.vector_cut {
                VectorCut::Auto => tree::whole_is_better(&pifa, cut, bisection(params), control)?,
                VectorCut::Always => false,
                VectorCut::Never => true,
            };
            pifa.all(if whole { Cut::NONE } else { cut }, control)
        }
        VectorKind::Pii => tree::pii(&labels_rows, most, control),
    }
}

fn bisection(params: &TrainParams) -> Bisection {
    let p = &params.tree;
    Bisection { spherical: p.spherical, iterations: p.iterations, sample: p.sample as usize }
}

fn shape(params: &TrainParams) -> Shape {
    let p = &params.tree;
    let split = match p.split {
        SplitKind::Balanced => Split::Balanced(bisection(params)),
        SplitKind::Kary => {
            Split::Kary(Clustering { k: p.arity as usize, spherical: p.spherical, iterations: p.iterations })
        }
    };
    Shape { max_leaf: p.max_leaf as usize, arity: p.arity as usize, split }
}

/// The forecast peak of memory of such a training on this many threads, in bytes, the two matrices included.
///
/// It is the largest of four stages, each a sum of what is known (the matrices, a scaled copy, label vectors while
/// they are built and split, each thread's solver) and of the weights, which are estimated: at a threshold of 0.1 a
/// label keeps no more weights than its own rows have entries on all sets that we measured; a lower threshold lets
/// in features of its siblings' rows, by a power law fitted to the same sets. Tests hold the forecast between one and
/// three times the peak that an allocator counts.
pub fn forecast(x: &Features, y: &Csr, params: &TrainParams, threads: usize) -> u64 {
    let (n, d, labels, threads) = (x.rows() as f64, x.cols() as f64, y.cols() as f64, threads.max(1) as f64);
    let width = params.model.weights_bytes() as f64;
    let block = x.dense().map_or(0.0, |d| d.cols() as f64);
    let dense = n * block;
    let nnz = x.sparse().nnz() as f64 + dense;
    let pairs = y.nnz() as f64;
    let (tree, solver) = (&params.tree, &params.solver);

    let matrices = x.sparse().bytes() as f64 + 4.0 * dense + y.bytes() as f64;
    let halves = if halves::faster(Isa::detect()) { 2.0 * n * (block + 1.0) * dense.min(1.0) } else { 0.0 };
    let scaled = 8.0 * n + halves + if params.model.normalize { 4.0 * nnz } else { 0.0 };
    // Entries of the rows of all labels together: most that their vectors can hold.
    let support = pairs * nnz / n.max(1.0);
    let cut = match tree.vector_cut {
        VectorCut::Always => true,
        VectorCut::Auto => y.cols() < TRIED_FROM,
        VectorCut::Never => false,
    } || tree.vectors == VectorKind::Pii;
    let entries = match tree.vector_entries {
        most if cut && most > 0 => d.min(f64::from(most)),
        _ => d,
    };
    let vectors = 8.0 * support.min(labels * entries);
    // Lists of a number or two for each label, in the stages where labels are many.
    let lists = 100.0 * labels;
    let centres = match tree.split {
        SplitKind::Balanced => 24.0 * d,
        SplitKind::Kary => 4.0 * d * f64::from(tree.arity).min(labels),
    };
    let building = matrices + scaled + lists + 8.0 * pairs + (2.5 * vectors + 4.0 * d * threads);
    let splitting = matrices + scaled + lists + (2.0 * vectors + 24.0 * d).max(vectors + centres);

    let leaves = (labels / f64::from(tree.max_leaf.max(1))).max(1.0);
    let layers = 1.0 + (leaves.ln() / f64::from(tree.arity.max(2)).ln()).ceil().max(0.0);
    let spread =
        (0.1 / f64::from(solver.threshold).max(1e-9)).powf(0.6).clamp(1.0, f64::from(tree.max_leaf).max(1.0));
    // Further leaves: each slot has weights, and a row stands at every leaf of each of its labels.
    let overlap = &params.overlap;
    let copies = match f64::from(overlap.leaf_cap) {
        cap if cap > 0.0 => f64::from(overlap.copies).min(cap.max(1.0)),
        _ => f64::from(overlap.copies),
    }
    .min(leaves);
    let sparse = d - block;
    let per_row = x.sparse().nnz() as f64 / n.max(1.0);
    let mut weights = copies * (labels * sparse).min(pairs * per_row * spread);
    if solver.max_weights > 0 {
        weights = weights.min((copies * labels + leaves) * f64::from(solver.max_weights));
    }
    // Every column has all dense weights.
    let panels = (copies * labels + 2.0 * leaves) * (block + 32.0) * width;
    let blocks = weights * (3.0 + width) + panels;
    // Of a node of all rows: its features with their columns, and what each row has in all lanes.
    let (entries, used) = (x.sparse().nnz() as f64, sparse.min(x.sparse().nnz() as f64));
    let lanes = 4.0 * together(Isa::detect(), sparse as usize) as f64;
    let weighted = if solver.relevance == Relevance::Off { 0.0 } else { lanes };
    let worker = n * (48.0 + lanes + weighted)
        + 4.25 * sparse
        + 16.0 * used
        + 72.0 * sparse.min(entries / 2.0)
        + 8.0 * entries.min(4.0 * sparse)
        + 1.5 * lanes * block
        + if dense > 0.0 { 4.0 * n } else { 0.0 };
    let matcher = match solver.negatives {
        Negatives::Siblings if copies == 1.0 => 0.0,
        _ => 24.0 * n * f64::from(solver.matcher_beam).min(leaves),
    };
    let learning =
        matrices + scaled + lists + 24.0 * pairs * layers * copies + worker * threads + blocks + matcher;
    let laying =
        matrices + lists + blocks + panels + 2.0 * weights * (1.5 + width) + 2.0 * weights + 12.0 * d;
    building.max(splitting).max(learning).max(laying) as u64
}
