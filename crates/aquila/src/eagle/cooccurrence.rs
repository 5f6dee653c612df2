//! Co-occurrence of labels as evidence: a sample that has one label is more likely to have labels that occur with it.
//!
//! Formula: with `d_ik = p_ik − mean of p_·k over the pair's group`, the correlation of two labels is
//! `c_kl = Σ_i d_ik·d_il / √((Σ_i d_ik² + `[`DOUBT`]`)·(Σ_i d_il² + `[`DOUBT`]`))`, and the evidence that a sample's other
//! labels give for a pair is `Σ_{l≠k} c_kl·d_il`. Deviations from the group's mean leave out what labels share only because
//! the same groups carry them. A group never provides evidence for its own pairs: sums over one half of the groups are
//! evidence for the other half.
//!
//! Samples of one group have the same candidates, so sums run over *tables* of samples × labels; samples of several groups
//! have tables of their own.
//!
//! Source: ours. Cost: twice the sum over samples of their candidates squared, in vector steps over a table's labels, plus
//! the sum over tables of their labels squared; no matrix of labels × labels is kept.

use super::candidates::{Candidates, filled, parts};
use super::groups::Groups;
use crate::control::Control;
use crate::error::Result;
use crate::kernels::{Isa, matvec};
use rayon::prelude::*;
use std::ops::Range;

/// Labels with less than this in all say little: what they have in common with others may be chance.
const DOUBT: f32 = 20.0;
/// Places that are brought up between two looks at the flag that cancels.
const BETWEEN_LOOKS: usize = 1 << 16;

/// Samples by what may be theirs: tables of samples that have the same candidates.
#[derive(Debug)]
pub(super) struct Cooccurrence<'a> {
    pairs: &'a Candidates<'a>,
    /// The samples, table by table.
    samples: Vec<u32>,
    tables: Vec<Table>,
    /// For each label its tables, and its place in each of them.
    starts: Vec<usize>,
    of_label: Vec<(u32, u32)>,
    /// For each label and table, label by label, where its pairs begin if they stand by label and table.
    begins: Vec<usize>,
    /// For each table and label, table by table, the same.
    by_label: Vec<usize>,
}

/// Samples of the same candidates and the same half of the groups.
#[derive(Debug)]
struct Table {
    /// Which half.
    half: usize,
    /// Its samples' places.
    samples: Range<usize>,
    /// Where its pairs begin if they stand by table, sample and label.
    pairs: usize,
    /// Where its labels begin if labels stand by table.
    labels: usize,
}

impl<'a> Cooccurrence<'a> {
    pub fn new(pairs: &'a Candidates<'a>, groups: &Groups, control: &Control) -> Result<Self> {
        let (mut samples, mut tables) = (Vec::new(), Vec::<Table>::new());
        let mut seen = vec![false; groups.samples()];
        let (mut before, mut cells, mut labels) = (0, 0, 0);
        for j in 0..groups.len() {
            control.check()?;
            let mut begin = true;
            for i in groups.members(j).iter().copied() {
                let own = pairs.labels_of(i as usize);
                if std::mem::replace(&mut seen[i as usize], true) || own.is_empty() {
                    continue;
                }
                if begin || own != pairs.labels_of(before as usize) {
                    let at = samples.len()..samples.len();
                    tables.push(Table { half: j % 2, samples: at, pairs: cells, labels });
                    labels += own.len();
                }
                (begin, before) = (false, i);
                samples.push(i);
                cells += own.len();
                if let Some(table) = tables.last_mut() {
                    table.samples.end = samples.len();
                }
            }
        }
        let labels_of = |t: &Table| pairs.labels_of(samples[t.samples.start] as usize);
        let mut starts = vec![0; pairs.labels() + 1];
        tables.iter().flat_map(labels_of).for_each(|k| starts[*k as usize + 1] += 1);
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        let (mut next, mut of_label) = (starts.clone(), vec![(0, 0); labels]);
        let mut by_label = vec![0; labels];
        for (t, table) in tables.iter().enumerate() {
            control.check()?;
            for (at, k) in labels_of(table).iter().enumerate() {
                let to = &mut next[*k as usize];
                of_label[*to] = (t as u32, at as u32);
                by_label[table.labels + at] = *to;
                *to += 1;
            }
        }
        let mut begins = vec![0];
        for of in of_label.chunks(BETWEEN_LOOKS) {
            control.check()?;
            for (t, _) in of {
                begins.push(begins[begins.len() - 1] + tables[*t as usize].samples.len());
            }
        }
        for places in by_label.chunks_mut(BETWEEN_LOOKS) {
            control.check()?;
            places.iter_mut().for_each(|at| *at = begins[*at]);
        }
        Ok(Self { pairs, samples, tables, starts, of_label, begins, by_label })
    }

