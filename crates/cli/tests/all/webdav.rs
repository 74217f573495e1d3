//! `silt serve webdav` by the real program and a plain client of HTTP.

use crate::common::{Sandbox, first_message, noise, ran, signal};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

/// `silt serve webdav` over a sandbox's repository; it is killed with the value.
struct Shown {
    process: Child,
    address: String,
}

/// An answer of the server.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// False if the connection ended before the body did.
    is_whole: bool,
}

impl Shown {
    fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut silt = sandbox.silt();
        silt.args(["serve", "webdav", "--json", "--listen", "127.0.0.1:0"]).args(more);
        let mut process = silt.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("silt runs");
        let told = first_message(&mut process);
        let address = told["address"].as_str().expect("text");
        let address = address.strip_prefix("http://").and_then(|address| address.strip_suffix('/'));
        Self { process, address: address.expect("an address").to_owned() }
    }

    /// Asks for a path, which is as it stands in a request.
    fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let host = format!("Host: {}", self.address);
        let mut lines = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            lines.push(host);
        }
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        stream.write_all((lines.join("\r\n") + "\r\n\r\n").as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        // A connection that is cut off may end with an error.
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes, method == "HEAD")
    }

    fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.ask("GET", path, headers)
    }

    fn list(&self, path: &str, depth: u32) -> String {
        let answer = self.ask("PROPFIND", path, &[&format!("Depth: {depth}")]);
        assert_eq!(answer.status, 207);
        assert!(answer.is_whole);
        String::from_utf8(answer.body).expect("text")
    }

    /// Asks it to end; returns its exit status and what it wrote to standard error.
    fn stop(mut self) -> (i32, String) {
        signal(&self.process, "-TERM");
        let mut told = String::new();
        self.process.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
        (self.process.wait().expect("it ends").code().unwrap_or(-1), told)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    fn parse(bytes: &[u8], is_head: bool) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&bytes[..end]).expect("text");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let (body, is_whole) = match headers.get("transfer-encoding") {
            Some(_) => unchunked(rest),
            None => {
                let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
                (rest.to_vec(), is_head || rest.len() == length)
            }
        };
        Self { status: status.expect("a status"), headers, body, is_whole }
    }
}

/// A body in chunks, and whether the last of them came.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let (Some(size), from) = (size, end + 2) else { break };
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(from..from + size) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(from + size + 2..).unwrap_or_default();
    }
    (body, false)
}

/// A path of the source in the newest snapshot, as it stands in a request.
fn latest(sandbox: &Sandbox, name: &str) -> String {
    format!("/latest{}/{name}", sandbox.source())
}

#[test]
fn files_are_read_whole_and_in_part() {
    let sandbox = Sandbox::new();
    let content = noise(1, 3_000_000);
    sandbox.write("folder/large", &content);
    sandbox.write("empty", "");
    sandbox.backup(&[]);
    let shown = Shown::start(&sandbox, &[]);
    let path = latest(&sandbox, "folder/large");
    let whole = shown.get(&path, &[]);
    assert_eq!((whole.status, whole.headers["content-length"].as_str()), (200, "3000000"));
    assert!(whole.is_whole && whole.body == content);
    assert_eq!(whole.headers["accept-ranges"], "bytes");
    let head = shown.ask("HEAD", &path, &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    for same in ["content-length", "etag", "last-modified", "content-type"] {
        assert_eq!(head.headers[same], whole.headers[same]);
    }
    for (range, from, to) in [("0-0", 0, 1), ("1000000-1999999", 1_000_000, 2_000_000), ("-7", 2_999_993, 3_000_000)] {
        let part = shown.get(&path, &[&format!("Range: bytes={range}")]);
        assert_eq!(part.status, 206, "{range}");
        assert_eq!(part.headers["content-range"], format!("bytes {from}-{}/3000000", to - 1));
        assert!(part.body == content[from..to], "{range}");
    }
    let beyond = shown.get(&path, &["Range: bytes=3000000-"]);
    assert_eq!((beyond.status, beyond.headers["content-range"].as_str()), (416, "bytes */3000000"));
    let tag = &whole.headers["etag"];
    assert_eq!(shown.get(&path, &[&format!("If-None-Match: {tag}")]).status, 304);
    assert_eq!(shown.get(&path, &["Range: bytes=0-1", &format!("If-Range: {tag}")]).status, 206);
    assert_eq!(shown.get(&path, &["Range: bytes=0-1", "If-Range: \"another\""]).status, 200);
    let empty = shown.get(&latest(&sandbox, "empty"), &[]);
    assert!(empty.status == 200 && empty.is_whole && empty.body.is_empty());
    assert_eq!(shown.get(&latest(&sandbox, "none"), &[]).status, 404);
    assert_eq!(shown.get("/latest/../x", &[]).status, 400);
    let (status, told) = shown.stop();
    assert_eq!((status, told.as_str()), (0, ""));
}

#[test]
fn folders_are_listed_by_one_level_as_xml_and_as_a_page() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/a b", "one");
    sandbox.write("folder/100%&<#", "four");
    sandbox.write("folder/inner/deep", "deep");
    std::os::unix::fs::symlink("a b", sandbox.path("source/folder/link")).expect("a link");
    sandbox.backup(&["--host", "laptop"]);
    let shown = Shown::start(&sandbox, &[]);
    let root = shown.list("/", 1);
    for folder in ["latest", "snapshots", "series", "hosts", "tags", "ids"] {
        assert!(root.contains(&format!("<D:href>/{folder}/</D:href>")), "{root}");
    }
    assert!(shown.list("/hosts/", 1).contains("<D:href>/hosts/laptop/</D:href>"));
    let path = latest(&sandbox, "folder");
    assert_eq!(shown.list(&path, 0).matches("<D:response>").count(), 1);
    let listed = shown.list(&path, 1);
    assert_eq!(listed.matches("<D:response>").count(), 4, "the link is left out: {listed}");
    assert!(listed.contains(&format!("<D:href>{path}/a%20b</D:href>")), "{listed}");
    assert!(listed.contains(&format!("<D:href>{path}/100%25%26%3C%23</D:href>")), "{listed}");
    assert!(listed.contains(&format!("<D:href>{path}/inner/</D:href>")), "{listed}");
    assert!(listed.contains("<D:getcontentlength>4</D:getcontentlength>"), "{listed}");
    assert!(!listed.contains("deep"), "{listed}");
    assert_eq!(shown.get(&format!("{path}/100%25%26%3C%23"), &[]).body, b"four");
    let file = shown.list(&format!("{path}/a%20b"), 1);
    assert_eq!(file.matches("<D:response>").count(), 1, "{file}");
    let page = shown.get(&format!("{path}/"), &[]);
    assert!(page.is_whole && page.headers["content-type"].starts_with("text/html"));
    let page = String::from_utf8(page.body).expect("text");
    assert!(page.contains(">a b</a>") && page.contains("100%&amp;&lt;#"), "{page}");
    for depth in [&[][..], &["Depth: infinity"]] {
        let refused = shown.ask("PROPFIND", "/", depth);
        assert!(refused.status == 403 && String::from_utf8_lossy(&refused.body).contains("propfind-finite-depth"));
    }
    assert_eq!(shown.ask("PROPFIND", "/none", &["Depth: 0"]).status, 404);
}

