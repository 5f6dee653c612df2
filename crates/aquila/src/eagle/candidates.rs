//! Candidates: the pairs (sample, label) that the groups allow.
//!
//! A sample may have the labels of its groups and no others. Pairs are ordered by sample and then by label. If a sample
//! is in one group, its labels are the group's labels. The data of a group is therefore a table of its samples and
//! labels, and computations go through rows of such tables, which are contiguous in memory and hold many labels at a
//! time.

use super::groups::{Groups, sum_rows};
use crate::control::Control;
use crate::data::Csr;
use crate::error::{Result, fail};
use crate::xlinear::Lists;
use rayon::prelude::*;
use std::ops::Range;

/// All pairs, ordered by sample and then by label, and the segments, one for each group and each label of its bag. A
/// segment is a set of pairs, at least one of which is true.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    groups: &'a Groups,
    /// Groups × labels: the segments.
    bags: Csr,
    /// Samples × groups.
    memberships: Csr,
    /// For each membership, sample by sample, the index of the sample among the group's members.
    nth: Vec<u32>,
    /// The start of each sample's pairs, and their labels.
    starts: Vec<usize>,
    labels: Vec<u32>,
    /// The start of each group's seats: a group has one seat for each of its samples and labels, sample by sample.
    seats: Vec<usize>,
    /// Number of pairs of each label.
    counts: Vec<u32>,
}

/// Number of parts in which rows are summed. It does not depend on the number of threads, so sums do not either.
const PARTS: usize = 8;

impl<'a> Candidates<'a> {
    pub fn new(groups: &'a Groups, bags: &Csr, control: &Control) -> Result<Self> {
        let each: Vec<u32> = (0..groups.len() as u32).collect();
        let bags = sum_rows(each.chunks(1), bags, |_| 1.0, control)?;
        let memberships = groups.memberships();
        control.check()?;
        let (starts, labels) = labels_of_samples(&memberships, &bags, control)?;
        let mut next = memberships.indptr().to_vec();
        let (mut nth, mut seats) = (vec![0; memberships.nnz()], vec![0]);
        for j in 0..groups.len() {
            control.check()?;
            for (n, i) in groups.members(j).iter().enumerate() {
                nth[next[*i as usize]] = n as u32;
                next[*i as usize] += 1;
            }
            seats.push(seats[j] + groups.members(j).len() * bags.row(j).len());
        }
        let mut counts = vec![0; bags.cols()];
        labels.iter().for_each(|k| counts[*k as usize] += 1);
        Ok(Self { groups, bags, memberships, nth, starts, labels, seats, counts })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.bags.cols()
    }

