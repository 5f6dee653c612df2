//! Sparse rows times sixteen dense vectors that are stored interleaved, one cache line of floats for each column.
//!
//! An entry costs one load, one broadcast and one fused multiply-add for all sixteen vectors, as in the solver
//! ([`super::dcd`]).

use super::lanes::{Lanes, Work, dispatch};
use super::row_subset::RowSubset;
use super::{Isa, prefetch_line};

/// Number of vectors.
pub(crate) const BATCH16: usize = 16;

impl RowSubset<'_> {
    /// Prefetches rows that will be needed soon, and the lines of the next one: they come in random order and do not
    /// fit into the near caches.
    #[inline(always)]
    fn prefetch<const N: usize>(&self, n: usize, tables: [*const f32; N]) {
        self.prefetch_after(n);
        if n + 1 < self.rows.len() {
            let (idx, _) = self.row(n + 1);
            for j in idx {
                tables.iter().for_each(|table| prefetch_line(table.wrapping_add(*j as usize * BATCH16)));
            }
        }
    }

    fn fits(&self, table: &[f32], lines: &[f32]) {
        assert!(table.len() >= BATCH16 * self.entries.cols() && lines.len() == BATCH16 * self.rows.len());
    }
}

/// Computes the product of each row with each vector of the tables, one line for each row and table.
///
/// # Panics
/// If a table has fewer lines than there are columns, or its `out` does not have one line per row.
pub(crate) fn products<const N: usize>(
    isa: Isa,
    rows: RowSubset<'_>,
    tables: [&[f32]; N],
    out: [&mut [f32]; N],
) {
    tables.iter().zip(&out).for_each(|(table, out)| rows.fits(table, out));
    dispatch(isa, BATCH16, Products { rows, tables, out });
}

struct Products<'a, const N: usize> {
    rows: RowSubset<'a>,
    tables: [&'a [f32]; N],
    out: [&'a mut [f32]; N],
}

impl<const N: usize> Work for Products<'_, N> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, tables, mut out } = self;
        let tables = tables.map(<[f32]>::as_ptr);
        for n in 0..rows.rows.len() {
            let (idx, val) = rows.row(n);
            rows.prefetch(n, tables);
            // SAFETY: `Entries::new` checked that ids are below the number of columns; `fits` checked that each table
            // has a line for each column, and each `out` one for each row. The dispatcher checked `V`.
            unsafe {
                let mut sums = [[V::splat(0.0); 4]; N];
                let (quads, rest) = idx.as_chunks::<4>();
                let (weights, tail) = val.as_chunks::<4>();
                for (j, v) in quads.iter().zip(weights) {
                    for k in 0..4 {
                        let v = V::splat(v[k]);
                        for t in 0..N {
                            let line = tables[t].add(j[k] as usize * BATCH16);
                            sums[t][k] = v.mul_add(V::load(line), sums[t][k]);
                        }
                    }
                }
                for (j, v) in rest.iter().zip(tail) {
                    for t in 0..N {
                        let line = tables[t].add(*j as usize * BATCH16);
                        sums[t][0] = V::splat(*v).mul_add(V::load(line), sums[t][0]);
                    }
                }
                for (out, [a, b, c, d]) in out.iter_mut().zip(sums) {
                    a.add(b).add(c.add(d)).store(out.as_mut_ptr().add(n * BATCH16));
                }
            }
        }
    }
}

/// Adds each row to each vector of the table, multiplied by the vector's factor in the row's line of `factors`.
///
/// # Panics
/// If the table has fewer lines than there are columns, or `factors` does not have one line per row.
pub(crate) fn add(isa: Isa, rows: RowSubset<'_>, factors: &[f32], table: &mut [f32]) {
    rows.fits(table, factors);
    dispatch(isa, BATCH16, Add { rows, factors, table });
}

struct Add<'a> {
    rows: RowSubset<'a>,
    factors: &'a [f32],
    table: &'a mut [f32],
}

impl Work for Add<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { rows, factors, table } = self;
        for (n, factors) in factors.chunks_exact(BATCH16).enumerate() {
            let (idx, val) = rows.row(n);
            rows.prefetch(n, [table.as_ptr()]);
            // SAFETY: as in `Products`; ids within a row differ, so no store is lost.
            unsafe {
                let factors = V::load(factors.as_ptr());
                for (j, v) in idx.iter().zip(val) {
                    let line = table.as_mut_ptr().add(*j as usize * BATCH16);
                    V::splat(*v).mul_add(factors, V::load(line)).store(line);
                }
            }
        }
    }
}

