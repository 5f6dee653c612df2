//! Refinement: labels of samples from labels of groups, with more than one sample per label where evidence supports it.
//!
//! 1. *A first score.* Rankers learn the groups' labels from the means of the groups and score, *out-of-fold*, the samples
//!    of groups that they did not see. No guess about samples is needed.
//! 2. *A posterior.* The scores, standardised per label, are evidence; belief propagation over all groups turns them into
//!    probabilities (`posterior`). These show which labels occur together (`cooccurrence`); what a sample's other labels say
//!    is added to the evidence, and the posterior is computed again.
//! 3. *Labels.* Pairs of at least some probability are positives, weighted by their probability; so is the most likely
//!    sample of each group and label. Everything else is negative.
//! 4. *Rounds.* Rankers learn these labels from the samples, again out-of-fold; the posterior is computed from the scores
//!    of step 1 and the mean of the scores of all rounds.
//!
//! Where the first score separates a label's samples less well than the posterior assumes (`score_reliability`), it is
//! weighted down, and the rounds are skipped, since such a score is too poor to learn from.
//!
//! A ranker cannot be more certain than the labels it learned: scores of rounds are weighted by how certain the labels of the
//! first round were. Labels of later rounds only look more certain because rankers agree with themselves.
//!
//! How labels are weighted, and how rankers learn them, depends on how similar the samples of a group are: see
//! [`lesson`](super::lesson).
//!
//! Source: ours, after a study of ridge regression on group means; docs/algorithms/refinement.md has what each part
//! contributes and where it ends. Cost in rows: two trainings on means of groups, two per round, and the posteriors; in the
//! fast form one training on means, whose rankers stop earlier and learn from two folds.

use super::candidates::Candidates;
use super::cooccurrence::Cooccurrence;
use super::forecast;
use super::groups::Groups;
use super::lesson::{Lesson, certainty};
use super::likeness::{likeness_for, unity};
use super::narrow::Narrow;
use super::posterior::{Posterior, Rates};
use super::score_reliability::{Compared, decoys, separation};
use crate::control::{Control, Progress, stage};
use crate::data::{Csr, Features};
use crate::error::{Result, fail};
use crate::params::{Kind, Params};
use crate::rng::Rng;
use crate::tree::{Cut, LabelTree, Pifa, given};
use crate::xlinear::{
    Lists, Model, ScoreForm, TrainInputs, TrainParams, TrainRows, VectorCut, label_tree, train,
};
use rayon::prelude::*;
use std::borrow::Cow;
use std::time::Instant;

/// Defaults of refinement, alone and on the way to a model.
pub(super) const DEFAULT_ROUNDS: u32 = 1;
pub(super) const DEFAULT_FOLDS: u32 = 3;
pub(super) const DEFAULT_THRESHOLD: f32 = 0.45;

crate::params! {
    /// How group labels are refined.
    pub struct RefineParams {
        /// Rounds of rankers after the first score, if that is good enough to teach; 0 is the fast form, whose folds are always two.
        pub rounds: u32 = DEFAULT_ROUNDS, "rounds", Kind::Integer { min: 0.0, max: 100.0 };
        /// Parts of the groups; each is scored by rankers that learned from the others.
        pub folds: u32 = DEFAULT_FOLDS, "folds", Kind::Integer { min: 2.0, max: 100.0 };
        /// Least probability of a label, for random groups; less for groups of like samples.
        pub threshold: f32 = DEFAULT_THRESHOLD, "threshold", Kind::Number { min: 0.0, max: 1.0 };
    }
}

/// What refinement gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Refined {
    /// Samples × labels: the confidence of each label, above 0 and at most 1.
    pub y: Csr,
    /// What each of these labels weighs in a training, with their pattern: as much as it is likely, or nearer to 1 in
    /// groups of like samples.
    pub relevance: Csr,
    /// How like the samples of one group are: see [`likeness`](super::likeness()).
    pub likeness: f64,
    /// The least probability of a label that followed from it.
    pub threshold: f32,
    /// How a model should learn them.
    pub(super) lesson: Lesson,
    /// Seconds from matrices in memory to result in memory.
    pub seconds: f64,
}

/// What memory is asked for.
pub(super) const REFINEMENT: &str = "refinement";

