//! The little of zip that `.npz` files need: stored and deflated members, found by the central directory, zip64.
//!
//! Written by hand because it is small, adds no dependency, and lets every claim of the file be checked against its
//! length before it is believed.

use super::array::fill;
use super::stored::Stored;
use crate::error::{Error, ErrorCode, Result, fail};
use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take, Write};

const END: &[u8; 4] = b"PK\x05\x06";
const END64: &[u8; 4] = b"PK\x06\x06";
const LOCATOR64: &[u8; 4] = b"PK\x06\x07";
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
/// A matrix has five or six members; this many names still cost nothing.
const MOST_MEMBERS: u64 = 4096;
/// Deflate packs a byte at best into a 1032nd.
const DEFLATE_RATIO: u64 = 1032;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

/// A zip file and its table of members.
pub(super) struct Zip {
    file: Stored,
    length: u64,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    offset: u64,
}

impl Zip {
    pub fn open(file: Stored, length: u64) -> Result<Self> {
        let mut zip = Self { file, length, entries: Vec::new() };
        let (members, size, offset) = zip.find_directory()?;
        if members > MOST_MEMBERS
            || offset.checked_add(size).is_none_or(|end| end > length)
            || size > 16 << 20
        {
            fail!(
                Parse,
                "the zip directory claims {members} members in {size} bytes at {offset}: broken file"
            );
        }
        let directory = zip.bytes(offset, size as usize)?;
        let mut at = 0;
        for _ in 0..members {
            let (entry, next) = Entry::parse(&directory, at)
                .ok_or_else(|| Error::new(ErrorCode::Parse, "the zip directory is broken"))?;
            if zip.entries.iter().any(|e| e.name == entry.name) {
                fail!(Parse, "two members are called {:?}", entry.name);
            }
            zip.entries.push(entry);
            at = next;
        }
        Ok(zip)
    }

    fn bytes(&self, offset: u64, count: usize) -> Result<Vec<u8>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(|e| Error::new(ErrorCode::Io, e.to_string()))?;
        let mut bytes = vec![0; count];
        fill(&mut file, &mut bytes)?;
        Ok(bytes)
    }

    /// Number of members, bytes and offset of the central directory.
    fn find_directory(&self) -> Result<(u64, u64, u64)> {
        let broken = || Error::new(ErrorCode::Parse, "no zip file (`.npz` is one), or it is cut short");
        // The end record has 22 bytes and a comment of at most 65535.
        let tail_size = self.length.min(22 + 65535) as usize;
        let tail_start = self.length - tail_size as u64;
        let tail = self.bytes(tail_start, tail_size)?;
        let end = tail.windows(4).rposition(|w| w == END).ok_or_else(broken)?;
        let read = || Some((u16_at(&tail, end + 10)?, u32_at(&tail, end + 12)?, u32_at(&tail, end + 16)?));
        let (members, size, offset) = read().ok_or_else(broken)?;
        if u16_at(&tail, end + 20).is_none_or(|comment| end + 22 + usize::from(comment) > tail.len()) {
            return Err(broken());
        }
        let locator = end.checked_sub(20).filter(|at| tail[*at..].starts_with(LOCATOR64));
        let Some(locator) = locator else {
            return Ok((members.into(), size.into(), offset.into()));
        };
        let at = u64_at(&tail, locator + 8).ok_or_else(broken)?;
        if at.checked_add(56).is_none_or(|end| end > self.length) {
            return Err(broken());
        }
        let record = self.bytes(at, 56)?;
        if !record.starts_with(END64) {
            return Err(broken());
        }
        let read = || Some((u64_at(&record, 32)?, u64_at(&record, 40)?, u64_at(&record, 48)?));
        read().ok_or_else(broken)
    }

    /// Reads one member with `read`, which also learns its size. The member's checksum has the first word: what
    /// `read` complains of in broken bytes would mislead.
    pub fn member<T>(&self, name: &str, read: impl FnOnce(&mut Member<'_>, u64) -> Result<T>) -> Result<T> {
        let Some(entry) = self.entries.iter().find(|e| e.name == name) else {
            let names: Vec<&str> = self.entries.iter().take(8).map(|e| e.name.as_str()).collect();
            fail!(
                Parse,
                "no member {name}, only {names:?}: write sparse matrices with `scipy.sparse.save_npz`"
            );
        };
        let work = || {
            let mut member = self.open_member(entry)?;
            let value = read(&mut member, entry.size);
            match (member.verify(entry), value) {
                (Err(e), _) | (Ok(()), Err(e)) => Err(e),
                (Ok(()), Ok(value)) => Ok(value),
            }
        };
        work().map_err(|e: Error| e.at(format_args!("member {name}")))
    }

    fn open_member(&self, entry: &Entry) -> Result<Member<'_>> {
        if entry.flags & 1 != 0 {
            fail!(Unsupported, "the member is encrypted");
        }
        if entry.offset.checked_add(30).is_none_or(|end| end > self.length) {
            fail!(Parse, "the member begins after the end of the file");
        }
        let local = self.bytes(entry.offset, 30)?;
        let (Some(name), Some(extra), true) =
            (u16_at(&local, 26), u16_at(&local, 28), local.starts_with(LOCAL))
        else {
            fail!(Parse, "the member's header is broken");
        };
        let start = entry.offset + 30 + u64::from(name) + u64::from(extra);
        if start.checked_add(entry.packed).is_none_or(|end| end > self.length) {
            fail!(Parse, "the member claims {} bytes but the file ends before", entry.packed);
        }
        let possible = match entry.method {
            0 => entry.size == entry.packed,
            8 => entry.size <= entry.packed.saturating_mul(DEFLATE_RATIO),
            method => fail!(Unsupported, "zip method {method}: only stored and deflated members are read"),
        };
        if !possible {
            fail!(Parse, "{} bytes cannot unpack to the {} claimed", entry.packed, entry.size);
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start)).map_err(|e| Error::new(ErrorCode::Io, e.to_string()))?;
        let packed = BufReader::with_capacity(64 << 10, file.take(entry.packed));
        let bytes = if entry.method == 0 {
            Bytes::Stored(packed)
        } else {
            Bytes::Deflated(Box::new(DeflateDecoder::new(packed)))
        };
        Ok(Member { bytes, crc: crc32fast::Hasher::new(), given: 0, size: entry.size })
    }
}

