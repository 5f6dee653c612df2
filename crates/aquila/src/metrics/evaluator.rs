//! The sums for P@k and the other metrics of a report, accumulated row by row.

use super::{AtK, Metrics, Report, Unlabelled, rank};
use crate::control::Control;
use crate::data::{Csr, Ranked, Row};
use crate::error::{Result, fail};
use crate::memory;

/// Maximum number of per-label counters of an evaluator: 2 GiB. Beyond it, the process would abort instead of returning
/// an error.
const MAX_COUNTERS: usize = 1 << 29;

/// What counters are called where there is no memory for them.
const COUNTERS: &str = "counters of labels";

/// Number of rows that are checked between two checks of the control: less than a millisecond.
const ROWS_A_CHECK: usize = 1024;

/// The sums for one k. Counts are exact; f64 sums add rows in the order they arrive.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Σ hits in the first k.
    hits: u64,
    /// Σ nDCG.
    ndcg: f64,
    /// Σ recall.
    recall: f64,
    /// Σ w over hits, for the model's lists and for the ideal ones.
    psp: [f64; 2],
    /// Σ w/log over hits, for both.
    psdcg: [f64; 2],
    /// Σ (w/log over hits) / d(min(k, |Y|)), for both.
    psndcg: [f64; 2],
    /// Σ |S|.
    predicted: u64,
    /// Σ |S ∩ Y|.
    found: u64,
    /// Σ F1 of the row.
    example_f1: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.ndcg += other.ndcg;
        self.recall += other.recall;
        for side in 0..2 {
            self.psp[side] += other.psp[side];
            self.psdcg[side] += other.psdcg[side];
            self.psndcg[side] += other.psndcg[side];
        }
        self.predicted += other.predicted;
        self.found += other.found;
        self.example_f1 += other.example_f1;
    }
}

/// Running sums of a ranked list up to some rank.
#[derive(Debug, Clone, Copy, Default)]
struct Gains {
    hits: u32,
    dcg: f64,
    weight: f64,
    weighted_dcg: f64,
}

/// The measures of a stream of rows. The formulas are on the [module's page](super).
///
/// Rows may be split among evaluators, which are then [merged](Evaluator::merge). The same rows in the same split,
/// merged in the same order, give the same bits; another split may differ in the last digit of the real-valued sums.
///
/// ```
/// use aquila::metrics::{Evaluator, Metrics};
/// use aquila::Row;
/// let mut evaluator = Evaluator::new(&Metrics::at([2]), 4)?;
/// evaluator.add(&[3, 0], None, Row { indices: &[0, 1], values: &[1.0, 1.0] })?;
/// assert_eq!(evaluator.report().precision[&2], 0.5);
/// # Ok::<(), aquila::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Evaluator {
    metrics: Metrics,
    ks: Vec<u32>,
    labels: usize,
    rows: u64,
    unlabelled: u64,
    sums: Vec<Sums>,
    /// Σ |Y|.
    truth: u64,
    /// For each label, the number of rows that have it.
    label_truth: Vec<u32>,
    /// For each label and each step of ks (ranks above the previous k, up to this one): how often it is predicted
    /// there, and how often correctly. Running sums over the steps give the counts at each k, so a ranked label costs
    /// one step.
    label_steps: Vec<[u32; 2]>,
    /// `discounts[l]` is 1/log₂(l + 2), where rank l is counted from 0; extended as needed.
    discounts: Vec<f64>,
    /// `ideal[n]` is d(n).
    ideal: Vec<f64>,
    // Scratch memory for one row.
    y: Vec<u32>,
    sorted: Vec<u32>,
    weights: Vec<f64>,
}

/// Refuses more labels than an evaluator counts at so many ranks.
pub(super) fn check_labels(labels: usize, ks: usize) -> Result<()> {
    if (1 + 2 * ks).checked_mul(labels).is_none_or(|n| n > MAX_COUNTERS) {
        fail!(
            MemoryLimit,
            "{labels} labels at {ks} ranks k need more than {MAX_COUNTERS} counters: measure fewer ks at once"
        );
    }
    Ok(())
}

/// Refuses to measure so many labels where that needs more than the control's limit of memory: counters, and propensities
/// where these are still to be made.
pub fn allowed(metrics: &Metrics, labels: usize, propensities: bool, control: &Control) -> Result<()> {
    let ks = metrics.checked_ks()?.len();
    check_labels(labels, ks)?;
    let each = 4 * (1 + 2 * ks) + if propensities { 12 } else { 0 };
    control.fits("measuring", (labels * each) as u64, "or measure fewer ks at once")
}

