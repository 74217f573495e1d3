//! Access control lists as text, the form that tar has for them.

/// Names of the attributes that hold lists, and of the PAX records for them.
pub(super) const LISTS: [(&[u8], &str); 2] =
    [(b"system.posix_acl_access", "SCHILY.acl.access"), (b"system.posix_acl_default", "SCHILY.acl.default")];

/// The version of the kernel's form.
const VERSION: u32 = 2;

/// A list in the kernel's form as text, users and groups by number; `None` if it is none.
pub(crate) fn text(value: &[u8]) -> Option<String> {
    let (version, entries) = value.split_first_chunk()?;
    let (entries, []) = entries.as_chunks::<8>() else { return None };
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
    fn what_is_no_list_has_no_text() {
        let sound = list(&[(1, 7, 0)]);
        for bad in [&b""[..], b"\x02\0", b"\x03\0\0\0", &sound[..9], &list(&[(3, 7, 0)])] {
            assert_eq!(text(bad), None);
        }
        assert_eq!(text(&list(&[])).as_deref(), Some(""));
    }
}
