//! Snapshots of another program's repository as snapshots of this one.

use crate::common::Sandbox;
use crate::common::log::Log;
use siltstone_engine::EngineError;
use siltstone_engine::backup::source::{
    ContentReader, Described, EntrySource, FileContent, SourceEntry, SourceItem, SourceKind, Span, Unread,
};
use siltstone_engine::check::ReadData;
use siltstone_engine::copy::{CopyOptions, CopySummary};
use siltstone_engine::import::{ForeignRepository, VerifySummary, import_snapshots, verify_snapshots};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{EntryPath, Metadata};
use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId, Time};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Stands for content that cannot be read.
const DAMAGED: &str = "damaged";
/// Bytes of the hole that each file begins with, longer than what is compared at once.
const HOLE_BYTES: u64 = 300_000;

/// Repository in memory: what each snapshot has at which path, and which files were read.
#[derive(Default)]
struct Foreign {
    views: Vec<SnapshotView>,
    trees: Vec<BTreeMap<&'static str, &'static str>>,
    mode: u32,
    read: Arc<Mutex<Vec<String>>>,
}

impl Foreign {
    fn add(&mut self, series: &str, files: &[(&'static str, &'static str)]) {
        let position = self.views.len();
        let number = u8::try_from(position).expect("few");
        let time = Time { seconds: 1000 + i64::from(number), nanoseconds: 5 };
        let snapshot = Snapshot {
            id: SnapshotId(std::array::from_fn(|at| if at == 0 { number } else { 7 })),
            time,
            made: time,
            host: "host".into(),
            user: "they".into(),
            paths: vec![b"/home".to_vec()],
            tags: vec!["a tag".into()],
            description: Some(format!("number {number}")),
            program: "another".into(),
            root: ChunkNumber(0),
            record: ChunkNumber(0),
            statistics: SnapshotStatistics::default(),
            partial: false,
            deleted: None,
        };
        let (series, series_name) = (SeriesId([u8::try_from(series.len()).expect("short"); 16]), series.to_owned());
        self.views.push(SnapshotView { series, series_name, position, borrows_of: Vec::new(), snapshot });
        self.trees.push(files.iter().copied().collect());
    }

    fn take_read(&self) -> Vec<String> {
        let mut read = std::mem::take(&mut *self.read.lock().expect("a lock"));
        read.sort();
        read
    }

    fn tree(&self, view: &SnapshotView) -> &BTreeMap<&'static str, &'static str> {
        &self.trees[view.position]
    }
}

impl ForeignRepository for Foreign {
    fn snapshots(&self) -> &[SnapshotView] {
        &self.views
    }

    fn entries(
        &self,
        snapshot: &SnapshotView,
        base: Option<&SnapshotView>,
    ) -> Result<Box<dyn EntrySource>, EngineError> {
        let before = base.map(|base| self.tree(base));
        let item = |(path, text): (&&'static str, &&'static str)| {
            let content = Box::new(Text { content: text, path, read: self.read.clone() });
            let is_unchanged = before.is_some_and(|before| before.get(path) == Some(text));
            let unread = Unread::Described(Described { content, is_unchanged, is_link: false });
            let modified = Time { seconds: 5, nanoseconds: 999_999_999 };
            let metadata = Metadata { mode: 0o640 ^ self.mode, modified, links: 1, ..Metadata::default() };
            let size = HOLE_BYTES + text.len() as u64;
            SourceEntry {
                path: EntryPath::new(*path).expect("a path"),
                metadata,
                kind: SourceKind::File { size, unread },
            }
        };
        Ok(Box::new(Entries(self.tree(snapshot).iter().map(item).collect::<Vec<_>>().into_iter())))
    }
}

struct Entries(std::vec::IntoIter<SourceEntry>);

impl EntrySource for Entries {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        Ok(self.0.next().map(SourceItem::Entry))
    }
}

struct Text {
    content: &'static str,
    path: &'static str,
    read: Arc<Mutex<Vec<String>>>,
}

impl FileContent for Text {
    fn open<'c>(&'c self, _: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>> {
        self.read.lock().expect("a lock").push(self.path.to_owned());
        if self.content == DAMAGED {
            return Err(io::Error::other("a blob is damaged"));
        }
        Ok(Box::new(TextReader {
            spans: vec![Span::Data(self.content.len() as u64), Span::Hole(HOLE_BYTES)],
            left: self.content.as_bytes(),
        }))
    }
}

struct TextReader<'t> {
    spans: Vec<Span>,
    left: &'t [u8],
}

impl ContentReader for TextReader<'_> {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        Ok(self.spans.pop())
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.left, buffer)
    }
}

fn import(
    foreign: &Foreign,
    snapshots: &[SnapshotView],
    sandbox: &Sandbox,
    log: &Log,
    skip_damaged: bool,
) -> CopySummary {
    let options = CopyOptions::default().with_backup(sandbox.options()).with_skip_damaged(skip_damaged);
    let (repository, resources) = (sandbox.repository(), sandbox.heard_by(log));
    import_snapshots(foreign, snapshots, &repository, &options, &resources).expect("an import")
}

