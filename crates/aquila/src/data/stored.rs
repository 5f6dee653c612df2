//! Array files on their way from and to the disk: as they are, or gzip where the name ends in `.gz`.

use super::source::{Source, is_gzip_name};
use super::write_atomically;
use crate::control::Control;
use crate::error::{Error, Result, fail};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes unpacked between two looks at whether they can be meant.
const PART: usize = 16 << 20;

/// The bytes of an array file, to be read from any place until the call is cancelled.
pub(super) struct Stored {
    bytes: Bytes,
    control: Control,
}

enum Bytes {
    /// A file as it lies on the disk.
    Disk(File),
    /// What a gzip file holds. Arrays say how many bytes they have, and a gzip file does not before its end.
    Unpacked(RefCell<Cursor<Vec<u8>>>),
}

impl Stored {
    /// Opens a file whose length is known: the measure of what its headers may claim.
    pub fn open(path: &Path, control: &Control) -> Result<(Self, u64)> {
        control.check()?;
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let meta = file.metadata().map_err(|e| Error::io(path, e))?;
        if !meta.is_file() {
            fail!(Io, "{}: no regular file: array files are read from disk only", path.display());
        }
        if !is_gzip_name(path) {
            return Ok((Self { bytes: Bytes::Disk(file), control: control.without_progress() }, meta.len()));
        }
        let mut source = Source::open(path, control)?;
        let mut bytes = Vec::new();
        while source.read_up_to(PART, &mut bytes)? == PART {}
        let length = bytes.len() as u64;
        let bytes = Bytes::Unpacked(RefCell::new(Cursor::new(bytes)));
        Ok((Self { bytes, control: control.without_progress() }, length))
    }
}

impl Read for &Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.check().map_err(io::Error::other)?;
        match &self.bytes {
            Bytes::Disk(file) => { file }.read(buffer),
            Bytes::Unpacked(bytes) => bytes.borrow_mut().read(buffer),
        }
    }
}

impl Seek for &Stored {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &self.bytes {
            Bytes::Disk(file) => { file }.seek(to),
            Bytes::Unpacked(bytes) => bytes.borrow_mut().seek(to),
        }
    }
}

/// Writes a file whole or not at all, gzip where its name ends in `.gz`.
pub(super) fn write_by_name(
    path: &Path,
    control: &Control,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    write_atomically(path, control, |file| {
        if is_gzip_name(path) {
            let mut packed = GzEncoder::new(file, Compression::default());
            write(&mut packed)?;
            packed.finish().map(drop)
        } else {
            write(file)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn nothing_is_read_once_the_call_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "a.gz"] {
            let path = folder.path().join(name);
            write_by_name(&path, &Control::default(), |file| file.write_all(b"ab")).unwrap();
            let control = Control::default();
            let (stored, length) = Stored::open(&path, &control).unwrap();
            assert_eq!(length, 2);
            let mut byte = [0];
            (&stored).read_exact(&mut byte).unwrap();
            control.cancel_flag().store(true, Ordering::Relaxed);
            let refused = (&stored).read(&mut byte).unwrap_err();
            assert_eq!(refused.downcast::<Error>().unwrap(), Error::cancelled());
        }
    }
}
