//! How fast text is parsed. Run with
//! `cargo test --release -p aquila --test io_speed -- --ignored --nocapture`.

use aquila::Control;
use aquila::data::read_xmc;
use std::fmt::Write as _;
use std::time::Instant;

/// Rows with about 60 features of 6 digits, as TF-IDF files have them.
fn tfidf_text(rows: usize) -> String {
    let mut state = 1u64;
    let mut next = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut text = format!("{rows} 200000 4000\n");
    for _ in 0..rows {
        let labels: Vec<String> = (0..1 + next(8)).map(|_| next(4000).to_string()).collect();
        text.push_str(&labels.join(","));
        let mut feature = 0;
        for _ in 0..60 {
            feature += 1 + next(3000);
            write!(text, " {feature}:0.{:06}", next(1_000_000)).unwrap();
        }
        text.push('\n');
    }
    text
}

/// Rows whose features are only present or absent.
fn binary_text(rows: usize) -> String {
    let mut text = format!("{rows} 2000 100\n");
    for row in 0..rows {
        write!(text, "{},{}", row % 50, 50 + row % 50).unwrap();
        for feature in 0..60 {
            write!(text, " {}:1", feature * 31 + row % 7).unwrap();
        }
        text.push('\n');
    }
    text
}

fn best_of<T>(times: usize, mut work: impl FnMut() -> T) -> f64 {
    (0..times)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement, to be run in release"]
fn megabytes_per_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    for (name, text) in [("tf-idf", tfidf_text(150_000)), ("binary", binary_text(250_000))] {
        std::fs::write(&path, &text).unwrap();
        let megabytes = text.len() as f64 / 1e6;
        for threads in [1, 2] {
            let seconds = best_of(5, || read_xmc(&path, &Control::with_threads(threads)).unwrap());
            println!("{name}, {megabytes:.0} MB, {threads} threads: {:.0} MB/s", megabytes / seconds);
            if threads == 1 && !cfg!(debug_assertions) {
                assert!(megabytes / seconds >= 300.0, "slower than 300 MB/s on one core");
            }
        }
    }
}
