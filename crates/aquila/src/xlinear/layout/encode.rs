//! The block of one feature: its weights of all layers, each section in its smallest form.

use super::{FORM_FULL, FORM_PAGES, HEAD_FULL, HEAD_MASKS, LINE, LayerShape, PAGE, Shape, group_shift};

/// The position of a trained block's columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub layer: u32,
    pub chunk: u32,
    /// The block's first column within the chunk, in units of 16.
    pub word: u32,
    /// The block's first column within the head, for layers of the head.
    pub head: u32,
}

/// The entry of a feature in one trained block: the block's place and the lanes with a weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Piece {
    pub place: u32,
    pub mask: u16,
}

/// Lists longer than this are replaced by a bitmap of up to a few times their size: a query walks every row of a list,
/// but looks up only its beam in a bitmap.
const LONG_LIST: usize = 40;

/// Encodes one feature after another; holds the scratch memory.
pub(super) struct Encoder<'a> {
    shape: &'a Shape,
    places: &'a [Place],
    /// For each layer, whether the average feature has a weight in at least half of its columns.
    dense: &'a [bool],
    /// Bytes per weight.
    width: usize,
    /// Whether the last block should start at a cache line.
    pub aligned: bool,
    /// For each row of the current section, its chunk, and the number of pieces before it.
    chunks: Vec<u32>,
    pieces: Vec<u32>,
    /// Number of weights before each row and, at the end, the total.
    first: Vec<u32>,
}

/// Rows of a section, or of one page of it.
struct Span<'s> {
    pieces: &'s [Piece],
    /// The codes of their weights.
    codes: &'s [u8],
    rows: std::ops::Range<usize>,
    /// The first chunk of the range and the number of chunks.
    origin: u32,
    chunks: usize,
    words: usize,
}

impl<'a> Encoder<'a> {
    pub fn new(shape: &'a Shape, places: &'a [Place], dense: &'a [bool], width: usize) -> Self {
        Self {
            shape,
            places,
            dense,
            width,
            aligned: false,
            chunks: Vec::new(),
            pieces: Vec::new(),
            first: Vec::new(),
        }
    }

    /// Appends the block of a feature with these pieces, which are sorted by layer, chunk and word. Afterwards
    /// [`Self::aligned`] tells whether sections were aligned to cache lines, assuming that `out` starts at one.
    pub fn block(&mut self, pieces: &[Piece], codes: &[u8], out: &mut Vec<u8>) {
        self.aligned = false;
        let heads = self.shape.head_layers();
        let (mut at, mut code) = (0, 0);
        let mut take = |layer_below: usize, places: &[Place], width: usize| {
            let (from, codes_from) = (at, code);
            while at < pieces.len() && (places[pieces[at].place as usize].layer as usize) < layer_below {
                code += pieces[at].mask.count_ones() as usize * width;
                at += 1;
            }
            (from..at, codes_from..code)
        };
        if heads > 0 {
            let (p, c) = take(heads, self.places, self.width);
            self.head(&pieces[p], &codes[c], out);
        }
        for t in heads..self.shape.layers.len() {
            let (p, c) = take(t + 1, self.places, self.width);
            self.section(t, &pieces[p], &codes[c], out);
        }
    }

    fn head(&self, pieces: &[Piece], codes: &[u8], out: &mut Vec<u8>) {
        let (n, words) = (codes.len() / self.width, self.shape.head_columns / 16);
        let columns = pieces.iter().flat_map(|p| {
            let first = self.places[p.place as usize].head;
            lanes(p.mask).map(move |lane| first + lane)
        });
        if 2 * n >= 16 * words && self.none_is_zero(codes) {
            out.push(HEAD_FULL);
            let begin = out.len();
            out.resize(begin + 16 * words * self.width, 0);
            for (column, code) in columns.zip(codes.chunks_exact(self.width)) {
                let at = begin + column as usize * self.width;
                out[at..at + self.width].copy_from_slice(code);
            }
            return;
        }
        if 2 * words + n < 2 * n || n >= usize::from(HEAD_FULL) {
            let mut masks = [0u16; super::HEAD / 16];
            columns.for_each(|c| masks[c as usize / 16] |= 1 << (c % 16));
            out.push(HEAD_MASKS);
            masks[..words].iter().for_each(|m| out.extend_from_slice(&m.to_le_bytes()));
        } else {
            out.push(n as u8);
            out.extend(columns.map(|c| c as u8));
        }
        out.extend_from_slice(codes);
    }

