//! Words that people read: notices, counts and errors, each said once.

use crate::common::Sandbox;

#[test]
fn a_backup_that_begins_a_series_says_so_and_names_the_one_it_resembles() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let source = sandbox.source();
    let told = |name: &str| sandbox.run(&["backup", "--series", name, &source]).ok().stderr;
    assert_eq!(told("laptop"), "this begins the series 'laptop'\n");
    assert_eq!(told("laptop"), "", "the second backup goes on with it");
    assert!(told("photos").ends_with("this begins the series 'photos'\n"), "which resembles nothing");
    let mistyped = told("latpop");
    assert!(mistyped.contains("'latpop', beside 'laptop', which it resembles"), "{mistyped}");
    assert!(mistyped.contains("use --series 'laptop'"), "{mistyped}");
    assert_eq!(sandbox.run(&["backup", "-q", "--series", "desktop", &source]).ok().stderr, "");
}

#[test]
fn sockets_that_are_left_out_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    assert!(!sandbox.run(&["backup", &sandbox.source()]).ok().stdout.contains("Left out"));
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.path("source/s")).expect("bound");
    let told = sandbox.run(&["backup", &sandbox.source()]).ok().stdout;
    assert!(told.contains("\nLeft out:        1 socket\n"), "{told}");
    assert_eq!(sandbox.backup(&[])["sockets_left_out"], 1);
}

#[test]
fn bytes_that_are_stored_already_are_told_as_duplicates() {
    let sandbox = Sandbox::new();
    let content = crate::common::noise(1, 300_000);
    sandbox.write("a", &content);
    sandbox.write("b", &content);
    let told = sandbox.run(&["backup", &sandbox.source()]).ok().stdout;
    assert!(told.contains("\nDuplicates:  292.969 KiB of 585.938 KiB read\n"), "{told}");
}

#[test]
fn one_cause_that_hurts_many_files_is_told_once() {
    let sandbox = Sandbox::of_files(8);
    let container = sandbox.largest_container();
    let mut bytes = std::fs::read(&container).expect("read");
    bytes[9000..9100].fill(0xff);
    std::fs::write(&container, bytes).expect("written");
    let target = sandbox.path("out").display().to_string();
    let told = sandbox.run(&["restore", "latest", "--target", &target]).exits(1).stderr;
    let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(errors.len() > 1, "{told}");
    assert_eq!(errors.iter().filter(|line| line.contains("its seal does not hold")).count(), 1, "{told}");
    assert_eq!(errors.iter().filter(|line| line.ends_with("by the same cause")).count(), errors.len() - 1, "{told}");
    let last = told.lines().last().unwrap_or_default();
    assert_eq!(last, format!("silt: there were {} errors", errors.len()));
}

#[test]
fn a_container_that_a_check_names_is_named_once() {
    let sandbox = Sandbox::bare();
    sandbox.run(&["init"]).ok();
    sandbox.write("a", crate::common::noise(1, 300_000));
    sandbox.backup(&[]);
    let container = sandbox.largest_container();
    let mut bytes = std::fs::read(&container).expect("read");
    bytes[9000..9004].fill(0xff);
    std::fs::write(&container, bytes).expect("written");
    let told = sandbox.run(&["check", "--read-data"]).exits(1).stderr;
    let name = container.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(told.matches(&name).count(), 1, "{told}");
}
