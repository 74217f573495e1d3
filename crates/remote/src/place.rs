//! Places: where a repository lies, by its address. The words are restic's, so that addresses move over as they are.

use crate::served::ServerAddress;
use crate::server::Server;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use url::Url;

/// Schemes that are known, for those who mistype one.
const SCHEMES: [&str; 8] = ["local", "s3", "gs", "az", "azure", "sftp", "silt", "rclone"];

/// The place of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A bucket of an object store.
    Bucket(Bucket),
    /// A folder of a server that a program reaches.
    Server(Server),
    /// A server of this program.
    Served(ServerAddress),
}

/// A bucket, or a container, and the prefix below which all objects of a repository lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The service.
    pub service: Service,
    /// Name of the bucket, or of the container.
    pub name: String,
    /// Prefix of all names, without slashes around it; may be empty.
    pub prefix: String,
}

/// A service that keeps objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Service {
    /// S3 at this endpoint, `https://host:port` without a path.
    S3 {
        /// The endpoint.
        endpoint: String,
    },
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

/// An address that names no place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The word before the first colon is no scheme that is known, and the address is no path either.
    #[error(
        "{address}: this version does not reach '{scheme}:'; it knows folders, s3:, gs:, az:, sftp:, silt: and \
         rclone:{advice}; a folder whose name has a colon is ./NAME or local:NAME"
    )]
    UnknownScheme {
        /// The address, or its beginning if the rest may hold a password.
        address: String,
        /// Its scheme.
        scheme: String,
        /// Guess at what is meant, after a semicolon; may be empty.
        advice: String,
    },
    /// The address is incomplete or wrong.
    #[error("{address} is no address of a repository: {reason}; write it as {form}")]
    Malformed {
        /// The address.
        address: String,
        /// The fault of it.
        reason: &'static str,
        /// The form it should have.
        form: &'static str,
    },
    /// The address holds a password or a key, which others could see.
    #[error("the address holds a password: leave it out, and use the variables of its service, or the keys of ssh")]
    HoldsSecret,
    /// The environment gives no credentials, or not all.
    #[error("no credentials for {location}: set {variables}")]
    NoCredentials {
        /// The address.
        location: String,
        /// The variables that give them.
        variables: &'static str,
    },
    /// The settings of the environment are not understood.
    #[error("cannot use the settings for {location}: {reason}; check the variables of its service")]
    Settings {
        /// The address.
        location: String,
        /// The fault of them.
        reason: String,
    },
}

const FOLDER_FORM: &str = "./NAME or local:NAME if it is a folder";
const SSH_FORM: &str = "sftp:user@host:/folder";
const S3_FORM: &str = "s3:https://host/bucket/prefix";
const GOOGLE_FORM: &str = "gs:bucket:/prefix";
const AZURE_FORM: &str = "az:container:/prefix";

impl Place {
    /// Reads an address. What has no colon, or a slash before the first one, is a folder, and so is what begins with
    /// `local:`.
    ///
    /// # Errors
    /// [`PlaceError`], by what is wrong.
    pub fn parse(address: &OsStr) -> Result<Self, PlaceError> {
        if let Some(path) = address.as_bytes().strip_prefix(b"local:") {
            return Ok(Self::Folder(PathBuf::from(OsString::from_vec(path.to_vec()))));
        }
        let text = address.to_string_lossy();
        let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| !scheme.contains('/')) else {
            return Ok(Self::Folder(PathBuf::from(address)));
        };
        if address.to_str().is_none() {
            let reason = "it is not UTF-8";
            return Err(PlaceError::Malformed { address: format!("{scheme}:..."), reason, form: FOLDER_FORM });
        }
        match scheme {
            "s3" => s3(rest).map(Self::Bucket),
            "gs" => cloud(Service::Google, scheme, rest, GOOGLE_FORM).map(Self::Bucket),
            "az" | "azure" => cloud(Service::Azure, scheme, rest, AZURE_FORM).map(Self::Bucket),
            "sftp" => Server::ssh(rest).map(Self::Server),
            "rclone" => Server::rclone(rest).map(Self::Server),
            "silt" => ServerAddress::parse(rest).map(Self::Served),
            _ => Err(unknown(scheme, rest)),
        }
    }
}

