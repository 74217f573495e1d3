//! Sources that `silt backup` reads: paths given, paths from lists, standard input, or what a command prints.

use crate::environment;
use crate::error::CliError;
use crate::interrupt;
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Lists of paths.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(super) struct ListArgs {
    /// Read paths and globs from a file, one per line, # begins a comment (- for standard input; may be repeated)
    #[arg(long, value_name = "FILE")]
    files_from: Vec<PathBuf>,
    /// Read paths from a file, one per line, taken as they are
    #[arg(long, value_name = "FILE")]
    files_from_verbatim: Vec<PathBuf>,
    /// Read paths from a file, each ended by a NUL byte, as 'find -print0' writes them
    #[arg(long, value_name = "FILE")]
    files_from_raw: Vec<PathBuf>,
}

impl ListArgs {
    /// Tells whether a list comes from standard input.
    pub(super) fn take_stdin(&self) -> bool {
        let lists = [&self.files_from, &self.files_from_verbatim, &self.files_from_raw];
        lists.into_iter().flatten().any(|list| list.as_os_str() == "-")
    }
}

/// A stream instead of paths.
#[derive(Args, Debug, Default)]
pub(super) struct StreamArgs {
    /// Back up standard input as one file
    #[arg(long, conflicts_with_all = ["files_from", "files_from_verbatim", "files_from_raw", "paths"])]
    stdin: bool,
    /// Name of that file in the snapshot
    #[arg(long, value_name = "NAME", default_value = "stdin")]
    stdin_filename: PathBuf,
    /// Run the command after `--` and back up what it prints; if it fails, no snapshot is made
    #[arg(long, requires = "paths", conflicts_with_all = ["stdin", "files_from", "files_from_verbatim", "files_from_raw"])]
    stdin_from_command: bool,
}

impl StreamArgs {
    pub(super) fn is_given(&self) -> bool {
        self.stdin || self.stdin_from_command
    }

    /// Tells whether standard input is the data.
    pub(super) fn takes_stdin(&self) -> bool {
        self.stdin
    }
}

/// The paths named on the command line and in lists.
///
/// # Errors
/// [`CliError::NothingToBackUp`] if there are none.
pub(super) fn source_paths(given: &[OsString], lists: &ListArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut paths: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
    for list in &lists.files_from {
        for line in text_lines(&read_list(list)?) {
            paths.extend(expand(line));
        }
    }
    for list in &lists.files_from_verbatim {
        let bytes = read_list(list)?;
        let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        paths.extend(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))));
    }
    for list in &lists.files_from_raw {
        let bytes = read_list(list)?;
        if bytes.last().is_some_and(|&last| last != 0) {
            return Err(CliError::ListCutShort { path: list.clone() });
        }
        let names = bytes.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        paths.extend(names.map(|name| PathBuf::from(OsStr::from_bytes(name))));
    }
    if paths.is_empty() { Err(CliError::NothingToBackUp) } else { Ok(paths) }
}

/// The bytes of a list; `-` is standard input.
///
/// # Errors
/// [`CliError::ListFile`].
fn read_list(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = open_list(path)?.read_to_end(&mut bytes);
    read.map_err(|source| CliError::ListFile { path: path.to_owned(), source })?;
    Ok(bytes)
}

/// A list, to be read piece by piece; `-` is standard input.
///
/// # Errors
/// [`CliError::ListFile`].
pub(super) fn open_list(path: &Path) -> Result<Box<dyn BufRead>, CliError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|source| CliError::ListFile { path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::new(file)))
}

/// Lines without surrounding blanks, empty ones and comments left out.
fn text_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Paths that a glob matches; the line itself where it matches nothing, so that the backup reports it as missing.
fn expand(line: &[u8]) -> Vec<PathBuf> {
    let itself = || vec![PathBuf::from(OsString::from_vec(line.to_vec()))];
    let Ok(pattern) = std::str::from_utf8(line) else {
        return itself();
    };
    let found: Vec<PathBuf> = glob::glob(pattern).map(|paths| paths.flatten().collect()).unwrap_or_default();
    if found.is_empty() { itself() } else { found }
}

/// A stream to back up, which a second try of the backup can go on with.
pub(super) struct Stream {
    pub(super) name: PathBuf,
    pub(super) reader: SharedReader,
}

