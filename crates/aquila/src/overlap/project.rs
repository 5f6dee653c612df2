//! From counts to an assignment of labels to leaves: the paper's projection (optimal by Theorem 2, no worse than any
//! partition by Theorem 3), and our form with a bound on leaves.

use super::counts::{Counter, Reached, Wish};
use super::leaves::Leaves;
use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The labels under each leaf.
pub type Assignment = Vec<Vec<u32>>;

/// Number of candidate leaves kept per label; once all of them are full, the label is counted again.
const IN_MIND: usize = 8;

/// Number of labels that one thread counts at a time.
const LABELS_OF_PART: usize = 64;

/// Applies `pick` to the wishes of each label. `rows` are the labels' rows (`Yᵀ`).
fn each_label<T: Send>(
    rows: &Csr,
    reached: &Reached,
    control: &Control,
    pick: impl Fn(u32, &mut Vec<Wish>) -> T + Sync,
) -> Result<Vec<T>> {
    let of_part = |counter: &mut Counter, part: usize| {
        control.check()?;
        let labels = part * LABELS_OF_PART..((part + 1) * LABELS_OF_PART).min(rows.rows());
        Ok(labels.map(|l| pick(l as u32, counter.wishes(rows, reached, l as u32))).collect())
    };
    let parts = (0..rows.rows().div_ceil(LABELS_OF_PART)).into_par_iter();
    let parts: Vec<Vec<T>> =
        control.install(|| parts.map_init(Counter::default, of_part).collect::<Result<_>>())??;
    Ok(parts.into_iter().flatten().collect())
}

/// `C* = Proj(YᵀM)` as in the paper: each label is placed under its `copies` most counted leaves, whether or not it was
/// there before. A label that reaches no leaf keeps its leaves, and a leaf that would lose all labels keeps those it
/// had.
pub fn most_counted(
    leaves: &Leaves<'_>,
    rows: &Csr,
    reached: &Reached,
    copies: usize,
    control: &Control,
) -> Result<Assignment> {
    let chosen = each_label(rows, reached, control, |label, wishes| {
        let most = if leaves.at_root(label) { 0 } else { copies };
        wishes.sort_unstable_by(Wish::by_count);
        wishes.iter().take(most).map(|w| w.leaf).collect::<Vec<_>>()
    })?;
    let mut assignment = vec![Vec::new(); leaves.count()];
    for ((label, chosen), own) in (0u32..).zip(&chosen).zip(leaves.by_label()) {
        let under = if chosen.is_empty() { &own } else { chosen };
        under.iter().for_each(|leaf| assignment[*leaf as usize].push(label));
    }
    for (labels, own) in assignment.iter_mut().zip(leaves.labels()) {
        if labels.is_empty() {
            labels.clone_from(own);
        }
    }
    Ok(assignment)
}

/// Bounds of the capped form.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// Maximum number of leaves of a label.
    pub copies: usize,
    /// Number of labels up to which further ones may fill a leaf.
    pub cap: usize,
    /// Minimum mean score of a label's rows at a further leaf.
    pub min_score: f64,
    /// Labels that get no further leaf, ascending.
    pub settled: &'a [u32],
}

/// The capped form: every label keeps its leaves. Further leaves are granted wish by wish, best first, while label and
/// leaf are within bounds.
pub fn capped(
    leaves: &Leaves<'_>,
    rows: &Csr,
    reached: &Reached,
    bounds: Bounds<'_>,
    control: &Control,
) -> Result<Assignment> {
    let own = leaves.by_label();
    // The next wishes of a label, those after a given one; the best is last.
    let next = |label: u32, wishes: &mut Vec<Wish>, after: Option<&Wish>| -> Vec<Wish> {
        let own = &own[label as usize];
        let enough = leaves.at_root(label) || own.len() >= bounds.copies;
        if enough || bounds.settled.binary_search(&label).is_ok() {
            return Vec::new();
        }
        let present = rows.row(label as usize).values.iter().filter(|v| **v != 0.0).count();
        let least = bounds.min_score * present as f64;
        wishes.retain(|w| {
            w.score >= least
                && !own.contains(&w.leaf)
                && after.is_none_or(|a| a.by_roots(w) == Ordering::Less)
        });
        wishes.sort_unstable_by(Wish::by_roots);
        wishes.truncate(IN_MIND);
        wishes.iter().rev().copied().collect()
    };
    let mut in_mind = each_label(rows, reached, control, |label, wishes| next(label, wishes, None))?;
    let mut queue: BinaryHeap<Best> = in_mind.iter_mut().filter_map(Vec::pop).map(Best).collect();
    let mut assignment: Assignment = leaves.labels().to_vec();
    let mut counts: Vec<usize> = own.iter().map(Vec::len).collect();
    let mut counter = Counter::default();
    for step in 0usize.. {
        let Some(Best(wish)) = queue.pop() else { break };
        if step % 1024 == 0 {
            control.check()?;
        }
        let (label, under) = (wish.label as usize, &mut assignment[wish.leaf as usize]);
        if under.len() < bounds.cap {
            under.push(wish.label);
            counts[label] += 1;
        }
        if counts[label] >= bounds.copies {
            continue;
        }
        if in_mind[label].is_empty() {
            let wishes = counter.wishes(rows, reached, wish.label);
            in_mind[label] = next(wish.label, wishes, Some(&wish));
        }
        queue.extend(in_mind[label].pop().map(Best));
    }
    Ok(assignment)
}

/// A wish in heap order: the best is the greatest.
#[derive(PartialEq)]
struct Best(Wish);

impl Eq for Best {}

impl PartialOrd for Best {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Best {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.by_roots(&self.0)
    }
}
