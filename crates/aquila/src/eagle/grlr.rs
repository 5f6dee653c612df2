//! Group robust label representation (GRLR, EAGLE's Algorithm 1): one label's embedding from the groups that carry it.
//!
//! For the label's groups `N_j` with counts `c_j`: `e⁰ = Proj(Σ_j c_j Σ_{i∈N_j} x_i)`. Then, `T` times, the samples
//! with the largest `⟨e, x_i⟩` are selected in each group (all of them on a tie, see [`TIE`]),
//! `g = Proj(Σ_j c_j Σ_selected x_i)` and `e ← Proj(e + λ·g)`, where `Proj(v) = v/‖v‖`. `T = 0` is EAGLE-0. A sum of
//! zero (a label with samples `x` and `−x`) has no direction: the first sample with features replaces it.
//!
//! Where we differ, without changing a choice: vectors are not normalised, because only the order within a group
//! matters. With `G` the sum of the selected samples, the embedding is some multiple of `E`, and a step is
//! `E ← E + u·G`, with `u` computed from the lengths. So a score `⟨E, x⟩` changes by `u·⟨G, x⟩`, one addition instead
//! of all features, as long as `G` does not change. `G` changes slightly in many rounds, but [`ScoreBounds`] bound the
//! effect on a score, and samples are scored again only where the bounds of a group's best samples overlap. A [`Lead`]
//! tells how long they cannot overlap.
//!
//! Cost: four to five times the non-zeros of the label's samples for 20 rounds, instead of 21 times.

use super::samples::View;
use super::score_bounds::{Drift, ScoreBounds};
use crate::control::Control;
use crate::error::Result;

/// One of the label's groups: the end of its samples, and the label's count.
#[derive(Debug, Clone, Copy)]
struct Group {
    end: usize,
    count: f32,
    lead: Lead,
}

/// A lower bound on the lead of a group's single best sample: linear in the steps, minus the possible effect of changes
/// of `G` since then.
#[derive(Debug, Clone, Copy)]
struct Lead {
    least: f64,
    by_steps: f64,
    seen: u16,
}

impl Lead {
    /// Nothing is known.
    const NONE: Self = Self { least: f64::NEG_INFINITY, by_steps: 0.0, seen: 0 };
    /// The sample has no competitor.
    const ALONE: Self = Self { least: f64::INFINITY, by_steps: 0.0, seen: 0 };

    /// The minimum that the lead can be, for samples with a distance of at most `apart`.
    #[inline(always)]
    fn at(&self, steps: f64, drifts: &[Drift], apart: f64) -> f64 {
        self.least - self.by_steps * steps - apart * drifts[usize::from(self.seen)].doubt
    }
}

/// A sample of one of the groups.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    /// `⟨R, x⟩` and `⟨G, x⟩` when the sample was last scored.
    rest: f32,
    pull: f32,
    sample: u32,
    /// The number of changes of `G` when the sample was last scored.
    seen: u16,
    selected: bool,
}

impl Member {
    /// `⟨E, x⟩` after these steps, if `G` has not changed.
    #[inline(always)]
    fn score(&self, steps: f64) -> f64 {
        f64::from(self.rest) + steps * f64::from(self.pull)
    }

    /// By how much two samples may have come closer since they were scored. If they were scored at the same time, the
    /// bound is proportional to their distance.
    #[inline(always)]
    fn drift(&self, other: &Self, drifts: &[Drift], apart: f64) -> Drift {
        let [a, b] = [self, other].map(|m| drifts[usize::from(m.seen)]);
        match self.seen == other.seen {
            true => Drift { doubt: apart * a.doubt, turned: apart * a.turned },
            false => Drift { doubt: a.doubt + b.doubt, turned: a.turned + b.turned },
        }
    }
}

/// The best of a group's samples after these steps, the first on a tie, and its score.
#[inline(always)]
fn best_of(members: &[Member], steps: f64) -> (usize, f64) {
    let (mut best, mut lead) = (0, f64::NEG_INFINITY);
    for (k, m) in members.iter().enumerate() {
        let score = m.score(steps);
        if score > lead {
            (best, lead) = (k, score);
        }
    }
    (best, lead)
}

