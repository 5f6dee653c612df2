//! Candidates: the pairs (sample, label) that the groups leave possible.
//!
//! A sample may have the labels of its groups and no others. Pairs are kept by label, so that all that concerns one
//! label (its groups, its rate) lies together, with the way to the sample's place and back for what concerns a sample.

use super::groups::{Groups, union_of};
use crate::control::Control;
use crate::data::Csr;
use crate::error::{Result, fail};
use rayon::prelude::*;
use std::ops::Range;

/// All pairs, by label and then by sample; and the segments, one for each group and label of its bag: the pairs of
/// which at least one is true.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Samples × labels: the labels of a sample's groups.
    by_sample: Csr,
    /// Where each label's pairs begin.
    starts: Vec<usize>,
    /// The sample of each pair.
    samples: Vec<u32>,
    /// Where a pair stands in `by_sample`, and which pair stands there.
    place: Vec<u32>,
    pair: Vec<u32>,
    /// Each label's segments.
    segments: Vec<Segments>,
}

/// One label's segments: pairs counted from the label's first.
#[derive(Debug, Default)]
struct Segments {
    ends: Vec<u32>,
    members: Vec<u32>,
}

impl Candidates {
    pub fn new(groups: &Groups, bags: &Csr, control: &Control) -> Result<Self> {
        let by_sample = union_of(groups, bags, control)?;
        let nnz = by_sample.nnz();
        if nnz > u32::MAX as usize {
            fail!(
                InvalidArgument,
                "samples and the labels of their groups make {nnz} pairs, more than {}: make groups smaller",
                u32::MAX
            );
        }
        let mut starts = vec![0; bags.cols() + 1];
        by_sample.indices().iter().for_each(|k| starts[*k as usize + 1] += 1);
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        let mut next = starts.clone();
        let (mut samples, mut place, mut pair) = (vec![0; nnz], vec![0; nnz], vec![0; nnz]);
        for i in 0..by_sample.rows() {
            control.check()?;
            for at in by_sample.indptr()[i]..by_sample.indptr()[i + 1] {
                let to = &mut next[by_sample.indices()[at] as usize];
                (samples[*to], place[*to], pair[at]) = (i as u32, at as u32, *to as u32);
                *to += 1;
            }
        }
        let carriers = bags.transpose();
        let segments = (0..bags.cols())
            .into_par_iter()
            .map(|k| {
                control.check()?;
                let of_label = &samples[starts[k]..starts[k + 1]];
                let mut out = Segments::default();
                for (j, _) in carriers.row(k).iter().filter(|e| e.1 != 0.0) {
                    let mut from = 0;
                    for i in groups.members(j as usize) {
                        from += of_label[from..].partition_point(|other| other < i);
                        out.members.push(from as u32);
                    }
                    if out.ends.last().map_or(0, |end| *end as usize) < out.members.len() {
                        out.ends.push(out.members.len() as u32);
                    }
                }
                Ok(out)
            })
            .collect::<Result<_>>()?;
        Ok(Self { by_sample, starts, samples, place, pair, segments })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// The sample of each pair.
    pub fn samples(&self) -> &[u32] {
        &self.samples
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.segments.len()
    }

    /// Number of samples.
    pub fn rows(&self) -> usize {
        self.by_sample.rows()
    }

    /// Samples × labels: the labels of a sample's groups.
    pub fn by_sample(&self) -> &Csr {
        &self.by_sample
    }

    /// The pairs of a sample, in the order of its labels.
    pub fn of_sample(&self, i: usize) -> &[u32] {
        &self.pair[self.row_span(i)]
    }

    /// Where a sample's pairs stand in the samples' order.
    pub fn row_span(&self, i: usize) -> Range<usize> {
        self.by_sample.indptr()[i]..self.by_sample.indptr()[i + 1]
    }

    /// What is known of each pair, in the samples' order.
    pub fn in_rows(&self, of: &[f32]) -> Vec<f32> {
        self.pair.par_iter().map(|pair| of[*pair as usize]).collect()
    }

    /// The places of a label's pairs in the samples' order.
    pub fn places(&self, k: usize) -> &[u32] {
        &self.place[self.of_label(k)]
    }

    /// The pairs of a label.
    pub fn of_label(&self, k: usize) -> Range<usize> {
        self.starts[k]..self.starts[k + 1]
    }

    /// How many memberships all segments have.
    pub fn members(&self) -> usize {
        self.segments.iter().map(|s| s.members.len()).sum()
    }

    /// The segments of a label: where its memberships begin, and its pairs counted from the label's first.
    pub fn segments(&self, k: usize) -> impl Iterator<Item = (usize, &[u32])> {
        let Segments { ends, members } = &self.segments[k];
        let mut begin = 0;
        ends.iter().map(move |end| {
            let from = std::mem::replace(&mut begin, *end as usize);
            (from, &members[from..*end as usize])
        })
    }

    /// What is kept of each pair, one part a label.
    pub fn by_label<'a, T>(&self, of: &'a mut [T]) -> Vec<&'a mut [T]> {
        parts(of, (0..self.labels()).map(|k| self.of_label(k).len()))
    }

    /// What is kept of each membership of the segments, one part a label.
    pub fn members_by_label<'a, T>(&self, of: &'a mut [T]) -> Vec<&'a mut [T]> {
        parts(of, self.segments.iter().map(|s| s.members.len()))
    }

    /// What is kept of each pair in the samples' order, one part a sample.
    pub fn by_row<'a, T>(&self, of: &'a mut [T]) -> Vec<&'a mut [T]> {
        parts(of, (0..self.rows()).map(|i| self.of_sample(i).len()))
    }

    /// The pairs for which `keep` holds as samples × labels with these values, the likeliest of each segment (of equal
    /// ones the first) whatever `keep` says.
    pub fn choose(&self, likely: &[f32], least: f32) -> Csr {
        let mut kept: Vec<bool> = likely.iter().map(|p| *p >= least).collect();
        self.by_label(&mut kept).into_par_iter().enumerate().for_each(|(k, kept)| {
            let likely = &likely[self.of_label(k)];
            for (_, members) in self.segments(k) {
                let better = |a: u32, b: u32| if likely[b as usize] > likely[a as usize] { b } else { a };
                if let Some(best) = members.iter().copied().reduce(better) {
                    kept[best as usize] = true;
                }
            }
        });
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..self.rows() {
            let labels = self.by_sample.row(i).indices;
            for (k, pair) in labels.iter().zip(self.of_sample(i)).filter(|(_, pair)| kept[**pair as usize]) {
                indices.push(*k);
                values.push(likely[*pair as usize].max(LEAST));
            }
            indptr.push(indices.len());
        }
        Csr::trusted(self.rows(), self.labels(), indptr, indices, values)
    }
}

/// Least confidence of a pair that is chosen: an entry of 0 would be no label.
const LEAST: f32 = 0.01;

/// Cuts a slice into parts of these sizes.
fn parts<T>(mut of: &mut [T], sizes: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    sizes
        .map(|size| {
            let (part, rest) = std::mem::take(&mut of).split_at_mut(size);
            of = rest;
            part
        })
        .collect()
}
