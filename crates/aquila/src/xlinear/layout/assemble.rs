//! From trained blocks to the weight area.
//!
//! Trained blocks hold their features in ascending order, so a range of features is a slice of every block.
//! Ranges of some hundred thousand pieces are cut out, transposed by counting and encoded feature by feature, each
//! range by one thread; ranges follow each other in the area whatever thread made them. Beside the area only the
//! ranges at work are in memory.
//!
//! Cost: two passes over the pieces and one over the weights; cancelled between ranges.

use super::encode::{Encoder, Piece, Place};
use super::{BUCKET, LARGE, LINE, LayerShape, PAD, Shape};
use crate::control::Control;
use crate::error::{Result, fail};
use crate::tree::LabelTree;
use crate::xlinear::{Block, LANES};
use rayon::prelude::*;

/// The laid-out weights, beside the area itself.
pub(crate) struct Laid {
    /// Each bucket's place in the area.
    pub directory: Vec<u64>,
    /// Number of weights.
    pub weights: u64,
    /// The biases of every layer's columns.
    pub bias: Vec<Vec<f32>>,
}

/// Pieces that a range should have at least: enough to spread the cost of encoding over threads.
const PIECES_OF_RANGE: usize = 300_000;

/// Pieces of a range for each block: a range visits every block, at the price of a few cache misses each, so the cost of
/// the visits stays in proportion to the pieces however many blocks there are.
const PIECES_OF_VISIT: usize = 32;

/// Ranges that are made before any is appended, for each thread: more spread the work better and hold more bytes.
const RANGES_OF_THREAD: usize = 6;

/// A sorted trained block with the cursor of the pass over the ranges.
struct Source {
    block: Block,
    /// The next feature row, and the first code of it.
    row: usize,
    code: usize,
}

/// Some ranges after one another, with the row and code at which each begins and the last ends in every block.
struct Wave<'a> {
    bounds: &'a [usize],
    /// Block after block, as many as there are bounds for each.
    cuts: Vec<(u32, u32)>,
}

/// Appends the weight area to `image` and returns the directory and the biases.
pub(crate) fn lay_out(
    shape: &Shape,
    tree: &LabelTree,
    features: usize,
    width: usize,
    blocks: Vec<Block>,
    control: &Control,
    image: &mut Vec<u8>,
) -> Result<Laid> {
    let mut bias: Vec<Vec<f32>> = shape.layers.iter().map(|l| vec![f32::NEG_INFINITY; l.columns]).collect();
    let first_chunks = first_chunks(shape, tree);
    let (mut sources, places) = place(shape, tree, &first_chunks, blocks, &mut bias)?;
    let pieces = sources.iter().map(|s| s.block.features.len()).sum::<usize>();
    let cuts_wanted = pieces.div_ceil(PIECES_OF_RANGE.max(PIECES_OF_VISIT * sources.len())).max(1);
    check_blocks(&sources, features, width)?;
    let mut weights = vec![0; shape.layers.len()];
    for s in &sources {
        weights[s.block.layer as usize] += s.block.codes.len() / width;
    }
    let accumulators = shape.layers.iter().map(|l| features.saturating_mul(l.chunks * l.stride()));
    let dense: Vec<bool> = accumulators.zip(&weights).map(|(all, n)| 2 * n >= all).collect();

    let buckets = features.div_ceil(BUCKET);
    let bounds = bounds(&sources, features, cuts_wanted);
    let mut directory = Vec::with_capacity(buckets);
    let area = image.len();
    let mut rest = &bounds[..];
    while rest.len() > 1 {
        control.check()?;
        let ranges = (RANGES_OF_THREAD * control.thread_count()).min(rest.len() - 1);
        let wave = cut(&mut sources, &rest[..=ranges], width);
        rest = &rest[ranges..];
        let made: Vec<Result<(Vec<u8>, Vec<u32>)>> = (0..ranges)
            .into_par_iter()
            .map(|range| {
                control.check()?;
                encode(shape, &places, &dense, &sources, &wave, range, width)
            })
            .collect();
        for range in made {
            let (bytes, places) = range?;
            let base = (image.len() - area) as u64;
            directory.extend(places.iter().map(|p| base + u64::from(*p)));
            image.extend_from_slice(&bytes);
        }
    }
    image.resize(image.len() + PAD, 0);
    let weights = weights.iter().sum::<usize>() as u64;
    Ok(Laid { directory, weights, bias })
}

/// Each parent's first chunk, layer by layer, with the number of chunks at the end.
pub(crate) fn first_chunks(shape: &Shape, tree: &LabelTree) -> Vec<Vec<u32>> {
    let of = |(layer, shape): (&crate::tree::TreeLayer, &LayerShape)| {
        let mut first = Vec::with_capacity(layer.parents() + 1);
        let mut next = 0;
        for p in 0..layer.parents() {
            first.push(next);
            next += layer.children(p).len().div_ceil(shape.stride()) as u32;
        }
        first.push(next);
        first
    };
    tree.layers().iter().zip(&shape.layers).map(of).collect()
}

