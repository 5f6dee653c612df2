//! From an instruction set and a number of lanes to registers.

use super::Lanes;
use super::plain::Plain;
#[cfg(target_arch = "x86_64")]
use super::{pair::Pair, x86};
use crate::kernels::Isa;
#[cfg(target_arch = "x86_64")]
use crate::kernels::bf16;

/// Work that is written once over [`Lanes`]. Mark `run` as `inline(always)`: it takes on the instruction set of the
/// function that [`dispatch`] calls it from.
pub(crate) trait Work {
    /// What comes out.
    type Out;
    /// Whether it multiplies bf16 values.
    const BF16: bool = false;
    /// Does the work.
    ///
    /// # Safety
    /// The instruction set of `V` must have been detected.
    unsafe fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs the work with this many lanes (4, 8, 16 or 32), in the registers of the instruction set.
pub(crate) fn dispatch<W: Work>(isa: Isa, width: usize, work: W) -> W::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX2 and FMA.
            unsafe { work.run::<V>() }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn avx512<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX-512.
            unsafe { work.run::<V>() }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
        fn bf16<V: Lanes, W: Work>(work: W) -> W::Out {
            // SAFETY: callers of this function detected AVX-512 with BF16.
            unsafe { work.run::<V>() }
        }
        let isa = isa.min(Isa::of_processor());
        // SAFETY: `isa` is no more than what the processor was found to have.
        unsafe {
            if W::BF16 && isa == Isa::Avx512 && bf16::native() {
                match width {
                    32 => return bf16::<Pair<x86::H16>, W>(work),
                    16 => return bf16::<x86::H16, W>(work),
                    8 => return bf16::<x86::H8, W>(work),
                    4 => return bf16::<x86::H4, W>(work),
                    _ => {}
                }
            }
            match (isa, width) {
                (Isa::Avx512, 32) => return avx512::<Pair<x86::X16>, W>(work),
                (Isa::Avx512, 16) => return avx512::<x86::X16, W>(work),
                (Isa::Avx512, 8) => return avx512::<x86::X8, W>(work),
                (Isa::Avx512, 4) => return avx512::<x86::X4, W>(work),
                (Isa::Avx2, 32) => return avx2::<Pair<Pair<x86::X8>>, W>(work),
                (Isa::Avx2, 16) => return avx2::<Pair<x86::X8>, W>(work),
                (Isa::Avx2, 8) => return avx2::<x86::X8, W>(work),
                (Isa::Avx2, 4) => return avx2::<x86::X4, W>(work),
                _ => {}
            }
        }
    }
    let _ = isa;
    // SAFETY: plain code needs no instruction set.
    unsafe {
        match width {
            4 => work.run::<Plain<4>>(),
            8 => work.run::<Plain<8>>(),
            16 => work.run::<Plain<16>>(),
            32 => work.run::<Plain<32>>(),
            _ => panic!("lanes come in 4, 8, 16 or 32, not {width}"),
        }
    }
}
