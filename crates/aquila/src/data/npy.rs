//! NumPy's `.npy` files.

use super::Dense;
use super::array::{Header, header_bytes, in_blocks, reserve};
use super::stored::{Stored, write_by_name};
use super::watched::BLOCK;
use crate::control::Control;
use crate::error::{Result, fail};
use std::io::{BufReader, Write};
use std::path::Path;

/// Reads a `.npy` file of one or two dimensions as dense rows; gzip where the name ends in `.gz`.
///
/// An array of one dimension becomes one column, a single number a 1 x 1 matrix. Floats of 2, 4 or 8 bytes, integers
/// and bools of either byte order and memory order are read and rounded to f32.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.npy");
/// use aquila::data::{read_npy, write_npy};
/// use aquila::{Control, Dense};
///
/// let dense = Dense::new(2, 2, vec![1.0, 2.0, 3.0, 4.0])?;
/// let control = Control::default();
/// write_npy(&path, &dense, &control)?;
/// assert_eq!(read_npy(&path, &control)?, dense);
/// # Ok(())
/// # }
/// ```
pub fn read_npy(path: impl AsRef<Path>, control: &Control) -> Result<Dense> {
    let path = path.as_ref().to_path_buf();
    control.run_detached(move |control| {
        let (file, length) = Stored::open(&path, control)?;
        read(BufReader::new(&file), length, control).map_err(|e| e.at(path.display()))
    })
}

fn read(mut input: BufReader<&Stored>, length: u64, control: &Control) -> Result<Dense> {
    let header = Header::read(&mut input, length)?;
    let (rows, cols) = match header.shape[..] {
        [] => (1, 1),
        [rows] => (rows as usize, 1),
        [rows, cols] => (rows as usize, cols as usize),
        _ => fail!(ShapeMismatch, "{} dimensions: reshape to 2", header.shape.len()),
    };
    let values = header.floats(&mut input)?;
    if !header.fortran || rows <= 1 || cols <= 1 {
        return Dense::new(rows, cols, values);
    }
    let mut by_rows = reserve(values.len())?;
    for i in 0..rows {
        for first in (0..cols).step_by(BLOCK) {
            control.check()?;
            by_rows.extend((first..cols.min(first + BLOCK)).map(|j| values[j * rows + i]));
        }
    }
    Dense::new(rows, cols, by_rows)
}

/// Writes dense rows as a `.npy` file of little-endian f32, gzip where the name ends in `.gz`. The file appears whole or
/// not at all.
pub fn write_npy(path: impl AsRef<Path>, dense: &Dense, control: &Control) -> Result<()> {
    write_by_name(path.as_ref(), control, |file| {
        file.write_all(&header_bytes("<f4", &format!("({}, {})", dense.rows(), dense.cols())))?;
        in_blocks(file, dense.values(), |out, v| out.write_all(&v.to_le_bytes()))
    })
}
