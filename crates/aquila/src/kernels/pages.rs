//! Large pages for memory that is read in random order.
//!
//! The weights of a wide node fill thousands of pages of 4 KiB, and a step on a row reads a hundred of them: the TLB
//! misses as often as the caches do. Many systems provide large pages only on request.

use std::mem::MaybeUninit;

/// Minimum bytes for which the request pays.
const LARGE: usize = 4 << 20;

/// An empty vector with this capacity, for data that is read in random order.
pub(crate) fn large_vec<T>(capacity: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(capacity);
    prefer_large(out.spare_capacity_mut());
    out
}

/// Requests large pages for memory that has not been written to yet. The system may decline.
pub(crate) fn prefer_large<T>(fresh: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(fresh);
    if bytes < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // The smallest page size of x86-64. On other processors the system declines if the start is not page-aligned.
        const PAGE: usize = 4096;
        let skip = fresh.as_ptr().cast::<u8>().align_offset(PAGE);
        let at = fresh.as_mut_ptr().cast::<u8>().wrapping_add(skip);
        // SAFETY: the range is within the slice, and the advice does not change any byte of it.
        let _ = unsafe { libc::madvise(at.cast(), (bytes - skip) / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
}
