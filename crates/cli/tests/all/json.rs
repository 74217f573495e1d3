//! `docs/json/silt.schema.json` holds for what every command prints with `--json`, and every command is in it.

use crate::common::{Ran, Sandbox, noise, ran};
use jsonschema::Validator;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The schema, with a validator for what each command prints.
struct Schema {
    commands: BTreeMap<String, (Form, Option<Validator>)>,
    standard_error: Validator,
}

/// Form of standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Document,
    Lines,
    Data,
}

impl Schema {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json/silt.schema.json");
        let text = std::fs::read_to_string(path).expect("the schema");
        let all: Value = serde_json::from_str(&text).expect("JSON");
        let validator = |part: &Value| {
            let mut part = part.clone();
            part["$defs"] = all["$defs"].clone();
            jsonschema::validator_for(&part).expect("a schema")
        };
        let command = |(name, part): (&String, &Value)| {
            let form = match part["x-output"].as_str() {
                Some("document") => Form::Document,
                Some("lines") => Form::Lines,
                Some("data") => Form::Data,
                other => panic!("{name}: x-output is {other:?}"),
            };
            (name.clone(), (form, (form != Form::Data).then(|| validator(part))))
        };
        let commands = all["commands"].as_object().expect("an object").iter().map(command).collect();
        Self { commands, standard_error: validator(&all["standard_error"]) }
    }

    /// The longest name of a command that these arguments begin with.
    fn name(&self, arguments: &[&str]) -> String {
        let names = (1..=arguments.len().min(3)).rev().map(|words| arguments[..words].join(" "));
        let mut names = names.filter(|name| self.commands.contains_key(name));
        names.next().unwrap_or_else(|| panic!("{arguments:?} is no command of the schema"))
    }

    /// Holds what a command printed against the schema.
    fn hold(&self, arguments: &[&str], run: &Ran) {
        let (form, validator) = &self.commands[&self.name(arguments)];
        let told = |line: &str| -> Value {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"))
        };
        for line in run.stderr.lines() {
            hold(&self.standard_error, &told(line), arguments);
        }
        let Some(validator) = validator else { return };
        let documents: Vec<&str> = run.stdout.lines().collect();
        if *form == Form::Document {
            assert!(documents.len() <= 1, "{arguments:?}: one document, not {}: {}", documents.len(), run.stdout);
        }
        documents.into_iter().for_each(|line| hold(validator, &told(line), arguments));
    }
}

fn hold(validator: &Validator, document: &Value, arguments: &[&str]) {
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{arguments:?} prints {document}\n{errors:#?}");
}

/// A sandbox whose commands are held against the schema, and the names of those that were run.
struct Checked {
    sandbox: Sandbox,
    schema: Schema,
    run: Vec<String>,
}

impl Checked {
    fn run(&mut self, arguments: &[&str]) -> Ran {
        let all: Vec<&str> = ["--json"].iter().chain(arguments).copied().collect();
        // Many readings of the progress.
        let run = ran(self.sandbox.silt().args(&all).env("SILT_PROGRESS_FPS", "60"));
        self.schema.hold(arguments, &run);
        self.run.push(self.schema.name(arguments));
        run
    }

    fn ok(&mut self, arguments: &[&str]) -> Ran {
        self.run(arguments).ok()
    }
}

/// The commands below a command, as its help lists them; a command without any is itself.
fn commands_of(sandbox: &Sandbox, above: &[&str]) -> Vec<String> {
    let help = ran(sandbox.silt().args(above).arg("--help")).ok().stdout;
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return vec![above.join(" ")] };
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let below = names.flat_map(|name| commands_of(sandbox, &[above, &[name]].concat()));
    let own = (above == ["serve"]).then(|| "serve".to_owned());
    below.chain(own).collect()
}

#[test]
fn the_schema_has_every_command() {
    let sandbox = Sandbox::bare();
    let schema = Schema::read();
    for command in commands_of(&sandbox, &[]) {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(schema.name(&words).split(' ').next(), words.first().copied(), "{command}");
        let is_whole = schema.commands.contains_key(&command) || command.starts_with("import ");
        assert!(is_whole, "{command} is not in the schema");
    }
}

#[test]
fn everything_printed_follows_the_schema() {
    let sandbox = Sandbox::bare();
    let mut silt = Checked { sandbox, schema: Schema::read(), run: Vec::new() };
    silt.ok(&["init"]);
    snapshots_and_files(&mut silt);
    changes(&mut silt);
    keys_and_tokens(&mut silt);
    copies_and_damage(&mut silt);
    // Those that run until they are stopped have tests of their own.
    let untried = ["mount", "serve", "generate"];
    let missing: Vec<&String> = silt.schema.commands.keys().filter(|name| !silt.run.contains(name)).collect();
    assert_eq!(missing, untried.iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
}

fn snapshots_and_files(silt: &mut Checked) {
    for number in 0..4 {
        silt.sandbox.write(&format!("f{number}"), noise(number, 300_000));
    }
    silt.sandbox.write("sub/text", "a text\n".repeat(2000));
    std::os::unix::fs::symlink("text", silt.sandbox.path("source/sub/link")).expect("linked");
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"bad\xff");
    std::fs::write(silt.sandbox.path("source").join(name), "x").expect("written");
    let _socket = std::os::unix::net::UnixListener::bind(silt.sandbox.path("source/socket")).expect("bound");
    let source = silt.sandbox.source();
    let first = silt.ok(&["backup", &source, "-v"]);
    assert_eq!(first.message("summary")["sockets_left_out"], 1);
    silt.sandbox.write("sub/text", "a text\n".repeat(2001));
    std::fs::remove_file(silt.sandbox.path("source/f3")).expect("removed");
    silt.ok(&["backup", &source, "--tag", "t,u", "--description", "d", "-vv"]);
    silt.ok(&["backup", &source, "--dry-run"]);
    silt.ok(&["backup", &source, "--skip-if-unchanged"]);
    silt.ok(&["backup", &source, "--series", "named", "--host", "other"]);
    silt.run(&["backup", &source, "nowhere"]).exits(3);
    silt.ok(&["snapshots"]);
    silt.ok(&["snapshots", "--group-by", "host,paths,tags,series"]);
    silt.ok(&["ls", "latest"]);
    silt.ok(&["find", "*"]);
    silt.ok(&["find", "no such name"]);
    silt.ok(&["history", &format!("{source}/sub/text")]);
    silt.ok(&["history", &format!("{source}/f3")]);
    let of = ["--tag", "t"];
    silt.ok(&["diff", "latest", "latest", "--metadata"]);
    silt.ok(&[&["diff", "latest", "--live"][..], &of].concat());
    let target = silt.sandbox.path("out").display().to_string();
    silt.ok(&["restore", "latest", "--target", &target, "--dry-run"]);
    silt.ok(&["restore", "latest", "--target", &target, "-vv"]);
    silt.ok(&["restore", "latest", "--target", &target, "--delete", "--verify"]);
    silt.ok(&["stats"]);
    let dumped = silt.ok(&["dump", "latest", &format!("{source}/sub/text")]);
    assert_eq!(dumped.stdout.len(), 7 * 2001, "nothing but the data");
}

