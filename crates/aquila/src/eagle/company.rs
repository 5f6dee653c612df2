//! What labels that keep company say: a sample with one is likelier to have the other.
//!
//! Formula: with `d_ik = p_ik − mean of p_·k over the pair's group`, how two labels keep company is
//! `c_kl = Σ_i d_ik·d_il / √((Σ_i d_ik² + `[`DOUBT`]`)·(Σ_i d_il² + `[`DOUBT`]`))`, and what a sample's other labels say of a
//! pair is `Σ_{l≠k} c_kl·d_il`. Differences from the group's mean leave out what labels have in common only because
//! groups carry them together. A group's own pairs have no part in what is said of them: the sums are made of either
//! half of the groups, and speak to the other half.
//!
//! The source is our own. Cost: twice the sum over samples of their candidates squared, labels in parallel; no matrix of
//! labels × labels is kept.

use super::candidates::Candidates;
use super::groups::Groups;
use crate::control::Control;
use crate::error::Result;
use rayon::prelude::*;

/// Labels with less than this in all say little: what they have in common with others may be chance.
const DOUBT: f32 = 20.0;

/// Which half of the groups each sample's first group is of.
pub(super) fn halves(groups: &Groups) -> Vec<u8> {
    let mut half = vec![0; groups.samples()];
    for j in (0..groups.len()).rev() {
        groups.members(j).iter().for_each(|i| half[*i as usize] = (j % 2) as u8);
    }
    half
}

/// What the other labels of its sample say of each pair, given how likely pairs are.
pub(super) fn company(
    pairs: &Candidates,
    likely: &[f32],
    halves: &[u8],
    control: &Control,
) -> Result<Vec<f32>> {
    let apart = apart(pairs, likely);
    let in_rows = pairs.in_rows(&apart);
    let half_of = |i: &u32| usize::from(halves[*i as usize]);
    // 1 over the length of each label in either half.
    let scales: Vec<[f32; 2]> = (0..pairs.labels())
        .into_par_iter()
        .map(|k| {
            let mut squares = [DOUBT; 2];
            let of_label = pairs.of_label(k);
            let samples = &pairs.samples()[of_label.clone()];
            samples.iter().zip(&apart[of_label]).for_each(|(i, d)| squares[half_of(i)] += d * d);
            squares.map(|s| 1.0 / s.sqrt())
        })
        .collect();
    let mut said = vec![0f32; pairs.len()];
    let work = pairs.by_label(&mut said).into_par_iter().enumerate();
    work.try_for_each_init(
        || (vec![[0f32; 2]; pairs.labels()], Vec::new()),
        |(shared, met), (k, said)| {
            control.check()?;
            let of_label = pairs.of_label(k);
            let samples = &pairs.samples()[of_label.clone()];
            for (i, own) in samples.iter().zip(&apart[of_label]).filter(|(_, own)| **own != 0.0) {
                let (half, span) = (half_of(i), pairs.row_span(*i as usize));
                for (l, d) in pairs.by_sample().indices()[span.clone()].iter().zip(&in_rows[span]) {
                    let shared = &mut shared[*l as usize];
                    if *shared == [0.0; 2] && *d != 0.0 {
                        met.push(*l as usize);
                    }
                    shared[half] += own * d;
                }
            }
            shared[k] = [0.0; 2];
            for (i, said) in samples.iter().zip(said.iter_mut()) {
                let (other, span) = (1 - half_of(i), pairs.row_span(*i as usize));
                let labels = &pairs.by_sample().indices()[span.clone()];
                let of = |(l, d): (&u32, &f32)| shared[*l as usize][other] * scales[*l as usize][other] * d;
                *said = scales[k][other] * labels.iter().zip(&in_rows[span]).map(of).sum::<f32>();
            }
            met.drain(..).for_each(|l| shared[l] = [0.0; 2]);
            Ok(())
        },
    )?;
    Ok(said)
}

/// How far each pair is from the mean of its group, or of its groups' means.
fn apart(pairs: &Candidates, likely: &[f32]) -> Vec<f32> {
    let mut apart = likely.to_vec();
    pairs.by_label(&mut apart).into_par_iter().enumerate().for_each_init(Vec::new, |means, (k, apart)| {
        means.clear();
        means.resize(apart.len(), (0f32, 0f32));
        for (_, members) in pairs.segments(k) {
            let mean = members.iter().map(|at| apart[*at as usize]).sum::<f32>() / members.len() as f32;
            for at in members {
                let (sum, n) = &mut means[*at as usize];
                (*sum, *n) = (*sum + mean, *n + 1.0);
            }
        }
        apart.iter_mut().zip(means.iter()).for_each(|(v, (sum, n))| *v -= sum / n);
    });
    apart
}

