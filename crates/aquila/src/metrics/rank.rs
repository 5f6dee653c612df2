//! Rankings from score matrices.

use crate::data::{Csr, Ranked};
use crate::error::{Result, fail};

/// Ranks the stored entries of each row of scores (rows × labels): best score first, ties by label id.
///
/// A stored zero is a prediction like any other, because log scores end at 0. Cost O(n log n) per row.
pub fn rank(scores: &Csr) -> Ranked {
    let mut ranked = Ranked {
        indptr: scores.indptr().to_vec(),
        labels: Vec::with_capacity(scores.nnz()),
        scores: Vec::with_capacity(scores.nnz()),
    };
    let mut order: Vec<(u32, f32)> = Vec::new();
    for row in scores.iter_rows() {
        order.clear();
        order.extend(row.iter());
        // A Csr holds only finite values, so any two are comparable; the stable sort keeps ties in label order,
        // including 0 and −0.
        order.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(std::cmp::Ordering::Equal));
        ranked.labels.extend(order.iter().map(|e| e.0));
        ranked.scores.extend(order.iter().map(|e| e.1));
    }
    ranked
}

/// The same lists without the pairs stored in `pairs` (rows × labels, values ignored).
///
/// The "LF" data sets contain test pairs of a document with itself as a label; published results remove them from the
/// predictions before scoring, and the following labels move up.
pub fn leave_out(ranked: &Ranked, pairs: &Csr) -> Result<Ranked> {
    check(ranked)?;
    if ranked.rows() != pairs.rows() {
        fail!(
            ShapeMismatch,
            "the predictions have {} rows but the pairs to leave out {} x {}",
            ranked.rows(),
            pairs.rows(),
            pairs.cols()
        );
    }
    let mut kept = Ranked { indptr: vec![0], ..Ranked::default() };
    for (i, pairs) in pairs.iter_rows().enumerate() {
        for at in ranked.indptr[i]..ranked.indptr[i + 1] {
            if pairs.indices.binary_search(&ranked.labels[at]).is_err() {
                kept.labels.push(ranked.labels[at]);
                kept.scores.extend(ranked.scores.get(at));
            }
        }
        kept.indptr.push(kept.labels.len());
    }
    Ok(kept)
}

/// Checks that the three arrays are consistent, because they are public. Scores may be missing.
pub(super) fn check(ranked: &Ranked) -> Result<()> {
    let Ranked { indptr, labels, scores } = ranked;
    if !scores.is_empty() && scores.len() != labels.len() {
        fail!(ShapeMismatch, "the predictions have {} labels but {} scores", labels.len(), scores.len());
    }
    let (first, last) = (indptr.first().copied().unwrap_or(0), indptr.last().copied().unwrap_or(0));
    if first != 0 || last != labels.len() {
        fail!(
            ShapeMismatch,
            "the predictions' row pointers run from {first} to {last} but must run from 0 to the number of labels, {}",
            labels.len()
        );
    }
    if let Some(i) = indptr.windows(2).position(|w| w[0] > w[1]) {
        fail!(
            UnsortedIndices,
            "row pointer {} of the predictions falls from {} to {}",
            i + 1,
            indptr[i],
            indptr[i + 1]
        );
    }
    Ok(())
}
