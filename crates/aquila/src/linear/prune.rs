//! Which weights of a block are kept.

use crate::kernels::Isa;
use crate::kernels::dcd::Siblings;

/// For each local feature the lanes whose weight is kept: magnitude at least `threshold` and, where `most` is not
/// 0, among the lane's `most` largest (the lower feature wins a tie).
pub fn survivors(isa: Isa, siblings: &Siblings, threshold: f32, most: usize, out: &mut Vec<u16>) {
    siblings.survivors(isa, threshold, out);
    if most == 0 {
        return;
    }
    for lane in 0..siblings.width() {
        let bit = 1u16 << lane;
        let mut kept: Vec<u32> =
            (0u32..).zip(out.iter()).filter(|(_, m)| **m & bit != 0).map(|(f, _)| f).collect();
        if kept.len() <= most {
            continue;
        }
        let magnitude = |f: &u32| siblings.weights(*f as usize)[lane].abs();
        kept.select_nth_unstable_by(most, |a, b| magnitude(b).total_cmp(&magnitude(a)).then(a.cmp(b)));
        kept[most..].iter().for_each(|f| out[*f as usize] &= !bit);
    }
}
