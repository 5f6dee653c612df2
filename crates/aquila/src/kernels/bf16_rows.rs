//! Dense rows with two bytes per value; products are bit-identical on every machine.
//!
//! k-means decides by comparisons, and a difference in the last bit can lead to another tree. Therefore sums use 16
//! lanes on every instruction set, products are not fused with sums, and lanes are added up in one order. Rows are
//! rounded to [`bf16`] values because k-means over dense rows is limited by memory bandwidth; the vectors that they are
//! multiplied with or added to are f32.
//!
//! 32 columns are a line of 16 pairs: pair k holds column k in its low half and column 16 + k in its high half, so that
//! a line is two runs of floats.

use super::lanes::{Lanes, Work, dispatch};
use super::{Isa, bf16, prefetch_line};
use rayon::prelude::*;

/// Pairs per line.
const LANES: usize = 16;
/// Columns per line.
pub const LINE: usize = 2 * LANES;

/// 32 columns of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line([u32; LANES]);

/// Rows of equal length, padded with zeros to whole lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bf16Rows {
    lines: Vec<Line>,
    rows: usize,
    per_row: usize,
}

impl Bf16Rows {
    /// Rows of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let per_row = cols.div_ceil(LINE);
        Self { lines: vec![Line([0; LANES]); rows * per_row], rows, per_row }
    }

    /// Number of columns, including padding.
    pub fn cols(&self) -> usize {
        self.per_row * LINE
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[Line] {
        &self.lines[i * self.per_row..(i + 1) * self.per_row]
    }

    /// All rows, for writing in parallel; none if they have no columns.
    pub fn rows_mut(&mut self) -> impl IndexedParallelIterator<Item = &mut [Line]> {
        self.lines.par_chunks_exact_mut(self.per_row.max(1))
    }
}

/// Rounds values, each times this factor, and stores them in a row.
pub fn round(values: &[f32], factor: f32, row: &mut [Line]) {
    for (line, values) in row.iter_mut().zip(values.chunks(LINE)) {
        let at = |k: usize| values.get(k).map_or(0.0, |v| v * factor);
        line.0 = std::array::from_fn(|k| bf16::pack(at(k), at(LANES + k)));
    }
}

/// The values of a row.
pub fn values(row: &[Line]) -> impl Iterator<Item = f32> {
    row.iter().flat_map(|line| [0, 1].into_iter().flat_map(|run| line.0.map(|pair| bf16::unpack(pair)[run])))
}

impl Bf16Rows {
    /// `⟨row, vector⟩` for each of these rows.
    ///
    /// # Panics
    /// If a row does not exist, the vector has another number of columns, or `out` does not have one element per row.
    pub fn dots(&self, isa: Isa, rows: &[u32], vector: &[f32], out: &mut [f32]) {
        assert!(self.has(rows) && vector.len() == self.cols() && out.len() == rows.len());
        dispatch(isa, LANES, Dots { block: self, rows, vector, out });
    }

    /// `vector += factor · row` for each of these rows, in order.
    ///
    /// # Panics
    /// If a row does not exist, or the vector has another number of columns.
    pub fn add(&self, isa: Isa, rows: &[(u32, f32)], vector: &mut [f32]) {
        assert!(rows.iter().all(|(i, _)| self.has(&[*i])) && vector.len() == self.cols());
        dispatch(isa, LANES, Add { block: self, rows, vector });
    }

    /// `scores[c] += ⟨row, centre c⟩` for each of these rows and `k` centres, whose values are interleaved by column.
    ///
    /// # Panics
    /// If a row does not exist, a centre has another number of columns, or there are not `k` scores per row.
    pub fn add_scores(&self, isa: Isa, rows: &[u32], centres: &[f32], k: usize, scores: &mut [f32]) {
        assert!(self.has(rows) && self.cols() * k == centres.len() && rows.len() * k == scores.len());
        if k > 0 {
            dispatch(isa, LANES, Scores { block: self, rows, centres, k, scores });
        }
    }

