//! Names of objects, their text form and what a listing asks for.
//!
//! The text form is the path below the repository; reading it is the exact inverse of writing it, so that a file with
//! another spelling of a name (capital digits, missing zeros) is foreign and never taken for the object.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::container::{CONTAINER_BYTES_MAX, ContainerKind};
use crate::ids::{ContainerId, KeyId, LoanId, PartId, RenewalId, SeriesId};
use crate::manifest::PART_OBJECT_BYTES_MAX;
use crate::parity::PARITY_BYTES_MAX;
use std::fmt;

/// The folder of temporary files: writes that are under way, and what is left of those that were broken off.
pub const TEMPORARIES: &str = "tmp";
/// The folder of containers of data.
const DATA: &str = "data";
/// The folder of containers of metadata.
const METADATA: &str = "metadata";
/// Greatest size of a key slot: some 300 bytes and a label.
pub const KEY_SLOT_BYTES_MAX: u64 = 64 << 10;
/// Greatest size of a config: it names every series, so some 100 000 of them.
pub const CONFIG_BYTES_MAX: u64 = 8 << 20;
/// Greatest size of a manifest: that of a series of 100 TiB stays below. Who opens a repository sets a lower one.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;
/// Manifests that the reserve has room for: `forget` on a full disk takes the lease, says what is going that others may
/// have borrowed, commits the removal, and commits what it rewrote, each with its copy. Each commit also lets two older
/// manifests go, so two are enough where a deletion gives its room back at once; where it does so late (snapshots of
/// the file system, logs, network storage) all eight are needed.
pub const RESERVE_MANIFESTS: u64 = 8;
/// Greatest size of a loan: some million runs of chunks.
const LOAN_BYTES_MAX: u64 = 32 << 20;
/// Greatest size of a directory: some 10 000 series.
const DIRECTORY_BYTES_MAX: u64 = 16 << 20;
/// Greatest size of the reserve.
const RESERVE_BYTES_MAX: u64 = RESERVE_MANIFESTS * MANIFEST_BYTES_MAX;

/// The name of an object; its text form (`Display`) is its path below the repository, with `/` between parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectName {
    /// `config/<sequence, 16 hexadecimal digits>`
    Config(u64),
    /// `reserve`: bytes given up so that `forget` can commit on a full disk.
    Reserve,
    /// `keys/<id>`
    Key(KeyId),
    /// `series/<series>/<sequence, 16 hexadecimal digits>`
    Manifest(SeriesId, u64),
    /// `data/<series>/<container>` or `metadata/<series>/<container>`: they lie apart, so that a bucket's rule can keep
    /// the ones at hand and move the others.
    Container(ContainerKind, SeriesId, ContainerId),
    /// `aside/<name of what it was, with dots>.<serial, 8 hexadecimal digits>`: bytes that a repair replaced. Nothing
    /// reads them.
    Aside(Replaced, u32),
    /// `parity/<series>/<container>`: what heals that container.
    Parity(SeriesId, ContainerId),
    /// `copies/<name of the original>`
    Copy(Original),
    /// `renewals/<series>/<lease>-<count>`: says by its name alone that the holder of a lease is alive. It has no
    /// content.
    Renewal(SeriesId, RenewalId),
    /// `parts/<series>/<part>`: a part of a manifest's lists.
    ManifestPart(SeriesId, PartId),
    /// `loans/<lender>/<borrower>-<lease>-<serial>`: chunks of the first series that the second borrows. It is the
    /// borrower's object, under the lender's name.
    Loan(SeriesId, LoanId),
    /// `directory/<sequence, 16 hexadecimal digits>`: the series that others may borrow of, and their sketches.
    Directory(u64),
}

/// An object that a repair may replace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Replaced {
    /// A record of the repository.
    Config(u64),
    /// A key slot.
    Key(KeyId),
    /// A manifest.
    Manifest(SeriesId, u64),
    /// A container.
    Container(ContainerKind, SeriesId, ContainerId),
    /// A part of a manifest.
    ManifestPart(SeriesId, PartId),
}

