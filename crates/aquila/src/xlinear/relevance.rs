//! Relevances on their way into costs.

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
