//! The one place where the scores of a label's slots become the label's score.

use crate::kernels::select::LOWEST;

/// Scratch memory: (label, key) of every slot that was reached.
#[derive(Debug, Default)]
pub(super) struct Merge {
    pub slots: Vec<(u32, f32)>,
}

impl Merge {
    /// Calls `each` with every label and its key: the mean of its slots' **scores**.
    ///
    /// `products` says that scores are exponentials of keys. Then the key of the mean is
    /// `max + ln(Σ exp(key − max) / n)`, which does not underflow; otherwise scores are keys. Slots that were never
    /// trained count only where a label has no other.
    pub fn each(&mut self, products: bool, mut each: impl FnMut(u32, f32)) {
        // By key too, so that sums do not depend on the order in which slots were reached.
        self.slots.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        for slots in self.slots.chunk_by(|a, b| a.0 == b.0) {
            let (label, best) = slots[0];
            let trained = slots.iter().take_while(|s| s.1 > LOWEST);
            let (mut n, mut sum) = (0u32, 0.0);
            for (_, key) in trained {
                n += 1;
                sum += if products { (key - best).exp() } else { *key };
            }
            each(
                label,
                match n {
                    0 => LOWEST,
                    1 => best,
                    _ if products => best + (sum / n as f32).ln(),
                    _ => sum / n as f32,
                },
            );
        }
    }
}
