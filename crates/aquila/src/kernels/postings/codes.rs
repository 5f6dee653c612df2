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
    /// The weight of a code.
    fn decode(self, code: &[u8]) -> f32;
}

/// The minifloat: `f32 bits = ((code & 127) + base) << shift | sign`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteCodes {
    /// 23 minus the mantissa's bits.
    pub shift: u32,
    /// Added to the low seven bits.
    pub base: u32,
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
        let c = u32::from(code[0]);
        f32::from_bits((((c & 127) + self.base) << self.shift) | ((c & 128) << 24))
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
