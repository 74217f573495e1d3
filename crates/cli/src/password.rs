//! Where the password comes from: a command, a file, a variable, or the user. Options win over variables; what is asked
//! for is read from the terminal, or from standard input where there is none.

use crate::context::GlobalArgs;
use crate::environment;
use crate::error::CliError;
use crate::from::{FromArgs, FromResticArgs};
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

/// A password; wiped from memory when dropped.
pub(crate) type Password = Zeroizing<Vec<u8>>;

/// Whose password it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    /// That of the repository.
    Repository,
    /// That of a repository that is made.
    NewRepository,
    /// That of the repository that is copied from.
    Source,
    /// That of the restic repository that is imported from.
    Restic,
    /// That of a new key.
    NewKey,
}

impl Whose {
    /// Name of what it opens, for errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Repository => "the repository",
            Self::NewRepository => "a new repository",
            Self::Source => "the source repository",
            Self::Restic => "the restic repository",
            Self::NewKey => "a new key",
        }
    }

    /// A variable or an option that gives it.
    pub(crate) fn given_by(self) -> &'static str {
        match self {
            Self::Repository | Self::NewRepository => "SILT_PASSWORD",
            Self::Source => "SILT_FROM_PASSWORD",
            Self::Restic => "RESTIC_PASSWORD",
            Self::NewKey => "--new-password-file",
        }
    }

    /// The option that lets it be empty.
    pub(crate) fn empty_by(self) -> &'static str {
        match self {
            Self::Repository | Self::NewRepository => "--insecure-no-password",
            Self::Source | Self::Restic => "--from-insecure-no-password",
            Self::NewKey => "--new-insecure-no-password",
        }
    }

    fn prompt(self) -> &'static str {
        match self {
            Self::Repository => "enter password for repository: ",
            Self::NewRepository => "enter password for new repository: ",
            Self::Source => "enter password for source repository: ",
            Self::Restic => "enter password for restic repository: ",
            Self::NewKey => "enter new password: ",
        }
    }
}

/// Where to get the password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PasswordSource {
    /// The first line that a command prints.
    Command(String),
    /// The content of a file.
    File(PathBuf),
    /// A variable's value.
    Variable(OsString),
    /// An empty password, on the user's word.
    Empty,
    /// The user, or standard input.
    Ask,
    /// The password that the user gave before.
    Answered(Password),
}

impl PasswordSource {
    /// Chooses by the options, then by the variables.
    ///
    /// # Errors
    /// [`CliError::Conflict`] for two sources of one kind.
    pub(crate) fn choose(options: &GlobalArgs) -> Result<Self, CliError> {
        let given = Given {
            command: options.password_command.clone(),
            file: options.password_file.clone(),
            empty: options.insecure_no_password,
        };
        let names = ["--password-command", "--password-file", "--insecure-no-password"];
        Self::choose_by(given, names, ["SILT_PASSWORD_COMMAND", "SILT_PASSWORD_FILE", "SILT_PASSWORD"])
    }

    /// Chooses for the repository that is copied from, by the options, then by the variables.
    ///
    /// # Errors
    /// [`CliError::Conflict`] for two sources of one kind.
    pub(crate) fn choose_from(options: &FromArgs) -> Result<Self, CliError> {
        let FromArgs { from_password_command, from_password_file, from_insecure_no_password, .. } = options;
        let variables = ["SILT_FROM_PASSWORD_COMMAND", "SILT_FROM_PASSWORD_FILE", "SILT_FROM_PASSWORD"];
        Self::choose_source((from_password_command, from_password_file, *from_insecure_no_password), variables)
    }

