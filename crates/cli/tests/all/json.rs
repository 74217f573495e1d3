//! `docs/json/silt.schema.json` holds for what every command prints with `--json`, and every command is in it.
//!
//! The schema keeps to a few words of JSON Schema, which [`Keywords`] knows; any other fails the test. So nothing has
//! to be built for it but this: a crate that knows all of them would change the features that a third of our
//! dependencies are built with, and have them built twice.

use crate::common::{QUICK_KEY, Ran, Sandbox, noise, ran};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// The schema.
struct Schema(Value);

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
        Self(serde_json::from_str(&text).expect("JSON"))
    }

    fn commands(&self) -> &Map<String, Value> {
        self.0["commands"].as_object().expect("an object")
    }

    fn form(&self, command: &str) -> Form {
        match self.commands()[command]["x-output"].as_str() {
            Some("document") => Form::Document,
            Some("lines") => Form::Lines,
            Some("data") => Form::Data,
            other => panic!("{command}: x-output is {other:?}"),
        }
    }

    /// The longest name of a command that these arguments begin with.
    fn name(&self, arguments: &[&str]) -> String {
        let names = (1..=arguments.len().min(3)).rev().map(|words| arguments[..words].join(" "));
        let mut names = names.filter(|name| self.commands().contains_key(name));
        names.next().unwrap_or_else(|| panic!("{arguments:?} is no command of the schema"))
    }

    /// Holds what a command printed against the schema.
    fn hold(&self, arguments: &[&str], run: &Ran) {
        let name = self.name(arguments);
        let keywords = Keywords { definitions: &self.0["$defs"] };
        let hold = |schema: &Value, line: &str| {
            let told: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"));
            keywords.hold(schema, &told).unwrap_or_else(|wrong| panic!("{arguments:?} prints {line}\n{wrong}"));
        };
        run.stderr.lines().for_each(|line| hold(&self.0["standard_error"], line));
        let documents: Vec<&str> = run.stdout.lines().collect();
        match self.form(&name) {
            Form::Data => return,
            Form::Lines => {}
            Form::Document => assert!(documents.len() <= 1, "{arguments:?}: not one document: {}", run.stdout),
        }
        for line in documents {
            hold(&self.commands()[&name], line);
        }
    }
}

/// Words of JSON Schema that the schema uses.
struct Keywords<'s> {
    definitions: &'s Value,
}

impl Keywords<'_> {
    /// Holds a document against a schema; gives what is wrong with it.
    fn hold(&self, schema: &Value, document: &Value) -> Result<(), String> {
        let keywords = schema.as_object().expect("a schema");
        keywords.iter().try_for_each(|(word, wanted)| self.hold_one(word, wanted, document, schema))
    }

    fn hold_one(&self, word: &str, wanted: &Value, document: &Value, schema: &Value) -> Result<(), String> {
        let number = Value::as_f64;
        let count = |array: &Value| array.as_array().map(|items| items.len() as u64);
        let is_right = match word {
            "$ref" => {
                let name = wanted.as_str().and_then(|path| path.strip_prefix("#/$defs/")).expect("a definition");
                return self.hold(&self.definitions[name], document);
            }
            "anyOf" => {
                let tried = wanted.as_array().expect("schemas").iter().map(|schema| self.hold(schema, document));
                let wrong: Vec<String> = match tried.collect::<Vec<_>>() {
                    tried if tried.iter().any(Result::is_ok) => return Ok(()),
                    tried => tried.into_iter().filter_map(Result::err).collect(),
                };
                return Err(format!("none of: {}", wrong.join("; ")));
            }
            "properties" => {
                let wanted = wanted.as_object().expect("properties");
                let pairs = wanted.iter().filter_map(|(name, schema)| Some((schema, document.get(name)?)));
                return pairs.into_iter().try_for_each(|(schema, value)| self.hold(schema, value));
            }
            "items" => {
                return document.as_array().into_iter().flatten().try_for_each(|item| self.hold(wanted, item));
            }
            "required" => {
                let missing = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                let mut missing = missing.filter(|name| document.get(name).is_none());
                return missing.next().map_or(Ok(()), |name| Err(format!("{name} is missing")));
            }
            "additionalProperties" => {
                let mut names = document.as_object().into_iter().flatten().map(|(name, _)| name);
                let unknown = names.find(|name| schema["properties"].get(name.as_str()).is_none());
                return unknown.map_or(Ok(()), |name| Err(format!("{name} is not in the schema")));
            }
            "type" => match wanted.as_str() {
                Some("object") => document.is_object(),
                Some("array") => document.is_array(),
                Some("string") => document.is_string(),
                Some("boolean") => document.is_boolean(),
                Some("integer") => document.is_i64() || document.is_u64(),
                Some("number") => document.is_number(),
                Some("null") => document.is_null(),
                other => panic!("the type {other:?}"),
            },
            "const" => document == wanted,
            "enum" => wanted.as_array().is_some_and(|words| words.contains(document)),
            "minimum" => number(document) >= number(wanted),
            "maximum" => number(document) <= number(wanted),
            "minItems" => count(document) >= wanted.as_u64(),
            "maxItems" => count(document) <= wanted.as_u64(),
            "pattern" => {
                let pattern = Regex::new(wanted.as_str().expect("a pattern")).expect("a pattern");
                document.as_str().is_some_and(|text| pattern.is_match(text))
            }
            "description" | "x-output" => true,
            other => panic!("the schema uses {other}, which this test does not know"),
        };
        if is_right { Ok(()) } else { Err(format!("{document} is not {word} {wanted}")) }
    }
}

