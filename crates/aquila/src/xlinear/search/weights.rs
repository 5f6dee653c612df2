//! Weights read back: what every feature has in some columns.
//!
//! A row that shows one feature, with the value 1, adds that feature's weights to the sums and nothing else. So the walk
//! that answers queries decodes the layout too, in all its forms, and there is no second reader of it.
//!
//! Cost: one walk for each feature of the model, a look at the chunks of the columns asked for, and one add for each
//! column of the chunks that have the feature.

use super::searcher::Searcher;
use crate::control::Control;
use crate::data::{FeatureRow, Row};
use crate::error::Result;
use crate::kernels::panels::add_columns;
use crate::kernels::postings::{self, CHUNK, Layer, MOST_ACTIVE};
use crate::xlinear::Model;
use rayon::prelude::*;

/// A column: its layer and its number there.
pub(in crate::xlinear) type Column = (u32, u32);

/// Columns whose weights are summed.
pub(in crate::xlinear) type Sum = Vec<Column>;

/// Features with their weights, ascending; those of weight 0 are left out.
pub(in crate::xlinear) type Weights = Vec<(u32, f32)>;

/// Features that one thread takes at a time.
const FEATURES_OF_PART: usize = 1024;

/// Chunks of a layer that one walk may ask for.
#[derive(Default)]
struct Wanted {
    /// The chunks, ascending, and for each chunk of the layer its place among them plus 1, or 0.
    active: Vec<u32>,
    slots: Vec<u16>,
    /// The columns asked for, chunk after chunk, and where those of each chunk end.
    columns: Vec<Place>,
    ends: Vec<usize>,
}

/// Where a column's weights are found and belong.
#[derive(Clone, Copy)]
struct Place {
    chunk: u32,
    column: u32,
    /// Its place in the chunk.
    child: u32,
    /// The sum that it is a part of.
    sum: u32,
}

impl Model {
    /// What every feature has in each of these sums of columns.
    pub(in crate::xlinear) fn weights_of(&self, sums: &[Sum], control: &Control) -> Result<Vec<Weights>> {
        let layers = self.wanted(sums);
        let parts: Vec<Vec<Weights>> = (0..self.features.div_ceil(FEATURES_OF_PART))
            .into_par_iter()
            .map_init(Searcher::default, |s, part| {
                let first = part * FEATURES_OF_PART;
                let (mut out, mut own) = (vec![Weights::new(); sums.len()], vec![0.0; sums.len()]);
                for f in first..(first + FEATURES_OF_PART).min(self.features) {
                    control.check()?;
                    own.fill(0.0);
                    self.add_feature(s, &layers, f as u32, &mut own)?;
                    for (out, weight) in out.iter_mut().zip(&own).filter(|(_, w)| **w != 0.0) {
                        out.push((f as u32, *weight));
                    }
                }
                Ok(out)
            })
            .collect::<Result<_>>()?;
        let of = |sum: usize| parts.iter().flat_map(|part| &part[sum]).copied().collect();
        Ok((0..sums.len()).map(of).collect())
    }

    /// What is asked of each layer down to the deepest: one part, or several where a walk's bound on chunks is passed.
    fn wanted(&self, sums: &[Sum]) -> Vec<Vec<Wanted>> {
        let depth = sums.iter().flatten().map(|(layer, _)| *layer as usize + 1).max().unwrap_or(0);
        let mut places: Vec<Vec<Place>> = vec![Vec::new(); depth];
        for (sum, columns) in (0..).zip(sums) {
            for &(layer, column) in columns {
                let t = layer as usize;
                let parent = self.starts(t).at_most(column).saturating_sub(1);
                let mut chunks = self.chunks_of(t, parent as u32, 0.0);
                // Damaged tables may know no such column: it has no weights then.
                if let Some(a) = chunks.find(|a| (a.column..a.column + a.width).contains(&column)) {
                    places[t].push(Place { chunk: a.chunk, column, child: column - a.column, sum });
                }
            }
        }
        let layer = |(t, mut places): (usize, Vec<Place>)| {
            let chunks = self.shape.layers[t].chunks;
            places.sort_by_key(|p| p.chunk);
            // Every section of a layer must be walked, though nothing is asked of it.
            let mut parts = vec![Wanted { slots: vec![0; chunks], ..Wanted::default() }];
            for same in places.chunk_by(|a, b| a.chunk == b.chunk) {
                if parts.last().is_some_and(|p| p.active.len() == MOST_ACTIVE) {
                    parts.push(Wanted { slots: vec![0; chunks], ..Wanted::default() });
                }
                let Some(part) = parts.last_mut() else { break };
                part.active.push(same[0].chunk);
                part.slots[same[0].chunk as usize] = part.active.len() as u16;
                part.columns.extend_from_slice(same);
                part.ends.push(part.columns.len());
            }
            parts
        };
        places.into_iter().enumerate().map(layer).collect()
    }

    /// Adds what a feature has to each sum.
    fn add_feature(&self, s: &mut Searcher, layers: &[Vec<Wanted>], f: u32, out: &mut [f32]) -> Result<()> {
        let sparse = Row { indices: &[f], values: &[1.0] };
        s.place(self, FeatureRow { sparse, dense: &[] })?;
        if s.cursors.is_empty() && !s.dense.any() {
            return Ok(());
        }
        s.head.fill(0.0);
        if self.shape.head_columns > 0 {
            let Searcher { isa, head, cursors, scratch, .. } = s;
            let words = self.shape.head_columns / 16;
            postings::add_head(*isa, self.area(), self.codes, words, cursors, scratch, head);
        }
        for (t, parts) in layers.iter().enumerate() {
            s.before.clone_from(&s.cursors);
            for wanted in parts {
                s.cursors.clone_from(&s.before);
                self.add_part(s, t, wanted, out);
            }
        }
        Ok(())
    }

    fn add_part(&self, s: &mut Searcher, t: usize, wanted: &Wanted, out: &mut [f32]) {
        let shape = &self.shape.layers[t];
        let stride = shape.stride();
        if shape.head.is_none() {
            let size = wanted.active.len() * stride + CHUNK;
            if s.sums.len() < size {
                s.sums.resize(size, 0.0);
            }
            s.sums[..size].fill(0.0);
            let layer = Layer {
                area: self.area(),
                codes: self.codes,
                chunks: shape.chunks,
                words: shape.words,
                active: &wanted.active,
                first_slot: 0,
                slots: &wanted.slots,
            };
            postings::add_layer(s.isa, &layer, &mut s.cursors, &mut s.scratch, &mut s.sums);
        }
        let mut begin = 0;
        for (i, end) in wanted.ends.iter().enumerate() {
            let places = &wanted.columns[std::mem::replace(&mut begin, *end)..*end];
            let sums = if shape.head.is_none() { &s.sums[i * stride..(i + 1) * stride] } else { &[] };
            // Few chunks have the feature at all.
            if shape.head.is_none() && !s.dense.any() && sums.iter().all(|sum| *sum == 0.0) {
                continue;
            }
            for place in places {
                let column = place.column as usize;
                let mut weight = [match shape.head {
                    Some(head) => s.head.get(head + column).copied().unwrap_or(0.0),
                    None => sums[place.child as usize],
                }];
                if s.dense.any() {
                    let (codes, scales) = self.panel(t, column);
                    add_columns(s.isa, self.dense.kind(), codes, scales, &s.dense, &mut weight);
                }
                out[place.sum as usize] += weight[0];
            }
        }
    }
}
