//! A connection that is made when it is first needed, and again when it has broken.

use super::program::{Program, not_connected};
use super::session::Session;
use crate::fault::Fault;
use crate::traffic::Traffic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// See the module.
#[derive(Debug)]
pub(crate) struct Connection {
    program: Program,
    /// Time without an answer after which a conversation is given up.
    silence: Duration,
    traffic: Traffic,
    current: Mutex<Current>,
    /// Failures to connect until now.
    failures: AtomicU64,
}

#[derive(Debug)]
enum Current {
    None,
    Open(Arc<Session>),
    Failed(Fault),
}

impl Connection {
    pub(crate) fn new(program: Program, silence: Duration, traffic: Traffic) -> Self {
        Self { program, silence, traffic, current: Mutex::new(Current::None), failures: AtomicU64::new(0) }
    }

    /// Returns the conversation that is under way, or begins one. Who waited for another one's failure shares it, so
    /// that many requests do not make many connections.
    pub(super) async fn session(&self) -> Result<Arc<Session>, Fault> {
        let failures = self.failures.load(Ordering::Acquire);
        let mut current = self.current.lock().await;
        match &*current {
            Current::Open(session) if !session.has_ended() => return Ok(Arc::clone(session)),
            Current::Failed(fault) if self.failures.load(Ordering::Acquire) != failures => return Err(fault.clone()),
            _ => *current = Current::None,
        }
        match self.begin().await {
            Ok(session) => {
                let session = Arc::new(session);
                *current = Current::Open(Arc::clone(&session));
                Ok(session)
            }
            Err(fault) => {
                *current = Current::Failed(fault.clone());
                self.failures.fetch_add(1, Ordering::Release);
                Err(fault)
            }
        }
    }

    async fn begin(&self) -> Result<Session, Fault> {
        let started = self.program.start()?;
        let ending = started.ending.reason();
        let session = Session::start(started.output, started.input, ending, self.silence, &self.traffic).await;
        drop(started.lent);
        session.map_err(not_connected)
    }
}
