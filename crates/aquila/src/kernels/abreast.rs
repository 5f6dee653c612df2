//! Sparse rows against sixteen dense vectors that stand side by side, a cache line of their floats for each column.
//!
//! An entry costs one load, one broadcast and one fused multiply-add for all sixteen, as in the solver ([`super::dcd`]).

use super::dcd::Entries;
use super::lanes::{Lanes, Work, dispatch};
use super::{Isa, prefetch_line};
use std::ops::Range;

/// How many vectors.
pub(crate) const ABREAST: usize = 16;

/// How far ahead rows are asked from memory.
const ROWS_AHEAD: usize = 4;

/// Rows among the entries of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picked<'a> {
    /// The entries of all rows.
    pub entries: &'a Entries<'a>,
    /// Where each row's entries begin, and where the last row's end.
    pub starts: &'a [usize],
    /// The rows picked.
    pub rows: &'a [u32],
}

impl Picked<'_> {
    #[inline(always)]
    fn row(&self, n: usize) -> (&[u32], &[f32]) {
        let i = self.rows[n] as usize;
        self.entries.slices(self.starts[i]..self.starts[i + 1])
    }

    /// Asks the caches for what will be needed soon: rows come in no order, nor do lines, and neither fit the near ones.
    #[inline(always)]
    fn prefetch(&self, n: usize, table: &[f32]) {
        if n + ROWS_AHEAD < self.rows.len() {
            let (idx, val) = self.row(n + ROWS_AHEAD);
            for j in (0..idx.len()).step_by(16) {
                prefetch_line(idx.as_ptr().wrapping_add(j));
                prefetch_line(val.as_ptr().wrapping_add(j));
            }
        }
        if n + 1 < self.rows.len() {
            let (idx, _) = self.row(n + 1);
            idx.iter().for_each(|j| prefetch_line(table.as_ptr().wrapping_add(*j as usize * ABREAST)));
        }
    }

    fn fits(&self, table: &[f32], lines: &[f32]) {
        assert!(table.len() >= ABREAST * self.entries.cols() && lines.len() == ABREAST * self.rows.len());
    }
}

/// The products of each row with each vector of the table, a line for each row.
///
/// # Panics
/// If the table has fewer lines than there are columns, or `out` not as many as rows.
pub(crate) fn products(isa: Isa, rows: Picked<'_>, table: &[f32], out: &mut [f32]) {
    rows.fits(table, out);
    dispatch(isa, ABREAST, Products { rows, table, out });
}

struct Products<'a> {
    rows: Picked<'a>,
    table: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Products<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, table, out } = self;
        for (n, out) in out.chunks_exact_mut(ABREAST).enumerate() {
            let (idx, val) = rows.row(n);
            rows.prefetch(n, table);
            // SAFETY: `Entries::new` checked that ids are below the number of columns and `fits` that the table has a
            // line for each; `out` is a line. `V` is the dispatcher's.
            unsafe {
                let at = |j: u32| V::load(table.as_ptr().add(j as usize * ABREAST));
                let mut sums = [V::splat(0.0); 4];
                let (quads, rest) = idx.as_chunks::<4>();
                let (weights, tail) = val.as_chunks::<4>();
                for (j, v) in quads.iter().zip(weights) {
                    for k in 0..4 {
                        sums[k] = V::splat(v[k]).mul_add(at(j[k]), sums[k]);
                    }
                }
                for (j, v) in rest.iter().zip(tail) {
                    sums[0] = V::splat(*v).mul_add(at(*j), sums[0]);
                }
                sums[0].add(sums[1]).add(sums[2].add(sums[3])).store(out.as_mut_ptr());
            }
        }
    }
}

/// Adds each row to each vector of the table, times what its line of `factors` says for the vector.
///
/// # Panics
/// If the table has fewer lines than there are columns, or `factors` not as many as rows.
pub(crate) fn add(isa: Isa, rows: Picked<'_>, factors: &[f32], table: &mut [f32]) {
    rows.fits(table, factors);
    dispatch(isa, ABREAST, Add { rows, factors, table });
}

struct Add<'a> {
    rows: Picked<'a>,
    factors: &'a [f32],
    table: &'a mut [f32],
}

impl Work for Add<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, factors, table } = self;
        for (n, factors) in factors.chunks_exact(ABREAST).enumerate() {
            let (idx, val) = rows.row(n);
            rows.prefetch(n, table);
            // SAFETY: as in `Products`; ids within a row differ, so no store is lost.
            unsafe {
                let factors = V::load(factors.as_ptr());
                for (j, v) in idx.iter().zip(val) {
                    let line = table.as_mut_ptr().add(*j as usize * ABREAST);
                    V::splat(*v).mul_add(factors, V::load(line)).store(line);
                }
            }
        }
    }
}

