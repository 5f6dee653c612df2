//! Products of sparse rows with two dense vectors at once, whose entries are interleaved.

use super::Isa;
use super::row_subset::RowSubset;

/// `[⟨row, a⟩, ⟨row, b⟩]` for each row, where `pairs[j] = [a_j, b_j]`.
///
/// # Panics
/// If the rows have more columns than there are pairs, or `out` does not have one element per row.
pub(crate) fn dots(isa: Isa, rows: RowSubset<'_>, pairs: &[[f32; 2]], out: &mut [[f32; 2]]) {
    assert!(rows.entries.cols() <= pairs.len() && rows.rows.len() == out.len());
    #[cfg(target_arch = "x86_64")]
    if isa >= Isa::Avx2 && Isa::Avx2.runs_here() {
        // SAFETY: the instruction set was detected; column ids are below `cols` and thus below the number of pairs.
        unsafe { avx2(rows, pairs, out) };
        return;
    }
    let _ = isa;
    for (n, out) in out.iter_mut().enumerate() {
        rows.prefetch_after(n);
        let (idx, val) = rows.row(n);
        *out = scalar(idx, val, pairs);
    }
}

/// Uses four independent streams of sums.
fn scalar(idx: &[u32], val: &[f32], pairs: &[[f32; 2]]) -> [f32; 2] {
    let mut streams = [[0f32; 2]; 4];
    let (quads, rest) = idx.as_chunks::<4>();
    let (weights, tail) = val.as_chunks::<4>();
    let mut add = |stream: usize, j: u32, v: f32| {
        let [a, b] = pairs[j as usize];
        streams[stream][0] += a * v;
        streams[stream][1] += b * v;
    };
    for (j, v) in quads.iter().zip(weights) {
        (0..4).for_each(|k| add(k, j[k], v[k]));
    }
    rest.iter().zip(tail).for_each(|(j, v)| add(0, *j, *v));
    [0, 1].map(|i| (streams[0][i] + streams[1][i]) + (streams[2][i] + streams[3][i]))
}

/// A pair is loaded as one 64-bit number; there are four streams of two sums. (Gathers of eight pairs are no faster
/// where the pairs come from far caches: their many steps leave fewer loads in flight.)
///
/// # Safety
/// The processor has AVX2 and FMA; column ids of the rows are below the number of pairs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(rows: RowSubset<'_>, pairs: &[[f32; 2]], out: &mut [[f32; 2]]) {
    use std::arch::x86_64::*;
    // SAFETY: the caller guarantees that `j` is below the number of pairs; a pair has 8 bytes.
    let pair = |j: u32| unsafe { _mm_castpd_ps(_mm_load_sd(pairs.as_ptr().add(j as usize).cast())) };
    for (n, out) in out.iter_mut().enumerate() {
        rows.prefetch_after(n);
        let (idx, val) = rows.row(n);
        let mut sums = [_mm_setzero_ps(); 4];
        let (quads, rest) = idx.as_chunks::<4>();
        let (weights, tail) = val.as_chunks::<4>();
        for (j, v) in quads.iter().zip(weights) {
            for k in 0..4 {
                sums[k] = _mm_fmadd_ps(pair(j[k]), _mm_set1_ps(v[k]), sums[k]);
            }
        }
        for (j, v) in rest.iter().zip(tail) {
            sums[0] = _mm_fmadd_ps(pair(*j), _mm_set1_ps(*v), sums[0]);
        }
        let sum = _mm_add_ps(_mm_add_ps(sums[0], sums[1]), _mm_add_ps(sums[2], sums[3]));
        *out = [_mm_cvtss_f32(sum), _mm_cvtss_f32(_mm_shuffle_ps::<1>(sum, sum))];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dcd::Entries;
    use crate::rng::Rng;

    #[test]
    fn every_set_equals_plain_sums() {
        let mut rng = Rng::new(&[4]);
        let mut number = || rng.below(1000) as f32 * 0.01 - 5.0;
        let pairs: Vec<[f32; 2]> = (0..50).map(|_| [number(), number()]).collect();
        // Row n has n entries.
        let starts: Vec<usize> = (0..=40usize).map(|n| n * n.saturating_sub(1) / 2).collect();
        let idx: Vec<u32> = (0..40u32).flat_map(|n| (0..n).map(|j| j * 7 % 50)).collect();
        let val: Vec<f32> = idx.iter().map(|_| number()).collect();
        let entries = Entries::new(&idx, &val, 50);
        let rows: Vec<u32> = (0..40).rev().chain([7, 7, 0]).collect();
        for isa in Isa::available() {
            let mut got = vec![[0.0; 2]; rows.len()];
            dots(isa, RowSubset { entries: &entries, starts: &starts, rows: &rows }, &pairs, &mut got);
            for (n, got) in rows.iter().zip(got) {
                let mut want = [0f64; 2];
                let span = starts[*n as usize]..starts[*n as usize + 1];
                assert_eq!(span.len(), *n as usize);
                for (j, v) in idx[span.clone()].iter().zip(&val[span]) {
                    (0..2).for_each(|i| want[i] += f64::from(pairs[*j as usize][i]) * f64::from(*v));
                }
                for (a, b) in got.iter().zip(want) {
                    assert!((f64::from(*a) - b).abs() < 1e-3, "{isa:?} {n}: {a}, not {b}");
                }
            }
        }
    }
}
