//! Options of commands that lay chunks out: which way deltas point, and when containers are split.

use crate::environment;
use crate::error::CliError;
use crate::parse::{DeltaPolicy, Share};
use clap::Args;
use siltstone_engine::cost::LocationProfile;
use siltstone_engine::delta::Deltas;

/// How chunks are encoded and laid out.
#[derive(Args, Debug)]
pub(crate) struct LayoutArgs {
    /// `reverse[:DEPTH]`: what an older snapshot alone needs is stored as its difference from what took its place;
    /// `forward[:DEPTH]`: what is new as its difference from what the last snapshot has, in chains of at most DEPTH;
    /// off: everything whole [default: $SILT_DELTAS, or reverse; forward with --preset s3-internet]
    #[arg(long, value_name = "POLICY")]
    deltas: Option<DeltaPolicy>,
    /// Split a container once more than this share of it is superseded or belongs to older snapshots: less wastes less
    /// space and moves more bytes
    #[arg(long, value_name = "SHARE")]
    migrate_threshold: Option<Share>,
}

impl LayoutArgs {
    pub(crate) fn deltas(&self, profile: LocationProfile) -> Result<Deltas, CliError> {
        let set = || environment::parsed::<DeltaPolicy>("SILT_DELTAS");
        let policy = self.deltas.map_or_else(set, |policy| Ok(Some(policy)))?;
        Ok(policy.map_or_else(|| profile.deltas(), |policy| policy.0))
    }

    pub(crate) fn threshold(&self, profile: LocationProfile) -> f64 {
        self.migrate_threshold.map_or_else(|| profile.migrate_threshold(), |share| share.0)
    }
}
