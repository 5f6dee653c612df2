//! Model files: save, open, replace; parts come back; wrong questions get coded answers.

use crate::search_support::*;
use aquila::control::Control;
use aquila::data::Row;
use aquila::params::{Params, Value};
use aquila::tree::LabelTree;
use aquila::xlinear::{Block, Model, ModelParts, PredictParams, Scope, WeightFormat, WeightKind};
use aquila::{Csr, Dense, ErrorCode, FeatureRow, Features};

fn plan(name: &str) -> Plan {
    plans().into_iter().find(|p| p.name == name).unwrap()
}

#[test]
fn a_saved_model_opens_with_the_same_bytes_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.aquila");
    for name in ["flat in the head", "mixed depth, several slots", "f32"] {
        let made = make(&plan(name), 1);
        made.model.save(&path, &Control::default()).unwrap();
        let opened = Model::open(&path).unwrap();
        opened.verify(&Control::default()).unwrap();
        assert!(opened.info().mapped && !made.model.info().mapped);
        assert!(opened.as_bytes() == made.model.as_bytes());
        let x = rows(made.plan.features, 20, 23);
        let predict = |m: &Model| {
            m.predict(&x, &PredictParams::default(), &Scope::All, &Control::with_threads(1)).unwrap()
        };
        assert_eq!(predict(&opened), predict(&made.model));
        // Saved over itself while open: the mapping keeps the old file.
        opened.save(&path, &Control::default()).unwrap();
        assert_eq!(predict(&opened), predict(&made.model));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["model.aquila"]);
}

#[test]
fn a_failed_save_leaves_no_trace() {
    let made = make(&plan("one label"), 1);
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/model.aquila");
    assert_eq!(made.model.save(&missing, &Control::default()).unwrap_err().code(), ErrorCode::Io);
    // A folder of that name cannot be replaced by a file: the rename fails after the bytes were written.
    let taken = folder.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    assert_eq!(made.model.save(&taken, &Control::default()).unwrap_err().code(), ErrorCode::Io);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(Model::open(&missing).unwrap_err().code(), ErrorCode::Io);
    assert_eq!(Model::open(&taken).unwrap_err().code(), ErrorCode::BadModel);
    let empty = folder.path().join("empty");
    std::fs::write(&empty, b"").unwrap();
    assert_eq!(Model::open(&empty).unwrap_err().code(), ErrorCode::BadModel);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting_for_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(Model::open(&path).map(drop)));
    let error = ended.recv_timeout(std::time::Duration::from_secs(10)).unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadModel);
    assert!(error.message().ends_with("pipe: this is no file"), "{error}");
}

#[test]
fn parts_come_back() {
    let mut parts = ModelParts {
        features: 3,
        seed: u64::MAX,
        label_names: vec!["ein".into(), String::new(), "δύο \u{1f985}".into()],
        feature_names: vec!["α".into(), String::new(), "word".into()],
        metadata: "{\"a\": [1, 2]}".into(),
        ..ModelParts::default()
    };
    parts.params.set("solver.threshold", &Value::Number(0.25)).unwrap();
    parts.params.set("tree.split", &Value::Text("kary".into())).unwrap();
    let tree = LabelTree::flat(3).unwrap();
    let format = WeightFormat::new(WeightKind::Byte, 0.25);
    let model = Model::assemble(parts.clone(), &tree, format, vec![], &Control::default()).unwrap();
    let info = model.info();
    let given = (parts.features, parts.dense, &parts.params, parts.seed, &parts.metadata);
    assert_eq!((info.features, info.dense, &info.params, info.seed, &info.metadata), given);
    assert_eq!(
        (model.label_names(), model.feature_names()),
        (parts.label_names.clone(), parts.feature_names.clone())
    );
    assert_eq!(model.label_name(2), Some("δύο \u{1f985}"));
    assert_eq!(model.label_name(3), None);
    assert_eq!(
        (model.feature_name(0), model.feature_name(2), model.feature_name(3)),
        (Some("α"), Some("word"), None)
    );
    let bare = ModelParts { feature_names: Vec::new(), ..parts.clone() };
    let bare = Model::assemble(bare, &tree, format, vec![], &Control::default()).unwrap();
    assert_eq!((bare.feature_name(0), bare.label_name(0)), (None, Some("ein")));
    let mut few = parts.clone();
    few.label_names.pop();
    parts.feature_names.pop();
    for wrong in [few, parts] {
        let e = Model::assemble(wrong, &tree, format, vec![], &Control::default()).unwrap_err();
        assert_eq!(e.code(), ErrorCode::ShapeMismatch);
    }
}