/// The error for an address that is not known, with what may be meant. Before an `@` there may be a password: such an
/// address is not shown.
fn unknown(scheme: &str, rest: &str) -> PlaceError {
    let is_shown = !rest.contains('@');
    let address = if is_shown { format!("{scheme}:{rest}") } else { format!("{scheme}:...") };
    let advice = match scheme {
        "http" | "https" if is_shown => format!("; silt:{address} is a server of silt"),
        "http" | "https" => "; silt:https://host/ is a server of silt".to_owned(),
        "ssh" => format!("; {SSH_FORM} is a folder of a server"),
        _ => match mistyped(scheme) {
            Some(known) => format!("; is '{known}:' meant?"),
            None if is_shown && is_of_ssh(scheme, rest) => format!("; sftp:{address} is a folder of a server"),
            None => String::new(),
        },
    };
    PlaceError::UnknownScheme { address, scheme: scheme.to_owned(), advice }
}

/// Tells whether an address looks as `scp` and `rsync` have it: `user@host:folder`, or `host:/folder`.
fn is_of_ssh(scheme: &str, rest: &str) -> bool {
    // A letter is a drive of Windows.
    let is_host = scheme.len() > 1 && scheme != "file";
    is_host && !rest.starts_with("//") && (scheme.contains('@') || rest.starts_with('/'))
}

/// The known scheme that has the same letters, large or small, in any order.
fn mistyped(scheme: &str) -> Option<&'static str> {
    let letters = |word: &str| {
        let mut letters: Vec<u8> = word.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
        letters.sort_unstable();
        letters
    };
    SCHEMES.into_iter().find(|known| letters(known) == letters(scheme))
}

/// Reads `host:port/bucket/prefix`, with `https://`, `http://` or `//` before it or nothing.
fn s3(rest: &str) -> Result<Bucket, PlaceError> {
    let malformed = |reason| PlaceError::Malformed { address: format!("s3:{rest}"), reason, form: S3_FORM };
    let (scheme, rest) = match rest.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some(_) => return Err(malformed("its scheme is neither http nor https")),
        None => ("https", rest.strip_prefix("//").unwrap_or(rest)),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let endpoint = Url::parse(&format!("{scheme}://{host}")).map_err(|_| malformed("its host cannot be read"))?;
    if !endpoint.username().is_empty() || endpoint.password().is_some() {
        return Err(PlaceError::HoldsSecret);
    }
    let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
    if name.is_empty() {
        return Err(malformed("it names no bucket"));
    }
    let prefix = clean(prefix).ok_or_else(|| malformed(EMPTY_PART))?;
    let service = Service::S3 { endpoint: endpoint.as_str().trim_end_matches('/').to_owned() };
    Ok(Bucket { service, name: name.to_owned(), prefix })
}

/// Reads `name:/prefix`.
fn cloud(service: Service, scheme: &str, rest: &str, form: &'static str) -> Result<Bucket, PlaceError> {
    let malformed = |reason| PlaceError::Malformed { address: format!("{scheme}:{rest}"), reason, form };
    let (name, prefix) = rest.split_once(':').unwrap_or((rest, ""));
    if name.is_empty() || name.contains('/') {
        return Err(malformed("it names no bucket"));
    }
    let prefix = clean(prefix.strip_prefix('/').unwrap_or(prefix)).ok_or_else(|| malformed(EMPTY_PART))?;
    Ok(Bucket { service, name: name.to_owned(), prefix })
}

const EMPTY_PART: &str = "its prefix has an empty part, '.' or '..'";

