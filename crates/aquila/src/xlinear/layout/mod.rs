//! The feature-major layout: where every weight of a model is stored.
//!
//! A query has about a hundred features and visits about ten parents per layer. Layouts that keep the weights of a
//! parent together (as PECOS, omikuji and napkinXC do) have a cache miss for every pair of the two. Here a feature's
//! weights of **all** layers are in one block, so a query costs about one miss per feature, and a feature's id is
//! stored once instead of once per parent. The bytes in memory are the bytes of the file.
//!
//! ## Chunks
//! A layer's columns are divided into *chunks*: the children of one parent, at most `16 · words` at a time. `words` is
//! the smallest number, up to 8 ([`CHUNK`] columns), for which 15 of 16 parents have one chunk; wider parents have
//! several, which share the parent's score. A query's accumulators of a chunk are `16 · words` floats.
//!
//! ## Places
//! All integers are little-endian and unaligned.
//!
//! * Directory: the position of each *bucket* of 16 features in the weight area, u32, or u64 in areas past 4 GiB.
//! * Bucket: 16 size bytes, then the blocks one after the other, so a block's position is 16 plus the sizes before it.
//!   Size 0: the feature has no weights. Size 4: instead of a block, the u32 distance from the start of the bucket to a
//!   large block after the others (a block of four bytes is padded to five).
//! * The area ends with [`PAD`] zero bytes: vector loads may read past a block's end.
//!
//! ## A block
//! If the model has a *head* (all top layers whose columns together, each layer padded to 16, are at most [`HEAD`]),
//! the head section comes first, followed by one section for each layer below.
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
//! Forms 1–12 continue with the number of rows `R` and the number of weights `n` (u16, wide: u32). A *row* holds the
//! weights of the feature in one chunk.
//!
//! * **Gaps**: each is the distance from the chunk after the last row's; the largest value means "add this, no row
//!   yet".
//! * **Bitmap**: one bit per chunk; then, for every group of chunks except the first, a number (u16, wide: u32): the
//!   number of weights before it for entries, the number of rows before it for masks. A group has 64 chunks; for
//!   entries it has 32, 16 or 8 where 64 chunks have more than 48, 96 or 192 weights on average.
//! * **Entries**: `n` bytes, child in bits 0–6 and "last of the row" in bit 7; then `n` weights. (Storing weight and
//!   child side by side saves a cache line per row, but rows must then be counted over twice the bytes: no gain.)
//! * **Masks** of one word: for every eight rows except the first eight, the number of weights before them (u16, wide:
//!   u32), a u16 for each row, then the weights of the set bits. With more words: the number of weights before each
//!   row, then for each row its `words` masks and its weights.
//! * **Pages**, for layers of more than [`PAGE`] chunks: u32 number of bytes that follow, u32 number of pages; for each
//!   page its number and the distance of its section from the section's own form byte (u32 both); then the sections,
//!   with chunks counted from the page's first.
//!
//! * **Full**: a weight for every accumulator of the layer (of the head), zeros where there is none. Sections below the
//!   head have a byte in front that gives the number of padding bytes before the weights, so that the weights start at
//!   a cache line, and with them the chunks that are as wide as one.
//!
//! Each section takes the smallest form, with two exceptions. Long lists, which cost a step for every row, are replaced
//! by bitmaps, which cost a step for every chunk of the beam. Sections are full where half of the accumulators have a
//! weight, in the section or in the layer as a whole, because then nothing needs to be looked up. (A byte of 0 is also
//! a weight, the smallest; a section that contains it takes another form.)
//!
//! ## Dense blocks
//! The weights of a dense block are stored separately, column by column: see [`panels`].
//!
//! ## Cost
//! About 2.5 bytes per weight for real text with 40,000 labels, 2.25 for denser features. PECOS, omikuji and napkinXC
//! use 8 and more.
//!
//! ## Limits
//! Fewer than 2³² features, columns and chunks per layer; a block below 4 GiB; at most 255 layers below the head.

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

/// Number of features in a bucket.
pub(crate) const BUCKET: usize = 16;
/// Bytes of a cache line, at which the weights of full sections start.
const LINE: usize = 64;
/// The size that marks a large block, which is stored elsewhere.
pub(crate) const LARGE: u8 = 4;
