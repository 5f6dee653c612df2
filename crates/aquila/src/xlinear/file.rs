//! The model file: one image of bytes, the same in memory and on disk.
//!
//! | bytes | what |
//! |---|---|
//! | 0–7 | `AQUILAXM` |
//! | 8–11 | format version, u32 |
//! | 12–15 | bytes of the header, the table of sections included, u32 |
//! | 16–19 | number of sections, u32 |
//! | 20–23 | CRC-32 of the header with these four bytes 0 |
//! | 24–31 | bytes of the file, u64 |
//! | 32–63 | 0 |
//! | 64… | the table: for each section its kind u32, layer u32, place u64, length u64, CRC-32 u32, 0 u32 |
//!
//! Sections begin at multiples of 64; everything is little-endian. Opening reads the header and the description
//! ([`Kind::Description`]) and compares their checksums; it takes the same time whatever the size. The other sections' checksums
//! are compared by [`verify`] alone. What they hold is therefore never believed: a damaged one gives wrong
//! scores at worst.
//!
//! Limits: 2⁶⁴ bytes; a file is mapped as a whole, so 32-bit systems end near 2 GiB.

use crate::control::Control;
use crate::error::{Error, ErrorCode, Result, fail};
use memmap2::Mmap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::{Deref, Range};
use std::path::Path;

/// The version that this build writes, and the only one that it reads.
pub(crate) const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"AQUILAXM";
const FIXED: usize = 64;
const ENTRY: usize = 32;
const ALIGN: usize = 64;
/// Bytes summed between two looks at whether the call is cancelled, that come from the disk first.
const BLOCK: usize = 1 << 20;

/// The kinds of sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// JSON: all numbers, parameters and the shape.
    Description = 1,
    /// The weight area.
    Weights = 2,
    /// Each bucket's place in the weight area: u32 or u64.
    Directory = 3,
    /// Of a layer: each parent's first column, u32, and the number of columns.
    Starts = 4,
    /// Of a layer with more chunks than parents: each parent's first chunk, u32, and the number of chunks.
    Chunks = 5,
    /// Of a layer: each column's bias, f32.
    Bias = 6,
    /// Of a layer with slots: each column's label, u32, or `u32::MAX` for nodes.
    Labels = 7,
    /// Of a layer with slots and nodes: the number of nodes before each column, u32.
    Nodes = 8,
    /// Where each label's name begins in the names, u64, and their length.
    NameStarts = 9,
    /// All label names, UTF-8.
    Names = 10,
    /// The user's metadata, UTF-8.
    Metadata = 11,
    /// Of a layer, where features have a dense block: each column's dense weights, as `DenseCodes` has them.
    Panel = 12,
    /// Of a layer with byte panels: what each column's dense weights are multiplied with, f32.
    Scales = 13,
    /// Where each feature's name begins in their names, u64, and their length.
    FeatureNameStarts = 14,
    /// All feature names, UTF-8.
    FeatureNames = 15,
}

/// The bytes of a model: held or mapped.
#[derive(Debug)]
pub(crate) enum Bytes {
    Held(Vec<u8>),
    Mapped(Mmap),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Held(v) => v,
            Self::Mapped(m) => m,
        }
    }
}

/// An entry of the table of sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    kind: u32,
    layer: u32,
    span: Range<usize>,
    crc: u32,
}

/// The table of sections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sections(Vec<Section>);

impl Sections {
    /// The bytes of a section, or an error that names it.
    pub fn need(&self, kind: Kind, layer: usize) -> Result<Range<usize>> {
        match self.find(kind, layer) {
            Some(span) => Ok(span),
            None => fail!(BadModel, "the model has no section {kind:?} of layer {layer}: the file is broken"),
        }
    }

    /// The bytes of a section, where there is one.
    pub fn find(&self, kind: Kind, layer: usize) -> Option<Range<usize>> {
        self.0.iter().find(|s| s.kind == kind as u32 && s.layer as usize == layer).map(|s| s.span.clone())
    }
}

/// Writes an image, section after section.
pub(crate) struct Writer {
    image: Vec<u8>,
    sections: Vec<Section>,
    room: usize,
}

impl Writer {
    /// An image with room for that many sections.
    pub fn new(sections: usize) -> Self {
        Self { image: vec![0; FIXED + ENTRY * sections], sections: Vec::new(), room: sections }
    }

    /// Appends a section whose bytes `write` appends to the image.
    pub fn section<T>(
        &mut self,
        kind: Kind,
        layer: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<T>,
    ) -> Result<T> {
        debug_assert!(self.sections.len() < self.room);
        let begin = self.image.len().next_multiple_of(ALIGN);
        self.image.resize(begin, 0);
        let made = write(&mut self.image)?;
        let crc = crc32fast::hash(&self.image[begin..]);
        let span = begin..self.image.len();
        self.sections.push(Section { kind: kind as u32, layer: layer as u32, span, crc });
        Ok(made)
    }

