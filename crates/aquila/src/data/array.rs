//! NumPy's array format: the header, and elements read as the numbers we keep.

use crate::error::{Error, ErrorCode, Result, fail};
use crate::kernels::prefer_large;
use std::io::{self, Read, Write};

/// NumPy itself writes some hundred bytes and refuses more than 10,000.
const LONGEST_HEADER: u32 = 64 << 10;
/// Bytes converted at a time; a multiple of every element size.
const BLOCK: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    /// Bytes or UCS-4 text: only the word in a matrix's member `format`.
    Word,
}

/// What an array file says about itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Bytes of an element.
    pub size: usize,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<u64>,
    /// Elements in all.
    pub count: usize,
}

impl Header {
    /// Reads a header from the first of `available` bytes. The elements must fill the rest exactly, so a count is
    /// worth the bytes behind it before anything is reserved for it.
    pub fn read(input: &mut impl Read, available: u64) -> Result<Self> {
        let mut start = [0; 8];
        fill(input, &mut start)?;
        if !start.starts_with(b"\x93NUMPY") {
            fail!(Parse, "no NumPy array: the magic bytes are missing");
        }
        let (length, before) = match start[6] {
            1 => {
                let mut bytes = [0; 2];
                fill(input, &mut bytes)?;
                (u32::from(u16::from_le_bytes(bytes)), 10)
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                fill(input, &mut bytes)?;
                (u32::from_le_bytes(bytes), 12)
            }
            version => fail!(Unsupported, "version {version} of NumPy's format: versions 1 to 3 are read"),
        };
        if length > LONGEST_HEADER || u64::from(length) + before > available {
            fail!(Parse, "the array header claims {length} bytes: the file is broken or cut short");
        }
        let mut text = vec![0; length as usize];
        fill(input, &mut text)?;
        let header = Self::parse(&text)?;
        let held = available - before - u64::from(length);
        let claimed = header.count as u64 * header.size as u64;
        if claimed != held {
            fail!(
                Parse,
                "shape {:?} of {}-byte elements needs {claimed} bytes but {held} follow the header: {}",
                header.shape,
                header.size,
                if held < claimed { "the array is cut short" } else { "other data trails the array" }
            );
        }
        Ok(header)
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &[u8]) -> Result<Self> {
        let mut literal = Literal { text, at: 0 };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        literal.expect(b'{')?;
        while !literal.take(b'}') {
            let key = literal.string()?;
            literal.expect(b':')?;
            let twice = match key.as_str() {
                "descr" => {
                    if literal.peek() == Some(b'[') {
                        fail!(Unsupported, "a structured array: save each field as an array of its own");
                    }
                    descr.replace(literal.string()?).is_some()
                }
                "fortran_order" => fortran.replace(literal.boolean()?).is_some(),
                "shape" => shape.replace(literal.shape()?).is_some(),
                _ => return Err(literal.broken("a key other than descr, fortran_order and shape")),
            };
            if twice {
                return Err(literal.broken("a key twice"));
            }
            if !literal.take(b',') {
                literal.expect(b'}')?;
                break;
            }
        }
        if literal.peek().is_some() {
            return Err(literal.broken("text after the header's end"));
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
            return Err(literal.broken("no descr, fortran_order or shape"));
        };
        let (kind, size, big_endian) = parse_descr(&descr)?;
        let count = shape.iter().try_fold(1u64, |n, side| n.checked_mul(*side));
        // A zero side must not hide the absurd ones beside it.
        let bytes = shape.iter().try_fold(size as u64, |n, side| n.checked_mul((*side).max(1)));
        match (count.map(usize::try_from), bytes) {
            (Some(Ok(count)), Some(_)) => Ok(Self { kind, size, big_endian, fortran, shape, count }),
            _ => fail!(Parse, "shape {shape:?} is larger than any memory"),
        }
    }

