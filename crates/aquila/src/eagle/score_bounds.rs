//! Bounds on a label's scores, so that most samples need not be scored again in each round of GRLR.
//!
//! With `E = R + s·G`, where `s` sums the steps along `G`, `⟨E, x⟩ = ⟨R, x⟩ + s·⟨G, x⟩`: both products, once computed,
//! give the score for as long as `G` stays. When `G` changes by `Δ_t` at `s_t`, `R` changes by `−s_t·Δ_t`, and a score
//! computed earlier is off by `⟨Σ_t (s − s_t)·Δ_t, x⟩`: for an `x` of length 1, by no more than the length of that sum,
//! its *drift*. Few samples change `G` at a time, so changes are short lists, and their products with each other give
//! the length of any sum of them.

/// The drift of a label's sums since one of the changes of `G`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drift {
    /// `‖Σ (s − s_t)·Δ_t‖` and `‖Σ Δ_t‖` over the changes since then.
    pub doubt: f64,
    pub turned: f64,
}

/// The changes of one label's `G`, and the drift since each.
#[derive(Debug, Default)]
pub(super) struct ScoreBounds {
    /// `s`.
    steps: f64,
    /// Of each change its `s_t` and where its entries end.
    changes: Vec<(f64, usize)>,
    entries: Vec<(u32, f32)>,
    /// `⟨Δ_t, Δ_r⟩` for `r ≤ t`, change by change.
    products: Vec<f64>,
    drifts: Vec<Drift>,
}

impl ScoreBounds {
    /// Starts over: `s` is 0 and no score has been computed.
    pub fn restart(&mut self) {
        self.steps = 0.0;
        self.forget();
    }

    /// Forgets the changes, when all samples are scored again.
    pub fn forget(&mut self) {
        self.changes.clear();
        self.entries.clear();
        self.products.clear();
        self.measure();
    }

    /// `s`.
    pub fn steps(&self) -> f64 {
        self.steps
    }

    /// Takes a step `u` along `G`.
    pub fn advance(&mut self, u: f64) {
        self.steps += u;
    }

    /// Multiplies `E`; changes must be forgotten.
    pub fn scale(&mut self, factor: f64) {
        self.steps *= factor;
    }

    /// How many changes there were: a score computed now is from after so many.
    pub fn changes(&self) -> u16 {
        self.changes.len() as u16 // fewer than there may be rounds
    }

    /// The cost of keeping the changes, in products.
    pub fn burden(&self) -> usize {
        self.entries.len() + self.products.len()
    }

    /// The drift after each number of changes, as last computed.
    pub fn drifts(&self) -> &[Drift] {
        &self.drifts
    }

    /// Computes the drift after each number of changes.
    pub fn measure(&mut self) {
        let Self { steps, changes, products, drifts, .. } = self;
        drifts.clear();
        drifts.resize(changes.len() + 1, Drift::default());
        let product = |t: usize, r: usize| products[t * (t + 1) / 2 + r];
        let (mut doubt, mut turned) = (0.0, 0.0);
        for r in (0..changes.len()).rev() {
            let (mut with_doubt, mut with_turned) = (0.0, 0.0);
            for (t, (then, _)) in changes.iter().enumerate().skip(r + 1) {
                with_doubt += (*steps - then) * product(t, r);
                with_turned += product(t, r);
            }
            let (gone, squared) = (*steps - changes[r].0, product(r, r));
            doubt += gone * (gone * squared + 2.0 * with_doubt);
            turned += squared + 2.0 * with_turned;
            drifts[r] = Drift { doubt: f64::max(doubt, 0.0).sqrt(), turned: f64::max(turned, 0.0).sqrt() };
        }
    }

    /// Records a change of `G` by what `change` holds of these features, which may repeat, and gives each entry of it to `meet`;
    /// `change` is left zero. Returns the change's squared length.
    pub fn record_change(
        &mut self,
        change: &mut [f32],
        features: impl Iterator<Item = u32>,
        mut meet: impl FnMut(u32, f32),
    ) -> f64 {
        let mut begin = 0;
        for (_, end) in &self.changes {
            let entries = &self.entries[std::mem::replace(&mut begin, *end)..*end];
            let products = entries.iter().map(|(j, v)| f64::from(*v) * f64::from(change[*j as usize]));
            self.products.push(products.sum());
        }
        let mut squared = 0.0;
        for j in features {
            // A feature that was met is zero by now.
            let delta = std::mem::take(&mut change[j as usize]);
            if delta != 0.0 {
                squared += f64::from(delta) * f64::from(delta);
                self.entries.push((j, delta));
                meet(j, delta);
            }
        }
        self.products.push(squared);
        self.changes.push((self.steps, self.entries.len()));
        squared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn lengths_are_those_of_the_sums_of_turns() {
        let mut rng = Rng::new(&[9]);
        let features = 8;
        let (mut bounds, mut at) = (ScoreBounds::default(), [0.0; 8]);
        let mut changes: Vec<(f64, Vec<f64>)> = Vec::new();
        for round in 0..12 {
            bounds.measure();
            assert_eq!(bounds.drifts().len(), usize::from(bounds.changes()) + 1);
            for (then, drift) in bounds.drifts().iter().enumerate() {
                let length = |factor: &dyn Fn(f64) -> f64| {
                    let sum =
                        |j: usize| changes[then..].iter().map(|(s, by)| factor(*s) * by[j]).sum::<f64>();
                    (0..features).map(|j| sum(j).powi(2)).sum::<f64>().sqrt()
                };
                assert!((drift.doubt - length(&|s| bounds.steps() - s)).abs() < 1e-6, "{round} {then}");
                assert!((drift.turned - length(&|_| 1.0)).abs() < 1e-6, "{round} {then}");
            }
            if round % 3 != 1 {
                let mut change: Vec<f32> = (0..features).map(|_| rng.below(5) as f32 * 0.5 - 1.0).collect();
                let by: Vec<f64> = change.iter().map(|v| f64::from(*v)).collect();
                let met = (0..features as u32).chain([3, 1]);
                let squared =
                    bounds.record_change(&mut change, met, |j, delta| at[j as usize] += f64::from(delta));
                assert_eq!(squared, by.iter().map(|v| v * v).sum::<f64>());
                assert!(change.iter().all(|v| *v == 0.0));
                changes.push((bounds.steps(), by));
            }
            bounds.advance(0.25 * round as f64);
        }
        for (j, at) in at.iter().enumerate() {
            assert_eq!(*at, changes.iter().map(|(_, by)| by[j]).sum::<f64>());
        }
        bounds.forget();
        assert_eq!((bounds.changes(), bounds.burden(), bounds.drifts().len()), (0, 0, 1));
    }
}
