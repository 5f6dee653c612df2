//! Measures against numbers worked out by hand.

use aquila::Ranked;
use aquila::metrics::{
    Evaluator, Metrics, Propensity, PropensityParams, Report, Unlabelled, evaluate, leave_out, rank,
};
use aquila::{Control, Csr, ErrorCode, Row};

/// Four rows over four labels:
///
/// | row | scores | list | truth | what it shows |
/// |---|---|---|---|---|
/// | 0 | 0: .5, 1: .9, 2: .5 | 1 0 2 | 0 3 | a tie of 0 and 2; label 3 was never seen in training |
/// | 1 | 0: .1, 2: .7, 3: .2 | 2 3 0 | – | no labels |
/// | 2 | 3: .4 | 3 | 1 2 3 | a short list |
/// | 3 | 0: .8, 1: .6, 2: .3 | 0 1 2 | 0 | an explicit zero at 1, which is no label |
fn scores() -> Csr {
    let indices = vec![0, 1, 2, 0, 2, 3, 3, 0, 1, 2];
    Csr::new(4, 4, vec![0, 3, 6, 7, 10], indices, vec![0.5, 0.9, 0.5, 0.1, 0.7, 0.2, 0.4, 0.8, 0.6, 0.3])
        .unwrap()
}

fn truth() -> Csr {
    let values = vec![1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.0];
    Csr::new(4, 4, vec![0, 2, 2, 5, 7], vec![0, 3, 1, 2, 3, 0, 1], values).unwrap()
}

/// 20 training rows, counts 9, 3, 1 and 0, A = B = 1: C = (ln 20 − 1)·2 = 3.991464547, so the weights are
/// 1 + C/10 = 1.399146, 1 + C/4 = 1.997866, 1 + C/2 = 2.995732 and 1 + C = 4.991465.
fn propensity() -> Propensity {
    Propensity::from_label_counts(20, &[9, 3, 1, 0], 1.0, 1.0).unwrap()
}

fn metrics() -> Metrics {
    Metrics { propensity: Some(propensity()), ..Metrics::at([5, 1, 3, 3]) }
}

fn close(at: &aquila::metrics::AtK, expected: &[(u32, f64)]) {
    assert_eq!(at.len(), expected.len());
    for (k, v) in expected {
        assert!((at[k] - v).abs() < 2e-6, "at {k}: {} instead of {v}", at[k]);
    }
}

#[test]
fn weights_follow_the_formula() {
    for (w, by_hand) in propensity().weights().iter().zip([1.399_146, 1.997_866, 2.995_732, 4.991_465]) {
        assert!((w - by_hand).abs() < 1e-5);
    }
    // 12 rows; label 0 in 2 of them (one more entry is an explicit zero), label 1 in 1, label 2 in none.
    let mut indptr = vec![0, 2, 3, 4];
    indptr.resize(13, 4);
    let y = Csr::new(12, 3, indptr, vec![0, 1, 0, 0], vec![1.0, 1.0, 3.0, 0.0]).unwrap();
    let counted = Propensity::from_counts(&y, 0.55, 1.5).unwrap();
    assert_eq!(counted, Propensity::from_label_counts(12, &[2, 1, 0], 0.55, 1.5).unwrap());
}

