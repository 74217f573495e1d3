//! Cost of trying a password on a new key: options of the commands that make keys.

use crate::context::Context;
use crate::error::CliError;
use crate::parse::{Duration, Size};
use clap::Args;
use siltstone_store::keys::Argon2Cost;
use std::time::Instant;

/// Cost of trying a password on the new key (Argon2id)
#[derive(Args, Debug)]
#[allow(clippy::struct_field_names, reason = "the names of fields are those of the options")]
pub(crate) struct KdfArgs {
    /// Memory that trying a password on the new key takes (Argon2id)
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    kdf_memory: Size,
    /// Passes over that memory
    #[arg(long, value_name = "N", default_value_t = Argon2Cost::DEFAULT.passes)]
    kdf_passes: u32,
    /// Lanes of that memory
    #[arg(long, value_name = "N", default_value_t = Argon2Cost::DEFAULT.lanes)]
    kdf_lanes: u32,
    /// Choose the passes so that a try takes about this long on this machine, as 500ms; where one pass takes longer,
    /// less memory, down to 32M
    #[arg(long, value_name = "DURATION", conflicts_with = "kdf_passes")]
    kdf_time: Option<Duration>,
}

impl KdfArgs {
    /// The cost asked for. One that opening with the same `--memory` would refuse is refused here.
    pub(crate) fn cost(&self, context: &Context) -> Result<Argon2Cost, CliError> {
        let memory_kib = u32::try_from(self.kdf_memory.0 >> 10).unwrap_or(u32::MAX);
        let given = Argon2Cost { memory_kib, passes: self.kdf_passes, lanes: self.kdf_lanes };
        if given.passes == 0 || given.lanes == 0 || memory_kib < given.lanes.saturating_mul(8) {
            return Err(CliError::KdfTooCheap { memory_kib, passes: given.passes, lanes: given.lanes });
        }
        let check = |cost: Argon2Cost| {
            cost.validate(&"the new key")?;
            cost.afford(&"the new key", context.options.memory.0)?;
            Ok::<_, CliError>(cost)
        };
        match self.kdf_time {
            None => check(given),
            Some(time) => {
                check(Argon2Cost { passes: 1, ..given })?;
                check(given.calibrated(time.0, |cost| {
                    let begin = Instant::now();
                    cost.pay()?;
                    Ok(begin.elapsed())
                })?)
            }
        }
    }
}
