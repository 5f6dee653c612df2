//! The weights of a block that survive pruning.

/// Features with their kept weights, in ascending order of features.
#[derive(Debug, Default)]
pub struct Kept {
    /// The features.
    pub features: Vec<u32>,
    /// For each feature, the lanes with a weight.
    pub masks: Vec<u16>,
    /// The weights, feature after feature, lane after lane.
    pub weights: Vec<f32>,
}

impl Kept {
    /// Clears all weights.
    pub fn clear(&mut self) {
        self.features.clear();
        self.masks.clear();
        self.weights.clear();
    }

    /// Adds the masked lanes of a feature; does nothing if the mask is empty.
    #[inline]
    pub fn push(&mut self, feature: u32, mask: u16, lanes: &[f32]) {
        if mask == 0 {
            return;
        }
        self.features.push(feature);
        self.masks.push(mask);
        let mut bits = mask;
        while bits != 0 {
            self.weights.push(lanes[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
    }

    /// Keeps the `most` largest weights of each lane; the lower feature wins a tie.
    pub fn keep_largest(&mut self, most: usize) {
        let mut lanes: [Vec<(f32, usize)>; 16] = Default::default();
        let mut at = 0;
        for mask in &self.masks {
            for lane in (0..16).filter(|l| mask >> l & 1 == 1) {
                lanes[lane].push((self.weights[at].abs(), at));
                at += 1;
            }
        }
        let mut dropped = vec![false; self.weights.len()];
        for lane in lanes.iter_mut().filter(|l| l.len() > most) {
            lane.select_nth_unstable_by(most, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            lane[most..].iter().for_each(|(_, at)| dropped[*at] = true);
        }
        let all = std::mem::take(self);
        let mut at = 0;
        for (feature, mask) in all.features.into_iter().zip(all.masks) {
            let mut lanes = [0f32; 16];
            let mut rest = mask;
            for lane in (0..16).filter(|l| mask >> l & 1 == 1) {
                lanes[lane] = all.weights[at];
                rest &= !(u16::from(dropped[at]) << lane);
                at += 1;
            }
            self.push(feature, rest, &lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_each_lane_stay_and_empty_features_go() {
        let mut kept = Kept::default();
        kept.push(3, 0b11, &[1.0, -5.0]);
        kept.push(4, 0b00, &[9.0, 9.0]);
        kept.push(7, 0b01, &[-2.0, 0.0]);
        kept.push(9, 0b11, &[1.0, 4.0]);
        kept.keep_largest(1);
        assert_eq!(
            (kept.features, kept.masks, kept.weights),
            (vec![3, 7], vec![0b10, 0b01], vec![-5.0, -2.0])
        );
    }

    #[test]
    fn ties_go_to_the_lower_feature() {
        let mut kept = Kept::default();
        (0..4).for_each(|f| kept.push(f, 0b1, &[if f % 2 == 0 { 1.0 } else { -1.0 }]));
        kept.keep_largest(2);
        assert_eq!(kept.features, [0, 1]);
    }
}
