//! Requests as a stranger could write them: too long, too slow, cut short, to paths that are no objects.

use crate::common::{SILENCE, Served};
use siltstone_serve::{Right, SeriesScope, ServeError, ServeOptions, Server, Tokens};
use siltstone_store::storage::conformance::{container, exists};
use siltstone_store::storage::{Call, Guarded, KEY_SLOT_BYTES_MAX, Outcome, SimulatedDisk, Storage};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, mpsc};

const KEY: &str = "/o/keys/00000000000000000000000000000001";

fn served(disk: &Arc<SimulatedDisk>) -> Served {
    let storage = Arc::<SimulatedDisk>::clone(disk);
    Served::over(storage, false, &[("all", SeriesScope::All, &Right::ALL)], |options| options)
}

/// Sends bytes on a connection of their own and returns all that is answered.
fn exchange(served: &Served, bytes: &[u8], ends: bool) -> String {
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    // The server may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    if ends {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of a request; what is answered is read to its end.
fn status(served: &Served, request: &str, headers: &str, body: &[u8]) -> u16 {
    let token = served.token("all");
    let head =
        format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\r\n");
    let answer = exchange(served, &[head.as_bytes(), body].concat(), false);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

#[test]
fn bodies_are_bounded_by_their_kind() {
    let disk = Arc::new(SimulatedDisk::new());
    let served = served(&disk);
    let create = |length: u64, body: &[u8]| {
        status(&served, &format!("PUT {KEY}"), &format!("If-None-Match: *\r\nContent-Length: {length}\r\n"), body)
    };
    assert_eq!(create(KEY_SLOT_BYTES_MAX + 1, &vec![0; 70_000]), 413);
    assert_eq!(create(u64::MAX / 2, b""), 413);
    assert_eq!(create(3, b"key"), 201);
    assert_eq!(create(3, b"yek"), 412);
    let chunked = "If-None-Match: *\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(status(&served, "PUT /o/reserve", chunked, b"1\r\nx\r\n0\r\n\r\n"), 411);
    assert_eq!(status(&served, "POST /delete", "Content-Length: 300000\r\n", &vec![b'x'; 300_000]), 413);
}

#[test]
fn paths_and_ranges_that_are_none_are_refused() {
    let disk = Arc::new(SimulatedDisk::new());
    disk.create(&container(1), b"0123456789").unwrap();
    let served = served(&disk);
    let name = container(1);
    assert_eq!(status(&served, &format!("GET /o/{name}"), "", b""), 200);
    assert_eq!(status(&served, &format!("GET /o/{name}"), "Range: bytes=8-9\r\n", b""), 206);
    assert_eq!(status(&served, &format!("GET /o/{name}"), "Range: bytes=8-10\r\n", b""), 416);
    assert_eq!(status(&served, &format!("GET /o/{name}"), "Range: bytes=9-8\r\n", b""), 400);
    for path in ["/o/../../etc/passwd", "/o/tmp/x", "/", "/o/containers", "/o//"] {
        assert_eq!(status(&served, &format!("GET {path}"), "", b""), 404, "{path}");
    }
    assert_eq!(status(&served, "POST /delete", "Content-Length: 9\r\n", b"../secret"), 400);
    assert_eq!(status(&served, &format!("PUT /o/{name}"), "Content-Length: 0\r\n", b""), 428);
}

#[test]
fn slow_and_silent_clients_are_given_up() {
    let disk = Arc::new(SimulatedDisk::new());
    let tokens: [(&str, SeriesScope, &[Right]); 1] = [("all", SeriesScope::All, &Right::ALL)];
    let served =
        &Served::over(Arc::<SimulatedDisk>::clone(&disk), false, &tokens, |options| options.with_silence(SILENCE));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(exchange(served, b"", false), "", "nothing is sent"));
        scope.spawn(|| exchange(served, b"GET /rights HTT", false));
        let headers = "If-None-Match: *\r\nContent-Length: 100\r\n";
        scope.spawn(|| assert_eq!(status(served, &format!("PUT {KEY}"), headers, b"half a bo"), 408));
    });
    assert_eq!(disk.list(siltstone_store::storage::Listing::All).unwrap(), []);
}

