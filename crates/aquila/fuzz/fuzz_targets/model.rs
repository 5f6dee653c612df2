//! Any bytes as a model file: opened or refused, asked every kind of question, never a crash.

#![no_main]

use aquila::xlinear::{Model, PredictParams, Scope};
use aquila::{Control, Csr, Features};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return };
    let control = Control::with_threads(1);
    let _ = model.verify(&control);
    let _ = model.info();
    let _ = model.tree();
    let (features, labels) = (model.features(), model.labels());
    if features == 0 || labels == 0 || features > 1 << 20 || labels > 1 << 20 {
        return;
    }
    let first: Vec<u32> = (0..features.min(8) as u32).collect();
    let Ok(row) = Csr::new(1, features, vec![0, first.len()], first.clone(), vec![0.5; first.len()]) else { return };
    let rows = Features::from(row);
    let params = PredictParams { k: 5, beam: 4, ..PredictParams::default() };
    let found = model.predict(&rows, &params, &Scope::All, &control);
    if let Ok(found) = found {
        assert!(found.labels.iter().all(|l| (*l as usize) < labels));
    }
    let chosen: Vec<u32> = (0..labels.min(4) as u32).collect();
    let Ok(chosen) = Csr::new(1, labels, vec![0, chosen.len()], chosen.clone(), vec![1.0; chosen.len()]) else { return };
    let _ = model.predict(&rows, &params, &Scope::Chosen(chosen), &control);
});