impl Entry {
    /// The directory entry at `at` and where the next begins.
    fn parse(directory: &[u8], at: usize) -> Option<(Self, usize)> {
        let entry = directory.get(at..)?;
        if !entry.starts_with(ENTRY) {
            return None;
        }
        let [name, extra, comment] =
            [u16_at(entry, 28)?, u16_at(entry, 30)?, u16_at(entry, 32)?].map(usize::from);
        let mut wide = [u32_at(entry, 24)?, u32_at(entry, 20)?, u32_at(entry, 42)?].map(u64::from);
        widen(&mut wide, entry.get(46 + name..46 + name + extra)?)?;
        let [size, packed, offset] = wide;
        let parsed = Self {
            name: String::from_utf8_lossy(entry.get(46..46 + name)?).into_owned(),
            flags: u16_at(entry, 8)?,
            method: u16_at(entry, 10)?,
            crc: u32_at(entry, 16)?,
            packed,
            size,
            offset,
        };
        Some((parsed, at + 46 + name + extra + comment))
    }
}

/// Replaces those of the three 32-bit numbers that are full by the 64-bit ones of the extra field, in their order.
fn widen(numbers: &mut [u64; 3], mut extra: &[u8]) -> Option<()> {
    while numbers.contains(&0xffff_ffff) && extra.len() >= 4 {
        let (id, size) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        if id == 1 {
            let mut at = 4;
            for number in numbers.iter_mut().filter(|n| **n == 0xffff_ffff) {
                *number = u64_at(extra.get(..4 + size)?, at)?;
                at += 8;
            }
            return Some(());
        }
        extra = extra.get(4 + size..)?;
    }
    Some(())
}

/// The unpacked bytes of a member.
pub(super) struct Member<'a> {
    bytes: Bytes<'a>,
    crc: crc32fast::Hasher,
    given: u64,
    size: u64,
}

enum Bytes<'a> {
    Stored(BufReader<Take<&'a Stored>>),
    Deflated(Box<DeflateDecoder<BufReader<Take<&'a Stored>>>>),
}

impl Read for Member<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.bytes {
            Bytes::Stored(reader) => reader.read(buffer)?,
            Bytes::Deflated(reader) => reader.read(buffer)?,
        };
        self.given += n as u64;
        self.crc.update(&buffer[..n]);
        Ok(n)
    }
}

impl Member<'_> {
    /// Reads on to the end and compares length and checksum.
    fn verify(mut self, entry: &Entry) -> Result<()> {
        let mut block = vec![0; 64 << 10];
        while self.given <= self.size {
            match self.read(&mut block) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.raw_os_error().is_some() => fail!(Io, "{e}"),
                Err(e) => fail!(Parse, "broken or cut short: {e}"),
            }
        }
        if self.given != entry.size {
            let more = if self.given > entry.size { "more" } else { "fewer" };
            fail!(Parse, "the member unpacks to {more} bytes than the {} claimed", entry.size);
        }
        let found = self.crc.finalize();
        if found != entry.crc {
            fail!(
                Checksum,
                "the bytes have checksum {found:08x} but {:08x} is noted: copy the file again",
                entry.crc
            );
        }
        Ok(())
    }
}

