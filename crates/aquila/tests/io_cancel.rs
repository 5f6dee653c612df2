//! Readers and writers of files end when their call is cancelled, say so, and leave everything as it was.

use aquila::data::{
    LibsvmOptions, read_libsvm, read_npy, read_npz, read_xmc, write_atomically, write_libsvm, write_npy,
    write_npz, write_xmc,
};
use aquila::xlinear::{Model, TrainInputs, TrainParams, train};
use aquila::{Control, Csr, Dense, Error, ErrorCode, Features};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

struct Content {
    x: Features,
    y: Csr,
    dense: Dense,
    model: Model,
}

fn content(rows: usize) -> Content {
    let indptr: Vec<usize> = (0..=rows).map(|i| i * 10).collect();
    let indices = (0..rows * 10).map(|n| (n % 10 * 100 + n / 10 * 7 % 100) as u32).collect();
    let values = (0..rows * 10).map(|n| (n * 37 % 1001) as f32 / 64.0).collect();
    let x: Features = Csr::new(rows, 1000, indptr, indices, values).unwrap().into();
    let labels = (0..rows).map(|i| i as u32 % 20).collect();
    let y = Csr::new(rows, 20, (0..=rows).collect(), labels, vec![1.0; rows]).unwrap();
    let dense = Dense::new(rows, 10, x.sparse().values().to_vec()).unwrap();
    let few: Vec<u32> = (0..40).collect();
    let control = Control::with_threads(1);
    let (model, _) =
        train(&x.select(&few), &y.select(&few), &TrainParams::default(), TrainInputs::default(), &control)
            .unwrap();
    Content { x, y, dense, model }
}

/// A kind of file: its name, what writes it and what reads it.
type Kind = (
    &'static str,
    fn(&Path, &Content, &Control) -> Result<(), Error>,
    fn(&Path, &Control) -> Result<(), Error>,
);

const KINDS: [Kind; 11] = [
    ("a.txt", |p, c, t| write_xmc(p, &c.x, &c.y, t), |p, t| read_xmc(p, t).map(drop)),
    ("a.txt.gz", |p, c, t| write_xmc(p, &c.x, &c.y, t), |p, t| read_xmc(p, t).map(drop)),
    ("a.svm", |p, c, t| write_libsvm(p, &c.x, &c.y, true, t), libsvm),
    ("a.svm.gz", |p, c, t| write_libsvm(p, &c.x, &c.y, true, t), libsvm),
    ("a.npy", |p, c, t| write_npy(p, &c.dense, t), |p, t| read_npy(p, t).map(drop)),
    ("a.npy.gz", |p, c, t| write_npy(p, &c.dense, t), |p, t| read_npy(p, t).map(drop)),
    ("stored.npz", |p, c, t| write_npz(p, c.x.sparse(), false, t), |p, t| read_npz(p, t).map(drop)),
    ("deflated.npz", |p, c, t| write_npz(p, c.x.sparse(), true, t), |p, t| read_npz(p, t).map(drop)),
    ("a.npz.gz", |p, c, t| write_npz(p, c.x.sparse(), true, t), |p, t| read_npz(p, t).map(drop)),
    ("a.aquila", |p, c, t| c.model.save(p, t), |p, t| Model::open(p)?.verify(t)),
    ("atomic", |p, _, t| write_atomically(p, t, |file| file.write_all(b"new")), |_, t| t.check()),
];

fn libsvm(path: &Path, control: &Control) -> Result<(), Error> {
    read_libsvm(path, LibsvmOptions { one_based: true, ..Default::default() }, control).map(drop)
}

fn cancel(control: &Control) {
    control.cancel_flag().store(true, Ordering::Relaxed);
}

/// Every file of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

fn is_cancelled(result: Result<(), Error>, what: &str) {
    assert_eq!(result.map_err(|e| (e.code(), e.to_string())), Err(cancelled()), "{what}");
}

fn cancelled() -> (ErrorCode, String) {
    (ErrorCode::Cancelled, Error::cancelled().to_string())
}

