//! Sums over tables with many columns, stored row by row.
//!
//! Every instruction set adds in the same order, or in the same sixteen streams, so that the sums are the same
//! everywhere.

use super::Isa;
use super::for_each_isa::for_each_isa;

for_each_isa! {
    /// Adds to each column of `sums` its products with column `at`, over the table's rows.
    add_products => add_products_of, add_products_avx512, add_products_avx2 (table: &[f32], at: usize, sums: &mut [f32])
}

#[inline(always)]
fn add_products_of(table: &[f32], at: usize, sums: &mut [f32]) {
    let n = sums.len();
    let mut rows = table.chunks_exact(4 * n);
    for four in &mut rows {
        // Four rows at a time: each sum is loaded and stored once for all four.
        let (a, rest) = four.split_at(n);
        let (b, rest) = rest.split_at(n);
        let (c, d) = rest.split_at(n);
        let [e, f, g, h] = [a[at], b[at], c[at], d[at]];
        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *sum += (e * a + f * b) + (g * c + h * d);
        }
    }
    for row in rows.remainder().chunks_exact(n) {
        let own = row[at];
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += own * v);
    }
}

for_each_isa! {
    /// The product of each row of the table with `with`.
    products => products_of, products_avx512, products_avx2 (table: &[f32], with: &[f32], out: &mut [f32])
}

#[inline(always)]
fn products_of(table: &[f32], with: &[f32], out: &mut [f32]) {
    let (lines, rest) = with.as_chunks::<16>();
    // The remaining columns are the end of a line that starts before them; `with` is zero for its other columns.
    let mut last = [0f32; 16];
    last[16 - rest.len()..].copy_from_slice(rest);
    for (out, row) in out.iter_mut().zip(table.chunks_exact(with.len())) {
        let (own, tail) = row.as_chunks::<16>();
        let mut streams = [0f32; 16];
        for (a, b) in own.iter().zip(lines) {
            streams.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
        }
        let mut whole = 0.0;
        match row.last_chunk::<16>() {
            Some(end) => {
                streams.iter_mut().zip(end.iter().zip(&last)).for_each(|(sum, (a, b))| *sum += a * b)
            }
            None => whole = tail.iter().zip(rest).map(|(a, b)| a * b).sum::<f32>(),
        }
        let half: [f32; 8] = std::array::from_fn(|i| streams[i] + streams[i + 8]);
        let quarter: [f32; 4] = std::array::from_fn(|i| half[i] + half[i + 4]);
        *out = whole + ((quarter[0] + quarter[2]) + (quarter[1] + quarter[3]));
    }
}

for_each_isa! {
    /// Adds rows of the table, each multiplied by its value.
    ///
    /// # Panics
    /// If the table does not have one of the rows.
    add_rows => add_rows_of, add_rows_avx512, add_rows_avx2 (table: &[f32], rows: &[u32], values: &[f32], sums: &mut [f32])
}

#[inline(always)]
fn add_rows_of(table: &[f32], rows: &[u32], values: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    // As many columns at a time as there are registers for sums.
    let (wide, rest) = sums.as_chunks_mut::<64>();
    let (narrow, last) = rest.as_chunks_mut::<16>();
    let mut from = 0;
    for sums in wide {
        add_columns(table, n, from, rows, values, sums);
        from += sums.len();
    }
    for sums in narrow {
        add_columns(table, n, from, rows, values, sums);
        from += sums.len();
    }
    for (j, v) in rows.iter().zip(values) {
        let row = &table[*j as usize * n + from..][..last.len()];
        last.iter_mut().zip(row).for_each(|(sum, t)| *sum += v * t);
    }
}

/// The same for `N` columns starting at this one.
#[inline(always)]
fn add_columns<const N: usize>(
    table: &[f32],
    n: usize,
    from: usize,
    rows: &[u32],
    values: &[f32],
    sums: &mut [f32; N],
) {
    let mut held = *sums;
    for (j, v) in rows.iter().zip(values) {
        if let Some(row) = table[*j as usize * n + from..].first_chunk::<N>() {
            held.iter_mut().zip(row).for_each(|(sum, t)| *sum += v * t);
        }
    }
    *sums = held;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn rows_are_added_one_after_the_other() {
        let mut rng = Rng::new(&[10]);
        for n in [1usize, 15, 16, 40, 64, 65, 150] {
            let mut some = |n| (0..n).map(|_| rng.below(100) as f32 * 0.01 - 0.5).collect::<Vec<f32>>();
            let (table, values, before) = (some(n * 9), some(5), some(n));
            let rows = [8, 0, 3, 3, 7];
            let want: Vec<f32> = (0..n)
                .map(|c| {
                    let add = |sum, (j, v): (&u32, &f32)| sum + v * table[*j as usize * n + c];
                    rows.iter().zip(&values).fold(before[c], add)
                })
                .collect();
            for isa in Isa::available() {
                let mut sums = before.clone();
                add_rows(isa, &table, &rows, &values, &mut sums);
                assert_eq!(sums, want, "{n} columns, {isa:?}");
            }
        }
    }

    #[test]
    fn every_set_adds_the_same_and_what_plain_sums_add() {
        let mut rng = Rng::new(&[9]);
        for n in [1usize, 2, 15, 16, 17, 40, 67] {
            for rows in 0..10 {
                let mut some = |n| (0..n).map(|_| rng.below(100) as f32 * 0.01 - 0.5).collect::<Vec<f32>>();
                let (table, with, before) = (some(n * rows), some(n), some(n));
                let at = n / 2;
                let mut found = Vec::new();
                for isa in Isa::available() {
                    let (mut sums, mut out) = (before.clone(), vec![0.0; rows]);
                    add_products(isa, &table, at, &mut sums);
                    products(isa, &table, &with, &mut out);
                    found.push((sums, out));
                }
                assert!(found.windows(2).all(|w| w[0] == w[1]));
                let (sums, out) = &found[0];
                for l in 0..n {
                    let want: f64 =
                        (0..rows).map(|m| f64::from(table[m * n + at]) * f64::from(table[m * n + l])).sum();
                    assert!((f64::from(sums[l] - before[l]) - want).abs() < 1e-4);
                }
                for (m, out) in out.iter().enumerate() {
                    let want: f64 = (0..n).map(|l| f64::from(table[m * n + l]) * f64::from(with[l])).sum();
                    assert!((f64::from(*out) - want).abs() < 1e-4);
                }
            }
        }
    }
}
