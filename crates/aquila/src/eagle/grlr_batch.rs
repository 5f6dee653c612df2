//! Labels that share most of their groups, sixteen at a time: their embeddings, round by round.
//!
//! The rounds are the same as in [`super::grlr`], which has the formulas, with the same two sums `R` and `G` of each
//! label; bounds use the length of the path that `G` has taken. There, a label scores a sample only when necessary.
//! Here, sixteen labels score a sample together at hardly more than the cost of one, because each of its entries meets
//! all sixteen vectors in one cache line of either sum. If one label is uncertain about a sample, the others often are
//! too.
//!
//! A score `s` has an error of at most `d`, so only a sample with `s + d ≥ max(s − d)` may be its group's best for a
//! label. If several may be, they are scored again. The known scores of all samples are stored in lines, which a kernel
//! processes.
//!
//! Cost: on debian-tags about eight passes over the entries of the groups' samples for 20 rounds, four of them with
//! both sums.

use super::grlr::{Learned, TIE, cancels, pull, shrinking};
use super::groups::Groups;
use super::samples::View;
use super::tasks::Label;
use crate::control::Control;
use crate::error::Result;
use crate::kernels::aligned::Aligned;
use crate::kernels::batch16::{BATCH16, Contest, Drift16, Leads, Looks};

/// Number of rows between two checks for cancellation.
const BATCH: usize = 4096;
/// Maximum number of points in time that scores may refer to: after this many, all samples are scored again.
const POINTS: usize = 1024;
/// Minimum average number of lanes for which a sample counts: labels processed alone score a sample about a third as
/// often. On debian-tags with groups of ten, all labels take 3 % longer with 4; with 2, they take 3 % longer on one
/// thread and 15 % on two.
pub(super) const SHARED: usize = 3;

/// Whether a run of labels should be learned as a batch: its samples count for enough of its lanes, and the table of
/// lines is no larger than the data that one pass reads. `entries` returns the number of entries of a sample.
pub(super) fn worthwhile(
    run: &[Label<'_>],
    groups: &Groups,
    entries: impl Fn(u32) -> usize,
    features: usize,
) -> bool {
    let mut all: Vec<u32> = run.iter().flat_map(|label| label.groups().map(|(j, _)| j)).collect();
    all.sort_unstable();
    all.dedup();
    let samples = || all.iter().flat_map(|j| groups.members(*j as usize));
    let each: usize = run.iter().map(|label| label.samples).sum();
    let entry = size_of::<(u32, f32)>();
    each >= SHARED * samples().count()
        && samples().map(|i| entries(*i) * entry).sum::<usize>() >= features * BATCH16 * size_of::<f32>()
}

/// The counts of the sixteen labels in one group.
type Counts = [f32; BATCH16];

/// How far `E` and `G` have moved.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    /// `Σ u`.
    steps: f64,
    /// The length of the path that `G` has taken.
    length: f64,
    /// `Σ u·length`.
    drift: f64,
}

impl Path {
    /// Advances by a step `u`.
    fn advance(&mut self, u: f64) {
        self.drift += u * self.length;
        self.steps += u;
    }

    /// Multiplies `E`.
    fn scale(&mut self, factor: f64) {
        self.steps *= factor;
        self.drift *= factor;
    }

    /// The maximum error of a score predicted from an earlier point, for samples of length 1: if `G` has moved by at
    /// most `D` since then, `|⟨G, x⟩ − ⟨G_then, x⟩| ≤ D`.
    #[inline(always)]
    fn doubt(&self, then: &Self) -> f64 {
        ((self.drift - then.drift) - then.length * (self.steps - then.steps)).max(0.0)
    }
}

/// For each label `‖G‖²`, `⟨E, G⟩` and the sum of the lengths of the summands of `G`.
#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    squared: f64,
    along: f64,
    mass: f64,
}

