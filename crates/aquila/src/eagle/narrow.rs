//! Rows and bags without the features and labels that nobody has: see [`Columns`].

use crate::data::{Columns, Csr, Features};
use std::borrow::Cow;

/// What work on labels of groups is given, in the columns in use where these are few of all.
#[derive(Debug)]
pub(super) struct Narrow<'a> {
    pub x: Features,
    pub bags: Cow<'a, Csr>,
    features: Option<Columns>,
    labels: Option<Columns>,
    bytes: u64,
}

impl<'a> Narrow<'a> {
    pub fn new(x: &Features, bags: &'a Csr) -> Self {
        let bytes = Columns::most(x.sparse()).1 + Columns::most(bags).1;
        let (x, features) = x.narrow();
        let (bags, labels) = narrow(bags);
        Self { x, bags, features, labels, bytes }
    }

    /// What it holds beside what was given.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A matrix over labels with their old numbers.
    pub fn labels(&self, y: Csr) -> Csr {
        widen(y, self.labels.as_ref())
    }

    /// A matrix over features with their old numbers.
    pub fn features(&self, rows: Csr) -> Csr {
        widen(rows, self.features.as_ref())
    }

    /// The old number of a label.
    pub fn label(&self, narrow: u32) -> u32 {
        self.labels.as_ref().map_or(narrow, |labels| labels.old(narrow))
    }
}

/// The matrix in the columns that it uses, where these are few of all.
pub(super) fn narrow(matrix: &Csr) -> (Cow<'_, Csr>, Option<Columns>) {
    let columns = Columns::of(matrix);
    let narrow = columns.as_ref().map(|columns| Cow::Owned(columns.narrow(matrix)));
    (narrow.unwrap_or(Cow::Borrowed(matrix)), columns)
}

/// The matrix with the old numbers of its columns.
pub(super) fn widen(matrix: Csr, columns: Option<&Columns>) -> Csr {
    match columns {
        Some(columns) => columns.widen(matrix),
        None => matrix,
    }
}