impl Replaced {
    /// The object's own name.
    pub fn name(self) -> ObjectName {
        match self {
            Self::Config(sequence) => ObjectName::Config(sequence),
            Self::Key(id) => ObjectName::Key(id),
            Self::Manifest(series, sequence) => ObjectName::Manifest(series, sequence),
            Self::Container(kind, series, id) => ObjectName::Container(kind, series, id),
            Self::ManifestPart(series, id) => ObjectName::ManifestPart(series, id),
        }
    }

    /// Reads the name of an object of which `text` is the spelling with dots.
    fn from_dotted(text: &str) -> Option<Self> {
        match ObjectName::from_text(&text.replace('.', "/"))? {
            ObjectName::Config(sequence) => Some(Self::Config(sequence)),
            ObjectName::Key(id) => Some(Self::Key(id)),
            ObjectName::Manifest(series, sequence) => Some(Self::Manifest(series, sequence)),
            ObjectName::Container(kind, series, id) => Some(Self::Container(kind, series, id)),
            ObjectName::ManifestPart(series, id) => Some(Self::ManifestPart(series, id)),
            _ => None,
        }
    }
}

impl From<Original> for Replaced {
    fn from(original: Original) -> Self {
        match original {
            Original::Config(sequence) => Self::Config(sequence),
            Original::Key(id) => Self::Key(id),
            Original::Manifest(series, sequence) => Self::Manifest(series, sequence),
            Original::ManifestPart(series, id) => Self::ManifestPart(series, id),
        }
    }
}

/// An object that is kept twice, because all else hangs on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Original {
    /// The record of the repository with this sequence number.
    Config(u64),
    /// A key slot.
    Key(KeyId),
    /// The manifest of a series with this sequence number.
    Manifest(SeriesId, u64),
    /// A part of a manifest.
    ManifestPart(SeriesId, PartId),
}

impl Original {
    /// The object's own name.
    pub fn name(self) -> ObjectName {
        match self {
            Self::Config(sequence) => ObjectName::Config(sequence),
            Self::Key(id) => ObjectName::Key(id),
            Self::Manifest(series, sequence) => ObjectName::Manifest(series, sequence),
            Self::ManifestPart(series, id) => ObjectName::ManifestPart(series, id),
        }
    }

    /// The name of its second, byte-identical copy.
    pub fn copy(self) -> ObjectName {
        ObjectName::Copy(self)
    }

    /// Both places of the object: its own name and that of its copy.
    pub fn places(self) -> [ObjectName; 2] {
        [self.name(), self.copy()]
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(sequence) => write!(f, "config/{sequence:016x}"),
            Self::Reserve => f.write_str("reserve"),
            Self::Key(id) => write!(f, "keys/{id}"),
            Self::Manifest(series, sequence) => write!(f, "series/{series}/{sequence:016x}"),
            Self::Container(kind, series, id) => write!(f, "{}/{series}/{id}", folder_of(*kind)),
            Self::Aside(what, serial) => write!(f, "aside/{}.{serial:08x}", what.name().to_string().replace('/', ".")),
            Self::Parity(series, id) => write!(f, "parity/{series}/{id}"),
            Self::Copy(original) => write!(f, "copies/{}", original.name()),
            Self::Renewal(series, id) => write!(f, "renewals/{series}/{id}"),
            Self::ManifestPart(series, id) => write!(f, "parts/{series}/{id}"),
            Self::Loan(lender, id) => write!(f, "loans/{lender}/{id}"),
            Self::Directory(sequence) => write!(f, "directory/{sequence:016x}"),
        }
    }
}

