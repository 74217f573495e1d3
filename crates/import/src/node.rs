//! Metadata of restic's nodes in the form that silt keeps.

use rustic_core::jiff::Timestamp;
use rustic_core::repofile::{Metadata as ResticMetadata, Node};
use siltstone_store::Time;
use siltstone_store::catalog::{Metadata, Name};

/// Bits of a mode as Go has them, and as the kernel does.
const SPECIAL_BITS: [(u32, u32); 3] = [(1 << 23, 0o4000), (1 << 22, 0o2000), (1 << 20, 0o1000)];
const PERMISSIONS: u32 = 0o777;

/// Metadata of a node.
pub(crate) fn metadata(node: &Node) -> Metadata {
    let ResticMetadata { mode, mtime, ctime, uid, gid, user, group, inode, device_id, links, .. } = &node.meta;
    let name = |name: &Option<String>| name.as_deref().filter(|name| !name.is_empty()).map(Name::from);
    let modified = mtime.map(time).unwrap_or_default();
    // Without a number nothing tells which names belong together.
    let links = if *inode == 0 { 1 } else { (*links).max(1) };
    Metadata {
        mode: mode.map(mode_of).unwrap_or_default(),
        uid: uid.unwrap_or_default(),
        gid: gid.unwrap_or_default(),
        user: name(user),
        group: name(group),
        modified,
        changed: ctime.map_or(modified, time),
        inode: *inode,
        device: *device_id,
        links,
        xattrs: xattrs(&node.meta),
    }
}

fn mode_of(mode: u32) -> u32 {
    let special = SPECIAL_BITS.iter().filter(|(bit, _)| mode & bit != 0);
    special.fold(mode & PERMISSIONS, |sum, (_, bit)| sum | bit)
}

/// A moment.
pub(crate) fn time(moment: Timestamp) -> Time {
    let nanoseconds = moment.as_nanosecond();
    let (seconds, rest) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    Time { seconds: i64::try_from(seconds).unwrap_or_default(), nanoseconds: u32::try_from(rest).unwrap_or_default() }
}

/// Extended attributes, access control lists among them, in the order of their names.
fn xattrs(metadata: &ResticMetadata) -> Vec<(Vec<u8>, Vec<u8>)> {
    let found = metadata.extended_attributes.iter();
    let mut found: Vec<_> =
        found.map(|xattr| (xattr.name.clone().into_bytes(), xattr.value.clone().unwrap_or_default())).collect();
    found.sort();
    found.dedup_by(|later, first| later.0 == first.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_go_become_those_of_the_kernel() {
        let cases = [(0o644, 0o644), (1 << 31 | 0o755, 0o755), (1 << 23 | 0o755, 0o4755), (1 << 22 | 0o710, 0o2710)];
        for (go, kernel) in cases {
            assert_eq!(mode_of(go), kernel, "{go:o}");
        }
        assert_eq!(mode_of(1 << 31 | 1 << 20 | 0o777), 0o1777, "a folder such as /tmp");
    }

    #[test]
    fn a_moment_before_1970_has_a_fraction_that_counts_forwards() {
        let moment = |nanoseconds| time(Timestamp::from_nanosecond(nanoseconds).expect("in range"));
        assert_eq!(moment(5_000_000_001), Time { seconds: 5, nanoseconds: 1 });
        assert_eq!(moment(-500_000_000), Time { seconds: -1, nanoseconds: 500_000_000 });
    }
}
