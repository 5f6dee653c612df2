//! How far a label's two sums have come, and what a look at a sample is still worth.
//!
//! Where `E = R + s·G` goes by steps of `G`, `⟨E, x⟩ = ⟨R, x⟩ + s·⟨G, x⟩`, so both products once looked at tell it for as
//! long as `G` stays. When `G` turns by `Δ_t` at `s_t`, `R` changes by `−s_t·Δ_t`, and what was looked at before is off by
//! `⟨Σ_t (s − s_t)·Δ_t, x⟩`, by no more than the length of that sum for an `x` of length 1. Few samples make a turn, so
//! turns are short lists, and their products with each other give the length of any sum of them.

/// What has changed since a number of turns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    /// `‖Σ (s − s_t)·Δ_t‖` and `‖Σ Δ_t‖` over the turns since then.
    pub doubt: f64,
    pub turned: f64,
}

/// The way of one label.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// `s`.
    steps: f64,
    /// Of each turn its `s_t` and where its entries end.
    turns: Vec<(f64, usize)>,
    entries: Vec<(u32, f32)>,
    /// `⟨Δ_t, Δ_r⟩` for `r ≤ t`, turn by turn.
    products: Vec<f64>,
    since: Vec<Since>,
}

impl Way {
    /// Begins anew: `s` is nothing, and so is what was looked at.
    pub fn restart(&mut self) {
        self.steps = 0.0;
        self.forget();
    }

    /// Forgets the turns, where all samples are looked at anew.
    pub fn forget(&mut self) {
        self.turns.clear();
        self.entries.clear();
        self.products.clear();
        self.measure();
    }

    /// `s`.
    pub fn steps(&self) -> f64 {
        self.steps
    }

    /// Goes on by a step `u`.
    pub fn go(&mut self, u: f64) {
        self.steps += u;
    }

    /// Multiplies `E`; turns must be forgotten.
    pub fn scale(&mut self, factor: f64) {
        self.steps *= factor;
    }

    /// How many turns there were: what is looked at now is seen after so many.
    pub fn turns(&self) -> u16 {
        self.turns.len() as u16 // fewer than there may be rounds
    }

    /// What to keep account of the turns takes, in products.
    pub fn burden(&self) -> usize {
        self.entries.len() + self.products.len()
    }

    /// What has changed since each number of turns, as last measured.
    pub fn since(&self) -> &[Since] {
        &self.since
    }

    /// Measures what has changed since each number of turns.
    pub fn measure(&mut self) {
        let Self { steps, turns, products, since, .. } = self;
        since.clear();
        since.resize(turns.len() + 1, Since::default());
        let product = |t: usize, r: usize| products[t * (t + 1) / 2 + r];
        let (mut doubt, mut turned) = (0.0, 0.0);
        for r in (0..turns.len()).rev() {
            let (mut with_doubt, mut with_turned) = (0.0, 0.0);
            for (t, (then, _)) in turns.iter().enumerate().skip(r + 1) {
                with_doubt += (*steps - then) * product(t, r);
                with_turned += product(t, r);
            }
            let (gone, squared) = (*steps - turns[r].0, product(r, r));
            doubt += gone * (gone * squared + 2.0 * with_doubt);
            turned += squared + 2.0 * with_turned;
            since[r] = Since { doubt: f64::max(doubt, 0.0).sqrt(), turned: f64::max(turned, 0.0).sqrt() };
        }
    }

    /// Notes a turn by what `change` holds of these features, which may repeat, and gives each entry of it to `meet`;
    /// `change` is left zero. Returns the turn's squared length.
    pub fn turn(
        &mut self,
        change: &mut [f32],
        features: impl Iterator<Item = u32>,
        mut meet: impl FnMut(u32, f32),
    ) -> f64 {
        let mut begin = 0;
        for (_, end) in &self.turns {
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
        self.turns.push((self.steps, self.entries.len()));
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
        let (mut way, mut at) = (Way::default(), [0.0; 8]);
        let mut turns: Vec<(f64, Vec<f64>)> = Vec::new();
        for round in 0..12 {
            way.measure();
            assert_eq!(way.since().len(), usize::from(way.turns()) + 1);
            for (then, since) in way.since().iter().enumerate() {
                let length = |factor: &dyn Fn(f64) -> f64| {
                    let sum = |j: usize| turns[then..].iter().map(|(s, by)| factor(*s) * by[j]).sum::<f64>();
                    (0..features).map(|j| sum(j).powi(2)).sum::<f64>().sqrt()
                };
                assert!((since.doubt - length(&|s| way.steps() - s)).abs() < 1e-6, "{round} {then}");
                assert!((since.turned - length(&|_| 1.0)).abs() < 1e-6, "{round} {then}");
            }
            if round % 3 != 1 {
                let mut change: Vec<f32> = (0..features).map(|_| rng.below(5) as f32 * 0.5 - 1.0).collect();
                let by: Vec<f64> = change.iter().map(|v| f64::from(*v)).collect();
                let met = (0..features as u32).chain([3, 1]);
                let squared = way.turn(&mut change, met, |j, delta| at[j as usize] += f64::from(delta));
                assert_eq!(squared, by.iter().map(|v| v * v).sum::<f64>());
                assert!(change.iter().all(|v| *v == 0.0));
                turns.push((way.steps(), by));
            }
            way.go(0.25 * round as f64);
        }
        for (j, at) in at.iter().enumerate() {
            assert_eq!(*at, turns.iter().map(|(_, by)| by[j]).sum::<f64>());
        }
        way.forget();
        assert_eq!((way.turns(), way.burden(), way.since().len()), (0, 0, 1));
    }
}
