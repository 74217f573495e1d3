//! A repository behind `silt serve`: made by an administrator, filled by a client that may only add, and given back
//! space by a third that may delete.

use crate::common::{QUICK_KEY, Ran, Sandbox, content, first_message, noise, ran, signal};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `silt serve` over the folder of a sandbox; it is killed with the value.
struct Served<'s> {
    sandbox: &'s Sandbox,
    process: Child,
    address: String,
}

impl<'s> Served<'s> {
    fn start(sandbox: &'s Sandbox, more: &[&str]) -> Self {
        fs::create_dir_all(sandbox.repository()).expect("made");
        let tokens = sandbox.path("tokens");
        let mut silt = sandbox.silt_without_password();
        silt.args(["serve", "--json", "--quiet", "--listen", "127.0.0.1:0", "--tokens"]).arg(tokens).args(more);
        let mut process = silt.stdout(Stdio::piped()).spawn().expect("silt runs");
        let told = first_message(&mut process);
        let address = told["address"].as_str().expect("text").to_owned();
        Self { sandbox, process, address }
    }

    /// `silt` of a client on a machine of its own, with this token.
    fn silt(&self, token: &str) -> Command {
        let mut silt = self.sandbox.silt();
        silt.env("SILT_REPOSITORY", &self.address).env("SILT_TOKEN", self.sandbox.token_text(token));
        silt.env("HOME", self.sandbox.path(&format!("home of {token}")));
        silt
    }

    fn run(&self, token: &str, arguments: &[&str]) -> Ran {
        ran(self.silt(token).args(arguments))
    }

    /// Asks it to end and returns its exit status.
    fn stop(mut self) -> i32 {
        signal(&self.process, "-TERM");
        self.process.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Sandbox {
    /// Makes a token and keeps it in a file of its name.
    fn add_token(&self, name: &str, series: &str, rights: &str) {
        let tokens = self.path("tokens").display().to_string();
        let made = ["serve", "token", "add", name, "--series", series, "--rights", rights, "--tokens", &tokens];
        let token = self.run(&made).ok().stdout;
        fs::write(self.path(&format!("token of {name}")), token).expect("written");
    }

    fn token_text(&self, name: &str) -> String {
        content(self.path(&format!("token of {name}"))).trim().to_owned()
    }

    /// Every object of the repository with its bytes.
    fn objects(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        gather(&self.repository(), &mut found);
        found
    }
}

fn gather(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, found);
        } else {
            let mut bytes = Vec::new();
            fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("read");
            found.insert(path, bytes);
        }
    }
}

fn bytes(objects: &BTreeMap<PathBuf, Vec<u8>>) -> usize {
    objects.values().map(Vec::len).sum()
}

/// A repository with two snapshots, which a client made that may only add.
fn filled(sandbox: &Sandbox) -> Served<'_> {
    sandbox.add_token("admin", "all", "put,list,read,admin");
    sandbox.add_token("client", "all", "put,list,read");
    sandbox.add_token("keeper", "all", "put,list,read,forget");
    let served = Served::start(sandbox, &[]);
    served.run("admin", &[&["init", "--parity", "off"], &QUICK_KEY[..]].concat()).ok();
    let source = sandbox.source();
    for seed in 0..2 {
        for file in 0..8 {
            sandbox.write(&format!("{file}"), noise(seed * 8 + file, 60_000));
        }
        served.run("client", &["backup", "--series", "one", &source]).ok();
    }
    served
}

