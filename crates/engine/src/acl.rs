//! Access control lists as text, the form that tar has for them.

use siltstone_store::catalog::{Metadata, Name};

/// Name of the attribute that holds the list by which access to an entry is decided.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// Names of the attributes that hold lists, and of the PAX records for them.
pub(crate) const LISTS: [(&[u8], &str); 2] =
    [(ACCESS, "SCHILY.acl.access"), (b"system.posix_acl_default", "SCHILY.acl.default")];

/// The version of the kernel's form.
const VERSION: u32 = 2;

/// A list in the kernel's form as text, users and groups by number; `None` if it is none.
pub(crate) fn text(value: &[u8]) -> Option<String> {
    let (version, entries) = value.split_first_chunk()?;
    let (entries, []) = entries.as_chunks::<ENTRY_BYTES>() else { return None };
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let entries: Option<Vec<String>> = entries.iter().copied().map(entry).collect();
    Some(entries?.join(","))
}

fn entry([tag, tag_high, permissions, _, id @ ..]: [u8; 8]) -> Option<String> {
    let id = u32::from_le_bytes(id);
    let who = match u16::from_le_bytes([tag, tag_high]) {
        0x01 => "user:".to_owned(),
        0x02 => format!("user:{id}"),
        0x04 => "group:".to_owned(),
        0x08 => format!("group:{id}"),
        0x10 => "mask:".to_owned(),
        0x20 => "other:".to_owned(),
        _ => return None,
    };
    let may = |bit, letter| if permissions & bit != 0 { letter } else { '-' };
    Some(format!("{who}:{}{}{}", may(4, 'r'), may(2, 'w'), may(1, 'x')))
}

/// Length of a list that says no more than the permissions do: owner, group, others.
pub(crate) const PLAIN_BYTES: usize = 4 + 3 * ENTRY_BYTES;
const ENTRY_BYTES: usize = 8;
/// Stands where an entry concerns no one in particular.
const NOBODY: u32 = u32::MAX;

/// A list as text in the kernel's form. Users and groups may be numbers, names with their number after the permissions
/// (as star writes them), the names of the entry's own owners, or names that this machine knows.
///
/// # Errors
/// What of it is not understood.
pub(crate) fn parse(text: &[u8], owners: &Metadata) -> Result<Vec<u8>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is no text".to_owned())?;
    let mut entries = Vec::new();
    for line in text.split([',', '\n']) {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if !entry.is_empty() {
            entries.push(
                parse_entry(entry, owners).ok_or_else(|| format!("'{}' is not understood", entry.escape_debug()))?,
            );
        }
    }
    // The order that the kernel wants.
    entries.sort_unstable();
    let mut list = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        list.extend_from_slice(&tag.to_le_bytes());
        list.extend_from_slice(&permissions.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
    }
    Ok(list)
}

/// The permission bits that a list in the kernel's form stands for: where it has a mask, that is what the group's bits
/// show.
pub(crate) fn permissions(list: &[u8]) -> Option<u32> {
    let (entries, []) = list.get(4..)?.as_chunks::<ENTRY_BYTES>() else { return None };
    let of = |wanted: u16| {
        let found = entries.iter().find(|[low, high, ..]| u16::from_le_bytes([*low, *high]) == wanted);
        found.map(|[_, _, permissions, ..]| u32::from(permissions & 7))
    };
    Some(of(0x01)? << 6 | of(0x10).or_else(|| of(0x04))? << 3 | of(0x20)?)
}

/// Returns the mode of an entry where nothing heeds its access control list: nobody may do more than by the list.
///
/// The group's bits show the list's mask; here they are what the owning group may do. Users and groups that the list
/// names are then members of that group, or others: neither may do what one of those may not.
pub fn mode_without_list(metadata: &Metadata) -> u32 {
    match metadata.xattrs.iter().find(|(name, _)| name == ACCESS) {
        Some((_, list)) => metadata.mode & (0o7000 | least_permissions(list).unwrap_or(0o700)),
        None => metadata.mode,
    }
}

/// The permission bits by which nobody may do more than by a list in the kernel's form; `None` if it is none.
fn least_permissions(list: &[u8]) -> Option<u32> {
    let (entries, []) = list.get(4..)?.as_chunks::<ENTRY_BYTES>() else { return None };
    let of = |wanted: u16| {
        let found = entries.iter().filter(|[low, high, ..]| u16::from_le_bytes([*low, *high]) == wanted);
        found.map(|[_, _, permissions, ..]| u32::from(permissions & 7)).reduce(|all, more| all & more)
    };
    let mask = of(0x10).unwrap_or(7);
    let users = of(0x02).map_or(7, |users| users & mask);
    let groups = of(0x08).map_or(7, |groups| groups & mask);
    Some(of(0x01)? << 6 | (of(0x04)? & mask & users) << 3 | of(0x20)? & users & groups)
}