/// A prefix without a slash at its end; `None` if a part of it is none.
fn clean(prefix: &str) -> Option<String> {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_sound = prefix.is_empty() || prefix.split('/').all(|part| !matches!(part, "" | "." | ".."));
    is_sound.then(|| prefix.to_owned())
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, name, prefix } = self;
        match service {
            Service::S3 { endpoint } if prefix.is_empty() => write!(f, "s3:{endpoint}/{name}"),
            Service::S3 { endpoint } => write!(f, "s3:{endpoint}/{name}/{prefix}"),
            Service::Google => write!(f, "gs:{name}:/{prefix}"),
            Service::Azure => write!(f, "az:{name}:/{prefix}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Bucket(bucket) => bucket.fmt(f),
            Self::Server(server) => server.fmt(f),
            Self::Served(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shown(address: &str) -> String {
        Place::parse(OsStr::new(address)).map_or_else(|error| format!("error: {error}"), |place| place.to_string())
    }

    fn is_folder(address: &str) -> bool {
        matches!(Place::parse(OsStr::new(address)), Ok(Place::Folder(_)))
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        let cases = [
            ("s3:s3.amazonaws.com/bucket", "s3:https://s3.amazonaws.com/bucket"),
            ("s3:host:9000/bucket/a/b/", "s3:https://host:9000/bucket/a/b"),
            ("s3://host/bucket/a", "s3:https://host/bucket/a"),
            ("s3:http://127.0.0.1:9000/bucket", "s3:http://127.0.0.1:9000/bucket"),
            ("s3:https://[::1]:9000/bucket/a", "s3:https://[::1]:9000/bucket/a"),
            ("s3:host/bucket/a b%20?", "s3:https://host/bucket/a b%20?"),
            ("gs:bucket:/a/b", "gs:bucket:/a/b"),
            ("gs:bucket", "gs:bucket:/"),
            ("az:box:/", "az:box:/"),
            ("azure:box:/a", "az:box:/a"),
            ("silt:https://host:8010", "silt:https://host:8010/"),
            ("silt:http://127.0.0.1:8010/a/b/", "silt:http://127.0.0.1:8010/a/b/"),
            ("local:s3:x", "s3:x"),
            ("/backups/repo", "/backups/repo"),
        ];
        for (address, expected) in cases {
            assert_eq!(shown(address), expected, "{address}");
            assert!(
                address.starts_with("local:") || shown(expected) == expected,
                "{expected} is not read as it is shown"
            );
        }
    }

    #[test]
    fn folders_with_colons_stay_folders() {
        for address in ["s3-copy/repo", "./C:x", "./s3:x", "./backup:2026", "/a:b", "a/b:c", "local:backup:2026", ""] {
            assert!(is_folder(address), "{address}");
        }
        assert!(matches!(Place::parse(OsStr::from_bytes(b"./\xff:x")), Ok(Place::Folder(_))));
    }

    #[test]
    fn what_is_neither_known_nor_a_path_is_refused_with_what_may_be_meant() {
        let cases = [
            ("me@server:/backups/repo", "; sftp:me@server:/backups/repo is a folder of a server; "),
            ("me@server:repo", "; sftp:me@server:repo is a folder of a server; "),
            ("host:/backups/repo", "; sftp:host:/backups/repo is a folder of a server; "),
            ("ssh://host/x", "; sftp:user@host:/folder is a folder of a server; "),
            ("sfpt:me@server:/x", "; is 'sftp:' meant?; "),
            ("S3:bucket/x", "; is 's3:' meant?; "),
            ("https://host/", "; silt:https://host/ is a server of silt; "),
            ("smb://nas/share", "rclone:; a folder"),
            ("backup:2026", "rclone:; a folder"),
            ("C:x", "rclone:; a folder"),
            (":x", "rclone:; a folder"),
        ];
        for (address, advice) in cases {
            let said = shown(address);
            assert!(said.starts_with("error: ") && said.contains("does not reach"), "{address}: {said}");
            assert!(said.contains(advice), "{address}: {said}");
            assert!(said.ends_with("; a folder whose name has a colon is ./NAME or local:NAME"), "{address}: {said}");
        }
        let said = Place::parse(OsStr::from_bytes(b"s3:host/\xff")).unwrap_err().to_string();
        assert!(said.contains("not UTF-8") && said.contains("./NAME"), "{said}");
    }

    #[test]
    fn wrong_addresses_are_named_with_the_right_form() {
        for address in [
            "s3:",
            "s3:host",
            "s3:host/",
            "s3:host/b//x",
            "s3:host/b/../x",
            "s3:ftp://h/b",
            "gs:",
            "gs:/x",
            "az::/x",
            "az:b:/a//b",
            "silt:host",
            "silt:ftp://host/",
            "silt:https://host/?x=y",
        ] {
            let said = shown(address);
            assert!(said.starts_with("error: ") && said.contains("write it as"), "{address}: {said}");
        }
        for address in ["ssh:host:/x", "rest:http://host/", "b2:bucket:x"] {
            assert!(shown(address).contains("does not reach"), "{address}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_shown() {
        let said = shown("s3:https://key:secret@host/bucket");
        assert!(said.contains("password") && !said.contains("secret"), "{said}");
        for address in ["me:secret@server:/x", "https://key:secret@host/", "rest:https://key:secret@host/"] {
            let said = shown(address);
            assert!(said.contains("does not reach") && !said.contains("secret"), "{address}: {said}");
        }
    }
}
