//! Which samples stand in which groups.

use super::forecast;
use super::narrow::{narrow, widen};
use crate::control::Control;
use crate::data::{Columns, Csr};
use crate::error::{Result, fail};
use crate::memory;
use crate::params::Kind;

/// Groups of samples. A sample may stand in several groups or in none; a group may be empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    samples: usize,
    starts: Vec<usize>,
    members: Vec<u32>,
}

/// Most groups: what they cost even if empty must not be the size of all memory.
const MOST: usize = 1 << 28;

crate::choice! {
    /// How the labels of a group's samples become the group's.
    pub enum Merge {
        /// Each label with the number of samples that have it.
        List = "list",
        /// Each label once.
        Set = "set",
    }
}

crate::params! {
    /// How the labels of samples become those of groups.
    pub struct AggregateParams {
        /// list keeps how many samples of the group have a label; set keeps that some has.
        pub merge: Merge = Merge::List, "merge", Kind::Choice(Merge::TEXTS);
    }
}

fn check_count(groups: usize) -> Result<()> {
    if groups > MOST {
        fail!(InvalidArgument, "{groups} groups are more than {MOST}: number groups without gaps");
    }
    Ok(())
}

impl Groups {
    /// From a matrix samples × groups: non-zero entries are memberships.
    pub fn from_memberships(matrix: &Csr) -> Result<Self> {
        check_count(matrix.cols())?;
        let mut starts = memory::filled(0usize, matrix.cols() + 1, "groups")?;
        let standing = || matrix.indices().iter().zip(matrix.values()).filter(|e| *e.1 != 0.0);
        standing().for_each(|(j, _)| starts[*j as usize] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        // Each group is filled from its end, with the last samples first, so that its start is where its own is then.
        let mut members = vec![0u32; end];
        for i in (0..matrix.rows()).rev() {
            for (j, _) in matrix.row(i).iter().filter(|e| e.1 != 0.0) {
                starts[j as usize] -= 1;
                members[starts[j as usize]] = i as u32;
            }
        }
        Ok(Self { samples: matrix.rows(), starts, members })
    }

    /// The same if the control's limit of memory suffices for groups that have nobody. Of others work has forecasts.
    pub fn from_memberships_allowed(matrix: &Csr, control: &Control) -> Result<Self> {
        check_count(matrix.cols())?;
        if Columns::most(matrix).0 < matrix.cols() {
            let need = 8 * matrix.cols() as u64 + 4 * matrix.nnz() as u64;
            control.fits("work on groups", need, "or number groups without gaps")?;
        }
        Self::from_memberships(matrix)
    }

    /// From each group's samples, in any order; a sample counts once in a group.
    pub fn from_lists(samples: usize, lists: impl IntoIterator<Item = Vec<u32>>) -> Result<Self> {
        if samples > u32::MAX as usize {
            fail!(InvalidArgument, "{samples} samples are more than ids of 32 bits can tell apart");
        }
        let (mut starts, mut members) = (vec![0], Vec::new());
        for (j, mut list) in lists.into_iter().enumerate() {
            list.sort_unstable();
            list.dedup();
            if let Some(i) = list.last().filter(|i| **i as usize >= samples) {
                fail!(IndexOutOfRange, "group {j}: sample {i} is not below the number of samples, {samples}");
            }
            members.extend(list);
            starts.push(members.len());
        }
        Ok(Self { samples, starts, members })
    }

    /// The matrix samples × groups with a 1 for each membership.
    pub fn memberships(&self) -> Csr {
        self.rosters().transpose()
    }

    /// The matrix groups × samples with a 1 for each membership.
    pub(super) fn rosters(&self) -> Csr {
        let ones = vec![1.0; self.members.len()];
        Csr::trusted(self.len(), self.samples, self.starts.clone(), self.members.clone(), ones)
    }

    /// For each sample whether it stands in a group.
    pub(super) fn grouped(&self) -> Vec<bool> {
        let mut grouped = vec![false; self.samples];
        self.members.iter().for_each(|i| grouped[*i as usize] = true);
        grouped
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of samples, those of no group included.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// A group's samples, ascending.
    pub fn members(&self, group: usize) -> &[u32] {
        &self.members[self.starts[group]..self.starts[group + 1]]
    }

    /// Memberships in all.
    pub fn memberships_count(&self) -> usize {
        self.members.len()
    }

    /// The bags of known labels: `GᵀY`, non-zero entries of `y` counting as 1; groups × labels.
    pub fn aggregate(&self, y: &Csr, merge: Merge, control: &Control) -> Result<Csr> {
        if y.rows() != self.samples {
            fail!(ShapeMismatch, "the groups have {} samples but y has {} rows", self.samples, y.rows());
        }
        forecast::check_bags((self, y), merge, control)?;
        let counts = sum_rows((0..self.len()).map(|j| self.members(j)), y, |_| 1.0, control)?;
        if merge == Merge::List {
            return Ok(counts);
        }
        let (indptr, ones) = (counts.indptr().to_vec(), vec![1.0; counts.nnz()]);
        Ok(Csr::trusted(self.len(), y.cols(), indptr, counts.into_entries().0, ones))
    }

    /// Refuses rows that are not these samples.
    pub(super) fn check_rows(&self, rows: usize) -> Result<()> {
        if rows != self.samples {
            fail!(ShapeMismatch, "x has {rows} rows but the groups {} samples", self.samples);
        }
        Ok(())
    }

    /// Refuses bags that do not fit.
    pub(super) fn check_bags(&self, bags: &Csr) -> Result<()> {
        if bags.rows() != self.len() {
            fail!(ShapeMismatch, "there are {} groups but bags has {} rows", self.len(), bags.rows());
        }
        for (j, row) in bags.iter_rows().enumerate() {
            if let Some((label, v)) = row.iter().find(|e| e.1 < 0.0) {
                fail!(InvalidArgument, "group {j} has label {label} {v} times: counts must be at least 0");
            }
        }
        Ok(())
    }
}

/// Samples × labels: the labels of a sample's groups, with their counts summed.
pub(super) fn union_of(groups: &Groups, bags: &Csr, control: &Control) -> Result<Csr> {
    let memberships = groups.memberships();
    control.check()?;
    sum_rows(memberships.iter_rows().map(|of_sample| of_sample.indices), bags, |count| count, control)
}

/// For each list the sum of these rows of `of`, whose non-zero entries count with this value, above 0; sums end at the
/// largest float.
pub(super) fn sum_rows<'a>(
    lists: impl Iterator<Item = &'a [u32]>,
    of: &Csr,
    value: impl Fn(f32) -> f32,
    control: &Control,
) -> Result<Csr> {
    let (of, columns) = narrow(of);
    let mut sums = vec![0f32; of.cols()];
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for list in lists {
        control.check()?;
        let begin = indices.len();
        for i in list {
            for (j, v) in of.row(*i as usize).iter().filter(|e| e.1 != 0.0) {
                if sums[j as usize] == 0.0 {
                    indices.push(j);
                }
                let sum = &mut sums[j as usize];
                *sum = (*sum + value(v)).min(f32::MAX);
            }
        }
        if !indices[begin..].is_sorted() {
            indices[begin..].sort_unstable();
        }
        values.extend(indices[begin..].iter().map(|j| std::mem::take(&mut sums[*j as usize])));
        indptr.push(indices.len());
    }
    // They doubled as they grew.
    indices.shrink_to_fit();
    values.shrink_to_fit();
    Ok(widen(Csr::trusted(indptr.len() - 1, of.cols(), indptr, indices, values), columns.as_ref()))
}
