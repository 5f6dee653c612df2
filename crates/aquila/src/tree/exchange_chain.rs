//! A tree as a chain of sparse matrices, the form of PECOS's cluster chains.
//!
//! Matrix t has one row per child and one column per parent, with a one where the child is placed under the parent. The
//! first matrix has one column, the root; the last has one row per label; the rows of each matrix are the columns of
//! the next. A chain folder holds `config.json` `{"len": D}` and `C0.npz` … `C{D−1}.npz`; this module handles the
//! matrices only.
//!
//! Where we differ: in a chain, a label with several ones has several leaves, and each becomes a slot with weights of
//! its own. PECOS reads such a chain but adds up the weights, and its chunked layouts fail. A chain cannot express
//! labels in an upper layer, so these are padded when written.

use super::{LabelTree, NODE, TreeLayer};
use crate::data::Csr;
use crate::error::{Result, fail};

/// Maximum number of padding nodes in a chain: 4 GiB of matrices. Otherwise a deep tree with many labels near its root
/// would need depth × labels of them.
const MAX_PADDING: usize = 1 << 28;

impl LabelTree {
    /// Reads a chain: matrix t is children × parents, the first has one column, the last a row for each label.
    ///
    /// Children need not be grouped by parent, and the columns of the tree are not numbered as the rows of the chain:
    /// see [`LabelTree::from_chain_ordered`]. Stored zeros are not entries; other values count as one. A label with
    /// several ones in the last matrix gets several slots. Anything that is not a tree over all labels is a `BAD_TREE`
    /// error. Cost O(entries).
    ///
    /// ```
    /// use aquila::{Csr, tree::LabelTree};
    /// // Two nodes under the root; labels 0 and 2 under node 1, label 1 under both.
    /// let top = Csr::new(2, 1, vec![0, 1, 2], vec![0, 0], vec![1.0; 2])?;
    /// let leaf = Csr::new(3, 2, vec![0, 1, 3, 4], vec![1, 0, 1, 1], vec![1.0; 4])?;
    /// let tree = LabelTree::from_chain(&[top, leaf])?;
    /// assert_eq!(tree.layers()[1].labels, [1, 0, 1, 2]);
    /// # Ok::<(), aquila::Error>(())
    /// ```
    pub fn from_chain(chain: &[Csr]) -> Result<Self> {
        Self::from_chain_ordered(chain).map(|(tree, _)| tree)
    }

