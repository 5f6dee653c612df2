//! What groups and their labels are like, and which method suits them.

use super::groups::Groups;
use super::learn::GroupMethod;
use super::lesson::{Kept, Lesson};
use super::likeness::{likeness, unity};
use super::narrow::narrow;
use crate::control::Control;
use crate::data::{Csr, Features};
use crate::error::Result;

/// What groups and their labels are like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GroupStatistics {
    /// Groups that have samples.
    pub groups: usize,
    /// Samples that stand in a group.
    pub samples: usize,
    /// Samples of a group, on average.
    pub size: f64,
    /// The largest group.
    pub largest: usize,
    /// Labels of a group, on average.
    pub labels_of_group: f64,
    /// Labels that some group carries.
    pub labels: usize,
    /// Labels that one group alone carries: nothing tells which of its samples has them.
    pub lone_labels: usize,
    /// Labels that more than nineteen in twenty groups carry: hardly a group tells who lacks them.
    pub common_labels: usize,
    /// How much more alike samples of one group are than any: see [`likeness`].
    pub likeness: f64,
}

/// Which method suits, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The method for training.
    pub method: GroupMethod,
    /// The reasons, and what to expect: a sentence each, with numbers.
    pub reasons: Vec<String>,
    /// What the reasons rest on.
    pub statistics: GroupStatistics,
}

/// Looks at groups and their labels. Cost: one pass over the samples' entries.
pub fn statistics(x: &Features, groups: &Groups, bags: &Csr, control: &Control) -> Result<GroupStatistics> {
    groups.check_bags(bags)?;
    let likeness = likeness(x, groups, control)?;
    let filled = || (0..groups.len()).filter(|j| !groups.members(*j).is_empty());
    let (bags, _) = &narrow(bags);
    let mut carried = vec![0usize; bags.cols()];
    filled().for_each(|j| {
        bags.row(j).iter().filter(|e| e.1 != 0.0).for_each(|(k, _)| carried[k as usize] += 1);
    });
    let n = filled().count();
    let mean = |sum: usize| sum as f64 / n.max(1) as f64;
    Ok(GroupStatistics {
        groups: n,
        samples: groups.grouped().iter().filter(|g| **g).count(),
        size: mean(filled().map(|j| groups.members(j).len()).sum()),
        largest: filled().map(|j| groups.members(j).len()).max().unwrap_or(0),
        labels_of_group: mean(carried.iter().sum()),
        labels: carried.iter().filter(|c| **c > 0).count(),
        lone_labels: carried.iter().filter(|c| **c == 1).count(),
        common_labels: carried.iter().filter(|c| **c > 1 && **c * 20 > n * 19).count(),
        likeness,
    })
}

/// Says which method suits these groups. On nearly every set and kind of groups that we measured refinement was best, and
/// elsewhere it was close to the best, so that it is advised but where there is nothing to refine.
pub fn advise(x: &Features, groups: &Groups, bags: &Csr, control: &Control) -> Result<Advice> {
    let s = statistics(x, groups, bags, control)?;
    let mut reasons = Vec::new();
    let method = if s.largest <= 1 || s.labels == 0 {
        reasons.push(if s.labels == 0 {
            "No group with samples has a label: there is nothing to learn.".to_owned()
        } else {
            "No group has more than one sample: its labels are the sample's, and the union is exact."
                .to_owned()
        });
        GroupMethod::Union
    } else {
        reasons.push(format!(
            "Groups have {:.1} samples and {:.1} labels on average: without refinement each sample gets all of them.",
            s.size, s.labels_of_group
        ));
        GroupMethod::Refine
    };
    if method == GroupMethod::Refine {
        // What the engine would do with them, whatever probability is asked for.
        let kept = Lesson::new(1.0, unity(s.likeness, groups)).kept();
        let alike = format!("(likeness {:.2} in groups of {:.1})", s.likeness, s.size);
        reasons.push(match kept {
            Kept::Alike => format!(
                "Samples of one group are hardly apart {alike}: every candidate is kept and weighs the same. Expect about \
                 what the union gives."
            ),
            Kept::All => format!(
                "Samples of one group are alike {alike}: every candidate is kept and weighs as much as it is likely. \
                 Expect a gain of a few points over the union, and none where features hardly tell labels."
            ),
            Kept::More => format!(
                "Samples of one group are somewhat alike {alike}: less likely candidates are kept too. Expect much more \
                 than from the union."
            ),
            Kept::Likely => format!(
                "Samples of one group are no more alike than any {alike}: the union would be mostly wrong. Expect most \
                 of what true labels would give."
            ),
        });
        if s.lone_labels * 4 > s.labels {
            reasons.push(format!(
                "{} of {} labels stand in one group only: nothing tells which of its samples have them.",
                s.lone_labels, s.labels
            ));
        }
        if s.common_labels > 0 {
            reasons.push(format!(
                "{} labels stand in more than 95 % of the groups: hardly a group tells who lacks them. Smaller groups \
                 would help.",
                s.common_labels
            ));
        }
    }
    if s.samples < groups.samples() {
        reasons
            .push(format!("{} samples stand in no group and teach nothing.", groups.samples() - s.samples));
    }
    Ok(Advice { method, reasons, statistics: s })
}
