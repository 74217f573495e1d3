//! Edits of a tree, as users and programs make them. Every edit can be applied to every tree: what stands in its way
//! goes.

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Few names, some above others, so that edits meet each other and names change their kind.
const NAMES: [&str; 12] = ["a", "a/b", "a/b/c", "a-b", "d", "d/e", "d/f\n", "g/h/i/j", "g/h/k", "l", "m/n", "\u{e4}"];

/// Content by description: equal descriptions give equal bytes, and longer ones begin like shorter ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    seed: u64,
    bytes: usize,
    repeats: bool,
}

impl Text {
    pub(crate) fn noise(seed: u64, bytes: usize) -> Self {
        Self { seed, bytes, repeats: false }
    }

    fn make(self) -> Vec<u8> {
        if self.repeats {
            let line = crate::common::noise(self.seed, 50);
            return line.into_iter().cycle().take(self.bytes).collect();
        }
        crate::common::noise(self.seed, self.bytes)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Write {
        name: usize,
        text: Text,
    },
    /// `remove` bytes at `at` (of 1000 parts of the length) give way to `text`; the time may be set back to what it
    /// was.
    Replace {
        name: usize,
        at: u64,
        remove: usize,
        text: Text,
        keep_time: bool,
    },
    /// Rewrites part of a file in place, without a change of size.
    Overwrite {
        name: usize,
        at: u64,
        text: Text,
    },
    Sparse {
        name: usize,
        bytes: u64,
        text: Text,
    },
    Copy {
        name: usize,
        to: usize,
    },
    Rename {
        name: usize,
        to: usize,
    },
    HardLink {
        name: usize,
        to: usize,
    },
    Symlink {
        name: usize,
        to: usize,
    },
    Fifo {
        name: usize,
    },
    Folder {
        name: usize,
    },
    Remove {
        name: usize,
    },
    Permissions {
        name: usize,
        mode: u32,
    },
    Attribute {
        name: usize,
        value: u8,
    },
}

pub(crate) fn any_edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(any_edit(), 0..7)
}

fn any_text() -> impl Strategy<Value = Text> {
    let bytes = prop_oneof![1 => Just(0usize), 2 => 1..300usize, 3 => 4000..80_000usize, 2 => 80_000..350_000usize];
    (0..6u64, bytes, prop::bool::weighted(0.2)).prop_map(|(seed, bytes, repeats)| Text { seed, bytes, repeats })
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let name = || 0..NAMES.len();
    let small = || (0..1000u64, 1..3000usize).prop_map(|(seed, bytes)| Text { seed, bytes, repeats: false });
    let replace = (name(), 0..1000u64, prop_oneof![Just(0), 1..40_000usize], any_text(), any::<bool>())
        .prop_map(|(name, at, remove, text, keep_time)| Edit::Replace { name, at, remove, text, keep_time });
    prop_oneof![
        6 => (name(), any_text()).prop_map(|(name, text)| Edit::Write { name, text }),
        5 => replace,
        3 => (name(), 0..1000u64, small()).prop_map(|(name, at, text)| Edit::Overwrite { name, at, text }),
        1 => (name(), 1..2_000_000u64, small()).prop_map(|(name, bytes, text)| Edit::Sparse { name, bytes, text }),
        2 => (name(), name()).prop_map(|(name, to)| Edit::Copy { name, to }),
        2 => (name(), name()).prop_map(|(name, to)| Edit::Rename { name, to }),
        2 => (name(), name()).prop_map(|(name, to)| Edit::HardLink { name, to }),
        1 => (name(), name()).prop_map(|(name, to)| Edit::Symlink { name, to }),
        1 => name().prop_map(|name| Edit::Fifo { name }),
        1 => name().prop_map(|name| Edit::Folder { name }),
        2 => name().prop_map(|name| Edit::Remove { name }),
        1 => (name(), 0..0o1000u32).prop_map(|(name, mode)| Edit::Permissions { name, mode }),
        1 => (name(), 0..3u8).prop_map(|(name, value)| Edit::Attribute { name, value }),
    ]
}

