//! The check of one series, against one of its manifests.

use super::help::Help;
use super::options::CheckOptions;
use super::report::{CheckReport, Finding};
use crate::protect::unprotected;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, NecessaryChunks};
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ChunkRun};
use std::collections::HashMap;
use std::time::Instant;

/// Request to check a series.
pub(super) struct Asked<'c> {
    pub(super) options: &'c CheckOptions,
    /// When to begin no further reading.
    pub(super) deadline: Option<Instant>,
    /// True if data of another series was read.
    pub(super) has_read: bool,
}

/// The check of one series.
pub(super) struct SeriesCheck<'c> {
    pub(super) repository: &'c Repository,
    pub(super) manifest: &'c Manifest,
    pub(super) sizes: HashMap<ObjectName, u64>,
    pub(super) resources: &'c Resources,
    pub(super) asked: &'c Asked<'c>,
}

/// Damage of a container and the chunks it costs of those that it answers for.
#[derive(Clone)]
pub(super) struct ContainerDamage {
    pub(super) object: String,
    pub(super) error: String,
    pub(super) chunks: Vec<ChunkRun>,
    pub(super) cost: Cost,
}

/// Cost of a damage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// The chunks are lost where they lie; or there are none, and the object is not what was written.
    Lost,
    /// The chunks hang on something that is lost.
    Hangs,
    /// Nothing: no container answers for what was hit there.
    Nothing,
    /// Not known: the place does not give it out, for another reason than damage.
    Unseen,
    /// Nothing, for whoever has a newer program: what holds them is of a format that this one does not know.
    ForeignFormat,
}

/// Facts about single chunks that a check learnt.
#[derive(Default)]
pub(super) struct Learnt {
    /// Those that are lost where they lie.
    pub(super) damaged: RoaringTreemap,
    /// Those that were read and are sound.
    pub(super) sound: RoaringTreemap,
}

/// Those of the numbers that the container answers for, in runs of one.
pub(super) fn answered(record: &ContainerRecord, numbers: impl IntoIterator<Item = ChunkNumber>) -> Vec<ChunkRun> {
    let answers = |number: &ChunkNumber| {
        let at = record.chunks.partition_point(|run| *run.range().end() < number.0);
        record.chunks.get(at).is_some_and(|run| run.range().contains(&number.0))
    };
    numbers.into_iter().filter(answers).map(|first| ChunkRun { first, count: 1 }).collect()
}

/// The chunks that these cost.
pub(super) fn numbers<'d>(damage: impl IntoIterator<Item = &'d ContainerDamage>) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in damage.into_iter().flat_map(|damage| &damage.chunks) {
        numbers.insert_range(run.range());
    }
    numbers
}

impl SeriesCheck<'_> {
    pub(super) fn run(&self, report: &mut CheckReport) -> Result<(Learnt, Vec<ContainerDamage>), EngineError> {
        let name = self.manifest.object_name().to_string();
        let faults = self.manifest.faults();
        report
            .findings
            .extend(faults.iter().map(|error| Finding::of(&name, error, Help::against_contradiction(error))));
        report.containers += self.manifest.containers.len() as u64;
        report.unprotected += unprotected(self.repository, self.manifest)?.len() as u64;
        let (mut damage, mut read) = self.check_containers(report)?;
        for unneeded in damage.extract_if(.., |damage| damage.cost == Cost::Nothing) {
            let (object, what) = (unneeded.object, unneeded.error);
            report.harmless.push(Finding { object, what, snapshots: Vec::new(), help: Help::RepairReadData });
        }
        let of_containers = damage.clone();
        damage.extend(self.check_lenders()?);
        let lost = numbers(&damage);
        let mut findings = Vec::new();
        let (needs, damaged_catalogs) = self.check_snapshots(&lost, &mut findings)?;
        report.snapshots += self.manifest.snapshots().len() as u64;
        report.findings.extend(findings_of(&damage, self.manifest, &needs));
        report.findings.append(&mut findings);
        report.findings.extend(self.healed());
        let damaged = numbers(damage.iter().filter(|damage| damage.cost == Cost::Lost)) | damaged_catalogs;
        read -= lost;
        let mut learnt = Learnt { sound: read - &damaged, damaged };
        if let Some(sample) = &self.asked.options.restore_sample {
            report.sample = self.restore_sample(sample, &mut learnt, &mut report.findings)?;
        }
        Ok((learnt, of_containers))
    }

    pub(super) fn unless_cancelled(&self) -> Result<(), EngineError> {
        self.resources.unless_cancelled()
    }

    /// Returns the help against damage of these snapshots, given by their short ids.
    pub(super) fn help_for(&self, snapshots: &[String]) -> Help {
        help_for(self.manifest, snapshots)
    }
}

/// Each damage with the snapshots of a series that it touches, going by what they need.
pub(super) fn findings_of(damage: &[ContainerDamage], manifest: &Manifest, needs: &NecessaryChunks) -> Vec<Finding> {
    let mut touched = vec![Vec::new(); damage.len()];
    if !damage.is_empty() {
        let snapshots = manifest.snapshots();
        needs.for_each(|position, necessary| {
            for (touched, damage) in touched.iter_mut().zip(damage) {
                let is_touched = damage.chunks.iter().any(|run| necessary.range_cardinality(run.range()) > 0);
                if is_touched && let Some(snapshot) = snapshots.get(position) {
                    touched.push(snapshot.id.short());
                }
            }
        });
    }
    let finding = |(damage, snapshots): (&ContainerDamage, Vec<String>)| Finding {
        object: damage.object.clone(),
        what: damage.error.clone(),
        help: match damage.cost {
            Cost::ForeignFormat => Help::NewerProgram,
            Cost::Unseen => Help::LookAfterPlace,
            _ => help_for(manifest, &snapshots),
        },
        snapshots,
    };
    damage.iter().zip(touched).map(finding).collect()
}

/// Returns the help against damage of these snapshots of a series, given by their short ids.
fn help_for(manifest: &Manifest, snapshots: &[String]) -> Help {
    let last = manifest.snapshots().iter().rfind(|snapshot| !snapshot.partial);
    Help::against_loss(snapshots, last.map(|snapshot| snapshot.id.short()).as_deref())
}