#[test]
fn wrong_questions_get_coded_answers() {
    let made = make(&plan("dense leaves"), 1);
    let model = &made.model;
    let params = PredictParams::default();
    let control = Control::with_threads(1);
    let code = |x: &Features, scope: &Scope| model.predict(x, &params, scope, &control).unwrap_err().code();
    let wide: Features = Csr::new(1, 201, vec![0, 0], vec![], vec![]).unwrap().into();
    assert_eq!(code(&wide, &Scope::All), ErrorCode::ShapeMismatch);
    let x = rows(200, 3, 1);
    let chosen = Csr::new(2, 400, vec![0, 0, 0], vec![], vec![]).unwrap();
    assert_eq!(code(&x, &Scope::Chosen(chosen)), ErrorCode::ShapeMismatch);
    assert_eq!(model.allow(&[400]).unwrap_err().code(), ErrorCode::IndexOutOfRange);
    assert_eq!(model.allow(&[3, 3]).unwrap_err().code(), ErrorCode::DuplicateIndex);
    assert_eq!(model.allow(&[3, 2]).unwrap_err().code(), ErrorCode::UnsortedIndices);
    let mut out = Vec::new();
    let row = Row { indices: &[200], values: &[1.0] };
    let e = model.search(&mut model.searcher(), row, &params, &Scope::All, &mut out).unwrap_err();
    assert_eq!(e.code(), ErrorCode::IndexOutOfRange);
}

#[test]
fn malformed_blocks_are_refused() {
    let tree = LabelTree::flat(20).unwrap();
    let good = Block {
        layer: 0,
        parent: 0,
        first: 16,
        lanes: 4,
        features: vec![1, 2],
        masks: vec![3, 8],
        codes: vec![1, 2, 3],
        dense: vec![],
        scales: [0.0; 16],
        bias: [0.0; 16],
    };
    let assemble = |blocks: Vec<Block>| {
        let parts = ModelParts { features: 3, ..ModelParts::default() };
        let format = WeightFormat::new(WeightKind::Byte, 0.1);
        Model::assemble(parts, &tree, format, blocks, &Control::with_threads(1))
    };
    assert!(assemble(vec![good.clone()]).is_ok());
    let bad: [fn(&mut Block); 11] = [
        |b| b.layer = 1,
        |b| b.parent = 1,
        |b| b.first = 17,
        |b| b.lanes = 5,
        |b| b.features[1] = 3,
        |b| b.features[1] = 1,
        |b| b.masks[0] = 16,
        |b| b.masks[0] = 0,
        |b| b.codes.push(0),
        |b| b.bias[0] = f32::NAN,
        |b| b.dense.push(0),
    ];
    for (i, spoil) in bad.iter().enumerate() {
        let mut block = good.clone();
        spoil(&mut block);
        assert!(assemble(vec![block]).is_err(), "case {i}");
    }
    assert!(assemble(vec![good.clone(), good]).is_err());
}

