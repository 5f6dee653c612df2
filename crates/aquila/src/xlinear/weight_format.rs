//! How a weight is stored: 8-bit minifloat, bf16 or f32.

crate::choice! {
    /// Names of the storage formats of weights.
    pub enum WeightKind {
        /// One byte: sign, exponent, mantissa. P@k within 0.05 of f32 on average over models.
        Byte = "u8",
        /// Two bytes: the upper half of an f32, rounded to nearest even.
        Bf16 = "bf16",
        /// Four bytes.
        F32 = "f32",
    }
}

/// A storage format with its constants.
///
/// The byte is a minifloat: bit 7 is the sign, the others are the exponent and upper mantissa bits of an f32 with a
/// shifted base: `f32 bits = ((code & 127) + base) << (23 - mantissa) | sign << 31`. Magnitudes outside its range are
/// clipped to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightFormat {
    /// The 8-bit minifloat.
    Byte {
        /// Mantissa bits, 3 or 4; the other bits below the sign are exponent bits.
        mantissa: u32,
        /// Offset added to the low 7 bits before they become f32 bits.
        base: u32,
    },
    /// bfloat16.
    Bf16,
    /// f32, little-endian.
    F32,
}

impl WeightFormat {
    /// The format of a kind for weights whose magnitudes are at least `threshold` (the pruning threshold).
    ///
    /// Four mantissa bits span 8 binades, enough from 0.0625 to 15.5; a lower threshold gets three mantissa
    /// bits and 16 binades, from 2⁻¹¹ to 30.
    pub fn new(kind: WeightKind, threshold: f32) -> Self {
        match kind {
            WeightKind::F32 => Self::F32,
            WeightKind::Bf16 => Self::Bf16,
            WeightKind::Byte => {
                let (mantissa, lowest) = if threshold >= 0.0625 { (4, -4) } else { (3, -11) };
                Self::Byte { mantissa, base: ((127 + lowest) as u32) << mantissa }
            }
        }
    }

    /// Bytes of one weight.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Byte { .. } => 1,
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// The kind.
    pub const fn kind(self) -> WeightKind {
        match self {
            Self::Byte { .. } => WeightKind::Byte,
            Self::Bf16 => WeightKind::Bf16,
            Self::F32 => WeightKind::F32,
        }
    }

    /// The byte code of a weight with these minifloat constants.
    #[inline(always)]
    pub fn byte_code(weight: f32, mantissa: u32, base: u32) -> u8 {
        let bits = weight.to_bits();
        let shift = 23 - mantissa;
        let rounded = ((bits & 0x7fff_ffff) + (1 << (shift - 1))) >> shift;
        let magnitude = rounded.clamp(base, base + 127) - base;
        (magnitude | (bits >> 31) << 7) as u8
    }

    /// Appends the code of a weight.
    pub fn encode(self, weight: f32, out: &mut Vec<u8>) {
        match self {
            Self::Byte { mantissa, base } => out.push(Self::byte_code(weight, mantissa, base)),
            Self::Bf16 => {
                let bits = weight.to_bits();
                let rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
                out.extend_from_slice(&(rounded as u16).to_le_bytes());
            }
            Self::F32 => out.extend_from_slice(&weight.to_le_bytes()),
        }
    }

    /// The weight of a code of [`WeightFormat::bytes`] bytes.
    pub fn decode(self, code: &[u8]) -> f32 {
        match self {
            Self::Byte { mantissa, base } => {
                let c = u32::from(code[0]);
                f32::from_bits((((c & 127) + base) << (23 - mantissa)) | ((c & 128) << 24))
            }
            Self::Bf16 => f32::from_bits(u32::from(u16::from_le_bytes([code[0], code[1]])) << 16),
            Self::F32 => f32::from_le_bytes([code[0], code[1], code[2], code[3]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        for threshold in [0.1, 0.001] {
            let format = WeightFormat::new(WeightKind::Byte, threshold);
            for code in 0..=255u8 {
                let mut out = Vec::new();
                format.encode(format.decode(&[code]), &mut out);
                assert_eq!(out, [code], "threshold {threshold}");
            }
        }
    }

    #[test]
    fn bytes_are_within_half_a_step_and_clip_at_the_ends() {
        let format = WeightFormat::new(WeightKind::Byte, 0.1);
        let back = |w: f32| {
            let mut out = Vec::new();
            format.encode(w, &mut out);
            format.decode(&out)
        };
        for i in 0..2000 {
            let w = 0.0625 * 1.0027f32.powi(i);
            assert!(w > 15.5 || (back(w) - w).abs() <= w / 31.9, "{w} became {}", back(w));
            assert_eq!(back(-w), -back(w));
        }
        assert_eq!((back(100.0), back(0.0001)), (15.5, 0.0625));
    }
}