/// Costs of the first rankers: means of groups say less than rows of their own.
const FIRST_COST: f32 = 0.5;
/// Parts of the groups in the fast form.
pub(super) const FAST_FOLDS: u32 = 2;
/// Least weight of the first score: though it say next to nothing, its order decides between equals.
const LEAST_TRUST: f64 = 0.1;
/// Weight of what a sample's other labels say, where the first score's is 1.
const COOCCURRENCE: f32 = 0.5;
/// Weight of the rounds' scores, if the labels that their rankers learned were certain.
const ROUNDS: f32 = 2.0;
/// Rankers end sooner than models, for only the order of their scores counts. In the fast form, sooner still.
const RANKER_EPS_FACTOR: f32 = 3.0;
const FAST_RANKER_EPS_FACTOR: f32 = 14.0;
/// Most entries of a row that count for the rankers' tree.
pub(super) const MEAN_ENTRIES: usize = 64;
/// Most labels for which rankers learn without a tree, which finds the order of samples best.
pub(super) const FLAT: u32 = 1000;
/// A stream of random numbers for each round's folds.
const STREAM: u64 = 0x666f_6c64_7300;

/// Labels of samples from labels of groups. `ranker` says how rankers learn.
///
/// Samples of no group get no labels, and labels of no group no samples.
pub fn refine(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    params: &RefineParams,
    rankers: &TrainParams,
    control: &Control,
) -> Result<Refined> {
    let since = Instant::now();
    params.check()?;
    rankers.check()?;
    groups.check_rows(x.rows())?;
    groups.check_bags(bags)?;
    if x.cols() == 0 {
        fail!(InvalidArgument, "x has no features to tell {} samples apart by: give some", x.rows());
    }
    let likeness = likeness_for(REFINEMENT, x, groups, control)?;
    let narrow = Narrow::new(x, bags);
    forecast::check_refinement((&narrow, groups, bags.cols()), likeness, params, rankers, control)?;
    let (x, bags) = (&narrow.x, &*narrow.bags);
    let subrun = &control.subrun();
    let (y, lesson) =
        control.install(|| refine_alike(x, groups, bags, likeness, params, rankers, subrun))??;
    let y = narrow.labels(y);
    let (relevance, threshold) = (lesson.weighed(&y), lesson.threshold);
    Ok(Refined { y, relevance, likeness, threshold, lesson, seconds: since.elapsed().as_secs_f64() })
}

impl Refined {
    /// The parameters with which a training on these labels and relevances is that of [`learn`](super::learn()): costs
    /// are scaled by how certain the labels are.
    pub fn lesson(&self, params: &TrainParams) -> TrainParams {
        self.lesson.ranker(params, &self.relevance)
    }
}

/// The labels, and how a model should learn them, in the pool of a call that knows the likeness of groups and has checked
/// the memory.
pub(super) fn refine_alike(
    x: &Features,
    groups: &Groups,
    bags: &Csr,
    likeness: f64,
    params: &RefineParams,
    rankers: &TrainParams,
    control: &Control,
) -> Result<(Csr, Lesson)> {
    let since = Instant::now();
    let x = x.as_csr();
    let rows = TrainRows::new(&x, true);
    let pairs = Candidates::new(groups, bags, control)?;
    let rates = Rates::new(groups, bags, &pairs, control)?;
    let unity = unity(likeness, groups);
    let lesson = Lesson::new(params.threshold, unity);

    let mut rankers = rankers.clone();
    let (folds, eps_factor) = if params.rounds == 0 {
        (FAST_FOLDS, FAST_RANKER_EPS_FACTOR)
    } else {
        (params.folds, RANKER_EPS_FACTOR)
    };
    rankers.solver.eps *= eps_factor;
    let work = Work { x: &x, rows: &rows, groups, bags, pairs: &pairs, rankers, control, since };
    let steps = folds * (params.rounds + 1);
    let mut step = 0;
    let mut tell = || {
        step += 1;
        work.tell(step, steps);
    };

    let cooccurrence = Cooccurrence::new(&pairs, groups, control)?;
    let mut posterior = Posterior::new(&pairs, &rates);

    let decoys = decoys(&pairs, control)?;
    let parted = Folds::new(groups, folds, 0, control);
    let asked = [pairs.lists(), (decoys.indptr(), decoys.indices())];
    let [mut first, false_scores] = work.scores(Teacher::Bags, &parted, asked, &mut tell)?;
    let compared = Compared {
        folds,
        of_sample: &parted.of_sample,
        scores: &first,
        decoys: &decoys,
        false_scores: &false_scores,
    };
    let deserved = separation(&pairs, &rates, &compared, control)?.unwrap_or(1.0);
    // A score that deserves less than the posterior's 1 gets no more; and rounds would learn its errors.
    let rounds = if deserved < 1.0 { 0 } else { params.rounds };
    if rounds < params.rounds {
        work.tell(steps, steps);
    }
    let trust = deserved.clamp(LEAST_TRUST, 1.0) as f32;
    work.standard(&mut first)?;
    first.par_iter_mut().for_each(|z| *z *= trust);
    work.believe(&mut posterior, &cooccurrence, &first)?;
    let mut later = Vec::new();
    let mut weight = 0.0;
    for round in 1..=rounds {
        let y = pairs.choose(posterior.likely(), lesson.threshold, control)?;
        let y = lesson.weighed(&y);
        if round == 1 {
            weight = ROUNDS * certainty(&y);
        }
        let parted = Folds::new(groups, folds, u64::from(round), control);
        let asked = [pairs.lists()];
        let [mut found] = work.scores(Teacher::Samples(&y, lesson), &parted, asked, &mut tell)?;
        work.standard(&mut found)?;
        later.resize(found.len(), 0f32);
        later.iter_mut().zip(&found).for_each(|(mean, s)| *mean += (s - *mean) / round as f32);
        let evidence: Vec<f32> = first.iter().zip(&later).map(|(z, s)| z + weight * s).collect();
        work.believe(&mut posterior, &cooccurrence, &evidence)?;
    }
    let y = pairs.choose(posterior.likely(), lesson.threshold, control)?;
    Ok((y, lesson))
}

