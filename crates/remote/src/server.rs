//! Servers that are reached by a program: the addresses `sftp:` and `rclone:`, and how they become a storage. The words
//! are restic's.

use crate::connect::{ConnectError, Variables};
use crate::object::ObjectStorage;
use crate::place::PlaceError;
use crate::retries::Retries;
use crate::sftp::{Connection, Naming, Program, Root, SftpStore};
use crate::traffic::Traffic;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use url::Url;

const SSH_FORM: &str = "sftp:user@host:/folder";
const RCLONE_FORM: &str = "rclone:remote:folder";
const SSH_ADVICE: &str =
    "install OpenSSH (Debian's package openssh-client), or name another program by SILT_SFTP_COMMAND";
const RCLONE_ADVICE: &str = "install rclone (Debian's package rclone), or name it by SILT_RCLONE_PROGRAM";
/// Arguments of rclone. Its caches would hide what others write, and would say that a file is written before it is.
const RCLONE_ARGUMENTS: &str = "serve sftp --stdio --vfs-cache-mode off --dir-cache-time 0s --poll-interval 0";
/// Times of silence after which one request is given up from outside. The connection itself is the first to notice.
const SILENCES: u32 = 20;

/// A folder on a server that a program of this machine reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Server {
    /// A folder of a machine, by `ssh`.
    Ssh {
        /// The user there; that of ssh's configuration if there is none.
        user: Option<String>,
        /// The machine, or its name in ssh's configuration.
        host: String,
        /// The port; that of ssh's configuration if there is none.
        port: Option<u16>,
        /// The folder, from `/` or from the user's own; `""` is the user's own.
        path: String,
    },
    /// A folder of a remote of `rclone`.
    Rclone {
        /// The remote and the folder in it, as rclone writes them: `remote:folder`.
        remote: String,
    },
}

/// The programs that reach servers, where they are not the usual ones.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Programs {
    /// The whole command that gives SFTP on its standard streams, instead of `ssh` and the server's name.
    pub sftp_command: Option<String>,
    /// More arguments of `ssh`.
    pub sftp_arguments: Option<String>,
    /// The program of rclone.
    pub rclone_program: Option<String>,
    /// Arguments of rclone before the remote.
    pub rclone_arguments: Option<String>,
    /// The user promises that never two processes write to a repository behind rclone.
    pub rclone_has_one_writer: bool,
    /// Variables that the programs are given beside those of this process.
    pub variables: BTreeMap<String, String>,
}

impl Programs {
    /// Returns the programs that variables name: `SILT_SFTP_COMMAND`, `SILT_SFTP_ARGS`, `SILT_RCLONE_PROGRAM`,
    /// `SILT_RCLONE_ARGS`, and `SILT_RCLONE_ONE_WRITER`, which is `1` or not.
    #[must_use]
    pub fn of(variables: &Variables) -> Self {
        let text = |name| variables.get(name).map(str::to_owned);
        Self {
            sftp_command: text("SILT_SFTP_COMMAND"),
            sftp_arguments: text("SILT_SFTP_ARGS"),
            rclone_program: text("SILT_RCLONE_PROGRAM"),
            rclone_arguments: text("SILT_RCLONE_ARGS"),
            rclone_has_one_writer: variables.get("SILT_RCLONE_ONE_WRITER") == Some("1"),
            variables: BTreeMap::new(),
        }
    }

    /// Returns these programs, which are given more variables.
    #[must_use]
    pub fn with_variables<'v>(mut self, variables: impl Iterator<Item = (&'v String, &'v String)>) -> Self {
        self.variables.extend(variables.map(|(name, value)| (name.clone(), value.clone())));
        self
    }
}

impl Server {
    /// Reads what stands behind `sftp:`: `user@host:folder`, or `//user@host:port/folder`, where a folder from `/`
    /// begins with a second slash. An IPv6 address stands in brackets.
    pub(crate) fn ssh(rest: &str) -> Result<Self, PlaceError> {
        let malformed = |reason| PlaceError::Malformed { address: format!("sftp:{rest}"), reason, form: SSH_FORM };
        let (user, host, port, path) = if rest.starts_with("//") {
            let url = Url::parse(&format!("sftp:{rest}")).map_err(|_| malformed("its host cannot be read"))?;
            if url.password().is_some() {
                return Err(PlaceError::HoldsSecret);
            }
            let authority = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
            let path = rest.get(2 + authority.len()..).unwrap_or_default();
            let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
            let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
            (user.to_owned(), host, url.port(), path.strip_prefix('/').unwrap_or(path))
        } else {
            let (user, rest) = match rest.split_once('@') {
                Some((user, rest)) if !user.contains('/') => (user, rest),
                _ => ("", rest),
            };
            if user.contains(':') {
                return Err(PlaceError::HoldsSecret);
            }
            let (host, path) = host_and_folder(rest).map_err(malformed)?;
            (user.to_owned(), host.to_owned(), None, path)
        };
        if host.is_empty() || host.contains(['/', '[']) {
            return Err(malformed("it names no host"));
        }
        // The program would take it for an option.
        if host.starts_with('-') || user.starts_with('-') {
            return Err(malformed("a name in it begins with '-'"));
        }
        let path = clean(path);
        Ok(Self::Ssh { user: Some(user).filter(|user| !user.is_empty()), host, port, path })
    }

