//! The program that reaches a server and gives its SFTP on standard input and output: `ssh`, `rclone`, or what the user
//! names.
//!
//! It has a process group of its own, so that Ctrl-C does not take the connection away while work comes to its end.
//! Until the server greets the terminal is lent to it, for it may ask for a password ([`super::terminal`]).

use super::terminal::Lent;
use crate::fault::Fault;
use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Bytes of standard error that are kept: its last ones.
const SAID_BYTES_MAX: usize = 2 << 10;
/// Time that a program has to end after its output has ended.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// Time in which the rest of standard error comes.
const REST_MAX: Duration = Duration::from_millis(500);
/// Words of `ssh` and `rclone` that say that trying again does not help.
const FINAL: [&str; 8] = [
    "Permission denied",
    "Host key verification failed",
    "Too many authentication failures",
    "subsystem request failed",
    "Bad configuration option",
    "usage:",
    "nknown command",
    "find section in config file",
];

/// A program and its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    /// Variables that it is given beside those of this process.
    pub(crate) variables: BTreeMap<String, String>,
    /// The package that has the program, and the variable that names another one.
    pub(crate) advice: &'static str,
}

/// A program that was started.
pub(super) struct Started {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) ending: Ending,
    /// The terminal, for as long as this is kept.
    pub(super) lent: Option<Lent>,
}

/// The end of a program. The program is killed when this is dropped.
pub(super) struct Ending {
    name: String,
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    listener: tokio::task::JoinHandle<()>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// It is not there, or the system starts no programs.
    pub(super) fn start(&self) -> Result<Started, Fault> {
        let Some((name, arguments)) = self.words.split_first() else {
            return Err(Fault::Wrong(format!("the command that reaches the server is empty; {}", self.advice)));
        };
        let failed = |error: &io::Error| {
            let not_there = if error.kind() == io::ErrorKind::NotFound { self.advice } else { "" };
            Fault::Wrong(format!("cannot start '{name}': {error}; {not_there}").trim_end_matches("; ").to_owned())
        };
        let mut command = Command::new(name);
        command.args(arguments).envs(&self.variables).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let lent = child.id().and_then(Lent::to);
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::Wrong(format!("'{name}' has no standard streams")));
        };
        let said = Arc::default();
        let listener = tokio::spawn(listen(errors, Arc::clone(&said)));
        let ending = Ending { name: name.clone(), child, said, listener };
        Ok(Started { input, output, ending, lent })
    }
}

impl Ending {
    /// Waits for the end of the program, and says how it ended with its last words.
    pub(super) async fn reason(mut self) -> String {
        let ended = match timeout(ENDING_MAX, self.child.wait()).await {
            Ok(Ok(status)) => format!("'{}' ended with {status}", self.name),
            _ => format!("'{}' closed its output", self.name),
        };
        // Another process may hold the stream for longer, as a shared connection of ssh does.
        let _ = timeout(REST_MAX, &mut self.listener).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() { ended } else { format!("{ended}: {}", lines.join(" | ")) }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Keeps the last bytes of standard error.
async fn listen(mut errors: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut bytes).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(bytes.iter().take(read));
        let surplus = said.len().saturating_sub(SAID_BYTES_MAX);
        said.drain(..surplus);
    }
}

/// Sorts the reason why a connection was not made.
pub(super) fn not_connected(reason: String) -> Fault {
    let is_final = FINAL.iter().any(|words| reason.contains(words)) || reason.contains("(SIGINT)");
    if is_final { Fault::Denied(reason) } else { Fault::Unsent(reason) }
}
