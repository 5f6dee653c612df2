//! Model files as they were written when their format version came out: every later build must read them alike.
//!
//! With `AQUILA_GOLDEN=write` the test writes the files of the present version instead; that is for a new version only.

use crate::search_support::{Plan, make, rows_of};
use aquila::control::Control;
use aquila::xlinear::{Model, PredictParams, Scope, WeightKind};
use serde_json::json;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;

fn plans() -> [Plan; 5] {
    let plan = |name, kind| Plan {
        features: 40,
        early: 0.2,
        copies: 10,
        untrained: 0.1,
        kind,
        ..Plan::new(name, 60, &[(4, 6), (2, 20)])
    };
    [
        plan("u8", WeightKind::Byte),
        plan("bf16", WeightKind::Bf16),
        plan("f32", WeightKind::F32),
        Plan { dense: 10, ..plan("dense", WeightKind::Byte) },
        Plan { density: 1.3, untrained: 0.0, ..plan("full", WeightKind::Byte) },
    ]
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The ten best of some rows that are the same in every build.
fn answers(plan: &Plan, model: &Model) -> Vec<Vec<(u32, f32)>> {
    let params = PredictParams { k: 10, ..PredictParams::default() };
    let ranked =
        model.predict(&rows_of(plan, 12, 7), &params, &Scope::All, &Control::with_threads(1)).unwrap();
    ranked
        .indptr
        .windows(2)
        .map(|w| {
            ranked.labels[w[0]..w[1]].iter().copied().zip(ranked.scores[w[0]..w[1]].iter().copied()).collect()
        })
        .collect()
}

#[test]
fn files_of_this_version_give_the_answers_of_their_day() {
    let expected = path(&format!("v{VERSION}.json"));
    if std::env::var("AQUILA_GOLDEN").is_ok_and(|v| v == "write") {
        let mut all = serde_json::Map::new();
        for plan in plans() {
            let made = make(&plan, 1);
            made.model.save(&path(&format!("v{VERSION}-{}.aquila", plan.name)), &Control::default()).unwrap();
            all.insert(plan.name.into(), json!(answers(&plan, &made.model)));
        }
        std::fs::write(&expected, serde_json::to_string(&all).unwrap() + "\n").unwrap();
    }
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
    for plan in plans() {
        let file = path(&format!("v{VERSION}-{}.aquila", plan.name));
        assert_eq!(std::fs::read(&file).unwrap()[8..12], VERSION.to_le_bytes(), "{file:?}");
        let model = Model::open(&file).unwrap();
        model.verify(&Control::default()).unwrap();
        let got = answers(&plan, &model);
        let want: Vec<Vec<(u32, f32)>> = serde_json::from_value(expected[plan.name].clone()).unwrap();
        assert_eq!(got.len(), want.len());
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.len(), want.len(), "{} row {i}", plan.name);
            for ((_, a), (_, b)) in got.iter().zip(want) {
                assert!((a - b).abs() <= 1e-5 * b.abs().max(1e-3), "{} row {i}: {a}, not {b}", plan.name);
            }
            // Equal scores may change places where sums round otherwise.
            let labels = |of: &[(u32, f32)]| {
                let mut labels: Vec<u32> = of.iter().take(5).map(|e| e.0).collect();
                labels.sort_unstable();
                labels
            };
            assert_eq!(labels(got), labels(want), "{} row {i}", plan.name);
        }
    }
}