#[test]
fn nothing_can_be_changed() {
    let sandbox = Sandbox::of_files(1);
    let shown = Shown::start(&sandbox, &[]);
    let options = shown.ask("OPTIONS", "/", &[]);
    assert_eq!((options.status, options.headers["dav"].as_str()), (200, "1"));
    for method in ["PUT", "DELETE", "MKCOL", "MOVE", "COPY", "PROPPATCH", "LOCK", "POST"] {
        let refused = shown.ask(method, &latest(&sandbox, "000"), &["Content-Length: 0"]);
        assert_eq!((refused.status, refused.headers["allow"].as_str()), (405, options.headers["allow"].as_str()));
    }
}

#[test]
fn other_machines_and_other_sites_need_a_password() {
    let sandbox = Sandbox::of_files(1);
    for more in [&[][..], &["--allow-plain-http"]] {
        let refused = ran(sandbox.silt().args(["serve", "webdav", "--listen", "0.0.0.0:0"]).args(more)).exits(1);
        assert!(refused.stderr.contains("password") || refused.stderr.contains("--auth-file"), "{}", refused.stderr);
    }
    let shown = Shown::start(&sandbox, &[]);
    assert_eq!(shown.get("/", &["Host: attacker.example.com"]).status, 403);
    assert_eq!(shown.get("/", &["Host: localhost:8020"]).status, 200);
    let file = sandbox.path("auth");
    fs::write(&file, "me:secret\n").expect("written");
    let guarded = Shown::start(&sandbox, &["--auth-file", &file.display().to_string()]);
    let refused = guarded.get("/", &[]);
    assert!(refused.status == 401 && refused.headers["www-authenticate"].starts_with("Basic"));
    assert_eq!(guarded.get("/", &["Authorization: Basic bWU6c2VjcmV0"]).status, 200);
    assert_eq!(guarded.get("/", &["Authorization: Basic bWU6d3Jvbmc="]).status, 401);
    fs::write(&file, "nothing of the kind").expect("written");
    let refused = ran(sandbox.silt().args(["serve", "webdav", "--auth-file"]).arg(&file)).exits(1);
    assert!(refused.stderr.contains("NAME:PASSWORD"), "{}", refused.stderr);
}

#[test]
fn what_is_damaged_ends_early_and_is_told() {
    let sandbox = Sandbox::of_files(40);
    let container = sandbox.largest_container();
    let bytes = fs::read(&container).expect("read");
    let zeros = vec![0; bytes.len()];
    fs::write(&container, [&bytes[..64], &zeros[64..]].concat()).expect("written");
    let shown = Shown::start(&sandbox, &[]);
    let answer = shown.get(&latest(&sandbox, "000"), &[]);
    assert!(answer.status == 500 || !answer.is_whole, "{}", answer.status);
    let (_, told) = shown.stop();
    let name = Path::new(&container).file_name().expect("a name").to_string_lossy().into_owned();
    assert!(told.contains(&name), "{told}");
}