    /// What the other labels of its sample say of each pair, given how likely pairs are.
    pub fn evidence(&self, likely: &[f32], control: &Control) -> Result<Vec<f32>> {
        let (apart, squares) = self.apart(likely, control)?;
        let scales: [Vec<f32>; 2] =
            [0, 1].map(|half| squares.iter().map(|s| 1.0 / (s[half] as f32 + DOUBT).sqrt()).collect());
        let mut said = filled(0.0, apart.len());
        let spans = |k: usize| self.begins[self.starts[k + 1]] - self.begins[self.starts[k]];
        parts(&mut said, (0..self.pairs.labels()).map(spans)).into_par_iter().enumerate().try_for_each_init(
            || Shared { sums: [0, 1].map(|_| vec![0.0; self.pairs.labels()]), row: Vec::new() },
            |shared, (k, said)| {
                control.check()?;
                self.of_label(k, &apart, &scales, shared, said);
                Ok(())
            },
        )?;
        let mut out = apart;
        self.scatter(&said, &mut out, control)?;
        Ok(out)
    }

    /// What other labels say of one label's pairs.
    fn of_label(
        &self,
        k: usize,
        apart: &[f32],
        scales: &[Vec<f32>; 2],
        shared: &mut Shared,
        mut said: &mut [f32],
    ) {
        let (isa, Shared { sums, row }) = (Isa::detect(), shared);
        let tables = &self.of_label[self.starts[k]..self.starts[k + 1]];
        for (t, at) in tables {
            let table = &self.tables[*t as usize];
            let labels = self.labels_of(table);
            let n = labels.len();
            row.clear();
            row.resize(n, 0.0);
            matvec::add_products(isa, &apart[table.pairs..][..n * table.samples.len()], *at as usize, row);
            let sums = &mut sums[table.half];
            labels.iter().zip(&*row).for_each(|(l, sum)| sums[*l as usize] += sum);
        }
        sums.iter_mut().for_each(|sums| sums[k] = 0.0);
        for (t, _) in tables {
            let table = &self.tables[*t as usize];
            let (labels, other) = (self.labels_of(table), 1 - table.half);
            row.clear();
            row.extend(labels.iter().map(|l| sums[other][*l as usize] * scales[other][*l as usize]));
            let (to, rest) = std::mem::take(&mut said).split_at_mut(table.samples.len());
            said = rest;
            matvec::products(isa, &apart[table.pairs..][..labels.len() * to.len()], row, to);
            to.iter_mut().for_each(|to| *to *= scales[other][k]);
        }
        // All of them where many were met, which is sooner done than to go through the tables again.
        if tables.iter().map(|(t, _)| self.labels_of(&self.tables[*t as usize]).len()).sum::<usize>()
            > self.pairs.labels()
        {
            sums.iter_mut().for_each(|sums| sums.fill(0.0));
        } else {
            for (t, _) in tables {
                let table = &self.tables[*t as usize];
                self.labels_of(table).iter().for_each(|l| sums[table.half][*l as usize] = 0.0);
            }
        }
    }

    fn labels_of(&self, table: &Table) -> &[u32] {
        self.pairs.labels_of(self.samples[table.samples.start] as usize)
    }

    /// Brings what stands by label, table and sample to its pairs.
    fn scatter(&self, from: &[f32], to: &mut [f32], control: &Control) -> Result<()> {
        let mut place = vec![(0u32, 0u32); self.pairs.rows()];
        for (t, table) in self.tables.iter().enumerate() {
            for (nth, i) in self.samples[table.samples.clone()].iter().enumerate() {
                place[*i as usize] = (t as u32, nth as u32);
            }
        }
        self.pairs.by_row(to).into_par_iter().zip(place).try_for_each(|(to, (t, nth))| {
            control.check()?;
            if !to.is_empty() {
                let begins = &self.by_label[self.tables[t as usize].labels..];
                to.iter_mut().zip(begins).for_each(|(to, begin)| *to = from[begin + nth as usize]);
            }
            Ok(())
        })
    }

