//! Odds that factors multiply: the inner loops of belief propagation, over the labels of a group.
//!
//! Columns are on their own except for one product, which is made in eight streams: every set makes the same of it.

use super::Isa;
use super::exp::exp;
use super::for_each_isa::for_each_isa;

/// Most that a message, or a label's bias, multiplies odds by.
pub(crate) const FAR: f32 = 1e12;

/// The probability at these odds, also where they left the range of f32.
#[inline(always)]
pub(crate) fn chance(odds: f32) -> f32 {
    let odds = if odds < FAR * FAR { odds } else { FAR * FAR };
    odds / (1.0 + odds)
}

for_each_isa! {
    /// `to = exp(evidence)`, of evidence that is taken for certain beyond ± `certain`, at most 87.
    odds_of => odds_of_any, odds_of_avx512, odds_of_avx2 (evidence: &[f32], certain: f32, to: &mut [f32])
}

#[inline(always)]
fn odds_of_any(evidence: &[f32], certain: f32, to: &mut [f32]) {
    for (to, v) in to.iter_mut().zip(evidence) {
        let v = if *v > certain { certain } else { *v };
        *to = exp(if v < -certain { -certain } else { v });
    }
}

for_each_isa! {
    /// What a group's segments tell their pairs: the chance that one of the others is true, and not more where none is.
    /// Rows of `bias.len()` odds without bias become probabilities without what was told, and `told` is renewed. Chances
    /// that somebody has it are put together from both ends, so that the smallest keep their digits; `some` is scratch.
    tell => tell_any, tell_avx512, tell_avx2 (bias: &[f32], odds: &mut [f32], told: &mut [f32], some: &mut [f32])
}

#[inline(always)]
fn tell_any(bias: &[f32], odds: &mut [f32], told: &mut [f32], some: &mut [f32]) {
    let n = bias.len();
    some.fill(0.0);
    for (odds, told) in odds.chunks_exact_mut(n).zip(told.chunks_exact_mut(n)) {
        for (((odds, told), bias), some) in odds.iter_mut().zip(told).zip(bias).zip(&mut *some) {
            *odds = chance(*odds * bias / *told);
            let before = *some;
            *some = before + (1.0 - before) * *odds;
            *told = before;
        }
    }
    some.fill(0.0);
    for (likely, told) in odds.chunks_exact(n).zip(told.chunks_exact_mut(n)).rev() {
        for ((likely, told), some) in likely.iter().zip(told).zip(&mut *some) {
            let any = *told + (1.0 - *told) * *some;
            *told = 1.0 / bounded(any);
            *some += (1.0 - *some) * *likely;
        }
    }
}

for_each_isa! {
    /// What a sample tells its pairs likewise: `odds` without bias are multiplied by it, and `likely` becomes the
    /// probabilities.
    sample_messages => sample_messages_any, sample_messages_avx512, sample_messages_avx2 (bias: &[f32], odds: &mut [f32], likely: &mut [f32])
}

#[inline(always)]
fn sample_messages_any(bias: &[f32], odds: &mut [f32], likely: &mut [f32]) {
    for ((likely, odds), bias) in likely.iter_mut().zip(&*odds).zip(bias) {
        *likely = odds * bias;
    }
    let all = streams(likely, 0.0, |sum, v| sum + v);
    if all < UNLIKELY {
        // Of chances so small hardly a digit would be left beside 1: any of them is true as often as their sum says.
        for (odds, own) in odds.iter_mut().zip(&*likely) {
            let others = all - own;
            *odds /= bounded(others - 0.5 * others * others);
        }
    } else {
        likely.iter_mut().for_each(|v| *v += 1.0);
        let none = 1.0 / streams(likely, 1.0, |product, v| product * v);
        for (odds, own) in odds.iter_mut().zip(&*likely) {
            *odds /= bounded(1.0 - none * own);
        }
    }
    for ((odds, likely), bias) in odds.iter().zip(likely).zip(bias) {
        *likely = chance(*odds * bias);
    }
}

/// Odds that are small together.
const UNLIKELY: f32 = 1e-3;

/// What odds are divided by, which makes them no more than [`FAR`] times as large.
#[inline(always)]
fn bounded(any: f32) -> f32 {
    if any > 1.0 / FAR { any } else { 1.0 / FAR }
}

/// A sum or a product in eight streams, so that its steps need not wait for each other.
#[inline(always)]
fn streams(of: &[f32], start: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let (lines, rest) = of.as_chunks::<8>();
    let mut streams = [start; 8];
    for line in lines {
        streams.iter_mut().zip(line).for_each(|(all, v)| *all = join(*all, *v));
    }
    streams.iter().chain(rest).fold(start, |all, v| join(all, *v))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_set_makes_the_same_and_what_the_formula_says() {
        let mut rng = Rng::new(&[5]);
        for (n, scale) in
            [1usize, 2, 7, 8, 16, 33, 70].into_iter().flat_map(|n| [(n, 1.0), (n, 1e-4), (n, 1e-9)])
        {
            for rows in [1usize, 2, 9] {
                let mut some = |n| (0..n).map(|_| 0.01 + rng.below(300) as f32 * 0.01).collect::<Vec<f32>>();
                let (mut bias, odds, told) = (some(n), some(n * rows), some(n * rows));
                bias.iter_mut().for_each(|b| *b *= scale);
                let evidence: Vec<f32> = odds.iter().map(|v| (v - 1.5) * 40.0).collect();
                let mut found = Vec::new();
                for isa in Isa::available() {
                    let (mut likely, mut told, mut scratch) = (odds.clone(), told.clone(), vec![0.0; n]);
                    tell(isa, &bias, &mut likely, &mut told, &mut scratch);
                    let (mut row, mut chances) = (odds[..n].to_vec(), vec![0.0; n]);
                    sample_messages(isa, &bias, &mut row, &mut chances);
                    let mut made = vec![0.0; odds.len()];
                    odds_of(isa, &evidence, 20.0, &mut made);
                    found.push((likely, told, row, chances, made));
                }
                assert!(found.windows(2).all(|w| w[0] == w[1]));
                let (likely, renewed, row, chances, made) = &found[0];
                let close = |found: f32, want: f64| {
                    assert!((f64::from(found) - want).abs() <= 1e-5 * want.abs(), "{found} for {want}");
                };
                let p = |at: usize| {
                    let odds = f64::from(odds[at]) * f64::from(bias[at % n]) / f64::from(told[at]);
                    odds / (1.0 + odds)
                };
                for at in 0..n * rows {
                    close(likely[at], p(at));
                    let others = (0..rows).map(|m| m * n + at % n).filter(|o| *o != at);
                    let any = -others.map(|o| (-p(o)).ln_1p()).sum::<f64>().exp_m1();
                    close(renewed[at], 1.0 / any.max(1e-12));
                    close(made[at], f64::from(evidence[at].clamp(-20.0, 20.0)).exp());
                }
                for k in 0..n {
                    let own = |l: usize| f64::from(odds[l]) * f64::from(bias[l]);
                    let others = (0..n).filter(|l| *l != k).map(|l| own(l).ln_1p()).sum::<f64>();
                    let want = f64::from(odds[k]) / (-(-others).exp_m1()).max(1e-12);
                    // Beside a label that outweighs them the others have fewer digits.
                    let slack = 1e-3 + 1e-6 * own(k) / others.max(1e-12);
                    assert!((f64::from(row[k]) - want).abs() <= slack * want, "{} for {want}", row[k]);
                    close(chances[k], f64::from(row[k] * bias[k]) / (1.0 + f64::from(row[k] * bias[k])));
                }
            }
        }
    }
}
