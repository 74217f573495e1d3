//! One damage to one object of a repository, and what must hold whatever is done with the repository then.

use super::log::Log;
use super::scene::Scene;
use super::tree::Tree;
use super::{PASSWORD, Sandbox, heard_by, resources};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::check::{self, CheckOptions, CheckReport, ReadData};
use siltstone_engine::forget::{self};
use siltstone_engine::snapshots::{self, SnapshotFilter};
use siltstone_engine::{EngineError, restore};
use siltstone_store::container::{ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, Listing, ObjectName, Original, SimulatedDisk, Storage};
use siltstone_store::{SeriesId, SnapshotId, StoreError};
use std::sync::Arc;
use tempfile::TempDir;

/// How a damage shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shows {
    /// In the listing already: gone, or of another size.
    InListing,
    /// When the repository, manifest or index is opened.
    WhenOpened,
    /// When every byte is read.
    WhenRead,
    /// Never: the bytes mean nothing.
    Never,
}

/// One damage to one object.
#[derive(Clone, Debug)]
pub struct Ruin {
    pub name: ObjectName,
    pub damage: Damage,
    /// Name of what was hit, for messages.
    pub part: String,
    pub shows: Shows,
    /// Whether the second copy of the object is damaged alike.
    pub both: bool,
}

impl Ruin {
    pub fn story(&self) -> String {
        format!("{:?} of the {} of {}", self.damage, self.part, self.name)
    }

    /// A copy of the disk with the damage done.
    pub fn done_to(&self, disk: &SimulatedDisk) -> SimulatedDisk {
        let ruined = super::faults::copy(disk);
        for name in self.names() {
            assert!(ruined.damage(&name, self.damage.clone()), "{} changes nothing", self.story());
        }
        ruined
    }

    /// The object, and its copy if that is damaged alike.
    fn names(&self) -> impl Iterator<Item = ObjectName> {
        let copy = self.name.original().filter(|_| self.both).map(Original::copy);
        std::iter::once(self.name).chain(copy)
    }

    /// Brings the original bytes back.
    pub fn mend(&self, disk: &SimulatedDisk, good: &SimulatedDisk) {
        for name in self.names() {
            disk.damage(&name, Damage::Replace(good.read(&name, u64::MAX).expect("the original")));
        }
    }
}

/// Deleting an object, cutting it at several places, and flipping bits in each of its named parts.
pub fn ruins_of(disk: &SimulatedDisk, name: ObjectName, parts: &[(&str, u64, Shows)]) -> Vec<Ruin> {
    let bytes = disk.read(&name, u64::MAX).expect("the object").len() as u64;
    let whole = |damage, shows| Ruin { name, damage, part: "whole".into(), shows, both: false };
    let mut ruins = vec![whole(Damage::Delete, Shows::InListing), whole(Damage::Unreadable, Shows::WhenOpened)];
    for left in [0, 40, bytes / 2, bytes - 1] {
        ruins.push(whole(Damage::Truncate { bytes: left }, Shows::InListing));
    }
    for (at, (part, offset, shows)) in parts.iter().enumerate() {
        let damage = Damage::Flip { offset: *offset, mask: 1 << (at % 8) };
        ruins.push(Ruin { name, damage, part: (*part).into(), shows: *shows, both: false });
    }
    ruins
}

/// Damages of a container, whose parts are found by its index.
pub fn ruins_of_container(
    disk: &SimulatedDisk,
    repository: &Repository,
    series: SeriesId,
    id: &ContainerRecord,
) -> Vec<Ruin> {
    let reader = ContainerReader::open(disk, repository.keys(), series, id).expect("the container opens");
    let region = reader.index().regions()[0].offset;
    let padding = id.index_offset + u64::from(id.index_sealed_bytes);
    let parts = [
        ("header", 0, Shows::WhenRead),
        ("header", 30, Shows::WhenRead),
        ("region", region, Shows::WhenRead),
        ("region", region + 100, Shows::WhenRead),
        ("index", id.index_offset, Shows::WhenOpened),
        ("index", padding - 1, Shows::WhenOpened),
        ("padding", padding, Shows::WhenRead),
        ("trailer", id.object_bytes - 40, Shows::WhenRead),
        ("trailer", id.object_bytes - 1, Shows::WhenRead),
    ];
    ruins_of(disk, id.object_name(series), &parts)
}

/// A repository that may be damaged, tried out.
pub struct Trial<'t> {
    pub scene: &'t Scene,
    pub disk: SimulatedDisk,
    pub story: String,
}