    /// How far each pair is from the mean of its group, or of its groups' means, by table; and for each label and half of
    /// the groups the sum of its squares.
    fn apart(&self, likely: &[f32], control: &Control) -> Result<(Vec<f32>, Vec<[f64; 2]>)> {
        let pairs = self.pairs;
        let mut means = vec![0f32; pairs.segments()];
        pairs.by_bag(&mut means).into_par_iter().enumerate().try_for_each_init(
            Vec::new,
            |own, (j, means)| {
                control.check()?;
                own.clear();
                own.resize(means.len(), 0.0);
                let share = 1.0 / pairs.members(j).len().max(1) as f32;
                for i in pairs.members(j) {
                    pairs.lift(*i as usize, j, likely, own);
                    means.iter_mut().zip(&*own).for_each(|(mean, p)| *mean += share * p);
                }
                Ok(())
            },
        )?;
        let mut apart = filled(0.0, pairs.len());
        let mut of_tables = vec![0f64; self.by_label.len()];
        let spans = parts(&mut apart, self.tables.iter().map(|t| t.samples.len() * self.labels_of(t).len()));
        let squares = parts(&mut of_tables, self.tables.iter().map(|t| self.labels_of(t).len()));
        let tables = self.tables.par_iter().zip(spans).zip(squares);
        tables.try_for_each_init(
            || [Vec::new(), Vec::new()],
            |[sums, counts], ((table, apart), squares)| {
                control.check()?;
                let n = self.labels_of(table).len();
                for (apart, i) in apart.chunks_exact_mut(n).zip(&self.samples[table.samples.clone()]) {
                    let i = *i as usize;
                    for of in [&mut *sums, counts] {
                        of.clear();
                        of.resize(n, 0f32);
                    }
                    for (j, _) in pairs.seats_of(i) {
                        let means = &means[pairs.segments_of(j)];
                        pairs.lower(i, j, means, sums, |sum, mean| *sum += mean);
                        pairs.lower(i, j, means, counts, |count, _| *count += 1.0);
                    }
                    let of_groups = sums.iter().zip(&*counts).map(|(sum, count)| sum / count);
                    for ((d, p), mean) in apart.iter_mut().zip(&likely[pairs.span(i)]).zip(of_groups) {
                        *d = p - mean;
                    }
                    for (square, d) in squares.iter_mut().zip(&*apart) {
                        *square += f64::from(*d * *d);
                    }
                }
                Ok(())
            },
        )?;
        let mut squares = vec![[0f64; 2]; pairs.labels()];
        let labels = self.tables.iter().flat_map(|t| self.labels_of(t).iter().map(|k| (*k as usize, t.half)));
        labels.zip(of_tables).for_each(|((k, half), square)| squares[k][half] += square);
        Ok((apart, squares))
    }
}

/// One thread's memory.
struct Shared {
    /// For either half what each label has in common there with the one in hand; all 0 between labels.
    sums: [Vec<f32>; 2],
    row: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::super::groups::Merge;
    use super::*;
    use crate::data::Csr;
    use crate::rng::Rng;

    /// Samples in random groups of four, some in a second one; twelve labels.
    fn case(seed: u64) -> (Groups, Csr, Rng) {
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
        (groups, bags, rng)
    }

    fn likely(pairs: &Candidates<'_>, rng: &mut Rng) -> Vec<f32> {
        let mut likely: Vec<f32> = (0..pairs.len()).map(|_| rng.below(1000) as f32 / 1000.0).collect();
        // The samples of the first groups are all as likely: nothing sets them apart.
        (0..12).for_each(|i| likely[pairs.span(i)].fill(1.0));
        likely
    }

    #[test]
    fn it_is_the_formula() {
        for seed in 0..10 {
            let (groups, bags, mut rng) = case(seed);
            let pairs = Candidates::new(&groups, &bags, &Control::default()).unwrap();
            let likely = likely(&pairs, &mut rng);
            let (n, labels) = (groups.samples(), bags.cols());
            let memberships = groups.memberships();
            let place = |i: usize, k: usize| {
                let at = pairs.labels_of(i).binary_search(&(k as u32)).ok()?;
                Some(pairs.span(i).start + at)
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
            let found = Cooccurrence::new(&pairs, &groups, &Control::default())
                .unwrap()
                .evidence(&likely, &Control::default())
                .unwrap();
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
        let mut likely: Vec<f32> = (0..160).map(|at| if at % 4 < 2 { 0.9 } else { 0.1 }).collect();
        (likely[157], likely[159]) = (0.5, 0.5);
        let said = Cooccurrence::new(&pairs, &groups, &Control::default())
            .unwrap()
            .evidence(&likely, &Control::default())
            .unwrap();
        assert!(said[157] > 0.05 && said[159] < -0.05, "{} {}", said[157], said[159]);
    }
}
