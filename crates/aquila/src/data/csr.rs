//! Compressed sparse rows.

use crate::control::Control;
use crate::error::{Result, fail};
use crate::memory;

/// One sparse row: strictly ascending column ids and their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// Column ids, strictly ascending.
    pub indices: &'a [u32],
    /// One value for each id.
    pub values: &'a [f32],
}

impl<'a> Row<'a> {
    /// Number of stored entries.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Column ids with their values.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (u32, f32)> + 'a {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }

    /// The Euclidean norm.
    pub fn norm(&self) -> f32 {
        // Four sums, so that no addition waits for the one before it.
        let (fours, rest) = self.values.as_chunks::<4>();
        let mut sums = [0f64; 4];
        for four in fours {
            sums.iter_mut().zip(four).for_each(|(sum, v)| *sum += f64::from(*v) * f64::from(*v));
        }
        let rest: f64 = rest.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
        (sums.iter().sum::<f64>() + rest).sqrt() as f32
    }

    /// Checks a row that comes from outside against a number of columns, as [`Csr::new`] does.
    pub fn checked(indices: &'a [u32], values: &'a [f32], cols: usize) -> Result<Self> {
        if indices.len() != values.len() {
            fail!(ShapeMismatch, "a row has {} indices but {} values", indices.len(), values.len());
        }
        check_row(indices, values, cols).map_err(|e| e.at("row"))?;
        Ok(Self { indices, values })
    }
}

/// A sparse matrix by rows. Each row's column ids ascend strictly, every value is finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    rows: usize,
    cols: usize,
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

fn check_row(indices: &[u32], values: &[f32], cols: usize) -> Result<()> {
    // Without a branch first, many entries at a time; only what is wrong is told entry by entry.
    let ascends = indices.windows(2).fold(true, |ok, pair| ok & (pair[0] < pair[1]));
    let finite = values.iter().fold(true, |ok, v| ok & v.is_finite());
    if ascends && finite && indices.last().is_none_or(|j| (*j as usize) < cols) {
        return Ok(());
    }
    let mut before = None;
    for (&j, &v) in indices.iter().zip(values) {
        if j as usize >= cols {
            fail!(IndexOutOfRange, "column {j} is not below the number of columns, {cols}");
        }
        match before {
            Some(b) if b == j => {
                fail!(DuplicateIndex, "column {j} stands twice: sum or drop duplicates first")
            }
            Some(b) if b > j => {
                fail!(UnsortedIndices, "column {j} stands after column {b}: sort each row's columns")
            }
            _ => before = Some(j),
        }
        if !v.is_finite() {
            fail!(NotFinite, "the value of column {j} is {v}: replace or drop it");
        }
    }
    Ok(())
}

impl Csr {
    /// Takes the three arrays after a full check: pointers, ranges, order, finite values.
    pub fn new(
        rows: usize,
        cols: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f32>,
    ) -> Result<Self> {
        check_pointers(rows, cols, &indptr, indices.len(), values.len())?;
        let made = Self { rows, cols, indptr, indices, values };
        made.check_rows(&Control::default()).map(|()| made)
    }

    /// As [`Csr::new`], but rows may be unsorted and hold duplicates: they are sorted and duplicates summed, the
    /// meaning scipy gives them.
    pub fn from_unsorted(
        rows: usize,
        cols: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f32>,
    ) -> Result<Self> {
        Self::sorted(rows, cols, indptr, indices, values, &Control::default())
    }

    /// As [`Csr::from_unsorted`], until the call is cancelled.
    pub(super) fn sorted(
        rows: usize,
        cols: usize,
        mut indptr: Vec<usize>,
        mut indices: Vec<u32>,
        mut values: Vec<f32>,
        control: &Control,
    ) -> Result<Self> {
        check_pointers(rows, cols, &indptr, indices.len(), values.len())?;
        let mut entries: Vec<(u32, f32)> = Vec::new();
        let mut end = 0;
        for i in 0..rows {
            control.check()?;
            let span = indptr[i]..indptr[i + 1];
            indptr[i] = end;
            if indices[span.clone()].windows(2).all(|w| w[0] < w[1]) {
                indices.copy_within(span.clone(), end);
                values.copy_within(span.clone(), end);
                end += span.len();
                continue;
            }
            entries.clear();
            // A row may be nearly the whole matrix, and sorting takes half as much again.
            memory::granted(16 * span.len() as u64, "a row to be sorted")?;
            entries.extend(indices[span.clone()].iter().copied().zip(values[span].iter().copied()));
            entries.sort_by_key(|e| e.0);
            let begin = end;
            for &(j, v) in &entries {
                if end > begin && indices[end - 1] == j {
                    values[end - 1] += v;
                } else {
                    (indices[end], values[end]) = (j, v);
                    end += 1;
                }
            }
        }
        if let Some(last) = indptr.last_mut() {
            *last = end;
        }
        indices.truncate(end);
        values.truncate(end);
        let made = Self { rows, cols, indptr, indices, values };
        made.check_rows(control).map(|()| made)
    }

