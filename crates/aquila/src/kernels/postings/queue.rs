//! Products that wait to be added, so that rows of two entries cost no mispredicted branch each.

/// (accumulator, product) pairs that wait to be added.
#[derive(Debug)]
pub(super) struct Queue {
    pub places: Box<[u32; QUEUE + 16]>,
    pub products: Box<[f32; QUEUE + 16]>,
    pub len: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { places: Box::new([0; QUEUE + 16]), products: Box::new([0.0; QUEUE + 16]), len: 0 }
    }
}

/// Pairs in the queue before it is emptied; the vectors hold 16 more.
pub(super) const QUEUE: usize = 1024;

impl Queue {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.places) + size_of_val(&*self.products)
    }

    /// Adds all products to their sums.
    #[inline(always)]
    pub fn empty(&mut self, sums: &mut [f32]) {
        let len = self.len.min(QUEUE + 16);
        for (place, product) in self.places[..len].iter().zip(&self.products[..len]) {
            // The place is within the sums by the caller's sizes; the check costs nothing beside the add.
            if let Some(sum) = sums.get_mut(*place as usize) {
                *sum += product;
            }
        }
        self.len = 0;
    }

    /// Appends the first `n` of four pairs.
    #[inline(always)]
    pub fn put4(&mut self, places: [u32; 4], products: [f32; 4], n: usize) {
        let len = self.len;
        let (Some(p), Some(v)) = (self.places.get_mut(len..len + 4), self.products.get_mut(len..len + 4))
        else {
            return;
        };
        p.copy_from_slice(&places);
        v.copy_from_slice(&products);
        self.len = len + n;
    }

    /// Appends one pair. The queue has room: it is emptied whenever it holds [`QUEUE`].
    #[inline(always)]
    pub fn push(&mut self, place: u32, product: f32) {
        if let (Some(p), Some(v)) = (self.places.get_mut(self.len), self.products.get_mut(self.len)) {
            (*p, *v) = (place, product);
            self.len += 1;
        }
    }

    /// Whether 16 more pairs might not fit afterwards.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len >= QUEUE
    }
}