impl Edit {
    /// Changes the tree below `root`; an edit of a file that is not there does nothing.
    pub(crate) fn apply(&self, root: &Path) {
        let path = |name: &usize| root.join(NAMES[*name]);
        match self {
            Self::Write { name, text } => fs::write(cleared(root, *name), text.make()).expect("written"),
            Self::Replace { name, at, remove, text, keep_time } => {
                if let Some(file) = file_at(&path(name)) {
                    replace(&path(name), &file, *at, *remove, *text, *keep_time);
                }
            }
            Self::Overwrite { name, at, text } => {
                if let Some(file) = file_at(&path(name)) {
                    let size = file.metadata().expect("status").len();
                    let at = size * at / 1000;
                    let text = text.make();
                    let count = text.len().min(usize::try_from(size - at).expect("small"));
                    file.write_all_at(&text[..count], at).expect("written");
                }
            }
            Self::Sparse { name, bytes, text } => {
                let file = File::create(cleared(root, *name)).expect("made");
                file.write_all_at(&text.make(), bytes / 2).expect("written");
                file.set_len(bytes + text.bytes as u64).expect("sized");
            }
            Self::Copy { name, to } => {
                if file_at(&path(name)).is_some() {
                    let content = fs::read(path(name)).expect("read");
                    fs::write(cleared(root, *to), content).expect("written");
                }
            }
            Self::Rename { name, to } => between(root, *name, *to, |from, to| fs::rename(from, to).expect("renamed")),
            Self::HardLink { name, to } => between(root, *name, *to, |from, to| {
                if !from.is_dir() || from.is_symlink() {
                    fs::hard_link(from, to).expect("linked");
                }
            }),
            Self::Symlink { name, to } => symlink(NAMES[*to], cleared(root, *name)).expect("linked"),
            Self::Fifo { name } => {
                rustix::fs::mknodat(CWD, cleared(root, *name), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
            }
            Self::Folder { name } => fs::create_dir(cleared(root, *name)).expect("made"),
            Self::Remove { name } => remove(&path(name)),
            Self::Permissions { name, mode } => {
                let path = path(name);
                if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink()) {
                    let mode = fs::Permissions::from_mode(mode | 0o700);
                    fs::set_permissions(&path, mode).expect("permissions");
                }
            }
            Self::Attribute { name, value } => {
                if let Some(file) = file_at(&path(name)) {
                    rustix::fs::fsetxattr(&file, "user.test", &[*value], XattrFlags::empty()).expect("an attribute");
                }
            }
        }
    }
}

fn replace(path: &Path, file: &File, at: u64, remove: usize, text: Text, keep_time: bool) {
    let status = file.metadata().expect("status");
    let mut content = fs::read(path).expect("read");
    let at = usize::try_from(status.len() * at / 1000).expect("small");
    let end = content.len().min(at + remove);
    content.splice(at..end, text.make());
    content.truncate(1 << 20);
    file.set_len(content.len() as u64).expect("sized");
    file.write_all_at(&content, 0).expect("written");
    if keep_time {
        file.set_modified(status.modified().expect("a time")).expect("a time");
    }
}

/// A regular file under this very name.
fn file_at(path: &Path) -> Option<File> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_file.then(|| File::options().read(true).write(true).open(path).expect("opened"))
}

/// Does something with a name and another one that is free by then, unless one is above the other.
fn between(root: &Path, name: usize, to: usize, act: impl Fn(&Path, &Path)) {
    let (from, target) = (root.join(NAMES[name]), root.join(NAMES[to]));
    let is_apart = !from.starts_with(&target) && !target.starts_with(&from);
    if is_apart && fs::symlink_metadata(&from).is_ok() && !has_obstacle(root, &target, &from) {
        cleared(root, to);
        act(&from, &target);
    }
}

/// Whether clearing the way to `target` would remove `from`.
fn has_obstacle(root: &Path, target: &Path, from: &Path) -> bool {
    target
        .ancestors()
        .take_while(|above| *above != root)
        .any(|above| from.starts_with(above) && fs::symlink_metadata(above).is_ok_and(|found| !found.is_dir()))
}

/// Makes a name free and its parents folders.
fn cleared(root: &Path, name: usize) -> PathBuf {
    let path = root.join(NAMES[name]);
    let mut above: Vec<_> = path.ancestors().skip(1).take_while(|above| *above != root).collect();
    above.reverse();
    for folder in above {
        if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
            remove(folder);
            fs::create_dir(folder).expect("made");
        }
    }
    remove(&path);
    path
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Err(_) => {}
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).expect("removed"),
        Ok(found) => {
            assert!(found.nlink() > 0);
            fs::remove_file(path).expect("removed");
        }
    }
}
