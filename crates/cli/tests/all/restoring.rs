//! Holds `silt restore` and `silt dump` to what they leave when the repository is damaged, when they are interrupted,
//! and where the target is a bad choice.

use crate::common::{QUICK_KEY, Ran, Sandbox, ran, ran_with_input};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn what_is_damaged_is_named_and_left_out_or_kept_aside() {
    let sandbox = Sandbox::of_files(40);
    let container = sandbox.largest_container();
    let good = fs::read(&container).expect("read");
    let mut bad = good.clone();
    bad[good.len() / 3] ^= 1;
    let restore = |target: &str, more: &[&str]| {
        let below = format!("latest:{}", sandbox.source());
        let target = sandbox.path(target).display().to_string();
        sandbox.run(&[["restore", &below, "--target", &target].as_slice(), more].concat())
    };
    fs::write(&container, bad).expect("written");
    let ran = restore("out", &[]).exits(1);
    assert!(ran.stderr.contains("it is left out") && ran.stderr.contains("errors"), "{}", ran.stderr);
    let names = || fs::read_dir(sandbox.path("out")).expect("read").count();
    let whole = names();
    assert!(whole < 40);
    let ran = restore("out", &["--keep-damaged"]).exits(1);
    assert!(ran.stderr.contains(&format!("kept as {}/0", sandbox.source())), "{}", ran.stderr);
    assert_eq!(names(), 40, "{} of them under another name", 40 - whole);
    fs::write(&container, good).expect("written");
    let ran = restore("out", &["--overwrite", "if-changed", "--verify", "--delete"]).ok();
    assert!(ran.stdout.contains("verified 40 files"), "{}", ran.stdout);
    for number in 0..40 {
        let name = format!("{number:03}");
        let [found, wanted] = ["out", "source"].map(|folder| fs::read(sandbox.path(folder).join(&name)).expect("read"));
        assert!(found == wanted, "{name} differs");
    }
    // A file that only looks right is seen by --verify alone.
    let spoiled = sandbox.path("out/007");
    let time = fs::metadata(&spoiled).expect("status").modified().expect("a time");
    fs::write(&spoiled, vec![0; 50_000]).expect("written");
    fs::File::options().write(true).open(&spoiled).expect("opened").set_modified(time).expect("a time");
    restore("out", &["--overwrite", "never"]).ok();
    let ran = restore("out", &["--overwrite", "never", "--verify"]).exits(1);
    assert!(ran.stderr.contains("/007: is not as it was backed up"), "{}", ran.stderr);
    let ran = restore("out", &["--overwrite", "if-changed", "--verify"]).ok();
    assert!(ran.stderr.contains("/007 has the snapshot's size and time, but"), "{}", ran.stderr);
    restore("out", &["--overwrite", "never", "--verify"]).ok();
}

/// A folder `disk` with the repository in `disk/repo`, something else in `disk/mine`, and a snapshot of the source.
fn repository_on_the_target() -> Sandbox {
    let sandbox = Sandbox::bare();
    for folder in ["disk/mine", "home"] {
        fs::create_dir_all(sandbox.path(folder)).expect("made");
        fs::write(sandbox.path(folder).join("precious"), "x").expect("written");
    }
    sandbox.write("a", "content");
    let run =
        |arguments: &[&str]| ran(sandbox.silt().env("SILT_REPOSITORY", sandbox.path("disk/repo")).args(arguments));
    run(&[&["init"], &QUICK_KEY[..]].concat()).ok();
    run(&["backup", &sandbox.source()]).ok();
    sandbox
}

fn restore_to(sandbox: &Sandbox, target: &str, more: &[&str]) -> Ran {
    let below = format!("latest:{}", sandbox.source());
    let target = sandbox.path(target).display().to_string();
    let arguments = [["restore", &below, "--target", &target].as_slice(), more].concat();
    ran(sandbox.silt().env("SILT_REPOSITORY", sandbox.path("disk/repo")).args(arguments))
}

/// How many files a folder holds, at any depth.
fn files_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
}