impl Evaluator {
    /// An evaluator of rankings of this many labels.
    pub fn new(metrics: &Metrics, labels: usize) -> Result<Self> {
        let ks = metrics.checked_ks()?;
        if let Some(p) = &metrics.propensity
            && p.weights().len() != labels
        {
            fail!(
                ShapeMismatch,
                "the propensities weigh {} labels but the truth has {labels}: make them from training rows with the \
                 full number of labels",
                p.weights().len()
            );
        }
        check_labels(labels, ks.len())?;
        Ok(Self {
            metrics: metrics.clone(),
            labels,
            rows: 0,
            unlabelled: 0,
            sums: vec![Sums::default(); ks.len()],
            truth: 0,
            label_truth: memory::filled(0, labels, COUNTERS)?,
            label_steps: memory::filled([0; 2], labels * ks.len(), COUNTERS)?,
            discounts: Vec::new(),
            ideal: vec![0.0],
            y: Vec::new(),
            sorted: Vec::new(),
            weights: Vec::new(),
            ks,
        })
    }

    /// Adds one row: its ranked labels, best first, their scores if known, and the true labels. Only the first
    /// `max(ks)` entries of the list count, but all must be labels. After an error the evaluator is unchanged.
    pub fn add(&mut self, ranked: &[u32], scores: Option<&[f32]>, truth: Row<'_>) -> Result<()> {
        self.check_room(1)?;
        let set = self.check(ranked, scores, truth)?;
        self.count(ranked, set, truth);
        Ok(())
    }

    /// Adds ranked predictions for all rows of the truth (rows × labels; stored entries that are not zero). After an
    /// error, or when cancelled, the evaluator is unchanged: all rows are checked before the first one is counted.
    ///
    /// Needs `predictions.indptr.len() == truth.rows() + 1`; scores may be empty when no floor is set.
    pub fn add_all(&mut self, predictions: &Ranked, truth: &Csr, control: &Control) -> Result<()> {
        rank::check(predictions)?;
        if predictions.rows() != truth.rows() {
            fail!(
                ShapeMismatch,
                "the predictions have {} rows but the truth {} x {}",
                predictions.rows(),
                truth.rows(),
                truth.cols()
            );
        }
        if truth.cols() != self.labels {
            fail!(
                ShapeMismatch,
                "the truth has {} labels but the rows measured so far had {}",
                truth.cols(),
                self.labels
            );
        }
        self.check_room(truth.rows())?;
        let scored = predictions.scores.len() == predictions.labels.len();
        let list = |i: usize| {
            let span = predictions.indptr[i]..predictions.indptr[i + 1];
            (&predictions.labels[span.clone()], scored.then(|| &predictions.scores[span]))
        };
        let mut sets = Vec::with_capacity(truth.rows());
        for (i, row) in truth.iter_rows().enumerate() {
            if i % ROWS_A_CHECK == 0 {
                control.check()?;
            }
            let (ranked, scores) = list(i);
            let set = self
                .check(ranked, scores, row)
                .map_err(|e| e.at(format_args!("row {i} of the predictions")))?;
            sets.push(set);
        }
        for (i, (row, set)) in truth.iter_rows().zip(sets).enumerate() {
            self.count(list(i).0, set, row);
        }
        Ok(())
    }

