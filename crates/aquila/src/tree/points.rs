//! The vectors of a node's labels while they are clustered.

use crate::data::Csr;

/// Rows to be clustered, in columns renumbered to those they use.
#[derive(Debug)]
pub struct Points {
    /// The label of each row.
    pub labels: Vec<u32>,
    ptr: Vec<usize>,
    idx: Vec<u32>,
    val: Vec<f32>,
    cols: usize,
}

/// Renumbering is worth its copy once a node has fewer entries than this for each column.
const THIN: usize = 6;

impl Points {
    /// All rows of `vectors` that have entries.
    pub fn new(vectors: Csr) -> Self {
        let labels: Vec<u32> =
            (0..vectors.rows() as u32).filter(|l| !vectors.row(*l as usize).is_empty()).collect();
        let cols = vectors.cols();
        let mut ptr = vec![0];
        ptr.extend(labels.iter().map(|l| vectors.indptr()[*l as usize + 1]));
        let (idx, val) = vectors.into_entries();
        Self { labels, ptr, idx, val, cols }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.idx.len()
    }

    /// `⟨row, dense⟩`, summed in four streams of fixed order: the same bits on every machine.
    #[inline]
    pub fn dot(&self, row: usize, dense: &[f32]) -> f32 {
        let span = self.ptr[row]..self.ptr[row + 1];
        let (idx, val) = (&self.idx[span.clone()], &self.val[span]);
        let mut sums = [0f32; 4];
        let (quads, rest) = idx.as_chunks::<4>();
        let (weights, tail) = val.as_chunks::<4>();
        for (j, v) in quads.iter().zip(weights) {
            for k in 0..4 {
                sums[k] += dense[j[k] as usize] * v[k];
            }
        }
        for (j, v) in rest.iter().zip(tail) {
            sums[0] += dense[*j as usize] * v;
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    /// `dense += factor · row`.
    pub fn add(&self, row: usize, factor: f32, dense: &mut [f32]) {
        for e in self.ptr[row]..self.ptr[row + 1] {
            dense[self.idx[e] as usize] += factor * self.val[e];
        }
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let span = self.ptr[row]..self.ptr[row + 1];
        (&self.idx[span.clone()], &self.val[span])
    }

    /// These rows alone, in columns of their own where that pays.
    pub fn subset(&self, rows: &[u32]) -> Self {
        let nnz: usize = rows.iter().map(|i| self.ptr[*i as usize + 1] - self.ptr[*i as usize]).sum();
        let mut out = Self {
            labels: rows.iter().map(|i| self.labels[*i as usize]).collect(),
            ptr: Vec::with_capacity(rows.len() + 1),
            idx: Vec::with_capacity(nnz),
            val: Vec::with_capacity(nnz),
            cols: self.cols,
        };
        out.ptr.push(0);
        let renumber = nnz < THIN * self.cols;
        let mut local = vec![0u32; if renumber { self.cols } else { 0 }];
        let mut used = 0;
        for i in rows {
            let (idx, val) = self.row(*i as usize);
            if renumber {
                out.idx.extend(idx.iter().map(|j| {
                    let at = &mut local[*j as usize];
                    if *at == 0 {
                        used += 1;
                        *at = used;
                    }
                    *at - 1
                }));
            } else {
                out.idx.extend_from_slice(idx);
            }
            out.val.extend_from_slice(val);
            out.ptr.push(out.idx.len());
        }
        if renumber {
            out.cols = used as usize;
        }
        out
    }
}
