//! One conversation with an SFTP server over two streams: many requests on their way at once, each with a number by
//! which its answer finds it.
//!
//! ```text
//! ask -> number, waiter -> queue -> writer task -> server
//!              waiter <- answer <- reader task <- server
//! ```
//! A conversation ends once and for all: when the streams end, when the server says what cannot be understood, or when
//! it is silent for too long. Then every waiter is told why, also those whose requests were still to be sent, and both
//! streams are dropped: nothing more is sent. Requests in flight are bounded ([`REQUESTS_MAX`]), so their answers are,
//! too. While nothing is asked, a request that changes nothing keeps the connection in use, so that no firewall on the
//! way forgets it and its end is noticed.

use super::packet::{self, Answer, Code, FSYNC, Greeted, HARD_LINK, LIMITS, PACKET_BYTES_MAX, Request, SPACE};
use crate::fault::Fault;
use crate::traffic::{Flow, Traffic};
use bytes::{Bytes, BytesMut};
use futures_util::future;
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// Requests in flight at most: 128 of 255 KiB fill 10 Gbit/s at 25 ms.
const REQUESTS_MAX: usize = 128;
/// Packets that wait to be written at most.
const QUEUE_MAX: usize = 32;
/// Time without a request after which one is sent that changes nothing.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// Time until a server greets, in which a person may type a password: sshd gives him two minutes.
const GREETING_MAX: Duration = Duration::from_mins(3);
/// Time between the end of a server's input and that of its output.
const CLOSED_MAX: Duration = Duration::from_secs(4);
/// Bytes of one read or write where the server does not tell its limits: every server takes them.
const BLOCK_BYTES_DEFAULT: u64 = 32 << 10;
/// Bytes of one read or write at least and at most, whatever the server says.
const BLOCK_BYTES: (u64, u64) = (4 << 10, 255 << 10);

/// The abilities of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Abilities {
    pub(super) fsync: bool,
    pub(super) hard_links: bool,
    pub(super) space: bool,
    /// Bytes of one read.
    pub(super) read_bytes: u32,
    /// Bytes of one write.
    pub(super) write_bytes: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    shared: Arc<Shared>,
    abilities: Abilities,
    /// The tasks that write, read and watch; they end with the conversation, and with the value.
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<Bytes>,
    permits: Semaphore,
    /// Tells the tasks that the conversation has ended.
    ending: Notify,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: u32,
    waiting: HashMap<u32, oneshot::Sender<Answer>>,
    /// Time when the server was last heard, or began to be waited for.
    heard: Instant,
    /// Reason why the conversation ended.
    end: Option<String>,
}

impl Session {
    /// Greets a server. `ending` is awaited when its stream has ended, and says why. Both streams count as this
    /// traffic.
    ///
    /// # Errors
    /// The server does not greet back, or in another language.
    pub(super) async fn start(
        mut reader: impl AsyncRead + Send + Unpin + 'static,
        mut writer: impl AsyncWrite + Send + Unpin + 'static,
        ending: impl Future<Output = String> + Send + 'static,
        silence: Duration,
        traffic: &Traffic,
    ) -> Result<Self, String> {
        let greeted = match timeout(GREETING_MAX, greet(&mut reader, &mut writer, traffic)).await {
            Ok(Ok(Some(greeted))) => greeted,
            Ok(Ok(None)) => return Err(ending.await),
            Ok(Err(said)) => return Err(said),
            Err(_) => return Err("the server did not greet in time".to_owned()),
        };
        let (queue, packets) = mpsc::channel(QUEUE_MAX);
        let state = State { next: 0, waiting: HashMap::new(), heard: Instant::now(), end: None };
        let permits = Semaphore::new(REQUESTS_MAX);
        let shared = Arc::new(Shared { queue, permits, ending: Notify::new(), state: Mutex::new(state) });
        let writing = write(packets, writer, Arc::clone(&shared), Arc::clone(&traffic.sent));
        let reading = read(reader, ending, Arc::clone(&shared), Arc::clone(&traffic.received));
        let watching = watch(Arc::clone(&shared), silence, traffic.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(until_ended(Arc::clone(&shared), writing));
        tasks.spawn(until_ended(Arc::clone(&shared), reading));
        tasks.spawn(until_ended(Arc::clone(&shared), watching));
        let abilities = shared.abilities(&greeted).await.map_err(|fault| fault.reason())?;
        Ok(Self { shared, abilities, _tasks: tasks })
    }

    pub(super) fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Tells whether the conversation has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Asks for something and waits for the answer. A dropped call leaves its answer to nobody.
    pub(super) async fn ask(&self, request: Request) -> Result<Answer, Fault> {
        self.shared.ask(request).await
    }

    /// Asks for something that is answered by success.
    pub(super) async fn order(&self, request: Request) -> Result<(), Fault> {
        match self.ask(request).await? {
            Answer::Status { code: Code::Done, .. } => Ok(()),
            other => Err(refusal(other)),
        }
    }
}

/// Sorts an answer that is not the one which was asked for.
pub(super) fn refusal(answer: Answer) -> Fault {
    let Answer::Status { code, message } = answer else {
        return Fault::Lost("the server gave another answer than was asked for".to_owned());
    };
    match code {
        Code::Absent => Fault::Absent,
        Code::Denied => Fault::Denied(said(message, "permission denied")),
        Code::NoConnection => Fault::Lost(said(message, "the server lost its own connection")),
        Code::Unsupported => Fault::Wrong(said(message, "the server cannot do this")),
        Code::Done | Code::End => Fault::Lost(format!("the server answered {code:?} to what asks for more")),
        Code::Failure | Code::BadMessage | Code::Unknown(_) => Fault::Wrong(said(message, "the server failed")),
    }
}

fn said(message: String, otherwise: &str) -> String {
    if message.is_empty() { otherwise.to_owned() } else { message }
}

impl Shared {
    async fn ask(&self, request: Request) -> Result<Answer, Fault> {
        let began = Instant::now();
        let name = request.name;
        let _permit = self.permits.acquire().await.map_err(|_| self.unsent())?;
        let slot = self.queue.reserve().await.map_err(|_| self.unsent())?;
        // From the number to the queue nothing is awaited: what waits for an answer was sent.
        let (number, answer) = self.register()?;
        let packet = request.numbered(number);
        let bytes = packet.len();
        slot.send(packet);
        let answer = answer.await.map_err(|_| Fault::Lost(self.reason()));
        let milliseconds = (began.elapsed().as_secs_f64() * 1e5).round() / 1e2;
        debug!(request = name, bytes, milliseconds, is_answered = answer.is_ok(), "sftp");
        answer
    }

