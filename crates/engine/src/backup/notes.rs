//! Notes on each new region on its way into a container: sketches of its chunks, and the regions it hangs on.

use super::flow::Encoded;
use super::outcome::Noted;
use super::select::Known;
use super::sketch_file::{SketchDraft, SketchRecord};
use crate::delta::NewChunks;
use crate::observer::{Notice, Observer};
use std::io;

/// Takes the regions in the order in which they are packed.
pub(super) struct Notes<'k> {
    /// The new chunks, if old ones will be encoded against them.
    new: Option<NewChunks>,
    /// Chunks that new ones are encoded against, if they are.
    known: Option<&'k Known>,
    /// Sketches of new chunks, for the next backup.
    draft: Option<SketchDraft>,
    observer: &'k dyn Observer,
    noted: Noted,
}

impl<'k> Notes<'k> {
    pub(super) fn new(
        new: Option<NewChunks>,
        known: Option<&'k Known>,
        draft: Option<SketchDraft>,
        observer: &'k dyn Observer,
    ) -> Self {
        Self { new, known, draft, observer, noted: Noted::default() }
    }

    pub(super) fn take(&mut self, Encoded { region, likenesses, texts, was_offered }: Encoded) {
        let chunks = region.chunks.iter().map(|chunk| chunk.number).zip(&likenesses);
        if let Some(new) = &mut self.new {
            chunks.clone().zip(texts).for_each(|((number, likeness), text)| new.insert(number, likeness, text));
        }
        let count = region.chunks.len() as u64;
        match (was_offered, region.bases.is_empty()) {
            (_, false) => self.noted.deltas.kept += count,
            (true, true) => self.noted.deltas.rejected += count,
            (false, true) => {}
        }
        self.noted.bases.extend(region.bases.iter().map(|base| base.0));
        let depth_of = |known: &Known| region.bases.iter().map(|base| known.depth(*base) + 1).max();
        let depth = self.known.and_then(depth_of).unwrap_or(0);
        if let Some(draft) = &mut self.draft {
            let sketched = chunks.filter_map(|(number, likeness)| Some((number, likeness.sketch?)));
            let mut records = sketched.map(|(number, sketch)| SketchRecord { number, depth, sketch });
            if let Err(error) = records.try_for_each(|record| draft.push(&record)) {
                self.give_up(&error);
            }
        }
    }

    /// The next backup has to do without.
    fn give_up(&mut self, error: &io::Error) {
        self.draft = None;
        self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
    }

    /// Returns the notes so far.
    pub(super) fn so_far(&self) -> &Noted {
        &self.noted
    }

    pub(super) fn finish(mut self) -> Noted {
        let records = self.draft.take().map(SketchDraft::finish).transpose();
        let records = records.unwrap_or_else(|error| {
            self.give_up(&error);
            None
        });
        Noted { new: self.new, records, ..self.noted }
    }
}
