//! Numbers out of text, at the speed of memory and to the last bit of `str::parse`.

/// Powers of ten that an f64 holds exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// As many decimal digits as always fit into a u64.
const DIGITS: usize = 19;

/// Whether a byte ends a number or a word.
pub(super) fn is_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'#')
}

/// Whether a number that stops at `at` stops at the end of its word.
fn ends(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|b| is_end(*b))
}

/// Where the word that holds `at` ends.
pub(super) fn word_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|b| is_end(*b)).map_or(text.len(), |n| at + n)
}

/// Adds the digits from `at` on to `number`, wrapping, and returns where they end.
#[inline(always)]
fn digits(text: &[u8], mut at: usize, number: &mut u64) -> usize {
    while let Some(byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// An unsigned integer at `at` and where it ends; `None` where no digit stands. What passes a u64 saturates.
#[inline(always)]
pub(super) fn integer(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    let end = digits(text, at, &mut number);
    match end - at {
        0 => None,
        1..=DIGITS => Some((number, end)),
        _ => Some((u64::MAX, end)),
    }
}

/// The f32 whose word begins at `at`, and where the word ends; `None` where the word is no number. Always equal to
/// `str::parse::<f32>` of the word, infinities and NaN included.
#[inline(always)]
pub(super) fn float(text: &[u8], at: usize) -> Option<(f32, usize)> {
    quick_float(text, at).or_else(|| slow_float(text, at))
}

#[cold]
#[inline(never)]
fn slow_float(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let end = word_end(text, at);
    let word = std::str::from_utf8(&text[at..end]).ok()?;
    Some((word.parse().ok()?, end))
}

/// A float of at most 19 digits whose f64 arithmetic provably rounds to the right f32; `None` asks for the slow way.
#[inline(always)]
fn quick_float(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let first = *text.get(at)?;
    let negative = first == b'-';
    let start = at + usize::from(negative || first == b'+');
    let mut mantissa = 0;
    let mut at = digits(text, start, &mut mantissa);
    let mut count = at - start;
    let mut exponent = 0i64;
    if text.get(at) == Some(&b'.') {
        let end = digits(text, at + 1, &mut mantissa);
        let places = end - (at + 1);
        exponent = -(places as i64);
        count += places;
        at = end;
    }
    if count == 0 || count > DIGITS {
        return None;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let sign = text.get(at + 1).copied();
        let start = at + 1 + usize::from(matches!(sign, Some(b'+' | b'-')));
        let mut shift = 0;
        at = digits(text, start, &mut shift);
        if !(1..=4).contains(&(at - start)) {
            return None;
        }
        exponent += if sign == Some(b'-') { -(shift as i64) } else { shift as i64 };
    }
    if !ends(text, at) {
        return None;
    }
    let size = scale(mantissa, exponent)?;
    Some((if negative { -size } else { size }, at))
}

/// `mantissa · 10^exponent` as the nearest f32, where f64 arithmetic can tell it.
#[inline(always)]
fn scale(mantissa: u64, exponent: i64) -> Option<f32> {
    if mantissa == 0 {
        return Some(0.0);
    }
    let ten = *TENS.get(exponent.unsigned_abs() as usize)?;
    let wide = if exponent < 0 { mantissa as f64 / ten } else { mantissa as f64 * ten };
    // Rounding the mantissa and the product costs at most two units in the last place of the f64. The f32 next to it
    // is the f32 next to the true value unless a midpoint of two f32 lies within that distance. No value here
    // is below 1e-22, so none is near the subnormal f32, whose midpoints lie elsewhere.
    const MIDPOINT: u64 = 1 << 28;
    let low = wide.to_bits() & (2 * MIDPOINT - 1);
    if low.abs_diff(MIDPOINT) <= 2 {
        return None;
    }
    Some(wide as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Equal bits, but any NaN is any NaN.
    fn same(a: Option<f32>, b: Option<f32>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            _ => a.is_none() && b.is_none(),
        }
    }

    fn check(word: &str) {
        let ours = float(format!("{word} 1:2").as_bytes(), 0);
        assert!(ours.is_none_or(|(_, end)| end == word.len()), "{word}");
        assert!(
            same(ours.map(|o| o.0), word.parse().ok()),
            "{word}: {ours:?} is not {:?}",
            word.parse::<f32>()
        );
        assert!(same(float(word.as_bytes(), 0).map(|o| o.0), word.parse().ok()), "{word} at the end");
    }

    #[test]
    fn floats_of_every_form() {
        for word in [
            "0",
            "-0",
            "+0",
            "1",
            "-1",
            "+1",
            "1.",
            ".5",
            "-.5",
            "1e5",
            "1E5",
            "1e+5",
            "1e-5",
            "1.5e10",
            "0e999",
            "16777217",
            "16777219",
            "8388608.5",
            "8388609.5",
            "340282350000000000000000000000000000000",
            "3.4028235677973366e38",
            "3.4028236e38",
            "1e39",
            "1e-45",
            "7e-46",
            "1.17549435e-38",
            "1.1754943e-38",
            "9007199791611905",
            "0.1000000000000000055511151231257827",
            "18446744073709551615",
            "9999999999999999999",
            "99999999999999999999",
            "00000000000000000000001",
            "0.00000000000000000000001",
            "1e22",
            "1e23",
            "nan",
            "inf",
            "-inf",
            "infinity",
            "NaN",
            "1e99999",
            "1e-99999",
            "1e9999",
            "",
            "-",
            "+",
            ".",
            "-.",
            "e5",
            "1e",
            "1e+",
            "1e-",
            "1..2",
            "1.2.3",
            "1,5",
            "--1",
            "+-1",
            "0x10",
            "1f",
            "1_0",
            "\u{661}",
            "1e5.0",
        ] {
            check(word);
        }
    }

    #[test]
    fn integers() {
        assert_eq!(integer(b"0 ", 0), Some((0, 1)));
        assert_eq!(integer(b"a42:", 1), Some((42, 3)));
        assert_eq!(integer(b"9999999999999999999", 0), Some((9_999_999_999_999_999_999, 19)));
        assert_eq!(integer(b"99999999999999999999", 0), Some((u64::MAX, 20)));
        assert_eq!(integer(b"", 0), None);
        assert_eq!(integer(b"-1", 0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn floats_of_any_digits(word in "[+-]?[0-9]{0,22}(\\.[0-9]{0,22})?([eE][+-]?[0-9]{1,3})?") {
            check(&word);
        }

        #[test]
        fn floats_written_by_rust(bits: u32) {
            let value = f32::from_bits(bits);
            check(&value.to_string());
            check(&format!("{value:e}"));
        }

        /// Decimal expansions of midpoints, cut or changed in a late digit: where double rounding would show.
        #[test]
        fn floats_near_midpoints(bits in 0x2000_0000u32..0x6000_0000, digits in 14usize..20, step in -1i64..=1) {
            let (low, high) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            let middle = (f64::from(low) + f64::from(high)) / 2.0;
            let text = format!("{middle:.*e}", digits - 1);
            let (mantissa, exponent) = text.split_once('e').unwrap();
            let mantissa: i64 = mantissa.replace('.', "").parse::<i64>().unwrap_or(i64::MAX / 2) + step;
            let exponent: i64 = exponent.parse::<i64>().unwrap() - (digits as i64 - 1);
            check(&format!("{mantissa}e{exponent}"));
            if (-30..0).contains(&exponent) && mantissa > 0 {
                let places = (-exponent) as usize;
                let padded = format!("{mantissa:0>width$}", width = places + 1);
                let (whole, part) = padded.split_at(padded.len() - places);
                check(&format!("{whole}.{part}"));
            }
        }

        #[test]
        fn floats_from_any_word(word in "[0-9eE.+\\-infax]{0,12}") {
            check(&word);
        }
    }
}