/// The memory of one thread for its batch of labels.
#[derive(Debug)]
pub(super) struct GrlrBatch<'a> {
    x: View<'a>,
    /// `R` and `G`, where `E = R + Σu·G`: a line for each feature.
    rest: Aligned,
    sum: Aligned,
    /// The counts of the groups that any of the labels has, and the range of each group's rows.
    groups: Vec<Counts>,
    contests: Vec<Contest>,
    /// The samples, group by group.
    rows: Vec<u32>,
    /// `⟨E, x⟩` and `⟨G, x⟩` when last scored, a line for each row.
    scores: Aligned,
    pulls: Aligned,
    /// The point at which each row was last scored.
    seen: Vec<u16>,
    leaders: Vec<Leads>,
    selected: Vec<u16>,
    paths: [Path; BATCH16],
    lengths: [Lengths; BATCH16],
    /// Points in time at which rows were scored, and what has changed since each.
    points: Vec<[Path; BATCH16]>,
    since: Vec<Drift16>,
    /// Number of points that belong to earlier rounds.
    earlier: usize,
    /// The rows that must be scored again, and the contests that they leave open.
    unsure: Vec<usize>,
    open: Vec<Contest>,
    /// The rows that start or cease to be selected, and for each a line with the change of `G`.
    changed: Vec<usize>,
    factors: Vec<f32>,
    /// The samples of some rows, and lines of products for each.
    picked: Vec<u32>,
    products: [Vec<f32>; 2],
    /// The embeddings are these factors times `E`.
    scales: [f64; BATCH16],
    ties: [f64; BATCH16],
}

/// The lanes whose bit is set.
fn lanes(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            lane as usize
        })
    })
}

impl<'a> GrlrBatch<'a> {
    pub fn new(x: View<'a>) -> Self {
        Self {
            x,
            rest: Aligned::default(),
            sum: Aligned::default(),
            groups: Vec::new(),
            contests: Vec::new(),
            rows: Vec::new(),
            scores: Aligned::default(),
            pulls: Aligned::default(),
            seen: Vec::new(),
            leaders: Vec::new(),
            selected: Vec::new(),
            paths: Default::default(),
            lengths: Default::default(),
            points: Vec::new(),
            since: Vec::new(),
            earlier: 0,
            unsure: Vec::new(),
            open: Vec::new(),
            changed: Vec::new(),
            factors: Vec::new(),
            picked: Vec::new(),
            products: Default::default(),
            scales: [0.0; BATCH16],
            ties: [0.0; BATCH16],
        }
    }

