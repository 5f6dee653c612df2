//! Bytes go out until the call is cancelled.

use crate::control::Control;
use std::io::{self, Seek, SeekFrom, Write};

/// Bytes that pass between two looks at whether the call is cancelled: a millisecond's.
pub(super) const BLOCK: usize = 1 << 20;

/// A writer that refuses every byte once the call is cancelled, with the engine's error inside the system's.
#[derive(Debug)]
pub struct Watched<'a, W> {
    inner: W,
    control: &'a Control,
}

impl<'a, W> Watched<'a, W> {
    pub(super) fn new(inner: W, control: &'a Control) -> Self {
        Self { inner, control }
    }

    pub(super) fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Watched<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.control.check().map_err(io::Error::other)?;
        self.inner.write(&bytes[..bytes.len().min(BLOCK)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.control.check().map_err(io::Error::other)?;
        self.inner.flush()
    }
}

impl<W: Seek> Seek for Watched<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
