//! Text rows on many threads, in bounded memory: a window of whole lines is cut into chunks, the chunks are parsed
//! side by side and their rows appended in order, while the next window is read and unpacked.

use super::grammar::{Fault, Grammar, Rows, excerpt};
use super::number::word_end;
use super::watched::BLOCK;
use super::{Csr, Source};
use crate::control::Control;
use crate::error::{Error, Result, fail};
use rayon::prelude::*;
use std::path::Path;

/// Bytes of text held at a time. Two windows are alive: one is parsed while the next is read.
pub(super) const WINDOW: usize = 16 << 20;
/// Smaller chunks cost more in handing out than they gain in balance.
const CHUNK: usize = 256 << 10;
/// No row of a matrix needs a longer line; a file of another kind may never end one.
const LONGEST_LINE: usize = 256 << 20;

/// What some editors put before a text to say that it is UTF-8: a byte-order mark.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a file in windows of whole lines, without the mark that may stand before them.
pub(super) struct Lines {
    source: Source,
    /// The beginning of a line that the last window did not hold to its end.
    rest: Vec<u8>,
    window: usize,
    ended: bool,
}

impl Lines {
    pub fn open(path: &Path, window: usize, control: &Control) -> Result<Self> {
        let (mut source, mut rest) = (Source::open(path, control)?, Vec::new());
        let ended = source.read_up_to(MARK.len(), &mut rest)? < MARK.len();
        if rest == MARK {
            rest.clear();
        }
        Ok(Self { source, rest, window, ended })
    }

    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The first line without its end, `None` in an empty file. To be called before [`Lines::next`].
    pub fn first(&mut self, longest: usize) -> Result<Option<Vec<u8>>> {
        self.ended = self.ended || self.source.read_up_to(longest, &mut self.rest)? < longest;
        if self.rest.is_empty() {
            return Ok(None);
        }
        let end = self.rest.iter().position(|b| *b == b'\n');
        let mut line = match end {
            Some(end) => self.rest.drain(..=end).collect(),
            None if self.ended => std::mem::take(&mut self.rest),
            None => self.rest.clone(),
        };
        while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some(line))
    }

    /// Fills `text` with the next whole lines; leaves it empty at the end of the file.
    fn next(&mut self, text: &mut Vec<u8>) -> Result<()> {
        text.clear();
        std::mem::swap(text, &mut self.rest);
        let mut searched = 0;
        while !self.ended {
            let wanted = if text.len() < self.window { self.window - text.len() } else { self.window };
            self.ended = self.source.read_up_to(wanted, text)? < wanted;
            if self.ended {
                break;
            }
            if let Some(end) = text[searched..].iter().rposition(|b| *b == b'\n') {
                let end = searched + end + 1;
                self.rest.extend_from_slice(&text[end..]);
                text.truncate(end);
                break;
            }
            searched = text.len();
            if searched > LONGEST_LINE {
                let path = self.path().display();
                fail!(Parse, "{path}: a line is longer than {LONGEST_LINE} bytes: is this a text file?");
            }
        }
        Ok(())
    }
}

/// What is said of a mark that stands elsewhere.
pub(super) const MARKED: &str = "a byte-order mark (U+FEFF) may stand at the beginning of a file alone, where files are joined as well: remove it";

/// Whether a byte-order mark is part of a text.
pub(super) fn holds_mark(text: &[u8]) -> bool {
    text.windows(MARK.len()).any(|part| part == MARK)
}

/// A chunk of a window and what it gave.
#[derive(Default)]
struct Chunk {
    rows: Rows,
    lines: u64,
    /// What stopped the parser in the line after `lines`, and the text there.
    fault: Option<(Fault, String)>,
}

impl Chunk {
    fn parse(&mut self, text: &[u8], grammar: &Grammar) {
        self.rows.clear();
        (self.lines, self.fault) = (0, None);
        let mut at = 0;
        while at < text.len() {
            match grammar.line(text, at, &mut self.rows) {
                Ok(next) => at = next,
                Err(mut fault) => {
                    let word = excerpt(text, fault.at);
                    if holds_mark(&text[fault.at.min(text.len())..word_end(text, fault.at).max(fault.at)]) {
                        fault = Fault::parse(fault.at, MARKED);
                    }
                    self.fault = Some((fault, word));
                    return;
                }
            }
            self.lines += 1;
        }
    }
}

