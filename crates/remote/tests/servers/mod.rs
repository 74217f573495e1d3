//! Servers for tests: OpenSSH's SFTP server as a program, the same behind a real `sshd` without a port, and rclone.

use siltstone_remote::{ObjectStorage, Place, Programs, Server, connect_server};
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

/// Returns OpenSSH's SFTP server, without which these tests cannot be run.
pub fn server_program() -> String {
    let found = SERVERS.into_iter().find(|program| Path::new(program).is_file());
    found.expect("OpenSSH's sftp-server is needed: install openssh-sftp-server, or run cargo xtask test").to_owned()
}

pub fn empty_folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub fn address(place: &str) -> Server {
    match Place::parse(place.as_ref()) {
        Ok(Place::Server(server)) => server,
        other => panic!("{place}: {other:?}"),
    }
}

/// The storage in a folder that this command reaches.
pub fn by_program(command: &str, folder: &Path) -> ObjectStorage {
    let mut programs = Programs::default();
    programs.sftp_command = Some(command.to_owned());
    connect_server(&address(&format!("sftp:test:{}", folder.display())), &programs, true).unwrap()
}
