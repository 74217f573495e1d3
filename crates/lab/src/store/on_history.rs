//! The frame of an experiment on histories: one subject for each method, which measures in a folder of its own.

use super::method::{Kept, Method};
use super::parallel::on_cpus;
use super::scale::{Scale, Sizes};
use super::versions::Versions;
use crate::experiment::{Input, Outcome, Row, Subject};
use crate::settings::Settings;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Measurement of a method on a history, in a folder that is empty.
pub(super) type Measure = fn(&OnHistory, &Path) -> Result<Outcome>;

/// A method on one history.
pub(super) struct OnHistory {
    pub(super) method: Method,
    pub(super) versions: Versions,
    pub(super) scale: Scale,
    measure: Measure,
}

impl OnHistory {
    /// One subject for each of these methods that the settings ask for, with parts of these sizes.
    ///
    /// # Errors
    /// Those of [`Versions::of`].
    pub(super) fn subjects<'i>(
        methods: impl IntoIterator<Item = Method>,
        sizes: Sizes,
        (input, settings): (&Input, &Settings),
        measure: Measure,
    ) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let versions = Versions::of(input.corpus(), settings)?;
        let scale = match sizes {
            Sizes::Paper => Scale::of(versions.mean_bytes(), settings),
            Sizes::Siltstone => Scale::of_siltstone(settings),
        };
        let asked = methods.into_iter().filter(|method| method.is_asked_for(settings));
        let subject = |method| Self { method, versions: versions.clone(), scale, measure };
        Ok(asked.map(|method| Box::new(subject(method)) as Box<dyn Subject>).collect())
    }

    /// Makes a store of this method, in a folder of that name; gives the folder, too.
    pub(super) fn create(&self, folder: &Path, name: &str) -> Result<(PathBuf, Kept)> {
        let folder = folder.join(name);
        fs::create_dir(&folder)?;
        let kept = self.method.create(&folder, self.scale)?;
        Ok((folder, kept))
    }
}

impl Subject for OnHistory {
    fn parameters(&self) -> Row {
        self.method.parameters()
    }

    fn run(&mut self) -> Result<Outcome> {
        on_cpus(self.scale.threads, || {
            let folder = tempfile::tempdir()?;
            (self.measure)(self, folder.path())
        })
    }
}