#[test]
fn golden_values() {
    let ranked = rank(&scores());
    assert_eq!(ranked.labels, [1, 0, 2, 2, 3, 0, 3, 0, 1, 2]);
    let Report {
        rows,
        unlabelled_rows,
        unlabelled,
        precision,
        ndcg,
        recall,
        psp,
        psndcg,
        psndcg_per_row,
        micro_f1,
        macro_f1,
        example_f1,
        hamming_accuracy,
    } = evaluate(&ranked, &truth(), &metrics()).unwrap();
    assert_eq!((rows, unlabelled_rows, unlabelled), (4, 1, Unlabelled::Keep));

    // Hits: row 0 at rank 2, row 2 at rank 1, row 3 at rank 1. k = 5 passes the number of labels.
    close(&precision, &[(1, 2.0 / 4.0), (3, 3.0 / 12.0), (5, 3.0 / 20.0)]);
    // 1/log₂3 = .630930, d(2) = 1.630930, d(3) = 2.130930.
    // At 3: .630930/1.630930 = .386853, then 0, 1/2.130930 = .469279 and 1/1; sum 1.856132.
    close(&ndcg, &[(1, 0.5), (3, 0.464033), (5, 0.464033)]);
    // At 1: 0, 0, 1/3, 1. At 3: 1/2, 0, 1/3, 1.
    close(&recall, &[(1, 1.0 / 3.0), (3, 5.5 / 12.0), (5, 5.5 / 12.0)]);

    // Model at 1: w3 + w0 = 6.390611; ideal: w3, w3, w0 = 11.382076.
    // Model at 3: w0 + w3 + w0 = 7.789757; ideal: w3+w0, w3+w2+w1, w0 = 17.774820.
    close(&psp.unwrap(), &[(1, 0.561463), (3, 0.438247), (5, 0.438247)]);
    // Model at 3: .630930·w0 + w3 + w0 = 7.273374.
    // Ideal: w3 + .630930·w0 = 5.874228, w3 + .630930·w2 + .5·w1 = 7.880494, w0; sum 15.153868.
    close(&psndcg.unwrap(), &[(1, 0.561463), (3, 0.479968), (5, 0.479968)]);
    // Model at 3: .882764/1.630930 + 4.991465/2.130930 + 1.399146 = 4.282798.
    // Ideal: 5.874228/1.630930 + 7.880494/2.130930 + 1.399146 = 8.699061.
    close(&psndcg_per_row.unwrap(), &[(1, 0.561463), (3, 0.492329), (5, 0.492329)]);

    // Sets hold 4 labels at 1 and 10 at 3; truth holds 6.
    close(&micro_f1, &[(1, 4.0 / 10.0), (3, 6.0 / 16.0), (5, 6.0 / 16.0)]);
    // At 1: labels 0 and 3 have 2·1/(1 + 2). At 3: label 0 has 2·2/(3 + 2), label 3 has 2·1/(2 + 2), the others 0.
    close(&macro_f1, &[(1, 1.0 / 3.0), (3, 1.3 / 4.0), (5, 1.3 / 4.0)]);
    // At 1: 0, 0, 2/4, 2/2. At 3: 2/5, 0, 2/4, 2/4.
    close(&example_f1, &[(1, 1.5 / 4.0), (3, 1.4 / 4.0), (5, 1.4 / 4.0)]);
    // Wrong of 16 decisions: 2 + 4 at 1, 7 + 3 at 3.
    close(&hamming_accuracy, &[(1, 10.0 / 16.0), (3, 6.0 / 16.0), (5, 6.0 / 16.0)]);
}

#[test]
fn skipped_rows_leave_every_measure() {
    let mut metrics = metrics();
    metrics.params.unlabelled = Unlabelled::Skip;
    let ranked = rank(&scores());
    let report = evaluate(&ranked, &truth(), &metrics).unwrap();
    assert_eq!((report.rows, report.unlabelled_rows), (3, 1));
    close(&report.precision, &[(1, 2.0 / 3.0), (3, 3.0 / 9.0), (5, 3.0 / 15.0)]);
    close(&report.recall, &[(1, 4.0 / 9.0), (3, 5.5 / 9.0), (5, 5.5 / 9.0)]);
    // The unlabelled row predicted labels 2, 3, 0: these no longer count as wrong.
    close(&report.micro_f1, &[(1, 4.0 / 9.0), (3, 6.0 / 13.0), (5, 6.0 / 13.0)]);
    // At 3: label 0 has 2·2/(2 + 2), label 3 has 2·1/(1 + 2).
    close(&report.macro_f1, &[(1, 1.0 / 3.0), (3, 5.0 / 12.0), (5, 5.0 / 12.0)]);
    close(&report.hamming_accuracy, &[(1, 7.0 / 12.0), (3, 5.0 / 12.0), (5, 5.0 / 12.0)]);
    // An unlabelled row adds nothing to either sum of a ratio.
    let kept = evaluate(&ranked, &truth(), &self::metrics()).unwrap();
    assert_eq!((&report.psp, &report.psndcg), (&kept.psp, &kept.psndcg));
}

