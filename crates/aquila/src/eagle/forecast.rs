//! The forecast peak of memory of work on labels of groups, in bytes, made before the work begins.
//!
//! Each is meant as an upper bound, as a training's is ([`crate::xlinear::forecast`]), and counts rows, groups and bags.
//! What is known is summed; what only the work can find is taken at its most: an embedding has all features of its
//! samples. Labels that refinement will choose are estimated from how many are expected and from the threshold, which
//! falls with likeness; its first labels are those of groups, in a tree of cut rows. Tests hold each between one and
//! three times the peak that an allocator counts.

use super::grlr_batch::{SHARED, worthwhile};
use super::groups::{Groups, Merge};
use super::learn::{GroupMethod, LEARNING, LearnParams};
use super::lesson::Lesson;
use super::likeness::unity;
use super::narrow::Narrow;
use super::posterior::expected;
use super::refine::{FAST_FOLDS, FLAT, MEAN_ENTRIES, REFINEMENT, RefineParams};
use super::tasks::Label;
use crate::control::Control;
use crate::data::{Columns, Csr, Features};
use crate::error::Result;
use crate::kernels::batch16::BATCH16;
use crate::xlinear::{Relevance, Sizes, TrainParams, VectorCut};

/// What helps embeddings, and refinement, where the limit is too low.
const FEWER: &str = "or use fewer threads or features";
const SMALLER: &str = "make groups smaller, or use fewer threads or features";

/// What all forecasts count: rows, groups and bags as they are given.
struct Given {
    x: Sizes,
    groups: f64,
    memberships: f64,
    /// Labels of all groups together.
    segments: f64,
    /// Pairs of a sample and a label of one of its groups, and the same counted for each of its groups.
    pairs: f64,
    seats: f64,
    /// Labels of all tables of samples that have the same groups, at most.
    of_tables: f64,
    /// For each label the samples of its groups.
    seats_of_labels: Vec<f64>,
    /// For each label the entries of the samples of its groups, sparse ones and those of a dense block.
    of_labels: Vec<[f64; 2]>,
}

impl Given {
    fn new(x: &Features, groups: &Groups, bags: &Csr) -> Self {
        let block = x.dense().map_or(0, |d| d.cols());
        let mut of_labels = vec![[0.0; 2]; bags.cols()];
        let mut seats_of_labels = vec![0.0; bags.cols()];
        for j in 0..groups.len() {
            let members = groups.members(j);
            let sparse: usize = members.iter().map(|i| x.sparse().row(*i as usize).indices.len()).sum();
            for k in bags.row(j).indices {
                let [entries, dense] = &mut of_labels[*k as usize];
                *entries += sparse as f64;
                *dense += (members.len() * block) as f64;
                seats_of_labels[*k as usize] += members.len() as f64;
            }
        }
        let seats: f64 = seats_of_labels.iter().sum();
        let pairs = seats.min(x.rows() as f64 * bags.cols() as f64);
        let grouped = groups.grouped().iter().filter(|g| **g).count();
        let apart = groups.memberships_count() == grouped;
        Self {
            x: Sizes::of(x, bags.cols(), 0.0),
            groups: groups.len() as f64,
            memberships: groups.memberships_count() as f64,
            segments: bags.nnz() as f64,
            pairs,
            seats,
            of_tables: if apart { pairs.min(bags.nnz() as f64) } else { pairs },
            of_labels,
            seats_of_labels,
        }
    }

    fn bytes(&self) -> f64 {
        let of_groups = 8.0 * self.groups + 4.0 * self.memberships;
        self.x.x_bytes() + of_groups + 8.0 * (self.groups + self.segments)
    }

    /// Entries of the rows as one sparse matrix, which a dense block must become.
    fn entries(&self) -> f64 {
        self.x.entries + self.x.rows * self.x.block
    }

    /// That matrix, where it is not given, and the rows scaled.
    fn rows(&self) -> f64 {
        let joined = if self.x.block > 0.0 { 8.0 * self.x.rows + 16.0 * self.entries() } else { 0.0 };
        joined + 4.0 * self.entries() + 8.0 * self.x.rows
    }

    /// Most sparse entries that vectors of all labels can hold, made of a share of the samples.
    fn support(&self, share: f64) -> f64 {
        let features = self.x.features - self.x.block;
        self.of_labels.iter().map(|[sparse, _]| (share * sparse).min(features)).sum()
    }