    /// Reads what stands behind `rclone:`.
    pub(crate) fn rclone(rest: &str) -> Result<Self, PlaceError> {
        let malformed = |reason| PlaceError::Malformed { address: format!("rclone:{rest}"), reason, form: RCLONE_FORM };
        if rest.is_empty() || rest.starts_with('-') {
            return Err(malformed("it names no remote"));
        }
        Ok(Self::Rclone { remote: rest.to_owned() })
    }

    /// The words that start the program, the folder behind it, and how files get their names there.
    fn program(&self, programs: &Programs) -> Result<(Program, &str, Naming), PlaceError> {
        let split = |text: &str| {
            let location = self.to_string();
            let reason = format!("a quote is not closed in '{text}'");
            shlex::split(text).ok_or(PlaceError::Settings { location, reason })
        };
        let naming = if programs.rclone_has_one_writer { Naming::Checked } else { Naming::Refused };
        let variables = programs.variables.clone();
        match self {
            Self::Ssh { path, .. } => {
                let words = match &programs.sftp_command {
                    Some(command) => split(command)?,
                    None => self.ssh_words(split(programs.sftp_arguments.as_deref().unwrap_or_default())?),
                };
                Ok((Program { words, variables, advice: SSH_ADVICE }, path, Naming::Refused))
            }
            Self::Rclone { remote } => {
                let mut words = split(programs.rclone_program.as_deref().unwrap_or("rclone"))?;
                words.extend(split(programs.rclone_arguments.as_deref().unwrap_or(RCLONE_ARGUMENTS))?);
                words.push(remote.clone());
                Ok((Program { words, variables, advice: RCLONE_ADVICE }, "", naming))
            }
        }
    }

    fn ssh_words(&self, arguments: Vec<String>) -> Vec<String> {
        let mut words = vec!["ssh".to_owned()];
        words.extend(arguments);
        if let Self::Ssh { user, host, port, .. } = self {
            words.extend(port.map(|port| format!("-p{port}")));
            words.extend(user.iter().map(|user| format!("-l{user}")));
            words.extend(["-T", "-s", "--"].map(str::to_owned));
            words.extend([host.clone(), "sftp".to_owned()]);
        }
        words
    }
}

/// Splits `host:folder`, where the host may be an IPv6 address in brackets, with the name of an interface after `%`.
///
/// # Errors
/// Reason why the address is refused.
fn host_and_folder(rest: &str) -> Result<(&str, &str), &'static str> {
    let Some(rest) = rest.strip_prefix('[') else { return rest.split_once(':').ok_or("no ':' ends its host") };
    let (host, folder) = rest.split_once("]:").ok_or("no ']:' ends its host")?;
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    if address.parse::<Ipv6Addr>().is_err() {
        return Err("no IPv6 address stands in its brackets");
    }
    Ok((host, folder))
}

/// A folder's path without slashes at its end; the root stays.
fn clean(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() && path.starts_with('/') { "/".to_owned() } else { trimmed.to_owned() }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh { user, host, port, path } => {
                let user = user.iter().fold(String::new(), |_, user| format!("{user}@"));
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                match port {
                    None => write!(f, "sftp:{user}{host}:{path}"),
                    Some(port) => write!(f, "sftp://{user}{host}:{port}/{path}"),
                }
            }
            Self::Rclone { remote } => write!(f, "rclone:{remote}"),
        }
    }
}

/// Makes the storage of a server's folder, which must be there. Nothing is asked of the server yet. A connection is
/// given up after twice the silence of these retries, for a busy disk may take long to make durable what was written.
/// All that goes through the program counts as this traffic.
///
/// # Errors
/// The programs' words cannot be read, or the system gives no threads.
pub fn connect_server(
    server: &Server,
    programs: &Programs,
    retries: Retries,
    traffic: &Traffic,
) -> Result<ObjectStorage, ConnectError> {
    storage(server, programs, retries, traffic, Root::IsThere)
}

/// Makes the storage as [`connect_server`] does, for a new repository, whose folder is made with its first object.
///
/// # Errors
/// As of [`connect_server`].
pub fn create_server(
    server: &Server,
    programs: &Programs,
    retries: Retries,
    traffic: &Traffic,
) -> Result<ObjectStorage, ConnectError> {
    storage(server, programs, retries, traffic, Root::IsMade)
}