#[test]
fn documents_that_break_the_schema_are_found() {
    let schema = Schema::read();
    let keywords = Keywords { definitions: &schema.0["$defs"] };
    let hold = |text: &str| keywords.hold(&schema.commands()["version"], &serde_json::from_str(text).expect("JSON"));
    assert_eq!(hold(r#"{"message_type":"version","version":"1","os":"a","arch":"b"}"#), Ok(()));
    for wrong in [
        r#"{"message_type":"version","version":"1","os":"a"}"#,
        r#"{"message_type":"version","version":"1","os":"a","arch":"b","more":1}"#,
        r#"{"message_type":"summary","version":"1","os":"a","arch":"b"}"#,
        r#"{"message_type":"version","version":1,"os":"a","arch":"b"}"#,
        "[]",
    ] {
        assert!(hold(wrong).is_err(), "{wrong}");
    }
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
        let is_whole = schema.commands().contains_key(&command)
            || command.starts_with("import ")
            || command.starts_with("export ");
        assert!(is_whole, "{command} is not in the schema");
    }
}

#[test]
fn everything_printed_follows_the_schema() {
    let sandbox = Sandbox::bare();
    let mut silt = Checked { sandbox, schema: Schema::read(), run: Vec::new() };
    silt.ok(&[&["init"], &QUICK_KEY[..]].concat());
    snapshots_and_files(&mut silt);
    changes(&mut silt);
    keys_and_tokens(&mut silt);
    profiles(&mut silt);
    copies_and_damage(&mut silt);
    // Those that run until they are stopped have tests of their own, as has what changes the schedules of a machine.
    let untried = ["mount", "serve", "serve webdav", "generate", "schedule install", "schedule remove"];
    let missing = silt.schema.commands().keys().filter(|name| !silt.run.contains(name)).map(String::as_str);
    assert_eq!(missing.collect::<BTreeSet<_>>(), BTreeSet::from(untried));
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
    let archive = silt.sandbox.path("out.tar").display().to_string();
    silt.ok(&["export", "tar", "latest", "-o", &archive]);
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
    silt.ok(&["maintain", "--recompress", "1G", "--dry-run"]);
    silt.ok(&["maintain", "--recompress"]);
    silt.ok(&["maintain", "--parity", "3%"]);
    silt.ok(&["prune"]);
    silt.ok(&["unlock"]);
    silt.ok(&["rewrite", "--exclude", "f0", "--dry-run"]);
    silt.ok(&["rewrite", "--exclude", "f0", "--forget"]);
    silt.ok(&["version"]);
    silt.run(&["snapshots", "--no-such-option"]).exits(1);
}

fn profiles(silt: &mut Checked) {
    let text = format!("[backup]\npaths = [{:?}]\nschedule = \"daily\"\n", silt.sandbox.source());
    crate::profiles::profile(&silt.sandbox, "daily", &text);
    silt.ok(&["show-config", "--profile", "daily"]);
    silt.ok(&["backup", "--profile", "daily"]);
    silt.run(&["schedule", "status", "--profile", "daily"]);
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
    let mut tar = std::process::Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(silt.sandbox.path("source")).arg("sub");
    assert!(tar.status().expect("tar runs").success());
    silt.ok(&["import", "tar", "--series", "imported", &archive.display().to_string()]);
    let (here, other) = (silt.sandbox.repository().display().to_string(), silt.sandbox.path("other"));
    let other = other.display().to_string();
    silt.sandbox.run(&[&["init", "-q", &other], &QUICK_KEY[..]].concat()).ok();
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