/// Which part of the groups each of them is of, and each sample by its first group; `u32::MAX` for samples of none.
struct Folds {
    count: u32,
    of_group: Vec<u32>,
    of_sample: Vec<u32>,
}

impl Folds {
    fn new(groups: &Groups, count: u32, round: u64, control: &Control) -> Self {
        let mut order: Vec<u32> = (0..groups.len() as u32).collect();
        Rng::new(&[control.seed, STREAM, round]).shuffle(&mut order);
        let mut of_group = vec![0; order.len()];
        order.iter().enumerate().for_each(|(rank, j)| of_group[*j as usize] = rank as u32 % count);
        let mut of_sample = vec![u32::MAX; groups.samples()];
        for (j, fold) in of_group.iter().enumerate().rev() {
            groups.members(j).iter().for_each(|i| of_sample[*i as usize] = *fold);
        }
        Self { count, of_group, of_sample }
    }
}

/// What rankers learn from.
#[derive(Debug, Clone, Copy)]
enum Teacher<'a> {
    /// The means of groups, and their bags.
    Bags,
    /// Samples, and these labels of theirs.
    Samples(&'a Csr, Lesson),
}

/// What all rankers share.
struct Work<'a> {
    x: &'a Csr,
    rows: &'a TrainRows<'a>,
    groups: &'a Groups,
    bags: &'a Csr,
    pairs: &'a Candidates<'a>,
    rankers: TrainParams,
    control: &'a Control,
    since: Instant,
}