    /// Bytes used by its counters.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.label_truth[..]) + size_of_val(&self.label_steps[..])) as u64
    }

    /// Checks that this many more rows can be counted.
    fn check_room(&self, rows: usize) -> Result<()> {
        if self.rows + rows as u64 > u64::from(u32::MAX) {
            fail!(Unsupported, "an evaluator takes at most {} rows: report and start another", u32::MAX);
        }
        Ok(())
    }

    /// The maximum number of labels of a list that are used.
    fn depth(&self) -> usize {
        self.ks[self.ks.len() - 1] as usize
    }

    /// Checks one row; returns how many of the first labels of its list reach the floor.
    fn check(&mut self, ranked: &[u32], scores: Option<&[f32]>, truth: Row<'_>) -> Result<usize> {
        Row::checked(truth.indices, truth.values, self.labels).map_err(|e| e.at("truth"))?;
        if let Some(scores) = scores
            && scores.len() != ranked.len()
        {
            fail!(ShapeMismatch, "a row ranks {} labels but has {} scores", ranked.len(), scores.len());
        }
        self.check_ids(ranked)?;
        let ranked = &ranked[..ranked.len().min(self.depth())];
        self.check_ranked(ranked)?;
        self.check_scores(ranked.len(), scores)
    }

    /// Counts one row that has been checked.
    fn count(&mut self, ranked: &[u32], set: usize, truth: Row<'_>) {
        let max_k = self.depth();
        let ranked = &ranked[..ranked.len().min(max_k)];
        self.y.clear();
        self.y.extend(truth.iter().filter(|e| e.1 != 0.0).map(|e| e.0));
        if self.y.is_empty() {
            self.unlabelled += 1;
            if self.metrics.params.unlabelled == Unlabelled::Skip {
                return;
            }
        }
        self.rows += 1;
        self.truth += self.y.len() as u64;
        self.y.iter().for_each(|l| self.label_truth[*l as usize] += 1);
        self.extend_tables(ranked.len().max(self.y.len().min(max_k)));
        self.add_gains(ranked, set);
        self.add_ideal();
    }

    /// Checks the ids of a whole list: one beyond the labels says that the list is of another model, or that its model is
    /// damaged, wherever it stands.
    fn check_ids(&self, ranked: &[u32]) -> Result<()> {
        if let Some(r) = ranked.iter().position(|l| *l as usize >= self.labels) {
            fail!(
                IndexOutOfRange,
                "predicted label {} at rank {} is not below the number of labels, {}",
                ranked[r],
                r + 1,
                self.labels
            );
        }
        Ok(())
    }

    fn check_ranked(&mut self, ranked: &[u32]) -> Result<()> {
        // A label that occurs twice in a list would count as two hits and could raise precision above its maximum.
        self.sorted.clear();
        self.sorted.extend_from_slice(ranked);
        self.sorted.sort_unstable();
        if let Some(w) = self.sorted.windows(2).find(|w| w[0] == w[1]) {
            fail!(DuplicateIndex, "predicted label {} stands twice in one row: merge its scores first", w[0]);
        }
        Ok(())
    }

    /// Checks the first `n` scores; returns how many of them reach the floor.
    fn check_scores(&self, n: usize, scores: Option<&[f32]>) -> Result<usize> {
        let floor = self.metrics.params.floor;
        let Some(scores) = scores.map(|s| &s[..n]) else {
            if floor > f32::MIN && n > 0 {
                fail!(InvalidArgument, "the floor {floor} needs scores but the predictions have none");
            }
            return Ok(n);
        };
        if let Some(r) = scores.iter().position(|s| s.is_nan()) {
            fail!(NotFinite, "the score at rank {} is NaN", r + 1);
        }
        if let Some(r) = scores.windows(2).position(|w| w[0] < w[1]) {
            fail!(
                InvalidArgument,
                "score {} at rank {} stands after {}: rank the best label first",
                scores[r + 1],
                r + 2,
                scores[r]
            );
        }
        // The lowest float means "no floor"; then −∞ (a label without training rows) is also predicted.
        Ok(if floor > f32::MIN { scores.partition_point(|s| *s >= floor) } else { n })
    }

    fn extend_tables(&mut self, ranks: usize) {
        for l in self.discounts.len()..ranks {
            let discount = 1.0 / ((l + 2) as f64).log2();
            self.discounts.push(discount);
            self.ideal.push(self.ideal[l] + discount);
        }
    }

    /// Adds the gains of the model's list at each k; its first `set` labels reach the floor.
    fn add_gains(&mut self, ranked: &[u32], set: usize) {
        let labelled = self.y.len();
        let steps = self.ks.len();
        let mut gains = Gains::default();
        let (mut found, mut at) = (0, 0);
        for (step, &k) in self.ks.iter().enumerate() {
            for (r, &label) in ranked.iter().enumerate().take(k as usize).skip(at) {
                let hit = self.y.binary_search(&label).is_ok();
                if r < set {
                    let [predicted, right] = &mut self.label_steps[label as usize * steps + step];
                    *predicted += 1;
                    *right += u32::from(hit);
                    found += u64::from(hit);
                }
                if hit {
                    gains.hits += 1;
                    gains.dcg += self.discounts[r];
                    if let Some(p) = &self.metrics.propensity {
                        let weight = f64::from(p.weights()[label as usize]);
                        gains.weight += weight;
                        gains.weighted_dcg += weight * self.discounts[r];
                    }
                }
            }
            at = ranked.len().min(k as usize);
            let (sums, predicted) = (&mut self.sums[step], set.min(k as usize));
            sums.hits += u64::from(gains.hits);
            sums.predicted += predicted as u64;
            sums.found += found;
            sums.psp[0] += gains.weight;
            sums.psdcg[0] += gains.weighted_dcg;
            if labelled > 0 {
                let ideal = self.ideal[labelled.min(k as usize)];
                sums.ndcg += gains.dcg / ideal;
                sums.psndcg[0] += gains.weighted_dcg / ideal;
                sums.recall += f64::from(gains.hits) / labelled as f64;
                sums.example_f1 += 2.0 * found as f64 / (predicted + labelled) as f64;
            }
        }
    }

    /// Adds the gains of the ideal list, the row's labels by descending weight, at each k.
    fn add_ideal(&mut self) {
        let Some(p) = &self.metrics.propensity else { return };
        if self.y.is_empty() {
            return;
        }
        self.weights.clear();
        self.weights.extend(self.y.iter().map(|l| f64::from(p.weights()[*l as usize])));
        self.weights.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut weight, mut dcg, mut at) = (0.0, 0.0, 0);
        for (sums, &k) in self.sums.iter_mut().zip(&self.ks) {
            let end = self.weights.len().min(k as usize);
            for r in at..end {
                weight += self.weights[r];
                dcg += self.weights[r] * self.discounts[r];
            }
            at = end;
            sums.psp[1] += weight;
            sums.psdcg[1] += dcg;
            sums.psndcg[1] += dcg / self.ideal[end];
        }
    }

    /// Adds all rows of another evaluator, which must have the same measures and labels.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.labels != other.labels {
            fail!(ShapeMismatch, "cannot merge measures over {} and {} labels", self.labels, other.labels);
        }
        if self.ks != other.ks {
            fail!(InvalidArgument, "cannot merge measures at k {:?} and {:?}", self.ks, other.ks);
        }
        if self.metrics.params != other.metrics.params || self.metrics.propensity != other.metrics.propensity
        {
            fail!(
                InvalidArgument,
                "cannot merge measures of different parameters or propensities: make both evaluators from one Metrics"
            );
        }
        self.check_room(other.rows as usize)?;
        self.rows += other.rows;
        self.unlabelled += other.unlabelled;
        self.truth += other.truth;
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| a.add(b));
        self.label_truth.iter_mut().zip(&other.label_truth).for_each(|(a, b)| *a += b);
        for (a, b) in self.label_steps.iter_mut().zip(&other.label_steps) {
            a[0] += b[0];
            a[1] += b[1];
        }
        Ok(())
    }

    /// The measures of all rows so far.
    pub fn report(&self) -> Report {
        let (rows, truth, labels) = (self.rows as f64, self.truth as f64, self.labels as f64);
        let at = |value: &dyn Fn(&Sums, f64) -> f64| -> AtK {
            self.ks.iter().zip(&self.sums).map(|(k, s)| (*k, value(s, f64::from(*k)))).collect()
        };
        let scored = |value: &dyn Fn(&Sums) -> [f64; 2]| -> Option<AtK> {
            self.metrics.propensity.as_ref().map(|_| {
                at(&|s, _| {
                    let [model, ideal] = value(s);
                    ratio(model, ideal)
                })
            })
        };
        Report {
            rows: self.rows,
            unlabelled_rows: self.unlabelled,
            unlabelled: self.metrics.params.unlabelled,
            precision: at(&|s, k| ratio(s.hits as f64, k * rows)),
            ndcg: at(&|s, _| ratio(s.ndcg, rows)),
            recall: at(&|s, _| ratio(s.recall, rows)),
            psp: scored(&|s| s.psp),
            psndcg: scored(&|s| s.psdcg),
            psndcg_per_row: scored(&|s| s.psndcg),
            micro_f1: at(&|s, _| ratio(2.0 * s.found as f64, s.predicted as f64 + truth)),
            macro_f1: self.ks.iter().copied().zip(self.macro_f1()).collect(),
            example_f1: at(&|s, _| ratio(s.example_f1, rows)),
            hamming_accuracy: at(&|s, _| {
                let all = rows * labels;
                ratio(all - (s.predicted as f64 + truth - 2.0 * s.found as f64), all)
            }),
        }
    }

    fn macro_f1(&self) -> Vec<f64> {
        let mut f1 = vec![0.0; self.ks.len()];
        for (&truth, steps) in self.label_truth.iter().zip(self.label_steps.chunks_exact(self.ks.len())) {
            let (mut predicted, mut right) = (0, 0);
            for (f1, step) in f1.iter_mut().zip(steps) {
                predicted += u64::from(step[0]);
                right += u64::from(step[1]);
                *f1 += ratio(2.0 * right as f64, (predicted + u64::from(truth)) as f64);
            }
        }
        f1.iter().map(|sum| ratio(*sum, self.labels as f64)).collect()
    }
}

/// Returns 0 for 0/0: a measure of nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Measures ranked predictions for all rows against the truth (rows × labels; stored entries that are not zero).
///
/// Needs `predictions.indptr.len() == truth.rows() + 1`; scores may be empty when no floor is set.
pub fn evaluate(predictions: &Ranked, truth: &Csr, metrics: &Metrics) -> Result<Report> {
    let mut evaluator = Evaluator::new(metrics, truth.cols())?;
    evaluator.add_all(predictions, truth, &Control::default())?;
    Ok(evaluator.report())
}
