//! Floats aligned to a cache line.
//!
//! The solver's state holds one line of 16 floats per feature and reads the lines in random order. An allocator aligns
//! floats to 16 bytes, and then each of these reads touches two lines.

use super::pages::large_vec;

/// One cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A vector of floats that starts at a cache line.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    /// Resets it to this many zeros.
    pub fn reset(&mut self, len: usize) {
        self.lines.clear();
        let lines = len.div_ceil(16);
        if lines > self.lines.capacity() {
            // The current content is not needed and would be copied.
            self.lines = large_vec(lines);
        }
        self.lines.resize(lines, Line([0.0; 16]));
        self.len = len;
    }
}

impl std::ops::Deref for Aligned {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        // SAFETY: lines consist only of floats, and `reset` allocated enough of them for `len`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Aligned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zeros_at_a_line_at_every_length() {
        let mut floats = Aligned::default();
        for len in [0, 1, 15, 16, 17, 4096, 3] {
            floats.reset(len);
            assert_eq!((floats.len(), floats.as_ptr() as usize % 64), (len, 0));
            assert!(floats.iter().all(|v| *v == 0.0));
            floats.fill(1.0);
        }
    }
}