    /// Chooses for the restic repository that is imported from, by the options, then by restic's variables.
    ///
    /// # Errors
    /// [`CliError::Conflict`] for two sources of one kind.
    pub(crate) fn choose_from_restic(options: &FromResticArgs) -> Result<Self, CliError> {
        let FromResticArgs { from_password_command, from_password_file, from_insecure_no_password, .. } = options;
        let variables = ["RESTIC_PASSWORD_COMMAND", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD"];
        Self::choose_source((from_password_command, from_password_file, *from_insecure_no_password), variables)
    }

    fn choose_source(
        (command, file, empty): (&Option<String>, &Option<PathBuf>, bool),
        variables: [&'static str; 3],
    ) -> Result<Self, CliError> {
        let names = ["--from-password-command", "--from-password-file", "--from-insecure-no-password"];
        Self::choose_by(Given { command: command.clone(), file: file.clone(), empty }, names, variables)
    }

    fn choose_by(
        given: Given,
        options: [&'static str; 3],
        [command, file, value]: [&'static str; 3],
    ) -> Result<Self, CliError> {
        let variable = |name| environment::variable(name);
        if let Some(source) = given.source(options)? {
            return Ok(source);
        }
        let set = Given {
            command: variable(command).map(|command| command.to_string_lossy().into_owned()),
            file: variable(file).map(PathBuf::from),
            empty: false,
        };
        let source = set.source([command, file, ""])?;
        Ok(source.unwrap_or_else(|| variable(value).map_or(Self::Ask, Self::Variable)))
    }

    /// Tells whether reading the password takes standard input, or would if there is no terminal.
    pub(crate) fn needs_stdin(&self) -> bool {
        *self == Self::Ask && !io::stdin().is_terminal()
    }

    /// Tells whether a person answers, who may try again.
    pub(crate) fn is_person(&self) -> bool {
        *self == Self::Ask && io::stdin().is_terminal()
    }

    /// The password of something that is there.
    pub(crate) fn read(&self, whose: Whose) -> Result<Password, CliError> {
        let password = match self {
            Self::Command(command) => from_command(command)?,
            Self::File(path) => from_file(path)?,
            Self::Variable(value) => Zeroizing::new(value.clone().into_vec()),
            Self::Empty => return Ok(Password::default()),
            Self::Answered(password) => password.clone(),
            Self::Ask if self.is_person() => ask(whose.prompt())?,
            Self::Ask => from_stdin()?,
        };
        if password.is_empty() { Err(CliError::EmptyPassword { whose }) } else { Ok(password) }
    }

    /// A new password: a person is asked twice.
    pub(crate) fn read_new(&self, whose: Whose) -> Result<Password, CliError> {
        let password = self.read(whose)?;
        if self.is_person() && ask("enter password again: ")? != password {
            return Err(CliError::PasswordsDiffer);
        }
        Ok(password)
    }
}

/// Sources of one rank: options, or variables.
struct Given {
    command: Option<String>,
    file: Option<PathBuf>,
    empty: bool,
}

impl Given {
    fn source(self, names: [&'static str; 3]) -> Result<Option<PasswordSource>, CliError> {
        let [command, file, empty] = names;
        let given = [
            self.command.map(|text| (command, PasswordSource::Command(text))),
            self.file.map(|path| (file, PasswordSource::File(path))),
            self.empty.then_some((empty, PasswordSource::Empty)),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some((first, _)), Some((second, _))) => Err(CliError::Conflict { first, second }),
            (source, _) => Ok(source.map(|(_, source)| source)),
        }
    }
}

/// The password files and commands give: all but the line breaks at its end.
fn without_line_break(mut bytes: Vec<u8>) -> Password {
    while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        bytes.pop();
    }
    Zeroizing::new(bytes)
}

fn from_file(path: &Path) -> Result<Password, CliError> {
    let read = std::fs::read(path).map_err(|source| CliError::PasswordFile { path: path.into(), source })?;
    Ok(without_line_break(read))
}

fn from_command(command: &str) -> Result<Password, CliError> {
    let failed = |reason: String| CliError::PasswordCommand { command: command.to_owned(), reason };
    let words = shlex::split(command).ok_or_else(|| failed("a quote in it is not closed".into()))?;
    let (program, arguments) = words.split_first().ok_or_else(|| failed("it is empty".into()))?;
    let mut process = Command::new(program);
    process.args(arguments).envs(environment::added()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = process.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(without_line_break(output.stdout)) } else { Err(failed(output.status.to_string())) }
}

/// The prompt goes to the terminal itself, so that it shows even if both streams are redirected.
fn ask(prompt: &str) -> Result<Password, CliError> {
    let text = rpassword::prompt_password(prompt).map_err(CliError::PasswordPrompt)?;
    Ok(Zeroizing::new(text.into_bytes()))
}

fn from_stdin() -> Result<Password, CliError> {
    let mut line = Vec::new();
    io::stdin().lock().read_until(b'\n', &mut line).map_err(CliError::PasswordPrompt)?;
    Ok(without_line_break(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_options_conflict() {
        let both =
            GlobalArgs { password_command: Some("x".into()), password_file: Some("y".into()), ..Default::default() };
        assert!(matches!(PasswordSource::choose(&both), Err(CliError::Conflict { .. })));
        let one = GlobalArgs { password_file: Some("y".into()), ..Default::default() };
        assert_eq!(PasswordSource::choose(&one).expect("fine"), PasswordSource::File("y".into()));
    }

    #[test]
    fn only_the_line_break_at_the_end_is_dropped() {
        assert_eq!(*without_line_break(b" a b \r\n".to_vec()), b" a b ");
        assert_eq!(*without_line_break(b"a\nb".to_vec()), b"a\nb");
    }

    #[test]
    fn a_command_is_split_like_a_shell_does() {
        let read = |command: &str| PasswordSource::Command(command.into()).read(Whose::Source);
        assert_eq!(*read("printf '%s\\n' 'pass word'").expect("fine"), b"pass word");
        assert!(matches!(read("false"), Err(CliError::PasswordCommand { .. })));
        assert!(matches!(read("echo 'open"), Err(CliError::PasswordCommand { .. })));
        assert!(matches!(read(""), Err(CliError::PasswordCommand { .. })));
        assert!(matches!(read("true"), Err(CliError::EmptyPassword { whose: Whose::Source })));
    }
}
