//! Training a model of the XR-Linear family: label vectors, tree, layers, layout.
//!
//! The path of the data: rows are scaled ([`TrainRows`]), labels become vectors and a tree ([`crate::tree`]), the rows'
//! labels are carried up the tree ([`Positives`]), the classifiers of every node are trained ([`Trainer`]) and laid out
//! ([`Model::assemble`]).
//!
//! In a tree built here, the slots under a node are ordered by the number of their labels' rows, largest first: the
//! solver steps 16 or 32 neighbours together until the last of them is done, and labels with similar numbers of rows take
//! a similar number of passes. Compared with the order of k-means this saves 6 to 9 % of the layers of `delicious`,
//! `debian-tags` and `debian-related`, next to nothing on generated sets, and leaves P@k within the noise of seeds.

use super::forecast::{CURE, forecast, forecast_given};
use super::negatives::Learner;
use super::overlap_rounds;
use super::row_gather::TrainRows;
use super::{Model, ModelParts, Relevance, SplitKind, TrainParams, VectorCut, VectorKind};
use crate::control::{Control, Progress, stage};
use crate::data::{Columns, Csr, Features};
use crate::error::{Result, fail};
use crate::params::Params;
use crate::tree::{self, Bisection, Clustering, Cut, LabelTree, LabelVectors, Pifa, Shape, Split};
use std::cmp::Reverse;
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
    let forecast_bytes = forecast_given(x, y, params, &inputs, control.thread_count());
    control.allows("training", (x.rows(), y.cols()), forecast_bytes, CURE)?;
    control.install(|| run(x, y, params, inputs, forecast_bytes, control))?
}

fn check(x: &Features, y: &Csr, params: &TrainParams, inputs: &TrainInputs) -> Result<()> {
    let (rows, labels) = (x.rows(), y.cols());
    if rows != y.rows() {
        fail!(ShapeMismatch, "x has {rows} rows but y has {}: give the labels of each row", y.rows());
    }
    if rows == 0 || x.cols() == 0 || labels == 0 {
        fail!(
            InvalidArgument,
            "cannot train on {rows} rows, {} features and {labels} labels: give some of each",
            x.cols()
        );
    }
    if y.values().iter().all(|v| *v == 0.0) {
        fail!(InvalidArgument, "y has no labels at all: give at least one");
    }
    if let Some(tree) = &inputs.tree
        && tree.labels() != labels
    {
        fail!(
            ShapeMismatch,
            "the tree has {} labels but y has {labels} columns: take a tree of these labels",
            tree.labels()
        );
    }
    if let Some(v) = &inputs.label_vectors
        && v.rows() != labels
    {
        fail!(
            ShapeMismatch,
            "there are {} label vectors but y has {labels} columns: give a vector for each label",
            v.rows()
        );
    }
    if let Some(r) = &inputs.relevance {
        if r.indptr() != y.indptr() || r.indices() != y.indices() || r.cols() != labels {
            fail!(ShapeMismatch, "relevance must have exactly the labels' pattern: an entry for each of y's");
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
            fail!(
                ShapeMismatch,
                "there are {} {what} names but {of} has {count} columns: name each, or none",
                names.len()
            );
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
        let (total, eta) = (1, -1.0);
        control.report(&Progress { stage, done, total, rows, labels, seconds, eta, ..Progress::default() });
    };
    let rows = TrainRows::of_features(x, params.model.normalize);
    let given = inputs.tree.is_some();
    let tree = match inputs.tree {
        Some(tree) => tree,
        None => {
            tell(stage::LABEL_VECTORS, 0);
            let whole_forecast = whole_forecast(x, y, params, control);
            let fits = control.memory_limit == 0 || whole_forecast <= control.memory_limit;
            let own = inputs.label_vectors.as_ref();
            let (vectors, whole) = vectors(&rows, y, own, params, fits, control)?;
            if whole {
                report.forecast_bytes = whole_forecast;
            }
            report.label_vectors = lap();
            tell(stage::TREE, 0);
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
    let (tree, known) = if params.overlap.asked() {
        overlap_rounds::disentangle(&learner, tree)?
    } else {
        (tree, Vec::new())
    };
    report.overlap = lap();
    let tree = if given { tree } else { by_rows(tree, y) };
    let blocks = learner.layers(&tree, tree.layers().len(), &params.solver, stage::LAYERS, known)?;
    let format = learner.format();
    drop(rows);
    report.layers = lap();
    tell(stage::LAYOUT, 0);
    let model = Model::assemble(parts, &tree, format, blocks, control)?;
    report.layout = lap();
    report.total = since.elapsed().as_secs_f64();
    tell(stage::LAYOUT, 1);
    Ok((model, report))
}

/// How many rows each label has.
pub(super) fn rows_by_label(y: &Csr) -> Vec<usize> {
    let mut counts = vec![0; y.cols()];
    y.indices().iter().zip(y.values()).for_each(|(l, v)| counts[*l as usize] += usize::from(*v != 0.0));
    counts
}

/// The tree with its slots in order of their labels' rows.
fn by_rows(tree: LabelTree, y: &Csr) -> LabelTree {
    let counts = rows_by_label(y);
    tree.sort_slots_by_key(|l| Reverse(counts[l as usize]))
}

/// The tree that a training on these rows and labels would learn in.
pub(crate) fn label_tree(
    rows: &TrainRows<'_>,
    y: &Csr,
    params: &TrainParams,
    control: &Control,
) -> Result<LabelTree> {
    let (vectors, _) = vectors(rows, y, None, params, true, control)?;
    let tree = tree::build(vectors, &shape(params), control)?.collapse(params.tree.collapse);
    Ok(by_rows(tree, y))
}

/// What whole label vectors would need.
fn whole_forecast(x: &Features, y: &Csr, params: &TrainParams, control: &Control) -> u64 {
    let mut whole = params.clone();
    whole.tree.vector_cut = VectorCut::Never;
    forecast(x, y, &whole, control.thread_count())
}

/// The label vectors, and whether a trial decided for whole ones, which may only be where they fit into memory.
fn vectors(
    rows: &TrainRows<'_>,
    y: &Csr,
    own: Option<&Csr>,
    params: &TrainParams,
    whole_fits: bool,
    control: &Control,
) -> Result<(LabelVectors, bool)> {
    let p = &params.tree;
    let most = Cut::to(p.vector_entries as usize);
    if let Some(own) = own {
        let narrow = Columns::of(own).map(|columns| columns.narrow(own));
        return Ok((tree::given(narrow.as_ref().unwrap_or(own), most, control)?.into(), false));
    }
    let labels_rows = y.transpose();
    match p.vectors {
        VectorKind::Pifa => {
            let (dense, dense_cols) = rows.dense();
            let (x, values) = (rows.matrix(), rows.values());
            let pifa = Pifa { dense, dense_cols, ..Pifa::new(x, values, &labels_rows) };
            let cut = Cut { mass: p.vector_mass, ..most };
            let whole = match p.vector_cut {
                VectorCut::Auto => {
                    whole_fits && tree::whole_is_better(&pifa, cut, bisection(params), control)?
                }
                VectorCut::Always => false,
                VectorCut::Never => true,
            };
            Ok((pifa.all(if whole { Cut::NONE } else { cut }, control)?, whole))
        }
        VectorKind::Pii => Ok((tree::pii(&labels_rows, most, control)?.into(), false)),
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
