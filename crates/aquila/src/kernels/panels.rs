//! Products of one dense row with many stored columns: what a search adds for the dense part of a query.
//!
//! Columns are stored one after another, each padded with zeros to a multiple of [`LINE`] weights, and their products
//! with the row are added to one sum per column. Four columns are multiplied at a time, so that each load of the row is
//! used four times.
//!
//! Byte columns are multiplied as integers: the row is rounded to integers from −255 to 255 with its own scale, so all
//! instruction sets give the same bits. (The error is below that of the weights, which have half as many steps.) The
//! byte instruction multiplies unsigned with signed values, so the positive and the negative part of the row are
//! processed one after the other. The bytes may come from a damaged file: any byte is a valid weight, and
//! [`DenseQuery`] leaves room for sums of the largest ones.

use super::Isa;

/// Columns are padded to a multiple of this number of weights.
pub(crate) const LINE: usize = 64;

/// How dense weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DenseKind {
    /// A signed byte, with a scale for the column.
    Byte,
    /// The upper half of an f32.
    Bf16,
    /// An f32.
    F32,
}

impl DenseKind {
    /// Bytes per weight.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The dense part of a query, prepared for multiplication with columns.
#[derive(Debug, Default)]
pub(crate) struct DenseQuery {
    /// The values, padded with zeros to a multiple of [`LINE`].
    values: Vec<f32>,
    /// The same values as integers with this scale.
    whole: Vec<i16>,
    /// For each [`LINE`] of them, the positive parts and then the negative parts.
    parts: Vec<u8>,
    scale: f32,
    any: bool,
}

impl DenseQuery {
    /// Starts a new query with zeros for this many columns; the caller fills in the values.
    pub fn start(&mut self, cols: usize) -> &mut [f32] {
        self.values.clear();
        self.values.resize(cols.next_multiple_of(LINE), 0.0);
        &mut self.values[..cols]
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        4 * self.values.capacity() + 2 * self.whole.capacity() + self.parts.capacity()
    }

    /// Prepares the values for columns of this kind.
    pub fn finish(&mut self, kind: DenseKind) {
        let most = self.values.iter().fold(0f32, |m, v| m.max(v.abs()));
        self.any = most > 0.0;
        if kind != DenseKind::Byte {
            return;
        }
        // A sum of products with bytes must fit into 32 bits: 128 · limit · length < 2³¹.
        let limit = ((i32::MAX as usize / 128) / self.values.len().max(1)).min(255) as f32;
        self.scale = most / limit;
        let inverse = if self.scale >= f32::MIN_POSITIVE { 1.0 / self.scale } else { 0.0 };
        self.whole.clear();
        self.whole.extend(self.values.iter().map(|v| {
            // Adding and subtracting 3·2²² rounds to integers, with one vector operation each.
            const ROUND: f32 = 12_582_912.0;
            ((v * inverse + ROUND) - ROUND) as i16
        }));
        self.parts.clear();
        for line in self.whole.chunks(LINE) {
            self.parts.extend(line.iter().map(|v| (*v).max(0) as u8));
            self.parts.extend(line.iter().map(|v| (-*v).max(0) as u8));
        }
    }

