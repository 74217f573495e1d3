//! Traffic: bytes that are sent to places over a network and received from them, counted and held to a rate.
//!
//! Bodies of requests and answers pass in pieces, and so do the streams of a program that reaches a server. Each piece
//! is counted and waits for its turn in the bucket of its direction ([`pace`]), which all connections share. Under a
//! limit only so many large bodies are on their way that each has [`BODY_RATE`]: servers give up on slower ones.

mod body;
mod pace;

pub(crate) use body::Paced;

use pace::Pace;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Bytes of a piece at most, also where there is no limit: so often is counted.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a piece at least.
const PIECE_BYTES_MIN: usize = 1 << 10;
/// Pieces in a second, under a limit that allows neither the greatest nor the least ones: enough for an even rate.
const PIECES_PER_SECOND: u64 = 16;
/// Bytes per second that each large body should have. A container of 16 MiB then takes a minute; `silt serve` gives it
/// up after nine.
const BODY_RATE: u64 = 256 << 10;
/// Large bodies on their way at once in one direction, at most.
const BODIES_MAX: usize = 64;

/// Greatest rates, in bytes per second; `None` for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// Rate of what is sent.
    pub upload: Option<u64>,
    /// Rate of what is received.
    pub download: Option<u64>,
}

/// Bytes sent and received by all storages that were made with this value or a clone of it, and their limits.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub(crate) sent: Arc<Flow>,
    pub(crate) received: Arc<Flow>,
}

impl Traffic {
    /// Counts from zero, within limits. A limit of 0 is none.
    pub fn new(limits: Limits) -> Self {
        Self { sent: Arc::new(Flow::new(limits.upload)), received: Arc::new(Flow::new(limits.download)) }
    }

    /// Returns the bytes that were sent until now.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.bytes.load(Relaxed)
    }

    /// Returns the bytes that were received until now.
    pub fn bytes_received(&self) -> u64 {
        self.received.bytes.load(Relaxed)
    }

    /// Pieces that moved within a limit until now: while their number grows, who waits may wait for the limit.
    pub(crate) fn pieces_limited(&self) -> u64 {
        self.sent.limited.load(Relaxed) + self.received.limited.load(Relaxed)
    }
}

/// One direction of the traffic.
#[derive(Debug)]
pub(crate) struct Flow {
    bytes: AtomicU64,
    limited: AtomicU64,
    piece_bytes: usize,
    limit: Option<Limit>,
}

#[derive(Debug)]
struct Limit {
    began: Instant,
    pace: Mutex<Pace>,
    /// The right to have a large body on its way.
    turns: Arc<Semaphore>,
}

impl Default for Flow {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Flow {
    fn new(bytes_per_second: Option<u64>) -> Self {
        let rate = bytes_per_second.filter(|&rate| rate > 0);
        let even = rate.and_then(|rate| usize::try_from(rate / PIECES_PER_SECOND).ok());
        let limit = rate.map(|rate| Limit {
            began: Instant::now(),
            pace: Mutex::new(Pace::new(rate)),
            turns: Arc::new(Semaphore::new(bodies_at_once(rate))),
        });
        let piece_bytes = even.unwrap_or(PIECE_BYTES_MAX).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        Self { bytes: AtomicU64::new(0), limited: AtomicU64::new(0), piece_bytes, limit }
    }

    /// Bytes of a piece at most.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// Counts a piece and returns the time that it has to wait.
    pub(crate) fn admit(&self, bytes: usize) -> Duration {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        let Some(limit) = &self.limit else { return Duration::ZERO };
        self.limited.fetch_add(1, Relaxed);
        limit.take(bytes)
    }

    /// Counts a piece and waits until it may pass.
    pub(crate) async fn pass(&self, bytes: usize) {
        let wait = self.admit(bytes);
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// Waits until one more large body may be on its way; `None`, at once, where there is no limit.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.limit.as_ref()?.turns).acquire_owned().await.ok()
    }
}

impl Limit {
    fn take(&self, bytes: usize) -> Duration {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.take(self.began.elapsed(), bytes as u64)
    }
}

/// Large bodies that may be on their way at once at a rate.
fn bodies_at_once(rate: u64) -> usize {
    usize::try_from(rate / BODY_RATE).unwrap_or(BODIES_MAX).clamp(1, BODIES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_enough_for_an_even_rate() {
        let piece = |rate| Flow::new(rate).piece_bytes();
        assert_eq!(piece(None), 64 << 10);
        assert_eq!(piece(Some(0)), 64 << 10);
        assert_eq!(piece(Some(1 << 30)), 64 << 10);
        assert_eq!(piece(Some(512 << 10)), 32 << 10);
        assert_eq!(piece(Some(1)), 1 << 10);
    }

    #[test]
    fn both_directions_are_counted_by_themselves_and_by_all_clones() {
        let traffic = Traffic::default();
        assert_eq!(traffic.clone().sent.admit(5), Duration::ZERO);
        assert_eq!(traffic.clone().received.admit(7), Duration::ZERO);
        assert_eq!((traffic.bytes_sent(), traffic.bytes_received(), traffic.pieces_limited()), (5, 7, 0));
    }

    #[test]
    fn what_moves_within_a_limit_is_counted() {
        let traffic = Traffic::new(Limits { upload: Some(1), download: None });
        traffic.sent.admit(1000);
        assert!(traffic.sent.admit(1) > Duration::from_mins(15));
        assert_eq!(traffic.received.admit(1 << 30), Duration::ZERO);
        assert_eq!(traffic.pieces_limited(), 2);
    }

    #[test]
    fn slow_limits_allow_few_large_bodies() {
        assert_eq!([0, 1, 256 << 10, 1 << 20, u64::MAX].map(bodies_at_once), [1, 1, 1, 4, 64]);
    }
}
