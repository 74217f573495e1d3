//! Passing over what cannot be read: the rest is settled.
//!
//! Containers are worked on together. Where that meets damage, whichever of them it came from (one may hang on another
//! that is not even among them), what was written by then is deleted, for no manifest names it; each is tried alone,
//! without writing, and those that fail are told and stay as they are, for what is sound of them is still needed. Then
//! the others are worked on. It costs twice the work of a piece, and nothing where all is sound.

use crate::observer::Notice;
use crate::pack::{ContainerSink, DrySink};
use crate::{EngineError, Resources};
use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;
use std::collections::BTreeSet;
use std::fmt;

/// The containers that were passed over; each is told once.
pub(super) struct PassedOver<'o> {
    resources: &'o Resources,
    containers: BTreeSet<ContainerId>,
}

impl<'o> PassedOver<'o> {
    pub(super) fn new(resources: &'o Resources) -> Self {
        Self { resources, containers: BTreeSet::new() }
    }

    pub(super) fn count(&self) -> u64 {
        self.containers.len() as u64
    }

    fn add(&mut self, manifest: &Manifest, id: ContainerId, reason: &dyn fmt::Display) {
        if self.containers.insert(id) {
            let record = manifest.containers.iter().find(|record| record.id == id);
            let object =
                record.map_or_else(|| id.to_string(), |record| record.object_name(manifest.series).to_string());
            self.resources.observer.notice(&Notice::PassedOver { object, reason: reason.to_string() });
        }
    }

    /// Tells of something else that stays as it is.
    pub(super) fn tell(&self, object: String, reason: &dyn fmt::Display) {
        self.resources.observer.notice(&Notice::PassedOver { object, reason: reason.to_string() });
    }

    /// Those containers that the storage has whole.
    pub(super) fn present(&mut self, writer: &SeriesWriter<'_>, mut containers: Vec<ContainerId>) -> Vec<ContainerId> {
        containers.retain(|id| {
            let is_lost = writer.lost.contains(id);
            if is_lost {
                self.add(writer.manifest(), *id, &"it is missing or cut short");
            }
            !is_lost
        });
        containers
    }

    /// Does `work`, which hands what it makes to the sink, with those of the containers that it can be done with; says
    /// which.
    ///
    /// # Errors
    /// All but damage.
    pub(super) fn work_on_sound<R>(
        &mut self,
        writer: &mut SeriesWriter<'_>,
        containers: Vec<ContainerId>,
        work: impl Fn(&SeriesWriter<'_>, &dyn ContainerSink, &[ContainerId]) -> Result<R, EngineError>,
    ) -> Result<(Vec<ContainerId>, R), EngineError> {
        match work(writer, writer, &containers) {
            Err(error) if error.is_damage() => {}
            result => return Ok((containers, result?)),
        }
        writer.sweep()?;
        let nowhere = DrySink::new(writer.manifest().sequence);
        let mut sound = Vec::new();
        for id in containers {
            self.resources.unless_cancelled()?;
            match work(writer, &nowhere, &[id]) {
                Ok(_) => sound.push(id),
                Err(error) if error.is_damage() => self.add(writer.manifest(), id, &error),
                Err(error) => return Err(error),
            }
        }
        let result = work(writer, writer, &sound)?;
        Ok((sound, result))
    }
}
