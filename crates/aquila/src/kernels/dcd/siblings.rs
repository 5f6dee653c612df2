//! The state of labels that step together (weights, duals and bias), and the pruning of their weights at the end.

use super::{MOST, Rows};
use crate::kernels::Isa;
use crate::kernels::aligned::Aligned;
use crate::kernels::lanes::{Lanes, Work, dispatch};

/// The siblings' state: `w` by feature and `alpha` by row, one float per lane each.
#[derive(Debug, Default)]
pub struct Siblings {
    width: usize,
    pub(in crate::kernels) w: Aligned,
    pub(in crate::kernels) panel: Aligned,
    /// The panel rounded to bf16 pairs, where rows are stored as such pairs.
    pub(in crate::kernels) rounded: Aligned,
    pub(in crate::kernels) alpha: Aligned,
    pub(in crate::kernels) bias: [f32; MOST],
    pub(in crate::kernels) resting: Vec<bool>,
}

impl Siblings {
    /// Resets the state to zero for these rows and 4, 8, 16 or 32 lanes; memory is reused.
    pub fn reset(&mut self, rows: &Rows<'_>, width: usize) {
        assert!(matches!(width, 4 | 8 | 16 | 32));
        self.width = width;
        self.w.reset(rows.cols() * width);
        let (steps, paired) = (rows.dense.steps(), rows.dense.paired());
        // The column that pads the last pair has a weight too, always 0.
        self.panel.reset(if paired { 2 * steps } else { steps } * width);
        self.rounded.reset(if paired { steps * width } else { 0 });
        self.alpha.reset(rows.len() * width);
        self.bias = [0.0; MOST];
        self.resting.clear();
        self.resting.resize(rows.len(), false);
    }

    /// Number of lanes.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Weights of a local feature, one per lane.
    pub fn weights(&self, feature: usize) -> &[f32] {
        &self.w[feature * self.width..(feature + 1) * self.width]
    }

    /// Weights of the dense columns, column by column, one per lane.
    pub fn panel(&self) -> &[f32] {
        &self.panel
    }

    /// The bias weight of each lane.
    pub fn bias(&self) -> &[f32; MOST] {
        &self.bias
    }

    /// The dual variables of a row, one per lane.
    pub fn alpha(&self, row: usize) -> &[f32] {
        &self.alpha[row * self.width..(row + 1) * self.width]
    }

    /// Pruning: for each feature, the lanes with a weight of at least this magnitude.
    pub fn survivors(&self, isa: Isa, threshold: f32, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.w.len() / self.width, 0);
        dispatch(isa, self.width, Survivors { w: &self.w, threshold, out });
    }
}

struct Survivors<'a> {
    w: &'a [f32],
    threshold: f32,
    out: &'a mut [u32],
}

impl Work for Survivors<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        assert!(self.w.len() == self.out.len() * V::N);
        // SAFETY: the length was just checked.
        unsafe {
            let (high, low) = (V::splat(self.threshold), V::splat(-self.threshold));
            let zero = V::splat(0.0);
            for (f, bits) in self.out.iter_mut().enumerate() {
                let w = V::load(self.w.as_ptr().add(f * V::N));
                let small = w.less(high) & low.less(w);
                let present = w.less(zero) | zero.less(w);
                *bits = !small & present;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::dcd::Entries;

    #[test]
    fn survivors_are_the_lanes_of_at_least_the_threshold_but_never_a_zero() {
        let rows = Rows::new(Entries::new(&[], &[], 2), &[]);
        for isa in Isa::available() {
            for width in [4, 8, 16, 32] {
                let mut siblings = Siblings::default();
                siblings.reset(&rows, width);
                siblings.w[width..width + 4].copy_from_slice(&[0.1, -0.1, 0.09, -3.0]);
                let mut survivors = vec![7; 9];
                siblings.survivors(isa, 0.1, &mut survivors);
                assert_eq!(survivors, [0, 0b1011], "{isa:?} {width}");
                siblings.survivors(isa, 0.0, &mut survivors);
                assert_eq!(survivors, [0, 0b1111], "{isa:?} {width}");
            }
        }
    }
}
