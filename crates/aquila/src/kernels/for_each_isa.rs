//! Compiles plain loops as vector code for every instruction set.

/// Defines a function that selects the instruction set, and its bodies: the plain one, which is `inline(always)`,
/// compiled once for each set.
macro_rules! for_each_isa {
    ($(#[$doc:meta])* $name:ident => $plain:ident, $avx512:ident, $avx2:ident ($($arg:ident: $of:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name(isa: Isa, $($arg: $of),*) {
            match isa {
                // SAFETY: the instruction set was detected.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 if isa.runs_here() => unsafe { $avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 if isa.runs_here() => unsafe { $avx2($($arg),*) },
                _ => $plain($($arg),*),
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
        fn $avx512($($arg: $of),*) {
            $plain($($arg),*);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2($($arg: $of),*) {
            $plain($($arg),*);
        }
    };
}

pub(super) use for_each_isa;
