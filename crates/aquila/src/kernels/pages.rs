//! Large pages for memory that is read in random order.
//!
//! The weights of a wide node fill thousands of pages of 4 KiB, and a step on a row reads a hundred of them: the table
//! of recent pages misses as often as the caches do. Many systems give large pages only to those who ask.

use std::mem::MaybeUninit;

/// Bytes from which asking pays.
const LARGE: usize = 4 << 20;

/// An empty vector with so much room, which will be read in random order.
pub(crate) fn large_vec<T>(capacity: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(capacity);
    prefer_large(out.spare_capacity_mut());
    out
}

/// Asks the system for large pages under memory that nobody has written to yet. It may decline.
pub(crate) fn prefer_large<T>(fresh: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(fresh);
    if bytes < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // Smallest pages of x86-64; of other processors where the start is no page's, the system declines.
        const PAGE: usize = 4096;
        let skip = fresh.as_ptr().cast::<u8>().align_offset(PAGE);
        let at = fresh.as_mut_ptr().cast::<u8>().wrapping_add(skip);
        // SAFETY: the range lies within the slice, and advice changes no byte of it.
        let _ = unsafe { libc::madvise(at.cast(), (bytes - skip) / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
}
