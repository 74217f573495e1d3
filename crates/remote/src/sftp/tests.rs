//! A client before servers that are broken or hostile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::*;
use crate::traffic::Traffic;
use packet::{HARD_LINK, SPACE};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Time after which a test that should have ended is taken for hung.
const HUNG: Duration = Duration::from_mins(1);

/// The server's end of a connection, by a script.
struct Script(DuplexStream);

impl Script {
    /// Reads a request: its type, its number, its fields.
    async fn request(&mut self) -> (u8, u32, Vec<u8>) {
        let mut packet = vec![0; self.0.read_u32().await.unwrap() as usize];
        self.0.read_exact(&mut packet).await.unwrap();
        (packet[0], u32::from_be_bytes(packet[1..5].try_into().unwrap()), packet[5..].to_vec())
    }

    async fn answer(&mut self, kind: u8, number: u32, fields: &[u8]) {
        let length = (fields.len() as u32 + 5).to_be_bytes();
        self.bytes(&[&length, [kind].as_slice(), &number.to_be_bytes(), fields].concat()).await;
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        // The client may have gone.
        let _ = self.0.write_all(bytes).await;
    }

    /// Exchanges greetings; the server says that it has hard links and tells the room of its disk.
    async fn greet(&mut self) {
        let _ = self.request().await;
        let extension = [text(HARD_LINK.as_bytes()), text(b"1"), text(SPACE.as_bytes()), text(b"2")].concat();
        self.bytes(&[&(extension.len() as u32 + 5).to_be_bytes(), [2, 0, 0, 0, 3].as_slice(), &extension].concat())
            .await;
    }
}

fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text].concat()
}

/// Runs a client before a server.
fn run<S: Future<Output = ()> + Send + 'static, C: Future<Output = ()>>(
    server: impl FnOnce(Script) -> S,
    client: impl FnOnce(DuplexStream) -> C,
) {
    let (near, far) = duplex(1 << 20);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.spawn(server(Script(far)));
    runtime.block_on(async { timeout(HUNG, client(near)).await.expect("it hangs") });
}

async fn start(stream: DuplexStream, silence: Duration) -> Result<Arc<Session>, String> {
    let (reader, writer) = tokio::io::split(stream);
    Session::start(reader, writer, async { "it ended".to_owned() }, silence, &Traffic::default()).await.map(Arc::new)
}

async fn started(stream: DuplexStream) -> Arc<Session> {
    start(stream, HUNG).await.unwrap()
}

#[test]
fn a_greeting_that_is_none_is_told() {
    let version_2 = [0, 0, 0, 5, 2, 0, 0, 0, 2].as_slice();
    let cases = [
        (b"Welcome to this machine\n".as_slice(), "make it silent"),
        (&[0; 100], "make it silent"),
        (&[0, 0, 0, 4, 101, 0, 0, 0], "does not greet"),
        (&[0, 0, 0, 9, 2, 0, 0, 0, 3, 255, 255, 255, 255], "does not greet"),
        (version_2, "version 2"),
        (b"", "it ended"),
        (b"\0\0", "it ended"),
    ];
    for (greeting, expected) in cases {
        let server = |mut script: Script| async move { script.bytes(greeting).await };
        run(server, |stream| async move {
            let said = start(stream, HUNG).await.unwrap_err();
            assert!(said.contains(expected), "{greeting:?}: {said}");
        });
    }
}

#[test]
fn what_cannot_be_understood_ends_the_conversation_for_all_who_wait() {
    let too_long = [0, 4, 4, 1, 103].to_vec();
    let longest = u32::MAX.to_be_bytes().to_vec();
    let unasked = [&[0, 0, 0, 9, 101, 0, 0, 3, 0], [0; 4].as_slice()].concat();
    let (malformed, unknown, none) = (vec![0, 0, 0, 5, 103, 0, 0, 0, 0], vec![0, 0, 0, 5, 99, 0, 0, 0, 0], vec![0; 4]);
    for answer in [too_long, longest, unasked, malformed, unknown, none, Vec::new()] {
        let sent = answer.clone();
        let server = |mut script: Script| async move {
            script.greet().await;
            let _ = (script.request().await, script.request().await);
            script.bytes(&sent).await;
        };
        run(server, |stream| async move {
            let session = started(stream).await;
            let ask = || session.ask(Request::lstat("x"));
            let (one, other) = future::join(ask(), ask()).await;
            assert!(
                matches!((&one, &other), (Err(Fault::Lost(_)), Err(Fault::Lost(_)))),
                "{answer:?}: {one:?} {other:?}"
            );
            assert!(session.has_ended());
            assert!(matches!(ask().await, Err(Fault::Unsent(_))), "nothing more is sent");
        });
    }
}

