//! Repositories on a server, from end to end: OpenSSH's SFTP server is started by the program itself.

use crate::common::{QUICK_KEY, Sandbox, content};
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

const SERVERS: [&str; 3] =
    ["/usr/lib/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/usr/libexec/openssh/sftp-server"];

/// OpenSSH's SFTP server, without which these tests cannot be run.
fn server() -> &'static str {
    let found = SERVERS.into_iter().find(|program| Path::new(program).is_file());
    found.expect("OpenSSH's sftp-server is needed: install openssh-sftp-server, or run cargo xtask test")
}

#[test]
fn a_repository_on_a_server_is_one_of_a_folder() {
    let sandbox = Sandbox::bare();
    sandbox.write("a", "one");
    let address = format!("sftp:me@server:{}", sandbox.path("deep/repository").display());
    let on_server = |arguments: &[&str]| {
        let options = ["-r", &address, "--sftp-command", server()];
        sandbox.run(&[&options, arguments].concat())
    };
    on_server(&["snapshots"]).exits(10);
    let init = [&["init"], &QUICK_KEY[..]].concat();
    on_server(&init).ok();
    on_server(&init).exits(1);
    on_server(&["backup", &sandbox.source()]).ok();
    sandbox.write("a", "ONE!");
    on_server(&["backup", &sandbox.source()]).ok();
    on_server(&["restore", &format!("latest:{}", sandbox.source()), "--target", "out"]).ok();
    assert_eq!(content(sandbox.path("out/a")), "ONE!");
    on_server(&["forget", "--keep-last", "1"]).ok();
    on_server(&["check", "--read-data"]).ok();
    let folder = sandbox.path("deep/repository").display().to_string();
    let listed = sandbox.run(&["-r", &folder, "snapshots", "--json"]).ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    sandbox.run(&["-r", &folder, "check", "--read-data"]).ok();
}

#[test]
fn the_machine_that_made_a_repository_tests_its_place_once_and_a_new_repository_tests_it_again() {
    let sandbox = Sandbox::bare();
    sandbox.write("a", "one");
    let address = format!("sftp:me@server:{}", sandbox.path("repository").display());
    let on_server = |arguments: &[&str]| {
        let options = ["-r", &address, "--sftp-command", server()];
        sandbox.run(&[&options, arguments].concat()).ok();
    };
    let marker = || {
        let mut files = fs::read_dir(sandbox.path("home/.cache/siltstone/probed"))
            .expect("it was tested")
            .map(|file| file.unwrap());
        let marker = files.next().expect("a marker").path();
        assert!(files.next().is_none(), "one place, one marker");
        marker
    };
    let init = [&["init"], &QUICK_KEY[..]].concat();
    on_server(&init);
    fs::File::options().write(true).open(marker()).unwrap().set_modified(UNIX_EPOCH).unwrap();
    let is_old = || fs::metadata(marker()).unwrap().modified().unwrap() == UNIX_EPOCH;
    on_server(&["backup", &sandbox.source()]);
    assert!(is_old(), "the backup tested it once more");
    fs::remove_dir_all(sandbox.path("repository")).unwrap();
    on_server(&init);
    assert!(!is_old(), "what another place of this name did is not asked");
}

#[test]
fn a_program_that_is_missing_is_named_with_what_to_install() {
    let sandbox = Sandbox::bare();
    for (address, option, package) in
        [("sftp:host:/x", "--sftp-command", "openssh-client"), ("rclone:cloud:x", "--rclone-program", "rclone")]
    {
        let said = sandbox.run(&["-r", address, option, "no-such-program-here", "snapshots"]).exits(1);
        assert!(said.stderr.contains("no-such-program-here") && said.stderr.contains(package), "{}", said.stderr);
    }
    let said = sandbox.run(&["-r", "sftp:me:secret@host:/x", "snapshots"]);
    assert!(said.stderr.contains("password") && !said.stderr.contains("secret"), "{}", said.stderr);
}
