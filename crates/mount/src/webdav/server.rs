//! The server: its listener, its connections and their bounds, its end.

use super::answer::{Credentials, SILENCE, Service};
use super::tree::Tree;
use crate::{MountError, MountOptions, Tell};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use siltstone_engine::Resources;
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_store::repository::Repository;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// Threads for connections: for waiting, not for reading.
const THREADS: usize = 1;
/// Connections at the same time, at most.
const CONNECTIONS_MAX: usize = 64;
/// Threads that read: two for a connection, one that answers and one that makes the body.
const READERS_MAX: usize = 2 * CONNECTIONS_MAX;
/// Bytes that a connection buffers.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Time for requests under way to end when the server ends.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Pause after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// How to serve snapshots.
#[derive(Clone)]
#[non_exhaustive]
pub struct WebdavOptions {
    /// Snapshots to show.
    pub filter: SnapshotFilter,
    /// The address to listen at; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Name and password that are asked for.
    pub credentials: Option<Credentials>,
    /// Serve other machines too, though what is sent can be seen on the way, the password too.
    pub allow_plain_http: bool,
    /// As those of [`MountOptions`].
    pub resources: Resources,
    /// Told what cannot be read.
    pub tell: Tell,
}

impl WebdavOptions {
    /// Returns the usual options for this address: all snapshots, without a password, for this machine alone.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            filter: SnapshotFilter::default(),
            listen,
            credentials: None,
            allow_plain_http: false,
            resources: Resources::default(),
            tell: Arc::new(|_| {}),
        }
    }
}

/// A server at work. It ends with the value; [`WebdavServer::stop`] lets requests end first.
#[derive(Debug)]
pub struct WebdavServer {
    /// `None` only while it ends.
    runtime: Option<Runtime>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    listening: Option<JoinHandle<()>>,
}

impl WebdavServer {
    /// Starts to serve the snapshots of a repository.
    ///
    /// # Errors
    /// [`MountError::OpenToOthers`] if the address can be reached by other machines and no password is asked for, or
    /// plain HTTP was not allowed; [`MountError::Listen`]; those of listing the snapshots.
    pub fn start(repository: &'static Repository, options: WebdavOptions) -> Result<Self, MountError> {
        let address = options.listen;
        let is_guarded = options.credentials.is_some() && options.allow_plain_http;
        if !address.ip().is_loopback() && !is_guarded {
            return Err(MountError::OpenToOthers { address });
        }
        let shown = MountOptions {
            filter: options.filter,
            resources: options.resources,
            tell: options.tell,
            ..MountOptions::default()
        };
        let service = Arc::new(Service { tree: Tree::new(repository, shown)?, credentials: options.credentials });
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(READERS_MAX)
            .thread_name("webdav")
            .enable_all()
            .build()
            .map_err(|source| MountError::Threads { source })?;
        let failed = |source| MountError::Listen { address, source };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let listening = Some(runtime.spawn(listen(listener, service, stopped)));
        Ok(Self { runtime: Some(runtime), address, stop, listening })
    }

    /// Returns the address it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests under way end for some seconds, and ends.
    pub fn stop(mut self) {
        // The listener may have ended by itself.
        let _ = self.stop.send(true);
        if let (Some(runtime), Some(listening)) = (&self.runtime, self.listening.take()) {
            let _ = runtime.block_on(async { timeout(END_WITHIN, listening).await });
        }
    }
}

impl Drop for WebdavServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Takes connections until the server stops, then waits for those under way.
async fn listen(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let (under_way, seats) = (GracefulShutdown::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let taken = async { (seats.clone().acquire_owned().await, listener.accept().await) };
        let (seat, accepted) = tokio::select! {
            // Its sender is the server.
            _ = stopped.changed() => break,
            taken = taken => taken,
        };
        if let Ok((stream, _)) = accepted {
            let (service, watcher) = (service.clone(), under_way.watcher());
            tokio::spawn(async move {
                serve(stream, service, watcher).await;
                drop(seat);
            });
        } else {
            sleep(PAUSE).await;
        }
    }
    drop(listener);
    under_way.shutdown().await;
}

/// Answers the requests of a connection, one after the other. A client that takes nothing is given up, and with it the
/// thread that reads for it.
async fn serve(stream: TcpStream, service: Arc<Service>, watcher: Watcher) {
    // Where that cannot be had, answers are a little later.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(SILENCE));
    let answer = service_fn(|request: Request<Incoming>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    // It may end early; the client knows.
    let _ = watcher.watch(connection).await;
}