impl ObjectName {
    /// Reads a name from the exact text that `Display` writes; `None` for anything else.
    pub fn from_text(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("copies/") {
            return Some(Self::Copy(Self::from_text(name)?.original()?));
        }
        let mut parts = text.split('/');
        let (first, second, third) = (parts.next()?, parts.next(), parts.next());
        let name = match (first, second, third) {
            ("config", Some(sequence), None) => Self::Config(u64::from_str_radix(sequence, 16).ok()?),
            ("directory", Some(sequence), None) => Self::Directory(u64::from_str_radix(sequence, 16).ok()?),
            ("reserve", None, _) => Self::Reserve,
            ("aside", Some(name), None) => {
                let (what, serial) = name.rsplit_once('.')?;
                Self::Aside(Replaced::from_dotted(what)?, u32::from_str_radix(serial, 16).ok()?)
            }
            ("keys", Some(id), None) => Self::Key(KeyId::from_hex(id)?),
            ("series", Some(series), Some(sequence)) => {
                Self::Manifest(SeriesId::from_hex(series)?, u64::from_str_radix(sequence, 16).ok()?)
            }
            (DATA | METADATA, Some(series), Some(id)) => {
                let kind = if first == DATA { ContainerKind::Data } else { ContainerKind::Metadata };
                Self::Container(kind, SeriesId::from_hex(series)?, ContainerId::from_text(id)?)
            }
            ("parity", Some(series), Some(id)) => {
                Self::Parity(SeriesId::from_hex(series)?, ContainerId::from_text(id)?)
            }
            ("renewals", Some(series), Some(id)) => {
                Self::Renewal(SeriesId::from_hex(series)?, RenewalId::from_text(id)?)
            }
            ("parts", Some(series), Some(id)) => {
                Self::ManifestPart(SeriesId::from_hex(series)?, PartId::from_text(id)?)
            }
            ("loans", Some(lender), Some(id)) => Self::Loan(SeriesId::from_hex(lender)?, LoanId::from_text(id)?),
            _ => return None,
        };
        (name.to_string() == text).then_some(name)
    }

    /// Returns the name of a temporary file, in [`TEMPORARIES`], that is to become the object of this path.
    pub fn temporary(path: &str, random: u64) -> String {
        format!("{}.{random:016x}", path.replace('/', "."))
    }

    /// Reads the object that a temporary file was to become.
    pub fn of_temporary(file: &str) -> Option<Self> {
        let (name, _random) = file.rsplit_once('.')?;
        Self::from_text(&name.replace('.', "/"))
    }

    /// The container that the object is, or heals.
    pub fn container(&self) -> Option<ContainerId> {
        match self {
            Self::Container(_, _, id) | Self::Parity(_, id) => Some(*id),
            Self::Config(_)
            | Self::Reserve
            | Self::Key(_)
            | Self::Manifest(..)
            | Self::Copy(_)
            | Self::Aside(..)
            | Self::Renewal(..)
            | Self::ManifestPart(..)
            | Self::Loan(..)
            | Self::Directory(_) => None,
        }
    }

    /// The part of a manifest that the object is, or is a copy of.
    pub fn part(&self) -> Option<PartId> {
        match self {
            Self::ManifestPart(_, id) | Self::Copy(Original::ManifestPart(_, id)) => Some(*id),
            _ => None,
        }
    }

