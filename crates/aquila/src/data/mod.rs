//! Matrices in memory, and the files they come from.
//!
//! [`Csr`] is the one sparse form: strictly ascending column ids in each row, finite values, checked once at
//! the border. [`Features`] are the rows a model sees: a sparse part and an optional dense block beside it.
//!
//! | file | read | write |
//! |---|---|---|
//! | Extreme Classification Repository text, plain or gzip | [`read_xmc`] | [`write_xmc`] |
//! | LIBSVM text, plain or gzip | [`read_libsvm`] | [`write_libsvm`] |
//! | NumPy arrays, `.npy`, plain or gzip | [`read_npy`] | [`write_npy`] |
//! | SciPy sparse matrices, `.npz`, plain or gzip | [`read_npz`] | [`write_npz`] |
//!
//! Readers check every byte they use: a broken or foreign file ends in a coded error that names the file and the
//! line or member, before memory is taken for what the file only claims to hold. Writers go through
//! [`write_atomically`]: a file is there whole or not at all. All of them end soon after their
//! [`Control`](crate::Control) is cancelled, and leave no file then.

mod array;
mod atomic;
mod columns;
mod csr;
mod dense;
mod features;
mod grammar;
mod libsvm;
mod lines;
mod npy;
mod npz;
mod number;
mod ranked;
mod source;
mod stored;
mod temporary;
mod text;
mod watched;
mod xmc;
mod zip;

pub use atomic::write_atomically;
pub(crate) use columns::Columns;
pub use csr::{Csr, Row};
pub use dense::Dense;
pub use features::{FeatureRow, Features};
pub use libsvm::{LibsvmOptions, read_libsvm, write_libsvm};
pub use lines::Dataset;
pub use npy::{read_npy, write_npy};
pub use npz::{read_npz, write_npz};
pub use ranked::Ranked;
pub use source::Source;
pub use temporary::remove_cancelled;
pub use watched::Watched;
pub use xmc::{read_xmc, write_xmc};
