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
    if isa == Isa::Avx512 && Isa::Avx512.runs_here() && pairs.len() <= i32::MAX as usize {
        // SAFETY: the instruction set was detected; entries' ids are below `cols`, so below the number of pairs.
        return unsafe { avx512(idx, val, pairs) };
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

/// Eight pairs at a time: a pair is gathered as one number of 64 bits.
///
/// # Safety
/// The processor has AVX-512 (F, VL); `idx` and `val` are equally long, ids are below the number of pairs, and that
/// is below 2³¹.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn avx512(idx: &[u32], val: &[f32], pairs: &[[f32; 2]]) -> [f64; 2] {
    use std::arch::x86_64::*;
    let twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    let mut sum = [_mm512_setzero_ps(); 2];
    let n = idx.len();
    for (k, j) in (0..n).step_by(8).enumerate() {
        let mask = if n - j >= 8 { 0xff } else { (1u8 << (n - j)) - 1 };
        // SAFETY: masked loads touch the first `n - j` of eight elements from `j`, no more; gathered places are
        // those of ids, by the caller.
        unsafe {
            let at = _mm256_maskz_loadu_epi32(mask, idx.as_ptr().add(j).cast());
            let v = _mm512_castps256_ps512(_mm256_maskz_loadu_ps(mask, val.as_ptr().add(j)));
            let of = _mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), mask, at, pairs.as_ptr().cast());
            let v = _mm512_permutexvar_ps(twice, v);
            sum[k % 2] = _mm512_fmadd_ps(_mm512_castpd_ps(of), v, sum[k % 2]);
        }
    }
    let sum = _mm512_add_ps(sum[0], sum[1]);
    [0x5555, 0xaaaa].map(|lanes| f64::from(_mm512_mask_reduce_add_ps(lanes, sum)))
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
