//! From trained blocks to the weight area.
//!
//! Trained blocks hold their features in ascending order, so a range of features is a slice of every block. Ranges are
//! built in *waves*: first each thread goes through some of the blocks and distributes their pieces in the wave to the
//! ranges; then one thread per range transposes it by counting and encodes it feature by feature. A range is small
//! enough that counting stays in the near caches; a wave is large enough that visiting all blocks is worth the cache
//! misses. The order of ranges in the area does not depend on the threads. A wave is appended to the area while the
//! next one is built, so besides the area at most two waves are in memory.
//!
//! Cost: three passes over the pieces and their weights; cancelled between ranges.

use super::encode::{Encoder, Piece, Place};
use super::{BUCKET, LARGE, LINE, LayerShape, PAD, Shape};
use crate::control::Control;
use crate::error::{Result, fail};
use crate::kernels::prefer_large;
use crate::tree::LabelTree;
use crate::xlinear::{Block, LANES};
use rayon::prelude::*;

/// The laid-out weights, without the area itself.
pub(crate) struct Laid {
    /// The position of each bucket in the area.
    pub directory: Vec<u64>,
    /// Number of weights.
    pub weights: u64,
    /// The biases of every layer's columns.
    pub bias: Vec<Vec<f32>>,
}

/// Number of pieces per range: enough to spread the cost of encoding, few enough to stay in the near caches.
const PIECES_OF_RANGE: usize = 200_000;

/// Number of pieces of a wave per block: a wave visits every block at the cost of a few cache misses, so the cost of
/// the visits stays proportional to the pieces for any number of blocks.
const PIECES_OF_VISIT: usize = 64;

/// Minimum number of ranges of a wave per thread: more ranges balance the work better and hold more bytes.
const RANGES_OF_THREAD: usize = 6;

/// Number of parts per thread into which the blocks are divided.
const PARTS_OF_THREAD: usize = 4;

/// A sorted trained block with its cursor, which moves from wave to wave.
struct Source {
    block: Block,
    /// The next feature row, and its first code.
    row: usize,
    code: usize,
}

/// The pieces of some blocks in a range, block by block.
#[derive(Default)]
struct Dealt {
    /// Each piece with its feature.
    pieces: Vec<(u32, Piece)>,
    codes: Vec<u8>,
}

/// The pieces of all blocks in a range, feature by feature.
#[derive(Default)]
struct Transposed {
    /// The end of each feature's pieces and of its codes.
    ends: Vec<(u32, u32)>,
    pieces: Vec<Piece>,
    codes: Vec<u8>,
}

/// An encoded range, and the start of each of its buckets.
struct Range {
    bytes: Vec<u8>,
    buckets: Vec<u32>,
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
    let ranges_wanted = pieces.div_ceil(PIECES_OF_RANGE).max(1);
    check_blocks(&sources, features, width)?;
    let mut weights = vec![0; shape.layers.len()];
    for s in &sources {
        weights[s.block.layer as usize] += s.block.codes.len() / width;
    }
    let accumulators = shape.layers.iter().map(|l| features.saturating_mul(l.chunks * l.stride()));
    let dense: Vec<bool> = accumulators.zip(&weights).map(|(all, n)| 2 * n >= all).collect();

    let buckets = features.div_ceil(BUCKET);
    let bounds = bounds(&sources, features, ranges_wanted);
    let visits = (PIECES_OF_VISIT * sources.len()).div_ceil(PIECES_OF_RANGE);
    let most = visits.max(RANGES_OF_THREAD * control.thread_count());
    let mut directory = Vec::with_capacity(buckets);
    let area = image.len();
    let mut parts: Vec<Vec<Dealt>> = Vec::new();
    let mut made: Vec<Range> = Vec::new();
    let mut rest = &bounds[..];
    let append = |made: Vec<Range>, left: usize, image: &mut Vec<u8>, directory: &mut Vec<u64>| {
        let bytes: usize = made.iter().map(|range| range.bytes.len()).sum();
        if image.capacity() - image.len() < bytes {
            // The remaining ranges will need about as much each.
            let all = bytes + bytes / made.len() * left;
            image.reserve_exact(all + all / 32);
            prefer_large(image.spare_capacity_mut());
        }
        for range in made {
            let base = (image.len() - area) as u64;
            directory.extend(range.buckets.iter().map(|p| base + u64::from(*p)));
            image.extend_from_slice(&range.bytes);
        }
    };
    while rest.len() > 1 {
        let ranges = most.min(rest.len() - 1);
        let (wave, later) = (&rest[..=ranges], &rest[ranges..]);
        rest = later;
        let (last, count) = (rest.len() <= 1, PARTS_OF_THREAD * control.thread_count());
        let encoded = || -> Result<Vec<Range>> {
            control.check()?;
            deal(&mut sources, wave, width, &mut parts, control);
            control.check()?;
            let mut by_range = transpose(std::mem::take(&mut parts), ranges);
            let made = by_range
                .par_iter_mut()
                .zip(wave.par_windows(2))
                .map_init(Transposed::default, |transposed, (dealt, bounds)| {
                    control.check()?;
                    transposed.fill(dealt, bounds[0]..bounds[1], width);
                    if last {
                        dealt.clear();
                    }
                    encode(shape, &places, &dense, transposed, bounds[0], width)
                })
                .collect::<Result<Vec<Range>>>()?;
            parts = if last { Vec::new() } else { transpose(by_range, count) };
            Ok(made)
        };
        // One thread appends a wave while others build the next.
        let before = std::mem::take(&mut made);
        let left = ranges + rest.len() - 1;
        let (encoded, ()) = rayon::join(encoded, || append(before, left, image, &mut directory));
        made = encoded?;
    }
    // The remaining append does not need these gigabytes of small pieces.
    sources.into_par_iter().for_each(drop);
    append(made, 0, image, &mut directory);
    image.resize(image.len() + PAD, 0);
    let weights = weights.iter().sum::<usize>() as u64;
    Ok(Laid { directory, weights, bias })
}