#[test]
fn the_floor_thresholds_the_set_alone() {
    let mut metrics = Metrics::at([4]);
    metrics.params.floor = 0.5;
    let ranked = rank(&scores());
    let report = evaluate(&ranked, &truth(), &metrics).unwrap();
    // Sets: {1, 0, 2}, {2}, {}, {0, 1}: 6 labels, 2 of them right (row 0 and row 3), truth holds 6.
    close(&report.micro_f1, &[(4, 4.0 / 12.0)]);
    close(&report.example_f1, &[(4, (2.0 / 5.0 + 2.0 / 3.0) / 4.0)]);
    close(&report.hamming_accuracy, &[(4, 8.0 / 16.0)]);
    // Label 0: predicted twice, true twice, right twice. Label 3 is never predicted now.
    close(&report.macro_f1, &[(4, 1.0 / 4.0)]);
    close(&report.precision, &[(4, 3.0 / 16.0)]);
}

#[test]
fn json_has_the_documented_keys() {
    let with = evaluate(&rank(&scores()), &truth(), &metrics()).unwrap().to_json();
    let mut keys: Vec<&str> = with.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let known = "exampleF1 hammingAccuracy macroF1 microF1 ndcg precision psndcg psndcgPerRow psp recall rows \
                 unlabelled unlabelledRows";
    assert_eq!(keys, known.split_whitespace().collect::<Vec<_>>());
    assert_eq!(with["rows"], 4);
    assert_eq!(with["unlabelledRows"], 1);
    assert_eq!(with["unlabelled"], "keep");
    assert_eq!(with["precision"], serde_json::json!({ "1": 0.5, "3": 0.25, "5": 0.15 }));
    let without = evaluate(&rank(&scores()), &truth(), &Metrics::default()).unwrap().to_json();
    assert!(without.get("psp").is_none() && without.get("psndcgPerRow").is_none());
}

#[test]
fn nothing_at_all_is_zero() {
    let y = Csr::new(0, 3, vec![0], vec![], vec![]).unwrap();
    let report = evaluate(&Ranked::default(), &y, &Metrics::default()).unwrap();
    assert_eq!(report.rows, 0);
    close(&report.precision, &[(1, 0.0), (3, 0.0), (5, 0.0)]);
    close(&report.hamming_accuracy, &[(1, 0.0), (3, 0.0), (5, 0.0)]);
}

#[test]
fn the_largest_k_costs_nothing() {
    let report = evaluate(&rank(&scores()), &truth(), &Metrics::at([3, u32::MAX])).unwrap();
    assert_eq!(report.recall[&u32::MAX], report.recall[&3]);
    assert_eq!(report.precision[&u32::MAX], 3.0 / (4.0 * f64::from(u32::MAX)));
}

#[test]
fn constants_by_data_set() {
    let of = |name: &str| {
        let PropensityParams { a, b } = PropensityParams::for_dataset(name).unwrap();
        (a, b)
    };
    for name in [
        "Wikipedia-LSHTC",
        "WikiLSHTC-325K",
        "wikipedia_500k",
        "wiki-500k",
        "LF-WikiTitles-500K",
        "Wikipedia-1M",
    ] {
        assert_eq!(of(name), (0.5, 0.4), "{name}");
    }
    for name in ["Amazon-670K", "Amazon670", "amazon 3m", "AmazonTitles-670K", "LF-AmazonTitles-1.3M"] {
        assert_eq!(of(name), (0.6, 2.6), "{name}");
    }
    for name in [
        "AmazonCat-13K",
        "AmazonCat-14K",
        "Wiki10-31K",
        "wiki10",
        "LF-WikiSeeAlsoTitles-320K",
        "EURLex-4K",
        "EURLex-4.3K",
        "Delicious-200K",
        "RCV1-2K",
        "rcv1x",
        "Mediamill",
        "bibtex",
    ] {
        assert_eq!(of(name), (0.55, 1.5), "{name}");
    }
    for name in ["", "foo", "Amazn-670K", "-"] {
        refused(
            PropensityParams::for_dataset(name),
            ErrorCode::InvalidArgument,
            &["amazon, wiki,", "propensity.a", name],
        );
    }
}

