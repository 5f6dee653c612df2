//! Any bytes as a text file, plain or gzip: read or refused, never a crash.

#![no_main]

use aquila::Control;
use aquila::data::{LibsvmOptions, read_libsvm, read_xmc};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.txt");
    std::fs::write(&path, bytes).unwrap();
    let control = Control::with_threads(1);
    let _ = read_xmc(&path, &control);
    let _ = read_libsvm(&path, LibsvmOptions::default(), &control);
    let given = LibsvmOptions { one_based: true, features: Some(9), labels: None };
    let _ = read_libsvm(&path, given, &control);
});