    fn has(&self, rows: &[u32]) -> bool {
        rows.iter().all(|i| (*i as usize) < self.rows)
    }

    fn at(&self, i: u32) -> *const Line {
        self.lines.as_ptr().wrapping_add(i as usize * self.per_row)
    }
}

/// `vector += factor · values`, with values that are not rounded.
///
/// # Panics
/// If the numbers of values differ.
pub fn add_floats(isa: Isa, factor: f32, values: &[f32], vector: &mut [f32]) {
    assert!(values.len() == vector.len());
    dispatch(isa, LANES, Floats { factor, values, vector });
}

/// How many rows ahead to prefetch: they come in random order.
const AHEAD: usize = 3;

struct Dots<'a> {
    block: &'a Bf16Rows,
    rows: &'a [u32],
    vector: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Dots<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { block, rows, vector, out } = self;
        for (n, (i, out)) in rows.iter().zip(out).enumerate() {
            let (row, ahead) = (block.at(*i), block.at(rows[(n + AHEAD).min(rows.len() - 1)]));
            let mut sums = [0f32; LANES];
            // SAFETY: `dots` checked that the block has the row and that the vector has its columns; `V` has 16 lanes.
            unsafe {
                let (mut low, mut high) = (V::splat(0.0), V::splat(0.0));
                for line in 0..block.per_row {
                    prefetch_line(ahead.wrapping_add(line));
                    let (pairs, run) = (V::load(row.add(line).cast()), vector.as_ptr().add(line * LINE));
                    low = low.add(pairs.low().mul(V::load(run)));
                    high = high.add(pairs.high().mul(V::load(run.add(LANES))));
                }
                low.add(high).store(sums.as_mut_ptr());
            }
            // In a fixed order: registers would add up their lanes in different orders.
            for width in [8, 4, 2, 1] {
                for k in 0..width {
                    sums[k] += sums[k + width];
                }
            }
            *out = sums[0];
        }
    }
}

/// Number of rows that share the loads and stores of the vector.
const TOGETHER: usize = 4;

struct Add<'a> {
    block: &'a Bf16Rows,
    rows: &'a [(u32, f32)],
    vector: &'a mut [f32],
}

impl Add<'_> {
    /// # Safety
    /// As in [`Work`]; the block has these rows.
    #[inline(always)]
    unsafe fn some<V: Lanes, const N: usize>(&mut self, rows: &[(u32, f32); N], ahead: &[(u32, f32)]) {
        let at = rows.map(|(i, _)| self.block.at(i));
        // SAFETY: upheld by the caller; `add` checked that the vector has the block's columns; `V` has 16 lanes.
        unsafe {
            let mut factors = [V::splat(0.0); N];
            for (factor, row) in factors.iter_mut().zip(rows) {
                *factor = V::splat(row.1);
            }
            for line in 0..self.block.per_row {
                ahead.iter().for_each(|(i, _)| prefetch_line(self.block.at(*i).wrapping_add(line)));
                let run = self.vector.as_mut_ptr().add(line * LINE);
                let (mut low, mut high) = (V::load(run), V::load(run.add(LANES)));
                for (row, factor) in at.iter().zip(factors) {
                    let pairs = V::load(row.add(line).cast());
                    low = low.add(pairs.low().mul(factor));
                    high = high.add(pairs.high().mul(factor));
                }
                low.store(run);
                high.store(run.add(LANES));
            }
        }
    }
}

impl Work for Add<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let (groups, rest) = self.rows.as_chunks::<TOGETHER>();
        for (n, group) in groups.iter().enumerate() {
            let ahead = groups.get(n + 1).map_or(rest, |next| next.as_slice());
            // SAFETY: `add` checked the rows; here and below.
            unsafe { self.some::<V, TOGETHER>(group, ahead) };
        }
        for row in rest {
            // SAFETY: as above.
            unsafe { self.some::<V, 1>(&[*row], &[]) };
        }
    }
}

