//! Recording of damage in the manifest: backups then take the chunks for unknown, and store them again where the source
//! still has them.
//!
//! Recorded are the chunks that are lost where they lie, not those that merely hang on them: these are whole again with
//! their bases. What was read and is sound is taken out of the record. Nothing is committed where nothing is new.

use super::options::CheckOptions;
use super::report::{DamageRecord, RecordOutcome};
use super::series::Learnt;
use crate::lease::{Purpose, acquire, now};
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::ReserveUse;
use std::collections::HashMap;

/// Records what was learnt of the series as `checked` describes it; `None` if nothing is new.
pub(super) fn record(
    repository: &Repository,
    checked: &Manifest,
    learnt: &Learnt,
    options: &CheckOptions,
    resources: &Resources,
) -> Option<DamageRecord> {
    let damaged = damage_after(checked, checked, learnt);
    if damaged == checked.damaged {
        return None;
    }
    let outcome = match &options.record {
        None => RecordOutcome::NotAsked,
        Some(user) => match commit(repository, checked, learnt, user, resources) {
            Ok(()) => RecordOutcome::Recorded,
            Err(error) => RecordOutcome::Failed { reason: error.to_string() },
        },
    };
    Some(DamageRecord {
        series: checked.name.clone(),
        damaged: (&damaged - &checked.damaged).len(),
        sound: (&checked.damaged - &damaged).len(),
        outcome,
    })
}

fn commit(
    repository: &Repository,
    checked: &Manifest,
    learnt: &Learnt,
    user: &str,
    resources: &Resources,
) -> Result<(), EngineError> {
    let purpose = Purpose { name: "check", user, take_over: false, reserve: ReserveUse::Keep };
    let mut writer = acquire(repository, &checked.name, &purpose, resources)?;
    let mut next = writer.manifest().clone();
    next.damaged = damage_after(&next, checked, learnt);
    if let Err(error) = writer.commit(next, false, now()) {
        let _ = writer.abandon(now());
        return Err(error.into());
    }
    Ok(())
}

/// The damage known of a series, given what was learnt of an earlier state of it: that counts for chunks that are still
/// where they were.
fn damage_after(manifest: &Manifest, checked: &Manifest, learnt: &Learnt) -> RoaringTreemap {
    let before: HashMap<ContainerId, _> = checked.containers.iter().map(|record| (record.id, record.salt)).collect();
    let mut in_place = RoaringTreemap::new();
    for record in manifest.containers.iter().filter(|record| before.get(&record.id) == Some(&record.salt)) {
        in_place |= record.numbers();
    }
    // What is borrowed lies with the lender; its number here stands for the same content for ever.
    in_place |= manifest.imported() & checked.imported();
    let damaged = &manifest.damaged - (&learnt.sound & &in_place);
    (damaged | (&learnt.damaged & in_place)) & manifest.live()
}