    fn section(&mut self, layer: usize, pieces: &[Piece], codes: &[u8], out: &mut Vec<u8>) {
        if pieces.is_empty() {
            out.push(0);
            return;
        }
        self.chunks.clear();
        self.pieces.clear();
        self.first.clear();
        let mut weights = 0;
        for (i, piece) in pieces.iter().enumerate() {
            let chunk = self.places[piece.place as usize].chunk;
            if self.chunks.last() != Some(&chunk) {
                self.chunks.push(chunk);
                self.pieces.push(i as u32);
                self.first.push(weights);
            }
            weights += piece.mask.count_ones();
        }
        self.pieces.push(pieces.len() as u32);
        self.first.push(weights);
        let shape = &self.shape.layers[layer];
        if self.is_full(layer, codes) {
            return self.full(shape, pieces, codes, out);
        }
        let rows = 0..self.chunks.len();
        let whole = Span { pieces, codes, rows, origin: 0, chunks: shape.chunks, words: shape.words };
        if shape.chunks <= PAGE {
            return self.span(&whole, out);
        }
        // More chunks than a bitmap should have: use one list, or pages that each have their best form.
        let begin = out.len();
        let begin_list = begin;
        if whole.rows.len() <= 4 * LONG_LIST {
            self.span(&whole, out);
            if whole.rows.len() <= LONG_LIST {
                return;
            }
        }
        let list = out.split_off(begin_list);
        self.pages(&whole, out);
        if !list.is_empty() && list.len() < out.len() - begin {
            out.truncate(begin);
            out.extend_from_slice(&list);
        }
    }

    /// Whether a section should have a code for every column: where at least half of the columns have a weight, in the
    /// section or in the layer as a whole, and no weight has the code that means "none".
    fn is_full(&self, layer: usize, codes: &[u8]) -> bool {
        let accumulators = self.shape.layers[layer].chunks * self.shape.layers[layer].stride();
        (self.dense[layer] || 2 * codes.len() >= accumulators * self.width) && self.none_is_zero(codes)
    }

    /// Whether no weight has the code that means "none" where every column has a code.
    fn none_is_zero(&self, codes: &[u8]) -> bool {
        codes.chunks_exact(self.width).all(|code| code.iter().any(|byte| *byte != 0))
    }

    fn full(&mut self, shape: &LayerShape, pieces: &[Piece], codes: &[u8], out: &mut Vec<u8>) {
        let bytes = shape.chunks * shape.stride() * self.width;
        // Only the position of large blocks is known in advance.
        let aligned = bytes > usize::from(u8::MAX);
        self.aligned |= aligned;
        let pad = if aligned { (out.len() + 2).next_multiple_of(LINE) - out.len() - 2 } else { 0 };
        out.extend_from_slice(&[FORM_FULL, pad as u8]);
        let begin = out.len() + pad;
        out.resize(begin + bytes, 0);
        let mut codes = codes.chunks_exact(self.width);
        for piece in pieces {
            let place = &self.places[piece.place as usize];
            let first = place.chunk as usize * shape.stride() + 16 * place.word as usize;
            for (lane, code) in lanes(piece.mask).zip(&mut codes) {
                let at = begin + (first + lane as usize) * self.width;
                out[at..at + self.width].copy_from_slice(code);
            }
        }
    }

