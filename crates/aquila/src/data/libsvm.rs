//! LIBSVM's text format, also called SVMlight's.
//!
//! Each line is a row: label ids with commas between, then `index:value` pairs with blanks between. There is no
//! header, so the sizes come from the largest ids or from the caller.

use super::grammar::Grammar;
use super::lines::{Dataset, Lines, WINDOW, read_rows};
use super::stored::write_by_name;
use super::{Csr, Features, text};
use crate::control::Control;
use crate::error::{Result, fail};
use std::path::Path;

/// How to read a file that states neither its sizes nor where its ids begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LibsvmOptions {
    /// Feature ids count from 1, as LIBSVM's own files do. Label ids count from 0 in either case.
    pub one_based: bool,
    /// Number of features; without it the largest id decides. A test file needs its training file's number.
    pub features: Option<usize>,
    /// Number of labels; without it the largest id decides.
    pub labels: Option<usize>,
}

/// Reads LIBSVM text, plain or gzip.
///
/// `#` begins a comment; a line of nothing but blanks and a comment is no row. A row without labels begins with a
/// blank. Labels are ids: `-1` or `0.5` is refused. Everything else is as [`read_xmc`](super::read_xmc) has it.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("train.svm");
/// use aquila::Control;
/// use aquila::data::{LibsvmOptions, read_libsvm};
///
/// std::fs::write(&path, "0,2 1:0.5 3:2 # the first row\n1 1:1\n").unwrap();
/// let options = LibsvmOptions { one_based: true, ..Default::default() };
/// let data = read_libsvm(&path, options, &Control::default())?;
/// assert_eq!((data.x.rows(), data.x.cols(), data.y.cols()), (2, 3, 3));
/// assert_eq!(data.x.row(0).indices, [0, 2]);
/// # Ok(())
/// # }
/// ```
pub fn read_libsvm(path: impl AsRef<Path>, options: LibsvmOptions, control: &Control) -> Result<Dataset> {
    let path = path.as_ref().to_path_buf();
    control.run_detached(move |control| read(&path, options, control))
}

fn read(path: &Path, options: LibsvmOptions, control: &Control) -> Result<Dataset> {
    let limit = |count: Option<usize>, what: &str| match count.map(u32::try_from) {
        None => Ok(u32::MAX),
        Some(Ok(count)) => Ok(count),
        Some(Err(_)) => {
            fail!(InvalidArgument, "{what} must be at most {} but is {}", u32::MAX, count.unwrap_or_default())
        }
    };
    let grammar = Grammar {
        features: limit(options.features, "features")?,
        labels: limit(options.labels, "labels")?,
        limits: "as given or as 32-bit ids allow",
        one_based: options.one_based,
        comments: true,
    };
    let rows = read_rows(Lines::open(path, WINDOW, control)?, &grammar, 0, None, control)?;
    let size = |ids: &[u32]| ids.iter().max().map_or(0, |id| *id as usize + 1);
    let features = options.features.unwrap_or_else(|| size(&rows.features));
    let labels = options.labels.unwrap_or_else(|| size(&rows.labels));
    rows.into_dataset(features, labels, control)
}

/// Writes features and labels as LIBSVM text, gzip where the name ends in `.gz`; features count from 1 where
/// `one_based`.
///
/// The file appears whole or not at all, and reading it back with the sizes of both matrices gives the same rows. The
/// format holds neither values of labels nor a row without labels and features: both are refused.
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("train.svm");
/// use aquila::data::write_libsvm;
/// use aquila::{Control, Csr};
///
/// let x = Csr::new(1, 3, vec![0, 2], vec![0, 2], vec![0.5, -1.0])?;
/// let y = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0])?;
/// write_libsvm(&path, &x.into(), &y, true, &Control::default())?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "1 1:0.5 3:-1\n");
/// # Ok(())
/// # }
/// ```
pub fn write_libsvm(
    path: impl AsRef<Path>,
    x: &Features,
    y: &Csr,
    one_based: bool,
    control: &Control,
) -> Result<()> {
    let path = path.as_ref();
    text::check(path, x, y)?;
    if let Some(row) = (0..x.rows()).find(|i| y.row(*i).is_empty() && text::entries(x, *i).next().is_none()) {
        fail!(
            Unsupported,
            "{}: row {row} has neither labels nor features, and a blank line is no row in this format: drop the row, or \
             write Extreme Classification Repository text",
            path.display()
        );
    }
    write_by_name(path, control, |file| text::write_rows(file, x, y, u64::from(one_based)))
}
