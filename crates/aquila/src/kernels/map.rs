//! Memory-maps a file.

use memmap2::Mmap;
use std::fs::File;

/// Maps a file for reading.
///
/// The mapping reflects the current content of the file: if a process truncates the file while it is mapped, later
/// reads fail with a signal; if a process writes to it, the data read changes. Aquila never writes to a finished file:
/// it replaces files by renaming, which does not affect a mapping.
pub(crate) fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only, and all code that reads it treats the bytes as untrusted: a change of them
    // leads to other numbers, never to an access out of bounds. Truncation by another process cannot be excluded, as
    // documented above.
    unsafe { Mmap::map(file) }
}