fn verify(foreign: &Foreign, sandbox: &Sandbox, log: &Log) -> VerifySummary {
    let (repository, resources) = (sandbox.repository(), sandbox.heard_by(log));
    verify_snapshots(foreign, &foreign.views, &repository, &resources).expect("a verification")
}

/// Three snapshots of one series, one of another.
fn foreign() -> Foreign {
    let mut foreign = Foreign::default();
    foreign.add("one", &[("a", "first"), ("b", "stays")]);
    foreign.add("another", &[("x", "other")]);
    foreign.add("one", &[("a", "second"), ("b", "stays")]);
    foreign.add("one", &[("b", "stays"), ("c", "new")]);
    foreign
}

#[test]
fn foreign_snapshots_come_once_with_their_ids_times_and_words() {
    let (foreign, sandbox, log) = (foreign(), Sandbox::new(), Log::default());
    let options = CopyOptions::default().with_backup(sandbox.options()).with_dry_run(true);
    let resources = sandbox.resources();
    let planned =
        import_snapshots(&foreign, &foreign.views, &sandbox.repository(), &options, &resources).expect("fine");
    assert_eq!((planned.copied.len(), sandbox.snapshots().len()), (4, 0));

    let summary = import(&foreign, &foreign.views, &sandbox, &log, false);
    assert_eq!((summary.copied.len(), summary.skipped, summary.failed), (4, 0, 0));
    assert_eq!(foreign.take_read(), ["a", "a", "b", "c", "x"], "what stays is read once");
    let made = sandbox.snapshots();
    assert_eq!(made.len(), 4);
    for original in &foreign.views {
        let found = made.iter().find(|view| view.snapshot.id.origin() == original.snapshot.id.origin());
        let (found, expected) = (&found.expect("it came").snapshot, &original.snapshot);
        assert_eq!((found.time, &found.host, &found.user), (expected.time, &expected.host, &expected.user));
        assert_eq!((&found.paths, &found.tags), (&expected.paths, &expected.tags));
        assert_eq!(found.description, expected.description);
    }
    let names = |name: &str| made.iter().filter(|view| view.series_name == name).count();
    assert_eq!((names("one"), names("another")), (3, 1));

    let again = import(&foreign, &foreign.views, &sandbox, &log, false);
    assert_eq!((again.copied.len(), again.skipped, foreign.take_read().len()), (0, 4, 0));
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

#[test]
fn an_import_goes_on_where_one_before_it_ended() {
    let (foreign, sandbox, log) = (foreign(), Sandbox::new(), Log::default());
    import(&foreign, &foreign.views[..2], &sandbox, &log, false);
    foreign.take_read();
    let summary = import(&foreign, &foreign.views, &sandbox, &log, false);
    assert_eq!((summary.copied.len(), summary.skipped), (2, 2));
    assert_eq!(foreign.take_read(), ["a", "c"], "only what differs from the last that came");
}

#[test]
fn a_foreign_snapshot_with_damage_is_left_out_or_comes_without_it() {
    let (mut foreign, sandbox, log) = (foreign(), Sandbox::new(), Log::default());
    foreign.trees[2].insert("a", DAMAGED);
    let summary = import(&foreign, &foreign.views, &sandbox, &log, false);
    assert_eq!((summary.copied.len(), summary.failed), (3, 1));
    assert!(log.tells_of("a blob is damaged"), "{:?}", log.problems());
    let summary = import(&foreign, &foreign.views, &sandbox, &log, true);
    assert_eq!((summary.copied.len(), summary.incomplete, summary.skipped), (1, 1, 3));
    let verified = verify(&foreign, &sandbox, &log);
    assert_eq!((verified.snapshots, verified.same), (4, 3), "what it lacks counts as a difference");
}

#[test]
fn verification_reads_what_came_and_tells_each_difference() {
    let (mut foreign, sandbox) = (foreign(), Sandbox::new());
    import(&foreign, &foreign.views, &sandbox, &Log::default(), false);
    let log = Log::default();
    let verified = verify(&foreign, &sandbox, &log);
    assert_eq!((verified.snapshots, verified.same, verified.missing, verified.entries), (4, 4, 0, 7));
    let texts = ["first", "stays", "second", "new", "other"].iter().map(|text| text.len() as u64);
    assert_eq!(verified.read_bytes, texts.map(|bytes| bytes + HOLE_BYTES).sum::<u64>(), "what stays is read once");
    assert_eq!(log.problems(), [""; 0]);

    // The same length, another byte; gone; and one that did not come.
    foreign.trees[0].insert("a", "fir_t");
    foreign.trees[1].remove("x");
    foreign.trees[3].insert("d", "more");
    foreign.add("one", &[("a", "later")]);
    let verified = verify(&foreign, &sandbox, &log);
    assert_eq!((verified.snapshots, verified.same, verified.missing), (4, 1, 1));
    for words in [
        "/a: differs from the original: its content differs",
        "/x: differs from the original: the original does not have it",
        "/d: differs from the original: it is missing",
    ] {
        assert!(log.tells_of(words), "{words} not in {:?}", log.problems());
    }
    foreign.mode = 0o111;
    let log = Log::default();
    assert_eq!(verify(&foreign, &sandbox, &log).same, 0);
    assert!(log.tells_of("/b: differs from the original: its metadata differs"), "{:?}", log.problems());
}