#[test]
fn a_dense_block_of_rows_is_further_columns_of_a_model_without() {
    let made = make(&plan("dense leaves"), 1);
    let sparse = rows(190, 10, 5).sparse().clone();
    let mut rng = Rng(4);
    let values: Vec<f32> = (0..100).map(|i| if i % 7 == 0 { 0.0 } else { rng.unit() }).collect();
    let both = Features::new(sparse, Some(Dense::new(10, 10, values).unwrap())).unwrap();
    let joined: Features = both.as_csr().into_owned().into();
    let predict = |x: &Features| {
        made.model.predict(x, &PredictParams::default(), &Scope::All, &Control::with_threads(1)).unwrap()
    };
    let (a, b) = (predict(&both), predict(&joined));
    assert_eq!(a.labels, b.labels);
    assert!(a.scores.iter().zip(&b.scores).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn a_dense_block_of_a_model_takes_sparse_columns_too() {
    for name in ["dense block", "dense alone, wide leaves", "dense block, bf16", "dense block, f32, flat"] {
        let made = make(&plan(name), 1);
        let x = rows_of(&made.plan, 30, 8);
        let joined: Features = x.as_csr().into_owned().into();
        let predict = |x: &Features| {
            made.model.predict(x, &PredictParams::default(), &Scope::All, &Control::with_threads(1)).unwrap()
        };
        let (a, b) = (predict(&x), predict(&joined));
        assert_eq!(a.labels, b.labels, "{name}");
        assert!(a.scores.iter().zip(&b.scores).all(|(a, b)| (a - b).abs() < 1e-4), "{name}");
    }
}

#[test]
fn dense_rows_of_the_wrong_shape_are_refused() {
    let made = make(&plan("dense block"), 1);
    let (sparse, dense) = (made.plan.features - 70, 70);
    let predict = |s: usize, d: usize| {
        let empty = Csr::new(2, s, vec![0, 0, 0], vec![], vec![]).unwrap();
        let block = (d > 0).then(|| Dense::new(2, d, vec![0.5; 2 * d]).unwrap());
        let x = Features::new(empty, block).unwrap();
        made.model.predict(&x, &PredictParams::default(), &Scope::All, &Control::with_threads(1))
    };
    // Fewer sparse columns are zeros, as without a block; all columns as sparse ones are the concatenation.
    for (s, d) in
        [(sparse, dense), (sparse - 9, dense), (0, dense), (sparse + dense, 0), (sparse + 10, dense - 10)]
    {
        assert!(predict(s, d).is_ok(), "{s} and {d}");
    }
    for (s, d) in [(sparse, 0), (sparse + 1, dense), (sparse, dense + 1), (sparse, dense - 1), (0, 0)] {
        let e = predict(s, d).unwrap_err();
        assert_eq!(e.code(), ErrorCode::ShapeMismatch, "{s} and {d}");
        assert!(e.message().contains("70 dense features"), "{}", e.message());
    }
    let dense = vec![1.0; made.plan.features + 1];
    let row = FeatureRow { sparse: Row { indices: &[], values: &[] }, dense: &dense };
    let params = PredictParams::default();
    let e =
        made.model.search(&mut made.model.searcher(), row, &params, &Scope::All, &mut vec![]).unwrap_err();
    assert_eq!(e.code(), ErrorCode::ShapeMismatch);
}

#[test]
fn floor_k_and_cancel_do_what_they_say() {
    let made = make(&plan("sparse"), 1);
    let x = rows(made.plan.features, 100, 5);
    let control = Control::with_threads(2);
    let all = made.model.predict(&x, &PredictParams::default(), &Scope::All, &control).unwrap();
    let params = PredictParams { floor: 0.3, ..Default::default() };
    let some = made.model.predict(&x, &params, &Scope::All, &control).unwrap();
    let kept: Vec<f32> = all.scores.iter().copied().filter(|s| *s >= 0.3).collect();
    assert!(kept == some.scores && kept.len() < all.scores.len() && !kept.is_empty());
    control.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let e = made.model.predict(&x, &params, &Scope::All, &control).unwrap_err();
    assert_eq!(e.code(), ErrorCode::Cancelled);
    let none: Features = Csr::new(0, 5, vec![0], vec![], vec![]).unwrap().into();
    let ranked = made.model.predict(&none, &params, &Scope::All, &Control::with_threads(2)).unwrap();
    assert_eq!(ranked.indptr, [0]);
}

#[test]
fn models_and_searchers_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<Model>();
    crosses::<aquila::xlinear::Searcher>();
    crosses::<Scope>();
}
