//! Every stage that is documented is reported by some call, and no other.

use crate::common::{control, texts};
use aquila::control::stage;
use aquila::eagle::{AssignParams, Groups, LearnParams, Merge, RefineParams, assign, embed, learn, refine};
use aquila::xlinear::{PredictParams, Scope, TrainInputs, TrainParams, train};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[test]
fn every_stage_is_reported_by_some_call() {
    let (x, y) = texts(300, 60, 40, 6);
    let groups = Groups::random(300, 4, 1).unwrap();
    let mut c = control(2, 0);
    let bags = groups.aggregate(&y, Merge::Set, &c).unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let stages = Arc::clone(&seen);
    c.on_progress(move |progress| {
        stages.lock().unwrap().insert(progress.stage);
    });
    assign(&x, &groups, &bags, &AssignParams::default(), false, &c).unwrap();
    embed(&x, &groups, &bags, &AssignParams::default(), &c).unwrap();
    refine(&x, &groups, &bags, &RefineParams::default(), &TrainParams::default(), &c).unwrap();
    learn(&x, &groups, &bags, &LearnParams::default(), TrainInputs::default(), &c).unwrap();
    let mut params = TrainParams::default();
    (params.tree.max_leaf, params.overlap.copies, params.overlap.leaf_cap) = (5, 2, 4.0);
    let (model, _) = train(&x, &y, &params, TrainInputs::default(), &c).unwrap();
    model.predict(&x, &PredictParams::default(), &Scope::All, &c).unwrap();
    assert_eq!(*seen.lock().unwrap(), stage::ALL.into_iter().collect());
}

#[test]
fn typescript_lists_every_stage() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ts/options.ts");
    let text = std::fs::read_to_string(path).unwrap();
    let list = text.split("export type Stage =").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let listed: Vec<&str> = list.split('\'').skip(1).step_by(2).collect();
    assert_eq!(listed, stage::ALL);
}