/// Parses all remaining lines. `skipped` lines stand before; more than `limit` rows are refused.
pub(super) fn read_rows(
    mut lines: Lines,
    grammar: &Grammar,
    skipped: u64,
    limit: Option<u64>,
    control: &Control,
) -> Result<Rows> {
    let pieces = if control.thread_count() == 1 { 1 } else { control.thread_count().saturating_mul(4) };
    let path = lines.path().to_path_buf();
    control.install(move || {
        let mut all = Rows::default();
        let mut line = skipped;
        let (mut text, mut ahead) = (Vec::new(), Vec::new());
        let mut chunks: Vec<Chunk> = Vec::new();
        lines.next(&mut text)?;
        while !text.is_empty() {
            let parts = split(&text, pieces);
            chunks.resize_with(parts.len().max(chunks.len()), Chunk::default);
            let (_, more) = rayon::join(
                || {
                    parts
                        .par_iter()
                        .zip(chunks.par_iter_mut())
                        .for_each(|(part, chunk)| chunk.parse(part, grammar))
                },
                || lines.next(&mut ahead),
            );
            for chunk in &mut chunks[..parts.len()] {
                if let Some(limit) = limit
                    && (all.len() + chunk.rows.len()) as u64 > limit
                {
                    // The formats with a limit have one row in each line.
                    let at = skipped + limit + 1;
                    let path = path.display();
                    fail!(
                        Parse,
                        "{path}, line {at}: a row more than the {limit} of the header: correct the header or \
                         drop the line (a blank line is a row as well)"
                    );
                }
                all.append(&chunk.rows);
                line += chunk.lines;
                if let Some((fault, word)) = chunk.fault.take() {
                    let message = format!("{}, line {}: {}: {word}", path.display(), line + 1, fault.reason);
                    return Err(Error::new(fault.code, message));
                }
            }
            more?;
            std::mem::swap(&mut text, &mut ahead);
        }
        Ok(all)
    })?
}

/// Cuts text into at most `pieces` parts of whole lines, none much smaller than [`CHUNK`].
fn split(text: &[u8], pieces: usize) -> Vec<&[u8]> {
    let size = text.len().div_ceil(pieces).max(CHUNK);
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > size {
        let Some(end) = rest[size - 1..].iter().position(|b| *b == b'\n') else { break };
        let (part, after) = rest.split_at(size + end);
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Features and labels of the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The features of each row.
    pub x: Csr,
    /// The labels of each row; every stored value is 1.
    pub y: Csr,
}

impl Rows {
    /// The two matrices. The rows were checked against these sizes while they were parsed.
    pub fn into_dataset(mut self, features: usize, labels: usize, control: &Control) -> Result<Dataset> {
        self.features.shrink_to_fit();
        self.values.shrink_to_fit();
        self.labels.shrink_to_fit();
        let rows = self.len();
        let mut ones = Vec::with_capacity(self.labels.len());
        for part in self.labels.chunks(BLOCK) {
            control.check()?;
            ones.resize(ones.len() + part.len(), 1.0);
        }
        let (of_x, of_y) = (pointers(&self.feature_counts, control)?, pointers(&self.label_counts, control)?);
        Ok(Dataset {
            x: Csr::trusted(rows, features, of_x, self.features, self.values),
            y: Csr::trusted(rows, labels, of_y, self.labels, ones),
        })
    }
}

fn pointers(counts: &[u32], control: &Control) -> Result<Vec<usize>> {
    let mut pointers = Vec::with_capacity(counts.len() + 1);
    pointers.push(0);
    let mut end = 0;
    for part in counts.chunks(BLOCK) {
        control.check()?;
        pointers.extend(part.iter().map(|n| {
            end += *n as usize;
            end
        }));
    }
    Ok(pointers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_hold_whole_lines_whatever_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        for text in ["", "\n", "a", "a\n", "one\ntwo\n\nthree four five\n", "one\n\n\nlast", "\n\n"] {
            std::fs::write(&path, text).unwrap();
            for window in 1..20 {
                let mut lines = Lines::open(&path, window, &Control::default()).unwrap();
                let (mut part, mut whole) = (Vec::new(), Vec::new());
                loop {
                    lines.next(&mut part).unwrap();
                    if part.is_empty() {
                        break;
                    }
                    let last = whole.len() + part.len() == text.len();
                    assert!(last || part.ends_with(b"\n"), "{text:?} in windows of {window}");
                    whole.extend_from_slice(&part);
                }
                assert_eq!(whole, text.as_bytes(), "windows of {window}");
            }
        }
    }

    #[test]
    fn chunks_hold_whole_lines() {
        let line = vec![b'x'; CHUNK / 3];
        let text = [&line[..], b"\n"].concat().repeat(20);
        for pieces in [1, 2, 3, 7, 100] {
            let parts = split(&text, pieces);
            assert!(parts.iter().all(|p| p.ends_with(b"\n")));
            assert_eq!(parts.concat(), text);
            assert!(parts.len() <= pieces);
        }
        assert_eq!(split(b"", 3), Vec::<&[u8]>::new());
        assert_eq!(split(&line, 3), vec![&line[..]]);
    }
}
