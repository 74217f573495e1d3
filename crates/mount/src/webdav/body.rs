//! Bodies of answers: short ones whole, long ones in pieces while they are made.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

/// Pieces that wait for a client.
const WAITING_MAX: usize = 2;

/// Body of an answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// A body that is there.
pub(super) fn whole(bytes: impl Into<Bytes>) -> AnswerBody {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body that is made on a thread of its own while the client takes it. An error ends the connection, so that what is
/// cut short does not look whole.
pub(super) fn streamed(make: impl FnOnce(&Pieces) -> io::Result<()> + Send + 'static) -> AnswerBody {
    let (sender, receiver) = channel(WAITING_MAX);
    spawn_blocking(move || {
        let pieces = Pieces(sender);
        if let Err(error) = make(&pieces) {
            // Where nobody waits any more, nobody misses it.
            let _ = pieces.0.blocking_send(Err(error));
        }
    });
    Streamed(receiver).boxed_unsync()
}

/// Where the pieces of a body go.
pub(super) struct Pieces(Sender<io::Result<Bytes>>);

impl Pieces {
    /// Hands a piece on, once there is room.
    ///
    /// # Errors
    /// The client has gone.
    pub(super) fn send(&self, bytes: impl Into<Bytes>) -> io::Result<()> {
        self.0.blocking_send(Ok(bytes.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct Streamed(Receiver<io::Result<Bytes>>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
