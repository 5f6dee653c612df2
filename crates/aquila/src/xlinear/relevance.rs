//! Scales relevances before they become costs.

use super::RelevanceNorm;
use super::positives::Positives;

/// Scales each row's values in each layer.
pub fn scale(layers: &mut [Positives], norm: RelevanceNorm) {
    if norm == RelevanceNorm::None {
        return;
    }
    for layer in layers {
        let (rows, values) = layer.values_mut();
        let mut of_row = vec![0f32; rows.iter().max().map_or(0, |m| *m as usize + 1)];
        for (row, v) in rows.iter().zip(values.iter()) {
            let at = &mut of_row[*row as usize];
            *at = match norm {
                RelevanceNorm::None => 1.0,
                RelevanceNorm::L1 => *at + v,
                RelevanceNorm::L2 => *at + v * v,
                RelevanceNorm::Max => at.max(*v),
            };
        }
        if norm == RelevanceNorm::L2 {
            of_row.iter_mut().for_each(|v| *v = v.sqrt());
        }
        for (row, v) in rows.iter().zip(values.iter_mut()).filter(|(row, _)| of_row[**row as usize] > 0.0) {
            *v /= of_row[*row as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::tree::LabelTree;

    #[test]
    fn each_row_is_scaled_in_each_layer() {
        // Row 0: 3 and 4; row 1: nothing; row 2: 2; row 3: a single 0.
        let y = Csr::new(4, 3, vec![0, 2, 2, 3, 4], vec![0, 2, 1, 0], vec![1.0; 4]).unwrap();
        let values = [3.0, 4.0, 2.0, 0.0];
        for (norm, want) in [
            (RelevanceNorm::None, [3.0, 4.0, 2.0, 0.0]),
            (RelevanceNorm::L1, [3.0 / 7.0, 4.0 / 7.0, 1.0, 0.0]),
            (RelevanceNorm::L2, [0.6, 0.8, 1.0, 0.0]),
            (RelevanceNorm::Max, [0.75, 1.0, 1.0, 0.0]),
        ] {
            let mut layers = Positives::of_labels(&y, &values, &LabelTree::flat(3).unwrap());
            layers.push(layers[0].clone());
            scale(&mut layers, norm);
            for layer in &layers {
                let got = layer.of(0).values;
                assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{norm:?}: {got:?}");
            }
        }
    }
}
