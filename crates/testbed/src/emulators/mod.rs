//! Emulators of clouds on this machine's loopback, with an empty bucket each: Azurite for Azure Blob Storage,
//! fake-gcs-server for Google Cloud Storage. They hold all in memory, and end with the value.

mod azurite;
mod google;

pub use azurite::Azurite;
pub use google::FakeGcs;

use crate::install;
use crate::program::Owned;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

/// The bucket that each emulator has, empty at its start.
pub const BUCKET: &str = "bucket";

/// A program that listens at a port of loopback.
#[derive(Debug)]
struct Running {
    _process: Owned,
    address: SocketAddr,
}

impl Running {
    /// Starts a program, with the arguments that belong to an address, in a folder that is its home.
    fn start(name: &str, home: &Path, prepare: impl Fn(&mut Command, SocketAddr)) -> Result<Self> {
        let candidates = install::candidates(name);
        let program =
            candidates.first().with_context(|| format!("{name} is not installed: `cargo xtask servers` does that"))?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(program);
        prepare(&mut command, address);
        command.current_dir(home).env("HOME", home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Owned(command.spawn().with_context(|| format!("{name} cannot be started"))?);
        process.wait_until(name, || TcpStream::connect(address).is_ok())?;
        Ok(Self { _process: process, address })
    }
}

/// Makes one request at an address, for a host by this name, and returns the whole answer.
fn asked(
    (address, host): (SocketAddr, &str),
    method: &str,
    target: &str,
    headers: &[&str],
    body: &str,
) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    head.extend(headers.iter().map(|header| format!("{header}\r\n")));
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_task_that_installs_it() {
        let home = tempfile::tempdir().unwrap();
        let error = Running::start("no-such-emulator", home.path(), |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("no-such-emulator") && error.contains("cargo xtask servers"), "{error}");
    }
}