    fn register(&self) -> Result<(u32, oneshot::Receiver<Answer>), Fault> {
        let mut state = self.lock();
        if let Some(reason) = &state.end {
            return Err(Fault::Unsent(reason.clone()));
        }
        let number = state.next;
        state.next = state.next.wrapping_add(1);
        if state.waiting.is_empty() {
            state.heard = Instant::now();
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(number, sender);
        Ok((number, receiver))
    }

    /// Hands an answer to whoever waits for it.
    fn deliver(&self, packet: Bytes) -> Result<(), String> {
        let (number, answer) = packet::decode(packet).ok_or("the server sent a packet that is malformed")?;
        let mut state = self.lock();
        state.heard = Instant::now();
        let waiter = state.waiting.remove(&number).ok_or("the server answered what it was not asked")?;
        drop(state);
        if let Err(Answer::Handle(handle)) = waiter.send(answer) {
            self.forget(&handle);
        }
        Ok(())
    }

    /// Closes a handle that nobody waits for any more. Where the queue is full it stays open until the end.
    fn forget(&self, handle: &[u8]) {
        if let Ok(slot) = self.queue.try_reserve()
            && let Ok((number, _)) = self.register()
        {
            slot.send(Request::close(handle).numbered(number));
        }
    }

    /// Ends the conversation; the first reason counts. Who waits for a place in the queue is told when the task that
    /// writes has ended, for that task holds the other end of the queue.
    fn end(&self, reason: String) {
        let mut state = self.lock();
        state.end.get_or_insert(reason);
        state.waiting.clear();
        drop(state);
        self.permits.close();
        self.ending.notify_waiters();
    }

    fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Waits for the end of the conversation.
    async fn ended(&self) {
        // An end from here on is told, also before it is waited for.
        let told = self.ending.notified();
        if !self.has_ended() {
            told.await;
        }
    }

    fn reason(&self) -> String {
        self.lock().end.clone().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    fn unsent(&self) -> Fault {
        Fault::Unsent(self.reason())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn abilities(&self, greeted: &Greeted) -> Result<Abilities, Fault> {
        let has = |extension: &str| greeted.extensions.iter().any(|name| name == extension);
        let told = if has(LIMITS) { Some(self.ask(Request::limits()).await?) } else { None };
        let limits = match told {
            Some(Answer::Extended(answer)) => packet::decode_limits(answer),
            _ => None,
        };
        let (read, write) = limits.unwrap_or((0, 0));
        Ok(Abilities {
            fsync: has(FSYNC),
            hard_links: has(HARD_LINK),
            space: has(SPACE),
            read_bytes: block(read),
            write_bytes: block(write),
        })
    }
}

/// Bytes of one read or write by what the server says, 0 if it says nothing.
fn block(limit: u64) -> u32 {
    let limit = if limit == 0 { BLOCK_BYTES_DEFAULT } else { limit };
    u32::try_from(limit.clamp(BLOCK_BYTES.0, BLOCK_BYTES.1)).unwrap_or(u32::MAX)
}

/// Exchanges greetings; `None` if the stream ends before.
async fn greet(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    traffic: &Traffic,
) -> Result<Option<Greeted>, String> {
    // A writer that is closed has a reader that ends.
    let _ = send(&packet::greeting(), writer, &traffic.sent).await;
    let Ok(packet) = next_packet(reader, &traffic.received).await.map_err(|error| not_sftp(&error))? else {
        return Ok(None);
    };
    let greeted = Greeted::decode(packet).ok_or("the server does not greet as SFTP does")?;
    if greeted.version == packet::VERSION {
        Ok(Some(greeted))
    } else {
        Err(format!("the server speaks version {} of SFTP, not {}", greeted.version, packet::VERSION))
    }
}

fn not_sftp(reason: &str) -> String {
    format!("{reason}; if the server's shell prints something when it starts, make it silent")
}

/// The end of a stream, between packets or in one.
struct Ended;

/// Reads a packet without its length, in pieces that wait for their turn.
///
/// # Errors
/// The length is none that a packet can have.
async fn next_packet(reader: &mut (impl AsyncRead + Unpin), flow: &Flow) -> Result<Result<Bytes, Ended>, String> {
    let Ok(length) = reader.read_u32().await else { return Ok(Err(Ended)) };
    flow.pass(size_of_val(&length)).await;
    let length = length as usize;
    if !(1..=PACKET_BYTES_MAX).contains(&length) {
        return Err(format!("the server sent a packet of {length} bytes"));
    }
    let mut packet = BytesMut::zeroed(length);
    for piece in packet.chunks_mut(flow.piece_bytes()) {
        if reader.read_exact(piece).await.is_err() {
            return Ok(Err(Ended));
        }
        flow.pass(piece.len()).await;
    }
    Ok(Ok(packet.freeze()))
}

/// Writes a packet, in pieces that wait for their turn.
async fn send(packet: &[u8], writer: &mut (impl AsyncWrite + Unpin), flow: &Flow) -> io::Result<()> {
    for piece in packet.chunks(flow.piece_bytes()) {
        flow.pass(piece.len()).await;
        writer.write_all(piece).await?;
    }
    writer.flush().await
}

/// Runs a task until it is done or the conversation has ended, and drops what the task holds then: its stream, the end
/// of the queue, the program. A write to a server that reads nothing would not end by itself.
async fn until_ended(shared: Arc<Shared>, task: impl Future<Output = ()>) {
    let task = pin!(task);
    let ended = pin!(shared.ended());
    future::select(task, ended).await;
}

async fn write(
    mut packets: mpsc::Receiver<Bytes>,
    mut writer: impl AsyncWrite + Unpin,
    shared: Arc<Shared>,
    flow: Arc<Flow>,
) {
    while let Some(packet) = packets.recv().await {
        if send(&packet, &mut writer, &flow).await.is_err() {
            // The reader mostly finds the end of its stream, and knows better why.
            sleep(CLOSED_MAX).await;
            shared.end("the server takes no more requests".to_owned());
            return;
        }
    }
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    ending: impl Future<Output = String>,
    shared: Arc<Shared>,
    flow: Arc<Flow>,
) {
    let reason = loop {
        match next_packet(&mut reader, &flow).await {
            Ok(Ok(packet)) => {
                if let Err(reason) = shared.deliver(packet) {
                    break reason;
                }
            }
            Ok(Err(Ended)) => break ending.await,
            Err(reason) => break reason,
        }
    };
    debug!(reason, "sftp ended");
    shared.end(reason);
}

/// Ends a conversation in which the server is silent, and keeps an idle one in use. While pieces move within a limit it
/// is not the server that is waited for.
async fn watch(shared: Arc<Shared>, silence: Duration, traffic: Traffic) {
    let mut limited = traffic.pieces_limited();
    loop {
        sleep(silence / 4).await;
        let before = std::mem::replace(&mut limited, traffic.pieces_limited());
        let (is_waiting, heard) = {
            let mut state = shared.lock();
            if limited != before {
                state.heard = Instant::now();
            }
            (!state.waiting.is_empty(), state.heard.elapsed())
        };
        if is_waiting && heard > silence {
            shared.end(format!("the server said nothing for {} seconds", silence.as_secs_f32()));
            return;
        }
        if !is_waiting
            && heard > IDLE_MAX
            && let Ok(slot) = shared.queue.try_reserve()
            && let Ok((number, _)) = shared.register()
        {
            slot.send(Request::real_path(".").numbered(number));
        }
    }
}