#[test]
fn a_body_that_is_cut_short_is_no_object() {
    let disk = Arc::new(SimulatedDisk::new());
    let served = served(&disk);
    let (name, token) = (container(1), served.token("all"));
    let head = format!(
        "PUT /o/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nIf-None-Match: *\r\n\
         Content-Length: 9\r\n\r\n"
    );
    exchange(&served, &[head.as_bytes(), b"half"].concat(), true);
    assert!(!exists(disk.as_ref(), &name));
}

#[test]
fn requests_without_a_token_are_told_nothing() {
    let disk = Arc::new(SimulatedDisk::new());
    let served = served(&disk);
    for (path, headers) in [
        ("/rights", ""),
        ("/metrics", ""),
        ("/", ""),
        ("/rights", "Authorization: Basic eDp4\r\n"),
        (KEY, "Authorization: x\r\n"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        let answer = exchange(&served, request.as_bytes(), false);
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
    }
}

#[test]
fn counters_are_told_to_who_may_read_them() {
    let disk = Arc::new(SimulatedDisk::new());
    let served = served(&disk);
    assert_eq!(status(&served, "PUT /o/reserve", "If-None-Match: *\r\nContent-Length: 5\r\n", b"bytes"), 201);
    let token = served.token("all");
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n");
    let answer = exchange(&served, request.as_bytes(), false);
    for line in [
        "silt_requests_total{method=\"PUT\",status=\"201\"} 1",
        "silt_objects_created_total 1",
        "silt_received_bytes_total 5",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
}

#[test]
fn an_object_longer_than_the_memory_is_refused_and_not_read() {
    let disk = Arc::new(SimulatedDisk::new());
    disk.create(&container(1), &vec![0; 3 << 20]).unwrap();
    let storage = Arc::<SimulatedDisk>::clone(&disk);
    let served = Served::over(storage, false, &[("all", SeriesScope::All, &Right::ALL)], |options| {
        options.with_memory_bytes(2 << 20)
    });
    assert_eq!(status(&served, &format!("GET /o/{}", container(1)), "", b""), 413);
    assert_eq!(status(&served, &format!("GET /o/{}", container(1)), "Range: bytes=0-99\r\n", b""), 206);
}

/// Else whoever asks and hangs up again and again has the server read without a bound.
#[test]
fn a_read_that_goes_on_when_its_client_hung_up_keeps_its_room() {
    let disk = SimulatedDisk::new();
    disk.create(&container(1), &vec![7; 3 << 20]).unwrap();
    let (reached, reading) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let first = Mutex::new(Some((reached, released)));
    let storage = Guarded::new(disk, move |call| {
        let taken = if matches!(call, Call::Read(_)) { first.lock().unwrap().take() } else { None };
        if let Some((reached, released)) = taken {
            reached.send(()).unwrap();
            // It ends when the other end goes.
            let _ = released.recv();
        }
        Outcome::Made
    });
    let tokens: [(&str, SeriesScope, &[Right]); 1] = [("all", SeriesScope::All, &Right::ALL)];
    let served = Served::over(Arc::new(storage), false, &tokens, |options| {
        options.with_memory_bytes(2 << 20).with_silence(SILENCE)
    });
    let (name, range) = (container(1), "Range: bytes=0-1572863\r\n");
    let head =
        format!("GET /o/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{range}\r\n", served.token("all"));
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    reading.recv().unwrap();
    drop(stream);
    let while_it_reads = status(&served, &format!("GET /o/{name}"), range, b"");
    // Before anything can fail: the server does not end while it waits.
    drop(release);
    assert_eq!(while_it_reads, 503);
    assert_eq!(status(&served, &format!("GET /o/{name}"), range, b""), 206);
}

#[test]
fn plain_http_is_for_this_machine_unless_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    siltstone_serve::TokenFile::default().write(&file).unwrap();
    let options = ServeOptions::new(([0, 0, 0, 0], 0).into());
    let start =
        |options: &ServeOptions| Server::start(Arc::new(SimulatedDisk::new()), Tokens::open(&file).unwrap(), options);
    assert!(matches!(start(&options), Err(ServeError::PlainHttp { .. })));
    start(&options.clone().with_allow_plain_http(true)).unwrap().stop();
}