#[test]
fn answers_find_their_requests_in_any_order() {
    let server = |mut script: Script| async move {
        script.greet().await;
        let mut requests = Vec::new();
        for _ in 0..20 {
            requests.push(script.request().await);
        }
        for (_, number, path) in requests.into_iter().rev() {
            script.answer(102, number, &path).await;
        }
    };
    run(server, |stream| async move {
        let session = started(stream).await;
        let names: Vec<String> = (0..20).map(|i| format!("file {i}")).collect();
        let answers = future::join_all(names.iter().map(|name| session.ask(Request::lstat(name)))).await;
        for (name, answer) in names.iter().zip(answers) {
            assert_eq!(answer.unwrap(), Answer::Handle(Bytes::copy_from_slice(name.as_bytes())));
        }
    });
}

#[test]
fn a_silent_server_is_given_up() {
    let server = |mut script: Script| async move {
        script.greet().await;
        std::future::pending::<()>().await;
    };
    run(server, |stream| async move {
        let session = start(stream, Duration::from_millis(20)).await.unwrap();
        let Err(Fault::Lost(said)) = session.ask(Request::lstat("x")).await else { panic!("it answered") };
        assert!(said.contains("said nothing"), "{said}");
    });
}

#[test]
fn a_server_that_reads_nothing_is_given_up_for_all_who_wait_to_be_sent() {
    let (given_up, is_given_up) = tokio::sync::oneshot::channel::<()>();
    let (closed, is_closed) = tokio::sync::oneshot::channel::<()>();
    // It reads only when the client has given it up, to the end of what came.
    let server = |mut script: Script| async move {
        script.greet().await;
        is_given_up.await.unwrap();
        let mut rest = Vec::new();
        script.0.read_to_end(&mut rest).await.unwrap();
        closed.send(()).unwrap();
    };
    run(server, |stream| async move {
        let session = start(stream, Duration::from_millis(100)).await.unwrap();
        // More than the pipe and the queue hold.
        let part = vec![0u8; 64 << 10];
        let answers = future::join_all((0..100).map(|_| session.ask(Request::write(b"h", 0, &part)))).await;
        let lost = answers.iter().filter(|answer| matches!(answer, Err(Fault::Lost(_)))).count();
        let unsent = answers.iter().filter(|answer| matches!(answer, Err(Fault::Unsent(_)))).count();
        assert!(lost > 0 && unsent > 0 && lost + unsent == 100, "{lost} lost, {unsent} unsent");
        // The streams are closed although the session is still held.
        given_up.send(()).unwrap();
        is_closed.await.unwrap();
        drop(session);
    });
}

#[test]
fn a_handle_that_nobody_waits_for_is_closed() {
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let server = |mut script: Script| async move {
        script.greet().await;
        let (_, number, _) = script.request().await;
        let (_, later, _) = script.request().await;
        script.answer(102, number, &text(b"left")).await;
        script.answer(101, later, &[0; 4]).await;
        closed.send(script.request().await).unwrap();
    };
    run(server, |stream| async move {
        let session = started(stream).await;
        let mut open = Box::pin(session.ask(Request::open("x", READ)));
        assert!(future::poll_immediate(&mut open).await.is_none());
        drop(open);
        session.order(Request::remove("y")).await.unwrap();
        let (kind, _, handle) = is_closed.await.unwrap();
        assert_eq!((kind, handle), (4, text(b"left")));
    });
}

/// Serves one file whose reads are answered so.
async fn serve(mut script: Script, answer: impl Fn(u64, u32) -> Vec<u8>) {
    script.greet().await;
    loop {
        let (kind, number, fields) = script.request().await;
        match kind {
            5 => {
                let at = fields.len() - 12;
                let offset = u64::from_be_bytes(fields[at..at + 8].try_into().unwrap());
                let bytes = u32::from_be_bytes(fields[at + 8..].try_into().unwrap());
                script.answer(103, number, &text(&answer(offset, bytes))).await;
            }
            _ => script.answer(102, number, &text(b"h")).await,
        }
    }
}