fn storage(
    server: &Server,
    programs: &Programs,
    retries: Retries,
    traffic: &Traffic,
    kind: Root,
) -> Result<ObjectStorage, ConnectError> {
    let (program, root, naming) = server.program(programs)?;
    let connection = Connection::new(program, 2 * retries.silence, traffic.clone());
    let store = SftpStore::new(connection, root, naming, kind);
    let outside = retries.with_silence(SILENCES * retries.silence);
    let storage = ObjectStorage::over(Arc::new(store), "", &server.to_string(), outside, traffic)?;
    let storage = storage.with_batch_delete().with_temporaries();
    Ok(if matches!(server, Server::Ssh { .. }) { storage.with_reserve() } else { storage })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::place::Place;

    fn server(address: &str) -> Server {
        match Place::parse(address.as_ref()) {
            Ok(Place::Server(server)) => server,
            other => panic!("{address}: {other:?}"),
        }
    }

    fn words(address: &str, programs: &Programs) -> String {
        server(address).program(programs).unwrap().0.words.join(" ")
    }

    #[test]
    fn addresses_are_read_as_restic_reads_them() {
        let cases = [
            ("sftp:user@host:/srv/repo", "ssh -luser -T -s -- host sftp", "/srv/repo"),
            ("sftp:host:repo/x/", "ssh -T -s -- host sftp", "repo/x"),
            ("sftp:host:", "ssh -T -s -- host sftp", ""),
            ("sftp:host:/", "ssh -T -s -- host sftp", "/"),
            ("sftp:user@domain@host:/x", "ssh -luser -T -s -- domain@host sftp", "/x"),
            ("sftp://user@host:2222//srv/repo", "ssh -p2222 -luser -T -s -- host sftp", "/srv/repo"),
            ("sftp://user@host:2222/repo", "ssh -p2222 -luser -T -s -- host sftp", "repo"),
            ("sftp://[::1]:2222//srv", "ssh -p2222 -T -s -- ::1 sftp", "/srv"),
            ("sftp://user@[::1]:2222//x", "ssh -p2222 -luser -T -s -- ::1 sftp", "/x"),
            ("sftp://[::1]/repo", "ssh -T -s -- ::1 sftp", "repo"),
            ("sftp:user@[::1]:/x", "ssh -luser -T -s -- ::1 sftp", "/x"),
            ("sftp:[fe80::1%eth0]:repo/[x]:y", "ssh -T -s -- fe80::1%eth0 sftp", "repo/[x]:y"),
            ("sftp://host", "ssh -T -s -- host sftp", ""),
        ];
        for (address, expected, folder) in cases {
            assert_eq!(words(address, &Programs::default()), expected, "{address}");
            let (_, root, naming) =
                server(address).program(&Programs::default()).map(|(p, r, n)| (p, r.to_owned(), n)).unwrap();
            assert_eq!((root.as_str(), naming), (folder, Naming::Refused), "{address}");
            assert_eq!(server(&server(address).to_string()), server(address), "{address}");
        }
    }

    #[test]
    fn addresses_that_name_no_place_are_refused_with_the_right_form() {
        for address in [
            "sftp:",
            "sftp:host",
            "sftp::/x",
            "sftp:-oProxyCommand=x:/x",
            "sftp:-lx@host:/x",
            "sftp:///x",
            "sftp:user@[::1]",
            "sftp:[::1:/x",
            "sftp:[host]:/x",
            "sftp:user@domain@[::1]:/x",
            "rclone:",
            "rclone:--config=x",
        ] {
            let said = Place::parse(address.as_ref()).unwrap_err().to_string();
            assert!(said.contains("write it as"), "{address}: {said}");
        }
        for address in ["sftp:user:secret@host:/x", "sftp://user:secret@host/x"] {
            let said = Place::parse(address.as_ref()).unwrap_err().to_string();
            assert!(said.contains("password") && !said.contains("secret"), "{address}: {said}");
        }
    }

    #[test]
    fn programs_and_their_arguments_can_be_named() {
        let variables = [
            ("SILT_SFTP_ARGS", "-i '/my key'"),
            ("SILT_RCLONE_PROGRAM", "/opt/rclone"),
            ("SILT_RCLONE_ARGS", "serve sftp --stdio --bwlimit 1M"),
            ("SILT_RCLONE_ONE_WRITER", "1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut programs = Programs::of(&variables.into_iter().collect());
        assert_eq!(words("sftp:host:/x", &programs), "ssh -i /my key -T -s -- host sftp");
        assert_eq!(words("rclone:r:x", &programs), "/opt/rclone serve sftp --stdio --bwlimit 1M r:x");
        assert_eq!(server("rclone:r:x").program(&programs).unwrap().2, Naming::Checked);
        programs.sftp_command = Some("doas 'my ssh' sftp".to_owned());
        assert_eq!(words("sftp:host:/x", &programs), "doas my ssh sftp");
        programs.sftp_command = Some("'".to_owned());
        assert!(matches!(
            connect_server(&server("sftp:h:x"), &programs, Retries::default(), &Traffic::default()),
            Err(ConnectError::Place(_))
        ));
    }
}
