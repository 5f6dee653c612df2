//! Group robust label representation (EAGLE's Algorithm 1): one label's embedding from the groups that carry it.
//!
//! For the label's groups `N_j` with counts `c_j`: `e⁰ = Proj(Σ_j c_j Σ_{i∈N_j} x_i)`; then `T` times, of each group
//! the samples of largest `⟨e, x_i⟩` are selected (all of them on a tie, see [`TIE`]), `g = Proj(Σ_j c_j Σ_selected x_i)` and
//! `e ← Proj(e + λ·g)`, where `Proj(v) = v/‖v‖`. `T = 0` is EAGLE-0. A sum of zero (a label with samples `x` and
//! `−x`) has no direction: the first sample with features takes its place.
//!
//! Where we differ, without changing a choice: lengths are left aside, for only the order within a group counts. With
//! `G` the sum of the selected, the embedding is some multiple of `E`, and a step is `E ← E + u·G` with `u` chosen
//! for the lengths. So a score `s = ⟨E, x⟩` moves by `u·h` with `h = ⟨G, x⟩`, one addition instead of all features,
//! for as long as `G` stays. `G` moves a little nearly always; but if it has moved by no more than `D` since `s` and
//! `h` were looked at, then `|⟨G, x⟩ − h| ≤ D·‖x‖`, so a score is known within bounds ([`Path`]), and only where the
//! bounds of a group's best samples overlap are these looked at anew. A [`Lead`] says for how long that cannot be.
//!
//! Cost: five to six times the non-zeros of the label's samples for 20 rounds, instead of 21 times.

use super::samples::View;
use crate::control::Control;
use crate::error::Result;

/// One of the label's groups: where its samples end, and what its label counts.
#[derive(Debug, Clone, Copy)]
struct Group {
    end: usize,
    count: f32,
    lead: Lead,
}

/// By how much a group's one best sample leads, wherever the way goes: all that can happen to the lead is linear in the
/// sums of the [`Path`].
#[derive(Debug, Clone, Copy)]
struct Lead {
    least: f64,
    by_steps: f64,
    by_drift: f64,
}

impl Lead {
    const NONE: Self = Self { least: f64::NEG_INFINITY, by_steps: 0.0, by_drift: 0.0 };

    /// The least that the lead can be.
    #[inline(always)]
    fn at(&self, path: &Path) -> f64 {
        self.least - self.by_steps * path.steps - self.by_drift * path.drift
    }
}

/// How far `E` and `G` have come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Path {
    /// `Σ u`.
    pub steps: f64,
    /// The length of `G`'s way.
    pub way: f64,
    /// `Σ u·way`.
    drift: f64,
}

impl Path {
    /// Goes on by a step `u`.
    pub fn go(&mut self, u: f64) {
        self.drift += u * self.way;
        self.steps += u;
    }

    /// Multiplies `E`.
    pub fn scale(&mut self, factor: f64) {
        self.steps *= factor;
        self.drift *= factor;
    }

    /// What a forecast from an earlier point may be off by, for samples of length 1.
    #[inline(always)]
    pub fn doubt(&self, then: &Self) -> f64 {
        ((self.drift - then.drift) - then.way * (self.steps - then.steps)).max(0.0)
    }
}

/// A sample of one of the groups.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    /// `⟨E, x⟩` and `⟨G, x⟩` at the last look.
    score: f64,
    pull: f64,
    sample: u32,
    /// Which point of the way the last look was at.
    seen: u16,
    selected: bool,
}

/// What has changed since a point of the way: the steps gone, and what forecasts from there may be off by.
#[derive(Debug, Clone, Copy)]
struct Since {
    steps: f64,
    doubt: f64,
}

/// What a change `Δ` of `G` is: `⟨E, Δ⟩` and `⟨G, Δ⟩` before it, `‖Δ‖²`, and by how much the summed lengths grow.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    with_e: f64,
    with_g: f64,
    squared: f64,
    mass: f64,
}

/// What was learned of one label.
pub(super) trait Learned {
    /// The best sample of each group, the first on a tie, with its similarity.
    fn best(&self) -> Vec<(u32, f32)>;
    /// The embedding's entries, ascending by feature.
    fn embedding(&mut self) -> Vec<(u32, f32)>;
}

/// Whether a sum of this squared length is but what rounding leaves of summands whose lengths sum to `mass`.
pub(super) fn cancels(squared: f64, mass: f64) -> bool {
    squared <= 1e-12 * mass * mass
}