    /// The number of the manifest that it is, or under whose lease it was written: what a later manifest does not name
    /// is no longer anyone's. `None` for what belongs to no series.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            Self::Manifest(_, sequence) => Some(*sequence),
            Self::Container(_, _, id) | Self::Parity(_, id) => Some(id.lease),
            Self::Renewal(_, id) => Some(id.lease),
            Self::ManifestPart(_, id) => Some(id.lease),
            Self::Loan(_, id) => Some(id.lease),
            Self::Copy(original) => original.name().sequence(),
            Self::Config(_) | Self::Reserve | Self::Key(_) | Self::Aside(..) | Self::Directory(_) => None,
        }
    }

    /// Tells whether it belongs to this series and to a lease up to this one.
    pub fn is_of(&self, series: SeriesId, lease_last: u64) -> bool {
        self.series() == Some(series) && self.sequence().is_some_and(|sequence| sequence <= lease_last)
    }

    /// The series the object belongs to, if it belongs to one: a loan is the borrower's.
    pub fn series(&self) -> Option<SeriesId> {
        match self {
            Self::Manifest(series, _)
            | Self::Container(_, series, _)
            | Self::Parity(series, _)
            | Self::Renewal(series, _)
            | Self::ManifestPart(series, _) => Some(*series),
            Self::Loan(_, id) => Some(id.borrower),
            Self::Copy(original) => original.name().series(),
            Self::Config(_) | Self::Reserve | Self::Key(_) | Self::Aside(..) | Self::Directory(_) => None,
        }
    }

    /// The object as one that is kept twice, if it is; `None` for a copy, too.
    pub fn original(&self) -> Option<Original> {
        match *self {
            Self::Config(sequence) => Some(Original::Config(sequence)),
            Self::Key(id) => Some(Original::Key(id)),
            Self::Manifest(series, sequence) => Some(Original::Manifest(series, sequence)),
            Self::ManifestPart(series, id) => Some(Original::ManifestPart(series, id)),
            Self::Reserve
            | Self::Container(..)
            | Self::Parity(..)
            | Self::Copy(_)
            | Self::Aside(..)
            | Self::Renewal(..)
            | Self::Loan(..)
            | Self::Directory(_) => None,
        }
    }

    /// The greatest size in bytes that the format allows an object of this kind.
    pub fn bytes_max(&self) -> u64 {
        match self {
            Self::Config(_) => CONFIG_BYTES_MAX,
            Self::Reserve => RESERVE_BYTES_MAX,
            Self::Key(_) => KEY_SLOT_BYTES_MAX,
            Self::Manifest(..) => MANIFEST_BYTES_MAX,
            Self::Container(..) => CONTAINER_BYTES_MAX,
            Self::Parity(..) => PARITY_BYTES_MAX,
            Self::Copy(original) => original.name().bytes_max(),
            Self::Aside(what, _) => what.name().bytes_max(),
            Self::Renewal(..) => 0,
            Self::ManifestPart(..) => PART_OBJECT_BYTES_MAX,
            Self::Loan(..) => LOAN_BYTES_MAX,
            Self::Directory(_) => DIRECTORY_BYTES_MAX,
        }
    }
}

/// A listing: the objects to list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Listing {
    /// Every object of the repository, whatever its kind.
    All,
    /// The records of the repository.
    Configs,
    /// The copies of the records of the repository.
    ConfigCopies,
    /// The key slots.
    Keys,
    /// The copies of the key slots.
    KeyCopies,
    /// All manifests of all series.
    AllManifests,
    /// The copies of all manifests of all series.
    AllManifestCopies,
    /// The manifests of one series.
    Manifests(SeriesId),
    /// The copies of the manifests of one series.
    ManifestCopies(SeriesId),
    /// The containers of one kind of one series.
    Containers(ContainerKind, SeriesId),
    /// Objects that repairs have replaced.
    Aside,
    /// The parity objects of one series.
    Parity(SeriesId),
    /// The renewals of the leases of one series.
    Renewals(SeriesId),
    /// The parts of the manifests of one series.
    ManifestParts(SeriesId),
    /// The copies of the parts of the manifests of one series.
    ManifestPartCopies(SeriesId),
    /// The loans that others have of this series.
    Loans(SeriesId),
    /// The directories of series that others may borrow of.
    Directories,
}

/// The folder of the containers of a kind.
const fn folder_of(kind: ContainerKind) -> &'static str {
    match kind {
        ContainerKind::Data => DATA,
        ContainerKind::Metadata => METADATA,
    }
}