    fn check_rows(&self, control: &Control) -> Result<()> {
        for (i, row) in self.iter_rows().enumerate() {
            control.check()?;
            check_row(row.indices, row.values, self.cols).map_err(|e| e.at(format_args!("row {i}")))?;
        }
        Ok(())
    }

    /// Takes arrays that the engine itself made and that hold the invariants already.
    pub(crate) fn trusted(
        rows: usize,
        cols: usize,
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f32>,
    ) -> Self {
        debug_assert!(check_pointers(rows, cols, &indptr, indices.len(), values.len()).is_ok());
        let made = Self { rows, cols, indptr, indices, values };
        debug_assert!(made.check_rows(&Control::default()).is_ok());
        made
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Row pointers: row `i` is `indptr[i]..indptr[i + 1]`.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Column ids of all rows.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values of all rows.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> Row<'_> {
        let span = self.indptr[i]..self.indptr[i + 1];
        Row { indices: &self.indices[span.clone()], values: &self.values[span] }
    }

    /// All rows in order.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// These rows alone, in this order.
    pub fn select(&self, rows: &[u32]) -> Self {
        let nnz = rows.iter().map(|i| self.row(*i as usize).len()).sum();
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        let (mut indices, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        indptr.push(0);
        for i in rows {
            let row = self.row(*i as usize);
            indices.extend_from_slice(row.indices);
            values.extend_from_slice(row.values);
            indptr.push(indices.len());
        }
        Self::trusted(rows.len(), self.cols(), indptr, indices, values)
    }

    /// Columns become rows.
    pub fn transpose(&self) -> Self {
        let mut indptr = vec![0usize; self.cols + 1];
        for &j in &self.indices {
            indptr[j as usize + 1] += 1;
        }
        for j in 0..self.cols {
            indptr[j + 1] += indptr[j];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; self.nnz()];
        let mut values = vec![0f32; self.nnz()];
        for (i, row) in self.iter_rows().enumerate() {
            for (j, v) in row.iter() {
                let place = &mut next[j as usize];
                (indices[*place], values[*place]) = (i as u32, v);
                *place += 1;
            }
        }
        Self { rows: self.cols, cols: self.rows, indptr, indices, values }
    }

    /// Column ids and values, taken out.
    pub(crate) fn into_entries(self) -> (Vec<u32>, Vec<f32>) {
        (self.indices, self.values)
    }

    /// Bytes held in memory.
    pub fn bytes(&self) -> u64 {
        (self.indptr.len() * size_of::<usize>() + self.nnz() * 8) as u64
    }
}

fn check_pointers(rows: usize, cols: usize, indptr: &[usize], indices: usize, values: usize) -> Result<()> {
    if cols > u32::MAX as usize || rows > u32::MAX as usize {
        fail!(InvalidArgument, "{rows} x {cols} passes the limit of {} rows or columns", u32::MAX);
    }
    if indptr.len() != rows + 1 {
        fail!(ShapeMismatch, "{rows} rows need {} row pointers but received {}", rows + 1, indptr.len());
    }
    if indices != values {
        fail!(ShapeMismatch, "{indices} column ids but {values} values");
    }
    if indptr[0] != 0 || indptr[rows] != indices {
        fail!(
            ShapeMismatch,
            "row pointers run from {} to {} but must run from 0 to the number of entries, {indices}",
            indptr[0],
            indptr[rows]
        );
    }
    if let Some(i) = (0..rows).find(|&i| indptr[i] > indptr[i + 1]) {
        fail!(UnsortedIndices, "row pointer {} falls from {} to {}", i + 1, indptr[i], indptr[i + 1]);
    }
    Ok(())
}
