//! Matrices in memory, and the files they come from.
//!
//! [`Csr`] is the one sparse form: strictly ascending column ids in each row, finite values, checked once at
//! the border. [`Features`] are the rows a model sees: a sparse part and an optional dense block beside it.

mod atomic;
mod csr;
mod dense;
mod features;
mod source;

pub use atomic::write_atomically;
pub use csr::{Csr, Row};
pub use dense::Dense;
pub use features::Features;
pub use source::Source;