impl Listing {
    /// Returns the listings of all containers of a series, for [`Storage::list_both`](super::Storage::list_both).
    pub const fn containers_of(series: SeriesId) -> [Self; 2] {
        [Self::Containers(ContainerKind::Data, series), Self::Containers(ContainerKind::Metadata, series)]
    }

    /// Returns the listings of all that a series keeps: containers, their parity, manifests and their parts, with
    /// copies.
    pub const fn kept_by(series: SeriesId) -> [Self; 7] {
        [
            Self::Containers(ContainerKind::Data, series),
            Self::Containers(ContainerKind::Metadata, series),
            Self::Parity(series),
            Self::Manifests(series),
            Self::ManifestCopies(series),
            Self::ManifestParts(series),
            Self::ManifestPartCopies(series),
        ]
    }

    /// Returns the folder that holds all objects of the listing: the beginning of their names, without a slash at its
    /// end. It is empty for [`Listing::All`].
    pub fn folder(&self) -> String {
        match self {
            Self::All => String::new(),
            Self::Configs => "config".to_owned(),
            Self::ConfigCopies => "copies/config".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::KeyCopies => "copies/keys".to_owned(),
            Self::AllManifests => "series".to_owned(),
            Self::AllManifestCopies => "copies/series".to_owned(),
            Self::Manifests(series) => format!("series/{series}"),
            Self::ManifestCopies(series) => format!("copies/series/{series}"),
            Self::Containers(kind, series) => format!("{}/{series}", folder_of(*kind)),
            Self::Aside => "aside".to_owned(),
            Self::Parity(series) => format!("parity/{series}"),
            Self::Renewals(series) => format!("renewals/{series}"),
            Self::ManifestParts(series) => format!("parts/{series}"),
            Self::ManifestPartCopies(series) => format!("copies/parts/{series}"),
            Self::Loans(lender) => format!("loans/{lender}"),
            Self::Directories => "directory".to_owned(),
        }
    }

    /// Returns the listing of this folder, the exact inverse of [`Listing::folder`]; `None` for any other text.
    pub fn of_folder(folder: &str) -> Option<Self> {
        let of_series = |make: fn(SeriesId) -> Self, series| Some(make(SeriesId::from_hex(series)?));
        match folder {
            "" => Some(Self::All),
            "config" => Some(Self::Configs),
            "copies/config" => Some(Self::ConfigCopies),
            "keys" => Some(Self::Keys),
            "copies/keys" => Some(Self::KeyCopies),
            "series" => Some(Self::AllManifests),
            "copies/series" => Some(Self::AllManifestCopies),
            "aside" => Some(Self::Aside),
            "directory" => Some(Self::Directories),
            _ => match folder.rsplit_once('/')? {
                ("series", series) => of_series(Self::Manifests, series),
                ("copies/series", series) => of_series(Self::ManifestCopies, series),
                (DATA, series) => of_series(|series| Self::Containers(ContainerKind::Data, series), series),
                (METADATA, series) => of_series(|series| Self::Containers(ContainerKind::Metadata, series), series),
                ("parity", series) => of_series(Self::Parity, series),
                ("renewals", series) => of_series(Self::Renewals, series),
                ("parts", series) => of_series(Self::ManifestParts, series),
                ("copies/parts", series) => of_series(Self::ManifestPartCopies, series),
                ("loans", lender) => of_series(Self::Loans, lender),
                _ => None,
            },
        }
    }

