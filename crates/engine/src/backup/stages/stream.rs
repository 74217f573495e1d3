//! A backup of one stream, which becomes a regular file.

use super::STEPS_AHEAD_MAX;
use super::assembling::{Assembly, Catalogued};
use super::context::{Stages, joined};
use crate::EngineError;
use crate::backup::flow::{FileEnd, Item, Step};
use crate::backup::outcome::Planned;
use crate::backup::piece::ReadStage;
use crate::backup::plan;
use crate::lease::now;
use crate::observer::EntryAction;
use crate::parallel::spawn_named;
use crossbeam_channel::bounded;
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use std::io::Read;
use std::path::Path;
use std::thread::Scope;

impl Stages<'_, '_, '_> {
    /// Takes all that the stream gives, as the file of this name.
    pub(super) fn run_stream<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        (name, stream): (&Path, Box<dyn Read + Send>),
        reading: ReadStage<'env, 'env>,
        assembly: Assembly<'_, '_>,
    ) -> Result<(Planned, Catalogued), EngineError> {
        let (steps_in, steps_out) = bounded(STEPS_AHEAD_MAX);
        let (pieces_in, pieces_out) = bounded(STEPS_AHEAD_MAX);
        let (above, path, end) = self.stream_entries(name)?;
        let _ = steps_in.send(Step::Items(above)).and_then(|()| steps_in.send(Step::Pieces(pieces_out)));
        drop(steps_in);
        let reader = spawn_named(scope, "read", move || reading.run_stream(stream, path, end, pieces_in))?;
        let assembled = self.assemble(assembly, steps_out, self.pace(true));
        // A failed stream looks like an empty one to the stages behind it: its outcome must be known before any commit.
        let failed = |source| EngineError::Stream { name: name.display().to_string(), source };
        let read = joined(reader).map_err(failed);
        assembled.and_then(|assembled| read.map(|()| (Planned::default(), assembled)))
    }

    /// Makes the entries that a stream is recorded as: a regular file of now, for its owner alone, and the directories
    /// that its name puts above it.
    fn stream_entries(
        &self,
        name: &Path,
    ) -> Result<(Vec<Item>, EntryPath, impl FnOnce(u64) -> FileEnd + Send + use<>), EngineError> {
        let bytes = self.run.paths.first().map(|path| path.strip_prefix(b"/").unwrap_or(path).to_vec());
        let invalid = || EngineError::NoSource {
            path: name.to_owned(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "this is no name for a stream"),
        };
        let path = EntryPath::new(bytes.unwrap_or_default()).map_err(|_| invalid())?;
        let metadata = |mode| Metadata {
            mode,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            modified: self.run.options.time.unwrap_or_else(now),
            links: 1,
            ..Metadata::default()
        };
        let mut above: Vec<Item> = std::iter::successors(path.parent(), EntryPath::parent)
            .map(|path| plan::ready(path, metadata(0o700), Content::Directory, None))
            .collect();
        above.reverse();
        let metadata = metadata(0o600);
        let (action, name) = (EntryAction::New, path.clone());
        let end = move |size| FileEnd {
            path,
            metadata,
            action,
            size,
            read_bytes: size,
            is_complete: true,
            problem: None,
            is_remembered: false,
        };
        Ok((above, name, end))
    }
}