/// A range of rows in which some lanes each search for the best row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest {
    pub begin: usize,
    pub end: usize,
    /// One bit per lane.
    pub lanes: u32,
}

/// What has changed since rows were last scored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drift16 {
    /// How often the pulls have moved a row's scores since then.
    pub steps: [f32; BATCH16],
    /// Bounds on the error of the scores.
    pub doubts: [f32; BATCH16],
    /// The lanes whose scores may be wrong, one bit each.
    pub stale: u32,
}

/// Scores at the time rows were last scored: a line of scores and a line of pulls for each row, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks<'a> {
    pub scores: &'a [f32],
    pub pulls: &'a [f32],
    pub seen: &'a [u16],
    pub since: &'a [Drift16],
}

impl Looks<'_> {
    /// The current scores of a row, provided that the pulls have not changed, and bounds on their error.
    ///
    /// # Safety
    /// Row `i` exists, and `V` has [`BATCH16`] lanes.
    #[inline(always)]
    unsafe fn at<V: Lanes>(&self, i: usize) -> (V, V) {
        // SAFETY: the caller guarantees the row, and `lead` checked that each row has a line.
        unsafe {
            let since = &self.since[usize::from(*self.seen.get_unchecked(i))];
            let score = V::load(self.scores.as_ptr().add(i * BATCH16));
            let pull = V::load(self.pulls.as_ptr().add(i * BATCH16));
            (V::load(since.steps.as_ptr()).mul_add(pull, score), V::load(since.doubts.as_ptr()))
        }
    }
}

/// Determines, for each row, the lanes in which it is within `ties` of its contest's best, one bit each. Where error
/// bounds leave open which row is best, the rows to score again are added to `unsure` and the contest to `open`.
///
/// # Panics
/// If some row has no line of scores or of pulls, or a contest refers to a missing row.
pub(crate) fn lead(
    isa: Isa,
    looks: Looks<'_>,
    contests: &[Contest],
    ties: &[f32; BATCH16],
    leaders: &mut [Leads],
    (unsure, open): (&mut Vec<usize>, &mut Vec<Contest>),
) {
    let rows = leaders.len();
    assert!(looks.scores.len() == BATCH16 * rows && looks.pulls.len() == BATCH16 * rows);
    assert!(looks.seen.len() == rows && contests.iter().all(|c| c.end <= rows));
    dispatch(isa, BATCH16, Lead { looks, contests, ties, leaders, unsure, open });
}

/// The lanes in which a row leads by the known scores, and those in which it may lead.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leads {
    pub does: u16,
    pub may: u16,
}

struct Lead<'a> {
    looks: Looks<'a>,
    contests: &'a [Contest],
    ties: &'a [f32; BATCH16],
    leaders: &'a mut [Leads],
    unsure: &'a mut Vec<usize>,
    open: &'a mut Vec<Contest>,
}

