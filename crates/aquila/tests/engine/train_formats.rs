//! What models lose to weights of few bits.

use crate::common::{control, shared};
use aquila::data::read_xmc;
use aquila::metrics::{Metrics, evaluate};
use aquila::xlinear::{PredictParams, Scope, TrainInputs, TrainParams, WeightKind, train};

const RANKS: [u32; 3] = [1, 3, 5];

/// A single model differs by chance: answers that nearly tie change places, one in a thousand rows is 0.1 points. Over
/// sets and seeds that must cancel.
#[test]
fn bytes_and_bf16_answer_as_f32_does_on_real_sets() {
    let kinds = [WeightKind::F32, WeightKind::Byte, WeightKind::Bf16];
    let (mut hits, mut rows) = ([[0.0; RANKS.len()]; 3], 0.0);
    for set in ["bibtex", "delicious", "scene", "yeast"] {
        let part = |part: &str| shared(&format!("{set}.{part}.txt.gz"));
        let (Some(learned), Some(asked)) = (part("train"), part("test")) else { return };
        let (learned, asked) =
            (read_xmc(&learned, &control(2, 0)).unwrap(), read_xmc(&asked, &control(2, 0)).unwrap());
        let (x, xt) = (learned.x.into(), asked.x.into());
        for seed in 0..6 {
            rows += asked.y.rows() as f64;
            for (kind, hits) in kinds.iter().zip(&mut hits) {
                let mut params = TrainParams::default();
                params.model.weights = *kind;
                let model =
                    train(&x, &learned.y, &params, TrainInputs::default(), &control(2, seed)).unwrap().0;
                let search = PredictParams { k: 5, ..PredictParams::default() };
                let found = model.predict(&xt, &search, &Scope::All, &control(2, 0)).unwrap();
                let report = evaluate(&found, &asked.y, &Metrics::at(RANKS)).unwrap();
                for (sum, k) in hits.iter_mut().zip(&RANKS) {
                    *sum += 100.0 * report.precision[k] * asked.y.rows() as f64;
                }
            }
        }
    }
    for (kind, hits_of_kind) in kinds.iter().zip(&hits).skip(1) {
        for (i, k) in RANKS.iter().enumerate() {
            let more = (hits_of_kind[i] - hits[0][i]) / rows;
            println!("{kind:?} P@{k} {more:+.3}");
            assert!(more.abs() < 0.05, "{kind:?}: P@{k} differs by {more:+.3} points");
        }
    }
}