struct Scores<'a> {
    block: &'a Bf16Rows,
    rows: &'a [u32],
    centres: &'a [f32],
    /// Number of centres.
    k: usize,
    scores: &'a mut [f32],
}

/// Number of rows that share the loads of centres, and number of registers of centres that share the loads of rows.
const BATCH: usize = 4;
const REGISTERS: usize = 2;

impl Scores<'_> {
    /// The scores of `R` rows starting at `row`, for `N` registers of centres starting at `first`.
    ///
    /// # Safety
    /// As in [`Work`]; these rows and centres exist.
    #[inline(always)]
    unsafe fn some<V: Lanes, const R: usize, const N: usize>(&mut self, row: usize, first: usize) {
        let Self { block, rows, k, .. } = *self;
        // SAFETY: upheld by the caller; `add_scores` checked the rows and that there is a line of centres for each
        // column.
        unsafe {
            let to: [*mut f32; R] =
                std::array::from_fn(|r| self.scores.as_mut_ptr().add((row + r) * k + first));
            let from: [&[Line]; R] = std::array::from_fn(|r| block.row(rows[row + r] as usize));
            let mut sums = [[V::splat(0.0); N]; R];
            for (sums, to) in sums.iter_mut().zip(to) {
                for (n, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(to.add(n * V::N));
                }
            }
            let mut at = self.centres.as_ptr().add(first);
            for line in 0..block.per_row {
                for run in 0..2 {
                    for pair in 0..LANES {
                        let mut centres = [V::splat(0.0); N];
                        for (n, centres) in centres.iter_mut().enumerate() {
                            *centres = V::load(at.wrapping_add(n * V::N));
                        }
                        for (sums, from) in sums.iter_mut().zip(from) {
                            let v = V::splat(bf16::unpack(from[line].0[pair])[run]);
                            for (sum, c) in sums.iter_mut().zip(centres) {
                                *sum = sum.add(v.mul(c));
                            }
                        }
                        at = at.wrapping_add(k);
                    }
                }
            }
            for (sums, to) in sums.iter().zip(to) {
                for (n, sum) in sums.iter().enumerate() {
                    sum.store(to.add(n * V::N));
                }
            }
        }
    }

    /// The scores of `R` rows starting at `row`.
    ///
    /// # Safety
    /// As in [`Work`]; these rows exist.
    #[inline(always)]
    unsafe fn all<V: Lanes, const R: usize>(&mut self, row: usize) {
        let (k, mut first) = (self.k, 0);
        while first + REGISTERS * V::N <= k {
            // SAFETY: at least this many centres are left, here and below.
            unsafe { self.some::<V, R, REGISTERS>(row, first) };
            first += REGISTERS * V::N;
        }
        while first + V::N <= k {
            // SAFETY: as above.
            unsafe { self.some::<V, R, 1>(row, first) };
            first += V::N;
        }
        for row in row..row + R {
            let rest = &mut self.scores[row * k..][first..k];
            let from = self.block.row(self.rows[row] as usize);
            for (v, line) in values(from).zip(self.centres.chunks_exact(k)) {
                rest.iter_mut().zip(&line[first..]).for_each(|(s, c)| *s += v * c);
            }
        }
    }
}

impl Work for Scores<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let mut row = 0;
        while row + BATCH <= self.rows.len() {
            // SAFETY: at least this many rows are left, here and below.
            unsafe { self.all::<V, BATCH>(row) };
            row += BATCH;
        }
        while row < self.rows.len() {
            // SAFETY: as above.
            unsafe { self.all::<V, 1>(row) };
            row += 1;
        }
    }
}

struct Floats<'a> {
    factor: f32,
    values: &'a [f32],
    vector: &'a mut [f32],
}

