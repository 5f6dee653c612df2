//! Sparse matrices as `scipy.sparse.save_npz` writes them: a zip file with an array for each part.

use super::array::{Header, Kind, fill, header_bytes, in_blocks, reserve};
use super::source::is_gzip_name;
use super::stored::{Stored, write_by_name};
use super::watched::{BLOCK, Watched};
use super::zip::{Zip, ZipWriter};
use super::{Csr, write_atomically};
use crate::control::Control;
use crate::error::{Result, fail};
use std::io::{self, Cursor, Read, Seek, Write};
use std::iter::repeat_n;
use std::path::Path;

/// Rows that a file by columns or by entries may always have, and beyond which each must be worth an entry. Such a
/// file claims rows for free, but each costs a pointer in memory.
const FREE_ROWS: usize = 16 << 20;
/// Rows for each entry beyond [`FREE_ROWS`].
const ROWS_PER_ENTRY: usize = 64;

/// Reads a sparse matrix in CSR, CSC or COO form, stored or deflated; gzip where the name ends in `.gz`.
///
/// Values of any real type are rounded to f32. Unsorted columns are sorted and duplicates summed, the meaning scipy
/// gives them; explicit zeros stay. Every member's checksum is verified.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npz");
/// use aquila::data::{read_npz, write_npz};
/// use aquila::{Control, Csr};
///
/// let x = Csr::new(2, 3, vec![0, 2, 2], vec![0, 2], vec![0.5, -1.0])?;
/// let control = Control::default();
/// write_npz(&path, &x, true, &control)?;
/// assert_eq!(read_npz(&path, &control)?, x);
/// # Ok(())
/// # }
/// ```
pub fn read_npz(path: impl AsRef<Path>, control: &Control) -> Result<Csr> {
    let path = path.as_ref().to_path_buf();
    control.run_detached(move |control| {
        let (file, length) = Stored::open(&path, control)?;
        read(file, length, control).map_err(|e| e.at(path.display()))
    })
}

fn read(file: Stored, length: u64, control: &Control) -> Result<Csr> {
    let zip = Zip::open(file, length)?;
    match read_format(&zip)?.as_str() {
        "csr" => read_compressed(&zip, false, control),
        "csc" => read_compressed(&zip, true, control),
        "coo" => read_entries(&zip, control),
        other => fail!(Unsupported, "a matrix in the form {other:?}: save it with `.tocsr()`"),
    }
}

