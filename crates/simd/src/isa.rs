//! The choice of an instruction set: those this CPU has, those the user allows, and the jump to it.

use crate::{Kernel, Portable};
use Level::{Portable as PortableLevel, Scalar};
use core::fmt;

/// An instruction set this CPU has. [`Isa::available`], [`Isa::best`] and [`Isa::by_name`] are the only ways to one, so
/// having it is the proof that its instructions can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(pub(crate) Level);

/// Every instruction set there is code for, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(dead_code)] // Each target knows all names and has some.
pub(crate) enum Level {
    Scalar,
    Portable,
    Sse2,
    Ssse3,
    Avx2,
    Avx2Gfni,
    Avx512,
    Avx512Gfni,
    Neon,
}

const LEVELS: [Level; 9] = [
    Scalar,
    PortableLevel,
    Level::Sse2,
    Level::Ssse3,
    Level::Avx2,
    Level::Avx2Gfni,
    Level::Avx512,
    Level::Avx512Gfni,
    Level::Neon,
];

impl Isa {
    /// No vectors.
    pub const SCALAR: Self = Self(Scalar);

    /// The environment variable that lowers the choice.
    pub const VARIABLE: &'static str = "SILT_ISA";

    /// All that this CPU has, lowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        LEVELS.into_iter().filter(|level| level.is_there()).map(Self)
    }

    /// The one of that name, if this CPU has it.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::available().find(|isa| isa.name() == name)
    }

    /// The highest this CPU has.
    pub fn highest() -> Self {
        Self::available().last().unwrap_or(Self::SCALAR)
    }

    /// The highest, or what the environment variable `SILT_ISA` names.
    ///
    /// # Errors
    /// [`UnknownIsa`] if the variable names none that this CPU has.
    #[cfg(feature = "std")]
    pub fn chosen() -> Result<Self, UnknownIsa> {
        let name = std::env::var_os(Self::VARIABLE).unwrap_or_default();
        if name.is_empty() {
            return Ok(Self::highest());
        }
        let name = name.to_string_lossy();
        Self::by_name(&name).ok_or_else(|| UnknownIsa { name: name.into_owned() })
    }

    /// The highest, or what the environment variable `SILT_ISA` names if this CPU has it; read once.
    pub fn best() -> Self {
        #[cfg(feature = "std")]
        {
            static BEST: std::sync::OnceLock<Isa> = std::sync::OnceLock::new();
            *BEST.get_or_init(|| Self::chosen().unwrap_or_else(|_| Self::highest()))
        }
        #[cfg(not(feature = "std"))]
        Self::highest()
    }

    /// Returns the name of the instruction set.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Scalar => "scalar",
            PortableLevel => "portable",
            Level::Sse2 => "sse2",
            Level::Ssse3 => "ssse3",
            Level::Avx2 => "avx2",
            Level::Avx2Gfni => "avx2-gfni",
            Level::Avx512 => "avx512",
            Level::Avx512Gfni => "avx512-gfni",
            Level::Neon => "neon",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `SILT_ISA` names no instruction set of this CPU.
#[cfg(feature = "std")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownIsa {
    /// The name that is unknown.
    pub name: std::string::String,
}

#[cfg(feature = "std")]
impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} names no instruction set of this CPU; unset it or choose one of:", Isa::VARIABLE, self.name)?;
        Isa::available().try_for_each(|isa| write!(f, " {isa}"))
    }
}

#[cfg(feature = "std")]
impl std::error::Error for UnknownIsa {}

