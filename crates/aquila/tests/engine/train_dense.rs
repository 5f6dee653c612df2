//! Rows with a dense block against the same rows with all columns sparse.

use crate::common::{Lists, Rng, control, csr, random_rows, separable};
use aquila::control::Control;
use aquila::eagle::{Groups, LearnParams, learn};
use aquila::kernels::dcd::{DenseRows, DualLoss, Entries, Problem, Rows, Span, Step};
use aquila::kernels::gram::Gram;
use aquila::kernels::{Isa, bf16};
use aquila::linear::{REST, Scratch, Stop, solve, together};
use aquila::params::{Params, Value};
use aquila::tree::{Cut, Pifa};
use aquila::xlinear::{Model, PredictParams, Scope, ScoreForm, TrainInputs, TrainParams, train};
use aquila::{Csr, Dense, ErrorCode, Features};

const LOSSES: [DualLoss; 3] = [DualLoss::SquaredHinge, DualLoss::Hinge, DualLoss::Logistic];

fn block(rng: &mut Rng, rows: usize, cols: usize) -> Dense {
    let values = (0..rows * cols).map(|_| (rng.unit() * 2.0 - 1.0) as f32 / (cols as f32).sqrt()).collect();
    Dense::new(rows, cols, values).unwrap()
}

fn params(pairs: &[(&str, &str)]) -> TrainParams {
    let pairs: Vec<(&str, Value)> = pairs.iter().map(|(n, v)| (*n, Value::Text((*v).to_owned()))).collect();
    TrainParams::from_pairs(pairs.iter().map(|(n, v)| (*n, v))).unwrap()
}

/// Near the optimum, nothing rounded and nothing pruned.
fn exact(more: &[(&str, &str)]) -> TrainParams {
    let fine = [
        ("tree.maxLeaf", "20"),
        ("tree.arity", "3"),
        // A cut is about sparse columns alone.
        ("tree.vectorCut", "never"),
        ("solver.threshold", "0"),
        ("solver.eps", "0.0005"),
        ("solver.maxPasses", "3000"),
        ("model.weights", "f32"),
    ];
    params(&[&fine, more].concat())
}

fn fit(x: &Features, y: &Csr, params: &TrainParams, threads: usize) -> Model {
    train(x, y, params, TrainInputs::default(), &control(threads, 1)).unwrap().0
}

fn joined(x: &Features) -> Features {
    x.as_csr().into_owned().into()
}

/// The margin of every label of each row.
fn margins(model: &Model, x: &Features) -> Vec<f32> {
    let all: Lists = vec![(0..model.labels() as u32).map(|l| (l, 1.0)).collect(); x.rows()];
    let scope = Scope::Chosen(csr(model.labels(), &all));
    let search = PredictParams { scores: ScoreForm::Margin, ..PredictParams::default() };
    let found = model.predict(x, &search, &scope, &control(1, 0)).unwrap();
    let mut out = vec![0.0; x.rows() * model.labels()];
    for i in 0..x.rows() {
        for j in found.indptr[i]..found.indptr[i + 1] {
            out[i * model.labels() + found.labels[j] as usize] = found.scores[j];
        }
    }
    out
}

