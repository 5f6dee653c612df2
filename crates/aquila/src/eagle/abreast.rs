//! Labels that share most of their groups, sixteen abreast: their embeddings, round by round.
//!
//! The same rounds as in [`super::grlr`], where the formulas stand. There a label goes alone and looks at a sample only
//! when it must. Of labels that nearly all groups carry, some label must look at nearly every sample in every round; but
//! sixteen of them together can look at a sample for hardly more than the price of one, since an entry of a sample meets
//! all sixteen vectors in one cache line. So here every round looks at all samples of all groups.
//!
//! What is kept are not the embeddings `E` but the scores `⟨E, x⟩`: a round moves them by `u·⟨G, x⟩`. The lengths follow
//! from scores too, as `⟨E, G⟩ = Σ c·⟨E, x⟩` and `‖G‖² = Σ c·⟨G, x⟩` over the selected. `E` itself is the sum of samples
//! times how often they pulled it, made only if somebody asks.
//!
//! Cost: `T + 3` passes over the entries of the groups' samples, each about as long as one of one label.

use super::grlr::{Learned, TIE, cancels, pull, shrinking};
use super::groups::Groups;
use super::samples::View;
use super::tasks::Label;
use crate::control::Control;
use crate::error::Result;
use crate::kernels::abreast::ABREAST;
use crate::kernels::aligned::Aligned;
use std::ops::Range;

/// Rows between two looks at whether the call was cancelled.
const BATCH: usize = 4096;
/// How many of its lanes a sample must count for, on the mean: labels that go alone look at a sample about a fourth as
/// often. On debian-tags in groups of ten 3 is as good and 2 worse.
pub(super) const SHARED: usize = 4;

/// Whether a run of labels should go abreast: its samples count for enough of its lanes, and the table of lines is no
/// larger than what one pass reads. `entries` says how many a sample has.
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
        && samples().map(|i| entries(*i) * entry).sum::<usize>() >= features * ABREAST * size_of::<f32>()
}

/// One of the groups that any of the labels has.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// A bit for each label that has it.
    lanes: u32,
    counts: [f32; ABREAST],
}

/// The memory of one thread's labels that go abreast.
#[derive(Debug)]
pub(super) struct Abreast<'a> {
    x: View<'a>,
    /// A line for each feature: of the first sum, then of `G`, then of `E`.
    table: Aligned,
    groups: Vec<Group>,
    /// The rows of each group among all.
    spans: Vec<Range<usize>>,
    /// The samples of one group after the other.
    rows: Vec<u32>,
    /// `⟨E, x⟩` and `⟨G, x⟩`, a line for each row.
    scores: Aligned,
    pulls: Aligned,
    /// How much of each row is in `E`, but for what selected rows have added since they were selected.
    parts: Aligned,
    selected: Vec<u32>,
    leaders: Vec<u32>,
    /// By how much rows are more or less in `G`.
    changed: Vec<u32>,
    factors: Vec<f32>,
    /// The embeddings are these times `E`.
    scales: [f64; ABREAST],
    ties: [f64; ABREAST],
    /// `Σ u`.
    steps: [f64; ABREAST],
    /// Whether the table holds `E`.
    summed: bool,
}

/// The lanes whose bit is set.
fn lanes(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            lane as usize
        })
    })
}

impl<'a> Abreast<'a> {
    pub fn new(x: View<'a>) -> Self {
        Self {
            x,
            table: Aligned::default(),
            groups: Vec::new(),
            spans: Vec::new(),
            rows: Vec::new(),
            scores: Aligned::default(),
            pulls: Aligned::default(),
            parts: Aligned::default(),
            selected: Vec::new(),
            leaders: Vec::new(),
            changed: Vec::new(),
            factors: Vec::new(),
            scales: [0.0; ABREAST],
            ties: [0.0; ABREAST],
            steps: [0.0; ABREAST],
            summed: false,
        }
    }

