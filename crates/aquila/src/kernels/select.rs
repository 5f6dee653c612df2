//! The link functions, from margins to keys, and the selection of the few best keys out of many.
//!
//! A *link function* turns a margin into a score; PECOS calls it a post-processor. A *key* is a score's logarithm (of bare margins the margin): keys add down the tree and order as scores do. Every
//! candidate's key is finite and at least [`LOWEST`], which is the key of a column that was never trained;
//! [`ABSENT`] marks what is no candidate at all. A margin that is no number, as where a sum was ∞ − ∞, has the lowest
//! key too.
//!
//! The best `k` are found in two steps. While keys are made, the maximum of each of `16 · m ≥ k` lanes is kept;
//! each maximum is another candidate, so the k-th largest of them is a threshold that at least `k` candidates
//! reach, and few more. Then one pass collects what reaches it. Neither step has a branch for each candidate.

use super::Isa;
use super::exp::ln_1p_exp;

/// The key of a column that was never trained: the lowest finite number.
pub(crate) const LOWEST: f32 = f32::MIN;
/// The key of what is no candidate.
pub(crate) const ABSENT: f32 = f32::NEG_INFINITY;

/// How a margin `v` becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// −max(0, 1−v)ᵖ, plus the parent's key, less a trace of what v lacks of [`REACH`] and [`FAR`] beyond 1 ([`BEYOND`]);
    /// p is 1 to 4. Never above the parent's key.
    Hinge(u32),
    /// −ln(1 + exp(−v)), plus the parent's key. Never above that.
    LogSigmoid,
    /// v alone, and the largest finite number where a sum has passed it.
    Margin,
}

/// Maxima of lanes: see the page above.
#[derive(Debug, Clone)]
pub(crate) struct Maxima {
    lanes: [[f32; 16]; SETS],
    sets: usize,
    next: usize,
}

/// Sets of 16 lanes: thresholds are found for up to 16 times as many results.
const SETS: usize = 8;

impl Maxima {
    /// For the best `k`.
    pub fn new(k: usize) -> Self {
        Self { lanes: [[ABSENT; 16]; SETS], sets: k.div_ceil(16).clamp(1, SETS), next: 0 }
    }