/// Rows of 40 labels that both parts tell something of, and the dense part alone.
fn data(cols: usize) -> [(&'static str, Features, Csr); 2] {
    let (x, y) = separable(5, 300, 40);
    let mut rng = Rng::new(3);
    let mut dense = block(&mut rng, 300, cols).values().to_vec();
    for i in 0..300 {
        for (l, _) in y.row(i).iter() {
            dense[i * cols + (l as usize * 7) % cols] += 0.4;
        }
    }
    let dense = Dense::new(300, cols, dense).unwrap();
    let alone = Features::from(dense.clone());
    [("beside", Features::new(x.sparse().clone(), Some(dense)).unwrap(), y.clone()), ("alone", alone, y)]
}

#[test]
fn the_solver_learns_the_weights_of_sparse_columns_on_every_set() {
    let mut rng = Rng::new(11);
    for (n, sparse, dense) in [(40, 30, 1), (200, 25, 33), (61, 0, 50), (150, 10, 16), (7, 3, 100)] {
        let (lists, block) = (random_rows(&mut rng, n, sparse.max(1), 0.2), block(&mut rng, n, dense));
        // Values that bf16 represents exactly.
        let halve = |v: &f32| f32::from_bits(v.to_bits() & 0xffff_0000);
        let block = Dense::new(n, dense, block.values().iter().map(halve).collect()).unwrap();
        let mut pairs = vec![0; n * dense.div_ceil(2)];
        for (i, pairs) in pairs.chunks_exact_mut(dense.div_ceil(2)).enumerate() {
            bf16::write_pairs(block.row(i), pairs);
        }
        let lists: Lists = if sparse == 0 { vec![vec![]; n] } else { lists };
        let places: Vec<u32> = (0..n as u32).collect();
        // The same rows twice: their dense part as a block, and as entries.
        let flat = |entries: bool| {
            let (mut idx, mut val, mut spans) = (vec![], vec![], vec![]);
            for (i, row) in lists.iter().enumerate() {
                let begin = idx.len();
                let last = block.row(i).iter().enumerate().map(|(j, v)| ((sparse + j) as u32, *v));
                let all = row.iter().copied().chain(last.clone());
                let squared = all.map(|e| e.1 * e.1).sum();
                for (j, v) in row.iter().copied().chain(last.filter(|_| entries)) {
                    idx.push(j);
                    val.push(v);
                }
                spans.push(Span { begin, end: idx.len(), squared, lone: 0.0 });
            }
            (idx, val, spans)
        };
        let ((idx, val, spans), (idx2, val2, spans2)) = (flat(false), flat(true));
        let beside = Rows::new(Entries::new(&idx, &val, sparse), &spans);
        let floats = beside.beside(DenseRows::new(block.values(), dense, &places));
        let paired = beside.beside(DenseRows::bf16_pairs(&pairs, dense, &places));
        let entries = Rows::new(Entries::new(&idx2, &val2, sparse + dense), &spans2);
        let positives: Vec<u32> =
            (0..n).map(|_| (0..20).fold(0, |m, l| m | u32::from(rng.below(4) == 0) << l)).collect();
        for loss in LOSSES {
            for (width, active) in [(4, 0b1011), (8, 0x7f), (16, 0xffff), (32, 0xf_ffff)] {
                let stop = Stop { eps: 2e-3, gain: 0.0, max_passes: 2000 };
                let step = Step { loss, cp: 2.0, cn: 1.0, bias: 1.0, rest: REST * stop.eps };
                let learn = |isa, rows, of_products: bool| {
                    let problem = Problem { rows, positives: &positives, relevance: None, step };
                    let mut scratch = Scratch::default();
                    let rng = aquila::rng::Rng::new(&[7]);
                    let mut gram = Gram::default();
                    let products = of_products.then(|| {
                        gram.of(isa, &rows);
                        &gram
                    });
                    solve(
                        isa,
                        &problem,
                        products,
                        active,
                        width,
                        stop,
                        rng,
                        &mut scratch,
                        &Control::default(),
                    )
                    .unwrap();
                    scratch.siblings
                };
                let want = learn(Isa::Scalar, entries, false);
                let forms = [
                    ("floats", floats, false),
                    ("bf16", paired, false),
                    ("products of floats", floats, true),
                    ("products of bf16", paired, true),
                ];
                for (isa, (form, rows, products)) in
                    Isa::available().into_iter().flat_map(|i| forms.map(|f| (i, f)))
                {
                    let got = learn(isa, rows, products);
                    let place =
                        format!("{n} rows, {sparse} + {dense} {form}, {loss:?}, {width} lanes, {isa:?}");
                    for lane in (0..width).filter(|l| active >> l & 1 == 1) {
                        let near = |a: f32, b: f32| (a - b).abs() < 0.02 * b.abs().max(1.0);
                        assert!(near(got.bias()[lane], want.bias()[lane]), "{place}: bias of {lane}");
                        for j in 0..sparse {
                            let (a, b) = (got.weights(j)[lane], want.weights(j)[lane]);
                            assert!(near(a, b), "{place}: weight {j} of {lane}: {a} {b}");
                        }
                        for j in 0..dense {
                            let (a, b) = (got.panel()[j * width + lane], want.weights(sparse + j)[lane]);
                            assert!(near(a, b), "{place}: dense weight {j} of {lane}: {a} {b}");
                        }
                    }
                    for lane in (0..width).filter(|l| active >> l & 1 == 0) {
                        assert!(
                            (0..dense).all(|j| got.panel()[j * width + lane] == 0.0),
                            "{place}: lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_are_mostly_dense_step_32_siblings_together() {
    let (idx, val, block, places) = ([0, 1, 2], [1.0; 3], [0.5; 4], [0, 1]);
    let span = |begin, end| Span { begin, end, squared: 1.0, lone: 0.0 };
    let spans = [span(0, 1), span(1, 3)];
    let rows = Rows::new(Entries::new(&idx, &val, 100_000), &spans);
    let beside = |cols: usize| rows.beside(DenseRows::new(&block[..2 * cols], cols, &places));
    assert!(!rows.mostly_dense() && !beside(1).mostly_dense() && beside(2).mostly_dense());
    for isa in Isa::available().into_iter().filter(|isa| *isa > Isa::Scalar) {
        assert_eq!([false, true].map(|dense| together(isa, 100_000, dense)), [16, 32]);
        assert_eq!(together(isa, 100, false), 32);
    }
    assert_eq!(together(Isa::Scalar, 100, true), 16);
}

#[test]
fn models_score_as_those_of_the_joined_rows() {
    for (name, x, y) in data(50) {
        for change in [
            ("solver.loss", "squared-hinge"),
            ("solver.loss", "hinge"),
            ("solver.loss", "logistic"),
            ("solver.negatives", "tfn+man"),
            ("solver.bias", "0"),
            ("model.normalize", "false"),
            ("tree.vectors", "pii"),
            ("tree.split", "kary"),
            ("tree.spherical", "false"),
        ] {
            let params = exact(&[change]);
            let (ours, theirs) = (fit(&x, &y, &params, 2), fit(&joined(&x), &y, &params, 2));
            assert_eq!(ours.tree().unwrap(), theirs.tree().unwrap(), "{name}, {change:?}");
            assert_eq!((ours.features(), ours.dense(), theirs.dense()), (x.cols(), 50, 0));
            ours.verify(&Control::default()).unwrap();
            for (a, b) in margins(&ours, &x).iter().zip(margins(&theirs, &joined(&x))) {
                assert!((a - b).abs() < 0.02, "{name}, {change:?}: {a} {b}");
            }
        }
    }
}

#[test]
fn at_the_defaults_they_are_as_good() {
    for (name, x, y) in data(64) {
        let defaults = params(&[("tree.maxLeaf", "10")]);
        let hits = |x: &Features, model: &Model| {
            let search = PredictParams { k: 1, ..PredictParams::default() };
            let found = model.predict(x, &search, &Scope::All, &control(2, 0)).unwrap();
            (0..x.rows()).filter(|i| y.row(*i).indices.contains(&found.labels[found.indptr[*i]])).count()
        };
        let (ours, theirs) =
            (hits(&x, &fit(&x, &y, &defaults, 2)), hits(&joined(&x), &fit(&joined(&x), &y, &defaults, 2)));
        assert!(ours + 3 >= theirs && ours > 250, "{name}: {ours} of 300 right, joined {theirs}");
    }
}

#[test]
fn threads_change_no_byte() {
    for (name, x, y) in data(40) {
        for weights in ["u8", "bf16", "f32"] {
            let params = params(&[("tree.maxLeaf", "10"), ("tree.arity", "3"), ("model.weights", weights)]);
            let one = fit(&x, &y, &params, 1);
            let three = fit(&x, &y, &params, 3);
            assert!(one.as_bytes() == three.as_bytes(), "{name}, {weights}");
            let again = Model::from_bytes(one.as_bytes().to_vec()).unwrap();
            again.verify(&Control::default()).unwrap();
            let predict =
                |m: &Model, n| m.predict(&x, &PredictParams::default(), &Scope::All, &control(n, 0)).unwrap();
            assert_eq!(predict(&one, 1), predict(&again, 3), "{name}, {weights}");
        }
    }
}

#[test]
fn a_block_of_no_columns_is_none() {
    let (x, y) = separable(6, 60, 10);
    let none = Dense::new(60, 0, vec![]).unwrap();
    let beside = Features::new(x.sparse().clone(), Some(none)).unwrap();
    let params = params(&[("tree.maxLeaf", "5")]);
    assert_eq!(fit(&x, &y, &params, 1).as_bytes(), fit(&beside, &y, &params, 1).as_bytes());
}

#[test]
fn zero_rows_huge_and_tiny_values_do_no_harm() {
    let (_, y) = separable(7, 60, 10);
    let fill = |values: &dyn Fn(usize) -> f32| {
        Features::from(Dense::new(60, 8, (0..480).map(values).collect()).unwrap())
    };
    for (name, x) in [
        ("zeros", fill(&|_| 0.0)),
        ("some rows of zeros", fill(&|e| if e / 8 % 3 == 0 { 0.0 } else { (e % 7) as f32 - 3.0 })),
        ("huge", fill(&|e| if e % 5 == 0 { 1e30 } else { -3e37 })),
        ("tiny", fill(&|e| if e % 5 == 0 { 1e-40 } else { -1e-38 })),
        ("one value", fill(&|_| 1.0)),
    ] {
        for weights in ["u8", "bf16", "f32"] {
            let model = fit(&x, &y, &params(&[("tree.maxLeaf", "3"), ("model.weights", weights)]), 2);
            model.verify(&Control::default()).unwrap();
            let all = margins(&model, &x);
            assert!(all.iter().all(|m| m.is_finite()), "{name}, {weights}: {all:?}");
        }
    }
}

/// The makings of label vectors of unscaled rows.
fn pifa<'a>(x: &'a Features, labels_rows: &'a Csr) -> Pifa<'a> {
    let dense = x.dense().unwrap();
    let sparse = Pifa::new(x.sparse(), x.sparse().values(), labels_rows);
    Pifa { dense: dense.values(), dense_cols: dense.cols(), ..sparse }
}

#[test]
fn label_vectors_are_those_of_the_joined_rows() {
    for (name, x, y) in data(30) {
        let (labels_rows, joined) = (y.transpose(), x.as_csr());
        let ours = pifa(&x, &labels_rows).all(Cut::NONE, &Control::default()).unwrap();
        let theirs = Pifa::new(&joined, joined.values(), &labels_rows);
        let theirs = theirs.all(Cut::NONE, &Control::default()).unwrap();
        for l in 0..y.cols() {
            let mut want = vec![0.0; joined.cols()];
            theirs.sparse().row(l).iter().for_each(|(j, v)| want[j as usize] = v);
            let mut got = vec![0.0; x.sparse().cols()];
            ours.sparse().row(l).iter().for_each(|(j, v)| got[j as usize] = v);
            got.extend(&ours.dense(l)[..30]);
            // The block has two bytes a value.
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 + b.abs() / 256.0;
            assert!(got.iter().zip(&want).all(near), "{name}, label {l}: {got:?}, not {want:?}");
        }
    }
}

#[test]
fn a_cut_leaves_the_block_and_the_length_of_the_sparse_part() {
    for (name, x, y) in data(30) {
        let labels_rows = y.transpose();
        let pifa = pifa(&x, &labels_rows);
        let whole = pifa.all(Cut::NONE, &Control::default()).unwrap();
        for cut in [Cut { most: 12, mass: 0.7 }, Cut::to(5)] {
            let sparse = Pifa::new(x.sparse(), x.sparse().values(), &labels_rows);
            let sparse: Csr = sparse.all(cut, &Control::default()).unwrap().into();
            let ours = pifa.all(cut, &Control::default()).unwrap();
            let later = whole.cut(cut, &Control::default()).unwrap();
            for l in 0..y.cols() {
                let (row, alone) = (ours.sparse().row(l), sparse.row(l));
                assert_eq!(row.indices, alone.indices, "{name}, {cut:?}, label {l}");
                let length = whole.sparse().row(l).norm();
                let near = |(a, b): (&f32, &f32)| (a - b * length).abs() < 1e-5;
                assert!(row.values.iter().zip(alone.values).all(near), "{name}, {cut:?}, label {l}");
                assert_eq!(later.sparse().row(l).indices, row.indices, "{name}, {cut:?}, label {l}");
                let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
                assert!(later.sparse().row(l).values.iter().zip(row.values).all(near));
                assert_eq!(ours.dense(l), whole.dense(l), "{name}, {cut:?}, label {l}");
                assert_eq!(later.dense(l), whole.dense(l), "{name}, {cut:?}, label {l}");
            }
        }
    }
}

#[test]
fn models_of_groups_keep_the_block() {
    for (name, x, y) in data(20) {
        // The last rows stand in no group.
        let of: Lists = (0..300).map(|i| if i < 280 { vec![(i / 2, 1.0)] } else { vec![] }).collect();
        let groups = Groups::from_memberships(&csr(140, &of)).unwrap();
        let bags: Lists = (0..140)
            .map(|g| {
                let mut labels: Vec<u32> = [y.row(2 * g).indices, y.row(2 * g + 1).indices].concat();
                labels.sort_unstable();
                labels.dedup();
                labels.into_iter().map(|l| (l, 1.0)).collect()
            })
            .collect();
        for method in ["union", "eagle", "refine"] {
            let mut params = LearnParams::default();
            params.set("group.method", &Value::Text(method.into())).unwrap();
            let (model, _) =
                learn(&x, &groups, &csr(40, &bags), &params, TrainInputs::default(), &control(2, 0)).unwrap();
            assert_eq!((model.dense(), model.features()), (20, x.cols()), "{name}, {method}");
            assert!(margins(&model, &x).iter().all(|m| m.is_finite()));
        }
    }
}

#[test]
fn bad_blocks_are_named() {
    let code = |r: Result<Dense, aquila::Error>| r.unwrap_err().code();
    assert_eq!(code(Dense::new(2, 3, vec![0.0; 5])), ErrorCode::ShapeMismatch);
    let e = Dense::new(2, 2, vec![0.0, 1.0, 2.0, f32::NAN]).unwrap_err();
    assert_eq!(e.code(), ErrorCode::NotFinite);
    assert!(e.message().contains("row 1, column 1"), "{}", e.message());
    assert_eq!(code(Dense::new(1, 1, vec![f32::INFINITY])), ErrorCode::NotFinite);
    let (x, y) = separable(8, 20, 5);
    let e = Features::new(x.sparse().clone(), Some(Dense::new(19, 1, vec![0.0; 19]).unwrap())).unwrap_err();
    assert_eq!(e.code(), ErrorCode::ShapeMismatch);
    assert!(e.message().contains("20 rows but the dense block 19"), "{}", e.message());
    let short = Features::from(Dense::new(19, 1, vec![1.0; 19]).unwrap());
    let e = train(&short, &y, &TrainParams::default(), TrainInputs::default(), &control(1, 0)).unwrap_err();
    assert_eq!(e.code(), ErrorCode::ShapeMismatch);
    let none = Features::from(Dense::new(20, 0, vec![]).unwrap());
    let e = train(&none, &y, &TrainParams::default(), TrainInputs::default(), &control(1, 0)).unwrap_err();
    assert_eq!(e.code(), ErrorCode::InvalidArgument);
}
