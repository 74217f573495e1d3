//! Which values of a profile hold: those that neither the command line nor the environment gives in another way.

use super::settings::{Setting, find};
use crate::environment;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Options that stand in for each other, and the variables that give the same.
struct Group {
    options: &'static [&'static str],
    variables: &'static [&'static str],
}

impl Group {
    const fn new(options: &'static [&'static str], variables: &'static [&'static str]) -> Self {
        Self { options, variables }
    }
}

const GROUPS: &[Group] = &[
    Group::new(&["repo", "repository-file"], &["SILT_REPOSITORY", "SILT_REPOSITORY_FILE"]),
    Group::new(
        &["password-file", "password-command", "insecure-no-password"],
        &["SILT_PASSWORD", "SILT_PASSWORD_FILE", "SILT_PASSWORD_COMMAND"],
    ),
    Group::new(&["from-repo", "from-repository-file"], &["SILT_FROM_REPOSITORY", "SILT_FROM_REPOSITORY_FILE"]),
    Group::new(
        &["from-password-file", "from-password-command", "from-insecure-no-password"],
        &["SILT_FROM_PASSWORD", "SILT_FROM_PASSWORD_FILE", "SILT_FROM_PASSWORD_COMMAND"],
    ),
    Group::new(&["key-hint"], &["SILT_KEY_HINT"]),
    Group::new(&["from-key-hint"], &["SILT_FROM_KEY_HINT"]),
    Group::new(&["cacert"], &["SILT_CACERT"]),
    Group::new(&["cache-dir", "no-cache"], &["SILT_CACHE_DIR"]),
    Group::new(&["compression"], &["SILT_COMPRESSION"]),
    Group::new(&["deltas"], &["SILT_DELTAS"]),
    Group::new(&["preset"], &["SILT_PRESET"]),
    Group::new(&["prices"], &["SILT_PRICES"]),
    Group::new(&["shrink-guard", "allow-shrink"], &["SILT_SHRINK_GUARD"]),
    Group::new(&["sftp-command"], &["SILT_SFTP_COMMAND"]),
    Group::new(&["sftp-args"], &["SILT_SFTP_ARGS"]),
    Group::new(&["rclone-program"], &["SILT_RCLONE_PROGRAM"]),
    Group::new(&["rclone-args"], &["SILT_RCLONE_ARGS"]),
    Group::new(&["rclone-one-writer"], &["SILT_RCLONE_ONE_WRITER"]),
    Group::new(&["limit-upload"], &["SILT_LIMIT_UPLOAD"]),
    Group::new(&["limit-download"], &["SILT_LIMIT_DOWNLOAD"]),
    Group::new(&["host"], &["SILT_HOST"]),
    Group::new(&["verify-written", "no-verify-written"], &[]),
    // What a backup reads.
    Group::new(
        &[
            "paths",
            SOURCES,
            "stdin",
            "stdin-from-command",
            "files-from",
            "files-from-verbatim",
            "files-from-raw",
            "changed-list",
            "changed-list-raw",
        ],
        &[],
    ),
];

/// The sources of a backup, which only a profile has.
pub(super) const SOURCES: &str = "sources";

/// Beginning of the rules of `silt forget`; whoever names snapshots, or asks for the policy kept in the repository,
/// means these alone.
const RULE: &str = "keep-";
const INSTEAD_OF_RULES: &[&str] = &["ids", "policy"];

fn group(option: &str) -> Option<&'static Group> {
    GROUPS.iter().find(|group| group.options.contains(&option))
}

/// The options that give the same thing as this one.
pub(super) fn rivals(option: &str) -> &'static [&'static str] {
    group(option).map_or(&[], |group| group.options)
}

/// The variable that is set and goes before a profile's value of this option.
pub(crate) fn variable_before(option: &str) -> Option<&'static str> {
    group(option)?.variables.iter().copied().find(|name| environment::variable(name).is_some())
}

/// Options that the command line gave.
pub(super) struct Given<'g> {
    /// The command that is to run, with the options of all commands.
    command: Command,
    /// Its values.
    matches: &'g ArgMatches,
}

