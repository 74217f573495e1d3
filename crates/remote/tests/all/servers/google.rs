//! fake-gcs-server, which emulates Google Cloud Storage. It takes uploads by the JSON API alone, where the client
//! speaks the XML API: a translator before it turns an upload of one into an upload of the other, condition and
//! all, and passes on everything else as it is.

use super::buckets::{BUCKET, Running, asked, connected};
use siltstone_remote::ObjectStorage;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// The server, and the port of its translator.
pub(crate) struct FakeGcs {
    running: Running,
    port: u16,
}

impl FakeGcs {
    /// Starts a server; `None` where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let running = Running::start(test, "fake-gcs-server", |command, port_of_server, _| {
            command.args(["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"]);
            // By this name it knows requests of the XML API.
            command.args(["-port", &port_of_server.to_string(), "-public-host", &format!("127.0.0.1:{port}")]);
        })?;
        let port_of_server = running.port;
        thread::spawn(move || translate(&listener, port_of_server));
        let server = Self { running, port };
        let json = ["Content-Type: application/json"];
        let made = server.asked("POST", "/storage/v1/b?project=p", &json, &format!(r#"{{"name":"{BUCKET}"}}"#));
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        Some(server)
    }

    /// Makes one request past the translator, and returns the whole answer.
    pub(crate) fn asked(&self, method: &str, target: &str, headers: &[&str], body: &str) -> String {
        asked(self.running.port, &format!("127.0.0.1:{}", self.port), method, target, headers, body)
    }

    /// The storage below a prefix of the bucket.
    pub(crate) fn storage(&self, prefix: &str) -> ObjectStorage {
        self.storage_in(BUCKET, prefix)
    }

    /// The storage below a prefix of a bucket.
    pub(crate) fn storage_in(&self, bucket: &str, prefix: &str) -> ObjectStorage {
        let host = format!("127.0.0.1:{}", self.port);
        connected(&format!("gs:{bucket}:/{prefix}"), &[("STORAGE_EMULATOR_HOST", &host)])
    }
}

/// Serves each connection until it ends.
fn translate(listener: &TcpListener, server: u16) {
    for client in listener.incoming().flatten() {
        thread::spawn(move || {
            let mut reader = BufReader::new(client);
            while relay(&mut reader, server).unwrap_or(false) {}
        });
    }
}

/// Takes one request to the server and its answer back; `false` where the client ends.
fn relay(client: &mut BufReader<TcpStream>, server: u16) -> io::Result<bool> {
    let mut head = head_of(client)?;
    let Some(request) = head.first() else { return Ok(false) };
    let is_upload = request.starts_with("PUT ");
    // The server closes such a connection after its answer, which so has an end without being in chunks.
    head[0] = if is_upload { upload(&head) } else { request.replace("HTTP/1.1", "HTTP/1.0") };
    let mut body = vec![0; number_in(&head, "content-length").unwrap_or(0)];
    client.read_exact(&mut body)?;
    let mut stream = TcpStream::connect(("127.0.0.1", server))?;
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