#[test]
fn a_part_counts_whole_or_not_at_all() {
    let (ranked, y) = (rank(&scores()), truth());
    let mut evaluator = Evaluator::new(&metrics(), 4).unwrap();
    let control = Control::default();
    evaluator.add_all(&ranked, &y, &control).unwrap();
    let before = evaluator.report();
    assert_eq!(before, evaluate(&ranked, &y, &metrics()).unwrap());

    // The last row alone is wrong: 0 twice.
    let mut twice = ranked.clone();
    twice.labels[8] = 0;
    refused(evaluator.add_all(&twice, &y, &control), ErrorCode::DuplicateIndex, &["row 3", "label 0"]);
    let narrow = Csr::new(4, 3, vec![0; 5], vec![], vec![]).unwrap();
    refused(evaluator.add_all(&ranked, &narrow, &control), ErrorCode::ShapeMismatch, &["3 labels", "had 4"]);
    control.cancel_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    refused(evaluator.add_all(&ranked, &y, &control), ErrorCode::Cancelled, &[]);
    assert_eq!(evaluator.report(), before);
    assert_eq!(evaluator.bytes(), 4 * 4 * (1 + 2 * before.precision.len() as u64));
}

#[test]
fn pairs_are_left_out() {
    let pairs = Csr::new(4, 4, vec![0, 1, 1, 2, 2], vec![1, 3], vec![1.0, 0.0]).unwrap();
    let mut ranked = rank(&scores());
    let kept = leave_out(&ranked, &pairs).unwrap();
    assert_eq!((kept.indptr, kept.labels), (vec![0, 2, 5, 5, 8], vec![0, 2, 2, 3, 0, 0, 1, 2]));
    assert_eq!(kept.scores[..2], [0.5, 0.5]);
    ranked.scores.clear();
    assert!(leave_out(&ranked, &pairs).unwrap().scores.is_empty());
    let other = Csr::new(1, 4, vec![0, 0], vec![], vec![]).unwrap();
    assert_eq!(leave_out(&ranked, &other).unwrap_err().code(), ErrorCode::ShapeMismatch);
}

/// A row without labels.
const NONE: Row<'static> = Row { indices: &[], values: &[] };

fn refused<T: std::fmt::Debug>(result: aquila::Result<T>, code: ErrorCode, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "no {word:?} in: {error}");
    }
}

