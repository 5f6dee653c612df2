//! Products of a sparse row with two dense vectors at once, whose entries stand side by side.

use super::Isa;
use super::dcd::Entries;
use std::ops::Range;

/// `⟨row, a⟩` and `⟨row, b⟩` of the entries `span`, where `pairs[j] = [a_j, b_j]`.
///
/// # Panics
/// If the entries have more columns than there are pairs, or the span ends behind them.
#[inline]
pub(crate) fn dot_pairs(isa: Isa, entries: &Entries<'_>, span: Range<usize>, pairs: &[[f32; 2]]) -> [f64; 2] {
    let (idx, val) = entries.slices(span);
    assert!(entries.cols() <= pairs.len());
    #[cfg(target_arch = "x86_64")]
    if isa >= Isa::Avx2 && Isa::Avx2.runs_here() {
        // SAFETY: the instruction set was detected; entries' ids are below `cols`, so below the number of pairs.
        return unsafe { avx2(idx, val, pairs) };
    }
    let _ = isa;
    scalar(idx, val, pairs)
}

/// Four streams, so that additions need not wait for each other.
fn scalar(idx: &[u32], val: &[f32], pairs: &[[f32; 2]]) -> [f64; 2] {
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
    [0, 1].map(|i| streams.iter().map(|s| f64::from(s[i])).sum())
}

/// A pair is loaded as one number of 64 bits; four streams of two sums. (Gathers of eight pairs are no faster where
/// the pairs come from far caches: their many steps leave fewer loads under way.)
///
/// # Safety
/// The processor has AVX2 and FMA; `idx` and `val` are equally long and ids below the number of pairs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(idx: &[u32], val: &[f32], pairs: &[[f32; 2]]) -> [f64; 2] {
    use std::arch::x86_64::*;
    let mut sums = [_mm_setzero_ps(); 4];
    // SAFETY: `j` is below the number of pairs, by the caller; a pair has 8 bytes.
    let pair = |j: u32| unsafe { _mm_castpd_ps(_mm_load_sd(pairs.as_ptr().add(j as usize).cast())) };
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
    [_mm_cvtss_f32(sum), _mm_cvtss_f32(_mm_shuffle_ps::<1>(sum, sum))].map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_set_equals_a_plain_sum() {
        let mut rng = Rng::new(&[4]);
        let mut number = || rng.below(1000) as f32 * 0.01 - 5.0;
        let pairs: Vec<[f32; 2]> = (0..50).map(|_| [number(), number()]).collect();
        for n in 0..40u32 {
            let idx: Vec<u32> = (0..n).map(|j| j * 7 % 50).collect();
            let val: Vec<f32> = (0..n).map(|_| number()).collect();
            let entries = Entries::new(&idx, &val, 50);
            let mut want = [0f64; 2];
            for (j, v) in idx.iter().zip(&val) {
                (0..2).for_each(|i| want[i] += f64::from(pairs[*j as usize][i]) * f64::from(*v));
            }
            for isa in Isa::available() {
                let got = dot_pairs(isa, &entries, 0..n as usize, &pairs);
                for (a, b) in got.iter().zip(want) {
                    assert!((a - b).abs() < 1e-3, "{isa:?} {n}: {a}, not {b}");
                }
            }
        }
    }
}