#[cfg(test)]
mod tests {
    use super::super::groups::Merge;
    use super::*;
    use crate::data::Csr;
    use crate::rng::Rng;

    /// Samples in random groups of four, some in a second one; twelve labels.
    fn case(seed: u64) -> (Groups, Csr, Vec<f32>, Candidates) {
        let mut rng = Rng::new(&[seed]);
        let n = 60u32;
        let mut lists: Vec<Vec<u32>> = (0..n).step_by(4).map(|i| (i..i + 4).collect()).collect();
        (0..6).for_each(|_| lists.push((0..3).map(|_| rng.below(n)).collect()));
        lists.iter_mut().for_each(|l| {
            l.sort_unstable();
            l.dedup();
        });
        let (mut indptr, mut indices) = (vec![0], vec![]);
        for _ in 0..n {
            indices.extend((0..12).filter(|_| rng.below(5) == 0));
            indptr.push(indices.len());
        }
        let ones = vec![1.0; indices.len()];
        let y = Csr::new(n as usize, 12, indptr, indices, ones).unwrap();
        let groups = Groups::from_lists(n as usize, lists).unwrap();
        let bags = groups.aggregate(&y, Merge::Set, &Control::default()).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let mut likely: Vec<f32> = (0..pairs.len()).map(|_| rng.below(1000) as f32 / 1000.0).collect();
        // The samples of the first groups are all as likely: nothing sets them apart.
        for i in 0..12 {
            pairs.of_sample(i).iter().for_each(|pair| likely[*pair as usize] = 1.0);
        }
        (groups, bags, likely, pairs)
    }

    #[test]
    fn it_is_the_formula() {
        for seed in 0..10 {
            let (groups, bags, likely, pairs) = case(seed);
            let (n, labels) = (groups.samples(), bags.cols());
            let memberships = groups.memberships();
            let place = |i: usize, k: usize| {
                let at = pairs.by_sample().row(i).indices.binary_search(&(k as u32)).ok()?;
                Some(pairs.of_sample(i)[at] as usize)
            };
            let mut d = vec![vec![0f64; labels]; n];
            for (i, d) in d.iter_mut().enumerate() {
                for (k, d) in d.iter_mut().enumerate() {
                    let Some(own) = place(i, k) else { continue };
                    let carrying: Vec<f64> = memberships
                        .row(i)
                        .indices
                        .iter()
                        .filter(|j| bags.row(**j as usize).indices.contains(&(k as u32)))
                        .map(|j| {
                            let members = groups.members(*j as usize);
                            let sum: f64 = members
                                .iter()
                                .map(|m| f64::from(likely[place(*m as usize, k).unwrap()]))
                                .sum();
                            sum / members.len() as f64
                        })
                        .collect();
                    *d = f64::from(likely[own]) - carrying.iter().sum::<f64>() / carrying.len() as f64;
                }
            }
            let half = |i: usize| memberships.row(i).indices[0] % 2;
            let found = company(&pairs, &likely, &halves(&groups), &Control::default()).unwrap();
            for i in 0..n {
                for k in 0..labels {
                    let Some(own) = place(i, k) else { continue };
                    let over = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
                        (0..n).filter(|o| half(*o) != half(i)).map(|o| f(&d[o])).sum()
                    };
                    let doubt = f64::from(DOUBT);
                    let want: f64 = (0..labels)
                        .filter(|l| *l != k)
                        .map(|l| {
                            let norm = (over(&|d| d[k] * d[k]) + doubt) * (over(&|d| d[l] * d[l]) + doubt);
                            over(&|d| d[k] * d[l]) / norm.sqrt() * d[i][l]
                        })
                        .sum();
                    assert!((f64::from(found[own]) - want).abs() < 1e-5, "{} for {want}", found[own]);
                }
            }
        }
    }

    #[test]
    fn a_label_that_always_comes_with_another_speaks_for_it() {
        // Forty groups of two with both labels: the first sample surely has label 0, and in all groups but the last
        // surely label 1 as well.
        let groups = Groups::from_lists(80, (0..40).map(|j| vec![2 * j, 2 * j + 1])).unwrap();
        let bags =
            Csr::new(40, 2, (0..=40).map(|j| 2 * j).collect(), [0, 1].repeat(40), vec![1.0; 80]).unwrap();
        let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
        let mut likely: Vec<f32> = (0..160).map(|at| if at % 2 == 0 { 0.9 } else { 0.1 }).collect();
        (likely[158], likely[159]) = (0.5, 0.5);
        let said = company(&pairs, &likely, &halves(&groups), &Control::default()).unwrap();
        assert!(said[158] > 0.05 && said[159] < -0.05, "{} {}", said[158], said[159]);
    }
}