#[test]
fn bad_input_is_named() {
    use ErrorCode::*;
    let (ranked, y) = (rank(&scores()), truth());
    let one = Csr::new(1, 4, vec![0, 0], vec![], vec![]).unwrap();
    refused(evaluate(&ranked, &one, &Metrics::default()), ShapeMismatch, &["4 rows", "1 x 4"]);
    refused(evaluate(&ranked, &y, &Metrics::at([])), InvalidArgument, &["k", "none"]);
    refused(evaluate(&ranked, &y, &Metrics::at([0])), InvalidArgument, &["from 1", "received 0"]);

    let three = Some(Propensity::new(vec![1.0; 3]).unwrap());
    let metrics = Metrics { propensity: three, ..Metrics::default() };
    refused(evaluate(&ranked, &y, &metrics), ShapeMismatch, &["3 labels", "has 4"]);

    // Row 1 names label 3.
    let narrow = Csr::new(4, 3, vec![0; 5], vec![], vec![]).unwrap();
    refused(
        evaluate(&ranked, &narrow, &Metrics::default()),
        IndexOutOfRange,
        &["row 1", "label 3", "labels, 3"],
    );

    let broken = |change: &dyn Fn(&mut Ranked)| {
        let mut ranked = rank(&scores());
        change(&mut ranked);
        evaluate(&ranked, &truth(), &Metrics::default())
    };
    refused(broken(&|r| r.labels[1] = 1), DuplicateIndex, &["row 0", "label 1"]);
    refused(broken(&|r| r.scores[1] = 2.0), InvalidArgument, &["row 0", "score 2", "rank 2"]);
    refused(broken(&|r| r.scores[4] = f32::NAN), NotFinite, &["row 1", "rank 2"]);
    refused(broken(&|r| r.scores.truncate(3)), ShapeMismatch, &["10 labels", "3 scores"]);
    refused(broken(&|r| r.indptr[4] = 11), ShapeMismatch, &["to 11", "10"]);
    refused(broken(&|r| r.indptr[1] = 9), UnsortedIndices, &["pointer 2", "9 to 6"]);
    refused(broken(&|r| r.indptr[0] = 1), ShapeMismatch, &["from 1"]);

    let mut metrics = Metrics::default();
    metrics.params.floor = 0.5;
    let bare = Ranked { scores: vec![], ..ranked };
    refused(evaluate(&bare, &y, &metrics), InvalidArgument, &["floor 0.5", "scores"]);

    let mut e = Evaluator::new(&Metrics::default(), 4).unwrap();
    refused(e.add(&[1, 2], Some(&[1.0]), NONE), ShapeMismatch, &["2 labels", "1 scores"]);
    let twice = Row { indices: &[2, 2], values: &[1.0, 1.0] };
    refused(e.add(&[1], None, twice), DuplicateIndex, &["truth", "column 2"]);
    let beyond = Row { indices: &[4], values: &[1.0] };
    refused(e.add(&[1], None, beyond), IndexOutOfRange, &["truth", "4"]);
    // Behind the last rank that counts too: such a list is of another model, or of a damaged one.
    let mut first = Evaluator::new(&Metrics::at([1]), 4).unwrap();
    refused(first.add(&[1, 2, 4], None, NONE), IndexOutOfRange, &["label 4", "rank 3", "labels, 4"]);
    let report = e.report();
    assert_eq!((report.rows, report.unlabelled_rows), (0, 0), "a refused row must leave nothing behind");

    refused(Evaluator::new(&Metrics::default(), u32::MAX as usize), MemoryLimit, &["4294967295 labels"]);
    refused(Evaluator::new(&Metrics::default(), usize::MAX), MemoryLimit, &[]);
}

#[test]
fn merging_needs_the_same_measures() {
    use ErrorCode::*;
    let mut e = Evaluator::new(&metrics(), 4).unwrap();
    refused(
        e.merge(&Evaluator::new(&Metrics::at([1, 3, 5]), 4).unwrap()),
        InvalidArgument,
        &["propensities"],
    );
    refused(e.merge(&Evaluator::new(&Metrics::at([1]), 4).unwrap()), InvalidArgument, &["[1, 3, 5]", "[1]"]);
    refused(e.merge(&Evaluator::new(&Metrics::at([1]), 5).unwrap()), ShapeMismatch, &["4 and 5"]);
    // The same weights made twice are the same measure.
    e.merge(&Evaluator::new(&metrics(), 4).unwrap()).unwrap();
}

#[test]
fn bad_propensities_are_named() {
    use ErrorCode::*;
    refused(Propensity::new(vec![1.0, f32::NAN]), NotFinite, &["label 1", "NaN"]);
    refused(Propensity::new(vec![-2.0]), InvalidArgument, &["label 0", "-2"]);
    refused(
        Propensity::from_label_counts(20, &[1], f64::NAN, 1.0),
        InvalidArgument,
        &["propensity.a", "NaN"],
    );
    refused(Propensity::from_label_counts(20, &[1], 0.5, 0.0), InvalidArgument, &["propensity.b", "0"]);
    refused(Propensity::from_label_counts(2, &[1], 0.5, 0.4), InvalidArgument, &["3 training rows", "2"]);
    // So steep a model overflows f32.
    refused(Propensity::from_label_counts(20, &[0], 100.0, 1e-9), NotFinite, &["label 0"]);
}
