//! Label vectors: what describes a label to k-means.
//!
//! PIFA (positive instance feature aggregation, Prabhu et al., WWW 2018; Yu et al., JMLR 2022): with each row of Y
//! scaled to length 1, `Z = YᵀX`, rows of Z scaled to length 1. PII: the label's rows themselves, `Z = Yᵀ` with
//! rows scaled to length 1. Labels without rows have empty vectors.
//!
//! Where we differ: only the `keep` largest entries of a vector stay (256 by default, scaled to length 1 again). A
//! popular label's vector has tens of thousands of entries, nearly all of them noise to a clustering; cutting
//! them changes P@k by less than another seed does and halves the time of the tree.
//!
//! Cost of PIFA: Σ over labels of the non-zeros of their rows.

use crate::control::Control;
use crate::data::Csr;
use crate::error::Result;
use rayon::prelude::*;

/// Labels handled by one task.
const CHUNK: usize = 64;

/// PIFA vectors. `values` stand in for the values of `x` (rows scaled); `labels_rows` is Yᵀ, non-zero entries count
/// as 1; `keep` is the number of entries kept, 0 for all.
pub fn pifa(x: &Csr, values: &[f32], labels_rows: &Csr, keep: usize, control: &Control) -> Result<Csr> {
    let mut degree = vec![0u32; x.rows()];
    let entries = labels_rows.indices().iter().zip(labels_rows.values());
    entries.filter(|(_, v)| **v != 0.0).for_each(|(i, _)| degree[*i as usize] += 1);
    let share: Vec<f32> = degree.iter().map(|n| 1.0 / (*n as f32).sqrt().max(1.0)).collect();
    let chunks: Vec<Result<Chunk>> = (0..labels_rows.rows().div_ceil(CHUNK))
        .into_par_iter()
        .map_init(
            || Accumulator::new(x.cols()),
            |sum, chunk| {
                control.check()?;
                let mut out = Chunk::default();
                for label in chunk * CHUNK..((chunk + 1) * CHUNK).min(labels_rows.rows()) {
                    for (i, present) in labels_rows.row(label).iter() {
                        let i = i as usize;
                        if present != 0.0 {
                            let span = x.indptr()[i]..x.indptr()[i + 1];
                            sum.add(share[i], &x.indices()[span.clone()], &values[span]);
                        }
                    }
                    sum.drain(keep, &mut out);
                }
                Ok(out)
            },
        )
        .collect();
    stitch(chunks, labels_rows.rows(), x.cols())
}

/// PII vectors.
pub fn pii(labels_rows: &Csr, keep: usize, control: &Control) -> Result<Csr> {
    given(labels_rows, keep, control)
}

/// The user's vectors, cut and scaled as the others.
pub fn given(vectors: &Csr, keep: usize, control: &Control) -> Result<Csr> {
    let mut sum = Accumulator::new(vectors.cols());
    let mut out = Chunk::default();
    for row in vectors.iter_rows() {
        sum.add(1.0, row.indices, row.values);
        sum.drain(keep, &mut out);
    }
    control.check()?;
    stitch(vec![Ok(out)], vectors.rows(), vectors.cols())
}

#[derive(Default)]
struct Chunk {
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

fn stitch(chunks: Vec<Result<Chunk>>, rows: usize, cols: usize) -> Result<Csr> {
    let chunks = chunks.into_iter().collect::<Result<Vec<_>>>()?;
    let nnz = chunks.iter().map(|c| c.indices.len()).sum();
    let mut indptr = Vec::with_capacity(rows + 1);
    let (mut indices, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
    indptr.push(0);
    for chunk in chunks {
        indptr.extend(chunk.ends.iter().map(|e| e + indices.len()));
        indices.extend_from_slice(&chunk.indices);
        values.extend_from_slice(&chunk.values);
    }
    Ok(Csr::trusted(rows, cols, indptr, indices, values))
}

/// A dense vector that knows which of its places are in use.
struct Accumulator {
    dense: Vec<f32>,
    touched: Vec<u32>,
    magnitudes: Vec<f32>,
    /// Whether a place went through zero, so that `touched` may hold it twice.
    crossed: bool,
}

impl Accumulator {
    fn new(cols: usize) -> Self {
        Self { dense: vec![0.0; cols], touched: Vec::new(), magnitudes: Vec::new(), crossed: false }
    }

    fn add(&mut self, share: f32, indices: &[u32], values: &[f32]) {
        for (j, v) in indices.iter().zip(values) {
            let at = &mut self.dense[*j as usize];
            if *at == 0.0 {
                self.touched.push(*j);
            }
            *at += share * v;
            self.crossed |= *at == 0.0;
        }
    }

    /// Appends the sum, cut and scaled, and starts at zero again.
    fn drain(&mut self, keep: usize, out: &mut Chunk) {
        let Self { dense, touched, magnitudes, crossed } = self;
        if std::mem::take(crossed) {
            touched.retain(|j| dense[*j as usize] != 0.0);
            touched.sort_unstable();
            touched.dedup();
        }
        let begin = out.indices.len();
        let mut least = 0.0;
        let mut above = 0;
        if keep > 0 && touched.len() > keep {
            magnitudes.clear();
            magnitudes.extend(touched.iter().map(|j| dense[*j as usize].abs()));
            least = *magnitudes.select_nth_unstable_by(keep - 1, |a, b| b.total_cmp(a)).1;
            above = magnitudes[..keep - 1].iter().filter(|m| **m > least).count();
        }
        let mut ties = if keep > 0 && touched.len() > keep { keep - above } else { usize::MAX };
        for j in touched.iter() {
            let v = std::mem::take(&mut dense[*j as usize]);
            let kept = v != 0.0 && (v.abs() > least || (v.abs() == least && ties > 0));
            if kept {
                ties -= usize::from(v.abs() == least);
                out.indices.push(*j);
                out.values.push(v);
            }
        }
        touched.clear();
        let kept = &mut out.indices[begin..];
        if !kept.is_sorted() {
            let mut order: Vec<(u32, f32)> =
                kept.iter().copied().zip(out.values[begin..].iter().copied()).collect();
            order.sort_unstable_by_key(|e| e.0);
            for (k, (j, v)) in order.into_iter().enumerate() {
                (out.indices[begin + k], out.values[begin + k]) = (j, v);
            }
        }
        scale(&mut out.values[begin..]);
        out.ends.push(out.indices.len());
    }
}

/// Scales to length 1, also where squares would leave the range of f32; sums that left it count as its end.
fn scale(values: &mut [f32]) {
    let length = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
    let mut norm = length(values);
    if !values.is_empty() && !(1e-15..1e18).contains(&norm) {
        values.iter_mut().for_each(|v| *v = v.clamp(f32::MIN, f32::MAX));
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        values.iter_mut().for_each(|v| *v /= largest);
        norm = length(values);
    }
    values.iter_mut().for_each(|v| *v /= norm);
}
