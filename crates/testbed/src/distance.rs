//! Distance: a server of this machine as if it were far away. Bytes wait half a round trip in each direction, a new
//! connection a whole one, and requests and bytes are counted. Bandwidth is not limited. The way may be cut for a
//! time.

use anyhow::Result;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that travel together.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that are on their way in one direction of one connection.
const PIECES_MAX: usize = 256;
/// Longest head of a request that is understood.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Requests and bytes that went through a [`Link`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Requests of HTTP.
    pub requests: u64,
    /// Bytes to the server.
    pub bytes_up: u64,
    /// Bytes from the server.
    pub bytes_down: u64,
}

/// A way to a server with a round trip of its own. It ends with the value.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    one_way: Duration,
    is_over: AtomicBool,
    open: Mutex<Open>,
    requests: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

/// Clients' connections that are open.
#[derive(Debug, Default)]
struct Open {
    is_cut: bool,
    next: u64,
    streams: BTreeMap<u64, TcpStream>,
}

impl Link {
    /// Starts a way to this server; clients connect to [`Link::address`].
    pub fn to(server: SocketAddr, round_trip: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            server,
            one_way: round_trip / 2,
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and every new one, until [`Link::restore`]: requests and answers on their way are lost.
    pub fn cut(&self) {
        let mut open = self.shared.open();
        open.is_cut = true;
        for stream in std::mem::take(&mut open.streams).into_values() {
            // One that has ended already is not connected.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub fn restore(&self) {
        self.shared.open().is_cut = false;
    }

    /// Returns what went through since the last call.
    pub fn take_traffic(&self) -> Traffic {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let Shared { requests, bytes_up, bytes_down, .. } = &*self.shared;
        Traffic { requests: take(requests), bytes_up: take(bytes_up), bytes_down: take(bytes_down) }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The thread that accepts wakes up and sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Notes a connection, under the number that is returned; `None` if there is none now.
    fn add(&mut self, client: &TcpStream) -> io::Result<Option<u64>> {
        if self.is_cut {
            return Ok(None);
        }
        self.next += 1;
        self.streams.insert(self.next, client.try_clone()?);
        Ok(Some(self.next))
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(shared);
        // A connection that fails is the client's to notice.
        thread::spawn(move || client.and_then(|client| serve(&client, &shared)));
    }
}

/// Carries the bytes of one connection until both ends have closed it.
fn serve(client: &TcpStream, shared: &Shared) -> io::Result<()> {
    let number = shared.open().add(client)?;
    let carried = number.map_or(Ok(()), |_| carry_both_ways(client, shared));
    number.map(|number| shared.open().streams.remove(&number));
    carried
}

fn carry_both_ways(client: &TcpStream, shared: &Shared) -> io::Result<()> {
    // The client of a far server waits a round trip for its connection; here it has waited for none.
    thread::sleep(shared.one_way * 2);
    let server = TcpStream::connect(shared.server)?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    let requests = Mutex::new(RequestCounter::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            carry(client, &server, shared.one_way, |piece| {
                let found = requests.lock().unwrap_or_else(PoisonError::into_inner).pass(piece);
                shared.requests.fetch_add(found, Ordering::Relaxed);
                shared.bytes_up.fetch_add(piece.len() as u64, Ordering::Relaxed);
            });
        });
        carry(&server, client, shared.one_way, |piece| {
            shared.bytes_down.fetch_add(piece.len() as u64, Ordering::Relaxed);
        });
    });
    Ok(())
}

/// Carries bytes one way until their end; each piece arrives this long after it was sent.
fn carry(from: &TcpStream, to: &TcpStream, delay: Duration, mut seen: impl FnMut(&[u8])) {
    let (sender, pieces) = sync_channel(PIECES_MAX);
    thread::scope(|scope| {
        scope.spawn(move || take_in(from, &sender, delay));
        give_out(&pieces, to, &mut seen);
        // Nobody takes what still comes.
        let _ = from.shutdown(Shutdown::Read);
        drop(pieces);
    });
}