    /// The elements as f32, rounded to the nearest; `NotFinite` names an element's place in the file.
    pub fn floats(&self, input: &mut impl Read) -> Result<Vec<f32>> {
        let mut out = reserve(self.count)?;
        let big = self.big_endian;
        self.blocks(input, |block| {
            let first = out.len();
            match (self.kind, self.size) {
                (Kind::Bool, 1) => out.extend(block.iter().map(|b| f32::from(u8::from(*b != 0)))),
                (Kind::Int, 1) => out.extend(block.iter().map(|b| f32::from(b.cast_signed()))),
                (Kind::Uint, 1) => out.extend(block.iter().map(|b| f32::from(*b))),
                (Kind::Int, 2) => out.extend(each(block, big).map(|b| f32::from(i16::from_le_bytes(b)))),
                (Kind::Uint, 2) => out.extend(each(block, big).map(|b| f32::from(u16::from_le_bytes(b)))),
                (Kind::Int, 4) => out.extend(each(block, big).map(|b| i32::from_le_bytes(b) as f32)),
                (Kind::Uint, 4) => out.extend(each(block, big).map(|b| u32::from_le_bytes(b) as f32)),
                (Kind::Int, 8) => out.extend(each(block, big).map(|b| i64::from_le_bytes(b) as f32)),
                (Kind::Uint, 8) => out.extend(each(block, big).map(|b| u64::from_le_bytes(b) as f32)),
                (Kind::Float, 2) => out.extend(each(block, big).map(|b| half(u16::from_le_bytes(b)))),
                (Kind::Float, 4) => out.extend(each(block, big).map(f32::from_le_bytes)),
                (Kind::Float, 8) => out.extend(each(block, big).map(|b| f64::from_le_bytes(b) as f32)),
                _ => fail!(Parse, "an array of words where numbers belong"),
            }
            if let Some(i) = out[first..].iter().position(|v| !v.is_finite()) {
                fail!(
                    NotFinite,
                    "element {} is {} as a 32-bit float: replace or drop it",
                    first + i,
                    out[first + i]
                );
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Hands on every element of an integer array; what passes an i64 saturates.
    pub fn integers(&self, input: &mut impl Read, mut take: impl FnMut(i64) -> Result<()>) -> Result<()> {
        let big = self.big_endian;
        self.blocks(input, |block| match (self.kind, self.size) {
            (Kind::Int, 1) => block.iter().try_for_each(|b| take(i64::from(b.cast_signed()))),
            (Kind::Uint, 1) => block.iter().try_for_each(|b| take(i64::from(*b))),
            (Kind::Int, 2) => each(block, big).try_for_each(|b| take(i64::from(i16::from_le_bytes(b)))),
            (Kind::Uint, 2) => each(block, big).try_for_each(|b| take(i64::from(u16::from_le_bytes(b)))),
            (Kind::Int, 4) => each(block, big).try_for_each(|b| take(i64::from(i32::from_le_bytes(b)))),
            (Kind::Uint, 4) => each(block, big).try_for_each(|b| take(i64::from(u32::from_le_bytes(b)))),
            (Kind::Int, 8) => each(block, big).try_for_each(|b| take(i64::from_le_bytes(b))),
            (Kind::Uint, 8) => each(block, big)
                .try_for_each(|b| take(i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX))),
            _ => fail!(Parse, "the array holds no integers"),
        })
    }

    fn blocks(&self, input: &mut impl Read, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut rest = self.count * self.size;
        let mut block = vec![0; rest.min(BLOCK)];
        while rest > 0 {
            let n = rest.min(BLOCK);
            fill(input, &mut block[..n])?;
            take(&block[..n])?;
            rest -= n;
        }
        Ok(())
    }
}

/// The elements of a block, least significant byte first.
fn each<const N: usize>(block: &[u8], big_endian: bool) -> impl Iterator<Item = [u8; N]> + '_ {
    block.as_chunks::<N>().0.iter().map(move |bytes| {
        let mut bytes = *bytes;
        if big_endian {
            bytes.reverse();
        }
        bytes
    })
}

/// A 16-bit float: 1 sign, 5 exponent and 10 mantissa bits.
fn half(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    let size = match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Room for elements that the file is known to hold; a machine too small for them is an error, not an abort.
pub(super) fn reserve<T>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| {
        let message = format!("no memory for {count} elements of {} bytes", size_of::<T>());
        Error::new(ErrorCode::MemoryLimit, message)
    })?;
    // Training reads rows in random order.
    prefer_large(out.spare_capacity_mut());
    Ok(out)
}

/// Reads exactly as many bytes as asked.
pub(super) fn fill(input: &mut impl Read, bytes: &mut [u8]) -> Result<()> {
    input.read_exact(bytes).map_err(|e| match e.raw_os_error() {
        Some(_) => Error::new(ErrorCode::Io, e.to_string()),
        None => Error::new(ErrorCode::Parse, format!("broken or cut short: {e}")),
    })
}

/// Kind, size and byte order out of `"<f4"`.
fn parse_descr(descr: &str) -> Result<(Kind, usize, bool)> {
    let unsupported = || {
        let message = format!(
            "elements of type \"{}\": save as float32 (`.astype(\"float32\")`), another real float, integer or bool",
            descr.chars().take(40).collect::<String>().escape_debug()
        );
        Error::new(ErrorCode::Unsupported, message)
    };
    let bytes = descr.as_bytes();
    let (&order, &kind) = (bytes.first().ok_or_else(unsupported)?, bytes.get(1).ok_or_else(unsupported)?);
    let size: usize = descr.get(2..).and_then(|s| s.parse().ok()).ok_or_else(unsupported)?;
    let big_endian = match order {
        b'<' | b'|' => false,
        b'>' => true,
        b'=' => cfg!(target_endian = "big"),
        _ => return Err(unsupported()),
    };
    match (kind, size) {
        (b'b', 1) => Ok((Kind::Bool, 1, big_endian)),
        (b'i', 1 | 2 | 4 | 8) => Ok((Kind::Int, size, big_endian)),
        (b'u', 1 | 2 | 4 | 8) => Ok((Kind::Uint, size, big_endian)),
        (b'f', 2 | 4 | 8) => Ok((Kind::Float, size, big_endian)),
        (b'S', 1..=64) => Ok((Kind::Word, size, big_endian)),
        (b'U', 1..=64) => Ok((Kind::Word, size * 4, big_endian)),
        _ => Err(unsupported()),
    }
}

/// A reader of the one Python literal that headers are.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.broken(&format!("no {:?}", char::from(byte)))) }
    }

    fn broken(&self, what: &str) -> Error {
        let text = String::from_utf8_lossy(&self.text[..self.text.len().min(120)]).escape_debug().to_string();
        let message = format!("broken array header, {what} at byte {}: \"{text}\"", self.at);
        Error::new(ErrorCode::Parse, message)
    }

    fn string(&mut self) -> Result<String> {
        let quote =
            self.peek().filter(|b| matches!(b, b'\'' | b'"')).ok_or_else(|| self.broken("no string"))?;
        let start = self.at + 1;
        let length = self.text[start..].iter().position(|b| *b == quote);
        let length = length.ok_or_else(|| self.broken("a string without end"))?;
        self.at = start + length + 1;
        Ok(String::from_utf8_lossy(&self.text[start..start + length]).into_owned())
    }

    fn boolean(&mut self) -> Result<bool> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.broken("neither True nor False"))
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        self.expect(b'(')?;
        let mut sides = Vec::new();
        while !self.take(b')') {
            self.peek();
            let length = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let digits = String::from_utf8_lossy(&self.text[self.at..self.at + length]);
            let side = digits.parse().map_err(|_| self.broken("no side length"))?;
            self.at += length;
            // Python 2 wrote long integers so.
            self.take(b'L');
            sides.push(side);
            if sides.len() > 64 {
                return Err(self.broken("more dimensions than NumPy has"));
            }
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(sides)
    }
}