impl<'g> Given<'g> {
    pub(super) fn new(program: &Command, name: &str, matches: &'g ArgMatches) -> Self {
        let mut program = program.clone();
        program.build();
        Self { command: program.find_subcommand(name).cloned().unwrap_or_default(), matches }
    }

    /// The settings that neither the environment nor, by an option of the same kind, the command line gives.
    pub(super) fn left_of(&self, settings: &[Setting]) -> Vec<Setting> {
        settings.iter().filter(|setting| !self.goes_before(&setting.option)).cloned().collect()
    }

    /// Tells whether the command line or the environment gives what a profile's value of this option does, or what
    /// excludes it.
    pub(super) fn goes_before(&self, option: &str) -> bool {
        let displacing = if option.starts_with(RULE) { INSTEAD_OF_RULES } else { &[] };
        let mut rivals = rivals(option).iter().chain(displacing).filter_map(|rival| find(&self.command, rival));
        variable_before(option).is_some()
            || rivals.any(|rival| self.has(rival))
            || find(&self.command, option).is_some_and(|argument| self.excludes(argument))
    }

    /// Tells whether an argument was given that conflicts with this one.
    fn excludes(&self, argument: &Arg) -> bool {
        let conflict = |one: &Arg, other: &Arg| {
            self.command.get_arg_conflicts_with(one).iter().any(|argument| argument.get_id() == other.get_id())
        };
        let mut given = self.command.get_arguments().filter(|other| self.has(other));
        given.any(|given| conflict(given, argument) || conflict(argument, given))
    }

    fn has(&self, argument: &Arg) -> bool {
        let id = argument.get_id().as_str();
        self.matches.try_contains_id(id).is_ok() && self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::name_of;
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    /// Every command, with the options of all.
    fn commands() -> Vec<Command> {
        let mut root = Cli::command();
        root.build();
        root.get_subcommands().cloned().collect()
    }

    /// The variables that a help text names as the default.
    fn variables_in(help: &str) -> BTreeSet<&str> {
        let texts = help.split("[default").skip(1).flat_map(|rest| rest.split('$').skip(1));
        let names =
            texts.map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next().unwrap_or_default());
        names.filter(|name| name.starts_with("SILT_")).collect()
    }

    #[test]
    fn the_variables_of_options_are_those_that_their_help_names() {
        for command in commands() {
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                let Some(option) = argument.get_long().and(name_of(argument)) else { continue };
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let known: &[&str] = group(option).map_or(&[], |group| group.variables);
                for variable in variables_in(&help) {
                    assert!(known.contains(&variable), "{} --{option}: {variable}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn every_option_that_is_listed_is_there() {
        let all = commands();
        let listed = GROUPS.iter().flat_map(|group| group.options).chain(INSTEAD_OF_RULES);
        for option in listed.filter(|option| **option != SOURCES) {
            assert!(all.iter().any(|command| find(command, option).is_some()), "{option}");
        }
    }

    #[test]
    fn what_excludes_an_option_goes_before_it() {
        let program = Cli::command();
        let goes_before = |line: &str, option: &str| {
            let words = ["silt"].into_iter().chain(line.split(' '));
            let matches = program.clone().try_get_matches_from(words).expect("a valid line");
            let (name, own) = matches.subcommand().expect("a command");
            Given::new(&program, name, own).goes_before(option)
        };
        let cases = [
            ("backup -v /x", "quiet", true),
            ("backup --quiet /x", "verbose", true),
            ("backup /x", "files-from", true),
            ("backup --stdin", "paths", true),
            ("backup --no-verify-written", "verify-written", true),
            ("backup /x", "tag", false),
            ("forget 40dc1520", "keep-daily", true),
            ("forget --keep-last 3", "keep-daily", false),
            ("check --read-data", "read-data-subset", true),
            ("snapshots --repository-file f", "repo", true),
            ("snapshots --password-command c", "password-file", true),
        ];
        for (line, option, is_before) in cases {
            assert_eq!(goes_before(line, option), is_before, "{line}: {option}");
        }
    }
}