    /// Number of samples.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The labels of each sample's groups.
    pub fn lists(&self) -> Lists<'_> {
        (&self.starts, &self.labels)
    }

    /// Groups × labels: the segments.
    pub fn bags(&self) -> &Csr {
        &self.bags
    }

    /// The labels of a sample's groups.
    pub fn labels_of(&self, i: usize) -> &[u32] {
        &self.labels[self.span(i)]
    }

    /// The pairs of a sample.
    pub fn span(&self, i: usize) -> Range<usize> {
        self.starts[i]..self.starts[i + 1]
    }

    /// Number of pairs of each label.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// A group's samples.
    pub fn members(&self, j: usize) -> &[u32] {
        self.groups.members(j)
    }

    /// A group's labels.
    pub fn bag(&self, j: usize) -> &[u32] {
        self.bags.row(j).indices
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.bags.nnz()
    }

    /// Number of seats of all groups: one for each of their samples and labels.
    pub fn seats(&self) -> usize {
        self.seats[self.groups.len()]
    }

    /// The groups of a sample, and its seats there.
    pub fn seats_of(&self, i: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let span = self.memberships.indptr()[i]..self.memberships.indptr()[i + 1];
        let groups = &self.memberships.indices()[span.clone()];
        groups.iter().zip(&self.nth[span]).map(|(j, nth)| {
            let (j, labels) = (*j as usize, self.bag(*j as usize).len());
            let first = self.seats[j] + *nth as usize * labels;
            (j, first..first + labels)
        })
    }

    /// The segments of a group.
    pub fn segments_of(&self, j: usize) -> Range<usize> {
        self.bags.indptr()[j]..self.bags.indptr()[j + 1]
    }

    /// Copies a sample's values at the labels of one of its groups.
    pub fn lift(&self, i: usize, j: usize, of: &[f32], to: &mut [f32]) {
        let of = &of[self.span(i)];
        if of.len() == to.len() {
            to.copy_from_slice(of);
            return;
        }
        let mut at = 0;
        for (k, to) in self.bag(j).iter().zip(to) {
            at += self.labels_of(i)[at..].partition_point(|other| other < k);
            *to = of[at];
        }
    }

    /// Combines the values of one of a sample's groups with the sample's values at the group's labels.
    pub fn lower<T: Copy>(&self, i: usize, j: usize, from: &[T], to: &mut [f32], add: impl Fn(&mut f32, T)) {
        if from.len() == to.len() {
            to.iter_mut().zip(from).for_each(|(to, from)| add(to, *from));
            return;
        }
        let mut at = 0;
        for (k, from) in self.bag(j).iter().zip(from) {
            at += self.labels_of(i)[at..].partition_point(|other| other < k);
            add(&mut to[at], *from);
        }
    }

    /// Splits the values of seats into one part per group.
    pub fn by_group<'b, T>(&self, of: &'b mut [T]) -> Vec<&'b mut [T]> {
        parts(of, self.seats.windows(2).map(|w| w[1] - w[0]))
    }

    /// Splits the values of segments into one part per group.
    pub fn by_bag<'b, T>(&self, of: &'b mut [T]) -> Vec<&'b mut [T]> {
        parts(of, (0..self.groups.len()).map(|j| self.bag(j).len()))
    }

    /// Splits the values of pairs into one part per sample.
    pub fn by_row<'b, T>(&self, of: &'b mut [T]) -> Vec<&'b mut [T]> {
        parts(of, (0..self.rows()).map(|i| self.span(i).len()))
    }

    /// Computes sums over samples for each label and may modify their pairs: `each` gets per-thread memory, a sample,
    /// its pairs, and the partial sums.
    pub fn tally<const N: usize, M: Default>(
        &self,
        of: &mut [f32],
        control: &Control,
        each: impl Fn(&mut M, usize, &mut [f32], &mut [[f64; N]]) + Sync,
    ) -> Result<Vec<[f64; N]>> {
        let pairs = |rows: Range<usize>| self.starts[rows.end] - self.starts[rows.start];
        let sums: Vec<_> = parts(of, (0..PARTS).map(|part| pairs(self.part(part))))
            .into_par_iter()
            .enumerate()
            .map(|(part, mut of)| {
                let (mut memory, mut sums) = (M::default(), vec![[0.0; N]; self.labels()]);
                for i in self.part(part) {
                    control.check()?;
                    let (of_row, rest) = of.split_at_mut(self.span(i).len());
                    of = rest;
                    each(&mut memory, i, of_row, &mut sums);
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        let all = (0..self.labels()).into_par_iter().map(|k| {
            let add = |a: [f64; N], b: &Vec<[f64; N]>| std::array::from_fn(|n| a[n] + b[k][n]);
            sums.iter().fold([0.0; N], add)
        });
        Ok(all.collect())
    }

    /// The pairs whose value is at least `least`, as samples × labels with these values. The most likely pair of each
    /// segment (the first of equal ones) is always included.
    pub fn choose(&self, likely: &[f32], least: f32, control: &Control) -> Result<Csr> {
        let mut best = vec![0u32; self.segments()];
        self.by_bag(&mut best).into_par_iter().enumerate().try_for_each_init(
            Vec::new,
            |own, (j, best)| {
                control.check()?;
                own.clear();
                own.resize(2 * best.len(), -1.0);
                let (most, own) = own.split_at_mut(best.len());
                for i in self.members(j) {
                    self.lift(*i as usize, j, likely, own);
                    for ((best, most), own) in best.iter_mut().zip(&mut *most).zip(&*own) {
                        (*best, *most) = if *own > *most { (*i, *own) } else { (*best, *most) };
                    }
                }
                Ok(())
            },
        )?;
        self.gather(control, |kept: &mut Vec<f32>, i, indices, values| {
            let of_row = &likely[self.span(i)];
            kept.clear();
            kept.extend(of_row.iter().map(|p| f32::from(*p >= least)));
            for (j, _) in self.seats_of(i) {
                self.lower(i, j, &best[self.segments_of(j)], kept, |kept, best| {
                    *kept = if best == i as u32 { 1.0 } else { *kept };
                });
            }
            for ((k, p), _) in self.labels_of(i).iter().zip(of_row).zip(kept).filter(|(_, kept)| **kept > 0.0)
            {
                indices.push(*k);
                values.push(p.max(LEAST));
            }
        })
    }

    /// Builds the matrix samples × labels; `each` appends a sample's labels, in ascending order, and their values.
    pub fn gather<S: Default>(
        &self,
        control: &Control,
        each: impl Fn(&mut S, usize, &mut Vec<u32>, &mut Vec<f32>) + Sync,
    ) -> Result<Csr> {
        let parts: Vec<_> = (0..PARTS)
            .into_par_iter()
            .map(|part| {
                let (mut scratch, mut ends) = (S::default(), Vec::new());
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for i in self.part(part) {
                    control.check()?;
                    each(&mut scratch, i, &mut indices, &mut values);
                    ends.push(indices.len());
                }
                Ok((ends, indices, values))
            })
            .collect::<Result<_>>()?;
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (ends, of_part, with) in parts {
            indptr.extend(ends.iter().map(|end| indices.len() + end));
            indices.extend(of_part);
            values.extend(with);
        }
        Ok(Csr::trusted(self.rows(), self.labels(), indptr, indices, values))
    }

    /// The samples of one of the parts that are processed in parallel.
    fn part(&self, part: usize) -> Range<usize> {
        self.rows() * part / PARTS..self.rows() * (part + 1) / PARTS
    }
}

/// Minimum value of a chosen pair: an entry of 0 would not be a label.
const LEAST: f32 = 0.01;

/// The start of each sample's labels, and the labels of its groups.
fn labels_of_samples(memberships: &Csr, bags: &Csr, control: &Control) -> Result<(Vec<usize>, Vec<u32>)> {
    let join = |i: usize, joined: &mut Vec<u32>| {
        control.check()?;
        joined.clear();
        let groups = memberships.row(i).indices;
        groups.iter().for_each(|j| joined.extend_from_slice(bags.row(*j as usize).indices));
        if groups.len() > 1 {
            joined.sort_unstable();
            joined.dedup();
        }
        Ok(())
    };
    let samples = (0..memberships.rows()).into_par_iter();
    let count = |joined: &mut Vec<u32>, i| {
        join(i, joined)?;
        Ok(joined.len())
    };
    let counts: Vec<usize> = samples.map_init(Vec::new, count).collect::<Result<_>>()?;
    let mut starts = vec![0];
    starts.extend(counts.iter().scan(0, |end, n| {
        *end += n;
        Some(*end)
    }));
    let all = starts[counts.len()];
    if all > u32::MAX as usize {
        fail!(
            InvalidArgument,
            "samples and the labels of their groups make {all} pairs, more than {}: make groups smaller",
            u32::MAX
        );
    }
    let mut labels = filled(0, all);
    let rows = parts(&mut labels, counts.into_iter());
    rows.into_par_iter().enumerate().try_for_each_init(Vec::new, |joined, (i, row)| {
        join(i, joined)?;
        row.copy_from_slice(joined);
        Ok(())
    })?;
    Ok((starts, labels))
}

/// A vector of `count` copies of a value, written by all threads: the first access to memory costs more than filling
/// it.
pub(super) fn filled<T: Copy + Send + Sync>(value: T, count: usize) -> Vec<T> {
    rayon::iter::repeat_n(value, count).collect()
}

/// Splits a slice into parts of these sizes.
pub(super) fn parts<T>(mut of: &mut [T], sizes: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    sizes
        .map(|size| {
            let (part, rest) = std::mem::take(&mut of).split_at_mut(size);
            of = rest;
            part
        })
        .collect()
}