/// Tag, number and permissions of an entry.
fn parse_entry(entry: &str, owners: &Metadata) -> Option<(u16, u32, u16)> {
    let mut fields = entry.split(':').map(str::trim);
    let (kind, who, letters) = (fields.next()?, fields.next()?, fields.next());
    // `mask:rwx` and `other:rwx` stand for `mask::rwx` and `other::rwx`.
    let (who, letters) = letters.map_or(("", who), |letters| (who, letters));
    let number = fields.next().and_then(|number| number.parse().ok());
    let permissions = letters.chars().try_fold(0, |sum, letter| match letter {
        'r' => Some(sum | 4),
        'w' => Some(sum | 2),
        'x' => Some(sum | 1),
        '-' => Some(sum),
        _ => None,
    })?;
    let own = |name: &Option<Name>| name.as_ref().is_some_and(|name| name.as_bytes() == who.as_bytes());
    let user = || nix::unistd::User::from_name(who).ok().flatten().map(|user| user.uid.as_raw());
    let group = || nix::unistd::Group::from_name(who).ok().flatten().map(|group| group.gid.as_raw());
    let (tag, id) = match (kind, who) {
        ("user" | "u", "") => (0x01, NOBODY),
        ("user" | "u", _) => {
            let own = || own(&owners.user).then_some(owners.uid);
            (0x02, number.or_else(|| who.parse().ok()).or_else(own).or_else(user)?)
        }
        ("group" | "g", "") => (0x04, NOBODY),
        ("group" | "g", _) => {
            let own = || own(&owners.group).then_some(owners.gid);
            (0x08, number.or_else(|| who.parse().ok()).or_else(own).or_else(group)?)
        }
        ("mask" | "m", "") => (0x10, NOBODY),
        ("other" | "o", "") => (0x20, NOBODY),
        _ => return None,
    };
    Some((tag, id, permissions))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry = |(tag, permissions, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        [VERSION.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
    }

    #[test]
    fn each_kind_of_entry_has_its_words() {
        let all = u32::MAX;
        let value = list(&[(1, 7, all), (2, 4, 1000), (4, 5, all), (8, 2, 70_000), (0x10, 6, all), (0x20, 0, all)]);
        let expected = "user::rwx,user:1000:r--,group::r-x,group:70000:-w-,mask::rw-,other::---";
        assert_eq!(text(&value).as_deref(), Some(expected));
    }

    #[test]
    fn text_becomes_the_list_again() {
        let all = u32::MAX;
        let value = list(&[(1, 7, all), (2, 4, 1000), (4, 5, all), (8, 2, 70_000), (0x10, 6, all), (0x20, 0, all)]);
        let owners = Metadata { uid: 1000, user: Some(Name::from("someone")), ..Metadata::default() };
        let texts = [
            "user::rwx,user:1000:r--,group::r-x,group:70000:-w-,mask::rw-,other::---",
            "u::rwx\ng::r-x # group\no::\nm::rw\nu:1000:r\ng:nobody-knows:-w-:70000\n",
            "other:---,mask:rw-,group:70000:w,group::rx,user:someone:r,user::rwx",
        ];
        for text in texts {
            assert_eq!(parse(text.as_bytes(), &owners).as_deref(), Ok(value.as_slice()), "{text}");
        }
        assert_eq!((permissions(&value), permissions(b"\x02\0\0\0")), (Some(0o760), None));
        let plain = parse(b"user::rw-,group::r--,other::r--", &owners).expect("a list");
        assert_eq!(plain.len(), PLAIN_BYTES);
        for bad in ["user:no such user:rwx", "user", "user::rwz", "mask:7:rwx", "owner@:rwx", "user:-1:r"] {
            assert!(parse(bad.as_bytes(), &owners).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_its_list_an_entry_is_open_to_nobody_more() {
        let all = u32::MAX;
        let mode = |mode, entries: &[(u16, u16, u32)]| {
            let xattrs = vec![(ACCESS.to_vec(), list(entries))];
            mode_without_list(&Metadata { mode, xattrs, ..Metadata::default() })
        };
        let given = [(1, 6, all), (2, 6, 4321), (4, 0, all), (0x10, 6, all), (0x20, 0, all)];
        assert_eq!(mode(0o660, &given), 0o600, "the mask is for the user that is named");
        let masked = [(1, 7, all), (4, 7, all), (8, 5, 70), (0x10, 5, all), (0x20, 4, all)];
        assert_eq!(mode(0o6754, &masked), 0o6754, "the owning group has what the mask leaves it");
        let refused = [(1, 6, all), (2, 0, 4321), (4, 4, all), (0x10, 4, all), (0x20, 4, all)];
        assert_eq!(mode(0o644, &refused), 0o600, "the user that is named may be anybody");
        let group = [(1, 6, all), (4, 4, all), (8, 0, 70), (0x10, 4, all), (0x20, 4, all)];
        assert_eq!(mode(0o644, &group), 0o640, "so may a group that is named, but for the owning group");
        assert_eq!(mode(0o1777, &[(1, 7, all)]), 0o1700, "it is no list");
        assert_eq!(mode_without_list(&Metadata { mode: 0o2775, ..Metadata::default() }), 0o2775);
    }

    #[test]
    fn what_is_no_list_has_no_text() {
        let sound = list(&[(1, 7, 0)]);
        for bad in [&b""[..], b"\x02\0", b"\x03\0\0\0", &sound[..9], &list(&[(3, 7, 0)])] {
            assert_eq!(text(bad), None);
        }
        assert_eq!(text(&list(&[])).as_deref(), Some(""));
    }
}