/// `‖G‖²`, `⟨E, G⟩` and the sum of the lengths of the summands of `G`.
type Lengths = [f64; 3];

/// The result for one label.
pub(super) trait Learned {
    /// The best sample of each group, the first on a tie, with its similarity.
    fn best(&self) -> Vec<(u32, f32)>;
    /// The embedding's entries, ascending by feature.
    fn embedding(&mut self) -> Vec<(u32, f32)>;
}

/// Whether a sum with this squared length is only the rounding error of summands whose lengths sum to `mass`.
pub(super) fn cancels(squared: f64, mass: f64) -> bool {
    squared <= 1e-12 * mass * mass
}

/// The `u` of the step `E ← E + u·G`, and the length that the embedding `scale·E` would have after it. `None` if `G` is
/// zero or if the step would lead to zero. Takes `‖G‖²`, `⟨E, G⟩` and the sum of the lengths of the summands of `G`.
pub(super) fn pull(step: f64, scale: f64, [squared, along, mass]: [f64; 3]) -> Option<(f64, f64)> {
    if cancels(squared, mass) {
        return None;
    }
    let norm = squared.sqrt();
    let next = (1.0 + 2.0 * step * scale * along / norm + step * step).max(0.0).sqrt();
    (next >= 1e-9).then(|| (step / (norm * scale), next))
}

/// Below this, the scale of an embedding is reset to about 1. `E` grows with every step, and `E`, its scores and the
/// steps must stay within the range of f32.
const SMALL: f64 = 1.0 / (1u64 << 40) as f64;

/// The factor for `E`, a power of two, if its scale has become too small.
pub(super) fn shrinking(scale: f64) -> Option<f64> {
    (scale < SMALL).then(|| scale.max(f64::MIN_POSITIVE).log2().floor().exp2())
}

/// Scores this close are a tie, as a share of the label's longest sample: sums in f32 cannot distinguish them. Without
/// it, rounding would decide between two samples that are equal by the formula, with different results on different
/// processors.
pub(super) const TIE: f64 = 1e-6;

/// Number of samples to prefetch ahead: they come in random order.
const AHEAD: usize = 3;

/// The memory of one thread for its labels.
#[derive(Debug)]
pub(super) struct Grlr<'a> {
    x: View<'a>,
    /// `R` and `G` for every feature, where `E = R + Σu·G`; zero between labels.
    sums: Vec<[f32; 2]>,
    /// The change of `G` while it is applied.
    change: Vec<f32>,
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Number of entries of all members.
    entries: usize,
    bounds: ScoreBounds,
    /// The embedding is this factor times `E`.
    scale: f64,
    /// The groups whose leader is not certain, with the start of their members.
    visited: Vec<(u32, u32)>,
    /// The members that must be scored again, their samples and the results.
    unsure: Vec<u32>,
    picked: Vec<u32>,
    products: Vec<[f32; 2]>,
    /// (member, factor) for each change of `G`.
    changes: Vec<(u32, f32)>,
}

