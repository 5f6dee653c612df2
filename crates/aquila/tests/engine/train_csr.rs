//! Sparse matrices against dense ones, and every bad input with its code.

use crate::common::{csr, lists, refused};
use aquila::{Csr, Dense, ErrorCode, Features, Row};
use proptest::prelude::*;

/// Rows of unsorted entries with duplicates, in quarters so that sums are exact.
fn unsorted() -> impl Strategy<Value = (usize, Vec<Vec<(u32, i8)>>)> {
    (1usize..12).prop_flat_map(|cols| {
        let entry = (0..cols as u32, any::<i8>());
        (Just(cols), prop::collection::vec(prop::collection::vec(entry, 0..15), 0..8))
    })
}

fn arrays(rows: &[Vec<(u32, i8)>]) -> (Vec<usize>, Vec<u32>, Vec<f32>) {
    let mut indptr = vec![0];
    rows.iter().for_each(|r| indptr.push(indptr.last().unwrap() + r.len()));
    let entries = rows.iter().flatten();
    (indptr, entries.clone().map(|e| e.0).collect(), entries.map(|e| f32::from(e.1) * 0.25).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn unsorted_rows_are_sorted_and_summed((cols, rows) in unsorted()) {
        let (indptr, indices, values) = arrays(&rows);
        let got = Csr::from_unsorted(rows.len(), cols, indptr.clone(), indices.clone(), values.clone()).unwrap();
        for (i, row) in rows.iter().enumerate() {
            let mut dense = vec![None; cols];
            for (j, v) in row {
                *dense[*j as usize].get_or_insert(0.0) += f32::from(*v) * 0.25;
            }
            let want: Vec<(u32, f32)> =
                (0u32..).zip(&dense).filter_map(|(j, v)| v.map(|v| (j, v))).collect();
            prop_assert_eq!(got.row(i).iter().collect::<Vec<_>>(), want);
        }
        prop_assert_eq!(got.nnz(), got.indices().len());
        prop_assert_eq!(*got.indptr().last().unwrap(), got.nnz());
        // The strict door takes exactly the rows that need neither.
        let strict = Csr::new(rows.len(), cols, indptr, indices, values);
        let ascending = rows.iter().all(|r| r.is_sorted_by(|a, b| a.0 < b.0));
        prop_assert_eq!(strict.is_ok(), ascending);
        if let Ok(strict) = strict {
            prop_assert_eq!(strict, got);
        }
    }

    #[test]
    fn transposing_swaps_rows_and_columns((cols, rows) in unsorted()) {
        let (indptr, indices, values) = arrays(&rows);
        let m = Csr::from_unsorted(rows.len(), cols, indptr, indices, values).unwrap();
        let t = m.transpose();
        prop_assert_eq!((t.rows(), t.cols(), t.nnz()), (m.cols(), m.rows(), m.nnz()));
        let mut want = vec![Vec::new(); cols];
        for (i, row) in lists(&m).into_iter().enumerate() {
            row.into_iter().for_each(|(j, v)| want[j as usize].push((i as u32, v)));
        }
        prop_assert_eq!(lists(&t), want);
        prop_assert_eq!(t.transpose(), m);
    }

    /// Any arrays at all end in a matrix that keeps its promises, or in an error.
    #[test]
    fn foreign_arrays_never_panic(
        rows in 0usize..5,
        cols in 0usize..5,
        indptr in prop::collection::vec(0usize..9, 0..7),
        indices in prop::collection::vec(0u32..7, 0..9),
        values in prop::collection::vec(prop_oneof![Just(f32::NAN), Just(f32::INFINITY), -1f32..1.0, -1f32..1.0], 0..9),
    ) {
        for made in [
            Csr::new(rows, cols, indptr.clone(), indices.clone(), values.clone()),
            Csr::from_unsorted(rows, cols, indptr, indices, values),
        ].into_iter().flatten() {
            prop_assert!(made.values().iter().all(|v| v.is_finite()));
            prop_assert!(made.iter_rows().all(|r| r.indices.is_sorted_by(|a, b| a < b)));
            prop_assert!(made.indices().iter().all(|j| (*j as usize) < cols));
        }
    }
}

#[test]
fn every_bad_array_has_its_code() {
    use ErrorCode::*;
    let new = |rows, cols, p: &[usize], j: &[u32], v: &[f32]| {
        let strict = Csr::new(rows, cols, p.to_vec(), j.to_vec(), v.to_vec());
        (strict, Csr::from_unsorted(rows, cols, p.to_vec(), j.to_vec(), v.to_vec()))
    };
    let both = |(strict, loose), code, words: &[&str]| {
        refused::<Csr>(strict, code, words);
        refused::<Csr>(loose, code, words);
    };
    let big = u32::MAX as usize + 1;
    both(new(1, big, &[0, 0], &[], &[]), InvalidArgument, &["4294967296", "limit"]);
    both(new(big, 1, &[0], &[], &[]), InvalidArgument, &["4294967296"]);
    both(new(2, 3, &[0, 0], &[], &[]), ShapeMismatch, &["2 rows", "3 row pointers", "received 2"]);
    both(new(0, 3, &[], &[], &[]), ShapeMismatch, &["received 0"]);
    both(new(1, 3, &[0, 1], &[0], &[]), ShapeMismatch, &["1 column ids", "0 values"]);
    both(new(1, 3, &[0, 2], &[0], &[1.0]), ShapeMismatch, &["0 to 2"]);
    both(new(1, 3, &[1, 1], &[0], &[1.0]), ShapeMismatch, &["1 to 1"]);
    both(new(3, 3, &[0, 2, 1, 2], &[0, 1], &[1.0; 2]), UnsortedIndices, &["pointer 2", "from 2 to 1"]);
    both(new(3, 3, &[0, 9, 1, 2], &[0, 1], &[1.0; 2]), UnsortedIndices, &["pointer 2", "from 9 to 1"]);
    both(new(2, 3, &[0, 0, 1], &[3], &[1.0]), IndexOutOfRange, &["row 1", "column 3"]);
    for v in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        both(new(2, 3, &[0, 0, 2], &[0, 1], &[1.0, v]), NotFinite, &["row 1", "column 1", &v.to_string()]);
    }
    refused(new(1, 3, &[0, 2], &[1, 1], &[1.0; 2]).0, DuplicateIndex, &["row 0", "column 1", "sum or drop"]);
    refused(new(1, 3, &[0, 2], &[2, 1], &[1.0; 2]).0, UnsortedIndices, &["row 0", "column 1", "sort"]);
    // Finite values whose sum is not.
    refused(new(1, 3, &[0, 2], &[1, 1], &[3e38; 2]).1, NotFinite, &["column 1"]);
}