    /// The same of all entries.
    fn joined_support(&self, share: f64) -> f64 {
        self.of_labels.iter().map(|[sparse, dense]| (share * (sparse + dense)).min(self.x.features)).sum()
    }

    /// What rankers learn from where they learn from groups.
    fn lessons_of_groups(&self, bags: &Csr) -> Lessons {
        let mut lessons = Lessons { rows: vec![0.0; bags.cols()], entries: Vec::new() };
        bags.indices().iter().for_each(|k| lessons.rows[*k as usize] += 1.0);
        lessons.entries = self.of_labels.iter().map(|[sparse, dense]| sparse + dense).collect();
        lessons
    }

    /// The same of samples, so many of a label's; rows of those that groups leave possible have the same entries on average.
    fn lessons_of_samples(&self, chosen: Vec<f64>) -> Lessons {
        let of = |(([sparse, dense], seats), chosen): ((&[f64; 2], &f64), &f64)| {
            (sparse + dense) * chosen / f64::max(*seats, 1.0)
        };
        let entries = self.of_labels.iter().zip(&self.seats_of_labels).zip(&chosen).map(of).collect();
        Lessons { rows: chosen, entries }
    }

    /// What making a tree of these rows takes except for the rows and labels themselves.
    fn tree(&self, of: Sizes, lessons: &Lessons, params: &TrainParams, threads: usize) -> f64 {
        let alone = |of: Sizes| of.stages(params, threads).tree() - of.x_bytes() - of.y_bytes();
        if params.tree.vector_cut == VectorCut::Never {
            return alone(Sizes { support: lessons.support(1.0, of.features, of.features), ..of });
        }
        let most = MEAN_ENTRIES as f64;
        let entries = of.entries.min(most * of.rows);
        let short = Sizes { entries, support: lessons.support(1.0, most, of.features), ..of };
        // Cut rows are put together in lists that grew.
        let cutting = 12.0 * entries + 8.0 * of.features;
        short.x_bytes() + cutting.max(alone(short))
    }
}

/// For each label how many rows teach it, and their entries.
struct Lessons {
    rows: Vec<f64>,
    entries: Vec<f64>,
}

impl Lessons {
    /// Most entries that vectors of all labels can hold, made of a share of the rows and of so many entries of each.
    fn support(&self, share: f64, most: f64, features: f64) -> f64 {
        let of = |(rows, entries): (&f64, &f64)| (share * entries.min(most * rows)).min(features);
        self.rows.iter().zip(&self.entries).map(of).sum()
    }

    fn pairs(&self) -> f64 {
        self.rows.iter().sum()
    }
}

/// What random groups of this size take, the matrix of their memberships included.
pub fn random(samples: usize, size: usize) -> u64 {
    let (n, groups) = (samples as u64, samples.div_ceil(size.max(1)) as u64);
    // Members in a list that grew, their matrix by groups, and by samples with where rows go on.
    n * (8 + 8 + 28) + groups * 24
}

/// What clusters of rows take: the rows, their scaled copy, and what halves of it have at two depths at once.
pub fn clusters(x: &Features, depth: u32, threads: usize) -> u64 {
    let (x, _) = &x.narrow();
    let sizes = Sizes::of(x, 0, 0.0);
    let copy = 12.0 * sizes.rows
        + 8.0 * sizes.entries
        + 2.0 * sizes.rows * (sizes.block + 31.0) * sizes.block.min(1.0);
    // A direction and two sums a thread, the columns' new numbers, and keys and places of rows.
    let splitting = threads.max(1) as f64 * 16.0 * sizes.features + 24.0 * sizes.rows;
    let lists = 16.0 * sizes.rows + 24.0 * f64::from(depth).exp2();
    (sizes.x_bytes() + 2.0 * copy + splitting + lists) as u64
}

/// What the labels of groups take, made of those of their samples.
pub fn bags(groups: &Groups, y: &Csr, merge: Merge) -> u64 {
    let pairs =
        |j: usize| groups.members(j).iter().map(|i| y.row(*i as usize).indices.len() as f64).sum::<f64>();
    let (labels, narrowing) = Columns::most(y);
    let found: f64 = (0..groups.len()).map(|j| pairs(j).min(y.cols() as f64)).sum();
    // Lists grow by doubling.
    let lists = if merge == Merge::Set { 20.0 } else { 16.0 };
    let given = 8.0 * (y.rows() + groups.len()) as f64
        + 8.0 * y.nnz() as f64
        + 4.0 * groups.memberships_count() as f64;
    (given + narrowing as f64 + 4.0 * labels as f64 + 16.0 * groups.len() as f64 + lists * found) as u64
}