/// Writes a zip file member by member. All members carry zip64 sizes, as NumPy's do, so that size is no special case;
/// all are dated 1980, so that equal content gives equal bytes.
pub(super) struct ZipWriter<'a, W> {
    file: &'a mut W,
    compressed: bool,
    directory: Vec<u8>,
    members: u64,
}

impl<'a, W: Write + Seek> ZipWriter<'a, W> {
    pub fn new(file: &'a mut W, compressed: bool) -> Self {
        Self { file, compressed, directory: Vec::new(), members: 0 }
    }

    /// Adds a member whose content `write` gives.
    pub fn member(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let offset = self.file.stream_position()?;
        let method = if self.compressed { 8 } else { 0 };
        self.file.write_all(&local_header(name, method, 0, 0, 0))?;
        let start = self.file.stream_position()?;
        let (crc, size) = if self.compressed {
            let mut sum = Summed::new(DeflateEncoder::new(&mut *self.file, Compression::default()));
            write(&mut sum)?;
            let (crc, size, inner) = sum.end();
            inner.finish()?;
            (crc, size)
        } else {
            let mut sum = Summed::new(&mut *self.file);
            write(&mut sum)?;
            let (crc, size, _) = sum.end();
            (crc, size)
        };
        let end = self.file.stream_position()?;
        let packed = end - start;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&local_header(name, method, crc, size, packed))?;
        self.file.seek(SeekFrom::Start(end))?;

        let d = &mut self.directory;
        d.extend_from_slice(ENTRY);
        // Made by Unix with version 4.5, that of zip64.
        d.extend_from_slice(&[45, 3]);
        d.extend_from_slice(&common_fields(method, crc, name, 28));
        // Comment, disk, internal attributes; external attributes: a regular file that its owner may write.
        d.extend_from_slice(&[0; 6]);
        d.extend_from_slice(&(0o100_644u32 << 16).to_le_bytes());
        d.extend_from_slice(&[0xff; 4]);
        d.extend_from_slice(name.as_bytes());
        d.extend_from_slice(&[1, 0, 24, 0]);
        for number in [size, packed, offset] {
            d.extend_from_slice(&number.to_le_bytes());
        }
        self.members += 1;
        Ok(())
    }

    /// Writes the directory.
    pub fn finish(self) -> io::Result<()> {
        let offset = self.file.stream_position()?;
        let size = self.directory.len() as u64;
        let mut end = self.directory;
        end.extend_from_slice(END64);
        end.extend_from_slice(&44u64.to_le_bytes());
        end.extend_from_slice(&[45, 3, 45, 0]);
        end.extend_from_slice(&[0; 8]);
        for number in [self.members, self.members, size, offset] {
            end.extend_from_slice(&number.to_le_bytes());
        }
        end.extend_from_slice(LOCATOR64);
        end.extend_from_slice(&[0; 4]);
        end.extend_from_slice(&(offset + size).to_le_bytes());
        end.extend_from_slice(&1u32.to_le_bytes());
        end.extend_from_slice(END);
        end.extend_from_slice(&[0; 4]);
        end.extend_from_slice(&[0xff; 12]);
        end.extend_from_slice(&[0; 2]);
        self.file.write_all(&end)
    }
}

/// What local header and directory entry share, from the version needed to the length of the extra field.
fn common_fields(method: u16, crc: u32, name: &str, extra: u16) -> Vec<u8> {
    let mut out = vec![45, 0, 0, 0];
    out.extend_from_slice(&method.to_le_bytes());
    // Midnight of 1 January 1980.
    out.extend_from_slice(&[0, 0, 0x21, 0]);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&[0xff; 8]);
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(&extra.to_le_bytes());
    out
}

fn local_header(name: &str, method: u16, crc: u32, size: u64, packed: u64) -> Vec<u8> {
    let mut out = LOCAL.to_vec();
    out.extend_from_slice(&common_fields(method, crc, name, 20));
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&[1, 0, 16, 0]);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&packed.to_le_bytes());
    out
}

/// Counts and sums what passes through.
struct Summed<W> {
    inner: W,
    crc: crc32fast::Hasher,
    size: u64,
}

impl<W> Summed<W> {
    fn new(inner: W) -> Self {
        Self { inner, crc: crc32fast::Hasher::new(), size: 0 }
    }

    fn end(self) -> (u32, u64, W) {
        (self.crc.finalize(), self.size, self.inner)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.crc.update(&bytes[..n]);
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
