//! The Extreme Classification Repository's text format.
//!
//! The first line holds three counts, `rows features labels`. Each further line is a row: its label ids with commas
//! between, then `feature:value` pairs with spaces between, all ids counted from 0. A row without labels begins with
//! a space; a blank line is a row without labels and features.

use super::grammar::{Grammar, excerpt};
use super::lines::{Dataset, Lines, MARKED, WINDOW, holds_mark, read_rows};
use super::stored::write_by_name;
use super::{Csr, Features, text};
use crate::control::Control;
use crate::error::{Error, ErrorCode, Result, fail};
use std::path::Path;

/// Three counts of 20 digits fit many times.
const LONGEST_HEADER: usize = 4096;

/// Reads a file of the Extreme Classification Repository, plain or gzip.
///
/// Beyond the format itself these are read: a byte-order mark before the text, Windows line ends, blanks at line ends, a missing last line end,
/// unsorted ids, repeated labels (once). Refused are, with file and line: ids that the header does not allow, a
/// feature twice in a row, values that are NaN or pass a 32-bit float, more or fewer rows than the header says, and
/// everything that is not the format. The result does not depend on the number of threads.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("train.txt");
/// std::fs::write(&path, "2 4 3\n0,2 1:0.5 3:2\n 0:1\n").unwrap();
/// let data = aquila::data::read_xmc(&path, &aquila::Control::default())?;
/// assert_eq!(data.x.row(0).indices, [1, 3]);
/// assert_eq!(data.y.row(0).indices, [0, 2]);
/// assert!(data.y.row(1).is_empty());
/// # Ok(())
/// # }
/// ```
pub fn read_xmc(path: impl AsRef<Path>, control: &Control) -> Result<Dataset> {
    let path = path.as_ref().to_path_buf();
    control.run_detached(move |control| read_in_windows(&path, WINDOW, control))
}

fn read_in_windows(path: &Path, window: usize, control: &Control) -> Result<Dataset> {
    let mut lines = Lines::open(path, window, control)?;
    let header = match lines.first(LONGEST_HEADER)? {
        Some(line) => parse_header(&line).map_err(|e| e.at(format_args!("{}, line 1", path.display())))?,
        None => fail!(Parse, "{}: empty, but a header `rows features labels` must begin it", path.display()),
    };
    let [rows, features, labels] = header;
    let grammar = Grammar { features, labels, limits: "the header says", one_based: false, comments: false };
    let parsed = read_rows(lines, &grammar, 1, Some(u64::from(rows)), control)?;
    if parsed.len() < rows as usize {
        fail!(
            Parse,
            "{}, line {}: the file ends after {} rows, but its header says {rows}: was it cut short?",
            path.display(),
            parsed.len() + 1,
            parsed.len()
        );
    }
    parsed.into_dataset(features as usize, labels as usize, control)
}

/// The three counts of a header line.
fn parse_header(line: &[u8]) -> Result<[u32; 3]> {
    let refuse = |reason: String| {
        let line = String::from_utf8_lossy(&line[..line.len().min(60)]).escape_debug().to_string();
        Error::new(ErrorCode::Parse, format!("{reason}: \"{line}\""))
    };
    if holds_mark(line) {
        return Err(refuse(MARKED.to_owned()));
    }
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
    if words.len() != 3 {
        return Err(refuse("the first line must hold three counts, `rows features labels`".to_owned()));
    }
    let mut counts = [0; 3];
    for ((count, word), what) in counts.iter_mut().zip(words).zip(["rows", "features", "labels"]) {
        // Only digits: `parse` alone would take "+5" as well.
        let digits = word.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(word).ok().filter(|_| digits);
        *count = number.and_then(|n| n.parse().ok()).ok_or_else(|| {
            let word = excerpt(word, 0);
            refuse(format!("the number of {what} must be an integer from 0 to {} but is {word}", u32::MAX))
        })?;
    }
    Ok(counts)
}

/// Writes features and labels as a file of the Extreme Classification Repository, gzip where the name ends in `.gz`.
///
/// The file appears whole or not at all. Values are written with the fewest digits that read back as the same
/// number. The format knows no weights of labels, so every value of `y` must be 1.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("train.txt.gz");
/// use aquila::data::{read_xmc, write_xmc};
/// use aquila::{Control, Csr};
///
/// let x = Csr::new(1, 3, vec![0, 2], vec![0, 2], vec![0.5, -1.0])?;
/// let y = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0])?;
/// let control = Control::default();
/// write_xmc(&path, &x.clone().into(), &y, &control)?;
/// assert_eq!(read_xmc(&path, &control)?.x, x);
/// # Ok(())
/// # }
/// ```
pub fn write_xmc(path: impl AsRef<Path>, x: &Features, y: &Csr, control: &Control) -> Result<()> {
    let path = path.as_ref();
    text::check(path, x, y)?;
    write_by_name(path, control, |file| {
        writeln!(file, "{} {} {}", x.rows(), x.cols(), y.cols())?;
        text::write_rows(file, x, y, 0)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::is_gzip_name;
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn windows_of_any_size_give_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let text = "5 30 9\n3,1,1 4:0.5 2:1e-3 29:7\n\n 0:1\r\n8\t5:2  6:3 \n0,8 29:-0.25";
        for name in ["a.txt", "a.txt.gz"] {
            let path = folder.path().join(name);
            if is_gzip_name(&path) {
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                packed.write_all(text.as_bytes()).unwrap();
                std::fs::write(&path, packed.finish().unwrap()).unwrap();
            } else {
                std::fs::write(&path, text).unwrap();
            }
            let whole = read_in_windows(&path, WINDOW, &Control::with_threads(1)).unwrap();
            assert_eq!(whole.x.indptr(), [0, 3, 3, 4, 6, 7]);
            assert_eq!(whole.x.indices(), [2, 4, 29, 0, 5, 6, 29]);
            assert_eq!(whole.x.values(), [1e-3, 0.5, 7.0, 1.0, 2.0, 3.0, -0.25]);
            assert_eq!(whole.y.indptr(), [0, 2, 2, 2, 3, 5]);
            assert_eq!(whole.y.indices(), [1, 3, 8, 0, 8]);
            for window in 1..80 {
                assert_eq!(
                    read_in_windows(&path, window, &Control::with_threads(2)).unwrap(),
                    whole,
                    "windows of {window}"
                );
            }
        }
    }

    #[test]
    fn faults_name_the_same_line_in_windows_of_any_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "4 30 9\n1 4:0.5\n\n2 3:4\n 5:1 5:x\n 99:1\n1\n").unwrap();
        for window in 1..60 {
            let error = read_in_windows(&path, window, &Control::with_threads(2)).unwrap_err();
            assert!(error.message().contains("a.txt, line 5: expected a number"), "{error}");
        }
    }
}
