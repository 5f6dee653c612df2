//! Maps a file into memory.

use memmap2::Mmap;
use std::fs::File;

/// Maps a file to read.
///
/// The mapping shows the file as it is: a process that truncates it while it is mapped makes later reads fail with a
/// signal, and one that writes into it changes what is read. Aquila never writes into a finished file: it
/// replaces files by renaming, which leaves a mapping untouched.
pub(crate) fn map_file(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and everything that reads it takes the bytes as untrusted: any change of
    // them gives other numbers, never an access out of bounds. Truncation from outside cannot be excluded; the page
    // above says so.
    unsafe { Mmap::map(file) }
}
