//! Names of users and groups: asked of the system once each, since a tree of a million files has a handful of owners.

use crate::parallel::lock;
use nix::unistd::{Gid, Group, Uid, User};
use siltstone_store::catalog::{Metadata, Name};
use std::{collections::HashMap, hash::Hash, sync::Mutex};

/// Whose a restored file becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ownership {
    /// The user and group of the same name on this machine; of the same number where there is no such name.
    #[default]
    ByName,
    /// The user and group of the same number.
    Numeric,
    /// Whoever runs the restore.
    None,
}

/// Owner and group by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Names by number, for a scan.
#[derive(Default)]
pub(super) struct OwnerNames {
    users: Remembered<u32, Option<Name>>,
    groups: Remembered<u32, Option<Name>>,
}

impl OwnerNames {
    /// The name of a user; `None` if the machine knows none.
    pub(super) fn user(&mut self, uid: u32) -> Option<Name> {
        self.users.get(uid, |&uid| Some(User::from_uid(Uid::from_raw(uid)).ok()??.name.as_str().into()))
    }

    /// The name of a group; `None` if the machine knows none.
    pub(super) fn group(&mut self, gid: u32) -> Option<Name> {
        self.groups.get(gid, |&gid| Some(Group::from_gid(Gid::from_raw(gid)).ok()??.name.as_str().into()))
    }
}

/// Answers already given; the last one is kept apart, since neighbouring files mostly share it.
struct Remembered<K, V> {
    last: Option<(K, V)>,
    all: HashMap<K, V>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self { last: None, all: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Remembered<K, V> {
    fn get(&mut self, key: K, ask: impl FnOnce(&K) -> V) -> V {
        if let Some((last, value)) = &self.last
            && *last == key
        {
            return value.clone();
        }
        let value = self.all.entry(key.clone()).or_insert_with_key(ask).clone();
        self.last = Some((key, value.clone()));
        value
    }
}

/// Numbers by name, for a restore; shared by threads.
pub(super) struct Owners {
    ownership: Ownership,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    users: Remembered<Name, Option<u32>>,
    groups: Remembered<Name, Option<u32>>,
}

impl Owners {
    pub(super) fn new(ownership: Ownership) -> Self {
        Self { ownership, known: Mutex::default() }
    }

    /// Whose a file with this metadata becomes; `None` to leave it as it was made.
    pub(super) fn owner_of(&self, metadata: &Metadata) -> Option<Owner> {
        let numeric = Owner { uid: metadata.uid, gid: metadata.gid };
        match self.ownership {
            Ownership::None => None,
            Ownership::Numeric => Some(numeric),
            Ownership::ByName => Some(self.by_name(metadata, numeric)),
        }
    }

    fn by_name(&self, metadata: &Metadata, numeric: Owner) -> Owner {
        // A thread that panicked can only have left an answer out.
        let mut known = lock(&self.known);
        let uid = metadata.user.clone().and_then(|name| known.users.get(name, find_user));
        let gid = metadata.group.clone().and_then(|name| known.groups.get(name, find_group));
        Owner { uid: uid.unwrap_or(numeric.uid), gid: gid.unwrap_or(numeric.gid) }
    }
}

fn find_user(name: &Name) -> Option<u32> {
    Some(User::from_name(std::str::from_utf8(name.as_bytes()).ok()?).ok()??.uid.as_raw())
}

fn find_group(name: &Name) -> Option<u32> {
    Some(Group::from_name(std::str::from_utf8(name.as_bytes()).ok()?).ok()??.gid.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_and_numbers_stand_in() {
        let owners = Owners::new(Ownership::ByName);
        let metadata = |user: &str| Metadata { uid: 4242, gid: 4243, user: Some(user.into()), ..Metadata::default() };
        assert_eq!(owners.owner_of(&metadata("root")), Some(Owner { uid: 0, gid: 4243 }));
        assert_eq!(owners.owner_of(&metadata("no such user here")), Some(Owner { uid: 4242, gid: 4243 }));
        assert_eq!(Owners::new(Ownership::Numeric).owner_of(&metadata("root")), Some(Owner { uid: 4242, gid: 4243 }));
        assert_eq!(Owners::new(Ownership::None).owner_of(&metadata("root")), None);
    }

    #[test]
    fn the_super_user_has_a_name() {
        let mut names = OwnerNames::default();
        assert_eq!(names.user(0), Some("root".into()));
        assert_eq!(names.user(0), Some("root".into()));
        assert_eq!(names.group(4_000_000_000), None);
    }
}