/// Detection and dispatch of the levels of one architecture: for each, its detection, its token and its features.
macro_rules! levels {
    ($($(#[$only:meta])* $level:ident $detected:expr, $token:expr, $wrapper:ident $features:literal;)*) => {
        impl Level {
            fn is_there(self) -> bool {
                match self {
                    Scalar | PortableLevel => true,
                    $($(#[$only])* Level::$level => $detected,)*
                    #[allow(unreachable_patterns)]
                    _ => false,
                }
            }
        }

        impl Isa {
            /// Runs the kernel with the vectors of this instruction set; `None` for `scalar`, which has none.
            #[inline]
            pub fn run<K: Kernel>(self, kernel: K) -> Option<K::Output> {
                match self.0 {
                    Scalar => None,
                    PortableLevel => Some(kernel.run(Portable::new())),
                    // SAFETY: an `Isa` of this level exists only where `is_there` found its features.
                    $($(#[$only])* Level::$level => Some(unsafe { $wrapper(kernel) }),)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }

        $(
            /// # Safety
            /// The CPU must have the features.
            $(#[$only])*
            #[target_feature(enable = $features)]
            #[allow(unused_unsafe)] // A token of the baseline needs no proof.
            unsafe fn $wrapper<K: Kernel>(kernel: K) -> K::Output {
                // SAFETY: the caller promises the features.
                kernel.run(unsafe { $token })
            }
        )*
    };
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
macro_rules! has {
    ($($feature:tt),*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
}
#[cfg(all(not(feature = "std"), target_arch = "x86_64"))]
macro_rules! has {
    ($($feature:tt),*) => { $(cfg!(target_feature = $feature))&&* };
}

#[cfg(target_arch = "x86_64")]
levels! {
    Sse2 true, crate::Sse::<false>::new(), run_sse2 "sse2";
    Ssse3 has!("ssse3"), crate::Sse::<true>::new(), run_ssse3 "ssse3";
    Avx2 has!("avx2", "bmi1", "bmi2", "lzcnt", "popcnt"),
        crate::Avx2::<false>::new(), run_avx2 "avx2,bmi1,bmi2,lzcnt,popcnt";
    #[cfg(knows_avx512)]
    Avx2Gfni has!("avx2", "bmi1", "bmi2", "lzcnt", "popcnt", "gfni", "aes", "vaes"),
        crate::Avx2::<true>::new(), run_avx2_gfni "avx2,bmi1,bmi2,lzcnt,popcnt,gfni,aes,vaes";
    #[cfg(knows_avx512)]
    Avx512 has!("avx512f", "avx512bw", "avx512vl", "avx512dq", "bmi1", "bmi2", "lzcnt", "popcnt"),
        crate::Avx512::<false>::new(), run_avx512 "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,lzcnt,popcnt";
    #[cfg(knows_avx512)]
    Avx512Gfni has!(
        "avx512f", "avx512bw", "avx512vl", "avx512dq", "bmi1", "bmi2", "lzcnt", "popcnt", "avx512vbmi", "gfni", "aes", "vaes"
    ),
        crate::Avx512::<true>::new(), run_avx512_gfni
        "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,lzcnt,popcnt,avx512vbmi,gfni,aes,vaes";
}

#[cfg(target_arch = "aarch64")]
levels! {
    Neon true, crate::Neon::new(), run_neon "neon";
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
levels! {}

/// Returns the `ISA` of a token.
pub(crate) const fn isa(level: Level) -> Isa {
    Isa(level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Simd;

    struct Which;

    impl Kernel for Which {
        type Output = Isa;
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> Isa {
            S::ISA
        }
    }

    #[test]
    fn each_level_runs_its_own_token() {
        for isa in Isa::available() {
            assert_eq!(isa.run(Which).unwrap_or(Isa::SCALAR), isa);
            assert_eq!(Isa::by_name(isa.name()), Some(isa));
        }
        assert_eq!(Isa::by_name("mmx"), None);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    fn what_the_processor_has_is_left_out_for_old_compilers_alone() {
        let is_there = has!("avx512f", "avx512bw", "avx512vl", "avx512dq", "bmi1", "bmi2", "lzcnt", "popcnt");
        assert_eq!(Isa::by_name("avx512").is_some(), is_there && cfg!(knows_avx512));
        let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let output = std::process::Command::new(rustc).arg("--version").output().expect("the compiler");
        let knows = minor(&std::string::String::from_utf8_lossy(&output.stdout)).map(|minor| minor >= 89);
        assert_eq!(knows, Some(cfg!(knows_avx512)));
    }
}