    fn pages(&self, whole: &Span<'_>, out: &mut Vec<u8>) {
        let begin = out.len();
        let mut spans: Vec<(u32, std::ops::Range<usize>)> = Vec::new();
        for row in whole.rows.clone() {
            let page = self.chunks[row] / PAGE as u32;
            match spans.last_mut() {
                Some((last, rows)) if *last == page => rows.end = row + 1,
                _ => spans.push((page, row..row + 1)),
            }
        }
        out.push(FORM_PAGES);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(spans.len() as u32).to_le_bytes());
        let directory = out.len();
        out.resize(directory + 8 * spans.len(), 0);
        for (i, (page, rows)) in spans.into_iter().enumerate() {
            let entry = directory + 8 * i;
            let distance = (out.len() - begin) as u32;
            out[entry..entry + 4].copy_from_slice(&page.to_le_bytes());
            out[entry + 4..entry + 8].copy_from_slice(&distance.to_le_bytes());
            let origin = page * PAGE as u32;
            self.span(&Span { rows, origin, chunks: PAGE, ..*whole }, out);
        }
        let bytes = (out.len() - begin - 5) as u32;
        out[begin + 1..begin + 5].copy_from_slice(&bytes.to_le_bytes());
    }

    /// Appends rows in their smallest form.
    fn span(&self, s: &Span<'_>, out: &mut Vec<u8>) {
        let rows = s.rows.len();
        let first = self.first[s.rows.start];
        let n = (self.first[s.rows.end] - first) as usize;
        let wide = rows > 0xffff || n > 0xffff;
        let count = if wide { 4 } else { 2 };
        let (gaps8, gaps16) = (self.gaps_size(s, 1), self.gaps_size(s, 2));
        let list_size = gaps8.min(gaps16);
        let small = gaps8 <= gaps16 && rows < 16 && n - rows < 16;
        let (mut best, mut bitmap, mut masks) = (usize::MAX, false, false);
        for with_masks in [false, true] {
            let body = match (with_masks, s.words) {
                (false, _) => n,
                (true, 1) => 2 * rows + count * ((rows - 1) / 8),
                (true, words) => (2 * words + count) * rows,
            };
            let groups = s.chunks.div_ceil(1 << group_shift(with_masks, n, s.chunks)) - 1;
            let list = if small && !with_masks { list_size } else { 2 * count + list_size };
            let map = 2 * count + s.chunks.div_ceil(8) + count * groups;
            let mapped = s.chunks <= PAGE && if rows > LONG_LIST { map < 10 * list } else { map <= list };
            let size = body + if mapped { map } else { list };
            if size < best {
                (best, bitmap, masks) = (size, mapped, with_masks);
            }
        }
        let small = small && !masks && !bitmap;
        if small {
            out.push(((rows as u8) << 4) | (n - rows) as u8);
        } else {
            let kind = if bitmap { 2 } else { u8::from(gaps16 < gaps8) };
            out.push(1 + 4 * kind + 2 * u8::from(masks) + u8::from(wide));
            put(out, rows, count);
            put(out, n, count);
        }
        if bitmap {
            self.bitmap(s, masks, count, out);
        } else {
            self.gaps(s, if gaps8 <= gaps16 { 1 } else { 2 }, out);
        }
        let pieces = &s.pieces[self.pieces[s.rows.start] as usize..self.pieces[s.rows.end] as usize];
        let from = first as usize * self.width;
        let codes = &s.codes[from..from + n * self.width];
        if masks {
            self.masks(s, pieces, codes, count, out);
            return;
        }
        let mut row = s.rows.start;
        let begin = out.len();
        for (i, piece) in (1..).zip(pieces) {
            let word = self.places[piece.place as usize].word as u8 * 16;
            out.extend(lanes(piece.mask).map(|lane| word | lane as u8));
            if self.pieces[row + 1] as usize == self.pieces[s.rows.start] as usize + i {
                let last = out.len() - 1;
                out[last] |= 128;
                row += 1;
            }
        }
        debug_assert_eq!(out.len() - begin, n);
        out.extend_from_slice(codes);
    }

    fn gaps_size(&self, s: &Span<'_>, bytes: usize) -> usize {
        let go_on = (1u32 << (8 * bytes)) - 1;
        let mut next = s.origin;
        let mut size = 0;
        for &chunk in &self.chunks[s.rows.clone()] {
            size += bytes * (1 + ((chunk - next) / go_on) as usize);
            next = chunk + 1;
        }
        size
    }

    fn gaps(&self, s: &Span<'_>, bytes: usize, out: &mut Vec<u8>) {
        let go_on = (1u32 << (8 * bytes)) - 1;
        let mut next = s.origin;
        for &chunk in &self.chunks[s.rows.clone()] {
            let mut gap = chunk - next;
            while gap >= go_on {
                put(out, go_on as usize, bytes);
                gap -= go_on;
            }
            put(out, gap as usize, bytes);
            next = chunk + 1;
        }
    }

    fn bitmap(&self, s: &Span<'_>, masks: bool, count: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + s.chunks.div_ceil(8), 0);
        for &chunk in &self.chunks[s.rows.clone()] {
            let bit = (chunk - s.origin) as usize;
            out[begin + bit / 8] |= 1 << (bit % 8);
        }
        let mut row = s.rows.start;
        let n = (self.first[s.rows.end] - self.first[s.rows.start]) as usize;
        let shift = group_shift(masks, n, s.chunks);
        for group in 1..s.chunks.div_ceil(1 << shift) as u32 {
            let below = s.origin + (group << shift);
            while row < s.rows.end && self.chunks[row] < below {
                row += 1;
            }
            let weights = self.first[row] - self.first[s.rows.start];
            put(out, if masks { row - s.rows.start } else { weights as usize }, count);
        }
    }

    fn masks(&self, s: &Span<'_>, pieces: &[Piece], codes: &[u8], count: usize, out: &mut Vec<u8>) {
        let before = |row: usize| (self.first[row] - self.first[s.rows.start]) as usize;
        if s.words == 1 {
            for row in s.rows.clone().step_by(8).skip(1) {
                put(out, before(row), count);
            }
            pieces.iter().for_each(|p| out.extend_from_slice(&p.mask.to_le_bytes()));
            out.extend_from_slice(codes);
            return;
        }
        for row in s.rows.clone() {
            put(out, before(row), count);
        }
        for row in s.rows.clone() {
            let begin = out.len();
            out.resize(begin + 2 * s.words, 0);
            for piece in &s.pieces[self.pieces[row] as usize..self.pieces[row + 1] as usize] {
                let at = begin + 2 * self.places[piece.place as usize].word as usize;
                out[at..at + 2].copy_from_slice(&piece.mask.to_le_bytes());
            }
            out.extend_from_slice(&codes[before(row) * self.width..before(row + 1) * self.width]);
        }
    }
}

/// The set bits of a mask, lowest first.
fn lanes(mut mask: u16) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros();
            mask &= mask - 1;
            lane
        })
    })
}

/// Appends a number of 1, 2 or 4 bytes.
fn put(out: &mut Vec<u8>, value: usize, bytes: usize) {
    out.extend_from_slice(&(value as u32).to_le_bytes()[..bytes]);
}