/// The `u` of the step `E ← E + u·G` and by how much the embedding `scale·E` would be longer than 1; `None` where nothing
/// pulls, or where the step would lead to zero. From `‖G‖²`, `⟨E, G⟩` and the lengths of what `G` is the sum of.
pub(super) fn pull(step: f64, scale: f64, [squared, along, mass]: [f64; 3]) -> Option<(f64, f64)> {
    if cancels(squared, mass) {
        return None;
    }
    let norm = squared.sqrt();
    let next = (1.0 + 2.0 * step * scale * along / norm + step * step).max(0.0).sqrt();
    (next >= 1e-9).then(|| (step / (norm * scale), next))
}

/// Below this the scale of an embedding is brought back to about 1. `E` grows with every step, and it, its scores and
/// the steps must stay within the range of f32.
const SMALL: f64 = 1.0 / (1u64 << 40) as f64;

/// What `E` must be multiplied with, a power of two, if its scale has become too small.
pub(super) fn shrinking(scale: f64) -> Option<f64> {
    (scale < SMALL).then(|| scale.max(f64::MIN_POSITIVE).log2().floor().exp2())
}

/// Scores this close are a tie, as a share of the label's longest sample: sums in f32 tell no more apart. Without it,
/// two samples that are alike by the formula would be told apart by rounding, and otherwise on another processor.
pub(super) const TIE: f64 = 1e-6;

/// Samples ahead that are asked from memory: they come in no order.
const AHEAD: usize = 3;

/// How the best sample of a group leads the others.
fn lead_of(
    members: &[Member],
    forecasts: &[f64],
    apart: f64,
    path: &Path,
    points: &[Path],
    since: &[Since],
) -> Lead {
    let (mut best, mut lead) = (0, f64::NEG_INFINITY);
    let mut together = true;
    for (k, f) in forecasts.iter().enumerate() {
        together &= members[k].seen == members[0].seen;
        if *f > lead {
            (best, lead) = (k, *f);
        }
    }
    let first = &members[best];
    let of = |m: &Member| (points[usize::from(m.seen)].way, since[usize::from(m.seen)].doubt);
    let (way, doubt) = of(first);
    let (mut least, mut by_steps) = (f64::INFINITY, f64::NEG_INFINITY);
    for (m, f) in members.iter().zip(forecasts).enumerate().filter(|(k, _)| *k != best).map(|(_, pair)| pair)
    {
        let (ways, doubts) = match together {
            true => (apart * way, apart * doubt),
            false => {
                let of_other = of(m);
                (way + of_other.0, doubt + of_other.1)
            }
        };
        least = least.min(lead - f - doubts);
        by_steps = by_steps.max(m.pull - first.pull - ways);
    }
    if members.len() == 1 {
        return Lead { least, by_steps: 0.0, by_drift: 0.0 };
    }
    let by_drift = if together { apart } else { 2.0 };
    Lead { least: least + by_steps * path.steps + by_drift * path.drift, by_steps, by_drift }
}