/// Moves the scores of a group's rows by `steps · pulls`, and says of each row in which lanes it comes within `ties` of
/// the group's best: a bit for each.
///
/// # Panics
/// If there is not a line of scores and of pulls for each row of the group.
pub(crate) fn lead(
    isa: Isa,
    (scores, pulls): (&mut [f32], &[f32]),
    groups: &[Range<usize>],
    [steps, ties]: [&[f32; ABREAST]; 2],
    leaders: &mut [u32],
) {
    assert!(scores.len() == ABREAST * leaders.len() && pulls.len() == scores.len());
    assert!(groups.iter().all(|g| g.end <= leaders.len()));
    dispatch(isa, ABREAST, Lead { scores, pulls, groups, steps, ties, leaders });
}

struct Lead<'a> {
    scores: &'a mut [f32],
    pulls: &'a [f32],
    groups: &'a [Range<usize>],
    steps: &'a [f32; ABREAST],
    ties: &'a [f32; ABREAST],
    leaders: &'a mut [u32],
}

impl Work for Lead<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { scores, pulls, groups, steps, ties, leaders } = self;
        // SAFETY: `lead` checked that there is a line of scores and of pulls for each row of each group. `V` is the
        // dispatcher's.
        unsafe {
            let (steps, ties) = (V::load(steps.as_ptr()), V::load(ties.as_ptr()));
            for group in groups {
                let mut best = V::splat(f32::NEG_INFINITY);
                for i in group.clone() {
                    let score = scores.as_mut_ptr().add(i * ABREAST);
                    let moved = steps.mul_add(V::load(pulls.as_ptr().add(i * ABREAST)), V::load(score));
                    moved.store(score);
                    best = best.max(moved);
                }
                let least = best.sub(ties);
                for i in group.clone() {
                    *leaders.get_unchecked_mut(i) =
                        !V::load(scores.as_ptr().add(i * ABREAST)).less(least) & 0xffff;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_set_equals_plain_sums() {
        let mut rng = Rng::new(&[7]);
        let mut number = || rng.below(1000) as f32 * 0.01 - 5.0;
        let cols = 60;
        let starts: Vec<usize> = (0..12).map(|n| n * (n + 1) / 2).collect();
        let idx: Vec<u32> = (0..66).map(|j| j * 7 % 60).collect();
        let val: Vec<f32> = (0..66).map(|_| number()).collect();
        let entries = Entries::new(&idx, &val, cols);
        let rows = [10u32, 0, 3, 7, 7, 9];
        let picked = Picked { entries: &entries, starts: &starts, rows: &rows };
        let factors: Vec<f32> = (0..6 * ABREAST).map(|_| number()).collect();
        let before: Vec<f32> = (0..cols * ABREAST).map(|_| number()).collect();
        let mut added: Vec<f64> = before.iter().map(|v| f64::from(*v)).collect();
        let mut want = vec![0f64; 6 * ABREAST];
        for (n, i) in rows.iter().enumerate() {
            for at in starts[*i as usize]..starts[*i as usize + 1] {
                for l in 0..ABREAST {
                    let place = idx[at] as usize * ABREAST + l;
                    want[n * ABREAST + l] += f64::from(before[place]) * f64::from(val[at]);
                    added[place] += f64::from(factors[n * ABREAST + l]) * f64::from(val[at]);
                }
            }
        }
        let close = |a: &[f32], b: &[f64]| a.iter().zip(b).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-3);
        for isa in Isa::available() {
            let (mut out, mut table) = (vec![0.0; 6 * ABREAST], before.clone());
            products(isa, picked, &before, &mut out);
            assert!(close(&out, &want), "{isa:?}");
            add(isa, picked, &factors, &mut table);
            assert!(close(&table, &added), "{isa:?}");
        }
    }

    #[test]
    fn every_set_finds_the_leaders_of_each_group() {
        let mut rng = Rng::new(&[8]);
        // Halves, so that no sum is rounded and there are ties.
        let mut number = || rng.below(9) as f32 * 0.5 - 2.0;
        let rows = 40;
        let groups = [0..3, 3..3, 3..4, 4..29, 29..40];
        let before: Vec<f32> = (0..rows * ABREAST).map(|_| number()).collect();
        let pulls: Vec<f32> = (0..rows * ABREAST).map(|_| number()).collect();
        let steps: [f32; ABREAST] = std::array::from_fn(|_| number());
        let ties: [f32; ABREAST] = std::array::from_fn(|l| l as f32 * 0.25);
        for isa in Isa::available() {
            let (mut scores, mut leaders) = (before.clone(), vec![7; rows]);
            lead(isa, (&mut scores, &pulls), &groups, [&steps, &ties], &mut leaders);
            for group in &groups {
                for l in 0..ABREAST {
                    let of = |i: usize| before[i * ABREAST + l] + steps[l] * pulls[i * ABREAST + l];
                    let best = group.clone().map(of).fold(f32::NEG_INFINITY, f32::max);
                    for i in group.clone() {
                        assert_eq!(scores[i * ABREAST + l], of(i), "{isa:?}");
                        assert_eq!(leaders[i] >> l & 1 == 1, of(i) >= best - ties[l], "{isa:?} {i} {l}");
                    }
                }
            }
            assert!(leaders.iter().all(|bits| bits >> ABREAST == 0));
        }
    }
}
