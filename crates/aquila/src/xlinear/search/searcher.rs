//! The scratch memory of one thread's queries, and a row's way into it.

use super::merge::Slots;
use crate::data::FeatureRow;
use crate::error::{Result, fail};
use crate::kernels::panels::DenseQuery;
use crate::kernels::postings::{Cursor, HEAD, NOWHERE, Scratch};
use crate::kernels::prefix_sum::sum_before;
use crate::kernels::select::LOWEST;
use crate::kernels::{Isa, prefetch};
use crate::xlinear::Model;
use crate::xlinear::layout::{BUCKET, LARGE};

/// The scratch memory of one thread's queries. It may serve several models in turn.
#[derive(Debug)]
pub struct Searcher {
    pub(super) isa: Isa,
    pub(super) cursors: Vec<Cursor>,
    /// The beam: nodes of the layer above with their keys, ascending.
    pub(super) beam: Vec<(u32, f32)>,
    pub(super) active: Vec<Active>,
    pub(super) chunks: Vec<u32>,
    /// For each chunk of the layer its place among the active ones plus 1; all 0 between layers.
    pub(super) slots: Vec<u16>,
    pub(super) sums: Vec<f32>,
    pub(super) head: Box<[f32; HEAD]>,
    pub(super) reached: Vec<(f32, u32)>,
    /// Packed (key, node) that compete for the beam, packed (key, label) that compete for the result.
    pub(super) nodes: Vec<u64>,
    pub(super) found: Vec<u64>,
    pub(super) merge: Slots,
    /// The keys of the root's columns, where labels have slots there and elsewhere.
    pub(super) root: Vec<f32>,
    /// The keys of a label's other slots.
    pub(super) others: Vec<f32>,
    /// The key that no node passed over exceeds: the least of a full beam.
    pub(super) edge: f32,
    pub(super) scratch: Scratch,
    pub(super) before: Vec<Cursor>,
    pub(super) needed: Vec<Vec<u32>>,
    /// Cursors of large blocks, and their buckets.
    large: Vec<(usize, usize)>,
    /// The row's dense part.
    pub(super) dense: DenseQuery,
    pub(super) out: Vec<(u32, f32)>,
}

/// A chunk of a node of the beam.
#[derive(Debug, Clone, Copy)]
pub(super) struct Active {
    pub chunk: u32,
    /// Its first column and how many it has.
    pub column: u32,
    pub width: u32,
    /// The key of its node.
    pub key: f32,
}

impl Default for Searcher {
    fn default() -> Self {
        Self::with_isa(Isa::detect())
    }
}

