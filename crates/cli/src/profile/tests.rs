//! Tests of profiles: settings made of tables, and tables that are refused.

use super::*;
use clap::CommandFactory;
use std::os::unix::fs::PermissionsExt;

fn read(text: &str) -> Result<Settings, String> {
    let table: Table = toml::from_str(text).expect("TOML");
    settings::read(&table, &Cli::command()).map_err(|wrong| wrong.to_string())
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let said = read(text).expect_err("refused");
    for word in words {
        assert!(said.contains(word), "{said}");
    }
}

fn profile(text: &str) -> Profile {
    let settings = read(text).expect("a profile");
    let table = toml::from_str(text).expect("TOML");
    Profile { name: "test".into(), reference: "test".into(), files: Vec::new(), table, settings }
}

/// The arguments of a line under a profile: for each part the values of this argument.
fn values(text: &str, line: &str, argument: &str) -> Vec<Vec<String>> {
    let program = Cli::command();
    let words = || ["silt"].into_iter().chain(line.split(' '));
    let given = without_requirements(program.clone()).try_get_matches_from(words()).expect("a line");
    let applied = profile(text).applied(&program, &given);
    let of_part = |applied: Applied| {
        let matches = applied.program.try_get_matches_from(words()).expect("a line");
        let (_, own) = matches.subcommand().expect("a command");
        let raw = own.get_raw(argument).into_iter().flatten();
        raw.map(|value| value.to_string_lossy().into_owned()).collect()
    };
    applied.into_iter().map(of_part).collect()
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    refused("passwordfile = 'x'", &["option of all commands", "'passwordfile'", "did you mean 'password-file'?"]);
    refused("[forget]\nkeep-dayly = 7", &["'silt forget'", "did you mean 'keep-daily'?"]);
    refused("[bakcup]\ntag = ['x']", &["command 'bakcup'", "did you mean 'backup'?"]);
    refused("[backup.hooks]\nbefor = 'x'", &["hook 'befor'", "did you mean 'before'?"]);
    refused("[[backup.sources]]\npath = 'x'", &["'path'", "did you mean 'paths'?"]);
    refused("[backup]\nshedule = 'daily'", &["did you mean 'schedule'?"]);
    refused("profile = 'other'", &["'profile'"]);
    refused("[snapshots]\nschedule = 'daily'", &["'schedule'"]);
    assert!(!read("[snapshots]\nschedule = 'daily'").expect_err("refused").contains("did you mean 'schedule'"));
}

#[test]
fn values_are_those_that_the_command_line_takes() {
    refused("memory = 'much'", &["[of all commands]", "much", "--memory"]);
    refused("[forget]\nkeep-daily = 'many'", &["[forget]", "many", "--keep-daily"]);
    refused("preset = 'locl'", &["locl"]);
    refused("quiet = 'yes'", &["'quiet' takes true or false, not a text"]);
    refused("repo = ['a', 'b']", &["'repo' takes one value, not a list"]);
    refused("[[backup.sources]]\ncheckpoint = 'soon'", &["[backup.sources]", "soon"]);
    refused("[backup]\npaths = ['/x']\n[[backup.sources]]\npaths = ['/y']", &["backup.paths", "backup.sources"]);
    refused("[environment]\nSILT_REPOSITORY = 'x'", &["SILT_REPOSITORY", "option"]);
    refused("[environment]\nA = 5", &["environment.A", "a text"]);
    assert!(read("memory = '256M'\nverbose = 1\n[forget]\nkeep-daily = 7\n[environment]\nSILT_TOKEN = 'x'").is_ok());
}

#[test]
fn the_command_line_goes_before_the_profile() {
    let text = "repo = '/profile'\n[backup]\ntag = ['a', 'b']\npaths = '/data'\nskip-if-unchanged = true";
    assert_eq!(values(text, "backup", "repo"), [["/profile"]]);
    assert_eq!(values(text, "-r /line backup", "repo"), [["/line"]]);
    assert_eq!(values(text, "backup", "tags"), [["a", "b"]]);
    assert_eq!(values(text, "backup --tag c", "tags"), [["c"]]);
    assert_eq!(values(text, "backup", "paths"), [["/data"]]);
    assert_eq!(values(text, "backup /other", "paths"), [["/other"]]);
    assert!(values(text, "backup --stdin", "paths")[0].is_empty());
    assert_eq!(values(text, "backup", "skip_if_unchanged"), [["true"]]);
    assert!(values(text, "--repository-file f backup", "repo")[0].is_empty(), "it names another place");
}