    /// Whether any value is not 0.
    pub fn any(&self) -> bool {
        self.any
    }
}

/// Adds to each sum the product of the query with its column. `codes` start with the first column, and `scales` are
/// those of byte columns. Columns beyond the codes are ignored.
pub(crate) fn add_columns(
    isa: Isa,
    kind: DenseKind,
    codes: &[u8],
    scales: &[[u8; 4]],
    query: &DenseQuery,
    sums: &mut [f32],
) {
    let stride = query.values.len() * kind.bytes();
    if stride == 0 {
        return;
    }
    if kind == DenseKind::Byte {
        assert!(query.whole.len() == query.values.len() && query.parts.len() == 2 * query.values.len());
    }
    let known = sums.len().min(codes.len() / stride);
    let (columns, sums) = (Columns { kind, codes, scales, stride, query }, &mut sums[..known]);
    match isa {
        // SAFETY: the instruction sets were detected; columns and query have the same length, a multiple of LINE.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if Isa::Avx512.runs_here() => unsafe {
            if kind == DenseKind::Byte && is_x86_feature_detected!("avx512vnni") {
                x86::vnni(&columns, sums);
            } else {
                x86::avx512(&columns, sums);
            }
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx2 if Isa::Avx2.runs_here() => unsafe { x86::avx2(&columns, sums) },
        _ => columns.each_four(sums, |four| four.map(|codes| scalar(kind, codes, query))),
    }
}

/// Columns to be multiplied with a query.
struct Columns<'a> {
    kind: DenseKind,
    codes: &'a [u8],
    scales: &'a [[u8; 4]],
    stride: usize,
    query: &'a DenseQuery,
}

impl Columns<'_> {
    /// Adds the result of `products`, called with four columns at a time.
    #[inline(always)]
    fn each_four(&self, sums: &mut [f32], products: impl Fn([&[u8]; 4]) -> [f32; 4]) {
        for (group, sums) in sums.chunks_mut(4).enumerate() {
            let first = 4 * group;
            // The last column replaces missing ones.
            let four = products(std::array::from_fn(|c| {
                let begin = (first + c.min(sums.len() - 1)) * self.stride;
                &self.codes[begin..begin + self.stride]
            }));
            for (c, sum) in sums.iter_mut().enumerate() {
                *sum += match self.kind {
                    DenseKind::Byte => {
                        let scale = self.scales.get(first + c).map_or(0.0, |s| f32::from_le_bytes(*s));
                        four[c] * (self.query.scale * scale)
                    }
                    _ => four[c],
                };
            }
        }
    }
}