fn changes(silt: &mut Checked) {
    silt.ok(&["tag", "--add", "k", "latest"]);
    silt.ok(&["describe", "latest", "words"]);
    silt.ok(&["policy", "set", "--keep-last", "3"]);
    silt.ok(&["policy", "set", "--series", "named", "--keep-daily", "2", "--keep-tag", "k"]);
    silt.ok(&["policy", "list"]);
    silt.ok(&["policy", "remove", "--series", "named"]);
    silt.ok(&["forget", "--policy", "--dry-run"]);
    silt.ok(&["forget", "--keep-last", "1", "--keep-deleted", "3d"]);
    let deleted = silt.ok(&["snapshots", "--deleted"]).json();
    let id = deleted[0]["short_id"].as_str().expect("an id").to_owned();
    silt.ok(&["undelete", &id]);
    silt.ok(&["forget", &id]);
    silt.run(&["forget", "latest"]).exits(14);
    silt.ok(&["maintain", "--dry-run"]);
    silt.ok(&["maintain", "--parity", "3%"]);
    silt.ok(&["prune"]);
    silt.ok(&["unlock"]);
    silt.ok(&["version"]);
    silt.run(&["snapshots", "--no-such-option"]).exits(1);
}

fn keys_and_tokens(silt: &mut Checked) {
    let file = silt.sandbox.path("password").display().to_string();
    std::fs::write(&file, "another\n").expect("written");
    silt.ok(&["key", "add", "--write-only", "--series", "mail", "--new-password-file", &file]);
    silt.ok(&["key", "list"]);
    std::fs::write(&file, "secret\n").expect("written");
    silt.ok(&["key", "passwd", "--new-password-file", &file]);
    silt.ok(&["key", "export"]);
    let sheet = silt.sandbox.path("sheet").display().to_string();
    silt.sandbox.run(&["key", "export", "--output", &sheet]).ok();
    let imported = silt.ok(&["key", "import", &sheet, "--new-password-file", &file]).json();
    silt.run(&["key", "remove", imported["id"].as_str().expect("an id")]);
    silt.ok(&["key", "rotate"]);
    let tokens = silt.sandbox.path("tokens").display().to_string();
    std::fs::write(&tokens, "").expect("written");
    std::fs::set_permissions(&tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("set");
    silt.ok(&["serve", "series", "mail"]);
    silt.ok(&["serve", "token", "add", "anna", "--tokens", &tokens]);
    silt.ok(&["serve", "token", "list", "--tokens", &tokens]);
    silt.ok(&["serve", "token", "remove", "anna", "--tokens", &tokens]);
}

fn copies_and_damage(silt: &mut Checked) {
    let archive = silt.sandbox.path("a.tar");
    let packed = std::process::Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(silt.sandbox.path("source"));
    assert!(packed.arg("sub").status().expect("tar runs").success());
    silt.ok(&["import", "tar", "--series", "imported", &archive.display().to_string()]);
    let (here, other) = (silt.sandbox.repository().display().to_string(), silt.sandbox.path("other"));
    let other = other.display().to_string();
    silt.sandbox.run(&["init", "-q", &other]).ok();
    let copy = |more: &[&str]| -> Ran {
        let arguments = [&["--json", "-r", &other, "copy", "--from-repo", &here][..], more].concat();
        ran(silt.sandbox.silt().args(arguments).env("SILT_FROM_PASSWORD", "secret"))
    };
    for more in [&["--dry-run"][..], &[]] {
        let run = copy(more).ok();
        silt.schema.hold(&["copy"], &run);
    }
    silt.run.push("copy".into());
    silt.ok(&["check", "--read-data", "--restore-sample", "2", "--seed", "3"]);
    let container = silt.sandbox.largest_container();
    let mut bytes = std::fs::read(&container).expect("read");
    bytes[9000..9008].fill(0xff);
    std::fs::write(&container, bytes).expect("written");
    std::fs::remove_dir_all(silt.sandbox.path("repository/parity")).expect("removed");
    silt.run(&["check", "--read-data"]).exits(1);
    let target = silt.sandbox.path("hurt").display().to_string();
    silt.run(&["restore", "latest", "--target", &target]);
    silt.run(&["repair", "--read-data"]).exits(1);
    silt.run(&["repair", "--read-data", "--yes"]);
}
