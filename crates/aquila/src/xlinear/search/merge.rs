//! The one place where the scores of a label's slots become the label's score.

use crate::kernels::select::LOWEST;
use crate::xlinear::Merge;

/// Scratch memory: (label, key) of every slot that was reached.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub reached: Vec<(u32, f32)>,
}

impl Slots {
    /// Calls `each` with every label and its key: what `how` makes of its slots' **scores**; `slots` tells how many a
    /// label has, and `edge` is the key that no node passed over by the search exceeds.
    ///
    /// `logs` says that keys are logarithms of scores, whichever of the two is shown. Then the key of the mean is
    /// `max + ln(Σ exp(key − max) / n)`, which does not underflow; otherwise scores are keys. Slots that were never
    /// trained count only where a label has no other.
    pub fn merge(
        &mut self,
        how: Merge,
        logs: bool,
        edge: f32,
        slots: impl Fn(u32) -> usize,
        mut each: impl FnMut(u32, f32),
    ) {
        // By key too, so that sums do not depend on the order in which slots were reached.
        self.reached.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        for reached in self.reached.chunk_by(|a, b| a.0 == b.0) {
            let (label, best) = reached[0];
            let trained = reached.iter().take_while(|s| s.1 > LOWEST);
            let (mut n, mut sum) = (0u32, 0.0);
            for (_, key) in trained {
                n += 1;
                sum += if logs { (key - best).exp() } else { *key };
            }
            let shared = match how {
                Merge::All if logs && n > 0 => {
                    let missing = slots(label).saturating_sub(n as usize) as f32;
                    // What a leaf that was not reached can have scored, and no more than those that were.
                    sum += missing * (edge - best).exp().min(sum / n as f32);
                    n as f32 + missing
                }
                Merge::All | Merge::Average => n as f32,
                Merge::Max | Merge::Sum => 1.0,
            };
            each(
                label,
                match n {
                    0 => LOWEST,
                    _ if how == Merge::Max || (n == 1 && shared == 1.0) => best,
                    _ if logs => best + (sum / shared).ln(),
                    _ => sum / shared,
                },
            );
        }
    }
}