    /// Tells whether the listing includes this object.
    pub fn holds(&self, name: &ObjectName) -> bool {
        match (self, name) {
            (Self::All, _)
            | (Self::Aside, ObjectName::Aside(..))
            | (Self::Directories, ObjectName::Directory(_))
            | (Self::Configs, ObjectName::Config(_))
            | (Self::ConfigCopies, ObjectName::Copy(Original::Config(_)))
            | (Self::Keys, ObjectName::Key(_))
            | (Self::KeyCopies, ObjectName::Copy(Original::Key(_)))
            | (Self::AllManifests, ObjectName::Manifest(..))
            | (Self::AllManifestCopies, ObjectName::Copy(Original::Manifest(..))) => true,
            (Self::Containers(asked_kind, asked), ObjectName::Container(kind, series, _)) => {
                (asked_kind, asked) == (kind, series)
            }
            (Self::Manifests(asked), ObjectName::Manifest(series, _))
            | (Self::ManifestCopies(asked), ObjectName::Copy(Original::Manifest(series, _)))
            | (Self::Parity(asked), ObjectName::Parity(series, _))
            | (Self::Renewals(asked), ObjectName::Renewal(series, _))
            | (Self::ManifestParts(asked), ObjectName::ManifestPart(series, _))
            | (Self::Loans(asked), ObjectName::Loan(series, _))
            | (Self::ManifestPartCopies(asked), ObjectName::Copy(Original::ManifestPart(series, _))) => asked == series,
            _ => false,
        }
    }
}

