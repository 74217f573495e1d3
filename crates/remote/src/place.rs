//! Places: where a repository lies, by its address. The words are restic's, so that addresses move over as they are.

use crate::served::ServerAddress;
use crate::server::Server;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use url::Url;

/// Places of other tools that this program does not reach. A path that begins so is hardly meant as a folder.
const UNKNOWN_SCHEMES: [&str; 5] = ["rest", "b2", "swift", "ssh", "http"];

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
    /// The scheme is that of a place which is not supported.
    #[error(
        "{address}: this version does not reach '{scheme}:'; it knows folders, s3:, gs:, az:, sftp:, silt: and rclone:"
    )]
    UnknownScheme {
        /// The address.
        address: String,
        /// Its scheme.
        scheme: String,
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

const S3_FORM: &str = "s3:https://host/bucket/prefix";
const GOOGLE_FORM: &str = "gs:bucket:/prefix";
const AZURE_FORM: &str = "az:container:/prefix";

impl Place {
    /// Reads an address. What has no scheme, and what begins with `local:`, is a folder.
    ///
    /// # Errors
    /// [`PlaceError`], by what is wrong.
    pub fn parse(address: &OsStr) -> Result<Self, PlaceError> {
        if let Some(path) = address.as_bytes().strip_prefix(b"local:") {
            return Ok(Self::Folder(PathBuf::from(OsString::from_vec(path.to_vec()))));
        }
        let Some((scheme, rest)) = address.to_str().and_then(|text| text.split_once(':')) else {
            return Ok(Self::Folder(PathBuf::from(address)));
        };
        match scheme {
            "s3" => s3(rest).map(Self::Bucket),
            "gs" => cloud(Service::Google, scheme, rest, GOOGLE_FORM).map(Self::Bucket),
            "az" | "azure" => cloud(Service::Azure, scheme, rest, AZURE_FORM).map(Self::Bucket),
            "sftp" => Server::ssh(rest).map(Self::Server),
            "rclone" => Server::rclone(rest).map(Self::Server),
            "silt" => ServerAddress::parse(rest).map(Self::Served),
            _ if UNKNOWN_SCHEMES.contains(&scheme) => {
                Err(PlaceError::UnknownScheme { address: format!("{scheme}:{rest}"), scheme: scheme.to_owned() })
            }
            _ => Ok(Self::Folder(PathBuf::from(address))),
        }
    }
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
        for address in ["s3-copy/repo", "C:x", "./s3:x", "backup:2026", ""] {
            assert!(is_folder(address), "{address}");
        }
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
    }
}
