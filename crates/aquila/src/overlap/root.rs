//! The most frequent labels are placed under the root beside their leaves.
//!
//! In a leaf a classifier learns from the rows that come there for one label or another; what else it may be asked about
//! it never saw. A slot under the root learns from all rows and is asked about every row, wherever the beam goes. It
//! costs one column of all rows, whatever the label, and pays by the label's rows: so the most frequent labels get one,
//! and the root, which each row passes anyway, grows by no more than a multiple of the nodes that it has.
//!
//! A frequent label is dear in a leaf: all of its rows come there, for each of the leaf's labels to learn from. One that
//! has a slot under the root gets no further leaf where that would cost more than [`DEARER`] such slots.

use crate::error::Result;
use crate::tree::{LabelTree, NODE, TreeLayer};
use std::cmp::Reverse;

/// How many slots under the root a further leaf may cost a label that has one there: a row of the label costs a column
/// of each of the leaf's labels.
const DEARER: usize = 8;

/// The labels that are placed under the root beside their leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnderRoot {
    /// The labels, ascending.
    pub labels: Vec<u32>,
    /// Those of them that get no further leaf, ascending.
    pub settled: Vec<u32>,
}

impl UnderRoot {
    /// Chooses up to `most` labels; `counts` are the labels' rows out of `rows`, and `cap` is the most labels of a leaf. Of
    /// equally frequent labels the lower come first; those without rows, and those there already, never do.
    pub fn choose(tree: &LabelTree, counts: &[usize], rows: usize, cap: usize, most: usize) -> Self {
        let mut may: Vec<bool> = counts.iter().map(|count| *count > 0).collect();
        for label in tree.layers()[0].labels.iter().filter(|l| **l != NODE) {
            may[*label as usize] = false;
        }
        let mut labels: Vec<u32> =
            (0u32..).zip(may).filter(|(_, may)| *may).map(|(label, _)| label).collect();
        if labels.len() > most {
            labels.select_nth_unstable_by_key(most, |l| (Reverse(counts[*l as usize]), *l));
            labels.truncate(most);
            labels.sort_unstable();
        }
        let dear = |l: &u32| counts[*l as usize].saturating_mul(cap) >= rows.saturating_mul(DEARER);
        let settled = labels.iter().copied().filter(dear).collect();
        Self { labels, settled }
    }

    /// The tree with these labels after the root's other children.
    pub fn place(&self, tree: LabelTree) -> Result<LabelTree> {
        if self.labels.is_empty() {
            return Ok(tree);
        }
        let mut layers: Vec<TreeLayer> = tree.layers().to_vec();
        let root = &mut layers[0];
        root.labels.extend(&self.labels);
        root.starts = vec![0, root.labels.len() as u32];
        LabelTree::new(tree.labels(), layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two leaves of labels 0 to 5; label 6 is under the root, and so the second of its children.
    fn tree() -> LabelTree {
        let root = TreeLayer { starts: vec![0, 3], labels: vec![NODE, 6, NODE] };
        let leaves = TreeLayer { starts: vec![0, 3, 6], labels: (0..6).collect() };
        LabelTree::new(7, vec![root, leaves]).unwrap()
    }

    #[test]
    fn the_most_frequent_labels_are_chosen_and_hung_once() {
        let counts = [5, 0, 9, 5, 80, 5, 99];
        let choose = |most| UnderRoot::choose(&tree(), &counts, 100, 10, most).labels;
        assert!(choose(0).is_empty());
        assert_eq!(choose(3), [0, 2, 4]);
        // Label 1 has no rows, label 6 is there.
        assert_eq!(choose(100), [0, 2, 3, 4, 5]);
        let placed = UnderRoot { labels: vec![2, 4], settled: vec![] }.place(tree()).unwrap();
        assert_eq!(placed.layers()[0], TreeLayer { starts: vec![0, 5], labels: vec![NODE, 6, NODE, 2, 4] });
        assert_eq!(placed.layers()[1], tree().layers()[1]);
        assert_eq!(UnderRoot::default().place(tree()).unwrap(), tree());
    }

    #[test]
    fn a_label_whose_rows_would_crowd_a_leaf_is_settled() {
        // 100 rows: of a leaf of 10 labels, 80 rows cost as much as 8 slots under the root.
        let settled = |count| UnderRoot::choose(&tree(), &[count, 1, 1, 1, 1, 1, 1], 100, 10, 2).settled;
        assert!(settled(79).is_empty());
        assert_eq!(settled(80), [0]);
    }
}
