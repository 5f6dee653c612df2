//! Which labels a prediction may name.

use crate::data::Csr;
use crate::error::{Result, fail};
use crate::tree::NODE;
use crate::xlinear::Model;

/// Which labels a prediction may name.
#[derive(Debug, Default)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Only these: see [`Model::allow`].
    Allowed(Allowed),
    /// For each row just these labels, all of them scored whatever the beam: rows × labels, values ignored.
    /// A row's result lists exactly its labels, best first; `k` does not shorten it, `floor` does.
    /// [`Model::search`] takes a matrix of one row.
    Chosen(Csr),
}

impl Scope {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Allowed(allowed) => allowed.layers.iter().map(|bits| size_of_val(&bits[..])).sum(),
            Self::Chosen(labels) => labels.bytes() as usize,
        }
    }
}

/// A set of labels prepared for search: subtrees without any of them are never entered.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// For each layer one bit a column, set where an allowed slot is at or below it.
    layers: Vec<Vec<u64>>,
}

impl Allowed {
    /// The bits of up to 128 columns in words of 16; false if none is set.
    pub(super) fn words(&self, layer: usize, column: usize, width: usize, words: &mut [u16; 8]) -> bool {
        let Some(bits) = self.layers.get(layer) else { return false };
        let word = |i: usize| bits.get(i).copied().unwrap_or(0);
        let mut any = 0;
        for (i, to) in words.iter_mut().enumerate() {
            let (at, left) = (column + 16 * i, width.saturating_sub(16 * i).min(16));
            let pair = u128::from(word(at / 64)) | u128::from(word(at / 64 + 1)) << 64;
            *to = (pair >> (at % 64)) as u16 & ((1u32 << left) - 1) as u16;
            any |= *to;
        }
        any != 0
    }
}

impl Model {
    /// Prepares a set of labels, ascending and unique, for [`Scope::Allowed`].
    pub fn allow(&self, labels: &[u32]) -> Result<Allowed> {
        let mut allowed = vec![0u64; self.labels.div_ceil(64)];
        let mut before = None;
        for &l in labels {
            if l as usize >= self.labels {
                fail!(IndexOutOfRange, "label {l} is not below the number of labels, {}", self.labels);
            }
            match before {
                Some(b) if b == l => fail!(DuplicateIndex, "label {l} stands twice among the allowed labels"),
                Some(b) if b > l => {
                    fail!(UnsortedIndices, "label {l} stands after label {b}: sort the allowed labels")
                }
                _ => before = Some(l),
            }
            allowed[l as usize / 64] |= 1 << (l % 64);
        }
        let is_set = |bits: &[u64], i: usize| bits.get(i / 64).is_some_and(|w| (w >> (i % 64)) & 1 != 0);
        // From the last layer up: a node is allowed where one of its children is.
        let mut layers: Vec<Vec<u64>> = Vec::new();
        for t in (0..self.shape.layers.len()).rev() {
            let shape = &self.shape.layers[t];
            let labels = self.slot_labels(t);
            let mut bits = vec![0u64; shape.columns.div_ceil(64)];
            let mut node = 0;
            for column in 0..shape.columns {
                let allowed_here = match labels.get(column) {
                    Some(label) if label != NODE => is_set(&allowed, label as usize),
                    _ => {
                        node += 1;
                        let starts = self.starts(t + 1 - usize::from(layers.is_empty()));
                        let below = layers.last();
                        let span = starts.get(node - 1).zip(starts.get(node));
                        below.zip(span).is_some_and(|(below, (from, to))| {
                            let end = (to as usize).min(64 * below.len());
                            any_set(below, from as usize, end)
                        })
                    }
                };
                bits[column / 64] |= u64::from(allowed_here) << (column % 64);
            }
            layers.push(bits);
        }
        layers.reverse();
        Ok(Allowed { layers })
    }
}

/// Whether some bit from `from` to below `to` is set.
fn any_set(bits: &[u64], from: usize, to: usize) -> bool {
    if from >= to {
        return false;
    }
    let (first, last) = (from / 64, (to - 1) / 64);
    let (low, high) = (u64::MAX << (from % 64), u64::MAX >> (63 - (to - 1) % 64));
    if first == last {
        return bits[first] & low & high != 0;
    }
    bits[first] & low != 0 || bits[last] & high != 0 || bits[first + 1..last].iter().any(|w| *w != 0)
}
