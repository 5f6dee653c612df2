//! Likeness: how much samples of one group have in common.

use super::groups::Groups;
use crate::control::Control;
use crate::data::Features;
use crate::error::Result;
use rayon::prelude::*;

/// How much more alike two samples of one group are than two of all: the mean excess of their cosine over that of
/// random pairs, as a share of what is possible. 0 in random groups, 1 in groups of equal samples.
///
/// Rows are read where they lie, a dense block too. Cost: the entries of all groups' samples.
pub fn likeness(x: &Features, groups: &Groups, control: &Control) -> Result<f64> {
    likeness_for("likeness", x, groups, control)
}

/// The same for work of this name, which needs no less memory than it.
pub(super) fn likeness_for(what: &str, x: &Features, groups: &Groups, control: &Control) -> Result<f64> {
    groups.check_rows(x.rows())?;
    control.check()?;
    let (x, _) = &x.narrow();
    // A thread's sums for each feature, and one more for what it does while it waits for others.
    let sums = 8 * x.cols() as u64 * (control.thread_count() as u64 + 1);
    let of_groups = 4 * x.rows() as u64 + 32 * groups.len() as u64;
    control.fits(what, sums + of_groups, "or use fewer threads or features")?;
    control.install(|| {
        let norms: Vec<f32> = (0..x.rows()).into_par_iter().map(|i| x.row(i).norm()).collect();
        let (random, of_groups) = rayon::join(
            || Pairs::default().of(x, &norms, 0..x.rows() as u32, control),
            || {
                let of_group =
                    |pairs: &mut Pairs, j| pairs.of(x, &norms, groups.members(j).iter().copied(), control);
                let all = (0..groups.len()).into_par_iter().map_init(Pairs::default, of_group);
                all.collect::<Result<Vec<_>>>()
            },
        );
        let (all, pairs) = random?;
        let random = if pairs > 0.0 { all / pairs } else { 0.0 };
        let (mut all, mut pairs) = (0.0, 0.0);
        for (a, p) in of_groups? {
            (all, pairs) = (all + a, pairs + p);
        }
        let likeness =
            if pairs > 0.0 && random < 1.0 { (all / pairs - random) / (1.0 - random) } else { 0.0 };
        Ok(likeness.clamp(0.0, 1.0))
    })?
}

/// One thread's memory: sums over some samples for each feature, all 0 between them, and the sparse features met.
#[derive(Default)]
struct Pairs {
    sparse: Vec<f64>,
    met: Vec<u32>,
    dense: Vec<f64>,
}

impl Pairs {
    /// The sum of the cosines of all pairs of two of these samples, and their number.
    fn of(
        &mut self,
        x: &Features,
        norms: &[f32],
        samples: impl Iterator<Item = u32>,
        control: &Control,
    ) -> Result<(f64, f64)> {
        self.sparse.resize(x.sparse().cols(), 0.0);
        self.dense.resize(x.dense().map_or(0, |d| d.cols()), 0.0);
        let (mut n, mut own) = (0f64, 0f64);
        for i in samples {
            control.check()?;
            n += 1.0;
            let (row, norm) = (x.row(i as usize), norms[i as usize]);
            if norm == 0.0 {
                continue;
            }
            let mut add = |sum: &mut f64, v: f32| {
                let v = f64::from(v / norm);
                own += v * v;
                *sum += v;
            };
            row.sparse.iter().for_each(|(j, v)| add(&mut self.sparse[j as usize], v));
            self.dense.iter_mut().zip(row.dense).for_each(|(sum, v)| add(sum, *v));
            self.met.extend_from_slice(row.sparse.indices);
        }
        // Σ over pairs of ⟨x, z⟩ is ‖Σ x‖² less the diagonal.
        let take = |sum: &mut f64| std::mem::take(sum).powi(2);
        let met: f64 = self.met.drain(..).map(|j| take(&mut self.sparse[j as usize])).sum();
        let all = met + self.dense.iter_mut().map(take).sum::<f64>();
        Ok((all - own, n * (n - 1.0)))
    }
}

/// How much samples of a group have in common, in terms of groups of five: with more companions that are as like, chance
/// has less of a say in what the group is, as the root of their number.
pub(super) fn unity(likeness: f64, groups: &Groups) -> f64 {
    let filled = (0..groups.len()).filter(|j| !groups.members(*j).is_empty()).count();
    let companions = groups.memberships_count() as f64 / filled.max(1) as f64 - 1.0;
    likeness * (companions.max(1.0) / 4.0).sqrt()
}