#[test]
fn single_rows_are_checked_alike() {
    use ErrorCode::*;
    assert_eq!(Row::checked(&[0, 2], &[1.0, -1.0], 3).unwrap().norm(), 2f32.sqrt());
    assert!(Row::checked(&[], &[], 0).unwrap().is_empty());
    refused(Row::checked(&[0], &[], 3), ShapeMismatch, &["1 indices", "0 values"]);
    refused(Row::checked(&[3], &[1.0], 3), IndexOutOfRange, &["column 3"]);
    refused(Row::checked(&[1, 1], &[1.0; 2], 3), DuplicateIndex, &["column 1"]);
    refused(Row::checked(&[2, 1], &[1.0; 2], 3), UnsortedIndices, &["column 1"]);
    refused(Row::checked(&[1], &[f32::NAN], 3), NotFinite, &["NaN"]);
}

#[test]
fn dense_columns_stand_after_the_sparse_ones() {
    let sparse = csr(3, &[vec![(1, 2.0)], vec![]]);
    let dense = Dense::new(2, 2, vec![0.0, 3.0, 4.0, 5.0]).unwrap();
    let both = Features::new(sparse.clone(), Some(dense.clone())).unwrap();
    assert_eq!((both.rows(), both.cols()), (2, 5));
    assert_eq!(lists(&both.as_csr()), [vec![(1, 2.0), (4, 3.0)], vec![(3, 4.0), (4, 5.0)]]);
    refused(Features::new(csr(3, &[vec![]]), Some(dense)), ErrorCode::ShapeMismatch, &["1 rows", "2"]);
    refused(Dense::new(2, 2, vec![0.0; 3]), ErrorCode::ShapeMismatch, &["2 x 2", "3"]);
    refused(Dense::new(usize::MAX, 2, vec![]), ErrorCode::ShapeMismatch, &[]);
    refused(Dense::new(2, 2, vec![0.0, 0.0, 0.0, f32::NAN]), ErrorCode::NotFinite, &["row 1, column 1"]);
}