/// The stream these options mean; `command` is what stands after `--`.
pub(super) fn stream(options: &StreamArgs, command: &[OsString]) -> Result<Stream, CliError> {
    let name = Path::new("/").join(&options.stdin_filename);
    let reader = match command.split_first() {
        Some((program, arguments)) if options.stdin_from_command => StreamReader::of_command(program, arguments)?,
        _ => StreamReader::of_stdin()?,
    };
    Ok(Stream { name, reader: SharedReader(Arc::new(Mutex::new(reader))) })
}

/// One reader in several hands: a backup that found its series locked has read nothing, the next try begins where it
/// did.
#[derive(Clone)]
pub(super) struct SharedReader(Arc<Mutex<StreamReader>>);

impl Read for SharedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
    }
}

/// Standard input, or what a command prints; the failure of the command is a failed read at the end, so that no
/// snapshot is made of half an output. A read that waits ends with [`io::ErrorKind::Interrupted`] when the user asks to
/// stop.
struct StreamReader {
    input: File,
    command: Option<Running>,
}

struct Running {
    child: Child,
    shown: String,
    is_over: bool,
}

impl StreamReader {
    fn of_stdin() -> Result<Self, CliError> {
        let failed = |source| CliError::ListFile { path: "-".into(), source };
        // Not by way of `Stdin`: its buffer would hide from `poll` what was read ahead.
        let input = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        Ok(Self { input: input.into(), command: None })
    }

    fn of_command(program: &OsStr, arguments: &[OsString]) -> Result<Self, CliError> {
        let shown = program.to_string_lossy().into_owned();
        let failed = |source| CliError::StreamCommand { command: shown.clone(), source };
        let mut command = Command::new(program);
        let mut child =
            command.args(arguments).envs(environment::added()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        let input = File::from(OwnedFd::from(output));
        Ok(Self { input, command: Some(Running { child, shown, is_over: false }) })
    }

    /// Waits until there is something to read, but no longer than until the user asks to stop.
    fn wait(&self) -> io::Result<()> {
        const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        while poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&PATIENCE))? == 0 {
            if interrupt::is_asked() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        match (self.input.read(buffer)?, &mut self.command) {
            (0, Some(command)) if !buffer.is_empty() => command.end(),
            (read, _) => Ok(read),
        }
    }
}

impl Running {
    /// Result of reading past its end: 0 bytes, or its failure.
    fn end(&mut self) -> io::Result<usize> {
        let status = self.child.wait()?;
        self.is_over = true;
        if status.success() {
            return Ok(0);
        }
        Err(io::Error::other(format!("the command '{}' failed: {status}", self.shown)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            // The backup was given up: the command would wait for a reader for ever.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_all_three_kinds() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["one.txt", "two.txt", "#three"] {
            std::fs::write(at(name), "").expect("written");
        }
        let glob = format!("  {}/*.txt \n\n# a comment\n", folder.path().display());
        std::fs::write(at("list"), glob).expect("written");
        std::fs::write(at("verbatim"), " a b \n#c\n").expect("written");
        std::fs::write(at("raw"), b"x\ny\0\xff\0").expect("written");
        let lists = ListArgs {
            files_from: vec![at("list")],
            files_from_verbatim: vec![at("verbatim")],
            files_from_raw: vec![at("raw")],
        };
        let paths = source_paths(&["given".into()], &lists).expect("paths");
        let last = Path::new(OsStr::from_bytes(b"\xff"));
        let expected =
            ["given".as_ref(), &*at("one.txt"), &at("two.txt"), " a b ".as_ref(), "#c".as_ref(), "x\ny".as_ref(), last];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_raw_list_that_is_cut_short_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("raw");
        std::fs::write(&list, b"x\0y").expect("written");
        let lists = ListArgs { files_from_raw: vec![list], ..ListArgs::default() };
        assert!(matches!(source_paths(&[], &lists), Err(CliError::ListCutShort { .. })));
        assert!(matches!(source_paths(&[], &ListArgs::default()), Err(CliError::NothingToBackUp)));
    }

    #[test]
    fn a_glob_without_a_match_stays_to_be_reported() {
        assert_eq!(expand(b"/no such folder/*"), [PathBuf::from("/no such folder/*")]);
        assert_eq!(expand(b"/\xff*").len(), 1);
    }

    #[test]
    fn a_failed_command_is_a_failed_read() {
        let shell = |script: &str| {
            let arguments = ["-c".into(), script.into()];
            let mut reader = StreamReader::of_command(OsStr::new("sh"), &arguments).expect("started");
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(shell("echo all").expect("read"), "all\n");
        let error = shell("echo part; exit 3").expect_err("the command failed");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(matches!(StreamReader::of_command(OsStr::new("/no/such"), &[]), Err(CliError::StreamCommand { .. })));
    }
}