impl Searcher {
    /// A searcher that uses this instruction set at most: for tests and comparisons.
    pub fn with_isa(isa: Isa) -> Self {
        Self {
            isa: if isa.runs_here() { isa } else { Isa::Scalar },
            cursors: Vec::new(),
            beam: Vec::new(),
            active: Vec::new(),
            chunks: Vec::new(),
            slots: Vec::new(),
            sums: Vec::new(),
            head: Box::new([0.0; HEAD]),
            reached: Vec::new(),
            nodes: Vec::new(),
            found: Vec::new(),
            merge: Slots::default(),
            root: Vec::new(),
            others: Vec::new(),
            edge: LOWEST,
            scratch: Scratch::default(),
            before: Vec::new(),
            needed: Vec::new(),
            large: Vec::new(),
            dense: DenseQuery::default(),
            out: Vec::new(),
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        fn of<T>(held: &Vec<T>) -> usize {
            size_of::<T>() * held.capacity()
        }
        let cursors = of(&self.cursors) + of(&self.before) + of(&self.active) + of(&self.large);
        let chunks = of(&self.chunks) + of(&self.slots) + of(&self.sums) + of(&self.root) + of(&self.others);
        let found = of(&self.beam) + of(&self.reached) + of(&self.nodes) + of(&self.found) + of(&self.out);
        let needed = of(&self.needed) + self.needed.iter().map(of).sum::<usize>();
        let parts = of(&self.merge.reached) + self.scratch.bytes() + self.dense.bytes();
        size_of::<[f32; HEAD]>() + cursors + chunks + found + needed + parts
    }

    /// Sets a cursor on the block of every feature of the row that has one, and takes up its dense part.
    ///
    /// Where the model has a dense block and the row has none, entries of the dense columns are its dense part; where
    /// the row has one and the model none, its values are entries.
    pub(super) fn place(&mut self, model: &Model, row: FeatureRow<'_>) -> Result<()> {
        let norm = || row.norm();
        let FeatureRow { sparse: row, dense: tail } = row;
        if row.indices.len() != row.values.len() {
            fail!(ShapeMismatch, "a row has {} indices but {} values", row.indices.len(), row.values.len());
        }
        // Divided by, not multiplied with its inverse: that of a denormal length is infinite.
        let length = match model.normalize().then(norm) {
            Some(norm) if norm > 0.0 => norm,
            _ => 1.0,
        };
        self.cursors.clear();
        self.cursors.reserve(row.len() + tail.len());
        let (sparse, directory) = (model.sparse(), model.directory());
        let block = self.dense.start(model.dense());
        // Four passes, so that each step's cache misses overlap.
        for (f, v) in row.iter() {
            if f as usize >= sparse {
                let Some(value) = block.get_mut(f as usize - sparse) else {
                    fail!(
                        IndexOutOfRange,
                        "feature {f} is not below the model's number of features, {}",
                        model.features
                    );
                };
                *value = v / length;
                continue;
            }
            if v != 0.0 {
                directory.prefetch(f as usize / BUCKET);
                self.cursors.push(Cursor { at: f as usize, x: v / length });
            }
        }
        if !tail.is_empty() {
            let Some(first) = model.features.checked_sub(tail.len()) else {
                fail!(
                    ShapeMismatch,
                    "the row has {} dense values but the model {} features",
                    tail.len(),
                    model.features
                );
            };
            for (f, v) in (first..).zip(tail) {
                match f.checked_sub(sparse) {
                    Some(j) => block[j] = v / length,
                    None if *v != 0.0 => {
                        directory.prefetch(f / BUCKET);
                        self.cursors.push(Cursor { at: f, x: v / length });
                    }
                    None => {}
                }
            }
        }
        if model.dense() > 0 {
            self.dense.finish(model.dense.kind());
        }
        let area = model.area();
        for Cursor { at, .. } in &mut self.cursors {
            // From here on the bucket's place and the feature's number in it.
            let bucket = directory.bucket(*at / BUCKET);
            *at = bucket.wrapping_mul(BUCKET) | (*at % BUCKET);
            prefetch(area, bucket);
        }
        let mut kept = 0;
        for i in 0..self.cursors.len() {
            let Cursor { at, x } = self.cursors[i];
            let (bucket, feature) = (at / BUCKET, at % BUCKET);
            let Some(sizes) = area.get(bucket..).and_then(|b| b.first_chunk::<BUCKET>()) else { continue };
            let size = sizes[feature];
            let at = bucket + BUCKET + sum_before(sizes, feature);
            self.cursors[kept] = Cursor { at, x };
            prefetch(area, at);
            prefetch(area, at + 64);
            if size == LARGE {
                self.large.push((kept, bucket));
            }
            kept += usize::from(size != 0);
        }
        self.cursors.truncate(kept);
        for (i, bucket) in self.large.drain(..) {
            let cursor = &mut self.cursors[i];
            let distance = area.get(cursor.at..).and_then(|b| b.first_chunk());
            cursor.at = distance.map_or(NOWHERE, |d| bucket + u32::from_le_bytes(*d) as usize);
            prefetch(area, cursor.at);
            prefetch(area, cursor.at + 64);
        }
        Ok(())
    }
}
