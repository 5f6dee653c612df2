//! Likeness: how much samples of one group have in common.

use super::groups::Groups;
use crate::control::Control;
use crate::data::Features;
use crate::error::Result;
use crate::xlinear::TrainRows;
use rayon::prelude::*;

/// How much more alike two samples of one group are than two of all: the mean excess of their cosine over that of
/// random pairs, as a share of what is possible. 0 in random groups, 1 in groups of equal samples.
///
/// Cost: the entries of all groups' samples.
pub fn likeness(x: &Features, groups: &Groups, control: &Control) -> Result<f64> {
    groups.check_rows(x.rows())?;
    let x = x.as_csr();
    let rows = TrainRows::new(&x, true);
    control.check()?;
    control.install(|| likeness_of(&rows, groups, control))?
}

pub(super) fn likeness_of(rows: &TrainRows<'_>, groups: &Groups, control: &Control) -> Result<f64> {
    // Σ over pairs of ⟨x, z⟩ is ‖Σ x‖² less the diagonal.
    let pairs_of = |sum: &mut Vec<f64>, members: &mut dyn Iterator<Item = u32>| {
        sum.resize(rows.cols(), 0.0);
        let (mut touched, mut n, mut own) = (Vec::new(), 0f64, 0f64);
        for i in members {
            control.check()?;
            let (indices, values) = rows.row(i as usize);
            n += 1.0;
            for (j, v) in indices.iter().zip(values) {
                own += f64::from(*v).powi(2);
                sum[*j as usize] += f64::from(*v);
                touched.push(*j);
            }
        }
        let all: f64 = touched.iter().map(|j| std::mem::take(&mut sum[*j as usize]).powi(2)).sum();
        Ok((all - own, n * (n - 1.0)))
    };
    let (random, of_groups) = rayon::join(
        || pairs_of(&mut Vec::new(), &mut (0..rows.rows() as u32)),
        || {
            let of_group = |sum: &mut Vec<f64>, j| pairs_of(sum, &mut groups.members(j).iter().copied());
            (0..groups.len()).into_par_iter().map_init(Vec::new, of_group).collect::<Result<Vec<_>>>()
        },
    );
    let (all, pairs) = random?;
    let random = if pairs > 0.0 { all / pairs } else { 0.0 };
    let (mut all, mut pairs) = (0.0, 0.0);
    for (a, p) in of_groups? {
        (all, pairs) = (all + a, pairs + p);
    }
    let likeness = if pairs > 0.0 && random < 1.0 { (all / pairs - random) / (1.0 - random) } else { 0.0 };
    Ok(likeness.clamp(0.0, 1.0))
}

/// How much samples of a group have in common, in terms of groups of five: with more companions that are as like, chance
/// has less of a say in what the group is, as the root of their number.
pub(super) fn unity(likeness: f64, groups: &Groups) -> f64 {
    let filled = (0..groups.len()).filter(|j| !groups.members(*j).is_empty()).count();
    let companions = groups.memberships_count() as f64 / filled.max(1) as f64 - 1.0;
    likeness * (companions.max(1.0) / 4.0).sqrt()
}