    /// Learns the embeddings and returns a bit for each label that was learned: a label whose samples cancel out must
    /// be learned alone.
    pub fn learn(
        &mut self,
        labels: &[Label<'_>],
        groups: &Groups,
        (iterations, step): (u32, f64),
        control: &Control,
    ) -> Result<u32> {
        self.gather(labels, groups);
        let learned = self.begin(control)?;
        for round in 0..iterations {
            control.check()?;
            self.select(control)?;
            if round == 0 {
                self.first_turn(control)?;
            } else if !self.changed.is_empty() {
                self.update_selected(control)?;
            }
            if self.points.len() > POINTS {
                self.look_at_all(control)?;
            }
            self.advance(step);
            self.shrink();
        }
        self.select(control)?;
        // The similarities of the selected samples are reported, so they are computed exactly.
        self.unsure.clear();
        self.unsure.extend((0..self.rows.len()).filter(|i| self.selected[*i] != 0));
        self.look(control)?;
        Ok(learned)
    }

    /// Collects the groups that any of the labels has, and their samples.
    fn gather(&mut self, labels: &[Label<'_>], groups: &Groups) {
        let mut having: Vec<(u32, usize, f32)> = Vec::new();
        for (lane, label) in labels.iter().enumerate() {
            let most = label.groups().fold(0f32, |m, (_, count)| m.max(count));
            having.extend(label.groups().map(|(j, count)| (j, lane, count / most)));
        }
        having.sort_unstable_by_key(|(j, lane, _)| (*j, *lane));
        self.groups.clear();
        self.contests.clear();
        self.rows.clear();
        for of_group in having.chunk_by(|a, b| a.0 == b.0) {
            let (mut counts, mut lanes) = ([0.0; BATCH16], 0);
            for (_, lane, count) in of_group {
                lanes |= 1 << lane;
                counts[*lane] = *count;
            }
            let begin = self.rows.len();
            self.rows.extend(groups.members(of_group[0].0 as usize));
            self.groups.push(counts);
            self.contests.push(Contest { begin, end: self.rows.len(), lanes });
        }
    }

    /// Sums all samples into `R` and scores them.
    fn begin(&mut self, control: &Control) -> Result<u32> {
        let n = self.rows.len();
        let table = BATCH16 * self.x.features();
        [&mut self.rest, &mut self.sum].into_iter().for_each(|sum| sum.reset(table));
        [&mut self.scores, &mut self.pulls].into_iter().for_each(|lines| lines.reset(BATCH16 * n));
        // There are no pulls yet, so this memory can hold the counts of each row.
        for (counts, contest) in self.groups.iter().zip(&self.contests) {
            let lines = &mut self.pulls[BATCH16 * contest.begin..BATCH16 * contest.end];
            lines.chunks_exact_mut(BATCH16).for_each(|line| line.copy_from_slice(counts));
        }
        self.seen.clear();
        self.seen.resize(n, 0);
        self.leaders.clear();
        self.leaders.resize(n, Leads::default());
        self.selected.clear();
        self.selected.resize(n, 0);
        for (rows, counts) in self.rows.chunks(BATCH).zip(self.pulls.chunks(BATCH16 * BATCH)) {
            control.check()?;
            self.x.add_batch(rows, counts, &mut self.rest);
        }
        for (rows, scores) in self.rows.chunks(BATCH).zip(self.scores.chunks_mut(BATCH16 * BATCH)) {
            control.check()?;
            self.x.dot_batch(rows, [&self.rest], [scores]);
        }
        let (mut squared, mut most, mut longest) = ([0f64; BATCH16], [0f64; BATCH16], [0f64; BATCH16]);
        for (i, sample) in self.rows.iter().enumerate() {
            let length = self.x.length(*sample);
            for l in 0..BATCH16 {
                let count = f64::from(self.pulls[BATCH16 * i + l]);
                squared[l] += count * f64::from(self.scores[BATCH16 * i + l]);
                most[l] += count * length;
                longest[l] = if count > 0.0 { length.max(longest[l]) } else { longest[l] };
            }
        }
        let learned =
            (0..BATCH16).filter(|l| !cancels(squared[*l], most[*l])).fold(0, |bits, l| bits | 1 << l);
        for l in 0..BATCH16 {
            let learned = learned >> l & 1 == 1;
            self.scales[l] = if learned { 1.0 / squared[l].sqrt() } else { 1.0 };
            self.ties[l] = TIE * longest[l];
        }
        self.contests.iter_mut().for_each(|contest| contest.lanes &= learned);
        self.lengths = Default::default();
        self.paths = Default::default();
        self.points.clear();
        self.points.push(self.paths);
        Ok(learned)
    }

    /// Scores the uncertain rows again.
    fn look(&mut self, control: &Control) -> Result<()> {
        let point = self.points.len() as u16;
        self.points.push(self.paths);
        let steps = self.paths.map(|path| path.steps);
        let [with_rest, with_sum] = &mut self.products;
        for batch in self.unsure.chunks(BATCH) {
            control.check()?;
            self.picked.clear();
            self.picked.extend(batch.iter().map(|i| self.rows[*i]));
            for lines in [&mut *with_rest, &mut *with_sum] {
                lines.resize(BATCH16 * batch.len(), 0.0);
            }
            self.x.dot_batch(&self.picked, [&self.rest, &self.sum], [with_rest, with_sum]);
            let found = with_rest.as_chunks::<BATCH16>().0.iter().zip(with_sum.as_chunks::<BATCH16>().0);
            for (i, (rest, sum)) in batch.iter().zip(found) {
                self.seen[*i] = point;
                self.pulls[BATCH16 * i..BATCH16 * (i + 1)].copy_from_slice(sum);
                for l in 0..BATCH16 {
                    self.scores[BATCH16 * i + l] = (f64::from(rest[l]) + steps[l] * f64::from(sum[l])) as f32;
                }
            }
        }
        Ok(())
    }

    /// Scores every row again and restarts the list of points.
    fn look_at_all(&mut self, control: &Control) -> Result<()> {
        self.points.clear();
        self.unsure.clear();
        self.unsure.extend(0..self.rows.len());
        self.look(control)
    }

    /// Computes what has changed since each point.
    fn measure(&mut self) {
        self.since.clear();
        self.since.extend(self.points.iter().map(|point| {
            let mut since = Drift16 { steps: [0.0; BATCH16], doubts: [0.0; BATCH16], stale: 0 };
            for (l, (now, then)) in self.paths.iter().zip(point).enumerate() {
                since.steps[l] = (now.steps - then.steps) as f32;
                since.doubts[l] = now.doubt(then) as f32;
                since.stale |= u32::from(since.doubts[l] > 0.0) << l;
            }
            since
        }));
    }

    /// Determines which rows lead and lists those that are uncertain, in all contests or in the open ones.
    fn lead(&mut self, again: bool) {
        self.measure();
        let open = std::mem::take(&mut self.open);
        let contests = if again { &open } else { &self.contests };
        let looks = Looks { scores: &self.scores, pulls: &self.pulls, seen: &self.seen, since: &self.since };
        let ties = std::array::from_fn(|l| (self.ties[l] / self.scales[l]) as f32);
        let mut still = Vec::new();
        self.unsure.clear();
        self.x.lead_batch(looks, contests, &ties, &mut self.leaders, (&mut self.unsure, &mut still));
        self.open = still;
    }

    /// Selects the samples with the largest score in each group; lists the changes.
    fn select(&mut self, control: &Control) -> Result<()> {
        self.earlier = self.points.len();
        self.lead(false);
        if !self.unsure.is_empty() {
            self.look(control)?;
            self.lead(true);
        }
        self.changed.clear();
        self.factors.clear();
        for (counts, contest) in self.groups.iter().zip(&self.contests) {
            for i in contest.begin..contest.end {
                let now = self.leaders[i].does;
                let then = std::mem::replace(&mut self.selected[i], now);
                if now == then {
                    continue;
                }
                let mut factors = [0.0; BATCH16];
                for l in lanes(now ^ then) {
                    factors[l] = if now >> l & 1 == 1 { counts[l] } else { -counts[l] };
                }
                self.changed.push(i);
                self.factors.extend(factors);
            }
        }
        Ok(())
    }

    /// Adds the first selected samples to `G`, which is zero so far, and computes the pull of each sample. No step has
    /// been taken yet, so `R` and the scores do not change.
    fn first_turn(&mut self, control: &Control) -> Result<()> {
        self.pick_changed();
        self.x.add_batch(&self.picked, &self.factors, &mut self.sum);
        for (rows, pulls) in self.rows.chunks(BATCH).zip(self.pulls.chunks_mut(BATCH16 * BATCH)) {
            control.check()?;
            self.x.dot_batch(rows, [&self.sum], [pulls]);
        }
        for (factors, i) in self.factors.as_chunks::<BATCH16>().0.iter().zip(&self.changed) {
            let length = self.x.length(self.rows[*i]);
            for (l, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
                let [score, pull] = [&self.scores, &self.pulls].map(|of| f64::from(of[BATCH16 * i + l]));
                let factor = f64::from(*factor);
                let lengths = &mut self.lengths[l];
                lengths.along += factor * score;
                lengths.squared += factor * pull;
                lengths.mass += factor * length;
            }
        }
        Ok(())
    }

    /// Lists the samples of the rows that change.
    fn pick_changed(&mut self) {
        self.picked.clear();
        self.picked.extend(self.changed.iter().map(|i| self.rows[*i]));
    }

    /// Changes `G` by the listed changes `Δ`, and `R` so that `E` stays the same.
    fn update_selected(&mut self, control: &Control) -> Result<()> {
        // Rows that change must be scored exactly; most of them have just been scored.
        self.unsure.clear();
        self.unsure.extend(self.changed.iter().filter(|i| usize::from(self.seen[**i]) < self.earlier));
        if !self.unsure.is_empty() {
            self.look(control)?;
        }
        self.pick_changed();
        self.x.add_batch(&self.picked, &self.factors, &mut self.sum);
        let [after, ..] = &mut self.products;
        after.resize(self.factors.len(), 0.0);
        self.x.dot_batch(&self.picked, [&self.sum], [after]);
        // ⟨G, Δ⟩ before and after: the difference is ‖Δ‖².
        let mut moved = [0f64; BATCH16];
        for (n, i) in self.changed.iter().enumerate() {
            let length = self.x.length(self.rows[*i]);
            for l in 0..BATCH16 {
                let (score, before) = (self.scores[BATCH16 * i + l], self.pulls[BATCH16 * i + l]);
                let [factor, score, before, after] =
                    [self.factors[BATCH16 * n + l], score, before, after[BATCH16 * n + l]].map(f64::from);
                let lengths = &mut self.lengths[l];
                lengths.along += factor * score;
                lengths.squared += factor * (before + after);
                lengths.mass += factor * length;
                moved[l] += factor * (after - before);
            }
        }
        for (path, moved) in self.paths.iter_mut().zip(moved) {
            path.length += moved.max(0.0).sqrt();
        }
        // The rows count as scored from here on, at no cost.
        let point = self.points.len() as u16;
        self.points.push(self.paths);
        for (i, after) in self.changed.iter().zip(after.as_chunks::<BATCH16>().0) {
            self.seen[*i] = point;
            self.pulls[BATCH16 * i..BATCH16 * (i + 1)].copy_from_slice(after);
        }
        for factors in self.factors.as_chunks_mut::<BATCH16>().0 {
            for (factor, path) in factors.iter_mut().zip(&self.paths) {
                *factor = (-path.steps * f64::from(*factor)) as f32;
            }
        }
        self.x.add_batch(&self.picked, &self.factors, &mut self.rest);
        Ok(())
    }

    /// Moves each embedding towards `G`.
    fn advance(&mut self, step: f64) {
        for l in 0..BATCH16 {
            let Lengths { squared, along, mass } = self.lengths[l];
            if let Some((u, next)) = pull(step, self.scales[l], [squared, along, mass]) {
                self.scales[l] /= next;
                self.lengths[l].along += u * squared;
                self.paths[l].advance(u);
            }
        }
    }

    /// Multiplies each `E` whose scale has become too small.
    fn shrink(&mut self) {
        for l in 0..BATCH16 {
            let Some(factor) = shrinking(self.scales[l]) else { continue };
            self.scales[l] /= factor;
            self.lengths[l].along *= factor;
            self.paths[l].scale(factor);
            self.points.iter_mut().for_each(|point| point[l].scale(factor));
            for lines in [&mut self.scores, &mut self.rest] {
                lines.iter_mut().skip(l).step_by(BATCH16).for_each(|v| *v = (f64::from(*v) * factor) as f32);
            }
        }
    }

    /// One of the labels.
    pub fn lane(&mut self, lane: usize) -> Lane<'_, 'a> {
        Lane { all: self, lane }
    }
}

/// One of the labels of a batch.
pub(super) struct Lane<'s, 'a> {
    all: &'s mut GrlrBatch<'a>,
    lane: usize,
}

impl Learned for Lane<'_, '_> {
    fn best(&self) -> Vec<(u32, f32)> {
        let Self { all, lane } = self;
        let scale = all.scales[*lane] * all.x.longest();
        let bit = 1 << lane;
        let best = all
            .contests
            .iter()
            .filter_map(|contest| (contest.begin..contest.end).find(|i| all.selected[*i] & bit != 0));
        best.map(|i| (all.rows[i], (scale * f64::from(all.scores[BATCH16 * i + lane])) as f32)).collect()
    }

    fn embedding(&mut self) -> Vec<(u32, f32)> {
        let (scale, steps) = (self.all.scales[self.lane], self.all.paths[self.lane].steps);
        let value = |at: usize| scale * (f64::from(self.all.rest[at]) + steps * f64::from(self.all.sum[at]));
        let entry = |j: usize| (j as u32, value(BATCH16 * j + self.lane) as f32);
        (0..self.all.x.features()).map(entry).filter(|e| e.1 != 0.0).collect()
    }
}
