//! The alternating update of label disentanglement: matcher, assignment of labels to leaves, matcher, …
//!
//! A matcher predicts which leaves each training row reaches, labels are assigned to leaves accordingly
//! ([`crate::overlap`]), and the next matcher learns that a row belongs to every leaf of each of its labels (Algorithm 1 of
//! Liu et al., NeurIPS 2021).
//!
//! A round needs no classifiers of labels, so it trains the layers above the leaves alone, and because it only counts rows,
//! a few passes of the solver are enough: on `debian-related` this saves a tenth of the whole training and costs a tenth of
//! a point of P@1 and nothing at P@5. The layers after the last round are trained by the caller. In the paper's "no" form
//! (`overlap.update` off) there is no new matcher: the first one is trained in full and kept.
//!
//! Labels under the root are placed last: they are no part of a matcher.

use super::OverlapParams;
use super::layout::CHUNK;
use super::negatives::Learner;
use super::train::rows_by_label;
use super::weight_block::Block;
use crate::control::{Progress, stage};
use crate::error::Result;
use crate::overlap::{Bounds, Leaves, Reached, UnderRoot, capped, most_counted};
use crate::tree::{LabelTree, NODE};

/// Most passes of the solver in a matcher that only counts.
const PASSES: u32 = 3;

/// Hangs labels under further leaves. Returns the tree and the blocks of its upper layers that need no learning.
///
/// With fewer than two leaves there is no choice, and the tree comes back as it was.
pub fn disentangle(learner: &Learner<'_>, tree: LabelTree) -> Result<(LabelTree, Vec<Block>)> {
    let OverlapParams { copies, rounds, update, leaf_cap, min_score, root_cap, .. } =
        learner.params().overlap;
    let leaves = Leaves::of(&tree);
    let Some(last) = leaves.layers().last().filter(|_| leaves.count() > 1) else {
        return Ok((tree, Vec::new()));
    };
    let labels_rows = learner.y.transpose();
    let mean = tree.labels() as f64 / leaves.count() as f64;
    let cap = room((f64::from(leaf_cap) * mean).ceil() as usize);
    let under_root = if leaf_cap == 0.0 || !update {
        UnderRoot::default()
    } else {
        let counts = rows_by_label(learner.y);
        let nodes = tree.layers()[0].labels.iter().filter(|l| **l == NODE).count();
        let most = (f64::from(root_cap) * nodes as f64).round() as usize;
        UnderRoot::choose(&tree, &counts, learner.x.rows(), cap, most)
    };
    let bounds = Bounds {
        copies: copies as usize,
        cap,
        min_score: f64::from(min_score),
        settled: &under_root.settled,
    };
    let mut solver = learner.params().solver.clone();
    if update {
        solver.max_passes = solver.max_passes.min(PASSES);
    }
    let mut now = tree.clone();
    for round in 0..rounds {
        let tell = |done| {
            learner.control.report(&Progress {
                stage: stage::OVERLAP,
                done: u64::from(round + done),
                total: u64::from(rounds),
                rows: learner.x.rows() as u64,
                labels: tree.labels() as u64,
                seconds: learner.since.elapsed().as_secs_f64(),
                eta: -1.0,
                ..Progress::default()
            });
        };
        let matcher = learner.layers(&now, last, &solver, stage::MATCHER, Vec::new())?;
        tell(0);
        let reached = reached(learner, &now, &leaves, &matcher)?;
        let control = learner.control;
        let assignment = if leaf_cap == 0.0 {
            most_counted(&leaves, &labels_rows, &reached, bounds.copies, control)?
        } else {
            capped(&leaves, &labels_rows, &reached, bounds, control)?
        };
        let next = leaves.place(&assignment)?;
        tell(1);
        let stable = next == now;
        now = next;
        if !update {
            let inner = |b: &Block| {
                let layer = &now.layers()[b.layer as usize];
                layer.labels[layer.children(b.parent as usize)].iter().all(|c| *c == NODE)
            };
            let known = matcher.into_iter().filter(inner).collect();
            return Ok((now, known));
        }
        if stable {
            break;
        }
    }
    Ok((under_root.place(now)?, Vec::new()))
}

/// Most labels that further ones may fill a leaf to, of so many wanted: beyond one chunk whole ones alone, for a search
/// pays for a part of a chunk as for a whole one.
fn room(wanted: usize) -> usize {
    if wanted > CHUNK { wanted / CHUNK * CHUNK } else { wanted }
}

/// Which leaves each row reaches.
fn reached(
    learner: &Learner<'_>,
    tree: &LabelTree,
    leaves: &Leaves<'_>,
    matcher: &[Block],
) -> Result<Reached> {
    let layers: Vec<_> =
        leaves.layers().map(|t| Ok((t, learner.reached(tree, t, matcher)?))).collect::<Result<_>>()?;
    let rows = (0..learner.x.rows()).map(|i| {
        layers.iter().flat_map(move |(t, found)| {
            let span = found.indptr[i]..found.indptr[i + 1];
            let nodes = found.labels[span.clone()].iter().zip(&found.scores[span]);
            // A node that was never trained is in the beam for want of others.
            let trained = nodes.filter(|(_, key)| **key > f32::MIN);
            trained.filter_map(|(node, key)| Some((leaves.number(*t, *node as usize)?, key.exp())))
        })
    });
    Ok(Reached::new(leaves.count(), rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_grows_to_whole_chunks_or_stays_within_one() {
        for (wanted, most) in
            [(0, 0), (38, 38), (128, 128), (129, 128), (152, 128), (255, 128), (256, 256), (600, 512)]
        {
            assert_eq!(room(wanted), most);
        }
    }
}
