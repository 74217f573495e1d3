//! Short help: the options that `-h` shows of a command, those that people use; and the examples that `--help` adds.

use clap::{Arg, Command};

/// Options of all commands that every short help shows.
const GLOBAL: &[&str] = &["repo", "password-file", "profile", "json", "quiet", "verbose"];

/// Own options of the commands that have many, as their short help shows them; that of the others shows all.
const OWN: &[(&str, &[&str])] = &[
    (
        "backup",
        &[
            "dry-run",
            "exclude",
            "exclude-caches",
            "exclude-file",
            "files-from",
            "force",
            "host",
            "one-file-system",
            "skip-if-unchanged",
            "stdin",
            "tag",
        ],
    ),
    ("restore", &["delete", "dry-run", "exclude", "host", "include", "overwrite", "path", "pick", "target", "verify"]),
    (
        "forget",
        &[
            "dry-run",
            "group-by",
            "host",
            "keep-daily",
            "keep-hourly",
            "keep-last",
            "keep-monthly",
            "keep-tag",
            "keep-weekly",
            "keep-yearly",
            "policy",
            "tag",
        ],
    ),
    ("check", &["max-age", "max-duration", "read-data", "restore-sample"]),
];

/// Below every short help.
const MORE: &str = "--help tells all options, 'silt --help' the environment and the exit status.";
/// Below every long help of a command.
const ELSEWHERE: &str = "'silt --help' tells the environment and the exit status.";

/// Examples of commands.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "backup",
        "\
silt backup ~/work --tag work --exclude '*.o'
silt backup / --one-file-system --exclude-caches
silt -P home backup
silt backup --stdin-from-command --stdin-filename all.sql -- pg_dumpall",
    ),
    (
        "restore",
        "\
silt restore latest --target /tmp/work
silt restore latest:/home/me/letters --target ~/letters --overwrite if-changed
silt restore 40dc1520 --target /tmp/work --include '*.odt' --dry-run",
    ),
    (
        "forget",
        "\
silt forget --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run
silt forget 40dc1520
silt forget --host laptop --tag work --keep-last 10",
    ),
    (
        "find",
        "\
silt find '*.odt' --size +1M --oldest 2026-01-01
silt find --long -i 'letters/**/*.txt' --host laptop",
    ),
    (
        "diff",
        "\
silt diff latest~1 latest
silt diff --live latest:/etc",
    ),
    ("mount", "silt mount /mnt/backups"),
    ("schedule", "silt -P home schedule install"),
    (
        "rewrite",
        "\
silt rewrite --exclude 'passwords.txt'
silt rewrite --exclude /home/me/disk.img --forget --host laptop",
    ),
    (
        "check",
        "\
silt check
silt check --read-data --max-duration 10m --max-age 30d",
    ),
];

/// The command line with short helps that are short, and long ones with examples.
pub(crate) fn arranged(command: Command) -> Command {
    let command = command.after_help(MORE).mut_args(|option| hidden_unless(option, GLOBAL));
    OWN.iter()
        .fold(command, |command, (name, shown)| {
            command.mut_subcommand(name, |own| own.mut_args(|option| hidden_unless(option, shown)))
        })
        .mut_subcommands(|own| {
            let examples = EXAMPLES.iter().find(|(name, _)| *name == own.get_name());
            let examples = examples.map(|(_, text)| format!("Examples:\n  {}\n\n", text.replace('\n', "\n  ")));
            own.after_help(MORE).after_long_help(examples.unwrap_or_default() + ELSEWHERE)
        })
}

/// The option, in long help alone unless it is one of those shown. Arguments without a name stay.
fn hidden_unless(option: Arg, shown: &[&str]) -> Arg {
    let is_hidden = option.get_long().is_some_and(|name| !shown.contains(&name));
    if is_hidden { option.hide_short_help(true) } else { option }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_name_is_that_of_an_option() {
        let command = Cli::command();
        let has = |of: &Command, name: &str| of.get_arguments().any(|option| option.get_long() == Some(name));
        assert!(GLOBAL.iter().all(|name| has(&command, name)));
        for (name, shown) in OWN {
            let own = command.find_subcommand(name).expect("a command");
            for option in *shown {
                assert!(has(own, option), "{name} --{option}");
            }
        }
        assert!(EXAMPLES.iter().all(|(name, _)| command.find_subcommand(name).is_some()));
    }

    #[test]
    fn examples_are_lines_that_can_be_given() {
        for line in EXAMPLES.iter().flat_map(|(_, text)| text.lines()) {
            let words = shlex::split(line).expect("words");
            Cli::command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn short_help_is_short_and_long_help_has_everything() {
        let mut command = arranged(Cli::command());
        command.build();
        let backup = command.find_subcommand_mut("backup").expect("a command");
        let options = |help: &str| help.lines().filter(|line| line.trim_start().starts_with('-')).count();
        let (short, long) = (backup.render_help().to_string(), backup.render_long_help().to_string());
        assert!(options(&short) <= 19 && options(&long) > 60, "{short}");
        assert!(short.contains("--help tells") && long.contains("pg_dumpall"), "{long}");
    }
}