impl Work for Floats<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let (runs, rest) = self.vector.as_chunks_mut::<LANES>();
        let (values, tail) = self.values.as_chunks::<LANES>();
        for (run, v) in runs.iter_mut().zip(values) {
            // SAFETY: both have 16 floats, one for each lane of `V`.
            unsafe {
                let sum = V::load(run.as_ptr()).add(V::load(v.as_ptr()).mul(V::splat(self.factor)));
                sum.store(run.as_mut_ptr());
            }
        }
        rest.iter_mut().zip(tail).for_each(|(sum, v)| *sum += self.factor * v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn numbers(rng: &mut Rng, n: usize) -> Vec<f32> {
        (0..n).map(|_| rng.below(2001) as f32 * 0.001 - 1.0).collect()
    }

    fn rounded(rows: &[Vec<f32>], cols: usize) -> Bf16Rows {
        let mut out = Bf16Rows::zeros(rows.len(), cols);
        out.rows_mut().zip(rows).for_each(|(to, row)| round(row, 1.0, to));
        out
    }

    #[test]
    fn every_set_has_the_bits_of_the_scalar_twin_and_the_sums_of_a_plain_one() {
        let mut rng = Rng::new(&[3]);
        for cols in [0, 1, 15, 16, 17, 31, 32, 33, 100, 384] {
            let rows: Vec<Vec<f32>> = (0..6).map(|_| numbers(&mut rng, cols)).collect();
            let block = rounded(&rows, cols);
            let whole: Vec<Vec<f32>> = (0..rows.len()).map(|i| values(block.row(i)).collect()).collect();
            for (whole, floats) in whole.iter().zip(&rows) {
                assert_eq!(whole.len(), block.cols());
                for (j, v) in whole.iter().enumerate() {
                    let want = floats.get(j).copied().unwrap_or(0.0);
                    assert!((v - want).abs() <= want.abs() / 256.0, "{v}, not {want}");
                }
            }
            let (vector, plain) = (numbers(&mut rng, block.cols()), numbers(&mut rng, cols));
            // More rows and centres than the registers process at a time, and fewer.
            let (some, factors) = ([4u32, 0, 2, 2, 5, 1, 3], [1.0f32, -1.0, 0.3, 1.0, -1.0, 1.0, 0.7]);
            let moved: Vec<(u32, f32)> = some.into_iter().zip(factors).collect();
            let k = [1, 5, 16, 48, 100][cols % 5];
            let centres = numbers(&mut rng, block.cols() * k);
            let of = |isa| {
                let (mut sum, mut scores, mut floats) = (vector.clone(), vec![0.5; 7 * k], plain.clone());
                let mut products = [0f32; 7];
                block.add(isa, &moved, &mut sum);
                block.dots(isa, &some, &vector, &mut products);
                block.add_scores(isa, &some, &centres, k, &mut scores);
                add_floats(isa, 0.7, &rows[0], &mut floats);
                (products, sum, scores, floats)
            };
            let twin = of(Isa::Scalar);
            for isa in Isa::available() {
                assert_eq!(of(isa), twin, "{isa:?}, {cols} columns");
            }
            let (products, sum, scores, floats) = twin;
            let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-4, "{cols} columns: {a}, not {b}");
            let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            for (i, got) in some.iter().zip(products) {
                near(got, product(&whole[*i as usize], &vector));
            }
            for j in 0..block.cols() {
                near(sum[j], moved.iter().fold(vector[j], |s, (i, f)| s + f * whole[*i as usize][j]));
            }
            for (at, score) in scores.iter().enumerate() {
                let centre: Vec<f32> = (0..block.cols()).map(|j| centres[j * k + at % k]).collect();
                near(*score, 0.5 + product(&whole[some[at / k] as usize], &centre));
            }
            for j in 0..cols {
                near(floats[j], plain[j] + 0.7 * rows[0][j]);
            }
        }
    }
}