/// What the union of groups' labels takes.
pub fn union(groups: &Groups, bags: &Csr) -> u64 {
    let of_group = |j: usize| groups.members(j).len() as f64 * bags.row(j).indices.len() as f64;
    let pairs: f64 = (0..groups.len()).map(of_group).sum();
    let pairs = pairs.min(groups.samples() as f64 * bags.cols() as f64);
    let given = 8.0 * (2 * groups.len() + groups.samples()) as f64 + 8.0 * bags.nnz() as f64;
    let memberships = 20.0 * groups.memberships_count() as f64 + 16.0 * groups.samples() as f64;
    let (labels, narrowing) = Columns::most(bags);
    let lists = 4.0 * labels as f64 + 8.0 * groups.samples() as f64;
    (given + narrowing as f64 + memberships + lists + 16.0 * pairs) as u64
}

/// What learning embeddings takes on this many threads, and keeping them where they are kept.
pub fn embeddings(x: &Features, groups: &Groups, bags: &Csr, kept: bool, threads: usize) -> u64 {
    of_embeddings((&Narrow::new(x, bags), groups, bags.cols()), kept, threads)
}

fn of_embeddings((narrow, groups, all): Inputs<'_>, kept: bool, threads: usize) -> u64 {
    let (x, bags) = (&narrow.x, &*narrow.bags);
    let given = Given::new(x, groups, bags);
    let carriers = bags.transpose();
    let labels = Label::all(&carriers, groups, bags);
    let block = x.dense().map_or(0, |d| d.cols());
    let of_row = |i: u32| x.sparse().row(i as usize).indices.len() + block;

    let features = given.x.features;
    let (together, alone): (Vec<_>, Vec<_>) =
        labels.chunks(BATCH16).partition(|run| worthwhile(run, groups, of_row, x.cols()));
    // Labels come by their number of samples. One may be learned alone that belongs in a batch; turns of many entries are
    // those of labels that go alone by design.
    let largest = labels.first().map_or(0.0, |label| label.samples as f64);
    let turning = alone.first().map_or(0, |run| {
        let samples = run[0].groups().flat_map(|(j, _)| groups.members(j as usize));
        samples.map(|i| of_row(*i)).sum()
    });
    let alone = 12.0 * features + 64.0 * largest + 8.0 * turning as f64;
    let mut batches: Vec<f64> = together
        .iter()
        .map(|run| {
            // Of each feature its lines of two sums; of each row its lines of scores, pulls and what changes, and its
            // numbers.
            let shared = run.iter().map(|label| label.samples as f64).sum::<f64>() / SHARED as f64;
            (4.0 * BATCH16 as f64) * (2.0 * features + 4.0 * shared.min(given.memberships)) + 32.0 * shared
        })
        .collect();
    batches.sort_unstable_by(|a, b| b.total_cmp(a));
    let threads = threads.max(1);
    let working = batches.iter().take(threads).sum::<f64>() + threads as f64 * alone;

    let embeddings = if kept { given.joined_support(1.0) } else { 0.0 };
    // What is found of each label, and the matrices of it.
    let found = 24.0 * given.segments + 8.0 * given.x.rows + 24.0 * embeddings;
    let lists = 8.0 * given.segments + 200.0 * given.x.labels;
    // Of labels that nobody has, an empty row where rows are kept.
    let empty = if kept { 8.0 * (all - bags.cols()) as f64 } else { 0.0 };
    let result = given.bytes() + narrow.bytes() as f64 + empty;
    (result + given.rows() + 12.0 * given.x.rows + lists + working + found) as u64
}

/// What refinement takes, with rankers of these parameters. How like the samples of groups are, which
/// [`likeness`](super::likeness()) finds, says how many labels will be chosen.
pub fn refinement(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    likeness: f64,
    params: &RefineParams,
    rankers: &TrainParams,
    control: &Control,
) -> Result<u64> {
    of_refinement((&Narrow::new(x, bags), groups, bags.cols()), likeness, params, rankers, control)
}

fn of_refinement(
    (narrow, groups, _): Inputs<'_>,
    likeness: f64,
    params: &RefineParams,
    rankers: &TrainParams,
    control: &Control,
) -> Result<u64> {
    let (x, bags) = (&narrow.x, &*narrow.bags);
    let given = Given::new(x, groups, bags);
    let chosen = given.lessons_of_samples(chosen(&given, groups, bags, likeness, params, control)?);
    let work = refining(&given, bags, &chosen, params, rankers, control.thread_count());
    // What labels weigh is made once all else is gone.
    Ok(work as u64 + narrow.bytes())
}

