//! The dense values of a node's rows: floats, pairs of bf16 values, or products of rows with rows.

/// A subset of the rows of a dense block, not copied.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenseRows<'a> {
    values: Values<'a>,
    cols: usize,
    places: &'a [u32],
}

/// The values of a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    /// Floats.
    Floats(&'a [f32]),
    /// Pairs of bf16 values.
    Bf16(&'a [u32]),
    /// Products of rows with rows.
    Products(&'a [f32]),
}

impl Default for Values<'_> {
    fn default() -> Self {
        Self::Floats(&[])
    }
}

impl<'a> DenseRows<'a> {
    /// Takes a block with this many columns and the positions of the node's rows in it; with no columns there is no
    /// block.
    ///
    /// # Panics
    /// If a position is outside the block.
    pub fn new(values: &'a [f32], cols: usize, places: &'a [u32]) -> Self {
        Self::of(Values::Floats(values), values.len(), cols, places)
    }

    /// The same for a block of bf16 pairs. Weights are f32 and are rounded to bf16 only for margins.
    ///
    /// # Panics
    /// If a position is outside the block.
    pub fn bf16_pairs(pairs: &'a [u32], cols: usize, places: &'a [u32]) -> Self {
        Self::of(Values::Bf16(pairs), pairs.len(), cols, places)
    }

    /// The same for products of the node's rows with each other, with at least as many columns as rows: a row's weights
    /// are its signed duals.
    pub(in crate::kernels) fn products(products: &'a [f32], cols: usize, places: &'a [u32]) -> Self {
        assert!(places.len() <= cols);
        Self::of(Values::Products(products), products.len(), cols, places)
    }

    fn of(values: Values<'a>, len: usize, cols: usize, places: &'a [u32]) -> Self {
        if cols == 0 {
            return Self::default();
        }
        let rows = Self { values, cols, places };
        assert!(places.iter().all(|i| (*i as usize + 1) * rows.steps() <= len));
        rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.places.len()
    }

    /// The kind of values.
    pub(super) fn values(&self) -> Values<'a> {
        self.values
    }

    /// Number of floats or pairs in a row.
    #[inline(always)]
    pub(in crate::kernels) fn steps(&self) -> usize {
        match self.values {
            Values::Floats(_) | Values::Products(_) => self.cols,
            Values::Bf16(_) => self.cols.div_ceil(2),
        }
    }

    /// Whether values are pairs of bf16 values.
    pub(in crate::kernels) fn paired(&self) -> bool {
        matches!(self.values, Values::Bf16(_))
    }

    /// A row's floats, or the bits of its pairs.
    pub(in crate::kernels) fn row(&self, i: usize) -> impl Iterator<Item = f32> + 'a {
        let span = self.places[i] as usize * self.steps()..(self.places[i] as usize + 1) * self.steps();
        let (floats, pairs) = match self.values {
            Values::Floats(values) | Values::Products(values) => (&values[span], &[][..]),
            Values::Bf16(pairs) => (&[][..], &pairs[span]),
        };
        floats.iter().copied().chain(pairs.iter().map(|p| f32::from_bits(*p)))
    }

    /// Pointer to the first float, or pair, of a row.
    #[inline(always)]
    pub(in crate::kernels) fn at(&self, i: usize) -> *const f32 {
        let values = match self.values {
            Values::Floats(values) | Values::Products(values) => values.as_ptr(),
            Values::Bf16(pairs) => pairs.as_ptr().cast(),
        };
        values.wrapping_add(self.places[i] as usize * self.steps())
    }
}