/// Each parent's first chunk, layer by layer, and at the end the number of chunks.
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

/// Sorts the blocks, determines their positions and copies their biases.
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

/// Bounds of feature ranges with about the same number of pieces: whole buckets, computed from a histogram of the
/// pieces.
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

/// Moves every block's cursor over the wave and distributes the pieces it passes to the ranges, part by part. The
/// memory of the previous wave's parts is reused.
fn deal(
    sources: &mut [Source],
    wave: &[usize],
    width: usize,
    parts: &mut Vec<Vec<Dealt>>,
    control: &Control,
) {
    let part = sources.len().div_ceil(PARTS_OF_THREAD * control.thread_count()).max(1);
    let (origin, end) = (wave[0], wave[wave.len() - 1]);
    let mut range_of: Vec<u32> = vec![0; (end - origin).div_ceil(BUCKET)];
    for (range, bounds) in (0..).zip(wave.windows(2)) {
        range_of[(bounds[0] - origin) / BUCKET..(bounds[1] - origin).div_ceil(BUCKET)].fill(range);
    }
    parts.resize_with(sources.len().div_ceil(part), Vec::new);
    let deal = |((number, sources), ranges): ((usize, &mut [Source]), &mut Vec<Dealt>)| {
        ranges.resize_with(wave.len() - 1, Dealt::default);
        for dealt in &mut *ranges {
            dealt.pieces.clear();
            dealt.codes.clear();
        }
        for (place, s) in (number * part..).zip(sources) {
            if control.is_cancelled() {
                break;
            }
            let Block { features, masks, codes, .. } = &s.block;
            while let Some(&feature) = features.get(s.row).filter(|f| (**f as usize) < end) {
                let dealt = &mut ranges[range_of[(feature as usize - origin) / BUCKET] as usize];
                let mask = masks[s.row];
                dealt.pieces.push((feature, Piece { place: place as u32, mask }));
                let next = s.code + mask.count_ones() as usize * width;
                dealt.codes.extend_from_slice(&codes[s.code..next]);
                (s.row, s.code) = (s.row + 1, next);
            }
        }
    };
    sources.par_chunks_mut(part).enumerate().zip(parts).for_each(deal);
}

/// Converts lists of `n` items each into `n` lists: by part or by range.
fn transpose<T>(lists: Vec<Vec<T>>, n: usize) -> Vec<Vec<T>> {
    let mut out: Vec<Vec<T>> = (0..n).map(|_| Vec::with_capacity(lists.len())).collect();
    for list in lists {
        out.iter_mut().zip(list).for_each(|(out, item)| out.push(item));
    }
    out
}

impl Transposed {
    /// Transposes the pieces of the features `range`: counts the pieces and weights of each feature, then places them.
    fn fill(&mut self, dealt: &[Dealt], range: std::ops::Range<usize>, width: usize) {
        let Self { ends: at, pieces, codes } = self;
        at.clear();
        at.resize(range.len() + 1, (0, 0));
        for (f, piece) in dealt.iter().flat_map(|d| &d.pieces) {
            let at = &mut at[*f as usize - range.start];
            at.0 += 1;
            at.1 += piece.mask.count_ones();
        }
        let (mut pieces_before, mut codes_before) = (0, 0);
        for a in &mut *at {
            let (pieces, weights) = *a;
            *a = (pieces_before, codes_before);
            pieces_before += pieces;
            codes_before += weights * width as u32;
        }
        pieces.resize(pieces_before as usize, Piece::default());
        codes.resize(codes_before as usize, 0);
        for d in dealt {
            let mut code = 0;
            for (f, from) in &d.pieces {
                let (piece, to) = &mut at[*f as usize - range.start];
                pieces[*piece as usize] = *from;
                *piece += 1;
                let len = from.mask.count_ones() as usize * width;
                let (target, from) =
                    (&mut codes[*to as usize..*to as usize + len], &d.codes[code..code + len]);
                for (t, c) in target.iter_mut().zip(from) {
                    *t = *c;
                }
                *to += len as u32;
                code += len;
            }
        }
        // The end of each feature has become the start of the next.
        at.truncate(range.len());
    }
}

/// Encodes a range that begins with feature `origin`.
fn encode(
    shape: &Shape,
    places: &[Place],
    dense: &[bool],
    transposed: &Transposed,
    origin: usize,
    width: usize,
) -> Result<Range> {
    let Transposed { ends, pieces, codes } = transposed;
    let n = ends.len();
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
            let to = ends[f];
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
    // The alignment within the next range is preserved.
    out.resize(out.len().next_multiple_of(LINE), 0);
    Ok(Range { bytes: out, buckets: directory })
}