    /// Like [`LabelTree::from_chain`], and returns for each layer the matrix row that each column came from. Weights
    /// stored in the order of the chain's rows must be put in this order to match the tree's columns.
    pub fn from_chain_ordered(chain: &[Csr]) -> Result<(Self, Vec<Vec<u32>>)> {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
            fail!(BadTree, "a chain needs at least one matrix");
        };
        if first.cols() != 1 {
            fail!(
                BadTree,
                "matrix 0 of the chain is {} x {} but must have one column, the root: put a matrix of {} x 1 ones in \
                 front of it",
                first.rows(),
                first.cols(),
                first.cols()
            );
        }
        let mut layers = Vec::with_capacity(chain.len());
        let mut order: Vec<Vec<u32>> = Vec::with_capacity(chain.len());
        for (t, matrix) in chain.iter().enumerate() {
            if t > 0 && matrix.cols() != chain[t - 1].rows() {
                fail!(
                    BadTree,
                    "matrix {t} of the chain has {} columns but matrix {} has {} rows",
                    matrix.cols(),
                    t - 1,
                    chain[t - 1].rows()
                );
            }
            let is_last = t + 1 == chain.len();
            if !is_last {
                check_one_parent(t, matrix)?;
            }
            let children = matrix.transpose();
            let root = [0];
            let parents = order.last().map_or(&root[..], Vec::as_slice);
            let (mut starts, mut rows) = (vec![0], Vec::with_capacity(matrix.nnz()));
            for &p in parents {
                let before = rows.len();
                rows.extend(children.row(p as usize).iter().filter(|e| e.1 != 0.0).map(|e| e.0));
                if rows.len() == before {
                    fail!(
                        BadTree,
                        "matrix {t} of the chain: column {p} has no entry, a node without children: take out the \
                         column and the node's row in the matrix before"
                    );
                }
                let Ok(end) = u32::try_from(rows.len()) else {
                    fail!(BadTree, "matrix {t} of the chain has more than {} entries", u32::MAX);
                };
                starts.push(end);
            }
            let labels = if is_last { rows.clone() } else { vec![NODE; rows.len()] };
            layers.push(TreeLayer { starts, labels });
            order.push(rows);
        }
        Ok((Self::new(last.rows(), layers)?, order))
    }

    /// The tree as a chain of 0/1 matrices, children × parents.
    ///
    /// Rows of inner matrices are numbered as the tree's columns are. Labels placed above the last layer are padded:
    /// each gets its own node with a single child in every layer down to the parents of the last one. If all labels are
    /// in the last layer, reading the chain back gives the same tree, except that the labels under a leaf are then in
    /// ascending order. Otherwise it gives the padded tree. Labels with several slots have several ones, which PECOS
    /// itself does not handle well. More than 2²⁸ padding nodes are refused with `UNSUPPORTED`. Cost O(slots · layers).
    pub fn to_chain(&self) -> Result<Vec<Csr>> {
        let layers = self.layers();
        let slots_of = |layer: &TreeLayer| layer.labels.iter().filter(|l| **l != NODE).count();
        let padding = layers
            .iter()
            .rev()
            .enumerate()
            .fold(0usize, |sum, (up, layer)| sum.saturating_add(up.saturating_mul(slots_of(layer))));
        if padding > MAX_PADDING {
            fail!(
                Unsupported,
                "the tree has {} layers and labels high up: as a chain it needs {padding} padding nodes, the limit is \
                 {MAX_PADDING}; collapse it first, or export JSON",
                layers.len()
            );
        }
        let mut chain = Vec::with_capacity(layers.len());
        // The nodes above: NODE for a node of the tree, otherwise the label that a padding node carries down.
        let mut above = vec![NODE];
        for (t, layer) in layers.iter().enumerate() {
            let (mut indptr, mut columns) = (vec![0], Vec::new());
            let mut node = 0;
            for &carried in &above {
                if carried == NODE {
                    columns.extend_from_slice(&layer.labels[layer.children(node)]);
                    node += 1;
                } else {
                    columns.push(carried);
                }
                indptr.push(columns.len());
            }
            let (parents, ones) = (above.len(), vec![1.0; columns.len()]);
            // Parents × children is easy to build; the chain stores its transpose.
            if t + 1 < layers.len() {
                let ids = (0..columns.len() as u32).collect();
                chain.push(Csr::trusted(parents, columns.len(), indptr, ids, ones).transpose());
                above = columns;
            } else {
                for span in indptr.windows(2) {
                    columns[span[0]..span[1]].sort_unstable();
                }
                chain.push(Csr::trusted(parents, self.labels(), indptr, columns, ones).transpose());
                break;
            }
        }
        Ok(chain)
    }
}

/// Every row of an inner matrix must name exactly one parent.
fn check_one_parent(t: usize, matrix: &Csr) -> Result<()> {
    for (i, row) in matrix.iter_rows().enumerate() {
        let mut parents = row.iter().filter(|e| e.1 != 0.0).map(|e| e.0);
        match (parents.next(), parents.next()) {
            (None, _) => {
                fail!(BadTree, "matrix {t} of the chain: row {i} has no entry, a node without a parent")
            }
            (Some(a), Some(b)) => fail!(
                BadTree,
                "matrix {t} of the chain: row {i} is placed under nodes {a} and {b}; only labels may have several parents"
            ),
            _ => {}
        }
    }
    Ok(())
}