/// Sorts the blocks, finds their places and copies their biases.
fn place(
    shape: &Shape,
    tree: &LabelTree,
    first_chunks: &[Vec<u32>],
    mut blocks: Vec<Block>,
    bias: &mut [Vec<f32>],
) -> Result<(Vec<Source>, Vec<Place>)> {
    blocks.sort_unstable_by_key(|b| (b.layer, b.parent, b.first));
    if let Some(w) = blocks
        .windows(2)
        .find(|w| (w[0].layer, w[0].parent, w[0].first) == (w[1].layer, w[1].parent, w[1].first))
    {
        fail!(Internal, "two blocks of layer {}, parent {}, child {}", w[0].layer, w[0].parent, w[0].first);
    }
    let mut places = Vec::with_capacity(blocks.len());
    for b in &blocks {
        let name = || format!("block of layer {}, parent {}, child {}", b.layer, b.parent, b.first);
        let Some(layer) = tree.layers().get(b.layer as usize) else {
            fail!(Internal, "{}: the tree has {} layers", name(), tree.layers().len());
        };
        if b.parent as usize >= layer.parents() {
            fail!(Internal, "{}: the layer has {} parents", name(), layer.parents());
        }
        let children = layer.children(b.parent as usize);
        let lanes = b.lanes as usize;
        if lanes > LANES
            || !(b.first as usize).is_multiple_of(LANES)
            || b.first as usize + lanes > children.len()
        {
            fail!(Internal, "{}: {lanes} lanes do not fit {} children", name(), children.len());
        }
        let begin = children.start + b.first as usize;
        for (to, from) in bias[b.layer as usize][begin..begin + lanes].iter_mut().zip(&b.bias) {
            if from.is_nan() || *from == f32::INFINITY {
                fail!(NotFinite, "{}: a bias is {from}", name());
            }
            *to = *from;
        }
        let stride = shape.layers[b.layer as usize].stride() as u32;
        places.push(Place {
            layer: b.layer,
            chunk: first_chunks[b.layer as usize][b.parent as usize] + b.first / stride,
            word: b.first % stride / LANES as u32,
            head: shape.layers[b.layer as usize].head.map_or(0, |h| (h + begin) as u32),
        });
    }
    Ok((blocks.into_iter().map(|block| Source { block, row: 0, code: 0 }).collect(), places))
}

fn check_blocks(sources: &[Source], features: usize, width: usize) -> Result<()> {
    sources.par_iter().try_for_each(|s| {
        let b = &s.block;
        let lanes = ((1u32 << b.lanes) - 1) as u16;
        let ascending = b.features.windows(2).all(|w| w[0] < w[1]);
        let in_range = b.features.last().is_none_or(|f| (*f as usize) < features);
        let masks = b.masks.iter().all(|m| *m != 0 && m & !lanes == 0);
        let codes = b.weights() * width == b.codes.len() && b.codes.len() <= u32::MAX as usize;
        if !(ascending && in_range && masks && codes && b.features.len() == b.masks.len()) {
            fail!(
                Internal,
                "the block of layer {}, parent {}, child {} is malformed: {} features, {} masks, {} code bytes",
                b.layer,
                b.parent,
                b.first,
                b.features.len(),
                b.masks.len(),
                b.codes.len()
            );
        }
        Ok(())
    })
}

/// Bounds of feature ranges with about equally many pieces: whole buckets, found in a histogram of the pieces.
fn bounds(sources: &[Source], features: usize, ranges: usize) -> Vec<usize> {
    let buckets = features.div_ceil(BUCKET);
    let count = |part: &[Source]| {
        let mut count = vec![0u32; buckets];
        for s in part {
            s.block.features.iter().for_each(|f| count[*f as usize / BUCKET] += 1);
        }
        count
    };
    let part = sources.len().div_ceil(rayon::current_num_threads()).max(1);
    let counts: Vec<Vec<u32>> = sources.par_chunks(part).map(count).collect();
    let total: usize = sources.iter().map(|s| s.block.features.len()).sum();
    let share = total.div_ceil(ranges).max(1);
    let mut bounds = vec![0];
    let mut held = 0;
    for bucket in 0..buckets {
        held += counts.iter().map(|c| c[bucket] as usize).sum::<usize>();
        if held >= share && bucket + 1 < buckets {
            bounds.push((bucket + 1) * BUCKET);
            held = 0;
        }
    }
    bounds.push(features);
    bounds
}