impl Trial<'_> {
    fn sandbox(&self) -> Sandbox {
        self.scene.sandbox.at(self.disk.clone())
    }

    pub fn open(&self) -> Result<Repository, StoreError> {
        Repository::open(Arc::new(self.disk.clone()), PASSWORD)
    }

    pub fn check(&self, read_data: ReadData) -> Result<CheckReport, EngineError> {
        check::check(&self.open()?, &CheckOptions::reading(read_data), &resources())
    }

    /// Backs the source up without a local index, as another machine would.
    pub fn backup(&self, series: &str, log: &Log) -> Result<SnapshotId, EngineError> {
        let options = self.sandbox().options().with_series(Some(series.into())).with_take_over(true);
        let source = Source::Paths(vec![self.sandbox().source()]);
        Ok(backup::backup(&self.open()?, source, &options, &heard_by(log))?.snapshot.expect("a snapshot"))
    }

    pub fn forget(&self, series: SeriesId, id: SnapshotId, threshold: f64, log: &Log) -> Result<(), EngineError> {
        let options = self.sandbox().forget_options(false).with_take_over(true).with_rewrite_threshold(threshold);
        forget::forget(&self.open()?, &[(series, id)], &options, &heard_by(log)).map(drop)
    }

    /// Files that a restore gives, and what it complains of.
    pub fn restore(&self, id: SnapshotId) -> Result<(Tree, Log), EngineError> {
        let repository = self.open()?;
        let (view, _) = snapshots::resolve(&repository, &id.to_string(), &SnapshotFilter::default())?;
        let (target, log) = (TempDir::new().expect("a temporary folder"), Log::default());
        restore::restore(&repository, &view, &self.sandbox().restore_options(target.path()), &heard_by(&log))?;
        let below = target.path().join(self.scene.sandbox.source().strip_prefix("/").expect("an absolute path"));
        Ok((if below.exists() { super::tree::read(&below) } else { Tree::new() }, log))
    }

    /// A snapshot restores identically; or, if `may_be_hit`, each entry that differs is complained of, or the catalog
    /// is.
    pub fn assert_restores(&self, id: SnapshotId, expected: &Tree, may_be_hit: bool, object: &ObjectName) {
        let story = format!("snapshot {} after {}", id.short(), self.story);
        let (tree, log) = match self.restore(id) {
            Ok(restored) => restored,
            Err(error) => {
                assert!(may_be_hit && self.tells(&error.to_string(), object), "{story}: {error}");
                return;
            }
        };
        if !may_be_hit {
            assert!(tree == *expected && log.problems().is_empty(), "{story} differs: {:?}", log.problems());
            return;
        }
        let hurt: Vec<_> = expected.iter().filter(|(path, node)| tree.get(*path) != Some(*node)).collect();
        let catalog_hurt = log.tells_of("the catalog");
        for (path, node) in hurt {
            let is_folder = node.kind == 0o040_000;
            let path = path.escape_ascii().to_string();
            assert!(
                catalog_hurt || is_folder || log.tells_of(&path),
                "{story}: {path} without a word: {:?}",
                log.problems()
            );
        }
        assert!(log.problems().iter().all(|problem| self.tells(problem, object)), "{story}: {:?}", log.problems());
    }

    /// Whether a message names the object, or its folder where it cannot tell which one is meant.
    pub fn tells(&self, text: &str, object: &ObjectName) -> bool {
        let name = object.to_string();
        let folder = name.split('/').next().unwrap_or_default();
        text.contains(&name) || (text.contains(&format!("{folder}/")) && !self.disk.names().contains(object))
    }
}

/// The containers of a series by kind, in the order they were made.
pub fn containers_of(repository: &Repository, series: SeriesId, kind: ContainerKind) -> Vec<ContainerRecord> {
    let manifest = repository.manifest(series).expect("a manifest").expect("a manifest");
    manifest.containers.into_iter().filter(|record| record.kind == kind).collect()
}

/// The newest record of the repository.
pub fn config_of(disk: &SimulatedDisk) -> ObjectName {
    let listed = disk.list(Listing::Configs).expect("a list");
    listed.last().expect("a record").name
}

/// The newest manifest of a series.
pub fn manifest_of(disk: &SimulatedDisk, series: SeriesId) -> ObjectName {
    let listed = disk.list(Listing::Manifests(series)).expect("a list");
    listed.last().expect("a manifest").name
}
