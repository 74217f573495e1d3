//! Servers for tests: OpenSSH's SFTP server as a program, the same behind a real `sshd` without a port, and rclone;
//! servers of object stores in the files beside.

pub(crate) mod buckets;

use siltstone_remote::{ConnectError, ObjectStorage, Place, Programs, Retries, Server, Traffic, create_server};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Places of OpenSSH's server, by distribution.
const SERVERS: [&str; 4] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/libexec/sftp-server",
];
const NEEDED: &str = "install openssh-client, openssh-server and openssh-sftp-server, or run cargo xtask test";

/// Returns OpenSSH's SFTP server, without which these tests cannot be run.
pub(crate) fn server_program() -> String {
    let found = SERVERS.into_iter().find(|program| Path::new(program).is_file());
    found.unwrap_or_else(|| panic!("OpenSSH's sftp-server is needed: {NEEDED}")).to_owned()
}

pub(crate) fn empty_folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn address(place: &str) -> Server {
    match Place::parse(place.as_ref()) {
        Ok(Place::Server(server)) => server,
        other => panic!("{place}: {other:?}"),
    }
}

/// A way to a storage.
type Way = fn(&Server, &Programs, Retries, &Traffic) -> Result<ObjectStorage, ConnectError>;

/// The storage in a folder that this command reaches.
pub(crate) fn reached(command: &str, folder: &Path, retries: Retries, how: Way) -> ObjectStorage {
    let mut programs = Programs::default();
    programs.sftp_command = Some(command.to_owned());
    how(&address(&format!("sftp:test:{}", folder.display())), &programs, retries, &Traffic::default()).unwrap()
}

/// The storage of a new repository in a folder that this command reaches.
pub(crate) fn by_program(command: &str, folder: &Path) -> ObjectStorage {
    reached(command, folder, Retries::default(), create_server)
}

/// The storage in a folder that rclone reaches; `None`, and a line that says which test does nothing, where there is no
/// rclone.
pub(crate) fn by_rclone(test: &str, folder: &Path, has_one_writer: bool) -> Option<ObjectStorage> {
    if Command::new("rclone").arg("version").output().is_err() {
        eprintln!("SKIPPED: {test} needs rclone, which is not installed: cargo xtask test installs it");
        return None;
    }
    let mut programs = Programs::default();
    programs.rclone_has_one_writer = has_one_writer;
    let server = address(&format!("rclone:{}", folder.display()));
    Some(create_server(&server, &programs, Retries::default(), &Traffic::default()).unwrap())
}

/// A real `sshd` with keys of its own, which `ssh` starts for each connection: no port is opened.
pub(crate) struct Sshd {
    folder: TempDir,
    arguments: String,
}

impl Sshd {
    /// Makes its keys and its configuration.
    pub(crate) fn new() -> Self {
        let folder = empty_folder();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["host", "user"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(path(name)).status();
            assert!(made.unwrap_or_else(|_| panic!("ssh-keygen is needed: {NEEDED}")).success());
        }
        fs::copy(path("user.pub"), path("authorized")).unwrap();
        let host = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("known"), format!("place {host}")).unwrap();
        let mut config = String::new();
        for line in [
            format!("HostKey {}", path("host")),
            format!("AuthorizedKeysFile {}", path("authorized")),
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nLogLevel ERROR".to_owned(),
            format!("Subsystem sftp {}", server_program()),
        ] {
            writeln!(config, "{line}").unwrap();
        }
        fs::write(path("config"), config).unwrap();
        // Of a user who may do everything sshd wants it; others cannot make it, and need not.
        let _ = fs::create_dir("/run/sshd");
        let proxy = format!("{} -i -f {}", sshd_program().display(), path("config"));
        let arguments = format!(
            "-F none -i {} -o IdentitiesOnly=yes -o UserKnownHostsFile={} -o 'ProxyCommand={proxy}'",
            path("user"),
            path("known")
        );
        Self { folder, arguments }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The storage of a new repository in a folder, reached by `ssh`.
    pub(crate) fn storage(&self, folder: &Path) -> ObjectStorage {
        let mut programs = Programs::default();
        programs.sftp_arguments = Some(self.arguments.clone());
        let server = address(&format!("sftp:place:{}", folder.display()));
        create_server(&server, &programs, Retries::default(), &Traffic::default()).unwrap()
    }
}

fn sshd_program() -> PathBuf {
    let places = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"];
    let found = places.into_iter().map(PathBuf::from).find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("sshd is needed: {NEEDED}"))
}
