//! Broken bytes of every kind end in an error that names the file, never in a panic, and never in a wrong matrix
//! where a checksum stands guard.

use aquila::data::{
    LibsvmOptions, read_libsvm, read_npy, read_npz, read_xmc, write_npy, write_npz, write_xmc,
};
use aquila::{Control, Csr, Dense, Error};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

fn small() -> Csr {
    Csr::new(3, 5, vec![0, 2, 2, 3], vec![1, 3, 0], vec![1.0, -2.5, 3.5]).unwrap()
}

/// Reads a file in every way that there is. `None` where it was read.
type Reader = fn(&Path) -> Option<Error>;
const READERS: [Reader; 5] = [
    |path| read_xmc(path, &Control::with_threads(1)).err(),
    |path| read_libsvm(path, LibsvmOptions::default(), &Control::with_threads(1)).err(),
    |path| {
        read_libsvm(
            path,
            LibsvmOptions { one_based: true, features: Some(9), labels: None },
            &Control::with_threads(1),
        )
        .err()
    },
    |path| read_npy(path, &Control::default()).err(),
    |path| read_npz(path, &Control::default()).err(),
];

/// A valid small file of each format and its reader. Made once: each is synced to the disk.
static SAMPLES: LazyLock<Vec<(&'static str, Vec<u8>, Reader)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let x = small();
    let y = Csr::new(3, 4, vec![0, 1, 1, 3], vec![2, 0, 1], vec![1.0; 3]).unwrap();
    let dense = Dense::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let path = |name: &str| folder.path().join(name);
    let control = Control::default();
    write_xmc(path("a.txt"), &x.clone().into(), &y, &control).unwrap();
    write_xmc(path("a.txt.gz"), &x.clone().into(), &y, &control).unwrap();
    write_npy(path("a.npy"), &dense, &control).unwrap();
    write_npy(path("a.npy.gz"), &dense, &control).unwrap();
    write_npz(path("stored.npz.gz"), &x, false, &control).unwrap();
    write_npz(path("stored.npz"), &x, false, &control).unwrap();
    write_npz(path("deflated.npz"), &x, true, &control).unwrap();
    let names = [
        ("a.txt", 0),
        ("a.txt.gz", 0),
        ("a.npy", 3),
        ("a.npy.gz", 3),
        ("stored.npz", 4),
        ("deflated.npz", 4),
    ];
    names
        .into_iter()
        .chain([("stored.npz.gz", 4)])
        .map(|(name, reader)| (name, std::fs::read(path(name)).unwrap(), READERS[reader]))
        .collect()
});

/// Writes a new file: where an old one is written over, some file systems wait for the disk.
fn put(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

fn names_the_file(error: Option<Error>, path: &Path) {
    if let Some(error) = error {
        assert!(error.message().starts_with(&path.display().to_string()), "{error}");
    }
}

#[test]
fn files_cut_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, read) in SAMPLES.iter() {
        let path = folder.path().join(format!("cut-{name}"));
        for end in 0..bytes.len() {
            put(&path, &bytes[..end]);
            let error = read(&path);
            // The beginning of a last row may be a row as well.
            let text = *name == "a.txt" && bytes.len() - end <= "0,1 0:3.5".len();
            assert!(text || error.is_some(), "{name} of {} bytes was read when cut to {end}", bytes.len());
            names_the_file(error, &path);
        }
    }
}

#[test]
fn files_with_any_byte_changed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, read) in SAMPLES.iter() {
        let path = folder.path().join(format!("changed-{name}"));
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                put(&path, &changed);
                names_the_file(read(&path), &path);
                if name.contains("npz")
                    && let Ok(matrix) = read_npz(&path, &Control::default())
                {
                    assert_eq!(matrix, small(), "{name}: a change at {at} went unseen");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        start in prop::sample::select(vec![
            &b""[..], b"\x1f\x8b\x08", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"PK\x05\x06", b"3 3 3\n",
        ]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("random");
        std::fs::write(&path, [start, &bytes].concat()).unwrap();
        for read in READERS {
            names_the_file(read(&path), &path);
        }
    }

    #[test]
    fn random_words(text in "[0-9]{1,2} [0-9]{1,2} [0-9]{1,2}\n([0-9,:. #\r\n\t+e-]|nan|inf){0,80}") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("random");
        std::fs::write(&path, text).unwrap();
        for read in READERS {
            names_the_file(read(&path), &path);
        }
    }

    #[test]
    fn random_mutations(
        sample in 0usize..7,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (name, mut bytes, read) = SAMPLES[sample].clone();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        names_the_file(read(&path), &path);
    }
}
