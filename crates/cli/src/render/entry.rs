//! One entry of a snapshot: the long line of `ls -l`, and its JSON in restic's field names.

use super::{Path, local, rfc3339, visible};
use serde::Serialize;
use siltstone_store::catalog::{Content, Entry, Name};

/// `-rw-r--r--  1000  1000      3 2015-05-08 21:38:30 /path`, for links with their target.
pub(crate) fn long_line(entry: &Entry) -> String {
    let metadata = &entry.metadata;
    let (mode, size) = (mode_text(entry), size_of(&entry.content).unwrap_or(0));
    let (time, path) = (local(metadata.modified), Path::of(&entry.path).visible());
    let target = match &entry.content {
        Content::Symlink { target } => format!(" -> {}", visible(target)),
        _ => String::new(),
    };
    format!("{mode} {:>5} {:>5} {size:>6} {time} {path}{target}", metadata.uid, metadata.gid)
}

/// An entry as `ls --json` prints it.
#[derive(Serialize)]
pub(crate) struct EntryJson {
    name: String,
    r#type: &'static str,
    #[serde(flatten)]
    path: Path,
    uid: u32,
    gid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    mode: u32,
    permissions: String,
    mtime: String,
    ctime: String,
    inode: u64,
    device_id: u64,
    links: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    linktarget: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linktarget_raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<(u32, u32)>,
    message_type: &'static str,
    struct_type: &'static str,
}

impl From<&Entry> for EntryJson {
    fn from(entry: &Entry) -> Self {
        let metadata = &entry.metadata;
        let target = match &entry.content {
            Content::Symlink { target } => Some(Path::from_bytes(target)),
            _ => None,
        };
        Self {
            name: String::from_utf8_lossy(entry.path.name()).into_owned(),
            r#type: type_word(&entry.content),
            path: Path::of(&entry.path),
            uid: metadata.uid,
            gid: metadata.gid,
            user: metadata.user.as_ref().map(Name::to_string),
            group: metadata.group.as_ref().map(Name::to_string),
            size: size_of(&entry.content),
            mode: go_mode(entry),
            permissions: mode_text(entry),
            mtime: rfc3339(metadata.modified),
            ctime: rfc3339(metadata.changed),
            inode: metadata.inode,
            device_id: metadata.device,
            links: metadata.links,
            linktarget: target.as_ref().map(Path::lossy),
            linktarget_raw: target.as_ref().and_then(Path::raw),
            device: match entry.content {
                Content::CharDevice { major, minor } | Content::BlockDevice { major, minor } => Some((major, minor)),
                _ => None,
            },
            message_type: "node",
            struct_type: "node",
        }
    }
}

fn size_of(content: &Content) -> Option<u64> {
    match content {
        Content::File { size, .. } => Some(*size),
        _ => None,
    }
}

fn type_word(content: &Content) -> &'static str {
    match content {
        Content::Directory => "dir",
        Content::File { .. } => "file",
        Content::Symlink { .. } => "symlink",
        Content::Fifo => "fifo",
        Content::CharDevice { .. } => "chardev",
        Content::BlockDevice { .. } => "dev",
    }
}

/// Type and permissions as `ls` shows them: `drwxr-sr-t`.
fn mode_text(entry: &Entry) -> String {
    let kind = match entry.content {
        Content::Directory => 'd',
        Content::File { .. } => '-',
        Content::Symlink { .. } => 'l',
        Content::Fifo => 'p',
        Content::CharDevice { .. } => 'c',
        Content::BlockDevice { .. } => 'b',
    };
    let mode = entry.metadata.mode;
    let triple = |shift: u32, special: u32, letter: char| {
        let bits = mode >> shift;
        let executes = match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        };
        [if bits & 4 != 0 { 'r' } else { '-' }, if bits & 2 != 0 { 'w' } else { '-' }, executes]
    };
    let triples = [triple(6, 0o4000, 's'), triple(3, 0o2000, 's'), triple(0, 0o1000, 't')];
    std::iter::once(kind).chain(triples.into_iter().flatten()).collect()
}

/// The number restic prints as `mode`: permissions in the low nine bits, type and special bits where Go's `fs.FileMode`
/// has them.
fn go_mode(entry: &Entry) -> u32 {
    let kind = match entry.content {
        Content::Directory => 1 << 31,
        Content::File { .. } => 0,
        Content::Symlink { .. } => 1 << 27,
        Content::Fifo => 1 << 25,
        Content::CharDevice { .. } => 1 << 26 | 1 << 21,
        Content::BlockDevice { .. } => 1 << 26,
    };
    let mode = entry.metadata.mode;
    let special = [(0o4000, 23), (0o2000, 22), (0o1000, 20)];
    special.into_iter().filter(|(bit, _)| mode & bit != 0).fold(kind | mode & 0o777, |all, (_, to)| all | 1 << to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::catalog::{EntryPath, Metadata};

    fn entry(mode: u32, content: Content) -> Entry {
        let path = EntryPath::new(*b"dir/na\nme").expect("a valid path");
        Entry { path, metadata: Metadata { mode, uid: 7, ..Metadata::default() }, content }
    }

    #[test]
    fn modes_show_type_and_special_bits() {
        let text = |mode, content| mode_text(&entry(mode, content));
        assert_eq!(text(0o755, Content::Directory), "drwxr-xr-x");
        assert_eq!(text(0o1777, Content::Directory), "drwxrwxrwt");
        assert_eq!(text(0o6644, Content::Fifo), "prwSr-Sr--");
        assert_eq!(go_mode(&entry(0o755, Content::Directory)), 2_147_484_141);
        assert_eq!(go_mode(&entry(0o4600, Content::Fifo)), 1 << 25 | 1 << 23 | 0o600);
    }

    #[test]
    fn a_link_shows_its_target() {
        let symlink = entry(0o777, Content::Symlink { target: b"to\xff".to_vec() });
        let line = long_line(&symlink);
        assert!(line.starts_with("lrwxrwxrwx     7     0      0 "), "{line}");
        assert!(line.ends_with(" /dir/na\\nme -> to\\xff"), "{line}");
        let json = serde_json::to_value(EntryJson::from(&symlink)).expect("plain data");
        assert_eq!(json["type"], "symlink");
        assert_eq!(json["linktarget_raw"], "746fff");
        assert_eq!(json["path"], "/dir/na\nme");
        assert_eq!(json["message_type"], "node");
        assert!(json.get("size").is_none());
    }
}
