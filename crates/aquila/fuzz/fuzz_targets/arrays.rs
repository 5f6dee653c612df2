//! Any bytes as an array file (npy, npz: a zip archive): read or refused, never a crash.

#![no_main]

use aquila::Control;
use aquila::data::{read_npy, read_npz};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let path = FOLDER.path().join("x.npz");
    std::fs::write(&path, bytes).unwrap();
    let control = Control::with_threads(1);
    let _ = read_npz(&path, &control);
    let _ = read_npy(&path, &control);
});
