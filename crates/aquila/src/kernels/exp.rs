//! The exponential, and what is made of it, without calls of a library: so loops over it become vectors, and its bits are the
//! same wherever they run.

/// exp(v) for `v` from −87 to 87, within some 10⁻⁷ of it. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp(v: f32) -> f32 {
    // exp(v) = 2ⁿ · exp(r) with |r| ≤ ln 2 / 2. Adding the large number leaves n in the last bits.
    const LARGE: f32 = 12_582_912.0;
    let shifted = v * std::f32::consts::LOG2_E + LARGE;
    let n = shifted - LARGE;
    // ln 2 in two parts, the first of few digits, so that the difference is exact.
    let r = (v - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let part = 1.0 / 24.0 + r * (1.0 / 120.0 + r / 720.0);
    let part = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * part)));
    let power = (shifted.to_bits() as i32).wrapping_sub(LARGE.to_bits() as i32).wrapping_add(127);
    part * f32::from_bits((power << 23) as u32)
}

/// ln(1 + exp(v)) for `v` up to 0, within some 10⁻⁷ of it.
#[inline(always)]
pub(crate) fn ln_1p_exp(v: f32) -> f32 {
    // Not `max`, which would make a number of NaN.
    let e = exp(if v < -87.0 { -87.0 } else { v });
    // ln(1 + e) = 2·artanh(e / (2 + e)), of at most a third.
    let s = e / (2.0 + e);
    let square = s * s;
    let series = 1.0 / 7.0 + square * (1.0 / 9.0 + square * (1.0 / 11.0 + square / 13.0));
    let series = 1.0 / 3.0 + square * (1.0 / 5.0 + square * series);
    2.0 * (s + s * square * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_libraries_say() {
        for at in -174_000..=174_000 {
            let v = at as f32 * 5e-4;
            let (found, want) = (f64::from(exp(v)), f64::from(v).exp());
            assert!((found / want - 1.0).abs() < 3e-7, "{v}: {found:e} for {want:e}");
        }
        for at in 0..=200_000 {
            let v = -(at as f32) * 5e-4;
            let (found, want) = (f64::from(ln_1p_exp(v)), f64::from(v).exp().ln_1p());
            // Below e⁻⁸⁷ nothing is left of it beside a margin.
            let slack = if v < -87.0 { 1e-37 } else { 4e-7 * want };
            assert!((found - want).abs() <= slack, "{v}: {found:e} for {want:e}");
        }
        assert!(
            ln_1p_exp(f32::NEG_INFINITY) < 1e-37 && ln_1p_exp(f32::NAN).is_nan() && exp(f32::NAN).is_nan()
        );
        assert_eq!((exp(0.0), ln_1p_exp(0.0)), (1.0, std::f32::consts::LN_2));
    }
}