/// The header of an array in C order, padded so that the elements begin at a multiple of 64 bytes.
pub(super) fn header_bytes(descr: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let whole = (10 + text.len() + 1).next_multiple_of(64);
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&((whole - 10) as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.resize(whole - 1, b' ');
    out.push(b'\n');
    out
}

/// Writes elements in blocks: a call through `dyn Write` for each would cost more than the rest.
pub(super) fn in_blocks<T>(
    out: &mut dyn Write,
    items: &[T],
    put: impl Fn(&mut Vec<u8>, &T) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Vec::new();
    for part in items.chunks(8192) {
        block.clear();
        part.iter().try_for_each(|item| put(&mut block, item))?;
        out.write_all(&block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_versions_write_them() {
        let header =
            Header::parse(b"{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!((header.kind, header.size, header.fortran, header.count), (Kind::Float, 8, true, 12));
        let header = Header::parse(b"{\"shape\":(5L,),\"fortran_order\":False,\"descr\":\">i4\"}").unwrap();
        assert!(header.big_endian);
        assert_eq!(header.shape, [5]);
        assert_eq!(Header::parse(b"{'descr':'|b1','fortran_order':False,'shape':()}").unwrap().count, 1);
    }

    #[test]
    fn broken_headers() {
        for (text, code) in [
            (&b""[..], ErrorCode::Parse),
            (b"{", ErrorCode::Parse),
            (b"{}", ErrorCode::Parse),
            (b"{'descr': '<f4'}", ErrorCode::Parse),
            (b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x", ErrorCode::Parse),
            (b"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4)}", ErrorCode::Parse),
            (b"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4)}", ErrorCode::Parse),
            (b"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", ErrorCode::Parse),
            (b"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", ErrorCode::Parse),
            (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}",
                ErrorCode::Parse,
            ),
            (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9999999999, 9999999999)}",
                ErrorCode::Parse,
            ),
            (b"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4)}", ErrorCode::Unsupported),
            (b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4)}", ErrorCode::Unsupported),
            (b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", ErrorCode::Unsupported),
        ] {
            let error = Header::parse(text).unwrap_err();
            assert_eq!(error.code(), code, "{}: {error}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn halves() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