/// The story: the folder that held the repository was emptied of what the snapshot does not hold, repository and all,
/// with exit status 0.
#[test]
fn delete_never_reaches_the_repository() {
    let sandbox = repository_on_the_target();
    let files = files_in(&sandbox.path("disk/repo"));
    std::os::unix::fs::symlink(sandbox.path("disk"), sandbox.path("link")).expect("linked");
    let holding = ["disk", "link", "disk/mine/.."];
    let inside = ["disk/repo", "link/repo", "disk/repo/data", "disk/repo/new/folder", "disk/new/../repo"];
    let dry_run: [&[&str]; 2] = [&["--delete"], &["--delete", "--dry-run"]];
    for (target, more) in holding.iter().flat_map(|target| dry_run.map(|more| (target, more))) {
        let refused = restore_to(&sandbox, target, more).exits(14);
        assert!(refused.stderr.contains("holds the folder of the repository"), "{}", refused.stderr);
    }
    for target in inside {
        for more in dry_run.into_iter().chain([[].as_slice()]) {
            let refused = restore_to(&sandbox, target, more).exits(14);
            assert!(refused.stderr.contains("in, the folder of the repository"), "{}", refused.stderr);
        }
    }
    assert!(sandbox.path("disk/mine/precious").exists());
    // With a choice, what is beside it goes and the repository stays.
    let ran = restore_to(&sandbox, "disk", &["--delete", "--include", "*"]).exits(1);
    assert!(ran.stderr.contains("/repo: cannot be removed: it is the folder of the repository"), "{}", ran.stderr);
    assert!(!sandbox.path("disk/mine").exists() && sandbox.path("disk/a").exists());
    assert_eq!(files_in(&sandbox.path("disk/repo")), files);
    restore_to(&sandbox, "disk", &[]).ok();
}

#[test]
fn a_mount_does_not_hide_the_repository() {
    let sandbox = repository_on_the_target();
    let files = files_in(&sandbox.path("disk/repo"));
    for (target, of) in [("way", "disk"), ("inside", "disk/repo/data")] {
        fs::create_dir(sandbox.path(target)).expect("made");
        let mount = Command::new("mount").arg("--bind").args([sandbox.path(of), sandbox.path(target)]).status();
        if !mount.is_ok_and(|status| status.success()) {
            // Not everybody may mount; who could once can again.
            assert_eq!(target, "way");
            return;
        }
        let ran = restore_to(&sandbox, target, &["--delete"]);
        let unmount = Command::new("umount").arg(sandbox.path(target)).status();
        assert!(unmount.expect("it runs").success());
        assert!(files_in(&sandbox.path("disk/repo")) >= files);
        ran.exits(14);
    }
}

#[test]
fn delete_in_a_home_or_the_root_folder_asks_for_a_choice() {
    let sandbox = repository_on_the_target();
    let refused = restore_to(&sandbox, "home", &["--delete"]).exits(14);
    assert!(refused.stderr.contains("a home folder") && refused.stderr.contains("--include"), "{}", refused.stderr);
    let root = ["restore", "latest", "--target", "/", "--delete", "--dry-run"];
    let refused = ran(sandbox.silt().env("SILT_REPOSITORY", sandbox.path("disk/repo")).args(root)).exits(14);
    assert!(refused.stderr.contains("refusing to restore into /"), "{}", refused.stderr);
    assert!(sandbox.path("home/precious").exists());
    restore_to(&sandbox, "home", &[]).ok();
    restore_to(&sandbox, "home", &["--delete", "--include", "nothing like it", "--include", "a"]).ok();
    let planned = restore_to(&sandbox, "home", &["--delete", "--unsafe-allow-delete", "--dry-run", "-v"]).ok();
    let precious = format!("deleted   {}/precious\n", sandbox.source());
    assert!(planned.stdout.contains(&precious), "{}", planned.stdout);
    assert!(sandbox.path("home/precious").exists());
    restore_to(&sandbox, "home", &["--delete", "--unsafe-allow-delete"]).ok();
    assert!(!sandbox.path("home/precious").exists());
}