/// The memory of one thread's labels.
#[derive(Debug)]
pub(super) struct Grlr<'a> {
    x: View<'a>,
    /// `R` and `G` of every feature, where `E = R + Σu·G`; zero between labels.
    sums: Vec<[f32; 2]>,
    /// What moves `G`, while it does.
    change: Vec<f32>,
    members: Vec<Member>,
    groups: Vec<Group>,
    path: Path,
    /// Points of the way at which samples were looked at, and what has changed since each.
    points: Vec<Path>,
    since: Vec<Since>,
    /// The embedding is this times `E`.
    scale: f64,
    /// (member, factor) by which `G` changes.
    changes: Vec<(u32, f32)>,
    /// The scores of a group's samples, as well as they are known.
    forecasts: Vec<f64>,
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
            path: Path::default(),
            points: Vec::new(),
            since: Vec::new(),
            scale: 0.0,
            changes: Vec::new(),
            forecasts: Vec::new(),
        }
    }

    /// Adds one of the label's groups.
    pub fn add_group(&mut self, members: &[u32], count: f32) {
        self.members.extend(members.iter().map(|i| Member { sample: *i, ..Member::default() }));
        self.groups.push(Group { end: self.members.len(), count, lead: Lead::NONE });
    }

    /// Learns the embedding; afterwards [`Grlr::best`] and [`Grlr::embedding`] tell it.
    ///
    /// Where all samples cancel out, `turn` says which of the first group's samples takes the place of their sum: labels
    /// that the same groups carry must not all begin at the same one.
    pub fn learn(&mut self, iterations: u32, step: f64, turn: usize, control: &Control) -> Result<()> {
        control.check()?;
        self.path = Path::default();
        self.points.clear();
        // Only the counts' proportions matter, and large ones would leave the range of f32.
        let most = self.groups.iter().fold(0f32, |m, g| m.max(g.count));
        self.groups.iter_mut().for_each(|g| g.count /= most);
        let length = self.begin(turn);
        control.check()?;
        if length == 0.0 {
            self.select(0.0); // the first of each group: all are alike
            return Ok(());
        }
        self.scale = 1.0 / length;
        let tie = TIE * self.members.iter().map(|m| self.x.length(m.sample)).fold(0.0, f64::max);
        // ‖G‖², ⟨E, G⟩ and the lengths of what G is the sum of.
        let (mut squared, mut along, mut mass) = (0.0, 0.0, 0.0);
        for round in 0..iterations {
            control.check()?;
            self.select(tie / self.scale);
            if !self.changes.is_empty() {
                let turn = self.turn(round == 0);
                along += turn.with_e;
                squared += 2.0 * turn.with_g + turn.squared;
                mass += turn.mass;
                self.path.way += turn.squared.sqrt();
                if round == 0 {
                    self.look_at_all();
                    self.groups.iter_mut().for_each(|g| g.lead = Lead::NONE);
                    control.check()?;
                }
            }
            // Where nothing pulls, nothing ever will.
            let Some((u, next)) = pull(step, self.scale, [squared, along, mass]) else { break };
            self.scale /= next;
            along += u * squared;
            self.path.go(u);
            if let Some(factor) = shrinking(self.scale) {
                self.shrink(factor);
                along *= factor;
            }
        }
        self.select(tie / self.scale);
        Ok(())
    }

    /// Sums all samples into `R`, and scores them; returns the sum's length, 0 where no sample has features.
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
            squared += self.members[begin..group.end].iter().map(|m| count * m.score).sum::<f64>();
            let lengths = self.members[begin..group.end].iter().map(|m| self.x.length(m.sample));
            most += count * lengths.sum::<f64>();
            begin = group.end;
        }
        if !cancels(squared, most) {
            return squared.sqrt();
        }
        let with_features = |m: &&Member| self.x.row(m.sample).1.iter().any(|v| *v != 0.0);
        // Of the first group that has samples with features.
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

    /// Multiplies `E`, and begins the way of looks anew.
    fn shrink(&mut self, factor: f64) {
        self.sums.iter_mut().for_each(|[r, _]| *r = (f64::from(*r) * factor) as f32);
        self.scale /= factor;
        self.path.scale(factor);
        self.points.clear();
        self.look_at_all();
        self.groups.iter_mut().for_each(|g| g.lead = Lead::NONE);
    }

    /// Notes the present point of the way, for looks. There are fewer rounds than a u16 can number.
    fn point(&mut self) -> u16 {
        self.points.push(self.path);
        (self.points.len() - 1) as u16
    }

    /// Scores every sample anew.
    fn look_at_all(&mut self) {
        let (point, steps) = (self.point(), self.path.steps);
        for k in 0..self.members.len() {
            self.members.get(k + AHEAD).inspect(|m| self.x.prefetch(m.sample));
            let m = &mut self.members[k];
            let [r, g] = self.x.dot(m.sample, &self.sums);
            (m.score, m.pull, m.seen) = (r + steps * g, g, point);
        }
    }

    /// Selects of each group the samples of largest score, up to `tie` below it; what changes is listed.
    fn select(&mut self, tie: f64) {
        self.changes.clear();
        let (point, path) = (self.point(), self.path);
        self.since.clear();
        self.since
            .extend(self.points.iter().map(|p| Since { steps: path.steps - p.steps, doubt: path.doubt(p) }));
        let since = &self.since[..];
        let apart = self.x.apart();
        let mut looked = false;
        let mut begin = 0;
        for group in &mut self.groups {
            let start = std::mem::replace(&mut begin, group.end);
            if group.lead.at(&path) > tie {
                continue;
            }
            let members = &mut self.members[start..group.end];
            let forecasts = &mut self.forecasts;
            forecasts.clear();
            let (mut best, mut lead) = (0, f64::NEG_INFINITY);
            for (k, m) in members.iter().enumerate() {
                let score = m.score + since[usize::from(m.seen)].steps * m.pull;
                if score > lead {
                    (best, lead) = (k, score);
                }
                forecasts.push(score);
            }
            let Some(then) = members.get(best).map(|m| m.seen) else { continue };
            let unsure = since[usize::from(then)].doubt;
            // Two samples that were looked at together are off by `⟨G − G_then, x_i − x_k⟩` from each other.
            let may_lead = |m: &Member, score: f64| {
                let together = m.seen == then;
                let unknown =
                    if together { apart * unsure } else { unsure + since[usize::from(m.seen)].doubt };
                unknown > 0.0 && score + unknown >= lead - tie
            };
            let pairs = || members.iter().zip(forecasts.iter());
            if pairs().filter(|(m, f)| may_lead(m, **f)).nth(1).is_some()
                || (unsure == 0.0 && pairs().any(|(m, f)| may_lead(m, *f)))
            {
                looked = true;
                pairs().filter(|(m, f)| may_lead(m, **f)).for_each(|(m, _)| self.x.prefetch(m.sample));
                for (m, f) in members.iter_mut().zip(forecasts.iter_mut()) {
                    if may_lead(m, *f) {
                        let [r, g] = self.x.dot(m.sample, &self.sums);
                        (m.score, m.pull, m.seen) = (r + path.steps * g, g, point);
                        *f = m.score;
                    }
                }
                lead = forecasts.iter().fold(f64::NEG_INFINITY, |l, f| l.max(*f));
            }
            group.lead = lead_of(members, forecasts, apart, &path, &self.points, since);
            for (k, (m, f)) in (start..).zip(members.iter_mut().zip(forecasts.iter())) {
                let selected = *f >= lead - tie;
                if selected != m.selected {
                    m.selected = selected;
                    self.changes.push((k as u32, if selected { group.count } else { -group.count }));
                }
            }
        }
        if !looked {
            self.points.pop(); // nobody refers to it, so the table stays short however many rounds there are
        }
    }

    /// Moves `G` by the listed changes `Δ`, and `R` so that `E` stays.
    fn turn(&mut self, first: bool) -> Turn {
        let steps = self.path.steps;
        let mut turn = Turn::default();
        for &(member, factor) in &self.changes {
            let (idx, val) = self.x.row(self.members[member as usize].sample);
            let Member { sample, score, .. } = self.members[member as usize];
            // In the first round scores are fresh, and `G` is nothing.
            let [r, g] = if first { [score, 0.0] } else { self.x.dot(sample, &self.sums) };
            turn.with_e += f64::from(factor) * (r + steps * g);
            turn.with_g += f64::from(factor) * g;
            turn.mass += f64::from(factor) * self.x.length(self.members[member as usize].sample);
            idx.iter().zip(val).for_each(|(j, v)| self.change[*j as usize] += factor * v);
        }
        // Each feature of Δ is met by the first change that has it, and then is zero.
        for &(member, _) in &self.changes {
            for j in self.x.row(self.members[member as usize].sample).0 {
                let delta = std::mem::take(&mut self.change[*j as usize]);
                turn.squared += f64::from(delta) * f64::from(delta);
                let [r, g] = &mut self.sums[*j as usize];
                *g += delta;
                *r -= (steps * f64::from(delta)) as f32;
            }
        }
        turn
    }

    /// Forgets the label.
    pub fn clear(&mut self) {
        self.clear_sums();
        self.members.clear();
        self.groups.clear();
        self.scale = 0.0;
    }

    fn clear_sums(&mut self) {
        let entries: usize = self.members.iter().map(|m| self.x.row(m.sample).0.len()).sum();
        // One by one in random order, or eight together in a line.
        if entries >= self.sums.len() / 8 {
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
        let mut begin = 0;
        let mut out = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let members = &self.members[begin..group.end];
            begin = group.end;
            let best = members.iter().find(|m| m.selected);
            out.extend(best.map(|m| {
                let [r, g] = self.x.dot(m.sample, &self.sums);
                (m.sample, (self.scale * self.x.longest() * (r + self.path.steps * g)) as f32)
            }));
        }
        out
    }

    fn embedding(&mut self) -> Vec<(u32, f32)> {
        let mut features: Vec<u32> =
            self.members.iter().flat_map(|m| self.x.row(m.sample).0).copied().collect();
        features.sort_unstable();
        features.dedup();
        let value = |j: u32| {
            let [r, g] = self.sums[j as usize];
            (self.scale * (f64::from(r) + self.path.steps * f64::from(g))) as f32
        };
        features.into_iter().map(|j| (j, value(j))).filter(|e| e.1 != 0.0).collect()
    }
}