/// The word in member `format`: bytes from Python 3, UCS-4 text from others.
fn read_format(zip: &Zip) -> Result<String> {
    zip.member("format.npy", |input, size| {
        let header = Header::read(input, size)?;
        if header.kind != Kind::Word || header.count != 1 {
            fail!(Parse, "the form must be one word");
        }
        let mut bytes = vec![0; header.size];
        fill(input, &mut bytes)?;
        // The ASCII letters of either kind are its only non-zero bytes.
        bytes.retain(|b| *b != 0);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

fn read_shape(zip: &Zip) -> Result<[usize; 2]> {
    zip.member("shape.npy", |input, size| {
        let header = Header::read(input, size)?;
        if header.count != 2 {
            fail!(Parse, "a matrix has two sides but the shape has {}", header.count);
        }
        let mut sides = Vec::with_capacity(2);
        header.integers(input, |side| match u32::try_from(side) {
            Ok(side) => {
                sides.push(side as usize);
                Ok(())
            }
            Err(_) => fail!(Parse, "a side of {side} is not from 0 to {}", u32::MAX),
        })?;
        Ok([sides[0], sides[1]])
    })
}

fn read_flat(input: &mut impl Read, size: u64) -> Result<Header> {
    let header = Header::read(input, size)?;
    if header.shape.len() != 1 {
        fail!(Parse, "shape {:?} where one dimension belongs", header.shape);
    }
    Ok(header)
}

/// Ids from 0 to below `limit`.
fn read_ids(zip: &Zip, name: &str, limit: usize) -> Result<Vec<u32>> {
    zip.member(name, |input, size| {
        let header = read_flat(input, size)?;
        let mut ids: Vec<u32> = reserve(header.count)?;
        header.integers(input, |id| match u32::try_from(id) {
            Ok(id) if (id as usize) < limit => {
                ids.push(id);
                Ok(())
            }
            _ => fail!(
                IndexOutOfRange,
                "element {} is {id} but must be from 0 to below {limit}, the matrix's side",
                ids.len()
            ),
        })?;
        Ok(ids)
    })
}

fn read_values(zip: &Zip, count: usize) -> Result<Vec<f32>> {
    zip.member("data.npy", |input, size| {
        let header = read_flat(input, size)?;
        if header.count != count {
            fail!(ShapeMismatch, "{} values for {count} indices", header.count);
        }
        header.floats(input)
    })
}

/// CSR, and CSC as entries.
fn read_compressed(zip: &Zip, by_columns: bool, control: &Control) -> Result<Csr> {
    let [rows, cols] = read_shape(zip)?;
    let (major, minor) = if by_columns { (cols, rows) } else { (rows, cols) };
    let mut pointers = zip.member("indptr.npy", |input, size| {
        let header = read_flat(input, size)?;
        if header.count != major + 1 {
            fail!(ShapeMismatch, "{} pointers where the shape needs {}", header.count, major + 1);
        }
        let mut pointers: Vec<usize> = reserve(header.count)?;
        header.integers(input, |end| {
            let before = pointers.last().copied();
            match usize::try_from(end) {
                Ok(end) if before.is_none() && end != 0 => fail!(Parse, "the first pointer is {end}, not 0"),
                Ok(end) if before.is_none_or(|b| b <= end) => pointers.push(end),
                Err(_) if before.is_none() => fail!(Parse, "the first pointer is {end}, not 0"),
                _ => fail!(
                    UnsortedIndices,
                    "pointer {} falls from {} to {end}",
                    pointers.len(),
                    before.unwrap_or_default()
                ),
            }
            Ok(())
        })?;
        Ok(pointers)
    })?;
    let mut indices = read_ids(zip, "indices.npy", minor)?;
    let mut values = read_values(zip, indices.len())?;
    let end = pointers[major];
    if end > indices.len() {
        fail!(ShapeMismatch, "member indptr.npy: ends at {end} but there are {} indices", indices.len());
    }
    // As scipy, which may keep room behind the last entry.
    indices.truncate(end);
    values.truncate(end);
    if by_columns {
        let columns = pointers.windows(2).zip(0u32..).flat_map(|(ends, j)| repeat_n(j, ends[1] - ends[0]));
        (pointers, indices, values) = by_rows(rows, &indices, columns, values, control)?;
    }
    Csr::sorted(rows, cols, pointers, indices, values, control)
}

/// COO: a row, a column and a value for each entry.
fn read_entries(zip: &Zip, control: &Control) -> Result<Csr> {
    let [rows, cols] = read_shape(zip)?;
    let row_ids = read_ids(zip, "row.npy", rows)?;
    let col_ids = read_ids(zip, "col.npy", cols)?;
    if row_ids.len() != col_ids.len() {
        fail!(
            ShapeMismatch,
            "member col.npy: {} columns for the {} rows of row.npy",
            col_ids.len(),
            row_ids.len()
        );
    }
    let values = read_values(zip, row_ids.len())?;
    let (pointers, indices, values) = by_rows(rows, &row_ids, col_ids.into_iter(), values, control)?;
    Csr::sorted(rows, cols, pointers, indices, values, control)
}

/// Row pointers, columns and values of entries in any order.
fn by_rows(
    rows: usize,
    row_ids: &[u32],
    mut col_ids: impl Iterator<Item = u32>,
    given: Vec<f32>,
    control: &Control,
) -> Result<(Vec<usize>, Vec<u32>, Vec<f32>)> {
    check_rows(rows, row_ids.len())?;
    let mut pointers = vec![0; rows + 1];
    for part in row_ids.chunks(BLOCK) {
        control.check()?;
        part.iter().for_each(|i| pointers[*i as usize + 1] += 1);
    }
    for i in 0..rows {
        pointers[i + 1] += pointers[i];
    }
    let mut next = pointers.clone();
    let mut indices = vec![0; given.len()];
    let mut values = vec![0.0; given.len()];
    for (ids, given) in row_ids.chunks(BLOCK).zip(given.chunks(BLOCK)) {
        control.check()?;
        for ((i, v), j) in ids.iter().zip(given).zip(&mut col_ids) {
            let place = &mut next[*i as usize];
            (indices[*place], values[*place]) = (j, *v);
            *place += 1;
        }
    }
    Ok((pointers, indices, values))
}

fn check_rows(rows: usize, entries: usize) -> Result<()> {
    if rows > FREE_ROWS.saturating_add(entries.saturating_mul(ROWS_PER_ENTRY)) {
        fail!(
            MemoryLimit,
            "member shape.npy: {rows} rows for {entries} entries would take {} bytes of row pointers: save the \
             matrix with `.tocsr()` if that is meant",
            (rows as u64 + 1) * 8
        );
    }
    Ok(())
}

/// Writes a CSR matrix so that `scipy.sparse.load_npz` reads it, deflated where `compressed` and gzip where the name
/// ends in `.gz`.
///
/// Indices are written as int32 where everything fits, else as int64; values as float32. The file appears whole or
/// not at all, and equal matrices give equal bytes.
pub fn write_npz(path: impl AsRef<Path>, matrix: &Csr, compressed: bool, control: &Control) -> Result<()> {
    let path = path.as_ref();
    if !is_gzip_name(path) {
        return write_atomically(path, control, |file| write_zip(file, matrix, compressed));
    }
    // A zip file is not written in order, as gzip is; and nothing packs twice.
    write_by_name(path, control, |file| {
        let mut zip = Watched::new(Cursor::new(Vec::new()), control);
        write_zip(&mut zip, matrix, false)?;
        file.write_all(zip.into_inner().get_ref())
    })
}

fn write_zip(file: &mut (impl Write + Seek), matrix: &Csr, compressed: bool) -> io::Result<()> {
    let largest = matrix.nnz().max(matrix.rows()).max(matrix.cols());
    let narrow = i32::try_from(largest).is_ok();
    let descr = if narrow { "<i4" } else { "<i8" };
    let put = |out: &mut Vec<u8>, number: u64| match narrow {
        true => out.write_all(&(number as u32).to_le_bytes()),
        false => out.write_all(&number.to_le_bytes()),
    };
    let mut zip = ZipWriter::new(file, compressed);
    zip.member("indices.npy", |out| {
        array(out, descr, matrix.nnz(), matrix.indices(), |out, j| put(out, u64::from(*j)))
    })?;
    zip.member("indptr.npy", |out| {
        array(out, descr, matrix.rows() + 1, matrix.indptr(), |out, p| put(out, *p as u64))
    })?;
    zip.member("format.npy", |out| {
        out.write_all(&header_bytes("|S3", "()"))?;
        out.write_all(b"csr")
    })?;
    zip.member("shape.npy", |out| {
        array(out, "<i8", 2, &[matrix.rows(), matrix.cols()], |out, n| {
            out.write_all(&(*n as u64).to_le_bytes())
        })
    })?;
    zip.member("data.npy", |out| {
        array(out, "<f4", matrix.nnz(), matrix.values(), |out, v| out.write_all(&v.to_le_bytes()))
    })?;
    zip.finish()
}

/// An array of one dimension.
fn array<T>(
    out: &mut dyn Write,
    descr: &str,
    count: usize,
    items: &[T],
    put: impl Fn(&mut Vec<u8>, &T) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(&header_bytes(descr, &format!("({count},)")))?;
    in_blocks(out, items, put)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use std::sync::atomic::Ordering;

    #[test]
    fn entries_in_any_order_are_put_by_rows() {
        let count = BLOCK + 100;
        let (ids, columns) = (0..count as u32).map(|n| (n % 3, n)).unzip::<_, _, Vec<_>, Vec<_>>();
        let given = columns.iter().map(|j| *j as f32).collect();
        let control = Control::default();
        let (pointers, indices, values) = by_rows(4, &ids, columns.into_iter(), given, &control).unwrap();
        assert_eq!(pointers, [0, count.div_ceil(3), (2 * count).div_ceil(3), count, count]);
        assert!((0..3).flat_map(|i| (i..count).step_by(3)).eq(indices.iter().map(|j| *j as usize)));
        assert!(indices.iter().zip(&values).all(|(j, v)| *j as f32 == *v));
    }

    #[test]
    fn what_follows_the_bytes_ends_too_once_the_call_is_cancelled() {
        let control = Control::default();
        let put = || by_rows(2, &[1, 0], [2, 0].into_iter(), vec![1.0, 2.0], &control);
        let sorted = || Csr::sorted(1, 3, vec![0, 2], vec![2, 0], vec![1.0, 2.0], &control);
        assert_eq!(put().unwrap(), (vec![0, 1, 2], vec![0, 2], vec![2.0, 1.0]));
        assert_eq!(sorted().unwrap().indices(), [0, 2]);
        control.cancel_flag().store(true, Ordering::Relaxed);
        assert_eq!(put().unwrap_err().code(), ErrorCode::Cancelled);
        assert_eq!(sorted().unwrap_err().code(), ErrorCode::Cancelled);
    }
}