#[test]
fn a_dry_run_says_what_would_be_deleted() {
    let sandbox = repository_on_the_target();
    for name in ["out/extra/deep/x", "out/extra/y", "out/z", "out/a/inside"] {
        fs::create_dir_all(sandbox.path(name).parent().expect("a folder")).expect("made");
        fs::write(sandbox.path(name), "x").expect("written");
    }
    let planned = restore_to(&sandbox, "out", &["--delete", "--dry-run"]).ok();
    assert!(planned.stdout.contains("would delete 7 entries"), "{}", planned.stdout);
    let named = |ran: &Ran| -> Vec<String> {
        let mut names: Vec<String> =
            ran.stdout.lines().filter(|line| line.starts_with("deleted")).map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(named(&planned).len(), 7, "{}", planned.stdout);
    let json = restore_to(&sandbox, "out", &["--delete", "--dry-run", "--json"]).ok();
    assert_eq!(json.message("summary")["files_deleted"], 7);
    let done = restore_to(&sandbox, "out", &["--delete", "-v"]).ok();
    assert_eq!(named(&done), named(&planned), "that is what happens");
    assert_eq!(fs::read_dir(sandbox.path("out")).expect("read").count(), 1);
}

#[test]
fn includes_that_all_match_nothing_fail_and_are_named() {
    let sandbox = Sandbox::of_files(1);
    let target = sandbox.path("out").display().to_string();
    for more in [&[][..], &["--dry-run"], &["--json"]] {
        let none = ["--include", "no-such-file", "--iinclude", "NEITHER"];
        let ran = sandbox.run(&[&["restore", "latest", "--target", &target], &none[..], more].concat()).exits(1);
        let expected = "nothing in the snapshot matches 'no-such-file' or 'NEITHER': nothing was restored";
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(!ran.stderr.contains("warning") && !ran.stdout.contains("nothing_matches"), "told once");
    }
    sandbox.run(&["restore", "latest", "--target", &target, "--include", "000"]).ok();
    sandbox.run(&["restore", "latest", "--target", &target, "--exclude", "000"]).ok();
}

#[test]
fn each_include_that_matches_nothing_is_told_and_the_rest_is_restored() {
    let sandbox = Sandbox::of_files(3);
    let target = sandbox.path("out").display().to_string();
    let list = sandbox.path("list");
    fs::write(&list, "# a comment\n\n002\nfrom-a-list\n!001\n").expect("written");
    let list = list.display().to_string();
    let includes = ["--include", "00*", "--include", "typo", "--include-file", &list];
    for more in [&[][..], &["--dry-run"]] {
        let arguments = [&["restore", "latest", "--target", &target], &includes[..], more].concat();
        let ran = sandbox.run(&arguments).ok();
        let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("matches")).collect();
        let expected = ["typo", "from-a-list"].map(|it| format!("warning: nothing in the snapshot matches '{it}'"));
        assert_eq!(told, expected);
        assert!(ran.stdout.contains("2 files"), "{}", ran.stdout);
        let json = sandbox.run(&[&arguments[..], &["--json"]].concat()).ok();
        let told = json.messages("notice").into_iter().filter(|notice| notice["code"] == "nothing_matches");
        assert_eq!(told.count(), 2, "{}", json.stdout);
    }
    // With a path only what lies there counts, and a pattern of a folder above it matches all of it.
    let below = format!("latest:{}/000", sandbox.source());
    let ran = sandbox.run(&["restore", &below, "--target", &target, "-i", "source", "-i", "001"]).ok();
    assert!(ran.stderr.contains("'001'") && !ran.stderr.contains("'source'"), "{}", ran.stderr);
}

/// Runs a restore at a terminal of its own, with these lines typed.
fn picked(sandbox: &Sandbox, typed: &str) -> Ran {
    at_terminal(sandbox, &format!("restore latest --pick --target {}", sandbox.path("out").display()), typed)
}

