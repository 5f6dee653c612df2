//! Floats of two bytes, two in each lane of a register.
//!
//! bf16 is the upper half of an f32: 8 bits of mantissa. A processor that multiplies pairs of bf16 values and adds the
//! products in f32 (AVX-512 BF16) does two multiply-adds in the time of one.

use super::Isa;

/// Rounds two floats, ties to even; the first is in the lower half.
#[inline(always)]
pub(crate) fn pack(low: f32, high: f32) -> u32 {
    round(low) | round(high) << 16
}

/// The two floats of a pair.
#[inline(always)]
pub(crate) fn unpack(pair: u32) -> [f32; 2] {
    [f32::from_bits(pair << 16), f32::from_bits(pair & 0xffff_0000)]
}

#[inline(always)]
fn round(v: f32) -> u32 {
    let bits = v.to_bits();
    // Values at the ends of the range stay finite.
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)).min((bits & 0x8000_0000) | 0x7f7f_ffff) >> 16
}

/// Writes a row as pairs; the last one is padded with a 0.
pub fn write_pairs(row: &[f32], pairs: &mut [u32]) {
    for (pair, two) in pairs.iter_mut().zip(row.chunks(2)) {
        *pair = pack(two[0], two.get(1).copied().unwrap_or(0.0));
    }
}

/// Whether multiplying bf16 values is faster than multiplying floats on this processor.
pub fn faster(isa: Isa) -> bool {
    isa == Isa::Avx512 && native()
}

/// Whether the processor has instructions that multiply bf16 values.
pub(super) fn native() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_to_the_nearest_and_stay_finite() {
        for (v, want) in [
            (0.0, 0.0),
            (1.0, 1.0),
            (1.0 + 1.0 / 256.0, 1.0),       // a tie, to even
            (1.0 + 3.0 / 256.0, 1.015_625), // a tie, to even
            (-1.004, -1.007_812_5),
            (f32::MAX, 3.389_531_4e38),
            (f32::MIN, -3.389_531_4e38),
        ] {
            assert_eq!(unpack(pack(v, -v)), [want, -want], "{v}");
        }
    }

    #[test]
    fn the_last_pair_of_an_odd_row_is_filled_up() {
        let mut pairs = [9; 2];
        write_pairs(&[1.0, 2.0, -3.0], &mut pairs);
        assert_eq!(pairs.map(unpack), [[1.0, 2.0], [-3.0, 0.0]]);
    }
}
