//! A repository with snapshots, and what each of them must restore to, whatever happens.

use super::tree::Tree;
use super::{Sandbox, noise};
use siltstone_engine::check::ReadData;
use siltstone_store::SnapshotId;
use siltstone_store::storage::{ObjectName, SimulatedDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub struct Scene {
    pub sandbox: Sandbox,
    pub disk: SimulatedDisk,
    /// The snapshots in the order they were made.
    pub ids: Vec<SnapshotId>,
    pub trees: BTreeMap<SnapshotId, Tree>,
    /// Whether backups settle what they leave behind.
    pub migrate: bool,
}

impl Scene {
    /// An empty repository and source.
    pub fn new() -> Self {
        let disk = SimulatedDisk::new();
        Self::of(Sandbox::on(Arc::new(disk.clone())), disk)
    }

    /// As [`Scene::new`], with the source and the cache in a new folder below this one.
    pub fn below(parent: &Path) -> Self {
        let disk = SimulatedDisk::new();
        Self::of(Sandbox::below(parent, Arc::new(disk.clone())), disk)
    }

    fn of(sandbox: Sandbox, disk: SimulatedDisk) -> Self {
        Self { sandbox, disk, ids: Vec::new(), trees: BTreeMap::new(), migrate: true }
    }

    /// Two snapshots that share a container, and a source that differs from both. What the second one left behind is
    /// settled: part of it is a delta.
    pub fn with_two_snapshots() -> Self {
        Self::with_snapshots(true)
    }

    /// Backs up with nothing settled.
    pub fn unsettled() -> Self {
        Self::with_snapshots(false)
    }

    /// As [`Scene::with_two_snapshots`] or [`Scene::unsettled`], with a manifest that is cut into parts.
    pub fn in_parts(migrate: bool) -> Self {
        let scene = Self { migrate, ..Self::new() };
        scene.sandbox.cut_into_parts();
        scene.with_backups()
    }

    /// The number of objects that are parts of manifests, without copies.
    pub fn parts(&self) -> usize {
        self.disk.names().iter().filter(|name| matches!(name, ObjectName::ManifestPart(..))).count()
    }

    fn with_snapshots(migrate: bool) -> Self {
        Self { migrate, ..Self::new() }.with_backups()
    }

    fn with_backups(mut self) -> Self {
        let scene = &mut self;
        let mut edited = noise(5, 60_000);
        scene.sandbox.write("edited", &edited);
        scene.sandbox.write("kept/large", &noise(1, 60_000));
        scene.sandbox.write("changed", &noise(2, 60_000));
        scene.sandbox.symlink("kept/link", "large");
        scene.backup();
        scene.sandbox.write("changed", &noise(3, 60_000));
        edited[30_000..30_004].copy_from_slice(b"edit");
        scene.sandbox.write("edited", &edited);
        scene.backup();
        edited[20_000..20_004].copy_from_slice(b"edit");
        scene.sandbox.write("edited", &edited);
        scene.sandbox.write("changed", &noise(4, 50_000));
        scene.sandbox.write("added", b"a little");
        self
    }

    /// Makes a snapshot of the source as it is. The source is left to age first: what changed just before a backup is
    /// read again by the next one, and whether that happens must not depend on how fast this machine is.
    pub fn backup(&mut self) -> SnapshotId {
        std::thread::sleep(Duration::from_millis(60));
        let options = self.sandbox.options().with_force(true).with_migrate(self.migrate);
        let id = self.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        self.ids.push(id);
        self.trees.insert(id, self.source());
        id
    }

    /// The source as it is.
    pub fn source(&self) -> Tree {
        super::tree::read(&self.sandbox.source())
    }

    /// Every snapshot found restores to its tree (one that is not known, to the source as it is; a partial one, to part
    /// of that), and all bytes are sound. Gives the whole snapshots found.
    pub fn assert_sound(&self, disk: &SimulatedDisk, story: &str) -> BTreeSet<SnapshotId> {
        let found = self.sandbox.at(disk.clone());
        let (partial, whole): (Vec<_>, Vec<_>) = found.snapshots().into_iter().partition(|view| view.snapshot.partial);
        for view in &partial {
            assert_part(&found.restored(view.snapshot.id), &self.source(), story);
        }
        let ids: BTreeSet<_> = whole.iter().map(|view| view.snapshot.id).collect();
        for id in &ids {
            let expected = self.trees.get(id).cloned().unwrap_or_else(|| self.source());
            assert!(found.restored(*id) == expected, "snapshot {} differs after {story}", id.short());
        }
        assert_eq!(found.check(ReadData::All).findings, [], "after {story}");
        ids
    }
}

/// Every file of `part` is as in `whole`, but that a file which was half read ends early and has another name.
pub fn assert_part(part: &Tree, whole: &Tree, story: &str) {
    for (name, node) in part {
        match name.strip_suffix(b".silt-partial") {
            Some(name) => assert!(whole[name].content.starts_with(&node.content), "a half-read file after {story}"),
            None => assert!(whole.get(name) == Some(node), "{} differs after {story}", name.escape_ascii()),
        }
    }
}