impl Work<'_> {
    /// The scores of the labels of each list of samples' labels, by rankers that did not learn from the sample's first
    /// group.
    fn scores<const N: usize>(
        &self,
        teacher: Teacher<'_>,
        folds: &Folds,
        asked: [Lists<'_>; N],
        tell: &mut impl FnMut(),
    ) -> Result<[Vec<f32>; N]> {
        let Folds { count, of_group, of_sample } = folds;
        let (x, y, of_row, params) = match teacher {
            Teacher::Bags => {
                let mut params = self.rankers.clone();
                params.solver.cp *= FIRST_COST;
                params.solver.cn *= FIRST_COST;
                params.model.normalize = true;
                let rosters = self.groups.rosters();
                let means = Pifa::new(self.x, self.rows.values(), &rosters);
                let means = means.all(Cut::NONE, self.control)?;
                (Cow::Owned(Csr::from(means)), self.bags, of_group, params)
            }
            Teacher::Samples(y, lesson) => {
                (Cow::Borrowed(self.x), y, of_sample, lesson.ranker(&self.rankers, y))
            }
        };
        let mut scores = asked.map(|lists| (lists, vec![0f32; lists.1.len()]));
        if self.pairs.len() == 0 {
            return Ok(scores.map(|(_, scores)| scores));
        }
        let tree = self.tree(&x, y, &params)?;
        for fold in 0..*count {
            let rest = places(of_row, |f| f != fold && f != u32::MAX);
            let held = places(of_sample, |f| f == fold);
            let found = self.ranker(x.select(&rest), &y.select(&rest), tree.clone(), &params)?;
            if let Some(ranker) = found {
                let asked = scores.each_mut().map(|(lists, scores)| (*lists, &mut scores[..]));
                ranker.score(self.x, &held, asked, ScoreForm::LogSigmoid, self.control)?;
            }
            tell();
        }
        Ok(scores.map(|(_, scores)| scores))
    }

    /// How likely pairs are by this evidence and by what the other labels of their samples say.
    fn believe(
        &self,
        posterior: &mut Posterior<'_>,
        cooccurrence: &Cooccurrence<'_>,
        evidence: &[f32],
    ) -> Result<()> {
        let alone = posterior.update_coarsely(evidence, self.control)?;
        let mut joined = cooccurrence.evidence(alone, self.control)?;
        self.standard(&mut joined)?;
        joined.par_iter_mut().zip(evidence).for_each(|(said, own)| *said = own + COOCCURRENCE * *said);
        posterior.update(&joined, self.control)
    }

    /// The labels' tree, the same for the rankers of all folds; a flat one if labels are few. It is made of rows cut as label
    /// vectors are: means of groups have the entries of all their samples, and most of these are small.
    fn tree(&self, x: &Csr, y: &Csr, params: &TrainParams) -> Result<LabelTree> {
        if y.cols() <= FLAT as usize {
            return LabelTree::flat(y.cols());
        }
        let cut = Cut { most: MEAN_ENTRIES, mass: params.tree.vector_mass };
        let short = (params.tree.vector_cut != VectorCut::Never).then(|| given(x, cut, self.control));
        let short = short.transpose()?;
        let rows = TrainRows::new(short.as_ref().unwrap_or(x), params.model.normalize);
        label_tree(&rows, y, params, self.control)
    }

    /// Learns these rows, if they have labels.
    fn ranker(&self, x: Csr, y: &Csr, tree: LabelTree, params: &TrainParams) -> Result<Option<Model>> {
        self.control.check()?;
        if y.values().iter().all(|v| *v == 0.0) {
            return Ok(None);
        }
        let inputs = TrainInputs { tree: Some(tree), ..TrainInputs::default() };
        Ok(Some(train(&Features::from(x), y, params, inputs, &self.control.without_progress())?.0))
    }

    /// Brings scores to mean 0 and spread 1 for each label.
    fn standard(&self, scores: &mut [f32]) -> Result<()> {
        let pairs = self.pairs;
        let sums = pairs.tally(scores, self.control, |(): &mut (), i, scores, sums: &mut [[f64; 2]]| {
            for (k, s) in pairs.labels_of(i).iter().zip(scores) {
                let ([sum, squares], s) = (&mut sums[*k as usize], f64::from(*s));
                (*sum, *squares) = (*sum + s, *squares + s * s);
            }
        })?;
        let scale = |([sum, squares], n): (&[f64; 2], &u32)| {
            let n = f64::from((*n).max(1));
            let (mean, spread) = (sum / n, squares / n - (sum / n).powi(2));
            let scale = if spread > 1e-9 * squares / n { 1.0 / spread.sqrt() } else { 0.0 };
            [mean as f32, scale as f32]
        };
        let scales: Vec<[f32; 2]> = sums.iter().zip(pairs.counts()).map(scale).collect();
        pairs.by_row(scores).into_par_iter().enumerate().try_for_each(|(i, scores)| {
            self.control.check()?;
            for (s, k) in scores.iter_mut().zip(pairs.labels_of(i)) {
                let [mean, scale] = scales[*k as usize];
                *s = (*s - mean) * scale;
            }
            Ok(())
        })
    }

    fn tell(&self, done: u32, total: u32) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.control.report(&Progress {
            stage: stage::REFINE,
            done: u64::from(done),
            total: u64::from(total),
            rows: self.x.rows() as u64,
            labels: self.bags.cols() as u64,
            seconds,
            eta: seconds * f64::from(total - done) / f64::from(done),
            ..Progress::default()
        });
    }
}

/// The places of what is wanted.
fn places(folds: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    (0..folds.len() as u32).filter(|at| wanted(folds[*at as usize])).collect()
}