impl Work for Lead<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { looks, contests, ties, leaders, unsure, open } = self;
        for contest in contests {
            let rows = contest.begin..contest.end;
            let (mut some, mut several) = (0, 0);
            // SAFETY: `lead` checked that there is a line of scores and of pulls for each row of each contest. The
            // dispatcher checked `V`.
            unsafe {
                let ties = V::load(ties.as_ptr());
                // The best score, and a lower bound of the best.
                let mut best = [V::splat(f32::NEG_INFINITY); 2];
                for i in rows.clone() {
                    let (score, doubt) = looks.at::<V>(i);
                    best = [best[0].max(score), best[1].max(score.sub(doubt))];
                }
                let (least, sure) = (best[0].sub(ties), best[1].sub(ties));
                for i in rows.clone() {
                    let (score, doubt) = looks.at::<V>(i);
                    let does = !score.less(least) & contest.lanes;
                    let may = !score.add(doubt).less(sure) & contest.lanes;
                    (some, several) = (some | may, several | some & may);
                    *leaders.get_unchecked_mut(i) = Leads { does: does as u16, may: may as u16 };
                }
            }
            if several == 0 {
                continue;
            }
            let before = unsure.len();
            for i in rows {
                let stale = looks.since[usize::from(looks.seen[i])].stale;
                if u32::from(leaders[i].may) & several & stale != 0 {
                    unsure.push(i);
                }
            }
            if unsure.len() > before {
                open.push(*contest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dcd::Entries;
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
        let picked = RowSubset { entries: &entries, starts: &starts, rows: &rows };
        let factors: Vec<f32> = (0..6 * BATCH16).map(|_| number()).collect();
        let before: Vec<f32> = (0..cols * BATCH16).map(|_| number()).collect();
        let mut added: Vec<f64> = before.iter().map(|v| f64::from(*v)).collect();
        let mut want = vec![0f64; 6 * BATCH16];
        for (n, i) in rows.iter().enumerate() {
            for at in starts[*i as usize]..starts[*i as usize + 1] {
                for l in 0..BATCH16 {
                    let place = idx[at] as usize * BATCH16 + l;
                    want[n * BATCH16 + l] += f64::from(before[place]) * f64::from(val[at]);
                    added[place] += f64::from(factors[n * BATCH16 + l]) * f64::from(val[at]);
                }
            }
        }
        let close = |a: &[f32], b: &[f64]| a.iter().zip(b).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-3);
        for isa in Isa::available() {
            let (mut out, mut table) = (vec![0.0; 6 * BATCH16], before.clone());
            products(isa, picked, [&before], [&mut out]);
            assert!(close(&out, &want), "{isa:?}");
            let (mut first, mut second) = (vec![0.0; 6 * BATCH16], vec![0.0; 6 * BATCH16]);
            let twice: Vec<f32> = before.iter().map(|v| 2.0 * v).collect();
            products(isa, picked, [&twice, &before], [&mut first, &mut second]);
            first.iter_mut().for_each(|v| *v *= 0.5);
            assert!(close(&first, &want) && close(&second, &want), "{isa:?}");
            add(isa, picked, &factors, &mut table);
            assert!(close(&table, &added), "{isa:?}");
        }
    }

    #[test]
    fn every_set_finds_leaders_and_what_leaves_them_open() {
        let mut rng = Rng::new(&[8]);
        // Multiples of one half, so that no sum is rounded and there are ties.
        let mut number = || rng.below(9) as f32 * 0.5 - 2.0;
        let rows = 40;
        let contest = |(begin, end, lanes)| Contest { begin, end, lanes };
        let contests = [(0, 3, 0xffff), (3, 3, 1), (3, 4, 0xffff), (4, 29, 0xf0ff), (29, 40, 1)].map(contest);
        let scores: Vec<f32> = (0..rows * BATCH16).map(|_| number()).collect();
        let pulls: Vec<f32> = (0..rows * BATCH16).map(|_| number()).collect();
        let ties: [f32; BATCH16] = std::array::from_fn(|l| l as f32 * 0.25);
        let since = [0.0, 0.5, 4.0].map(|most| {
            let doubts = std::array::from_fn(|l| if l % 3 == 0 { 0.0 } else { most });
            let stale = doubts.iter().enumerate().fold(0, |bits, (l, d)| bits | u32::from(*d > 0.0) << l);
            Drift16 { steps: std::array::from_fn(|_| number()), doubts, stale }
        });
        let seen: Vec<u16> = (0..rows as u16).map(|i| i * i % 7 % 3).collect();
        let looks = Looks { scores: &scores, pulls: &pulls, seen: &seen, since: &since };
        let mut opened = 0;
        for isa in Isa::available() {
            let mut leaders = vec![Leads::default(); rows];
            let (mut unsure, mut open) = (Vec::new(), Vec::new());
            lead(isa, looks, &contests, &ties, &mut leaders, (&mut unsure, &mut open));
            for c in contests {
                let all = || c.begin..c.end;
                let mut to_look = vec![false; rows];
                for l in (0..BATCH16).filter(|l| c.lanes >> l & 1 == 1) {
                    let since = |i: usize| &since[usize::from(seen[i])];
                    let of = |i: usize| scores[i * BATCH16 + l] + since(i).steps[l] * pulls[i * BATCH16 + l];
                    let best = all().map(of).fold(f32::NEG_INFINITY, f32::max);
                    let sure = all().map(|i| of(i) - since(i).doubts[l]).fold(f32::NEG_INFINITY, f32::max);
                    let may: Vec<usize> =
                        all().filter(|i| of(*i) + since(*i).doubts[l] >= sure - ties[l]).collect();
                    if may.len() > 1 {
                        may.iter().for_each(|i| to_look[*i] |= since(*i).doubts[l] > 0.0);
                    }
                    for i in all() {
                        assert_eq!(leaders[i].does >> l & 1 == 1, of(i) >= best - ties[l], "{isa:?} {i} {l}");
                    }
                }
                for i in all() {
                    assert_eq!(unsure.contains(&i), to_look[i], "{isa:?} {i}");
                    assert_eq!(u32::from(leaders[i].does) & !c.lanes, 0);
                }
                let is_open = open.iter().any(|o| o.begin == c.begin && o.end == c.end);
                assert_eq!(is_open, to_look.contains(&true), "{isa:?}");
                opened += usize::from(is_open);
            }
        }
        assert!(opened > 0 && opened < 3 * Isa::available().len());
    }
}
