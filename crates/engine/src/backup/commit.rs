//! The end of a backup: the commit.

use super::cache::{Cache, sketches_identity};
use super::needs::Needs;
use super::outcome::RunOutcome;
use super::previous::{add_containers, last_whole, partial_ids};
use super::run::BackupRun;
use super::select::Known;
use super::{borrow, heal, sketch_file};
use crate::EngineError;
use crate::forget;
use crate::lease::now;
use crate::maintain;
use crate::observer::Notice;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::series::{SeriesWriter, keep_reserve};
use siltstone_store::{ChunkNumber, ContainerId, SnapshotId};
use std::collections::HashSet;

impl<'t> BackupRun<'t> {
    /// Makes the snapshot true: containers durable, then the manifest, which drops the checkpoints; then, on this
    /// machine, the index for the next backup. `before` is the manifest at the beginning of the run.
    pub(super) fn commit(
        &self,
        writer: &mut SeriesWriter<'t>,
        before: &Manifest,
        outcome: RunOutcome,
        known: Option<&Known>,
        statistics: SnapshotStatistics,
    ) -> Result<SnapshotId, EngineError> {
        let needs = Needs {
            direct: &outcome.assembled.necessary,
            healed: &outcome.assembled.healed,
            next: (outcome.assembled.next_data, outcome.assembled.next_metadata),
            containers: &outcome.packed.containers,
            bases: &outcome.noted.bases,
        };
        let (necessary, is_exact) = self.necessary(before, &needs)?;
        let mut next = with_containers(writer.manifest(), &outcome);
        next.ghosts_due |= !is_exact;
        next.lends |= self.may_lend();
        for taken in &outcome.assembled.taken {
            borrow::settle(writer, &mut next, before, taken, &necessary)?;
        }
        let snapshot = Snapshot { statistics, ..outcome.snapshot };
        let id = snapshot.id;
        next.unsettled.extend(last_whole(&next).map(|before| before.id));
        next.push_snapshot(snapshot, &outcome.assembled.necessary, &necessary);
        next.sketch.merge(&outcome.assembled.sketch);
        next.sketch.keep(&next.live());
        let partial = partial_ids(&next);
        let mut dead = Vec::new();
        if !partial.is_empty() {
            (next, dead) = forget::without_checkpoints(self.repository, &next, &partial)?;
        }
        let is_settled = dead.is_empty()
            && next.damaged.is_empty()
            && maintain::settle_in_manifest(&mut next, self.options.migrate_threshold);
        // A lease that was given back says that nothing is left to be deleted.
        let is_settled = is_settled && names_all(&next, writer.manifest());
        self.commit_and_delete(writer, next, &dead, self.settles() && !is_settled)?;
        outcome.assembled.taken.iter().for_each(|taken| borrow::give_back(writer, taken));
        self.announce(writer.manifest(), outcome.assembled.directory, &outcome.assembled.account);

        // The snapshot stands; what follows makes the next run better and must not fail this one.
        let _ = keep_reserve(self.repository, writer.stored().bytes());
        if let Some(folder) = &self.resources.cache {
            let cache = Cache::new(folder, self.repository, writer.series());
            let key = self.repository.keys().cache_key();
            let direct = &outcome.assembled.necessary;
            if let Some(Err(error)) = outcome.catalog.map(|draft| draft.finish(id, direct)) {
                self.resources.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            }
            let runs = (outcome.assembled.index.into_runs(), outcome.assembled.older);
            if let Err(error) = self.save_index(&cache, runs, writer.manifest(), direct) {
                self.resources.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            }
            let identity = sketches_identity(writer.manifest(), id);
            let parts = [known.and_then(|known| known.records.as_ref()), outcome.noted.records.as_ref()];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let keep = |number: ChunkNumber| necessary.contains(number.0);
            match known.map(|_| sketch_file::save(&cache.sketches, &identity, &key, &parts, keep)) {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    self.resources.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
                }
                // It describes a snapshot that is the last no longer.
                None => drop(std::fs::remove_file(&cache.sketches)),
            }
        }
        Ok(id)
    }

    /// Commits what was healed, without a snapshot.
    pub(super) fn commit_healed(&self, writer: &mut SeriesWriter<'t>, outcome: &RunOutcome) -> Result<(), EngineError> {
        let next = with_containers(writer.manifest(), outcome);
        self.commit_and_delete(writer, next, &[], true)
    }

    /// Commits `next`, then deletes the containers that it no longer names, as others answer for all that they held,
    /// and those of this run that are `dead`.
    fn commit_and_delete(
        &self,
        writer: &mut SeriesWriter<'t>,
        mut next: Manifest,
        dead: &[ContainerRecord],
        keep_lease: bool,
    ) -> Result<(), EngineError> {
        let kept: HashSet<ContainerId> = next.containers.iter().map(|record| record.id).collect();
        let mut gone: Vec<ContainerRecord> = writer.manifest().containers.iter().chain(dead).cloned().collect();
        gone.retain(|record| !kept.contains(&record.id));
        gone.sort_by_key(|record| record.id);
        gone.dedup_by_key(|record| record.id);
        // Maintenance by somebody who may delete comes by here then.
        next.ghosts_due |= !gone.is_empty() && !self.repository.may_delete();
        if !next.damaged.is_empty() {
            self.resources.observer.notice(&Notice::DamageLeft { chunks: next.damaged.len() });
        }
        writer.commit(next, keep_lease, now())?;
        // The commit stands. What cannot be deleted now a later writer removes.
        let reason = writer.delete(&gone).err().map(|error| error.to_string());
        if !gone.is_empty() && (reason.is_some() || !self.repository.may_delete()) {
            let containers = gone.len() as u64;
            self.resources.observer.notice(&Notice::ContainersLeft { containers, reason });
        }
        Ok(())
    }
}

/// Tells whether a manifest names every container that the one before it names.
fn names_all(next: &Manifest, before: &Manifest) -> bool {
    let named: HashSet<ContainerId> = next.containers.iter().map(|record| record.id).collect();
    before.containers.iter().all(|record| named.contains(&record.id))
}

/// The manifest with the new containers, which answer for what was healed, and with what is known of damage.
fn with_containers(before: &Manifest, outcome: &RunOutcome) -> Manifest {
    let mut next = before.clone();
    next.next_data = outcome.assembled.next_data;
    next.next_metadata = outcome.assembled.next_metadata;
    next.damaged |= &outcome.found;
    next.damaged &= before.live();
    heal::hand_over(&mut next, &outcome.assembled.healed);
    if !outcome.assembled.healed.is_empty() {
        next.keep_imports(&(next.imported() - &outcome.assembled.healed));
    }
    add_containers(&mut next, &outcome.packed.containers);
    next
}
