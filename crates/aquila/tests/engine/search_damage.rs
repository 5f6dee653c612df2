//! Damaged, cut and foreign model files: refused with a code where the structure shows it, harmless where not.

use crate::search_support::*;
use aquila::control::Control;
use aquila::kernels::Isa;
use aquila::xlinear::{Model, PredictParams, Scope, Searcher};
use aquila::{Csr, ErrorCode, Ranked};

fn examples() -> Vec<Made> {
    let wanted = [
        "flat, many chunks",
        "narrow leaves",
        "sparse",
        "mixed depth, several slots",
        "wide inner nodes",
        "full pages",
        "full layers",
        "f32",
        "bf16",
        "dense block",
        "dense block, bf16",
    ];
    plans().iter().filter(|p| wanted.contains(&p.name)).map(|p| make(p, 2)).collect()
}

/// Opens and asks every kind of question; nothing may panic or hang, whatever the answer.
fn use_it(bytes: Vec<u8>, made: &Made, x: &aquila::Features) -> Result<(), aquila::Error> {
    let model = Model::from_bytes(bytes)?;
    let _ = model.verify(&Control::default());
    let params = PredictParams { beam: 5, ..Default::default() };
    let mut out = Vec::new();
    for isa in Isa::available() {
        let mut searcher = Searcher::with_isa(isa);
        for i in 0..x.rows() {
            model.search(&mut searcher, x.row(i), &params, &Scope::All, &mut out)?;
            assert!(out.iter().all(|o| (o.0 as usize) < model.labels()));
        }
    }
    let labels: Vec<u32> = (0..made.plan.labels as u32).step_by(5).collect();
    let control = Control::with_threads(1);
    let allowed = Scope::Allowed(model.allow(&labels)?);
    let ranked = model.predict(x, &params, &allowed, &control)?;
    assert!(ranked.labels.iter().all(|l| (*l as usize) < model.labels()));
    model.meanings(&labels[..labels.len().min(4)], 2, &control)?;
    let n = labels.len();
    let indptr = (0..=x.rows()).map(|i| i * n).collect();
    let chosen =
        Csr::new(x.rows(), made.plan.labels, indptr, labels.repeat(x.rows()), vec![1.0; n * x.rows()])?;
    exactly(&model.predict(x, &params, &Scope::Chosen(chosen), &control)?, &labels);
    let _ = (model.tree(), model.info(), model.label_name(0));
    Ok(())
}

/// Every row has just these labels, best first, and scores that are numbers.
fn exactly(ranked: &Ranked, labels: &[u32]) {
    for span in ranked.indptr.windows(2) {
        let mut found = ranked.labels[span[0]..span[1]].to_vec();
        found.sort_unstable();
        assert_eq!(found, labels);
        let scores = &ranked.scores[span[0]..span[1]];
        assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|s| s.is_finite()), "{scores:?}");
    }
}

#[test]
fn a_thousand_flipped_bits_do_no_harm() {
    for made in examples() {
        let x = rows_of(&made.plan, 5, 17);
        let bytes = made.model.as_bytes();
        let mut rng = Rng(made.plan.seed + 99);
        for flip in 0..1000 {
            let mut damaged = bytes.to_vec();
            // Some single bits, some bursts: the more is wrong, the wilder the numbers.
            let at = rng.below(bytes.len());
            if flip % 3 == 0 {
                let end = (at + 1 + rng.below(40)).min(bytes.len());
                damaged[at..end].iter_mut().for_each(|b| *b = rng.next() as u8);
            } else {
                damaged[at] ^= 1 << rng.below(8);
            }
            if let Err(e) = use_it(damaged, &made, &x) {
                let known = [ErrorCode::BadModel, ErrorCode::ModelVersion, ErrorCode::Checksum];
                assert!(known.contains(&e.code()), "{}, byte {at}: {e:?}", made.plan.name);
            }
        }
    }
}

/// Every byte of the weight area and the tables replaced: far more damage than a bit.
#[test]
fn random_weights_and_tables_do_no_harm() {
    for made in examples() {
        let x = rows_of(&made.plan, 5, 19);
        let bytes = made.model.as_bytes();
        for round in 0..20 {
            let mut rng = Rng(1000 + round);
            let mut damaged = bytes.to_vec();
            let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
            let keep = bytes.windows(9).rposition(|w| w == b"{\"directo" || w == b"{\"dense\":").unwrap();
            for byte in &mut damaged[header..keep] {
                if rng.below(100) < 1 + 5 * round as usize {
                    *byte = rng.next() as u8;
                }
            }
            use_it(damaged, &made, &x).unwrap();
        }
    }
}

#[test]
fn every_cut_is_refused() {
    for made in examples() {
        let bytes = made.model.as_bytes();
        let mut rng = Rng(3);
        let places = (0..bytes.len().min(4096)).chain((0..1000).map(|_| rng.below(bytes.len())));
        for n in places {
            let e = Model::from_bytes(bytes[..n].to_vec()).unwrap_err();
            assert_eq!(e.code(), ErrorCode::BadModel, "{n} bytes of {}: {e}", made.plan.name);
        }
        let tail = Model::from_bytes([bytes, &[0]].concat()).unwrap_err();
        assert_eq!(tail.code(), ErrorCode::BadModel);
    }
}

#[test]
fn every_flip_is_found_by_open_or_verify() {
    let made = &examples()[1];
    let bytes = made.model.as_bytes();
    let sections = u32::from_le_bytes(bytes[16..20].try_into().unwrap()) as usize;
    let mut inside = vec![false; bytes.len()];
    inside[..32].fill(true);
    inside[64..64 + 32 * sections].fill(true);
    for s in 0..sections {
        let number = |at: usize| {
            u64::from_le_bytes(bytes[64 + 32 * s + at..64 + 32 * s + at + 8].try_into().unwrap()) as usize
        };
        inside[number(8)..number(8) + number(16)].fill(true);
    }
    // Only the zeros between sections are covered by no checksum.
    assert!(inside.iter().filter(|i| !**i).count() < 64 * (sections + 2));
    for at in (0..bytes.len()).step_by(7).chain(0..2000).filter(|at| inside[*at]) {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0x10;
        let e = Model::from_bytes(damaged).and_then(|m| m.verify(&Control::default())).unwrap_err();
        let known = [ErrorCode::BadModel, ErrorCode::ModelVersion, ErrorCode::Checksum];
        assert!(known.contains(&e.code()), "byte {at}: {e:?}");
    }
}

#[test]
fn foreign_files_and_versions_are_named() {
    let made = &examples()[1];
    let code = |bytes: Vec<u8>| Model::from_bytes(bytes).unwrap_err().code();
    assert_eq!(code(Vec::new()), ErrorCode::BadModel);
    assert_eq!(code(b"PK\x03\x04 and so on, surely no model of ours".to_vec()), ErrorCode::BadModel);
    let mut newer = made.model.as_bytes().to_vec();
    newer[8] = 2;
    assert_eq!(code(newer), ErrorCode::ModelVersion);
    let mut header = made.model.as_bytes().to_vec();
    header[70] ^= 1;
    assert_eq!(code(header), ErrorCode::Checksum);
}
