//! The cost of guessing a password: Argon2id, with parameters that stand in each slot.

use super::kernel;
use crate::error::StoreError;
use crate::secrets::PurposeKey;
use rayon::iter::{IntoParallelIterator as _, ParallelExtend as _, ParallelIterator as _};
use std::fmt;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The most passes over the whole of the memory allowed that a slot may demand: 8 GiB hashed for 512 MiB, a few
/// seconds.
const FULL_PASSES_MAX: u64 = 16;
/// The least memory that calibration chooses, in KiB: OWASP's recommendation of 2023, 19 MiB, in powers of two.
const CALIBRATED_MEMORY_KIB_MIN: u32 = 32 << 10;

/// The cost of guessing a password: the parameters of Argon2id (RFC 9106).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argon2Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// Lanes, which run on as many threads as there are cores.
    pub lanes: u32,
}

impl Argon2Cost {
    /// The cost for new slots: RFC 9106's second recommendation, 64 MiB, 3 passes and 4 lanes; about 0.15 s of
    /// processor time.
    pub const DEFAULT: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 4 };
    /// The cost for tests only: no protection at all.
    pub const TEST: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };
    /// The most accepted from a slot: a planted slot must not be able to eat the machine.
    pub const MAX: Self = Self { memory_kib: 4 << 20, passes: 64, lanes: 64 };

    /// Checks the cost against [`Argon2Cost::MAX`] and against what Argon2 itself demands.
    ///
    /// # Errors
    /// [`StoreError::Limit`] or [`StoreError::Damaged`], naming the object.
    pub fn validate(self, object: &impl fmt::Display) -> Result<(), StoreError> {
        let limits = [
            ("the password hash's memory in KiB", self.memory_kib, Self::MAX.memory_kib),
            ("the password hash's passes", self.passes, Self::MAX.passes),
            ("the password hash's lanes", self.lanes, Self::MAX.lanes),
        ];
        for (what, found, limit) in limits {
            if found > limit {
                return Err(StoreError::limit(object, what, found.into(), limit.into()));
            }
        }
        let sound = self.lanes >= 1 && self.passes >= 1 && self.memory_kib >= self.lanes.saturating_mul(8);
        if sound { Ok(()) } else { Err(StoreError::damaged(object, "cost", "Argon2 does not accept it")) }
    }

    /// Refuses a cost that takes more memory than this, or more time than sixteen passes over all of it.
    ///
    /// # Errors
    /// [`StoreError::KeyCost`], naming the object.
    pub fn afford(self, object: &impl fmt::Display, memory_bytes: u64) -> Result<(), StoreError> {
        let needed = u64::from(self.memory_kib) << 10;
        let hashed = needed.saturating_mul(self.passes.into());
        if needed <= memory_bytes && hashed <= memory_bytes.saturating_mul(FULL_PASSES_MAX) {
            return Ok(());
        }
        Err(StoreError::KeyCost {
            object: object.to_string(),
            demand: self.to_string(),
            needed_mib: needed.max(hashed.div_ceil(FULL_PASSES_MAX)).div_ceil(1 << 20),
            allowed_mib: memory_bytes >> 20,
        })
    }

    /// The cost closest to this one that takes about `target` to pay: more or fewer passes, and where a single pass
    /// takes longer, half the memory, and half of that, but not less than 32 MiB. `measure` pays a cost and says how
    /// long it took.
    pub fn calibrated(
        self,
        target: Duration,
        mut measure: impl FnMut(Self) -> Result<Duration, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut cost = Self { passes: 1, ..self };
        loop {
            let once = measure(cost)?.max(Duration::from_micros(1));
            if once > target && cost.memory_kib / 2 >= CALIBRATED_MEMORY_KIB_MIN {
                cost.memory_kib /= 2;
                continue;
            }
            let passes = u32::try_from(target.as_micros() / once.as_micros()).unwrap_or(u32::MAX);
            return Ok(Self { passes: passes.clamp(1, Self::MAX.passes), ..cost });
        }
    }

    /// Pays the cost once, for a password that is none.
    pub fn pay(self) -> Result<(), StoreError> {
        self.hash(b"", &[0; 16]).map(drop)
    }

    pub(super) fn hash(self, password: &[u8], salt: &[u8; 16]) -> Result<PurposeKey, StoreError> {
        let machine =
            |error: argon2::Error| StoreError::Machine { operation: "hashing the password", reason: error.to_string() };
        let parameters = argon2::Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).map_err(machine)?;
        let block_count = parameters.block_count();
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, parameters);
        let mut key = Zeroizing::new([0; 32]);
        let hash = || {
            let mut blocks = Vec::new();
            blocks.try_reserve_exact(block_count).map_err(|_| argon2::Error::OutOfMemory)?;
            // Blocks are read all over the memory: `snapshots` takes a third less time with huge pages.
            kernel::prefer_huge_pages(blocks.spare_capacity_mut());
            // The system clears each page when it is first written, which took a third of all the time with small ones:
            // the threads share that too.
            blocks.par_extend((0..block_count).into_par_iter().map(|_| argon2::Block::default()));
            argon2.hash_password_into_with_memory(password, salt, key.as_mut_slice(), blocks)
        };
        let began = Instant::now();
        in_threads(self.lanes, hash).map_err(machine)?;
        let (Self { memory_kib, passes, lanes }, milliseconds) = (self, began.elapsed().as_secs_f64() * 1e3);
        tracing::debug!(memory_kib, passes, lanes, milliseconds = milliseconds.round(), "hashed a password");
        Ok(PurposeKey::from_bytes(key))
    }
}

