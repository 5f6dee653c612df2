//! Opening a file by name, plain or gzip.
//!
//! Text is read in order through a small buffer and never mapped: a mapped file that another process cuts short
//! ends this process with SIGBUS, a read one ends in a coded error, and pipes work as well.

use super::watched::BLOCK;
use crate::control::Control;
use crate::error::{Error, ErrorCode, Result, fail};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Unpacked bytes that are never suspected, whatever the ratio.
const BOMB_FLOOR: u64 = 64 << 20;
/// Unpacked bytes for each packed byte beyond the floor. Matrices as text pack 3 to 10 times; deflate's own limit
/// is about 1030 times.
const BOMB_RATIO: u64 = 100;
const BUFFER: usize = 128 << 10;

/// The bytes of a file in order; gzip is unpacked on the way.
///
/// A file counts as gzip when its name ends in `.gz` or it begins with gzip's magic bytes. A file of several gzip
/// members, as `cat a.gz b.gz` makes, is their concatenation.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.txt");
/// # std::fs::write(&path, "one\ntwo\n").unwrap();
/// use aquila::{Control, data::Source};
///
/// let mut text = Vec::new();
/// Source::open(&path, &Control::default())?.read_up_to(1 << 20, &mut text)?;
/// assert_eq!(text, b"one\ntwo\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    bytes: Bytes,
    given: u64,
    control: Control,
}

#[derive(Debug)]
enum Bytes {
    Plain(BufReader<Counted>),
    Gzip(Box<MultiGzDecoder<BufReader<Counted>>>),
}

/// A file that knows how many bytes were taken from it.
#[derive(Debug)]
struct Counted {
    file: File,
    taken: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.taken += n as u64;
        Ok(n)
    }
}

/// Whether a file's name says gzip.
pub(super) fn is_gzip_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

impl Source {
    /// Opens a file, a pipe included. Once the call is cancelled, no more is read of it.
    pub fn open(path: impl AsRef<Path>, control: &Control) -> Result<Self> {
        control.check()?;
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|e| Error::io(&path, e))?;
        let mut plain = BufReader::with_capacity(BUFFER, Counted { file, taken: 0 });
        let head = plain.fill_buf().map_err(|e| Error::io(&path, e))?;
        let bytes = if is_gzip_name(&path) || head.starts_with(&[0x1f, 0x8b, 8]) {
            if head.is_empty() {
                fail!(Parse, "{}: empty, but its name says gzip: was it written to the end?", path.display());
            }
            Bytes::Gzip(Box::new(MultiGzDecoder::new(plain)))
        } else {
            Bytes::Plain(plain)
        };
        Ok(Self { path, bytes, given: 0, control: control.without_progress() })
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is gzip.
    pub fn is_gzip(&self) -> bool {
        matches!(self.bytes, Bytes::Gzip(_))
    }

    /// Appends the next `limit` bytes to `out`; fewer only at the end of the file. Returns their number.
    pub fn read_up_to(&mut self, limit: usize, out: &mut Vec<u8>) -> Result<usize> {
        let mut rest = limit;
        while rest > 0 {
            self.control.check()?;
            let wanted = rest.min(BLOCK);
            let n = self.read_block(wanted, out)?;
            rest -= n;
            if n < wanted {
                break;
            }
        }
        Ok(limit - rest)
    }

    fn read_block(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<usize> {
        let wanted = wanted as u64;
        let read = match &mut self.bytes {
            Bytes::Plain(reader) => reader.take(wanted).read_to_end(out),
            Bytes::Gzip(reader) => reader.take(wanted).read_to_end(out),
        };
        let n = read.map_err(|e| self.error(e))?;
        self.given += n as u64;
        if let Bytes::Gzip(reader) = &self.bytes {
            let packed = reader.get_ref().get_ref().taken;
            if self.given > BOMB_FLOOR + BOMB_RATIO * packed {
                fail!(
                    Parse,
                    "{}: {packed} bytes of gzip grew to more than {} bytes, which no matrix does: \
                     unpack the file first if that is meant",
                    self.path.display(),
                    self.given
                );
            }
        }
        Ok(n)
    }

    fn error(&self, error: io::Error) -> Error {
        // What the operating system refused carries its number; everything else is the unpacker's complaint.
        if !self.is_gzip() || error.raw_os_error().is_some() {
            return Error::io(&self.path, error);
        }
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the gzip stream is cut short".to_owned(),
            _ => format!("broken gzip: {error}"),
        };
        let message = format!("{}: {what} after {} unpacked bytes", self.path.display(), self.given);
        Error::new(ErrorCode::Parse, message)
    }
}