fn take_in(mut from: &TcpStream, sender: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut buffer = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn give_out(pieces: &Receiver<(Instant, Vec<u8>)>, mut to: &TcpStream, seen: &mut impl FnMut(&[u8])) {
    for (due, piece) in pieces {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        seen(&piece);
        if to.write_all(&piece).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Counts requests in what a client sends by HTTP 1.1, body and all.
#[derive(Debug, Default)]
struct RequestCounter {
    head: Vec<u8>,
    body_left: u64,
    /// The bytes are no requests that are understood: a chunked body, or another protocol.
    is_lost: bool,
}

impl RequestCounter {
    /// Takes the next bytes; returns how many requests begin, with their whole heads, by their end.
    fn pass(&mut self, mut bytes: &[u8]) -> u64 {
        let mut found = 0;
        while !bytes.is_empty() && !self.is_lost {
            let skipped = bytes.len().min(usize::try_from(self.body_left).unwrap_or(usize::MAX));
            self.body_left -= skipped as u64;
            bytes = &bytes[skipped..];
            let Some((&byte, rest)) = bytes.split_first() else { break };
            self.head.push(byte);
            bytes = rest;
            if self.head.ends_with(b"\r\n\r\n") {
                found += 1;
                self.body_left = body_bytes(&self.head).unwrap_or_else(|| {
                    self.is_lost = true;
                    0
                });
                self.head.clear();
            }
            self.is_lost |= self.head.len() > HEAD_BYTES_MAX;
        }
        found
    }
}

/// The length of the body that a head announces; `None` where it is not said.
fn body_bytes(head: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'))).map(str::trim)
    };
    match (value("content-length"), value("transfer-encoding")) {
        (Some(length), None) => length.parse().ok(),
        (None, None) => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_however_their_bytes_are_cut() {
        let text = b"PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n\r\n\r\nab\
            GET /b HTTP/1.1\r\n\r\nHEAD /c HTTP/1.1\r\n\r\n";
        for length in 1..=text.len() {
            let mut counter = RequestCounter::default();
            let found: u64 = text.chunks(length).map(|piece| counter.pass(piece)).sum();
            assert_eq!(found, 3, "pieces of {length}");
        }
        let mut counter = RequestCounter::default();
        assert_eq!(counter.pass(b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET / HTTP/1.1\r\n\r\n"), 1);
        assert!(counter.is_lost);
    }

    #[test]
    fn an_answer_takes_at_least_a_round_trip() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(server.local_addr().unwrap(), Duration::from_millis(40)).unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut text = [0; 18];
            stream.read_exact(&mut text).unwrap();
            stream.write_all(b"answer").unwrap();
        });
        let mut client = TcpStream::connect(link.address()).unwrap();
        let begin = Instant::now();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(80), "{:?}", begin.elapsed());
        assert_eq!(answer, b"answer");
        echo.join().unwrap();
        assert_eq!(link.take_traffic(), Traffic { requests: 1, bytes_up: 18, bytes_down: 6 });
        assert_eq!(link.take_traffic(), Traffic::default());
    }

    #[test]
    fn a_way_that_is_cut_ends_its_connections_and_lets_others_through_once_it_is_restored() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(server.local_addr().unwrap(), Duration::ZERO).unwrap();
        let greeting = thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = server.accept().unwrap();
                stream.write_all(b"x").unwrap();
                // Until the other end is closed.
                let _ = stream.read(&mut [0]);
            }
        });
        let is_greeted = |stream: &mut TcpStream| matches!(stream.read(&mut [0]), Ok(1));
        let mut first = TcpStream::connect(link.address()).unwrap();
        assert!(is_greeted(&mut first));
        link.cut();
        assert!(!is_greeted(&mut first), "it was open");
        assert!(!is_greeted(&mut TcpStream::connect(link.address()).unwrap()), "it is new");
        link.restore();
        let mut last = TcpStream::connect(link.address()).unwrap();
        assert!(is_greeted(&mut last));
        drop(last);
        greeting.join().unwrap();
    }
}
