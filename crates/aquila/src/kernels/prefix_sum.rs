//! Sums of bytes.

/// For each position, a mask of the bytes before it.
static BEFORE: [[u8; 16]; 16] = {
    let mut masks = [[0; 16]; 16];
    let mut place = 0;
    while place < 16 {
        let mut byte = 0;
        while byte < place {
            masks[place][byte] = 255;
            byte += 1;
        }
        place += 1;
    }
    masks
};

/// The sum of the bytes before a position, which is taken modulo 16.
#[inline(always)]
pub(crate) fn sum_before(bytes: &[u8; 16], place: usize) -> usize {
    let mask = &BEFORE[place % 16];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64; both are 16 bytes.
        unsafe {
            let load = |bytes: &[u8; 16]| _mm_loadu_si128(bytes.as_ptr().cast());
            let sums = _mm_sad_epu8(_mm_and_si128(load(bytes), load(mask)), _mm_setzero_si128());
            (_mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums))) as usize
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    scalar(bytes, mask)
}

/// The scalar version.
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "compared with in tests"))]
fn scalar(bytes: &[u8; 16], mask: &[u8; 16]) -> usize {
    bytes.iter().zip(mask).map(|(byte, mask)| usize::from(byte & mask)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_before_a_place_are_summed() {
        let some: [u8; 16] = std::array::from_fn(|i| (37 * i + 11) as u8);
        for bytes in [[255; 16], some] {
            for place in 0..16 {
                let sum = bytes[..place].iter().map(|b| usize::from(*b)).sum::<usize>();
                assert_eq!((sum_before(&bytes, place), scalar(&bytes, &BEFORE[place])), (sum, sum));
            }
        }
    }
}