impl<'a> Grlr<'a> {
    pub fn new(x: View<'a>) -> Self {
        let features = x.features();
        Self {
            x,
            sums: vec![[0.0; 2]; features],
            change: vec![0.0; features],
            members: Vec::new(),
            groups: Vec::new(),
            entries: 0,
            bounds: ScoreBounds::default(),
            scale: 0.0,
            visited: Vec::new(),
            unsure: Vec::new(),
            picked: Vec::new(),
            products: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Adds one of the label's groups.
    pub fn add_group(&mut self, members: &[u32], count: f32) {
        self.members.extend(members.iter().map(|i| Member { sample: *i, ..Member::default() }));
        self.groups.push(Group { end: self.members.len(), count, lead: Lead::NONE });
    }

    /// Learns the embedding; afterwards [`Grlr::best`] and [`Grlr::embedding`] return it.
    ///
    /// If all samples cancel out, `turn` selects which of the first group's samples replaces their sum: labels carried
    /// by the same groups must not all start from the same one.
    pub fn learn(&mut self, iterations: u32, step: f64, turn: usize, control: &Control) -> Result<()> {
        control.check()?;
        self.bounds.restart();
        self.entries = self.members.iter().map(|m| self.x.row(m.sample).0.len()).sum();
        // Only the proportions of the counts matter, and large counts would leave the range of f32.
        let most = self.groups.iter().fold(0f32, |m, g| m.max(g.count));
        self.groups.iter_mut().for_each(|g| g.count /= most);
        let length = self.begin(turn);
        control.check()?;
        if length == 0.0 {
            self.select(0.0); // the first of each group, because all scores are equal
            return Ok(());
        }
        self.scale = 1.0 / length;
        let tie = TIE * self.members.iter().map(|m| self.x.length(m.sample)).fold(0.0, f64::max);
        let mut lengths = Lengths::default();
        for round in 0..iterations {
            control.check()?;
            self.select(tie / self.scale);
            if round == 0 {
                lengths = self.first_turn();
                control.check()?;
            } else if !self.changes.is_empty() {
                let by = self.update_selected();
                lengths.iter_mut().zip(by).for_each(|(of, by)| *of += by);
            }
            // If `G` gives no direction now, it never will.
            let Some((u, next)) = pull(step, self.scale, lengths) else { break };
            self.scale /= next;
            lengths[1] += u * lengths[0];
            self.bounds.advance(u);
            if let Some(factor) = shrinking(self.scale) {
                self.shrink(factor);
                lengths[1] *= factor;
            } else if self.bounds.burden() > self.entries {
                self.look_at_all();
            }
        }
        self.select(tie / self.scale);
        // The similarities of the selected samples are reported, so they are computed exactly.
        self.unsure.clear();
        self.unsure.extend((0..).zip(&self.members).filter(|(_, m)| m.selected).map(|(k, _)| k));
        self.look();
        Ok(())
    }

    /// Sums all samples into `R` and scores them; returns the sum's length, 0 if no sample has features.
    fn begin(&mut self, turn: usize) -> f64 {
        let mut begin = 0;
        for group in &self.groups {
            for (k, member) in (begin..).zip(&self.members[begin..group.end]) {
                self.members.get(k + AHEAD).inspect(|m| self.x.prefetch(m.sample));
                let (idx, val) = self.x.row(member.sample);
                idx.iter().zip(val).for_each(|(j, v)| self.sums[*j as usize][0] += group.count * v);
            }
            begin = group.end;
        }
        self.look_at_all();
        let (mut squared, mut most, mut begin) = (0.0, 0.0, 0);
        for group in &self.groups {
            let count = f64::from(group.count);
            squared += self.members[begin..group.end].iter().map(|m| count * f64::from(m.rest)).sum::<f64>();
            let lengths = self.members[begin..group.end].iter().map(|m| self.x.length(m.sample));
            most += count * lengths.sum::<f64>();
            begin = group.end;
        }
        if !cancels(squared, most) {
            return squared.sqrt();
        }
        let with_features = |m: &&Member| self.x.row(m.sample).1.iter().any(|v| *v != 0.0);
        // The samples of the first group that has samples with features.
        let mut begin = 0;
        let starts: Vec<u32> = self
            .groups
            .iter()
            .map(|g| self.members[std::mem::replace(&mut begin, g.end)..g.end].iter())
            .map(|members| members.filter(with_features).map(|m| m.sample).collect())
            .find(|starts: &Vec<u32>| !starts.is_empty())
            .unwrap_or_default();
        if starts.is_empty() {
            return 0.0;
        }
        let first = starts[turn % starts.len()];
        self.clear_sums();
        let x = self.x;
        let (idx, val) = x.row(first);
        idx.iter().zip(val).for_each(|(j, v)| self.sums[*j as usize][0] = *v);
        self.look_at_all();
        val.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt()
    }

    /// Multiplies `E`.
    fn shrink(&mut self, factor: f64) {
        self.sums.iter_mut().for_each(|[r, _]| *r = (f64::from(*r) * factor) as f32);
        self.scale /= factor;
        self.bounds.scale(factor);
        self.look_at_all();
    }

    /// Scores the uncertain members again.
    fn look(&mut self) {
        self.picked.clear();
        self.picked.extend(self.unsure.iter().map(|k| self.members[*k as usize].sample));
        self.products.resize(self.picked.len(), [0.0; 2]);
        self.x.dot2(&self.picked, &self.sums, &mut self.products);
        let seen = self.bounds.changes();
        for (k, [rest, pull]) in self.unsure.iter().zip(&self.products) {
            let m = &mut self.members[*k as usize];
            (m.rest, m.pull, m.seen) = (*rest, *pull, seen);
        }
    }

    /// Scores every member again, so that earlier changes can be forgotten.
    fn look_at_all(&mut self) {
        self.bounds.forget();
        self.unsure.clear();
        self.unsure.extend(0..self.members.len() as u32);
        self.look();
        self.groups.iter_mut().for_each(|g| g.lead = Lead::NONE);
    }

    /// Selects, in each group, the samples with the largest score, and those within `tie` of it; lists the changes.
    fn select(&mut self, tie: f64) {
        self.bounds.measure();
        self.visit(tie);
        self.look();
        self.select_best(tie);
    }

    /// Lists the groups whose leader may have changed, and the members that must be scored to determine it: the best by
    /// current knowledge, and all that may be better.
    fn visit(&mut self, tie: f64) {
        self.visited.clear();
        self.unsure.clear();
        let (steps, drifts, apart) = (self.bounds.steps(), self.bounds.drifts(), self.x.apart());
        let mut begin = 0;
        for (j, group) in self.groups.iter().enumerate() {
            let start = std::mem::replace(&mut begin, group.end);
            if group.lead.at(steps, drifts, apart) > tie {
                continue;
            }
            self.visited.push((j as u32, start as u32));
            let members = &self.members[start..group.end];
            let (best, lead) = best_of(members, steps);
            let Some(first) = members.get(best) else { continue };
            let sure = self.unsure.len();
            for (k, m) in members.iter().enumerate() {
                let unknown = first.drift(m, drifts, apart).doubt;
                if k != best && unknown > 0.0 && m.score(steps) + unknown >= lead - tie {
                    self.unsure.push((start + k) as u32);
                }
            }
            if self.unsure.len() > sure && drifts[usize::from(first.seen)].doubt > 0.0 {
                self.unsure.push((start + best) as u32);
            }
        }
    }

    /// Selects in the visited groups, and computes the leads of their best samples.
    fn select_best(&mut self, tie: f64) {
        self.changes.clear();
        let (steps, drifts, apart) = (self.bounds.steps(), self.bounds.drifts(), self.x.apart());
        for (j, start) in &self.visited {
            let group = &mut self.groups[*j as usize];
            let members = &mut self.members[*start as usize..group.end];
            let (best, lead) = best_of(members, steps);
            let (mut least, mut by_steps) = (f64::INFINITY, f64::NEG_INFINITY);
            let alone = members.len() < 2;
            for k in 0..members.len() {
                let (m, first) = (&members[k], &members[best]);
                let score = m.score(steps);
                if k != best {
                    let unknown = first.drift(m, drifts, apart);
                    least = least.min(lead - score - unknown.doubt);
                    by_steps = by_steps.max(f64::from(m.pull) - f64::from(first.pull) + unknown.turned);
                }
                let selected = score >= lead - tie;
                if selected != m.selected {
                    members[k].selected = selected;
                    self.changes.push((start + k as u32, if selected { group.count } else { -group.count }));
                }
            }
            group.lead = match alone {
                true => Lead::ALONE,
                false => Lead { least: least + by_steps * steps, by_steps, seen: self.bounds.changes() },
            };
        }
    }

    /// Adds the first selected samples to `G`, which is zero so far, and scores all samples with it.
    fn first_turn(&mut self) -> Lengths {
        for (member, factor) in &self.changes {
            let (idx, val) = self.x.row(self.members[*member as usize].sample);
            idx.iter().zip(val).for_each(|(j, v)| self.sums[*j as usize][1] += factor * v);
        }
        self.look_at_all();
        let mut lengths = Lengths::default();
        for (member, factor) in &self.changes {
            let Member { rest, pull, sample, .. } = self.members[*member as usize];
            let of = [f64::from(pull), f64::from(rest), self.x.length(sample)];
            lengths.iter_mut().zip(of).for_each(|(all, of)| *all += f64::from(*factor) * of);
        }
        lengths
    }

    /// Changes `G` by the listed changes `Δ`, and adjusts `R` so that `E` stays the same; returns the increase of the
    /// lengths.
    fn update_selected(&mut self) -> Lengths {
        let steps = self.bounds.steps();
        self.picked.clear();
        self.picked.extend(self.changes.iter().map(|(k, _)| self.members[*k as usize].sample));
        self.products.resize(self.picked.len(), [0.0; 2]);
        self.x.dot2(&self.picked, &self.sums, &mut self.products);
        let [mut squared, mut along, mut mass] = Lengths::default();
        for ((sample, (_, factor)), product) in self.picked.iter().zip(&self.changes).zip(&self.products) {
            let [rest, pull, factor] = [product[0], product[1], *factor].map(f64::from);
            squared += 2.0 * factor * pull;
            along += factor * (rest + steps * pull);
            mass += factor * self.x.length(*sample);
        }
        for (sample, (_, factor)) in self.picked.iter().zip(&self.changes) {
            let (idx, val) = self.x.row(*sample);
            idx.iter().zip(val).for_each(|(j, v)| self.change[*j as usize] += factor * v);
        }
        let features = self.picked.iter().flat_map(|sample| self.x.row(*sample).0).copied();
        squared += self.bounds.record_change(&mut self.change, features, |j, delta| {
            let [r, g] = &mut self.sums[j as usize];
            *g += delta;
            *r -= (steps * f64::from(delta)) as f32;
        });
        [squared, along, mass]
    }

    /// Resets the memory for the next label.
    pub fn clear(&mut self) {
        self.clear_sums();
        self.members.clear();
        self.groups.clear();
        self.scale = 0.0;
    }

    fn clear_sums(&mut self) {
        // Entries one by one in random order, or the whole table, where a line holds eight.
        if self.entries >= self.sums.len() / 8 {
            self.sums.fill([0.0; 2]);
            return;
        }
        for m in &self.members {
            self.x.row(m.sample).0.iter().for_each(|j| self.sums[*j as usize] = [0.0; 2]);
        }
    }
}

impl Learned for Grlr<'_> {
    fn best(&self) -> Vec<(u32, f32)> {
        let (scale, steps) = (self.scale * self.x.longest(), self.bounds.steps());
        let mut begin = 0;
        let of_group = |g: &Group| &self.members[std::mem::replace(&mut begin, g.end)..g.end];
        let best = self.groups.iter().map(of_group).filter_map(|members| members.iter().find(|m| m.selected));
        best.map(|m| (m.sample, (scale * m.score(steps)) as f32)).collect()
    }

    fn embedding(&mut self) -> Vec<(u32, f32)> {
        let mut features: Vec<u32> =
            self.members.iter().flat_map(|m| self.x.row(m.sample).0).copied().collect();
        features.sort_unstable();
        features.dedup();
        let value = |j: u32| {
            let [r, g] = self.sums[j as usize];
            (self.scale * (f64::from(r) + self.bounds.steps() * f64::from(g))) as f32
        };
        features.into_iter().map(|j| (j, value(j))).filter(|e| e.1 != 0.0).collect()
    }
}