/// Moves every block's cursor over the ranges.
fn cut<'a>(sources: &mut [Source], bounds: &'a [usize], width: usize) -> Wave<'a> {
    let mut cuts = vec![(0, 0); sources.len() * bounds.len()];
    let of_block = cuts.par_chunks_mut(bounds.len()).zip(sources).with_min_len(64);
    of_block.for_each(|(cuts, s)| {
        for (bound, cut) in bounds.iter().zip(cuts) {
            let begin = s.row;
            let rest = &s.block.features[begin..];
            // A range is usually short beside the block: look nearby first. The first bound moves nothing.
            let mut step = 16;
            while step < rest.len() && (rest[step] as usize) < *bound {
                step *= 2;
            }
            let near = &rest[..step.min(rest.len())];
            s.row += near.partition_point(|f| (*f as usize) < *bound);
            let ones: u32 = s.block.masks[begin..s.row].iter().map(|m| m.count_ones()).sum();
            s.code += ones as usize * width;
            *cut = (s.row as u32, s.code as u32);
        }
    });
    Wave { bounds, cuts }
}

/// The buckets of a range and where each begins.
fn encode(
    shape: &Shape,
    places: &[Place],
    dense: &[bool],
    sources: &[Source],
    wave: &Wave<'_>,
    range: usize,
    width: usize,
) -> Result<(Vec<u8>, Vec<u32>)> {
    let origin = wave.bounds[range];
    let n = wave.bounds[range + 1] - origin;
    let cuts = || wave.cuts.chunks_exact(wave.bounds.len()).map(|c| (c[range], c[range + 1]));
    // Transpose: count pieces and weights of each feature, then give each its place.
    let mut at = vec![(0u32, 0u32); n + 1];
    for (s, (begin, end)) in sources.iter().zip(cuts()) {
        let rows = begin.0 as usize..end.0 as usize;
        for (f, mask) in s.block.features[rows.clone()].iter().zip(&s.block.masks[rows]) {
            let at = &mut at[*f as usize - origin];
            at.0 += 1;
            at.1 += mask.count_ones();
        }
    }
    let (mut pieces_before, mut codes_before) = (0, 0);
    for a in &mut at {
        let (pieces, weights) = *a;
        *a = (pieces_before, codes_before);
        pieces_before += pieces;
        codes_before += weights * width as u32;
    }
    let mut pieces = vec![Piece::default(); pieces_before as usize];
    let mut codes = vec![0u8; codes_before as usize];
    for (place, (s, (begin, end))) in sources.iter().zip(cuts()).enumerate() {
        let (rows, mut code) = (begin.0 as usize..end.0 as usize, begin.1 as usize);
        for (f, &mask) in s.block.features[rows.clone()].iter().zip(&s.block.masks[rows]) {
            let (piece, to) = &mut at[*f as usize - origin];
            pieces[*piece as usize] = Piece { place: place as u32, mask };
            *piece += 1;
            let len = mask.count_ones() as usize * width;
            let (target, from) =
                (&mut codes[*to as usize..*to as usize + len], &s.block.codes[code..code + len]);
            for (t, c) in target.iter_mut().zip(from) {
                *t = *c;
            }
            *to += len as u32;
            code += len;
        }
    }
    // Each feature's end is now the next one's begin.
    let mut out = Vec::with_capacity(codes.len() * 5 / 2 + n);
    let mut directory = Vec::with_capacity(n.div_ceil(BUCKET));
    let mut encoder = Encoder::new(shape, places, dense, width);
    let (mut block, mut large) = (Vec::new(), Vec::new());
    let mut from = (0, 0);
    for bucket in (0..n).step_by(BUCKET) {
        let begin = out.len();
        directory.push(begin as u32);
        out.resize(begin + BUCKET, 0);
        large.clear();
        let mut larges: Vec<(usize, usize)> = Vec::new();
        let mut aligned = false;
        for f in bucket..(bucket + BUCKET).min(n) {
            let to = at[f];
            let (p, c) = (from.0 as usize..to.0 as usize, from.1 as usize..to.1 as usize);
            from = to;
            if p.is_empty() {
                continue;
            }
            block.clear();
            encoder.block(&pieces[p], &codes[c], &mut block);
            if block.len() == usize::from(LARGE) {
                block.push(0);
            }
            if block.len() <= usize::from(u8::MAX) {
                out[begin + f - bucket] = block.len() as u8;
                out.extend_from_slice(&block);
            } else {
                out[begin + f - bucket] = LARGE;
                if encoder.aligned {
                    aligned = true;
                    large.resize(large.len().next_multiple_of(LINE), 0);
                }
                larges.push((out.len(), large.len()));
                out.extend_from_slice(&[0; 4]);
                large.extend_from_slice(&block);
            }
        }
        if aligned {
            out.resize(out.len().next_multiple_of(LINE), 0);
        }
        let tail = out.len() - begin;
        for (place, distance) in larges {
            let Ok(distance) = u32::try_from(tail + distance) else {
                fail!(Unsupported, "16 features from {} on have over 4 GiB of weights", origin + bucket);
            };
            out[place..place + 4].copy_from_slice(&distance.to_le_bytes());
        }
        out.extend_from_slice(&large);
    }
    // What the next range aligns stays so.
    out.resize(out.len().next_multiple_of(LINE), 0);
    Ok((out, directory))
}
