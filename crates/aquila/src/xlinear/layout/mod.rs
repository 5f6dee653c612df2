//! The feature-major layout: where every weight of a model stands.
//!
//! A query has about a hundred features and meets about ten parents a layer. Layouts that keep the weights
//! of a parent together (all peers' do) pay a cache miss for every pair of the two; here a feature's
//! weights of **all** layers stand in one block, so a query costs about one miss a feature, and a feature's
//! id is stored once instead of once a parent. The bytes in memory are the bytes of the file.
//!
//! ## Chunks
//! A layer's columns are cut into *chunks*: the children of one parent, at most `16 · words` at a time, where `words`
//! is the least number, up to 8 ([`CHUNK`] columns), that makes 15 parents in 16 one chunk; the wider ones are
//! several, which share the parent's score. A query's accumulators of a chunk are `16 · words` floats.
//!
//! ## Places
//! All integers are little-endian and unaligned.
//!
//! * Directory: the place of each *bucket* of 16 features in the weight area, u32, or u64 in areas past 4 GiB.
//! * Bucket: 16 size bytes, then the blocks one after the other, so a block's place is 16 plus the sizes
//!   before it. Size 0: the feature has no weights. Size 4: not a block but the u32 distance from the
//!   bucket's begin to a large block behind the others (a block of four bytes is padded to five).
//! * The area ends with [`PAD`] zero bytes: vector loads may read past a block's end.
//!
//! ## A block
//! If the model has a *head* (all top layers whose columns together, each layer padded to 16, are at most
//! [`HEAD`]), the head section comes first; then one section for each layer below.
//!
//! * Head: one byte `n`. Up to 253: `n` column bytes, then `n` weights. 254: full, as below. 255: a u16 mask for every
//!   16 columns of the head, then the weights of the set bits.
//! * Section: one byte `form`, then:
//!
//! | form | parents | rows |
//! |---|---|---|
//! | 0 | none | |
//! | high nibble `R` ≥ 1, low nibble `n − R` | list of u8 gaps | entries |
//! | 1–4 | list of u8 gaps | bit 1 of `form − 1`: masks instead of entries; bit 0: wide counts |
//! | 5–8 | list of u16 gaps | the same |
//! | 9–12 | bitmap | the same |
//! | 13 | pages | |
//! | 14 | all | full |
//!
//! Forms 1–12 go on with the counts of rows `R` and of weights `n` (u16, wide: u32). A *row* is what the feature
//! has in one chunk.
//!
//! * **Gaps**: each is the distance from the chunk after the last row's; the largest value means "add this, no
//!   row yet".
//! * **Bitmap**: one bit a chunk; then for every group of chunks but the first a number (u16, wide: u32): the weights
//!   before it for entries, the rows before it for masks. A group has 64 chunks; for entries 32, 16 or 8 where 64
//!   have more than 48, 96 or 192 weights on average.
//! * **Entries**: `n` bytes, child in bits 0–6 and "last of the row" in bit 7; then `n` weights. (Weight and child
//!   side by side save a cache line a row, but rows must then be counted over twice the bytes: no gain.)
//! * **Masks** of one word: for every eight rows but the first eight the weights before them (u16, wide: u32),
//!   a u16 for each row, then the weights of the set bits. Of more words: the weights before each row, then for each
//!   row its `words` masks and its weights.
//! * **Pages**, for layers of more than [`PAGE`] chunks: u32 bytes of what follows, u32 number of pages; for each
//!   its number and the distance of its section from the section's own form byte (u32 both); then the sections,
//!   their chunks counted from the page's first.
//!
//! * **Full**: a weight for every accumulator of the layer (of the head), zeros where there is none. Sections below the
//!   head have a byte in front that says how many others stand between it and the weights, so that these begin at a
//!   cache line, and with them the chunks that are as wide as one.
//!
//! Each section takes the form that is smallest, except that long lists, which cost a step for every row, give
//! way to bitmaps, which cost a step for every chunk of the beam, and that sections are full where half of the
//! accumulators have a weight, in the section or in the layer as a whole: nothing need be looked up there. (A byte of 0
//! is a weight too, the smallest; a section that has it takes another form.)
//!
//! ## Dense blocks
//! Weights of a dense block stand apart, column beside column: see [`panels`].
//!
//! ## Cost
//! About 2.5 bytes a weight for real text of 40,000 labels, 2.25 for denser features. PECOS, omikuji and
//! napkinXC take 8 and more.
//!
//! ## Limits
//! Fewer than 2³² features, columns and chunks a layer; a block below 4 GiB; at most 255 layers below the head.

mod assemble;
mod encode;
mod panels;
mod shape;

pub(crate) use crate::kernels::postings::{
    CHUNK, FORM_FULL, FORM_PAGES, HEAD, HEAD_FULL, HEAD_MASKS, PAD, PAGE, group_shift,
};
pub(crate) use assemble::{first_chunks, lay_out};
pub(crate) use panels::Panels;
pub(crate) use shape::{LayerShape, Shape};

/// Features of a bucket.
pub(crate) const BUCKET: usize = 16;
/// Bytes of a cache line, at which full sections' weights begin.
const LINE: usize = 64;
/// The size that marks a large block, which stands elsewhere.
pub(crate) const LARGE: u8 = 4;
