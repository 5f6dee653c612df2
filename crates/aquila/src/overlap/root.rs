//! The most frequent labels are placed under the root in addition to their leaves.
//!
//! A classifier in a leaf learns only from the rows that reach the leaf for one of its labels; it never sees the other
//! rows that prediction may send there. A slot under the root learns from all rows and is scored for every row,
//! independent of the beam. Its cost, one column over all rows, is the same for every label, and its benefit grows with
//! the label's rows. Therefore the most frequent labels get one, and the root, which every row visits anyway, grows by
//! no more than a multiple of its nodes.
//!
//! A frequent label is expensive in a leaf: all of its rows come there, and each of the leaf's labels learns from them.
//! A label that has a slot under the root gets no further leaf where that would cost more than [`DEARER`] such slots.

use crate::error::Result;
use crate::tree::{LabelTree, NODE, TreeLayer};
use std::cmp::Reverse;

/// Maximum cost of a further leaf, in slots under the root, for a label that has one there: each row of the label costs
/// one column for each label of the leaf.
const DEARER: usize = 8;

/// The labels that are placed under the root in addition to their leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnderRoot {
    /// The labels, ascending.
    pub labels: Vec<u32>,
    /// Those that get no further leaf, ascending.
    pub settled: Vec<u32>,
}

impl UnderRoot {
    /// Chooses up to `most` labels. `counts` holds the number of each label's rows out of `rows`, and `cap` is the
    /// maximum number of labels in a leaf. Of equally frequent labels the lower comes first; labels without rows and
    /// labels already under the root are never chosen.
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

    /// The tree with these labels appended to the root's children.
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

    /// Two leaves with labels 0 to 5; label 6 is under the root, as the second of its children.
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
        // Label 1 has no rows; label 6 is already there.
        assert_eq!(choose(100), [0, 2, 3, 4, 5]);
        let placed = UnderRoot { labels: vec![2, 4], settled: vec![] }.place(tree()).unwrap();
        assert_eq!(placed.layers()[0], TreeLayer { starts: vec![0, 5], labels: vec![NODE, 6, NODE, 2, 4] });
        assert_eq!(placed.layers()[1], tree().layers()[1]);
        assert_eq!(UnderRoot::default().place(tree()).unwrap(), tree());
    }

    #[test]
    fn a_label_whose_rows_would_crowd_a_leaf_is_settled() {
        // 100 rows: in a leaf of 10 labels, 80 rows cost as much as 8 slots under the root.
        let settled = |count| UnderRoot::choose(&tree(), &[count, 1, 1, 1, 1, 1, 1], 100, 10, 2).settled;
        assert!(settled(79).is_empty());
        assert_eq!(settled(80), [0]);
    }
}