    /// Fills in the header and returns the image.
    pub fn finish(mut self) -> Vec<u8> {
        let header = FIXED + ENTRY * self.sections.len();
        let length = self.image.len() as u64;
        let image = &mut self.image;
        image[..8].copy_from_slice(MAGIC);
        image[8..12].copy_from_slice(&VERSION.to_le_bytes());
        image[12..16].copy_from_slice(&(header as u32).to_le_bytes());
        image[16..20].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        image[24..32].copy_from_slice(&length.to_le_bytes());
        for (s, entry) in self.sections.iter().zip(image[FIXED..].chunks_exact_mut(ENTRY)) {
            entry[..4].copy_from_slice(&s.kind.to_le_bytes());
            entry[4..8].copy_from_slice(&s.layer.to_le_bytes());
            entry[8..16].copy_from_slice(&(s.span.start as u64).to_le_bytes());
            entry[16..24].copy_from_slice(&(s.span.len() as u64).to_le_bytes());
            entry[24..28].copy_from_slice(&s.crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&image[..header]);
        image[20..24].copy_from_slice(&crc.to_le_bytes());
        self.image.shrink_to_fit();
        self.image
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Checks the header and reads the table of sections.
pub(crate) fn read_sections(bytes: &[u8]) -> Result<Sections> {
    let n = bytes.len();
    if n < MAGIC.len() || &bytes[..8] != MAGIC {
        fail!(BadModel, "this is no Aquila model: it does not begin with {}", String::from_utf8_lossy(MAGIC));
    }
    if n < FIXED {
        fail!(BadModel, "the model is cut short: it has {n} bytes, its header alone {FIXED}");
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        fail!(
            ModelVersion,
            "the model has format version {version} but this build reads version {VERSION}: train it again or use \
             the build that wrote it"
        );
    }
    let (header, count) = (u32_at(bytes, 12) as usize, u32_at(bytes, 16) as usize);
    if header > n {
        fail!(BadModel, "the model is cut short: it has {n} bytes, its header alone {header}");
    }
    let mut own = bytes[..header.max(FIXED)].to_vec();
    own[20..24].fill(0);
    if crc32fast::hash(&own) != u32_at(bytes, 20) || header != FIXED + ENTRY.saturating_mul(count) {
        fail!(Checksum, "the model's header differs from its checksum: the file is damaged");
    }
    let length = u64_at(bytes, 24);
    if length != n as u64 {
        fail!(BadModel, "the model has {n} bytes but should have {length}: it is cut short or has a tail");
    }
    let mut sections = Vec::with_capacity(count);
    for entry in bytes[FIXED..header].chunks_exact(ENTRY) {
        let (begin, len) = (u64_at(entry, 8), u64_at(entry, 16));
        let end = begin.checked_add(len).filter(|end| *end <= length && begin as usize >= header);
        let Some(end) = end else {
            fail!(BadModel, "a section of the model lies outside the file: from {begin}, {len} bytes");
        };
        sections.push(Section {
            kind: u32_at(entry, 0),
            layer: u32_at(entry, 4),
            span: begin as usize..end as usize,
            crc: u32_at(entry, 24),
        });
    }
    let sections = Sections(sections);
    let description = sections.need(Kind::Description, 0)?;
    verify_some(bytes, &sections, &Control::default(), |s| s.span == description)?;
    Ok(sections)
}

/// Compares every section with its checksum.
pub(crate) fn verify(bytes: &[u8], sections: &Sections, control: &Control) -> Result<()> {
    read_sections(bytes)?;
    verify_some(bytes, sections, control, |_| true)
}

fn verify_some(
    bytes: &[u8],
    sections: &Sections,
    control: &Control,
    which: impl Fn(&Section) -> bool,
) -> Result<()> {
    for s in sections.0.iter().filter(|s| which(s)) {
        let mut sum = crc32fast::Hasher::new();
        for block in bytes[s.span.clone()].chunks(BLOCK) {
            control.check()?;
            sum.update(block);
        }
        if sum.finalize() != s.crc {
            fail!(
                Checksum,
                "section {} of layer {}, bytes {} to {}, differs from its checksum: the file is damaged",
                s.kind,
                s.layer,
                s.span.start,
                s.span.end
            );
        }
    }
    Ok(())
}

/// Opens a file, and tells its length. What is none is refused before it is opened: opening a pipe waits for a writer.
fn open(path: &Path) -> Result<(File, u64)> {
    let io = |e| Error::io(path, e);
    if !fs::metadata(path).map_err(io)?.is_file() {
        fail!(BadModel, "{}: this is no file", path.display());
    }
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        fail!(BadModel, "{}: the file is empty", path.display());
    }
    Ok((file, length))
}

/// Maps a file.
pub(crate) fn map(path: &Path) -> Result<Bytes> {
    let (file, _) = open(path)?;
    Ok(Bytes::Mapped(crate::kernels::map_file(&file).map_err(|e| Error::io(path, e))?))
}

/// Reads a file, block by block.
pub(crate) fn read(path: &Path, control: &Control) -> Result<Bytes> {
    let (mut file, length) = open(path)?;
    let mut bytes = Vec::new();
    let room = usize::try_from(length).ok().and_then(|n| bytes.try_reserve_exact(n).ok());
    if room.is_none() {
        fail!(Io, "{}: there is no memory for its {length} bytes: open it mapped", path.display());
    }
    // No more than there was room for, should the file grow meanwhile.
    while (bytes.len() as u64) < length {
        control.check()?;
        let block = (BLOCK as u64).min(length - bytes.len() as u64);
        let read = file.by_ref().take(block).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        if read == 0 {
            break;
        }
    }
    Ok(Bytes::Held(bytes))
}

/// An error that tells the file's name.
pub(crate) fn named(path: &Path) -> impl Fn(Error) -> Error {
    move |e| if e.code() == ErrorCode::Io { e } else { e.at(path.display()) }
}