/// About how many samples of each label refinement finds: as many as are expected, or one of each group; more where
/// pairs of little probability are chosen too, which are taken to have twice the least on average.
fn chosen(
    given: &Given,
    groups: &Groups,
    bags: &Csr,
    likeness: f64,
    params: &RefineParams,
    control: &Control,
) -> Result<Vec<f64>> {
    let sure = 2.0 * f64::from(Lesson::new(params.threshold, unity(likeness, groups)).threshold);
    let expected = control.install(|| expected(groups, bags, |k| given.seats_of_labels[k], control))??;
    let mut chosen = given.lessons_of_groups(bags).rows;
    for ((n, expected), seats) in chosen.iter_mut().zip(expected).zip(&given.seats_of_labels) {
        *n = if sure > 0.0 { (n.max(expected) / sure.min(1.0)).min(*seats) } else { *seats };
    }
    Ok(chosen)
}

fn refining(
    given: &Given,
    bags: &Csr,
    chosen: &Lessons,
    params: &RefineParams,
    rankers: &TrainParams,
    threads: usize,
) -> f64 {
    let (pairs, labels, threads_count) = (given.pairs, chosen.pairs(), threads.max(1) as f64);
    let fast = params.rounds == 0;
    // The rows as rankers get them.
    let x = Sizes { entries: given.entries(), block: 0.0, ..given.x };
    let folds = f64::from(if fast { FAST_FOLDS } else { params.folds });
    let rest = 1.0 - 1.0 / folds;

    let lists = 12.0 * given.memberships + 64.0 * x.rows + 24.0 * given.groups + 300.0 * x.labels;
    // Labels by sample and by group, and where labels stand in the tables by which company is kept.
    let candidates = 4.0 * pairs + 8.0 * given.segments + 24.0 * given.of_tables;
    // What segments tell their pairs, and two numbers a pair: its odds by its own evidence, and by all.
    let posterior = 4.0 * given.seats + 8.0 * pairs;
    let base = given.bytes() + given.rows() + lists + candidates + posterior;
    // The first scores; with rounds also the last, the mean of these, and the evidence of all.
    let scores = if fast { 4.0 * pairs } else { 16.0 * pairs };
    // What company says, by label and by sample, beside the labels of the round; or labels in parts that grew and put
    // together, beside the same weighed.
    let making = (8.0 * pairs + 8.0 * labels).max(4.0 * given.segments + 28.0 * labels);

    let flat = x.labels <= f64::from(FLAT);
    let mut params_of = rankers.clone();
    if flat {
        params_of.tree.max_leaf = FLAT;
    }
    // All rows and labels make the tree, all folds but one the classifiers.
    let ranker = |of: Sizes, lessons: &Lessons, most: f64, params: &TrainParams| {
        let tree = if flat { 0.0 } else { given.tree(of, lessons, params, threads) };
        let part = Sizes {
            rows: rest * of.rows,
            entries: rest * of.entries,
            pairs: rest * of.pairs,
            support: lessons.support(rest, most, of.features),
            ..of
        };
        let scoring = 12.0 * x.features * threads_count;
        tree.max(part.stages(params, threads).classifiers() + scoring)
    };
    let mut of_groups = params_of.clone();
    of_groups.model.normalize = true;
    let means = (x.entries / x.rows.max(1.0) * given.memberships).min(given.groups * x.features);
    let means = Sizes { rows: given.groups, entries: means, pairs: given.segments, ..x };
    let making_means = 20.0 * means.entries + 4.0 * x.features * threads_count;
    // Of a row of length 1 no more entries than these are as large as the least weight that is kept.
    let large = f64::from(rankers.solver.threshold).max(1e-9).powi(-2);
    let of_means = ranker(means, &given.lessons_of_groups(bags), large, &of_groups);
    let first = 4.0 * pairs + making_means.max(means.x_bytes() + of_means);
    let later = if fast {
        0.0
    } else {
        let mut of_samples = params_of;
        of_samples.solver.relevance = Relevance::Leaves;
        let samples = Sizes { pairs: labels, ..x };
        12.0 * pairs + samples.y_bytes() + ranker(samples, chosen, x.features, &of_samples)
    };
    base + first.max(later).max(scores + making)
}