#[test]
fn a_client_that_may_only_add_backs_up_and_restores_and_deletes_nothing() {
    let sandbox = Sandbox::bare();
    let served = filled(&sandbox);
    let before = sandbox.objects();
    assert_eq!(served.run("client", &["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(2));
    served.run("client", &["check", "--read-data"]).ok();
    let target = sandbox.path("target");
    served.run("client", &["restore", "latest", "--target", &target.display().to_string()]).ok();
    let restored = target.join(sandbox.path("source").strip_prefix("/").expect("absolute"));
    for file in 0..8 {
        let name = file.to_string();
        assert_eq!(fs::read(restored.join(&name)).expect("read"), noise(8 + file, 60_000));
    }
    for refused in [&["forget", "--keep-last", "1"][..], &["maintain"], &["key", "add"], &["init"]] {
        let mut silt = served.silt("client");
        silt.args(refused);
        if refused == ["key", "add"] {
            fs::write(sandbox.path("new"), "another").expect("written");
            silt.args(["--new-password-file", "new"]);
        }
        assert_eq!(ran(&mut silt).status, 1, "{refused:?}");
        assert!(sandbox.objects() == before, "{refused:?} changed something");
    }
    let said = served.run("client", &["forget", "--keep-last", "1"]).stderr;
    assert!(
        said.contains("forgetting snapshots takes the right to delete there") && said.contains("silt:http"),
        "{said}"
    );

    sandbox.write("0", noise(100, 60_000));
    served.run("client", &["backup", "--series", "one", &sandbox.source()]).ok();
    let after = sandbox.objects();
    for (path, bytes) in &before {
        assert!(after.get(path) == Some(bytes), "{} was changed", path.display());
    }
    assert_eq!(served.stop(), 0);
}

#[test]
fn what_goes_over_the_network_is_counted_and_kept_within_limits() {
    let sandbox = Sandbox::bare();
    let served = filled(&sandbox);
    sandbox.write("0", noise(200, 60_000));
    let limited = ["--limit-upload", "100M", "--limit-download", "100M"];
    let backup = ["backup", "--json", "--series", "one", &sandbox.source()];
    let summary = served.run("client", &[&limited[..], &backup].concat()).ok().message("summary");
    let sent = summary["bytes_sent"].as_u64().expect("a number");
    assert!((60_000..600_000).contains(&sent), "{summary}");
    let target = sandbox.path("target").display().to_string();
    let mut restore = served.silt("client");
    restore.args(["--no-cache", "restore", "latest", "--json", "--target", &target]);
    let summary = ran(restore.env("SILT_LIMIT_DOWNLOAD", "100M")).ok().message("summary");
    assert!(summary["bytes_received"].as_u64() >= Some(480_000), "{summary}");
    let text = served.run("client", &["backup", "--series", "one", &sandbox.source()]).ok().stdout;
    assert!(text.contains("\nNetwork:     sent "), "{text}");
    let mut wrong = served.silt("client");
    let said = ran(wrong.env("SILT_LIMIT_UPLOAD", "fast").arg("snapshots")).exits(1).stderr;
    assert!(said.contains("SILT_LIMIT_UPLOAD") && said.contains("500K"), "{said}");
    assert_eq!(served.stop(), 0);
}

#[test]
fn a_limit_for_a_folder_is_told_to_do_nothing() {
    let sandbox = Sandbox::of_files(1);
    let said = sandbox.run(&["--limit-upload", "1", "snapshots"]).ok().stderr;
    assert!(said.contains("--limit-upload") && said.contains("over a network"), "{said}");
    assert!(sandbox.backup(&[]).get("bytes_sent").is_none());
}

#[test]
fn who_may_delete_gives_the_space_back_that_others_left() {
    let sandbox = Sandbox::bare();
    let served = filled(&sandbox);
    let before = sandbox.objects();
    served.run("keeper", &["maintain"]).ok();
    served.run("keeper", &["forget", "--keep-last", "1"]).ok();
    let after = sandbox.objects();
    let manifests = after.keys().filter(|path| path.to_string_lossy().contains("repository/series/")).count();
    assert!(bytes(&after) < bytes(&before) * 2 / 3, "{} of {}", bytes(&after), bytes(&before));
    assert_eq!(manifests, 2, "the newest and its predecessor");
    served.run("client", &["check", "--read-data"]).ok();
    assert_eq!(served.stop(), 0);
}

#[test]
fn a_token_for_one_series_sees_no_other_and_is_refused_there() {
    let sandbox = Sandbox::bare();
    let served = filled(&sandbox);
    served.run("admin", &["backup", "--series", "two", &sandbox.source()]).ok();
    let id = served.run("admin", &["serve", "series", "two"]).ok().stdout;
    sandbox.add_token("second", id.trim(), "put,list,read");
    let listed = served.run("second", &["snapshots", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    served.run("second", &["backup", "--series", "two", &sandbox.source()]).ok();
    served.run("second", &["check"]).ok();
    // The same machine had a token that reached more.
    let mut narrowed = served.silt("second");
    let narrowed = ran(narrowed.env("HOME", sandbox.path("home of admin")).arg("snapshots")).ok();
    assert!(narrowed.stderr.contains("series 'one' was seen here and is out of"), "{}", narrowed.stderr);
    let before = sandbox.objects();
    let ran = served.run("second", &["backup", "--series", "one", &sandbox.source()]).exits(1);
    assert!(ran.stderr.contains("\"one\"") && ran.stderr.contains("a token for this series"), "{}", ran.stderr);
    assert!(sandbox.objects() == before);
}

#[test]
fn tokens_are_listed_without_their_text_and_end_when_removed() {
    let sandbox = Sandbox::bare();
    let served = filled(&sandbox);
    let tokens = sandbox.path("tokens").display().to_string();
    let listed = sandbox.run(&["serve", "token", "list", "--tokens", &tokens]).ok().stdout;
    assert!(listed.contains("client") && listed.contains("put,list,read"), "{listed}");
    assert!(!listed.contains(&sandbox.token_text("client")));
    sandbox.run(&["serve", "token", "remove", "client", "--tokens", &tokens]).ok();
    let said = served.run("client", &["snapshots"]).exits(1).stderr;
    assert!(said.contains("the token is missing or unknown"), "{said}");
    served.run("keeper", &["snapshots"]).ok();
}
