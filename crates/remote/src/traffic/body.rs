//! A body of a request or an answer that passes in pieces.

use super::Flow;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// See the module.
pub(crate) struct Paced<B> {
    body: B,
    flow: Arc<Flow>,
    /// Bytes of the last frame that were not yet admitted.
    rest: Bytes,
    waiting: Option<Waiting>,
    /// The right of a large body, given back when it has passed or is dropped.
    _turn: Option<OwnedSemaphorePermit>,
}

/// A piece that was admitted and waits.
struct Waiting {
    piece: Bytes,
    sleep: Pin<Box<Sleep>>,
}

impl<B> Paced<B> {
    /// Wraps a body, with the turn that it was given.
    pub(crate) fn new(body: B, flow: &Arc<Flow>, turn: Option<OwnedSemaphorePermit>) -> Self {
        Self { body, flow: Arc::clone(flow), rest: Bytes::new(), waiting: None, _turn: turn }
    }

    /// Bytes that have come out of the body and not yet passed.
    fn pending(&self) -> u64 {
        (self.rest.len() + self.waiting.as_ref().map_or(0, |waiting| waiting.piece.len())) as u64
    }

    /// Takes the next piece of the last frame; `None` where it has to wait.
    fn next_piece(&mut self) -> Option<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(self.flow.piece_bytes()));
        let wait = self.flow.admit(piece.len());
        if wait.is_zero() {
            return Some(piece);
        }
        self.waiting = Some(Waiting { piece, sleep: Box::pin(sleep(wait)) });
        None
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Paced<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.sleep.as_mut().poll(cx));
            }
            if let Some(waiting) = self.waiting.take() {
                return Poll::Ready(Some(Ok(Frame::data(waiting.piece))));
            }
            if !self.rest.is_empty() {
                if let Some(piece) = self.next_piece() {
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                continue;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pending() == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (pending, inner) = (self.pending(), self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(pending));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(pending));
        }
        hint
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::traffic::{Limits, Traffic};
    use object_store::client::HttpRequestBody;
    use tokio::runtime::Builder;

    /// The lengths of the pieces in which a body passes, whose hint and end must agree with them all along.
    fn pieces(traffic: &Traffic, content: &[u8]) -> Vec<usize> {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let body = HttpRequestBody::from(Bytes::copy_from_slice(content));
        let mut body = Paced::new(body, &traffic.sent, None);
        let (mut pieces, mut passed) = (Vec::new(), Vec::new());
        runtime.block_on(async {
            while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let data = frame.unwrap().into_data().unwrap();
                pieces.push(data.len());
                passed.extend_from_slice(&data);
                assert_eq!(body.size_hint().exact(), Some((content.len() - passed.len()) as u64));
                assert_eq!(body.is_end_stream(), passed.len() == content.len());
            }
        });
        assert_eq!(passed, content);
        pieces
    }

    #[test]
    fn a_body_passes_in_pieces_each_of_which_is_counted() {
        let content: Vec<u8> = (0..200_000u32).map(|i| i.to_le_bytes()[0]).collect();
        let traffic = Traffic::default();
        assert_eq!(pieces(&traffic, &content), [65_536, 65_536, 65_536, 3392]);
        assert_eq!(traffic.bytes_sent(), 200_000);
        assert_eq!(pieces(&traffic, b""), [0; 0]);
    }

    #[test]
    fn a_limited_body_is_whole() {
        let traffic = Traffic::new(Limits { upload: Some(4 << 20), download: None });
        let content = vec![7; 600 << 10];
        assert!(pieces(&traffic, &content).iter().all(|&bytes| bytes <= 64 << 10));
        assert_eq!(traffic.bytes_sent(), content.len() as u64);
    }

    #[test]
    fn a_piece_waits_for_its_turn_in_the_bucket() {
        let traffic = Traffic::new(Limits { upload: Some(1), download: None });
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let mut body = Paced::new(HttpRequestBody::from(vec![7; 3000]), &traffic.sent, None);
        runtime.block_on(async {
            let mut is_ready = [true, false, false].into_iter();
            std::future::poll_fn(|cx| {
                for expected in is_ready.by_ref() {
                    assert_eq!(Pin::new(&mut body).poll_frame(cx).is_ready(), expected);
                }
                Poll::Ready(())
            })
            .await;
        });
        assert_eq!((traffic.bytes_sent(), traffic.pieces_limited()), (2048, 2));
        assert_eq!(body.size_hint().exact(), Some(3000 - 1024), "what waits has not passed");
    }
}
