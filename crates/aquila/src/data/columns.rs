//! Matrices without the columns that nobody has.
//!
//! Work that keeps a number for each column takes memory for what a caller merely claims: two entries in four thousand
//! million columns would ask for tens of gigabytes. It is done on the columns in use, and what comes of it gets the old
//! numbers back.

use super::{Csr, Features};

/// Columns are left out where there are more than this for each entry, and more than for so many entries in any case:
/// real matrices stay as they are.
const WIDE: usize = 4;
const FEW: usize = 1 << 16;

/// Which columns of a matrix are in use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// The old number of each, ascending.
    used: Vec<u32>,
    /// How many there are in all.
    all: usize,
}

fn is_wide(matrix: &Csr) -> bool {
    matrix.cols() / WIDE > matrix.nnz().max(FEW)
}

impl Columns {
    /// The columns in use, where they are few of all.
    pub fn of(matrix: &Csr) -> Option<Self> {
        is_wide(matrix).then(|| {
            let mut used = matrix.indices().to_vec();
            used.sort_unstable();
            used.dedup();
            Self { used, all: matrix.cols() }
        })
    }

    /// How many columns at most are left of a matrix, and the bytes that leaving out the others takes.
    pub fn most(matrix: &Csr) -> (usize, u64) {
        match is_wide(matrix) {
            true => (matrix.nnz(), (8 * matrix.rows() + 16 * matrix.nnz()) as u64),
            false => (matrix.cols(), 0),
        }
    }

    /// The matrix in these columns alone.
    pub fn narrow(&self, matrix: &Csr) -> Csr {
        let number = |j: &u32| self.used.partition_point(|used| used < j) as u32;
        let indices = matrix.indices().iter().map(number).collect();
        let (indptr, values) = (matrix.indptr().to_vec(), matrix.values().to_vec());
        Csr::trusted(matrix.rows(), self.used.len(), indptr, indices, values)
    }

    /// The old number of a column. Columns of a dense block stand behind the others, here as there.
    pub fn old(&self, column: u32) -> u32 {
        let behind = |j: usize| (self.all + j - self.used.len()) as u32;
        self.used.get(column as usize).copied().unwrap_or_else(|| behind(column as usize))
    }

    /// The matrix with the old numbers of its columns.
    pub fn widen(&self, matrix: Csr) -> Csr {
        let (rows, cols) = (matrix.rows(), self.all + matrix.cols() - self.used.len());
        let indptr = matrix.indptr().to_vec();
        let (mut indices, values) = matrix.into_entries();
        indices.iter_mut().for_each(|j| *j = self.old(*j));
        Csr::trusted(rows, cols, indptr, indices, values)
    }
}

impl Features {
    /// The rows in the sparse columns that they use, where these are few of all; a dense block is shared.
    pub(crate) fn narrow(&self) -> (Self, Option<Columns>) {
        let columns = Columns::of(self.sparse());
        let narrow = columns.as_ref().map(|columns| self.with_sparse(columns.narrow(self.sparse())));
        (narrow.unwrap_or_else(|| self.clone()), columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    #[test]
    fn columns_in_use_get_their_numbers_back() {
        let wide = u32::MAX as usize - 2;
        let indices = vec![7, wide as u32 - 1, 0, 7];
        let x = Csr::new(3, wide, vec![0, 2, 2, 4], indices, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let columns = Columns::of(&x).unwrap();
        let narrow = columns.narrow(&x);
        assert_eq!((narrow.cols(), narrow.indices()), (3, &[1, 2, 0, 1][..]));
        assert_eq!(columns.widen(narrow), x);
        let block = Dense::new(3, 2, vec![1.0; 6]).unwrap();
        let (narrow, columns) = Features::new(x, Some(block)).unwrap().narrow();
        assert_eq!(narrow.cols(), 5);
        assert_eq!(
            [2, 3, 4].map(|j| columns.as_ref().unwrap().old(j)),
            [u32::MAX - 3, u32::MAX - 2, u32::MAX - 1]
        );
        // What is not much wider than it has entries stays as it is.
        assert_eq!(Columns::of(&Csr::new(1, WIDE * FEW, vec![0, 1], vec![7], vec![1.0]).unwrap()), None);
    }
}