#[test]
fn a_cancelled_call_reads_and_writes_nothing() {
    let content = content(50);
    let folder = tempfile::tempdir().unwrap();
    for (name, write, read) in KINDS {
        let path = folder.path().join(name);
        let control = Control::with_threads(1);
        write(&path, &content, &control).unwrap();
        read(&path, &control).unwrap();
        let before = files(folder.path());
        cancel(&control);
        is_cancelled(read(&path, &control), name);
        is_cancelled(write(&path, &content, &control), name);
        is_cancelled(write(&folder.path().join(format!("new-{name}")), &content, &control), name);
        assert!(files(folder.path()) == before, "{name} left something else");
    }
}

#[test]
fn a_write_that_is_cancelled_midway_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "old").unwrap();
    let before = files(folder.path());
    for last in [false, true] {
        let control = Control::default();
        let mut refused = None;
        let written = write_atomically(&path, &control, |file| -> io::Result<()> {
            file.write_all(&[1; 3 << 20])?;
            cancel(&control);
            if !last {
                refused = file.write_all(b"more").err();
            }
            Ok(())
        });
        is_cancelled(written, "a writer");
        assert_eq!(refused.is_some(), !last);
        assert!(files(folder.path()) == before);
    }
}

/// A pipe that never ends: only a reader that goes away ends it.
#[cfg(unix)]
#[test]
fn text_is_read_no_further() {
    let folder = tempfile::tempdir().unwrap();
    let text = "0,2 1:0.5 3:2\n 2:1\n".repeat(50_000);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for (name, _, read) in KINDS.into_iter().filter(|(name, ..)| name.contains("txt") || name.contains("svm"))
    {
        let path = folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let control = Control::with_threads(2);
        thread::scope(|scope| {
            let reader = scope.spawn(|| read(&path, &control));
            let mut pipe = std::fs::File::create(&path).unwrap();
            let header = if name.contains("txt") { "4000000000 4 3\n" } else { "" };
            let part = if name.ends_with("gz") {
                let mut head = flate2::write::GzEncoder::new(&mut pipe, flate2::Compression::fast());
                head.write_all(header.as_bytes()).unwrap();
                head.finish().unwrap();
                &packed[..]
            } else {
                pipe.write_all(header.as_bytes()).unwrap();
                text.as_bytes()
            };
            // Some windows of text, so that rows were parsed.
            (0..50).for_each(|_| pipe.write_all(part).unwrap());
            cancel(&control);
            let broken = (0..2000).find_map(|_| pipe.write_all(part).err());
            assert_eq!(broken.map(|e| e.kind()), Some(io::ErrorKind::BrokenPipe), "{name} was read on");
            is_cancelled(reader.join().unwrap(), name);
        });
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_that_gives_nothing_holds_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let control = Control::with_threads(1);
    let result = thread::scope(|scope| {
        let reader = scope.spawn(|| read_xmc(&path, &control).map(drop));
        thread::sleep(std::time::Duration::from_millis(50));
        cancel(&control);
        reader.join().unwrap()
    });
    is_cancelled(result, "a reader of nothing");
    // Lets the thread go that opens the pipe.
    drop(std::fs::File::create(&path).unwrap());
}

#[test]
fn a_call_that_is_cancelled_at_any_moment_says_so() {
    let content = content(60_000);
    let folder = tempfile::tempdir().unwrap();
    for (name, write, read) in KINDS {
        let path = folder.path().join(name);
        let control = Control::with_threads(1);
        let start = Instant::now();
        write(&path, &content, &control).unwrap();
        let to_write = start.elapsed();
        read(&path, &control).unwrap();
        let to_read = start.elapsed() - to_write;
        let before = files(folder.path());
        for tenths in [1, 3, 5, 7, 9] {
            let after = |time, work: &(dyn Fn(&Control) -> Result<(), Error> + Sync)| {
                let control = Control::with_threads(1);
                let result = thread::scope(|scope| {
                    let running = scope.spawn(|| work(&control));
                    thread::sleep(time);
                    cancel(&control);
                    running.join().unwrap()
                });
                // It may have ended before.
                assert!(result.is_ok() || result.map_err(|e| (e.code(), e.to_string())) == Err(cancelled()));
                assert!(files(folder.path()) == before, "{name} left something else");
            };
            after(to_write * tenths / 10, &|control| write(&path, &content, control));
            after(to_read * tenths / 10, &|control| read(&path, control));
        }
        std::fs::remove_file(&path).unwrap();
    }
}