/// An object that was listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectMeta {
    /// Name of the object.
    pub name: ObjectName,
    /// Length of the object in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_kind() -> impl Strategy<Value = ContainerKind> {
        prop_oneof![Just(ContainerKind::Data), Just(ContainerKind::Metadata)]
    }

    fn any_name() -> impl Strategy<Value = ObjectName> {
        let series = any::<[u8; 16]>().prop_map(SeriesId);
        prop_oneof![
            any::<u64>().prop_map(ObjectName::Config),
            any::<u64>().prop_map(|sequence| Original::Config(sequence).copy()),
            any::<[u8; 16]>().prop_map(|id| Original::Key(KeyId(id)).copy()),
            (series.clone(), any::<u64>()).prop_map(|(series, sequence)| Original::Manifest(series, sequence).copy()),
            Just(ObjectName::Reserve),
            any::<u64>().prop_map(ObjectName::Directory),
            (series.clone(), any::<[u8; 16]>(), any::<u64>(), any::<u32>()).prop_map(
                |(lender, borrower, lease, serial)| {
                    ObjectName::Loan(lender, LoanId { borrower: SeriesId(borrower), lease, serial })
                }
            ),
            any::<[u8; 16]>().prop_map(|id| ObjectName::Key(KeyId(id))),
            (series.clone(), any::<u64>()).prop_map(|(series, sequence)| ObjectName::Manifest(series, sequence)),
            (any_kind(), series.clone(), any::<u64>(), any::<u32>()).prop_map(|(kind, series, lease, serial)| {
                ObjectName::Container(kind, series, ContainerId { lease, serial })
            }),
            (any::<u64>(), any::<u32>())
                .prop_map(|(sequence, serial)| ObjectName::Aside(Replaced::Config(sequence), serial)),
            (any::<[u8; 16]>(), any::<u32>())
                .prop_map(|(id, serial)| ObjectName::Aside(Replaced::Key(KeyId(id)), serial)),
            (series.clone(), any::<u64>(), any::<u32>()).prop_map(|(series, sequence, serial)| {
                ObjectName::Aside(Replaced::Manifest(series, sequence), serial)
            }),
            (any_kind(), series.clone(), any::<u64>(), any::<u32>()).prop_map(|(kind, series, lease, serial)| {
                ObjectName::Aside(Replaced::Container(kind, series, ContainerId { lease, serial }), serial)
            }),
            (series.clone(), any::<u64>(), any::<u32>())
                .prop_map(|(series, lease, serial)| ObjectName::Parity(series, ContainerId { lease, serial })),
            (series.clone(), any::<u64>(), any::<u32>())
                .prop_map(|(series, lease, count)| ObjectName::Renewal(series, RenewalId { lease, count })),
            (series.clone(), any::<u64>(), any::<u32>())
                .prop_map(|(series, lease, serial)| ObjectName::ManifestPart(series, PartId { lease, serial })),
            (series, any::<u64>(), any::<u32>()).prop_map(|(series, lease, serial)| Original::ManifestPart(
                series,
                PartId { lease, serial }
            )
            .copy()),
        ]
    }

    proptest! {
        #[test]
        fn text_form_round_trips(name in any_name()) {
            prop_assert_eq!(ObjectName::from_text(&name.to_string()), Some(name));
        }

        #[test]
        fn a_name_has_one_spelling(name in any_name(), at in any::<prop::sample::Index>(), to in "[0-9a-zA-Z/+. -]") {
            let mut text = name.to_string();
            let at = at.index(text.len());
            text.replace_range(at..=at, &to);
            if let Some(read) = ObjectName::from_text(&text) {
                prop_assert_eq!(read.to_string(), text);
            }
        }

        #[test]
        fn any_text_is_refused_or_a_name(text in ".{0,80}") {
            if let Some(read) = ObjectName::from_text(&text) {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }

    #[test]
    fn a_listing_is_told_by_its_folder() {
        let series = SeriesId([0xa5; 16]);
        let kinds: [fn(SeriesId) -> Listing; 7] = [
            Listing::Manifests,
            Listing::ManifestCopies,
            Listing::Parity,
            Listing::Renewals,
            Listing::ManifestParts,
            Listing::ManifestPartCopies,
            Listing::Loans,
        ];
        let all =
            [Listing::All, Listing::Aside, Listing::Directories, Listing::AllManifests, Listing::AllManifestCopies];
        let of_repository = [Listing::Configs, Listing::ConfigCopies, Listing::Keys, Listing::KeyCopies];
        let of_series = kinds.map(|make| make(series)).into_iter().chain(Listing::containers_of(series));
        for what in of_series.chain(all).chain(of_repository) {
            assert_eq!(Listing::of_folder(&what.folder()), Some(what));
        }
        for folder in
            ["/", "config/", "series/", "series/x", "copies", "tmp", "data", "metadata", "copies/data/x", "data/x"]
        {
            assert_eq!(Listing::of_folder(folder), None, "{folder}");
        }
    }

    #[test]
    fn containers_lie_apart_by_their_kind() {
        let (series, id) = (SeriesId([0xa5; 16]), ContainerId { lease: 1, serial: 2 });
        let [data, metadata] = [ContainerKind::Data, ContainerKind::Metadata].map(|kind| {
            let name = ObjectName::Container(kind, series, id);
            let holders = Listing::containers_of(series).map(|what| what.holds(&name));
            (name.to_string(), holders)
        });
        assert_eq!(data, (format!("data/{series}/{id}"), [true, false]));
        assert_eq!(metadata, (format!("metadata/{series}/{id}"), [false, true]));
    }

    #[test]
    fn foreign_spellings_are_refused() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "config".to_owned(),
            "config/".to_owned(),
            "config/1".to_owned(),
            "Config/0000000000000001".to_owned(),
            "copies".to_owned(),
            "copies/reserve".to_owned(),
            "copies/copies/config/0000000000000001".to_owned(),
            format!("copies/data/{zeros}/0000000000000001-00000001"),
            format!("containers/{zeros}/0000000000000001-00000001"),
            "keys".to_owned(),
            format!("keys/{zeros}/0"),
            format!("keys/{}", "A".repeat(32)),
            format!("series/{zeros}/1"),
            format!("series/{zeros}/+00000000000000f"),
            format!("series/{zeros}/0000000000000001/x"),
            format!("data/{zeros}/0000000000000001-1"),
            format!("metadata/{zeros}/0000000000000001-1"),
            format!("renewals/{zeros}/0000000000000001-1"),
            format!("copies/renewals/{zeros}/0000000000000001-00000001"),
        ] {
            assert_eq!(ObjectName::from_text(&text), None, "{text}");
        }
    }
}
