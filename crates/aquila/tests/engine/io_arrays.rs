//! NumPy and SciPy files: made by hand, made by scipy where there is one, and every fault with its code and place.

use aquila::data;
use aquila::{Control, Csr, Dense, Error, ErrorCode};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

struct File {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn read_npy(path: impl AsRef<Path>) -> Result<Dense, Error> {
    data::read_npy(path, &Control::default())
}

fn read_npz(path: impl AsRef<Path>) -> Result<Csr, Error> {
    data::read_npz(path, &Control::default())
}

fn write_npy(path: impl AsRef<Path>, dense: &Dense) -> Result<(), Error> {
    data::write_npy(path, dense, &Control::default())
}

fn write_npz(path: impl AsRef<Path>, matrix: &Csr, compressed: bool) -> Result<(), Error> {
    data::write_npz(path, matrix, compressed, &Control::default())
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    File { folder, path }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: ErrorCode, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "no {part:?} in: {error}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// An array file, put together independently of the writer.
fn npy(version: u8, descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY".to_vec();
    out.extend([version, 0]);
    match version {
        1 => out.extend((text.len() as u16).to_le_bytes()),
        _ => out.extend((text.len() as u32).to_le_bytes()),
    }
    out.extend(text.as_bytes());
    out.extend(data);
    out
}

/// A stored zip file without zip64, put together independently of the writer.
fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let (offset, n) = (out.len() as u32, data.len() as u32);
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32fast::hash(data).to_le_bytes());
        common.extend(n.to_le_bytes().repeat(2));
        common.extend((name.len() as u32).to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let offset = out.len() as u32;
    let size = directory.len() as u32;
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((members.len() as u16).to_le_bytes().repeat(2));
    out.extend(size.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn ints(values: &[i32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy(1, "<i4", false, &format!("({},)", values.len()), &data)
}

fn longs(values: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
    npy(2, ">i8", false, &format!("({},)", values.len()), &data)
}

fn floats(values: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy(1, "<f8", false, &format!("({},)", values.len()), &data)
}

fn word(text: &str) -> Vec<u8> {
    npy(1, &format!("|S{}", text.len()), false, "()", text.as_bytes())
}

fn members(
    format: &str,
    shape: [i64; 2],
    indptr: &[i32],
    indices: &[i64],
    data: &[f64],
) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("indices.npy", longs(indices)),
        ("indptr.npy", ints(indptr)),
        ("format.npy", word(format)),
        ("shape.npy", longs(&shape)),
        ("data.npy", floats(data)),
    ]
}

fn npz(members: &[(&str, Vec<u8>)]) -> Result<Csr, Error> {
    read_npz(file("a.npz", zip(members)).path)
}

#[test]
fn every_dtype_in_both_byte_orders() {
    macro_rules! check {
        ($($descr:literal $type:ty),*) => {$({
            let values: [$type; 4] = [0 as $type, 1 as $type, 7 as $type, 100 as $type];
            for (order, bytes) in [
                ('<', values.map(|v| v.to_le_bytes().to_vec()).concat()),
                ('>', values.map(|v| v.to_be_bytes().to_vec()).concat()),
            ] {
                for version in 1..=3 {
                    let bytes = npy(version, &format!("{order}{}", $descr), false, "(2, 2)", &bytes);
                    let dense = read_npy(file("a.npy", bytes).path).unwrap();
                    assert_eq!(dense.values(), [0.0, 1.0, 7.0, 100.0], "{order}{}", $descr);
                }
            }
        })*};
    }
    check!("f4" f32, "f8" f64, "i1" i8, "i2" i16, "i4" i32, "i8" i64, "u1" u8, "u2" u16, "u4" u32, "u8" u64);
    let dense = read_npy(file("a.npy", npy(1, "|b1", false, "(3,)", &[0, 1, 1])).path).unwrap();
    assert_eq!((dense.rows(), dense.cols(), dense.values()), (3, 1, &[0.0, 1.0, 1.0][..]));
    let dense = read_npy(file("a.npy", npy(1, ">f2", false, "()", &[0x3c, 0])).path).unwrap();
    assert_eq!((dense.rows(), dense.cols(), dense.values()), (1, 1, &[1.0][..]));
    let dense = read_npy(file("a.npy", npy(1, "|i1", true, "(2, 3)", &[1, 4, 2, 5, 3, 255])).path).unwrap();
    assert_eq!(dense.values(), [1.0, 2.0, 3.0, 4.0, 5.0, -1.0]);
}

#[test]
fn bad_npy() {
    use ErrorCode::*;
    let four = [0u8; 16];
    let nan = [0u8, 0, 0, 0, 0, 0, 0xc0, 0x7f];
    for (bytes, code, what) in [
        (Vec::new(), Parse, "cut short"),
        (b"PK\x03\x04 and more".to_vec(), Parse, "magic"),
        (npy(9, "<f4", false, "(4,)", &four), Unsupported, "version 9"),
        (npy(1, "<f4", false, "(4,)", &four[..15]), Parse, "needs 16 bytes but 15"),
        (npy(1, "<f4", false, "(3,)", &four), Parse, "trails"),
        (npy(1, "<f4", false, "(1000000000000000000,)", &four), Parse, "cut short"),
        (npy(1, "<f4", false, "(99999999999, 99999999999)", &four), Parse, "larger than any memory"),
        (npy(1, "<f4", false, "(99999999999999999999999,)", &four), Parse, "side"),
        (npy(1, "<f4", false, "(1, 2, 2)", &four), ShapeMismatch, "3 dimensions"),
        (npy(1, "<c8", false, "(2,)", &four), Unsupported, "<c8"),
        (npy(1, "|O", false, "(2,)", &four), Unsupported, "|O"),
        (npy(1, "<U2", false, "(2,)", &four), Parse, "words"),
        (npy(1, "<f4", false, "(1, 2)", &nan), NotFinite, "element 1 is NaN"),
        (npy(1, "<f8", false, "(1,)", &1e300f64.to_le_bytes()), NotFinite, "element 0 is inf"),
    ] {
        refused(read_npy(file("a.npy", bytes).path), code, &["a.npy: ", what]);
    }
    refused(read_npy("/nowhere/a.npy"), Io, &["/nowhere/a.npy"]);
    let folder = tempfile::tempdir().unwrap();
    refused(read_npy(folder.path()), Io, &["regular"]);
}

#[test]
fn npz_forms() {
    let expected = Csr::new(3, 4, vec![0, 2, 2, 3], vec![1, 3, 0], vec![1.0, 2.0, 3.5]).unwrap();
    let csr = members("csr", [3, 4], &[0, 2, 2, 3], &[3, 1, 0], &[2.0, 1.0, 3.5]);
    assert_eq!(npz(&csr).unwrap(), expected);
    let csc = members("csc", [3, 4], &[0, 1, 2, 2, 3], &[2, 0, 0], &[3.5, 1.0, 2.0]);
    assert_eq!(npz(&csc).unwrap(), expected);
    // A duplicate is summed; room behind the last entry is no entry; text words are UCS-4.
    let mut summed = members("csr", [3, 4], &[0, 3, 3, 4], &[3, 1, 3, 0, 0], &[0.5, 1.0, 1.5, 3.5, 8.0]);
    summed[2].1 = npy(1, "<U3", false, "()", b"c\0\0\0s\0\0\0r\0\0\0");
    assert_eq!(npz(&summed).unwrap(), expected);
    let coo = [
        ("row.npy", ints(&[2, 0, 0, 0])),
        ("col.npy", ints(&[0, 3, 1, 3])),
        ("format.npy", word("coo")),
        ("shape.npy", longs(&[3, 4])),
        ("data.npy", floats(&[3.5, 0.5, 1.0, 1.5])),
    ];
    assert_eq!(npz(&coo).unwrap(), expected);
}

#[test]
fn bad_npz() {
    use ErrorCode::*;
    let good = || members("csr", [2, 4], &[0, 1, 2], &[3, 1], &[2.0, 1.0]);
    let with = |at: usize, bytes: Vec<u8>| {
        let mut members = good();
        members[at].1 = bytes;
        npz(&members)
    };
    let file_and = |what: &'static str| ["a.npz", what];
    assert!(npz(&good()).is_ok());
    refused(with(0, longs(&[3, 4])), IndexOutOfRange, &file_and("member indices.npy: element 1 is 4"));
    refused(with(0, longs(&[-1, 1])), IndexOutOfRange, &file_and("member indices.npy: element 0 is -1"));
    refused(with(0, longs(&[1 << 40, 1])), IndexOutOfRange, &file_and("1099511627776"));
    refused(
        with(0, floats(&[1.0, 2.0])),
        Parse,
        &file_and("member indices.npy: the array holds no integers"),
    );
    refused(with(0, longs(&[1])), ShapeMismatch, &file_and("member data.npy: 2 values for 1"));
    refused(with(1, ints(&[0, 2])), ShapeMismatch, &file_and("member indptr.npy: 2 pointers"));
    refused(with(1, ints(&[1, 1, 2])), Parse, &file_and("member indptr.npy: the first pointer is 1"));
    refused(with(1, ints(&[-1, 1, 2])), Parse, &file_and("the first pointer is -1"));
    refused(with(1, ints(&[0, 2, 1])), UnsortedIndices, &file_and("pointer 2 falls from 2 to 1"));
    refused(with(1, ints(&[0, -2, 1])), UnsortedIndices, &file_and("pointer 1 falls from 0 to -2"));
    refused(with(1, ints(&[0, 1, 3])), ShapeMismatch, &file_and("member indptr.npy: ends at 3"));
    refused(with(2, word("bsr")), Unsupported, &file_and("tocsr"));
    refused(with(2, ints(&[1])), Parse, &file_and("member format.npy"));
    refused(with(3, longs(&[2, 4, 1])), Parse, &file_and("member shape.npy"));
    refused(with(3, longs(&[2, -4])), Parse, &file_and("member shape.npy: a side of -4"));
    refused(with(3, longs(&[2, 1 << 40])), Parse, &file_and("member shape.npy"));
    refused(with(4, floats(&[2.0, f64::NAN])), NotFinite, &file_and("member data.npy: element 1 is NaN"));
    refused(with(4, floats(&[2.0])), ShapeMismatch, &file_and("member data.npy"));
    refused(npz(&good()[1..]), Parse, &file_and("no member indices.npy"));
    refused(npz(&[("arr_0.npy", ints(&[1]))]), Parse, &file_and("save_npz"));
    refused(npz(&[good(), good()].concat()), Parse, &file_and("two members"));
    let vast = members("csc", [4_000_000_000, 2], &[0, 1, 2], &[3, 1], &[2.0, 1.0]);
    refused(npz(&vast), MemoryLimit, &file_and("member shape.npy"));
    let mut claimed = good();
    claimed[4].1 = npy(1, "<f8", false, "(1000000000000000000,)", &[0; 16]);
    refused(npz(&claimed), Parse, &file_and("member data.npy"));

    let mut flipped = zip(&good());
    let data = flipped.windows(8).rposition(|w| w == 1f64.to_le_bytes()).unwrap();
    flipped[data + 6] ^= 1;
    refused(read_npz(file("a.npz", flipped).path), Checksum, &file_and("member data.npy"));
    refused(read_npz(file("a.npz", "a text").path), Parse, &file_and("no zip file"));
}

fn matrix() -> impl Strategy<Value = Csr> {
    let row = prop::collection::btree_map(0u32..50, -1e6f32..1e6, 0..9);
    prop::collection::vec(row, 0..30).prop_map(|rows| {
        let (mut indptr, mut indices, mut values) = (vec![0], vec![], vec![]);
        for row in &rows {
            indices.extend(row.keys());
            values.extend(row.values());
            indptr.push(indices.len());
        }
        Csr::new(rows.len(), 50, indptr, indices, values).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn npz_round_trip(matrix in matrix(), compressed: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        write_npz(&path, &matrix, compressed).unwrap();
        prop_assert_eq!(read_npz(&path).unwrap(), matrix.clone());
        let bytes = std::fs::read(&path).unwrap();
        write_npz(&path, &matrix, compressed).unwrap();
        prop_assert_eq!(&std::fs::read(&path).unwrap(), &bytes);
        let packed = folder.path().join("a.npz.gz");
        write_npz(&packed, &matrix, compressed).unwrap();
        prop_assert_eq!(read_npz(&packed).unwrap(), matrix.clone());
        std::fs::write(&packed, gzip(&bytes)).unwrap();
        prop_assert_eq!(read_npz(&packed).unwrap(), matrix);
    }

    #[test]
    fn npy_round_trip(rows in 0usize..9, cols in 0usize..9, seed: u32) {
        let values = (0..rows * cols).map(|i| (i as u32 ^ seed) as f32 * 1e-3).collect();
        let dense = Dense::new(rows, cols, values).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        write_npy(&path, &dense).unwrap();
        prop_assert_eq!(&read_npy(&path).unwrap(), &dense);
        let packed = folder.path().join("b.npy.gz");
        write_npy(&packed, &dense).unwrap();
        prop_assert_eq!(unpacked(&std::fs::read(&packed).unwrap()), std::fs::read(&path).unwrap());
        prop_assert_eq!(read_npy(&packed).unwrap(), dense);
    }
}

#[test]
fn gzip_is_told_by_name_and_checked() {
    let array = npy(1, "<f4", false, "(2,)", &1f32.to_le_bytes().repeat(2));
    let packed = gzip(&array);
    assert_eq!(read_npy(file("a.npy.GZ", &packed).path).unwrap().values(), [1.0, 1.0]);
    for end in 0..packed.len() {
        refused(read_npy(file("a.npy.gz", &packed[..end]).path), ErrorCode::Parse, &["a.npy.gz", "gzip"]);
        refused(read_npz(file("a.npz.gz", &packed[..end]).path), ErrorCode::Parse, &["a.npz.gz", "gzip"]);
    }
    refused(read_npy(file("a.npy.gz", &array).path), ErrorCode::Parse, &["gzip"]);
    refused(read_npy(file("a.npy", &packed).path), ErrorCode::Parse, &["magic"]);
    let zeros = npy(1, "<f4", false, "(40000000,)", &vec![0; 160_000_000]);
    refused(read_npy(file("a.npy.gz", gzip(&zeros)).path), ErrorCode::Parse, &["unpack the file first"]);
}

/// Runs Python with numpy and scipy, where there is one.
fn python(script: &str, folder: &Path) -> bool {
    let Ok(python) = std::env::var("AQUILA_PYTHON") else {
        println!("skipped: set AQUILA_PYTHON to a python that has scipy");
        return false;
    };
    if !Path::new(&python).exists() {
        println!("skipped: AQUILA_PYTHON names no file: {python}");
        return false;
    }
    let out = Command::new(python).arg("-c").arg(script).current_dir(folder).output().unwrap();
    std::io::stderr().write_all(&out.stderr).unwrap();
    assert!(out.status.success());
    true
}

#[test]
fn scipy_reads_what_we_write_and_we_what_it_writes() {
    let data: Vec<f32> = (0..3000).map(|i| i as f32 * 0.37 - 200.0).collect();
    let indices: Vec<u32> = (0..3000).map(|i| (i % 10) * 7 + i / 10 % 7).collect();
    let matrix = Csr::new(300, 80, (0..=300).map(|i| i * 10).collect(), indices, data).unwrap();
    let file = file("stored.npz", "");
    let folder = file.folder.path();
    write_npz(&file.path, &matrix, false).unwrap();
    write_npz(folder.join("deflated.npz"), &matrix, true).unwrap();
    let dense = Dense::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 5.5, -6.0]).unwrap();
    write_npy(folder.join("dense.npy"), &dense).unwrap();
    let script = r#"
import numpy as np, scipy.sparse as sp, zipfile
a, b = sp.load_npz("stored.npz"), sp.load_npz("deflated.npz")
assert zipfile.ZipFile("stored.npz").testzip() is None and zipfile.ZipFile("deflated.npz").testzip() is None
assert a.format == "csr" and a.shape == (300, 80) and a.dtype == np.float32 and (a != b).nnz == 0
assert a.indices.dtype == np.int32 and a.indptr.dtype == np.int32
rows = np.repeat(np.arange(300), 10); i = np.arange(3000)
e = sp.csr_matrix(((i.astype(np.float32) * np.float32(0.37) - 200), (rows, i % 10 * 7 + i // 10 % 7)), (300, 80))
assert abs(a - e).max() < 1e-4
assert (np.load("dense.npy") == [[1, 2], [3, 4], [5.5, -6]]).all()
for name, m in dict(csr=a, csc=a.tocsc(), coo=a.tocoo(), array=sp.csr_array(a), wide=a.astype(np.float64)).items():
    for compressed in (False, True):
        if name == "wide": m.indices = m.indices.astype(np.int64); m.indptr = m.indptr.astype(np.int64)
        sp.save_npz(f"{name}{int(compressed)}.npz", m, compressed=compressed)
sp.save_npz("bool0.npz", a.astype(bool)); sp.save_npz("int0.npz", sp.csr_matrix(np.arange(6).reshape(2, 3)))
sp.save_npz("dia0.npz", sp.eye(3, format="dia"))
np.save("f.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3))); np.save("h.npy", np.float16([1.5, -2]))
"#;
    if !python(script, folder) {
        return;
    }
    for name in ["csr", "csc", "coo", "array", "wide"] {
        for kind in ["0", "1"] {
            assert_eq!(read_npz(folder.join(format!("{name}{kind}.npz"))).unwrap(), matrix, "{name}{kind}");
        }
    }
    let bools = read_npz(folder.join("bool0.npz")).unwrap();
    assert!(bools.values().iter().all(|v| *v == 1.0) && bools.nnz() == 3000);
    assert_eq!(read_npz(folder.join("int0.npz")).unwrap().values(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    refused(read_npz(folder.join("dia0.npz")), ErrorCode::Unsupported, &["dia", "tocsr"]);
    assert_eq!(read_npy(folder.join("f.npy")).unwrap().values(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(read_npy(folder.join("h.npy")).unwrap().values(), [1.5, -2.0]);
}