/// Runs what rayon spreads over threads: one for each lane, at most one for each core. Where the system gives none, the
/// calling thread does it alone; rayon's own pool would panic there.
fn in_threads<T: Send>(lanes: u32, work: impl FnOnce() -> T + Send) -> T {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = usize::try_from(lanes).map_or(cores, |lanes| lanes.min(cores));
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_) => {
            // It makes this thread a pool of one, which it stays; so a second time it is one already, and this fails.
            let _alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            work()
        }
    }
}

impl fmt::Display for Argon2Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.memory_kib {
            kib if kib.is_multiple_of(1024) => format!("{} MiB", kib >> 10),
            kib => format!("{kib} KiB"),
        };
        write!(f, "{memory} x {}, {} lanes", self.passes, self.lanes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::KeyId;
    use crate::storage::ObjectName;

    #[test]
    fn what_a_slot_may_cost_grows_with_the_memory_allowed() {
        let name = ObjectName::Key(KeyId([9; 16]));
        let cost = |memory_mib: u32, passes| Argon2Cost { memory_kib: memory_mib << 10, passes, lanes: 4 };
        let afford = |cost: Argon2Cost, mib: u64| cost.afford(&name, mib << 20);
        assert!(afford(Argon2Cost::DEFAULT, 64).is_ok() && afford(Argon2Cost::DEFAULT, 63).is_err());
        assert!(afford(cost(512, 16), 512).is_ok() && afford(cost(512, 17), 512).is_err());
        let error = afford(cost(4096, 64), 512).unwrap_err().to_string();
        for part in ["keys/0909", "4096 MiB x 64", "512 MiB", "16384 MiB", "another key"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn calibration_takes_more_passes_on_a_fast_machine_and_less_memory_on_a_slow_one() {
        let per_mib =
            |micros: u64| move |cost: Argon2Cost| Ok(Duration::from_micros(micros * u64::from(cost.memory_kib >> 10)));
        let (target, start) = (Duration::from_millis(500), Argon2Cost::DEFAULT);
        let calibrated = |micros| start.calibrated(target, per_mib(micros)).unwrap();
        assert_eq!(calibrated(1000), Argon2Cost { passes: 7, ..start });
        assert_eq!(calibrated(1), Argon2Cost { passes: 64, ..start });
        assert_eq!(calibrated(10_000), Argon2Cost { passes: 1, memory_kib: 32 << 10, ..start });
        assert_eq!(calibrated(1_000_000), Argon2Cost { passes: 1, memory_kib: 32 << 10, ..start });
    }
}
