//! How weights are stored, as the kernels see it.

/// A storage format of weights: see `xlinear::WeightFormat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// 8-bit minifloats.
    Byte(ByteCodes),
    /// The upper half of an f32.
    Bf16,
    /// f32.
    F32,
}

/// A format known at compile time, so that each kernel is compiled once for each.
pub(super) trait Codes: Copy {
    /// Bytes of a weight.
    const BYTES: usize;
    /// What decoded weights are multiplied with, a power of two. It goes into the features' values.
    #[inline(always)]
    fn unit(self) -> f32 {
        1.0
    }
    /// The weight of a code, in units of [`Self::unit`].
    fn decode(self, code: &[u8]) -> f32;
    /// The weights of four codes.
    #[inline(always)]
    fn decode4(self, codes: &[u8]) -> [f32; 4] {
        let mut weights = [0.0; 4];
        for (weight, code) in weights.iter_mut().zip(codes.chunks_exact(Self::BYTES)) {
            *weight = self.decode(code);
        }
        weights
    }
    /// The weights of a word of a full section, where a code of zeros says that there is none.
    #[inline(always)]
    fn decode_full(self, codes: &[u8]) -> [f32; 16] {
        // Zeros are 0 in both formats of floats.
        let mut weights = [0.0; 16];
        for (weight, code) in weights.iter_mut().zip(codes.chunks_exact(Self::BYTES)) {
            *weight = self.decode(code);
        }
        weights
    }
}

/// The minifloat: `f32 bits = ((code & 127) + base) << shift | sign`.
///
/// With a base whose low seven bits are 0 the sum is a plain "or", and a vector is decoded by a shift and one
/// operation of three operands. So weights are decoded with the next such base, as multiples of a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteCodes {
    /// 23 minus the mantissa's bits.
    pub(super) shift: u32,
    /// What a code's low seven bits, shifted, are joined with.
    pub(super) base: u32,
    /// The unit is 2 to the power of minus that.
    binades: u32,
}

impl ByteCodes {
    /// Bits of a shifted code that count when its sign was extended.
    #[inline(always)]
    pub(super) fn field(self) -> u32 {
        1 << 31 | 127 << self.shift
    }

    /// The codes of these mantissa bits and this base, which begins at a power of two; none if they make no numbers.
    pub fn new(mantissa: u32, base: u32) -> Option<Self> {
        if mantissa > 7 || !base.is_multiple_of(1 << mantissa) {
            return None;
        }
        // Above that, the largest code would be no finite number.
        let most = (255u32 << mantissa) - 128;
        let above = base.checked_next_multiple_of(128).filter(|b| *b <= most)?;
        let shift = 23 - mantissa;
        Some(Self { shift, base: above << shift, binades: (above - base) >> mantissa })
    }
}

/// See [`CodeKind::Bf16`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16Codes;

/// See [`CodeKind::F32`].
#[derive(Debug, Clone, Copy)]
pub(super) struct F32Codes;

impl Codes for ByteCodes {
    const BYTES: usize = 1;
    #[inline(always)]
    fn decode(self, code: &[u8]) -> f32 {
        let c = i32::from(code[0] as i8) as u32;
        f32::from_bits((c << self.shift) & self.field() | self.base)
    }
    #[inline(always)]
    fn unit(self) -> f32 {
        f32::from_bits((127 - self.binades) << 23)
    }
    #[inline(always)]
    fn decode4(self, codes: &[u8]) -> [f32; 4] {
        let codes = codes.first_chunk::<4>().copied().unwrap_or_default();
        let moved = codes.map(|code| (i32::from(code as i8) as u32) << self.shift);
        moved.map(|moved| f32::from_bits(moved & self.field() | self.base))
    }
    /// A weight's bits fit the upper half of an f32, and so do twice as many the registers.
    #[inline(always)]
    fn decode_full(self, codes: &[u8]) -> [f32; 16] {
        let Some(codes) = codes.first_chunk::<16>() else { return [0.0; 16] };
        let (shift, field, base) = (self.shift - 16, (self.field() >> 16) as u16, (self.base >> 16) as u16);
        let mut halves = [0; 16];
        for (half, code) in halves.iter_mut().zip(codes) {
            let any = (i16::from(*code as i8) as u16) << shift & field | base;
            *half = if *code == 0 { 0 } else { any };
        }
        halves.map(|half| f32::from_bits(u32::from(half) << 16))
    }
}

impl Codes for Bf16Codes {
    const BYTES: usize = 2;
    #[inline(always)]
    fn decode(self, code: &[u8]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes([code[0], code[1]])) << 16)
    }
}

impl Codes for F32Codes {
    const BYTES: usize = 4;
    #[inline(always)]
    fn decode(self, code: &[u8]) -> f32 {
        f32::from_le_bytes([code[0], code[1], code[2], code[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_in_units_are_the_weights() {
        for (mantissa, base) in [(4, 123 << 4), (3, 116 << 3), (3, 0), (7, 5 << 7), (1, 126 << 1)] {
            let codes = ByteCodes::new(mantissa, base).unwrap();
            for code in 0..=255u8 {
                let bits = ((u32::from(code & 127) + base) << (23 - mantissa)) | u32::from(code >> 7) << 31;
                assert_eq!(codes.decode(&[code]) * codes.unit(), f32::from_bits(bits), "{mantissa}, {base}");
            }
        }
    }

    #[test]
    fn codes_of_no_numbers_are_refused() {
        // Beside a power of two, past all numbers, with infinities, too many bits.
        for (mantissa, base) in [(4, 123 << 4 | 1), (4, u32::MAX << 4), (4, 250 << 4), (0, 120), (8, 0)] {
            assert_eq!(ByteCodes::new(mantissa, base), None, "{mantissa}, {base}");
        }
    }
}