    /// A key that at least `k` of the candidates reach, or [`LOWEST`].
    pub fn threshold(&self, isa: Isa, k: usize) -> f32 {
        if k == 0 || k > 16 * self.sets {
            return LOWEST;
        }
        match isa {
            // SAFETY: the instruction set was detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if isa.runs_here() => unsafe { kth_avx512(&self.lanes[..self.sets], k) },
            _ => kth_of(&self.lanes[..self.sets], k),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
fn kth_avx512(lanes: &[[f32; 16]], k: usize) -> f32 {
    kth_of(lanes, k)
}

/// The k-th largest: the largest value that `k` values reach. Comparing all with all has no branch to mispredict
/// and is faster than sorting for the few lanes there are.
#[inline(always)]
fn kth_of(lanes: &[[f32; 16]], k: usize) -> f32 {
    let mut best = LOWEST;
    for &value in lanes.as_flattened() {
        let mut reach = 0;
        for set in lanes {
            reach += set.iter().map(|v| u32::from(*v >= value)).sum::<u32>();
        }
        let value = if reach as usize >= k { value } else { LOWEST };
        best = if value > best { value } else { best };
    }
    best
}

/// Turns the margins of a chunk into keys, in place. The first `width` of the `16 · n` sums are columns, and of these
/// only those whose bit is set in `allowed` (all, if it is empty) are candidates.
pub(crate) fn keys(
    isa: Isa,
    link: Link,
    parent: f32,
    sums: &mut [f32],
    width: usize,
    allowed: &[u16],
    maxima: &mut Maxima,
) {
    match isa {
        // SAFETY: the instruction set was detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if isa.runs_here() => unsafe {
            keys_avx512(link, parent, sums, width, allowed, maxima);
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 if isa.runs_here() => unsafe { keys_avx2(link, parent, sums, width, allowed, maxima) },
        _ => keys_of(link, parent, sums, width, allowed, maxima),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
fn keys_avx512(
    link: Link,
    parent: f32,
    sums: &mut [f32],
    width: usize,
    allowed: &[u16],
    maxima: &mut Maxima,
) {
    keys_of(link, parent, sums, width, allowed, maxima);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
fn keys_avx2(link: Link, parent: f32, sums: &mut [f32], width: usize, allowed: &[u16], maxima: &mut Maxima) {
    keys_of(link, parent, sums, width, allowed, maxima);
}

#[inline(always)]
fn keys_of(link: Link, parent: f32, sums: &mut [f32], width: usize, allowed: &[u16], maxima: &mut Maxima) {
    // One loop for each link, so that each is vectorised.
    match link {
        Link::Hinge(1) => each(sums, width, allowed, maxima, |v| hinge(parent, v, |t| t)),
        Link::Hinge(2) => each(sums, width, allowed, maxima, |v| hinge(parent, v, |t| t * t)),
        Link::Hinge(3) => each(sums, width, allowed, maxima, |v| hinge(parent, v, |t| t * t * t)),
        Link::Hinge(_) => each(sums, width, allowed, maxima, |v| hinge(parent, v, |t| (t * t) * (t * t))),
        Link::LogSigmoid => each(sums, width, allowed, maxima, |v| log_sigmoid(parent, v)),
        Link::Margin => each(sums, width, allowed, maxima, finite),
    }
}

/// The key of one margin, as [`keys`] makes it.
#[inline]
pub(crate) fn key(link: Link, parent: f32, margin: f32) -> f32 {
    let made = match link {
        Link::Hinge(1) => hinge(parent, margin, |t| t),
        Link::Hinge(2) => hinge(parent, margin, |t| t * t),
        Link::Hinge(3) => hinge(parent, margin, |t| t * t * t),
        Link::Hinge(_) => hinge(parent, margin, |t| (t * t) * (t * t)),
        Link::LogSigmoid => log_sigmoid(parent, margin),
        Link::Margin => finite(margin),
    };
    made.max(LOWEST)
}

/// ln(1/(1+exp(−v))) without overflow on either side.
#[inline(always)]
fn log_sigmoid(parent: f32, margin: f32) -> f32 {
    parent + margin.min(0.0) - ln_1p_exp(-margin.abs())
}

/// What each unit that a margin lacks of `1 + REACH` takes from a hinge's key, so that candidates whose hinges are all at
/// their end are still ordered. Peers order those by label id, which costs up to 0.1 points of P@1. All in all it is three
/// millionths a layer, and downward, so that no score passes 1; and it shows in an f32 just below 1, whose steps are a
/// sixteenth of it.
const BEYOND: f32 = 1.0 / (1 << 20) as f32;
/// How far beyond 1 margins are told apart well: those of rows of length 1 hardly go farther.
const REACH: f32 = 2.0;
/// How far beyond that they are still told apart, by an eighth as much: rows of any length have such margins. Steps of an
/// f32 are half a unit there, so that some of their order is lost to that of labels; log forms keep it.
const FAR: f32 = 8.0;

#[inline(always)]
fn hinge(parent: f32, margin: f32, power: impl Fn(f32) -> f32) -> f32 {
    // Comparisons, not `max` and `min`, which would make numbers of NaN.
    let short = 1.0 - margin;
    let loss = if short < 0.0 { 0.0 } else { short };
    let lacks = |reach: f32, width: f32| {
        let lacks = short + reach;
        let lacks = if lacks < 0.0 { 0.0 } else { lacks };
        if lacks > width { width } else { lacks }
    };
    parent - power(loss) - BEYOND * (lacks(REACH, REACH) + 0.125 * lacks(REACH + FAR, FAR))
}

/// The margin itself, of which the sum may have overflowed.
#[inline(always)]
fn finite(margin: f32) -> f32 {
    if margin > f32::MAX { f32::MAX } else { margin }
}

#[inline(always)]
fn each(sums: &mut [f32], width: usize, allowed: &[u16], maxima: &mut Maxima, key: impl Fn(f32) -> f32) {
    for (word, keys) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let columns = width.saturating_sub(16 * word).min(16);
        let mut mask = ((1u32 << columns) - 1) as u16;
        if let Some(allowed) = allowed.get(word) {
            mask &= allowed;
        }
        let best = &mut maxima.lanes[maxima.next];
        maxima.next = if maxima.next + 1 < maxima.sets { maxima.next + 1 } else { 0 };
        for lane in 0..16 {
            let made = key(keys[lane]).max(LOWEST);
            let made = if (mask >> lane) & 1 != 0 { made } else { ABSENT };
            keys[lane] = made;
            best[lane] = if made > best[lane] { made } else { best[lane] };
        }
    }
}

/// Appends every key of at least `threshold` with its place; `out` holds at least 16 more than there are.
pub(crate) fn reach(isa: Isa, keys: &[f32], threshold: f32, out: &mut Vec<(f32, u32)>) {
    match isa {
        // SAFETY: the instruction set was detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if isa.runs_here() => unsafe { reach_avx512(keys, threshold, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 if isa.runs_here() => unsafe { reach_avx2(keys, threshold, out) },
        _ => reach_of(keys, threshold, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
fn reach_avx512(keys: &[f32], threshold: f32, out: &mut Vec<(f32, u32)>) {
    reach_of(keys, threshold, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt")]
fn reach_avx2(keys: &[f32], threshold: f32, out: &mut Vec<(f32, u32)>) {
    reach_of(keys, threshold, out);
}

#[inline(always)]
fn reach_of(keys: &[f32], threshold: f32, out: &mut Vec<(f32, u32)>) {
    for (word, keys) in keys.as_chunks::<16>().0.iter().enumerate() {
        let mut mask = 0u32;
        for (lane, key) in keys.iter().enumerate() {
            mask |= u32::from(*key >= threshold) << lane;
        }
        while mask != 0 {
            let lane = mask.trailing_zeros();
            out.push((keys[lane as usize & 15], 16 * word as u32 + lane));
            mask &= mask - 1;
        }
    }
}

/// A key and an id as one number: a larger number is a larger key or, among equal keys, a smaller id.
#[inline(always)]
pub(crate) fn pack(key: f32, id: u32) -> u64 {
    let bits = (key + 0.0).to_bits();
    let ordered = if bits >> 31 != 0 { !bits } else { bits | 1 << 31 };
    u64::from(ordered) << 32 | u64::from(!id)
}

/// The key and the id of a packed number.
#[inline(always)]
pub(crate) fn unpack(packed: u64) -> (f32, u32) {
    let ordered = (packed >> 32) as u32;
    let bits = if ordered >> 31 != 0 { ordered & !(1 << 31) } else { !ordered };
    (f32::from_bits(bits), !(packed as u32))
}

/// Keeps the `k` largest of distinct numbers, largest first.
pub(crate) fn keep_best(isa: Isa, packed: &mut Vec<u64>, k: usize) {
    let n = packed.len();
    if n > FEW {
        if k < n && k > 0 {
            packed.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
        }
        packed.truncate(k);
        packed.sort_unstable_by(|a, b| b.cmp(a));
        return;
    }
    // A number's place is the number of larger ones: again all with all, without a branch.
    let mut all = [0u64; FEW];
    all[..n].copy_from_slice(packed);
    let mut places = [0u32; FEW];
    match isa {
        // SAFETY: the instruction set was detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if isa.runs_here() => unsafe { places_avx512(&all, n, &mut places) },
        _ => places_of(&all, n, &mut places),
    }
    for (value, place) in all[..n].iter().zip(&places) {
        if let Some(to) = packed.get_mut(*place as usize) {
            *to = *value;
        }
    }
    packed.truncate(k);
}

/// Keeps the `k` largest likewise, and beyond them all whose key is not below what `least` makes of the k-th one's.
pub(crate) fn keep_tied(isa: Isa, packed: &mut Vec<u64>, k: usize, least: impl Fn(f32) -> f32) {
    let n = packed.len();
    if k == 0 || k >= n {
        return keep_best(isa, packed, k);
    }
    // A key and the highest id: the smallest number of that key.
    let bound = |kth: u64| pack(least(unpack(kth).0), u32::MAX);
    if n <= FEW {
        keep_best(isa, packed, n);
        let bound = bound(packed[k - 1]);
        let tied = packed[k..].iter().take_while(|p| **p >= bound).count();
        packed.truncate(k + tied);
        return;
    }
    packed.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    let bound = bound(packed[k - 1]);
    let mut kept = k;
    for i in k..n {
        if packed[i] >= bound {
            packed.swap(kept, i);
            kept += 1;
        }
    }
    packed.truncate(kept);
    packed.sort_unstable_by(|a, b| b.cmp(a));
}

/// Up to so many numbers are sorted by comparing all with all.
const FEW: usize = 64;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt")]
fn places_avx512(all: &[u64; FEW], n: usize, places: &mut [u32; FEW]) {
    places_of(all, n, places);
}

#[inline(always)]
fn places_of(all: &[u64; FEW], n: usize, places: &mut [u32; FEW]) {
    for (value, place) in all[..n].iter().zip(places) {
        let mut larger = 0;
        for eight in all.as_chunks::<8>().0.iter().take(n.div_ceil(8)) {
            larger += eight.iter().map(|v| u32::from(v > value)).sum::<u32>();
        }
        *place = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_order_as_keys_then_ids_and_come_back() {
        let keys = [f32::INFINITY, 3.5, 0.0, -0.0, -1e-30, -2.0, LOWEST, ABSENT];
        for w in keys.windows(2) {
            assert!(pack(w[0], 7) >= pack(w[1], 7), "{w:?}");
        }
        assert_eq!(pack(0.0, 1), pack(-0.0, 1));
        assert!(pack(1.0, 3) > pack(1.0, 4));
        assert_eq!(unpack(pack(-2.5, u32::MAX)), (-2.5, u32::MAX));
    }

    #[test]
    fn a_sigmoid_of_no_number_is_the_lowest() {
        assert_eq!(key(Link::LogSigmoid, -1.0, f32::NAN), LOWEST);
        assert_eq!(key(Link::LogSigmoid, -1.0, f32::INFINITY), -1.0);
        assert_eq!(key(Link::LogSigmoid, -1.0, f32::NEG_INFINITY), LOWEST);
    }

    #[test]
    fn the_best_are_kept_in_order() {
        let mut rng = 1u64;
        for n in [0, 1, 7, 20, 64, 65, 300] {
            let all: Vec<u64> = (0..n)
                .map(|i| {
                    rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (rng >> 40 << 20) | i
                })
                .collect();
            let mut sorted = all.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            for isa in Isa::available() {
                for k in [0, 1, 10, 64, 1000] {
                    let mut kept = all.clone();
                    keep_best(isa, &mut kept, k);
                    assert_eq!(kept, sorted[..k.min(n as usize)], "{isa:?}, {k} of {n}");
                }
            }
        }
    }

    #[test]
    fn those_tied_with_the_kth_are_kept_too() {
        for n in [3, 40, 64, 65, 500] {
            let mut all: Vec<u64> = (0..n).map(|i| pack(-((i * 7 % n / 3) as f32), i * 7 % n)).collect();
            all.rotate_left(n as usize / 2);
            for k in [0, 1, 2, 3, 10, 100, 1000] {
                for slack in [0.0, 1.5] {
                    let mut kept = all.clone();
                    keep_tied(Isa::detect(), &mut kept, k, |key| key - slack);
                    let mut want = all.clone();
                    want.sort_unstable_by(|a, b| b.cmp(a));
                    if let Some(kth) = k.checked_sub(1).and_then(|k| want.get(k)).map(|p| unpack(*p).0) {
                        want.retain(|p| unpack(*p).0 >= kth - slack);
                    } else {
                        want.truncate(k);
                    }
                    assert_eq!(kept, want, "{k} of {n}, slack {slack}");
                }
            }
        }
    }

    #[test]
    fn at_least_k_candidates_reach_the_threshold_and_it_is_tight() {
        let mut state = 1u32;
        let mut sums: Vec<f32> = (0..960)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32 * 3.0 - 2.0
            })
            .collect();
        for isa in Isa::available() {
            for k in [1, 10, 16, 40, 128] {
                let mut maxima = Maxima::new(k);
                let mut made = sums.clone();
                keys(isa, Link::Hinge(3), -0.5, &mut made, 950, &[], &mut maxima);
                let mut out = Vec::new();
                reach(isa, &made, maxima.threshold(isa, k), &mut out);
                assert!(
                    out.len() >= k && out.len() < 4 * k + 16,
                    "{isa:?}: {k} wanted, {} reached",
                    out.len()
                );
            }
        }
        sums.truncate(16);
        let mut maxima = Maxima::new(10);
        keys(Isa::Scalar, Link::Margin, 0.0, &mut sums, 3, &[], &mut maxima);
        assert_eq!(maxima.threshold(Isa::Scalar, 10), LOWEST);
        let mut out = Vec::new();
        reach(Isa::Scalar, &sums, LOWEST, &mut out);
        assert_eq!(out.len(), 3);
    }
}