    /// Learns the embeddings, and says for which labels by a bit each: a label whose samples cancel out must go alone.
    pub fn learn(
        &mut self,
        labels: &[Label<'_>],
        groups: &Groups,
        (iterations, step): (u32, f64),
        control: &Control,
    ) -> Result<u32> {
        self.gather(labels, groups);
        let learned = self.begin(control)?;
        self.lead([0.0; ABREAST]);
        for _ in 0..iterations {
            control.check()?;
            if !self.changed.is_empty() {
                self.x.add_abreast(&self.changed, &self.factors, &mut self.table);
                self.look(control)?;
            }
            let steps = self.go(step);
            self.lead(steps);
            self.shrink();
        }
        Ok(learned)
    }

    /// Brings together the groups that any of the labels has, and their samples.
    fn gather(&mut self, labels: &[Label<'_>], groups: &Groups) {
        let mut having: Vec<(u32, usize, f32)> = Vec::new();
        for (lane, label) in labels.iter().enumerate() {
            let most = label.groups().fold(0f32, |m, (_, count)| m.max(count));
            having.extend(label.groups().map(|(j, count)| (j, lane, count / most)));
        }
        having.sort_unstable_by_key(|(j, lane, _)| (*j, *lane));
        self.groups.clear();
        self.spans.clear();
        self.rows.clear();
        for of_group in having.chunk_by(|a, b| a.0 == b.0) {
            let mut group = Group { lanes: 0, counts: [0.0; ABREAST] };
            for (_, lane, count) in of_group {
                group.lanes |= 1 << lane;
                group.counts[*lane] = *count;
            }
            let begin = self.rows.len();
            self.rows.extend(groups.members(of_group[0].0 as usize));
            self.groups.push(group);
            self.spans.push(begin..self.rows.len());
        }
    }

    /// Sums all samples, and scores them.
    fn begin(&mut self, control: &Control) -> Result<u32> {
        let n = self.rows.len();
        self.pulls.reset(ABREAST * n);
        self.parts.reset(ABREAST * n);
        for lines in [&mut self.selected, &mut self.leaders] {
            lines.clear();
            lines.resize(n, 0);
        }
        for (group, span) in self.groups.iter().zip(&self.spans) {
            for line in self.parts[ABREAST * span.start..ABREAST * span.end].chunks_exact_mut(ABREAST) {
                line.copy_from_slice(&group.counts);
            }
        }
        self.sum(control)?;
        self.look(control)?;
        std::mem::swap(&mut self.scores, &mut self.pulls);
        self.pulls.reset(ABREAST * n);
        self.table.fill(0.0);
        let (mut squared, mut most, mut longest) = ([0f64; ABREAST], [0f64; ABREAST], [0f64; ABREAST]);
        for (i, sample) in self.rows.iter().enumerate() {
            let length = self.x.length(*sample);
            for l in 0..ABREAST {
                let part = f64::from(self.parts[ABREAST * i + l]);
                squared[l] += part * f64::from(self.scores[ABREAST * i + l]);
                most[l] += part * length;
                longest[l] = if part > 0.0 { length.max(longest[l]) } else { longest[l] };
            }
        }
        let learned =
            (0..ABREAST).filter(|l| !cancels(squared[*l], most[*l])).fold(0, |bits, l| bits | 1 << l);
        for l in 0..ABREAST {
            let learned = learned >> l & 1 == 1;
            self.scales[l] = if learned { 1.0 / squared[l].sqrt() } else { 1.0 };
            self.ties[l] = TIE * longest[l];
        }
        self.groups.iter_mut().for_each(|group| group.lanes &= learned);
        self.steps = [0.0; ABREAST];
        self.summed = false;
        Ok(learned)
    }

    /// Makes the table the sum of all rows, each as often as its parts say.
    fn sum(&mut self, control: &Control) -> Result<()> {
        self.table.reset(ABREAST * self.x.features());
        for (rows, parts) in self.rows.chunks(BATCH).zip(self.parts.chunks(ABREAST * BATCH)) {
            control.check()?;
            self.x.add_abreast(rows, parts, &mut self.table);
        }
        Ok(())
    }

    /// The products of all rows with what is in the table.
    fn look(&mut self, control: &Control) -> Result<()> {
        for (rows, pulls) in self.rows.chunks(BATCH).zip(self.pulls.chunks_mut(ABREAST * BATCH)) {
            control.check()?;
            self.x.dot_abreast(rows, &self.table, pulls);
        }
        Ok(())
    }

    /// How far each embedding goes towards `G`.
    fn go(&mut self, step: f64) -> [f64; ABREAST] {
        let (mut squared, mut along, mut mass) = ([0f64; ABREAST], [0f64; ABREAST], [0f64; ABREAST]);
        for (group, span) in self.groups.iter().zip(&self.spans) {
            for i in span.clone() {
                for l in lanes(self.selected[i]) {
                    let count = f64::from(group.counts[l]);
                    squared[l] += count * f64::from(self.pulls[ABREAST * i + l]);
                    along[l] += count * f64::from(self.scores[ABREAST * i + l]);
                    mass[l] += count * self.x.length(self.rows[i]);
                }
            }
        }
        let mut steps = [0.0; ABREAST];
        for l in 0..ABREAST {
            if let Some((u, next)) = pull(step, self.scales[l], [squared[l], along[l], mass[l]]) {
                self.scales[l] /= next;
                self.steps[l] += u;
                steps[l] = u;
            }
        }
        steps
    }

    /// Moves the scores, and selects of each group the samples of largest score; what changes is listed.
    fn lead(&mut self, steps: [f64; ABREAST]) {
        let ties = std::array::from_fn(|l| (self.ties[l] / self.scales[l]) as f32);
        let steps = steps.map(|u| u as f32);
        let scores = (&mut self.scores[..], &self.pulls[..]);
        self.x.lead_abreast(scores, &self.spans, [&steps, &ties], &mut self.leaders);
        self.changed.clear();
        self.factors.clear();
        for (group, span) in self.groups.iter().zip(&self.spans) {
            for i in span.clone() {
                let now = self.leaders[i] & group.lanes;
                let then = std::mem::replace(&mut self.selected[i], now);
                if now == then {
                    continue;
                }
                let mut factors = [0.0; ABREAST];
                for l in lanes(now ^ then) {
                    let count = group.counts[l];
                    factors[l] = if now >> l & 1 == 1 { count } else { -count };
                    self.parts[ABREAST * i + l] -= (f64::from(factors[l]) * self.steps[l]) as f32;
                }
                self.changed.push(self.rows[i]);
                self.factors.extend(factors);
            }
        }
    }

    /// Multiplies each `E` whose scale has become too small.
    fn shrink(&mut self) {
        for l in 0..ABREAST {
            let Some(factor) = shrinking(self.scales[l]) else { continue };
            self.scales[l] /= factor;
            self.steps[l] *= factor;
            for lines in [&mut self.scores, &mut self.parts] {
                lines.iter_mut().skip(l).step_by(ABREAST).for_each(|v| *v = (f64::from(*v) * factor) as f32);
            }
        }
    }

    /// One of the labels.
    pub fn lane(&mut self, lane: usize) -> Lane<'_, 'a> {
        Lane { all: self, lane }
    }

    /// Makes the table the embeddings.
    fn sum_up(&mut self) {
        for (group, span) in self.groups.iter().zip(&self.spans) {
            for i in span.clone() {
                for l in lanes(self.selected[i]) {
                    self.parts[ABREAST * i + l] += (f64::from(group.counts[l]) * self.steps[l]) as f32;
                }
            }
        }
        self.summed = self.sum(&Control::default()).is_ok();
    }
}

/// One of the labels that went abreast.
pub(super) struct Lane<'s, 'a> {
    all: &'s mut Abreast<'a>,
    lane: usize,
}

impl Learned for Lane<'_, '_> {
    fn best(&self) -> Vec<(u32, f32)> {
        let Self { all, lane } = self;
        let scale = all.scales[*lane] * all.x.longest();
        let bit = 1 << lane;
        let best = all.spans.iter().filter_map(|span| span.clone().find(|i| all.selected[*i] & bit != 0));
        best.map(|i| (all.rows[i], (scale * f64::from(all.scores[ABREAST * i + lane])) as f32)).collect()
    }

    fn embedding(&mut self) -> Vec<(u32, f32)> {
        if !self.all.summed {
            self.all.sum_up();
        }
        let scale = self.all.scales[self.lane];
        let entry = |(j, line): (usize, &[f32])| (j as u32, (scale * f64::from(line[self.lane])) as f32);
        self.all.table.chunks_exact(ABREAST).enumerate().map(entry).filter(|e| e.1 != 0.0).collect()
    }
}
