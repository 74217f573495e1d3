//! fake-gcs-server, which emulates Google Cloud Storage. It takes uploads by the JSON API alone, where clients speak
//! the XML API: a translator before it turns an upload of one into an upload of the other, condition and all, and
//! passes on everything else as it is.

use super::{BUCKET, Running, asked};
use crate::install;
use crate::tool::Place;
use anyhow::{Result, ensure};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

const PROGRAM: &str = "fake-gcs-server";
/// The module that Go compiles it from.
const MODULE: &str = "github.com/fsouza/fake-gcs-server@latest";
/// The host by which the server knows requests of the XML API.
const HOST: &str = "storage.test";

/// A server that ends with the value, and its translator, which does nothing after that.
#[derive(Debug)]
pub struct FakeGcs {
    running: Running,
    translator: SocketAddr,
}

impl FakeGcs {
    /// Tells whether the program is there.
    pub fn is_installed() -> bool {
        !install::candidates(PROGRAM).is_empty()
    }

    /// Installs the program where it is not there; that takes minutes.
    pub fn install() -> Result<()> {
        install::by(install::GO, &["install", MODULE], PROGRAM)
    }

    /// Starts a server with an empty bucket, whose home is this folder.
    pub fn start(home: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let translator = listener.local_addr()?;
        let running = Running::start(PROGRAM, home, |command, address| {
            command.args(["-backend", "memory", "-scheme", "http", "-host", &address.ip().to_string()]);
            command.args(["-port", &address.port().to_string(), "-public-host", HOST]);
        })?;
        let server = running.address;
        thread::spawn(move || translate(&listener, server));
        let made = Self { running, translator };
        let (json, name) = (["Content-Type: application/json"], format!(r#"{{"name":"{BUCKET}"}}"#));
        let answer = made.asked("POST", "/storage/v1/b?project=p", &json, &name)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "fake-gcs-server did not make a bucket: {answer}");
        Ok(made)
    }

    /// Returns the address of the translator, which clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.translator
    }

    /// Makes one request past the translator, and returns the whole answer.
    pub fn asked(&self, method: &str, target: &str, headers: &[&str], body: &str) -> Result<String> {
        asked((self.running.address, HOST), method, target, headers, body)
    }

    /// Returns the place of a repository below a prefix of a bucket, reached by this address, its own or one before it.
    pub fn place(address: SocketAddr, bucket: &str, prefix: &str) -> Place {
        let variables = vec![("STORAGE_EMULATOR_HOST", address.to_string())];
        Place { address: format!("gs:{bucket}:/{prefix}"), variables }
    }
}

/// Serves each connection until it ends.
fn translate(listener: &TcpListener, server: SocketAddr) {
    for client in listener.incoming().flatten() {
        thread::spawn(move || {
            let mut reader = BufReader::new(client);
            while relay(&mut reader, server).unwrap_or(false) {}
        });
    }
}

/// Takes one request to the server and its answer back; `false` where the client ends.
fn relay(client: &mut BufReader<TcpStream>, server: SocketAddr) -> io::Result<bool> {
    let mut head = head_of(client)?;
    let Some(request) = head.first() else { return Ok(false) };
    let is_upload = request.starts_with("PUT ");
    // The server closes such a connection after its answer, which so has an end without being in chunks.
    head[0] = if is_upload { upload(&head) } else { request.replace("HTTP/1.1", "HTTP/1.0") };
    head.retain(|line| !line.to_ascii_lowercase().starts_with("host:"));
    head.push(format!("Host: {HOST}"));
    let mut body = vec![0; number_in(&head, "content-length").unwrap_or(0)];
    client.read_exact(&mut body)?;
    let mut stream = TcpStream::connect(server)?;
    write!(stream, "{}\r\n\r\n", head.join("\r\n"))?;
    stream.write_all(&body)?;
    client.get_mut().write_all(&answer(&mut BufReader::new(stream), is_upload)?)?;
    Ok(true)
}

/// The lines of a head, without the empty one; none at the end of a connection.
fn head_of(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let lines = reader.lines().take_while(|line| line.as_ref().map_or(true, |line| !line.is_empty()));
    lines.collect()
}

/// The value of a header.
fn value<'h>(head: &'h [String], name: &str) -> Option<&'h str> {
    let mut headers = head.iter().filter_map(|line| line.split_once(": "));
    headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn number_in(head: &[String], name: &str) -> Option<usize> {
    value(head, name)?.parse().ok()
}

/// The first line of an upload by the JSON API, for one by the XML API: `PUT /bucket/object`.
fn upload(head: &[String]) -> String {
    let path = head[0].split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (bucket, object) = path.split_once('/').unwrap_or((path, ""));
    let condition = value(head, "x-goog-if-generation-match");
    let condition = condition.map_or_else(String::new, |generation| format!("&ifGenerationMatch={generation}"));
    format!("POST /upload/storage/v1/b/{bucket}/o?uploadType=media&name={object}{condition} HTTP/1.0")
}

/// The answer of the server, for a client that keeps its connection. That to an upload gets the header that the XML API
/// has.
fn answer(server: &mut impl BufRead, is_upload: bool) -> io::Result<Vec<u8>> {
    let mut head = head_of(server)?;
    let mut body = Vec::new();
    server.read_to_end(&mut body)?;
    head.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    if let Some(status) = head.first_mut() {
        *status = status.replace("HTTP/1.0", "HTTP/1.1");
    }
    if number_in(&head, "content-length").is_none() {
        head.push(format!("Content-Length: {}", body.len()));
    }
    if is_upload {
        let json = String::from_utf8_lossy(&body);
        let tag = json.split_once(r#""etag":""#).and_then(|(_, rest)| Some(rest.split_once('"')?.0));
        head.extend(tag.map(|tag| format!("ETag: \"{tag}\"")));
    }
    Ok([head.join("\r\n").as_bytes(), b"\r\n\r\n", &body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_of_one_interface_becomes_one_of_the_other_with_its_condition() {
        let head = |condition: &str| {
            let head = format!("PUT /bucket/a/b HTTP/1.1\r\nHost: x\r\n{condition}content-length: 1\r\n\r\n");
            upload(&head_of(&mut head.as_bytes()).unwrap())
        };
        let plain = "POST /upload/storage/v1/b/bucket/o?uploadType=media&name=a/b HTTP/1.0";
        assert_eq!(head(""), plain);
        let once = plain.replace(" HTTP", "&ifGenerationMatch=0 HTTP");
        assert_eq!(head("x-goog-if-generation-match: 0\r\n"), once);
    }
}
