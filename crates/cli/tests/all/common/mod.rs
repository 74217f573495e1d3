//! Running the real program in a folder of its own, with nothing of the caller's surroundings.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A key that is opened at next to no cost: most tests run the program often, and are about something else.
pub(crate) const QUICK_KEY: [&str; 6] = ["--kdf-memory", "64K", "--kdf-passes", "1", "--kdf-lanes", "1"];

/// A folder with a source, and a place for a repository.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// Without a repository.
    pub(crate) fn bare() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    /// With a repository of password `secret`, which opens quickly and whose data has no parity, so that damage shows.
    pub(crate) fn new() -> Self {
        let sandbox = Self::bare();
        ran(sandbox.silt().args(["init", "--parity", "off"]).args(QUICK_KEY)).ok();
        sandbox
    }

    /// With a repository that holds one snapshot of so many files, which do not compress.
    pub(crate) fn of_files(count: u64) -> Self {
        let sandbox = Self::new();
        for number in 0..count {
            sandbox.write(&format!("{number:03}"), noise(number, 50_000));
        }
        sandbox.backup(&[]);
        sandbox
    }

    /// The largest container of its repository.
    pub(crate) fn largest_container(&self) -> PathBuf {
        let kinds = ["data", "metadata"].map(|kind| fs::read_dir(self.repository().join(kind)).expect("read"));
        let folders = kinds.into_iter().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"));
        let bytes = |path: &PathBuf| fs::metadata(path).expect("status").len();
        files.map(|file| file.expect("a file").path()).max_by_key(bytes).expect("a container")
    }

    /// A path in the sandbox.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The repository's folder.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    /// Writes a file of the source.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("source").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, content).expect("written");
        path
    }

    /// The source's folder, as text.
    pub(crate) fn source(&self) -> String {
        self.path("source").display().to_string()
    }

    /// `silt` with repository and password set, and its cache in the sandbox.
    pub(crate) fn silt(&self) -> Command {
        let mut command = self.silt_without_password();
        command.env("SILT_PASSWORD", "secret");
        command
    }

    /// `silt` with the repository set.
    pub(crate) fn silt_without_password(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silt"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("USER", "tester").env("TZ", "UTC");
        command.env("SILT_REPOSITORY", self.repository());
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs `silt` with these arguments.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Ran {
        ran(self.silt().args(arguments))
    }

    /// Backs the source up and returns the summary.
    pub(crate) fn backup(&self, more: &[&str]) -> Value {
        let source = self.source();
        let arguments: Vec<&str> = ["backup", "--json", source.as_str()].iter().chain(more).copied().collect();
        let ran = self.run(&arguments).ok();
        ran.message("summary")
    }
}

/// Bytes that do not compress.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Output and exit status of a run.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("silt runs");
    Ran::from(output)
}

/// Runs a command with this on its standard input.
pub(crate) fn ran_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("silt runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may end without having read everything.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ran::from(child.wait_with_output().expect("silt ends"))
}

/// Reads the first line that a program prints, which is JSON.
pub(crate) fn first_message(process: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Sends a signal, such as `-TERM`, to a program.
pub(crate) fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("output is text"),
            stderr: String::from_utf8(output.stderr).expect("errors are text"),
        }
    }
}

impl Ran {
    /// Itself, if it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    /// Itself, if it ended so.
    #[track_caller]
    pub(crate) fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// All messages of this type.
    #[track_caller]
    pub(crate) fn messages(&self, message_type: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["message_type"] == message_type).collect()
    }

    /// The one message of this type.
    #[track_caller]
    pub(crate) fn message(&self, message_type: &str) -> Value {
        let found = self.messages(message_type);
        assert_eq!(found.len(), 1, "{message_type}: {}", self.stdout);
        found.into_iter().next().expect("one")
    }
}

/// The content of a file.
#[track_caller]
pub(crate) fn content(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
