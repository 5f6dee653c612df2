//! All `unsafe` arithmetic of the engine.
//!
//! Every kernel exists as safe scalar code that is always compiled. The vector forms are selected at run time according
//! to the processor ([`Isa::detect`]) and tested against the scalar version.

pub(crate) mod aligned;
pub(crate) mod batch16;
pub mod bf16;
pub mod dcd;
pub(crate) mod exp;
mod for_each_isa;
pub mod gram;
pub(crate) mod prefix_sum;
// Where no vector form is compiled, bf16 values and pairs are not used.
pub mod bf16_rows;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod lanes;
mod map;
pub(crate) mod matvec;
pub(crate) mod odds;
mod pages;
pub(crate) mod panels;
pub(crate) mod postings;
pub(crate) mod row_subset;
pub(crate) mod select;
pub(crate) mod sparse_dot2;
mod tiles;

pub(crate) use map::map_file;
pub(crate) use pages::prefer_large;
use std::ops::Range;

/// An instruction set that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust, on every target.
    Scalar,
    /// AVX2 with FMA, BMI and POPCNT, x86-64 only.
    Avx2,
    /// AVX-512 (F, BW, DQ, VL), x86-64 only.
    Avx512,
}

impl Isa {
    /// The best instruction set of this processor. The environment variable `AQUILA_ISA` (`scalar`, `avx2`, `avx512`)
    /// lowers it, for tests and comparisons; it cannot raise it.
    pub fn detect() -> Self {
        use std::sync::OnceLock;
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            let best = Self::of_processor();
            match std::env::var("AQUILA_ISA").as_deref() {
                Ok("scalar") => Self::Scalar,
                Ok("avx2") => best.min(Self::Avx2),
                _ => best,
            }
        })
    }

    /// Every instruction set that this processor can run, starting with scalar code.
    pub fn available() -> Vec<Self> {
        [Self::Scalar, Self::Avx2, Self::Avx512].into_iter().filter(|i| *i <= Self::of_processor()).collect()
    }

    /// Its name as shown to users.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this processor has the set.
    pub(crate) fn runs_here(self) -> bool {
        self <= Self::of_processor()
    }

    #[cfg(target_arch = "x86_64")]
    fn of_processor() -> Self {
        // Every processor with AVX2 has the bit instructions too, but nothing guarantees it.
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            _ => Self::Scalar,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_processor() -> Self {
        Self::Scalar
    }
}

/// Prefetches the line at this address. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch_line<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, at any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// How many rows ahead of the current one a sparse row's entries are prefetched.
const AHEAD: usize = 2;
/// How many rows ahead the address of these entries is prefetched: unless it is in the cache by then, the prefetch of
/// the entries waits for it, and a pass of the solver takes half as long again.
const FURTHER: usize = 8;

/// Prefetches sparse rows that will be read soon after row `at` of `rows`; `places` holds the range of each row. The
/// processor prefetches the rest once a row is being read, but it cannot predict where rows in random order start.
#[inline(always)]
pub(crate) fn prefetch_rows<P>(
    places: &[P],
    span: impl Fn(usize) -> Range<usize>,
    (idx, val): (&[u32], &[f32]),
    rows: &[u32],
    at: usize,
) {
    if let Some(&row) = rows.get(at + FURTHER) {
        prefetch_line(places.as_ptr().wrapping_add(row as usize));
    }
    if let Some(&row) = rows.get(at + AHEAD) {
        for line in span(row as usize).step_by(16).take(6) {
            prefetch_line(idx.as_ptr().wrapping_add(line));
            prefetch_line(val.as_ptr().wrapping_add(line));
        }
    }
}

/// Prefetches the cache line of a position, which may be past the end of the slice.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    prefetch_line(bytes.as_ptr().wrapping_add(at));
}