#[test]
fn short_reads_are_put_together_and_long_ones_refused() {
    let content = |offset: u64, bytes: u64| (offset..offset + bytes).map(|at| at as u8).collect::<Vec<u8>>();
    for most in [1, 7, 100] {
        let server = move |script| serve(script, move |offset, bytes| content(offset, u64::from(bytes.min(most))));
        run(server, |stream| async move {
            let session = started(stream).await;
            let file = Arc::new(OpenFile::open(&session, Request::open("x", READ)).await.unwrap());
            assert_eq!(file.read_whole(20..120).await.unwrap(), content(20, 100));
        });
    }
    for (answered, expected) in [(101, "more bytes"), (0, "shorter")] {
        let server = move |script| serve(script, move |_, _| vec![0; answered]);
        run(server, |stream| async move {
            let session = started(stream).await;
            let file = Arc::new(OpenFile::open(&session, Request::open("x", READ)).await.unwrap());
            let Err(Fault::Lost(said)) = file.read_whole(0..100).await else { panic!("{answered} bytes are taken") };
            assert!(said.contains(expected), "{said}");
        });
    }
}

/// A folder that is never connected.
fn folder(naming: Naming) -> Folder {
    let program = Program { words: Vec::new(), variables: BTreeMap::new(), advice: "" };
    let SftpStore(folder) =
        SftpStore::new(Connection::new(program, HUNG, Traffic::default()), "/repository", naming, Root::IsThere);
    Arc::into_inner(folder).unwrap()
}

/// A server whose answer to each request is a code by the request's type.
async fn answer_by_type(mut script: Script, code: impl Fn(u8) -> u32) {
    script.greet().await;
    loop {
        let (kind, number, _) = script.request().await;
        script.answer(101, number, &code(kind).to_be_bytes()).await;
    }
}

#[test]
fn a_temporary_file_that_another_writer_removed_is_told_as_swept() {
    // Folders can be made (14); whatever else is asked for is not there (2).
    let server = |script| answer_by_type(script, |kind| if kind == 14 { 0 } else { 2 });
    run(server, |stream| async move {
        let session = started(stream).await;
        let named = folder(Naming::Refused).name(&session, "/repository/tmp/x.7", "/repository/series/x").await;
        assert_eq!(named, Err(Fault::Swept));
    });
}

#[test]
fn a_server_without_hard_links_is_asked_to_rename() {
    // It says that it has them and then that it does not know the request (200), as rclone does; it renames (18).
    let server = |script| answer_by_type(script, |kind| if kind == 200 { 8 } else { u32::from(kind != 18) * 4 });
    run(server, |stream| async move {
        let session = started(stream).await;
        assert_eq!(folder(Naming::Refused).name(&session, "/repository/tmp/x.7", "/repository/x").await, Ok(()));
    });
}

/// Answers of a server whose disk has this many bytes left: nothing has a name (7).
async fn answer_with_room(mut script: Script, free: u64) {
    script.greet().await;
    loop {
        let (kind, number, _) = script.request().await;
        let room = [4096, 1, 1 << 30, free, free, 0, 0].map(u64::to_be_bytes).concat();
        let (kind, fields) = if kind == 7 { (101, [0, 0, 0, 2].to_vec()) } else { (201, room) };
        script.answer(kind, number, &fields).await;
    }
}

#[test]
fn a_write_that_failed_for_want_of_room_is_told_so() {
    let failure = || Fault::Wrong("Failure".to_owned());
    for (free, bytes, expected) in [
        (0, 10, Fault::Full("Failure".to_owned())),
        (9 << 20, 16 << 20, Fault::Full("Failure".to_owned())),
        (9 << 20, 10, failure()),
    ] {
        run(
            move |script| answer_with_room(script, free),
            |stream| async move {
                let session = started(stream).await;
                let told = folder(Naming::Refused).reason_of_write(&session, "/repository/x", bytes, failure()).await;
                assert_eq!(told, expected);
            },
        );
    }
}

#[test]
fn blocks_cover_a_range() {
    let cut = |range, block| blocks(range, block).collect::<Vec<_>>();
    assert_eq!(cut(3..10, 3), [3..6, 6..9, 9..10]);
    assert_eq!(cut(3..3, 3), []);
    assert_eq!(cut(u64::MAX - 2..u64::MAX, 1), [u64::MAX - 2..u64::MAX - 1, u64::MAX - 1..u64::MAX]);
}
