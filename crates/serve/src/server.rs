//! A server: its listener, its connections and their bounds, its end.
//!
//! Each connection has a task, and a seat while it lives: whoever comes when all are taken waits. A client that is
//! silent while it shakes hands, sends a head, sends a body, or takes an answer is given up after
//! [`ServeOptions::silence`].

use crate::answer::Service;
use crate::metrics::Metrics;
use crate::{ServeError, TlsFiles, Tokens};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use siltstone_store::storage::Storage;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// Threads for connections: for their encryption, not for waiting.
const THREADS: usize = 2;
/// Calls to the storage that are under way at the same time.
const STORAGE_CALLS_MAX: usize = 32;
/// Bytes that a connection buffers, heads of requests included; bodies have their room elsewhere.
const BUFFER_BYTES_MAX: usize = 128 << 10;
/// Pause after a connection could not be taken, as when no files are left to open.
const PAUSE: Duration = Duration::from_millis(100);

/// Options of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The address to listen at; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Certificate and key; without them connections are not encrypted.
    pub tls: Option<TlsFiles>,
    /// Serve plain HTTP to other machines too.
    pub allow_plain_http: bool,
    /// Bytes of bodies in memory, at most. The longest object must fit in.
    pub memory_bytes: u64,
    /// Connections at the same time, at most.
    pub connections_max: usize,
    /// Time without a byte after which a client is given up.
    pub silence: Duration,
    /// Time for requests under way to end when the server ends.
    pub end_within: Duration,
}

impl ServeOptions {
    /// Returns the usual options for this address: 256 MiB, 256 connections, 30 seconds, no TLS.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: None,
            allow_plain_http: false,
            memory_bytes: 256 << 20,
            connections_max: 256,
            silence: Duration::from_secs(30),
            end_within: Duration::from_mins(1),
        }
    }

    /// Returns these options with TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<TlsFiles>) -> Self {
        self.tls = tls;
        self
    }

    /// Returns these options, with plain HTTP for other machines or without.
    #[must_use]
    pub fn with_allow_plain_http(mut self, allow_plain_http: bool) -> Self {
        self.allow_plain_http = allow_plain_http;
        self
    }

    /// Returns these options with this memory for bodies, in bytes.
    #[must_use]
    pub fn with_memory_bytes(mut self, memory_bytes: u64) -> Self {
        self.memory_bytes = memory_bytes;
        self
    }

    /// Returns these options with this time of silence.
    #[must_use]
    pub fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }
}

/// A server at work. It ends with the value; [`Server::stop`] lets requests end first.
#[derive(Debug)]
pub struct Server {
    /// `None` only while it ends.
    runtime: Option<Runtime>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    listening: Option<JoinHandle<()>>,
    end_within: Duration,
}

impl Server {
    /// Starts to serve a storage to the holders of tokens.
    ///
    /// # Errors
    /// The address is taken, or open to others without TLS; the certificate cannot be used.
    pub fn start(storage: Arc<dyn Storage>, tokens: Tokens, options: &ServeOptions) -> Result<Self, ServeError> {
        let address = options.listen;
        if options.tls.is_none() && !options.allow_plain_http && !address.ip().is_loopback() {
            return Err(ServeError::PlainHttp { address });
        }
        let tls = options.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(STORAGE_CALLS_MAX)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        let failed = |source| ServeError::Listen { address, source };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let bytes_max = options.memory_bytes.min(u64::from(u32::MAX) << 10);
        let permits = usize::try_from(bytes_max.div_ceil(1 << 10)).unwrap_or(Semaphore::MAX_PERMITS);
        let service = Arc::new(Service {
            storage,
            tokens,
            metrics: Metrics::new(),
            bytes: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            bytes_max,
            silence: options.silence,
        });
        let (stop, stopped) = watch::channel(false);
        let connections = Connections { service, tls, seats: Arc::new(Semaphore::new(options.connections_max)) };
        let listening = runtime.spawn(listen(listener, connections, stopped));
        Ok(Self { runtime: Some(runtime), address, stop, listening: Some(listening), end_within: options.end_within })
    }

    /// Returns the address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests under way end, and ends.
    pub fn stop(mut self) {
        // The listener may have ended by itself.
        let _ = self.stop.send(true);
        if let (Some(runtime), Some(listening)) = (&self.runtime, self.listening.take()) {
            let _ = runtime.block_on(async { timeout(self.end_within, listening).await });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Means that every connection is given.
#[derive(Clone)]
struct Connections {
    service: Arc<Service>,
    tls: Option<TlsAcceptor>,
    seats: Arc<Semaphore>,
}

/// Takes connections until the server stops, then waits for those under way.
async fn listen(listener: TcpListener, connections: Connections, mut stopped: watch::Receiver<bool>) {
    let under_way = GracefulShutdown::new();
    loop {
        let taken = async {
            let seat = Arc::clone(&connections.seats).acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, accepted) = tokio::select! {
            // Its sender is the server.
            _ = stopped.changed() => break,
            taken = taken => taken,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (connections, watcher) = (connections.clone(), under_way.watcher());
                tokio::spawn(async move {
                    connections.serve(stream, peer, watcher).await;
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    under_way.shutdown().await;
}

impl Connections {
    /// Serves a connection to its end.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        let silence = self.service.silence;
        // Where that cannot be had, answers are a little later.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(silence));
        let stream = Box::pin(stream);
        self.service.metrics.connections.inc();
        match &self.tls {
            None => self.answer_all(stream, peer, watcher).await,
            Some(tls) => match timeout(silence, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.answer_all(stream, peer, watcher).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection"),
                Err(_) => tracing::debug!(%peer, "a client is silent"),
            },
        }
        self.service.metrics.connections.dec();
    }

    /// Answers the requests of a connection, one after the other.
    async fn answer_all<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answer = service_fn(|request: Request<Incoming>| {
            let service = Arc::clone(&self.service);
            async move { Ok::<_, Infallible>(service.answer(peer, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.service.silence)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%peer, %error, "a connection ended early");
        }
    }
}