#[test]
fn what_is_required_may_stand_in_the_profile() {
    assert_eq!(values("[restore]\ntarget = '/back'", "restore latest", "target"), [["/back"]]);
}

#[test]
fn options_of_all_commands_may_be_given_for_one() {
    let text = "retry-lock = '1m'\n[backup]\nretry-lock = '1h'\npaths = '/x'";
    assert_eq!(values(text, "backup", "retry_lock"), [["1h"]]);
    assert_eq!(values(text, "check", "retry_lock"), [["1m"]]);
    let text = "password-file = 'x'\n[copy]\npassword-command = 'y'";
    assert!(values(text, "copy", "password_file")[0].is_empty(), "it has another password");
    assert_eq!(values(text, "check", "password_file"), [["x"]]);
}

#[test]
fn each_source_is_a_part_unless_paths_are_named() {
    let text = "[backup]\ntag = 'all'\n[[backup.sources]]\npaths = ['/home', '/srv']\n\
                [[backup.sources]]\npaths = '/etc'\ntag = ['etc']";
    assert_eq!(values(text, "backup", "paths"), [vec!["/home", "/srv"], vec!["/etc"]]);
    assert_eq!(values(text, "backup", "tags"), [["all"], ["etc"]]);
    assert_eq!(values(text, "backup /other", "paths"), [["/other"]]);
    assert_eq!(values(text, "check", "repo").len(), 1);
}

#[test]
fn a_profile_lies_over_those_that_it_inherits() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        path.display().to_string()
    };
    write(
        "base.toml",
        "repo = '/base'\npassword-file = '/p'\nmemory = '1G'\n[forget]\nkeep-daily = 7\nkeep-weekly = 4",
    );
    let own = write("own.toml", "inherit = './base.toml'\npassword-command = 'pass'\n[forget]\nkeep-daily = 30");
    let profile = Profile::read(own, &Cli::command()).expect("a profile");
    assert_eq!((profile.name.as_str(), profile.files.len()), ("own", 2));
    let expected =
        "repo = '/base'\npassword-command = 'pass'\nmemory = '1G'\n[forget]\nkeep-daily = 30\nkeep-weekly = 4";
    assert_eq!(profile.table, toml::from_str(expected).expect("TOML"), "one password takes the place of the other");
    let circle = write("circle.toml", "inherit = ['./circle.toml']");
    assert!(matches!(Profile::read(circle, &Cli::command()), Err(ProfileError::Circle { .. })));
    let absent = write("absent.toml", "inherit = 'nobody-has-this'");
    assert!(matches!(Profile::read(absent, &Cli::command()), Err(ProfileError::Missing { .. })));
}

#[test]
fn a_profile_that_names_programs_is_nobody_elses_to_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    let read = |text: &str, mode: u32, folder_mode: u32| {
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(folder_mode)).expect("set");
        let profile = Profile::read(path.display().to_string(), &Cli::command());
        matches!(profile, Err(ProfileError::WritableByOthers { .. }))
    };
    let naming = [
        "password-command = 'pass'",
        "sftp-args = '-o ProxyCommand=x'",
        "[backup.hooks]\nbefore = 'x'",
        "[environment]\nPATH = '/x'",
        "[[backup.sources]]\npaths = 'dump'\nstdin-from-command = true",
    ];
    for text in naming {
        assert!(read(text, 0o666, 0o700) && read(text, 0o660, 0o700), "{text}");
        assert!(read(text, 0o600, 0o777), "another file may take its place: {text}");
        assert!(!read(text, 0o644, 0o755), "{text}");
    }
    assert!(!read("repo = '/x'", 0o666, 0o700), "it names no program");
}

#[test]
fn names_of_profiles_lead_nowhere_else() {
    for name in ["", ".hidden", "-r", "a b", "a\nb"] {
        let read = Profile::read(name.to_owned(), &Cli::command());
        assert!(matches!(read, Err(ProfileError::BadName { .. })), "{name:?}");
    }
}

#[test]
fn the_profile_of_the_guide_is_one() {
    let guide = include_str!("../../../../docs/GUIDE.md");
    let (_, section) = guide.split_once("## Run by itself").expect("a section");
    let (_, example) = section.split_once("```toml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let settings = read(example).expect("a profile");
    assert_eq!((settings.sources.len(), settings.schedules.len(), settings.hooks.len()), (2, 3, 1));
}