/// What learning a model from groups takes: the larger of finding labels of samples and of training on them. Only where
/// labels are refined does `likeness` matter.
pub fn learning(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    likeness: f64,
    params: &LearnParams,
    control: &Control,
) -> Result<u64> {
    of_learning((&Narrow::new(x, bags), groups, bags.cols()), x.cols(), likeness, params, control)
}

fn of_learning(
    (narrow, groups, all): Inputs<'_>,
    features: usize,
    likeness: f64,
    params: &LearnParams,
    control: &Control,
) -> Result<u64> {
    let (x, bags) = (&narrow.x, &*narrow.bags);
    let threads = control.thread_count();
    let given = Given::new(x, groups, bags);
    let LearnParams { group: how, train } = params;
    let mut train = train.clone();
    let (finding, pairs) = match how.method {
        GroupMethod::Union => (given.bytes() + 16.0 * given.pairs, given.pairs),
        GroupMethod::Eagle => (of_embeddings((narrow, groups, all), false, threads) as f64, given.segments),
        GroupMethod::Refine => {
            train.solver.relevance = Relevance::Leaves;
            let how = how.refinement();
            let chosen = given.lessons_of_samples(chosen(&given, groups, bags, likeness, &how, control)?);
            (refining(&given, bags, &chosen, &how, &params.train, threads), chosen.pairs())
        }
    };
    // Few pairs have no more entries than their rows; labels of many have no more than there are features.
    let of_rows = pairs * given.x.entries / given.x.rows.max(1.0);
    // The model has all features and labels, those that nobody has as well.
    let (features, labels) = (features as f64, all as f64);
    let sizes = Sizes { pairs, support: given.support(1.0).min(of_rows), features, labels, ..given.x };
    // Where some sample stands in no group, the others are copied.
    let copied = if groups.grouped().iter().all(|g| *g) { 0.0 } else { given.x.x_bytes() + sizes.y_bytes() };
    let training = given.bytes() - given.x.x_bytes() + copied + sizes.stages(&train, threads).most();
    Ok(finding.max(training) as u64 + narrow.bytes())
}

/// Rows and bags in the columns in use, groups, and how many labels there are in all.
type Inputs<'a> = (&'a Narrow<'a>, &'a Groups, usize);

/// Refuses clusters that need more than the limit.
pub(super) fn check_clusters(x: &Features, depth: u32, control: &Control) -> Result<()> {
    if !control.wants_forecast() {
        return Ok(());
    }
    let need = clusters(x, depth, control.thread_count());
    control.allows("clustering", (x.rows(), 0), need, "or use fewer threads or features")
}

/// Refuses labels of groups that need more than the limit.
pub(super) fn check_bags((groups, y): (&Groups, &Csr), merge: Merge, control: &Control) -> Result<()> {
    if !control.wants_forecast() {
        return Ok(());
    }
    control.allows(
        "labels of groups",
        (y.rows(), y.cols()),
        bags(groups, y, merge),
        "or take fewer groups a sample",
    )
}

/// Refuses a union that needs more than the limit.
pub(super) fn check_union((groups, bags): (&Groups, &Csr), control: &Control) -> Result<()> {
    if !control.wants_forecast() {
        return Ok(());
    }
    control.allows(
        "the union",
        (groups.samples(), bags.cols()),
        union(groups, bags),
        "or make groups smaller",
    )
}

/// Refuses embeddings that need more than the limit.
pub(super) fn check_embeddings(what: &str, given: Inputs<'_>, kept: bool, control: &Control) -> Result<()> {
    if !control.wants_forecast() {
        return Ok(());
    }
    let need = of_embeddings(given, kept, control.thread_count());
    control.allows(what, (given.0.x.rows(), given.2), need, FEWER)
}

/// Refuses a refinement that needs more than the limit.
pub(super) fn check_refinement(
    given: Inputs<'_>,
    likeness: f64,
    params: &RefineParams,
    rankers: &TrainParams,
    control: &Control,
) -> Result<()> {
    if !control.wants_forecast() {
        return Ok(());
    }
    let need = of_refinement(given, likeness, params, rankers, control)?;
    control.allows(REFINEMENT, (given.0.x.rows(), given.2), need, SMALLER)
}

/// Refuses learning from groups that needs more than the limit, and says what it needs.
pub(super) fn check_learning(
    given: Inputs<'_>,
    features: usize,
    likeness: f64,
    params: &LearnParams,
    control: &Control,
) -> Result<u64> {
    let need = of_learning(given, features, likeness, params, control)?;
    control.allows(LEARNING, (given.0.x.rows(), given.2), need, SMALLER)?;
    Ok(need)
}
