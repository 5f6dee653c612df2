//! Numbers of a model file: whoever writes one into a file writes its checksum too.

#[path = "common/counting.rs"]
mod counting;
mod search_support;

use aquila::control::Control;
use aquila::xlinear::{Model, PredictParams, Scope};
use aquila::{Csr, Error, ErrorCode, Features};
use counting::{live, peak};
use search_support::*;
use serde_json::{Value as Json, json};

/// Opens and asks every kind of question.
fn use_it(bytes: Vec<u8>, plan: &Plan, x: &Features) -> Result<(), Error> {
    let model = Model::from_bytes(bytes)?;
    let (params, control) = (PredictParams::default(), Control::with_threads(1));
    let _ = (model.verify(&control), model.tree(), model.info(), model.label_names(), model.feature_names());
    let labels: Vec<u32> = (0..plan.labels as u32).step_by(5).collect();
    model.predict(x, &params, &Scope::All, &control)?;
    model.predict(x, &params, &Scope::Allowed(model.allow(&labels)?), &control)?;
    let indptr = vec![0, labels.len(), 2 * labels.len()];
    let values = vec![1.0; 2 * labels.len()];
    let chosen = Csr::new(2, plan.labels, indptr, labels.repeat(2), values)?;
    model.predict(x, &params, &Scope::Chosen(chosen), &control)?;
    model.meanings(&labels[..labels.len().min(4)], 2, &control)?;
    Ok(())
}

/// The file with another description and checksums that are right.
fn described(bytes: &[u8], edit: impl Fn(&mut Json)) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (header, sections) = (word(12), word(16));
    let entry = (0..sections).map(|s| 64 + 32 * s).find(|at| word(*at) == 1).unwrap();
    let (begin, length) = (word(entry + 8), word(entry + 16));
    assert_eq!(begin + length, bytes.len(), "the description comes last");
    let mut description = serde_json::from_slice(&bytes[begin..]).unwrap();
    edit(&mut description);
    let mut made = bytes[..begin].to_vec();
    made.extend_from_slice(description.to_string().as_bytes());
    let mut put = |at: usize, value: &[u8]| made[at..at + value.len()].copy_from_slice(value);
    put(24, &(begin as u64 + description.to_string().len() as u64).to_le_bytes());
    put(entry + 16, &(description.to_string().len() as u64).to_le_bytes());
    put(entry + 24, &crc32fast::hash(description.to_string().as_bytes()).to_le_bytes());
    put(20, &[0; 4]);
    let sum = crc32fast::hash(&made[..header]);
    made[20..24].copy_from_slice(&sum.to_le_bytes());
    made
}

#[test]
fn no_number_of_a_file_takes_more_memory_than_its_bytes_warrant() {
    let wild =
        [0, 1, 2, 3, 15, 255, 1 << 16, 1 << 31, 4_000_000_000, (1 << 32) - 2, 1 << 32, 1 << 40, u64::MAX];
    let wanted =
        ["flat, many chunks", "wide inner nodes", "mixed depth, several slots", "f32", "dense block"];
    for plan in plans().iter().filter(|p| wanted.contains(&p.name)) {
        let made = make(plan, 1);
        let (bytes, x) = (made.model.as_bytes(), rows_of(plan, 2, 17));
        let allowance = 20 * bytes.len() as u64 + (8 << 20);
        let mut tried = vec![];
        for layer in 0..made.tree.layers().len() {
            tried.extend(["parents", "columns", "chunks", "words", "nodes"].map(|name| (Some(layer), name)));
        }
        tried.extend(["features", "labels", "slots", "dense", "directoryBytes"].map(|name| (None, name)));
        for (layer, name) in tried {
            for number in wild {
                let damaged = described(bytes, |of| match layer {
                    Some(layer) => of["layers"][layer][name] = json!(number),
                    None => of[name] = json!(number),
                });
                let before = live();
                let (done, most) = peak(|| use_it(damaged, plan, &x));
                let place = format!("{}: {name} {number} of layer {layer:?}", plan.name);
                assert!(most - before < allowance, "{place} takes {} bytes", most - before);
                if let Err(e) = done {
                    // What opens is asked for labels and rows of the model as it was.
                    let of_use = [ErrorCode::ShapeMismatch, ErrorCode::IndexOutOfRange];
                    assert!(e.code() == ErrorCode::BadModel || of_use.contains(&e.code()), "{place}: {e:?}");
                }
            }
        }
        let same = described(bytes, |_| ());
        use_it(same, plan, &x).unwrap();
    }
}
