//! Text files against a naive reader, for any thread count; every fault with its code, file and line.

use crate::common::shared;
use aquila::data::{self, Dataset, LibsvmOptions, Source};
use aquila::{Control, Csr, Error, ErrorCode};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn read_xmc(path: impl AsRef<Path>, threads: usize) -> Result<Dataset, Error> {
    data::read_xmc(path, &Control::with_threads(threads))
}

fn read_libsvm(path: &Path, threads: usize, options: LibsvmOptions) -> Result<Dataset, Error> {
    data::read_libsvm(path, options, &Control::with_threads(threads))
}

fn write_xmc(path: &Path, x: &Csr, y: &Csr) -> Result<(), Error> {
    data::write_xmc(path, &x.clone().into(), y, &Control::default())
}

fn write_libsvm(path: &Path, x: &Csr, y: &Csr, one_based: bool) -> Result<(), Error> {
    data::write_libsvm(path, &x.clone().into(), y, one_based, &Control::default())
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    File { _folder: folder, path }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn xmc(text: &str) -> Result<Dataset, Error> {
    read_xmc(&file("a.txt", text).path, 2)
}

/// A row as the naive reader sees it.
type NaiveRow = (Vec<u32>, BTreeMap<u32, f32>);

fn naive(text: &str) -> Vec<NaiveRow> {
    let row = |line: &str| {
        let (labels, features) = line.split_once(' ').unwrap_or((line, ""));
        let mut labels: Vec<u32> =
            labels.split(',').filter(|l| !l.is_empty()).map(|l| l.parse().unwrap()).collect();
        labels.sort();
        labels.dedup();
        let features = features.split_whitespace().map(|pair| {
            let (id, value) = pair.split_once(':').unwrap();
            (id.parse().unwrap(), value.parse().unwrap())
        });
        (labels, features.collect())
    };
    text.lines().skip(1).map(row).collect()
}

fn rows(data: &Dataset) -> Vec<NaiveRow> {
    let both = data.x.iter_rows().zip(data.y.iter_rows());
    both.map(|(x, y)| (y.indices.to_vec(), x.iter().collect())).collect()
}

fn row() -> impl Strategy<Value = NaiveRow> {
    let value = prop_oneof![
        any::<f32>().prop_filter("finite", |v| v.is_finite()),
        (0u32..2_000_000).prop_map(|n| n as f32 / 1e6)
    ];
    (prop::collection::vec(0u32..40, 0..5), prop::collection::btree_map(0u32..3000, value, 0..12))
}

fn matrices(rows: &[NaiveRow]) -> (Csr, Csr) {
    let (mut x, mut y) = ((vec![0], vec![], vec![]), (vec![0], vec![]));
    for (labels, features) in rows {
        let labels: std::collections::BTreeSet<u32> = labels.iter().copied().collect();
        y.1.extend(labels);
        y.0.push(y.1.len());
        x.1.extend(features.keys().copied());
        x.2.extend(features.values().copied());
        x.0.push(x.1.len());
    }
    let ones = vec![1.0; y.1.len()];
    (Csr::new(rows.len(), 3000, x.0, x.1, x.2).unwrap(), Csr::new(rows.len(), 40, y.0, y.1, ones).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn reads_what_a_naive_reader_reads(table in prop::collection::vec(row(), 0..30), turn: bool, crlf: bool) {
        let mut text = format!("{} 3000 40\n", table.len());
        for (labels, features) in &table {
            let labels: Vec<String> = labels.iter().map(u32::to_string).collect();
            let mut pairs: Vec<String> = features.iter().map(|(j, v)| format!(" {j}:{v}")).collect();
            if turn {
                pairs.reverse();
            }
            let end = if crlf { " \r\n" } else { "\n" };
            text.push_str(&format!("{}{}{end}", labels.join(","), pairs.concat()));
        }
        let expected = naive(&text);
        for (name, bytes) in [("a.txt", text.clone().into_bytes()), ("a.txt.gz", gzip(text.as_bytes()))] {
            let file = file(name, bytes);
            let data = read_xmc(&file.path, 1).unwrap();
            prop_assert_eq!(&rows(&data), &expected);
            for threads in [2, 5] {
                prop_assert_eq!(&read_xmc(&file.path, threads).unwrap(), &data);
            }
        }
    }

    #[test]
    fn writes_what_it_reads(table in prop::collection::vec(row(), 0..30), packed: bool) {
        let (x, y) = matrices(&table);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(if packed { "a.txt.gz" } else { "a.txt" });
        write_xmc(&path, &x, &y).unwrap();
        prop_assert_eq!(Source::open(&path, &Control::default()).unwrap().is_gzip(), packed);
        let again = read_xmc(&path, 2).unwrap();
        let bits = |m: &Csr| m.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again.x), bits(&x));
        prop_assert_eq!((again.x, again.y), (x, y));
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn writes_libsvm_that_it_reads(table in prop::collection::vec(row(), 0..30), packed: bool, one_based: bool) {
        let some = |(labels, features): &NaiveRow| !(labels.is_empty() && features.is_empty());
        let table: Vec<NaiveRow> = table.into_iter().filter(some).collect();
        let (x, y) = matrices(&table);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(if packed { "a.svm.gz" } else { "a.svm" });
        write_libsvm(&path, &x, &y, one_based).unwrap();
        prop_assert_eq!(Source::open(&path, &Control::default()).unwrap().is_gzip(), packed);
        let options = LibsvmOptions { one_based, features: Some(3000), labels: Some(40) };
        let again = read_libsvm(&path, 2, options).unwrap();
        prop_assert_eq!((again.x, again.y), (x, y));
    }
}

#[test]
fn many_chunks_give_what_one_gives() {
    let mut text = String::from("60000 1000 50\n");
    for i in 0..60_000u32 {
        let features: String = (0..i % 23).map(|j| format!(" {}:{}", j * 40, i * j + 1)).collect();
        text.push_str(&format!("{}{features}\n", i % 50));
    }
    let plain = file("a.txt", &text);
    let one = read_xmc(&plain.path, 1).unwrap();
    assert_eq!(rows(&one), naive(&text));
    let broken = file("b.txt", text.replacen("\n7 ", "\n7, ", 900));
    let fault = read_xmc(&broken.path, 1).unwrap_err();
    for threads in [2, 5] {
        assert_eq!(read_xmc(&plain.path, threads).unwrap(), one);
        assert_eq!(read_xmc(&broken.path, threads).unwrap_err(), fault);
    }
}

#[test]
fn tolerated_forms() {
    let plain = xmc("2 5 3\n0,2 1:1 4:2\n 0:3\n").unwrap();
    for text in [
        "2 5 3\r\n0,2 1:1 4:2\r\n 0:3\r\n",
        "2 5 3\n0,2 1:1 4:2\n 0:3",
        " 2\t5  3 \n2,0,2 4:2   1:1 \t\n  0:3e0  \n",
        "2 5 3\n0,2 1:+1.0 4:20e-1\n\t0:.3E1\n",
    ] {
        assert_eq!(xmc(text).unwrap(), plain, "{text:?}");
    }
    let empty = xmc("3 5 3\n\n \n0\n").unwrap();
    assert_eq!((empty.x.nnz(), empty.y.indptr()), (0, &[0, 0, 0, 1][..]));
    let nothing = xmc("0 0 0\n").unwrap();
    assert_eq!((nothing.x.rows(), nothing.x.cols(), nothing.y.cols()), (0, 0, 0));
}

fn refused(error: Error, code: ErrorCode, parts: &[&str]) {
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn bad_xmc_lines() {
    use ErrorCode::*;
    for (line, code, what) in [
        ("0 5:1", IndexOutOfRange, "feature 5 is not below 5"),
        ("0 99999999999999999999999:1", IndexOutOfRange, "feature"),
        ("3 1:1", IndexOutOfRange, "label 3 is not below 3"),
        ("0 4294967296:1", IndexOutOfRange, "feature 4294967296"),
        (
            "0 1:1 1:2",
            DuplicateIndex,
            "feature 1 stands twice in this row: sum its values or drop one: \"1:2\"",
        ),
        ("0 3:1 1:2 3:4", DuplicateIndex, "\"3:4\""),
        ("0 1:nan", NotFinite, "\"1:nan\""),
        ("0 1:-inf", NotFinite, "-inf"),
        ("0 1:1e39", NotFinite, "\"1:1e39\""),
        ("0 1", Parse, "colon after the feature id: \"1\""),
        ("0 1:", Parse, "number after the colon"),
        ("0 1:x", Parse, "\"1:x\""),
        ("0 1:1:2", Parse, "\"1:1:2\""),
        ("0 -1:1", Parse, "\"-1:1\""),
        ("0 :1", Parse, "\":1\""),
        ("1:1 2:1", Parse, "begins with a space"),
        ("a 1:1", Parse, "\"a\""),
        ("-1 1:1", Parse, "\"-1\""),
        ("0, 1:1", Parse, "label id"),
        (",0 1:1", Parse, "\",0\""),
        ("0;1 1:1", Parse, "\"0;1\""),
        ("0 1:1\r 2:2", Parse, "feature:value"),
        ("0 1:1 # no comments here", Parse, "\"#\""),
        ("0 1:\u{e9}\u{1}", Parse, "\\u{1}"),
        ("0 2:0.000000000000000000000000000000000000000000000000000000x", Parse, "…"),
    ] {
        let text = format!("3 5 3\n0 1:1\n{line}\n\n");
        refused(xmc(&text).unwrap_err(), code, &["a.txt, line 3: ", what]);
    }
}

#[test]
fn bad_xmc_files() {
    use ErrorCode::*;
    for (text, code, what) in [
        ("", Parse, "a.txt: empty"),
        ("\n", Parse, "a.txt, line 1: the first line must hold three counts"),
        ("1 2\n0 1:1\n", Parse, "line 1"),
        ("1 2 3 4\n0 1:1\n", Parse, "line 1"),
        ("+1 2 3\n0 1:1\n", Parse, "the number of rows"),
        (
            "1 2 -3\n0 1:1\n",
            Parse,
            "the number of labels must be an integer from 0 to 4294967295 but is \"-3\"",
        ),
        ("1 4294967296 3\n0 1:1\n", Parse, "the number of features"),
        ("1000000000000000000 2 3\n0 1:1\n", Parse, "the number of rows"),
        ("4000000000 2 3\n0 1:1\n", Parse, "a.txt, line 2: the file ends after 1 rows"),
        ("2 2 3\n0 1:1\n", Parse, "header says 2"),
        ("1 2 3\n0 1:1\n0 1:1\n", Parse, "a.txt, line 3: a row more than the 1"),
        ("1 2 3\n0 1:1\n0 1:1\nx\n", Parse, "a.txt, line 3: a row more"),
        ("1 2 3\n0 1:1\n\n", Parse, "a blank line is a row"),
    ] {
        refused(xmc(text).unwrap_err(), code, &[what]);
    }
    let missing = read_xmc("/nowhere/to/be/found.txt", 1).unwrap_err();
    refused(missing, Io, &["/nowhere/to/be/found.txt"]);
    let folder = tempfile::tempdir().unwrap();
    refused(read_xmc(folder.path(), 1).unwrap_err(), Io, &[&folder.path().display().to_string()]);
}

#[test]
fn gzip_of_every_kind() {
    let text = b"2 5 3\n0 1:1\n1 2:1\n";
    let whole = gzip(text);
    let parts = [gzip(&text[..9]), gzip(b""), gzip(&text[9..])].concat();
    let expected = xmc(std::str::from_utf8(text).unwrap()).unwrap();
    for (name, bytes) in [("a.gz", &whole), ("a.GZ", &whole), ("unnamed", &whole), ("a.gz", &parts)] {
        assert_eq!(read_xmc(&file(name, bytes).path, 1).unwrap(), expected);
    }
    for end in 0..whole.len() {
        refused(read_xmc(&file("a.gz", &whole[..end]).path, 1).unwrap_err(), ErrorCode::Parse, &["a.gz"]);
    }
    refused(read_xmc(&file("a.gz", text).path, 1).unwrap_err(), ErrorCode::Parse, &["a.gz", "gzip"]);
    let mut flipped = whole.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    refused(read_xmc(&file("a.gz", &flipped).path, 1).unwrap_err(), ErrorCode::Parse, &["a.gz", "gzip"]);
}

#[test]
fn gzip_that_grows_beyond_reason() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(b"1 5 3\n").unwrap();
    packed.write_all(&vec![b' '; 100 << 20]).unwrap();
    let error = read_xmc(&file("a.gz", packed.finish().unwrap()).path, 1).unwrap_err();
    refused(error, ErrorCode::Parse, &["a.gz", "unpack the file first"]);
}

fn libsvm(text: &str, options: LibsvmOptions) -> Result<Dataset, Error> {
    read_libsvm(&file("a.svm", text).path, 2, options)
}

#[test]
fn libsvm_forms() {
    let one = LibsvmOptions { one_based: true, ..Default::default() };
    let text = "# all of it\n\n0,2 1:1 5:2#first\n   # nothing\n 1:3 # no label\n1\n";
    let data = libsvm(text, one).unwrap();
    assert_eq!((data.x.rows(), data.x.cols(), data.y.cols()), (3, 5, 3));
    assert_eq!((data.x.indices(), data.y.indices()), (&[0, 4, 0][..], &[0, 2, 1][..]));
    let given = LibsvmOptions { features: Some(9), labels: Some(7), ..one };
    let data = libsvm(text, given).unwrap();
    assert_eq!((data.x.cols(), data.y.cols()), (9, 7));
    assert_eq!(libsvm(text, LibsvmOptions::default()).unwrap().x.indices(), [1, 5, 1]);
    let nothing = libsvm("", one).unwrap();
    assert_eq!((nothing.x.rows(), nothing.x.cols(), nothing.y.cols()), (0, 0, 0));
}

#[test]
fn bad_libsvm() {
    use ErrorCode::*;
    let one = LibsvmOptions { one_based: true, features: Some(5), labels: Some(3) };
    for (line, code, what) in [
        ("0 0:1", IndexOutOfRange, "count from 1"),
        ("0 6:1", IndexOutOfRange, "feature 6 passes the last feature, 5"),
        ("3 1:1", IndexOutOfRange, "label 3"),
        ("-1 1:1", Parse, "\"-1\""),
        ("0 qid:3 1:1", Parse, "\"qid:3\""),
        (
            "0 2:1 1:1 2:2",
            DuplicateIndex,
            "feature 2 stands twice in this row: sum its values or drop one: \"2:2\"",
        ),
    ] {
        let text = format!("# comment\n0 5:1\n{line}\n");
        refused(libsvm(&text, one).unwrap_err(), code, &["a.svm, line 3: ", what]);
    }
    let beyond = libsvm("0 4294967295:1\n", LibsvmOptions::default()).unwrap_err();
    refused(beyond, IndexOutOfRange, &["a.svm, line 1"]);
    let wide = LibsvmOptions { features: Some(1 << 40), ..one };
    refused(libsvm("", wide).unwrap_err(), InvalidArgument, &["features", "1099511627776"]);
}

#[test]
fn a_byte_order_mark_may_begin_a_text_and_stand_nowhere_else() {
    let mark = "\u{feff}";
    let text = "2 4 3\n0,2 1:0.5 3:2\n 0:1\n";
    let want = xmc(text).unwrap();
    assert_eq!(xmc(&format!("{mark}{text}")).unwrap(), want);
    let packed = file("a.txt.gz", gzip(format!("{mark}{text}").as_bytes()));
    assert_eq!(read_xmc(&packed.path, 2).unwrap(), want);
    let svm = |text: &str| read_libsvm(&file("a.svm", text).path, 2, LibsvmOptions::default());
    let rows = "0,2 1:0.5 3:2\n 0:1\n";
    for first in ["", "# what these are\n"] {
        let marked = svm(&format!("{mark}{first}{rows}")).unwrap();
        assert_eq!(marked, svm(rows).unwrap(), "{first:?}");
    }
    let packed = file("a.svm", gzip(format!("{mark}{rows}").as_bytes()));
    assert_eq!(read_libsvm(&packed.path, 1, LibsvmOptions::default()).unwrap(), svm(rows).unwrap());
    // A mark alone is an empty text.
    assert_eq!(svm(mark).unwrap().x.rows(), 0);
    refused(xmc(mark).unwrap_err(), ErrorCode::Parse, &["empty, but a header"]);
    for (text, line) in [
        (format!("2 4 3\n0,2 1:0.5 3:2\n{mark} 0:1\n"), "line 3"),
        (format!("2 4 3\n{mark}0,2 1:0.5 3:2\n 0:1\n"), "line 2"),
        (format!("2 4 3\n0,2 1:0.5 {mark}3:2\n 0:1\n"), "line 2"),
        (format!("2 4 3\n0,2 1:0.5 3:2{mark}\n 0:1\n"), "line 2"),
        (format!("2 4{mark} 3\n0,2 1:0.5 3:2\n 0:1\n"), "line 1"),
        (format!("{mark}{mark}2 4 3\n0,2 1:0.5 3:2\n 0:1\n"), "line 1"),
    ] {
        refused(xmc(&text).unwrap_err(), ErrorCode::Parse, &[line, "byte-order mark (U+FEFF)", "remove it"]);
    }
    let joined = svm(&format!("{rows}{mark}{rows}")).unwrap_err();
    refused(joined, ErrorCode::Parse, &["a.svm, line 3", "byte-order mark"]);
}

#[test]
fn what_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let x = Csr::new(1, 1, vec![0, 0], vec![], vec![]).unwrap();
    let y = Csr::new(2, 3, vec![0, 0, 1], vec![2], vec![0.5]).unwrap();
    refused(write_xmc(&path, &x, &y).unwrap_err(), ErrorCode::ShapeMismatch, &["1 rows", "2"]);
    let x = Csr::new(2, 1, vec![0, 0, 0], vec![], vec![]).unwrap();
    refused(write_xmc(&path, &x, &y).unwrap_err(), ErrorCode::InvalidArgument, &["label 2 of row 1", "0.5"]);
    let ones = Csr::new(2, 3, vec![0, 1, 1], vec![2], vec![1.0]).unwrap();
    let blank = write_libsvm(&path, &x, &ones, true).unwrap_err();
    refused(blank, ErrorCode::Unsupported, &["row 1 has neither labels nor features", "drop the row"]);
    refused(
        write_libsvm(&path, &x, &y, true).unwrap_err(),
        ErrorCode::InvalidArgument,
        &["label 2 of row 1"],
    );
    let lost = folder.path().join("no/such/a.txt");
    refused(write_xmc(&lost, &x, &x).unwrap_err(), ErrorCode::Io, &["a.txt: its folder does not exist"]);
    refused(write_xmc(folder.path(), &x, &x).unwrap_err(), ErrorCode::Io, &["no regular file"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn real_data() {
    let Some(path) = shared("bibtex.train.txt.gz") else { return };
    let data = read_xmc(&path, 2).unwrap();
    assert_eq!((data.x.rows(), data.x.cols(), data.y.rows(), data.y.cols()), (4880, 1836, 4880, 159));
    let mut text = Vec::new();
    Source::open(&path, &Control::default()).unwrap().read_up_to(usize::MAX, &mut text).unwrap();
    assert_eq!(rows(&data), naive(std::str::from_utf8(&text).unwrap()));
}