/// The scalar version.
fn scalar(kind: DenseKind, codes: &[u8], query: &DenseQuery) -> f32 {
    let streams = |weight: &dyn Fn(usize) -> f32| {
        let mut sums = [0f32; 16];
        for (j, v) in query.values.iter().enumerate() {
            sums[j % 16] += v * weight(j);
        }
        sums.iter().sum()
    };
    match kind {
        DenseKind::Byte => {
            let products = codes.iter().zip(&query.whole).map(|(c, v)| i32::from(*c as i8) * i32::from(*v));
            products.sum::<i32>() as f32
        }
        DenseKind::Bf16 => {
            let codes = codes.as_chunks::<2>().0;
            streams(&|j| f32::from_bits(u32::from(u16::from_le_bytes(codes[j])) << 16))
        }
        DenseKind::F32 => {
            let codes = codes.as_chunks::<4>().0;
            streams(&|j| f32::from_le_bytes(codes[j]))
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Columns, DenseKind, DenseQuery, LINE};
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has AVX-512 (F, BW, DQ, VL, VNNI); columns are of bytes and as long as the query.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
    pub unsafe fn vnni(columns: &Columns<'_>, sums: &mut [f32]) {
        let parts = columns.query.parts.as_ptr();
        columns.each_four(sums, |four| {
            let codes = four.map(<[u8]>::as_ptr);
            let (mut above, mut below) = ([_mm512_setzero_si512(); 4], [_mm512_setzero_si512(); 4]);
            for j in (0..columns.stride).step_by(LINE) {
                // SAFETY: the column has `stride` bytes from each pointer, and the parts have twice as many.
                unsafe {
                    let positive = _mm512_loadu_si512(parts.add(2 * j).cast());
                    let negative = _mm512_loadu_si512(parts.add(2 * j + LINE).cast());
                    for c in 0..4 {
                        let w = _mm512_loadu_si512(codes[c].add(j).cast());
                        above[c] = _mm512_dpbusd_epi32(above[c], positive, w);
                        below[c] = _mm512_dpbusd_epi32(below[c], negative, w);
                    }
                }
            }
            whole_sums(std::array::from_fn(|c| {
                let sum = _mm512_sub_epi32(above[c], below[c]);
                _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
            }))
        });
    }

    /// # Safety
    /// The processor has AVX-512 (F, BW, DQ, VL); columns are as long as the query.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub unsafe fn avx512(columns: &Columns<'_>, sums: &mut [f32]) {
        // SAFETY: upheld by the caller.
        columns.each_four(sums, |four| unsafe { avx512_four(columns.kind, four, columns.query) });
    }

    /// # Safety
    /// The processor has AVX2 and FMA; columns are as long as the query.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2(columns: &Columns<'_>, sums: &mut [f32]) {
        // SAFETY: upheld by the caller.
        columns.each_four(sums, |four| unsafe { avx2_four(columns.kind, four, columns.query) });
    }

    /// # Safety
    /// As [`avx512`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512_four(kind: DenseKind, columns: [&[u8]; 4], query: &DenseQuery) -> [f32; 4] {
        let n = query.values.len();
        let (values, whole) = (query.values.as_ptr(), query.whole.as_ptr());
        let codes = columns.map(<[u8]>::as_ptr);
        // SAFETY: every load reads 16 or 32 weights or values at a multiple of that number below `n`.
        unsafe {
            if kind == DenseKind::Byte {
                let mut sums = [_mm512_setzero_si512(); 4];
                for j in (0..n).step_by(32) {
                    let v = _mm512_loadu_si512(whole.add(j).cast());
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        let w = _mm512_cvtepi8_epi16(_mm256_loadu_si256(codes.add(j).cast()));
                        *sum = _mm512_add_epi32(*sum, _mm512_madd_epi16(w, v));
                    }
                }
                return whole_sums(sums.map(|sum| {
                    _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum))
                }));
            }
            let mut sums = [_mm512_setzero_ps(); 4];
            for j in (0..n).step_by(16) {
                let v = _mm512_loadu_ps(values.add(j));
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    let w = if kind == DenseKind::F32 {
                        _mm512_loadu_ps(codes.add(4 * j).cast())
                    } else {
                        let halves = _mm256_loadu_si256(codes.add(2 * j).cast());
                        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
                    };
                    *sum = _mm512_fmadd_ps(v, w, *sum);
                }
            }
            sums.map(|sum| _mm512_reduce_add_ps(sum))
        }
    }

    /// # Safety
    /// As [`avx2`].
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2_four(kind: DenseKind, columns: [&[u8]; 4], query: &DenseQuery) -> [f32; 4] {
        let n = query.values.len();
        let (values, whole) = (query.values.as_ptr(), query.whole.as_ptr());
        let codes = columns.map(<[u8]>::as_ptr);
        // SAFETY: every load reads 8 or 16 weights or values at a multiple of that number below `n`.
        unsafe {
            if kind == DenseKind::Byte {
                let mut sums = [_mm256_setzero_si256(); 4];
                for j in (0..n).step_by(16) {
                    let v = _mm256_loadu_si256(whole.add(j).cast());
                    for (sum, codes) in sums.iter_mut().zip(codes) {
                        let w = _mm256_cvtepi8_epi16(_mm_loadu_si128(codes.add(j).cast()));
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(w, v));
                    }
                }
                return whole_sums(sums);
            }
            let mut sums = [_mm256_setzero_ps(); 4];
            for j in (0..n).step_by(8) {
                let v = _mm256_loadu_ps(values.add(j));
                for (sum, codes) in sums.iter_mut().zip(codes) {
                    let w = if kind == DenseKind::F32 {
                        _mm256_loadu_ps(codes.add(4 * j).cast())
                    } else {
                        let halves = _mm_loadu_si128(codes.add(2 * j).cast());
                        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
                    };
                    *sum = _mm256_fmadd_ps(v, w, *sum);
                }
            }
            sums.map(|sum| {
                let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            })
        }
    }

    /// The sums of four integer registers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn whole_sums(sums: [__m256i; 4]) -> [f32; 4] {
        let [a, b, c, d] =
            sums.map(|s| _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256::<1>(s)));
        let all = _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
        let mut out = [0f32; 4];
        // SAFETY: the array has room for four floats.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), _mm_cvtepi32_ps(all)) };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::xlinear::{DenseCodes, WeightKind};

    const KINDS: [WeightKind; 3] = [WeightKind::Byte, WeightKind::Bf16, WeightKind::F32];

    fn numbers(rng: &mut Rng, n: usize) -> Vec<f32> {
        (0..n).map(|_| rng.below(2001) as f32 * 0.001 - 1.0).collect()
    }

    #[test]
    fn every_set_equals_a_plain_sum() {
        let mut rng = Rng::new(&[7]);
        for (cols, columns) in [(1, 1), (5, 3), (31, 4), (32, 9), (33, 16), (100, 21), (384, 7), (1500, 2)] {
            let row = numbers(&mut rng, cols);
            let weights: Vec<Vec<f32>> = (0..columns).map(|_| numbers(&mut rng, cols)).collect();
            for kind in KINDS {
                let form = DenseCodes::new(kind, cols);
                let mut codes = Vec::new();
                let scales: Vec<[u8; 4]> =
                    weights.iter().map(|w| form.encode(w, &mut codes).to_le_bytes()).collect();
                assert_eq!(codes.len(), columns * form.stride());
                let mut query = DenseQuery::default();
                query.start(cols).copy_from_slice(&row);
                query.finish(form.kind());
                let mut first = Vec::new();
                for isa in Isa::available() {
                    let mut sums = vec![0.5; columns];
                    add_columns(isa, form.kind(), &codes, &scales, &query, &mut sums);
                    for (sum, w) in sums.iter().zip(&weights) {
                        let want: f64 = row.iter().zip(w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                        // A weight is off by half a step: 1/254 of 1, 1/512 of itself, or nothing; a value of the row
                        // by 1/510.
                        let error = match kind {
                            WeightKind::Byte => 0.0065,
                            WeightKind::Bf16 => 0.002,
                            WeightKind::F32 => 1e-6,
                        };
                        let most = error * row.iter().map(|v| v.abs()).sum::<f32>() + 1e-4;
                        assert!(
                            (f64::from(*sum) - 0.5 - want).abs() < f64::from(most),
                            "{isa:?} {kind:?} {cols}"
                        );
                    }
                    if kind == WeightKind::Byte && !first.is_empty() {
                        assert_eq!(first, sums, "{isa:?} {cols}: whole numbers have one sum");
                    }
                    first = sums;
                }
            }
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        for cols in [384, 4096, 70_000] {
            let mut query = DenseQuery::default();
            query.start(cols).fill(-3.0);
            query.finish(DenseKind::Byte);
            let codes = vec![0x80; cols.next_multiple_of(LINE)];
            for isa in Isa::available() {
                let mut sums = [0.0];
                add_columns(isa, DenseKind::Byte, &codes, &[1f32.to_le_bytes()], &query, &mut sums);
                let want = 384.0 * cols as f32;
                assert!((sums[0] - want).abs() < 1e-3 * want, "{isa:?} {cols}: {} not {want}", sums[0]);
            }
        }
    }

    #[test]
    fn zeros_tiny_numbers_and_missing_columns_add_nothing() {
        let form = DenseCodes::new(WeightKind::Byte, 40);
        let mut codes = Vec::new();
        assert_eq!(form.encode(&[0.0; 40], &mut codes), 0.0);
        form.encode(&[1e-44; 40], &mut codes);
        assert!(codes.iter().all(|c| *c == 0));
        let mut query = DenseQuery::default();
        query.start(40);
        query.finish(form.kind());
        assert!(!query.any());
        query.start(40).fill(1e-42);
        query.finish(form.kind());
        for isa in Isa::available() {
            let mut sums = [1.0; 5];
            add_columns(isa, form.kind(), &codes, &[], &query, &mut sums);
            assert_eq!(sums, [1.0; 5]);
        }
    }
}