/// Runs the program at a terminal of its own (by util-linux's `script`), with these lines typed.
fn at_terminal(sandbox: &Sandbox, arguments: &str, typed: &str) -> Ran {
    let silt = sandbox.silt();
    let mut script = Command::new("script");
    script.env_clear().envs(silt.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let line = format!("{} {arguments}", silt.get_program().display());
    script.current_dir(sandbox.path("")).args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    ran_with_input(&mut script, typed.as_bytes())
}

#[test]
fn what_is_picked_at_the_terminal_is_restored_and_nothing_else() {
    let sandbox = Sandbox::new();
    for name in ["letters/one.odt", "letters/two.odt", "letters/[odd]*", "notes/one.txt"] {
        sandbox.write(name, name);
    }
    sandbox.backup(&[]);
    let out = || sandbox.path("out").join(sandbox.source().trim_start_matches('/'));
    let refused = sandbox.run(&["restore", "latest", "--target", "out", "--pick"]).exits(1);
    assert!(refused.stderr.contains("--pick asks at a terminal"), "{}", refused.stderr);
    let ended = picked(&sandbox, "nothing like this\n\u{4}").exits(1);
    assert!(ended.stdout.contains("nothing has all of these words"), "{}", ended.stdout);
    assert!(ended.stdout.contains("nothing was picked") && !sandbox.path("out").exists(), "{}", ended.stdout);
    let done = picked(&sandbox, "LETTERS\n9\n2,4\n").ok();
    assert!(done.stdout.contains("the list has no number 9"), "{}", done.stdout);
    let mut names: Vec<_> =
        fs::read_dir(out().join("letters")).expect("read").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["[odd]*", "two.odt"], "{}", done.stdout);
    assert!(!out().join("notes").exists());
}

#[test]
fn no_archive_is_written_to_a_terminal_and_a_file_is() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", "content");
    sandbox.backup(&[]);
    let folder = format!("{}/folder", sandbox.source());
    let archives = [
        "dump latest /".to_owned(),
        format!("dump latest {folder}"),
        format!("dump --archive zip latest:{folder} --target -"),
        "export tar latest".to_owned(),
        format!("export zip latest:{folder}/file --output -"),
    ];
    for arguments in archives {
        let refused = at_terminal(&sandbox, &arguments, "").exits(1);
        assert!(refused.stdout.contains("not written to a terminal"), "{arguments}: {}", refused.stdout);
        assert!(!refused.stdout.contains("ustar"), "{arguments}: {}", refused.stdout);
    }
    let shown = at_terminal(&sandbox, &format!("dump latest {folder}/file"), "").ok();
    assert!(shown.stdout.contains("content"), "{}", shown.stdout);
    let absent = at_terminal(&sandbox, &format!("dump latest {folder}/nothing"), "").exits(1);
    assert!(absent.stdout.contains("/folder/nothing"), "{}", absent.stdout);
}

#[test]
fn a_dash_is_standard_output_and_no_file() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "content");
    sandbox.backup(&[]);
    let file = format!("{}/file", sandbox.source());
    assert_eq!(sandbox.run(&["dump", "latest", &file, "--target", "-"]).ok().stdout, "content");
    let archive = sandbox.run(&["export", "tar", "latest", "--output", "-"]).ok().stdout;
    assert!(archive.contains("ustar") && archive.contains("content"), "{archive}");
    assert!(sandbox.run(&["key", "export", "--output", "-"]).ok().stdout.contains("recovery sheet"));
    assert!(!sandbox.path("-").exists());
}

#[test]
fn a_dump_into_a_file_gives_it_its_name_when_it_is_whole() {
    let sandbox = Sandbox::of_files(30);
    let container = sandbox.largest_container();
    let mut bad = fs::read(&container).expect("read");
    let good = bad.clone();
    bad[good.len() / 2] ^= 1;
    let dump = |archive: &str, target: &str| {
        sandbox.run(&["dump", "latest", &sandbox.source(), "--archive", archive, "--target", target])
    };
    for archive in ["tar", "zip"] {
        let target = sandbox.path(archive);
        dump(archive, &target.display().to_string()).ok();
        let whole = fs::read(&target).expect("read");
        assert!(whole.len() > 1_500_000);
        fs::write(&container, &bad).expect("written");
        dump(archive, &target.display().to_string()).exits(1);
        assert!(fs::read(&target).expect("read") == whole, "what was there stays");
        dump(archive, "new").exits(1);
        dump(archive, "/dev/null").exits(1);
        assert!(!sandbox.path("new").exists());
        fs::write(&container, &good).expect("written");
    }
    dump("tar", "/dev/null").ok();
    let names = fs::read_dir(sandbox.path("")).expect("read").map(|entry| entry.expect("an entry").file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".silt-dump-")));
}
