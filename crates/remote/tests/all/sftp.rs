//! The contract of storages, held against OpenSSH's SFTP server, alone and behind a real `sshd`, and against rclone;
//! and what becomes of objects when the connection breaks anywhere.

use crate::servers::{self, Sshd, by_program, by_rclone, empty_folder, reached, server_program};
use siltstone_remote::{Limits, Programs, Retries, Traffic, connect_server, create_server};
use siltstone_store::storage::conformance::{Contract, SERIES, all, container, key, manifest};
use siltstone_store::storage::{Disk, Listing, ObjectName, ReadRequest, Storage, StorageError, TEMPORARIES};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn every_storage(contract: Contract) {
    let folder = empty_folder();
    contract(&by_program(&server_program(), folder.path()));
    assert_no_temporaries(folder.path());
}

siltstone_store::contracts!(every_storage);

fn assert_no_temporaries(folder: &Path) {
    let left = fs::read_dir(folder.join(TEMPORARIES)).map_or(0, Iterator::count);
    assert_eq!(left, 0, "temporary files are left");
}

#[test]
fn every_byte_through_the_program_is_counted() {
    const BYTES: usize = 1 << 20;
    let (folder, fast) = (empty_folder(), Some(1 << 30));
    let traffic = Traffic::new(Limits { upload: fast, download: fast });
    let mut programs = Programs::default();
    programs.sftp_command = Some(server_program());
    let server = servers::address(&format!("sftp:test:{}", folder.path().display()));
    let storage = create_server(&server, &programs, Retries::default(), &traffic).unwrap();
    let counted = || [traffic.bytes_sent(), traffic.bytes_received()];
    let is_object_and_little_more = |bytes: u64| (BYTES as u64..BYTES as u64 + (16 << 10)).contains(&bytes);

    storage.put(&container(1), &vec![7; BYTES]).unwrap();
    storage.barrier().unwrap();
    let [sent, received] = counted();
    assert!(is_object_and_little_more(sent) && (1..16 << 10).contains(&received), "{sent} {received}");
    assert_eq!(storage.read(&container(1), BYTES as u64).unwrap().len(), BYTES);
    let [more_sent, more_received] = counted();
    assert!(is_object_and_little_more(more_received - received) && more_sent - sent < 16 << 10);
}

#[test]
fn sshd_keeps_every_contract() {
    let sshd = Sshd::new();
    for (name, contract) in all() {
        println!("{name}");
        contract(&sshd.storage(&sshd.folder().join(name)));
    }
}

#[test]
fn rclone_keeps_every_contract_for_one_writer() {
    for (name, contract) in all() {
        let folder = empty_folder();
        let Some(storage) = by_rclone("rclone_keeps_every_contract_for_one_writer", folder.path(), true) else {
            return;
        };
        println!("{name}");
        contract(&storage);
    }
}

#[test]
fn rclone_is_refused_where_nobody_promises_to_be_alone() {
    let folder = empty_folder();
    let test = "rclone_is_refused_where_nobody_promises_to_be_alone";
    let Some(storage) = by_rclone(test, folder.path(), false) else { return };
    let error = storage.create(&manifest(1), b"x").unwrap_err();
    assert!(matches!(error, StorageError::ReplacesObjects { .. }), "{error:?}");
    assert_eq!(storage.list(Listing::All).unwrap(), []);
}

#[test]
fn what_is_written_is_a_repository_of_a_folder_and_the_other_way_round() {
    let folder = empty_folder();
    let storage = by_program(&server_program(), folder.path());
    storage.create(&manifest(1), b"by the server").unwrap();
    let disk = Disk::open(folder.path()).unwrap();
    assert_eq!(disk.read(&manifest(1), 100).unwrap(), b"by the server");
    disk.create(&manifest(2), b"by the disk").unwrap();
    assert!(storage.create(&manifest(2), b"again").unwrap_err().is_already_exists());
    assert_eq!(storage.list(Listing::All).unwrap(), disk.list(Listing::All).unwrap());
    let mode = fs::metadata(folder.path().join(manifest(1).to_string())).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else reads it");
}

#[test]
fn temporary_files_of_this_lease_and_older_ones_are_swept() {
    let folder = empty_folder();
    let storage = by_program(&server_program(), folder.path());
    storage.create(&manifest(1), b"x").unwrap();
    let left = |name: ObjectName| folder.path().join(TEMPORARIES).join(ObjectName::temporary(&name.to_string(), 7));
    let names = [container(1), manifest(1), manifest(2), key(1)];
    for name in names {
        fs::write(left(name), b"torn").unwrap();
    }
    fs::write(folder.path().join(TEMPORARIES).join("foreign"), b"x").unwrap();
    assert_eq!(storage.remove_unfinished(SERIES, 1).unwrap(), 2);
    assert_eq!(names.map(|name| left(name).exists()), [false, false, true, true]);
}

/// A server whose connection breaks once, after this number of bytes of its answers, or of the requests.
fn breaking(folder: &Path, bytes: usize, of_answers: bool) -> String {
    let (server, flag) = (server_program(), folder.join("broken"));
    let count = format!("dd bs=1 count={bytes} status=none");
    let pipe = if of_answers { format!("{server} <&3 | {count}") } else { format!("{count} <&3 | {server}") };
    // Nothing but the pipe keeps the streams open.
    let once = format!("exec 3<&0 2>/dev/null; {pipe} & exit");
    format!("sh -c 'if mkdir {} 2>/dev/null; then {once}; else exec {server}; fi'", flag.display())
}

/// A small history of a series: containers, a commit, reading, deleting, another commit.
fn history(storage: &dyn Storage) -> Result<(), StorageError> {
    let content = |serial: u8| vec![serial; 40_000];
    (0..3).try_for_each(|serial| storage.put(&container(serial.into()), &content(serial)))?;
    storage.barrier()?;
    storage.create(&manifest(1), b"first")?;
    assert_eq!(storage.read(&container(0), 40_000)?, content(0));
    assert_eq!(storage.read_range(&container(1), 10, 20)?, [1; 20]);
    assert_eq!(storage.size_of(&container(2))?, 40_000);
    storage.renew(&ObjectName::Renewal(SERIES, siltstone_store::RenewalId { lease: 1, count: 0 }), None)?;
    let requests = [ReadRequest::whole(container(0), 40_000), ReadRequest::range(manifest(1), 1, 3)];
    let mut answers = [const { None }; 2];
    storage.read_many(&requests, &mut |place, answer| {
        answers[place] = Some(answer);
        ControlFlow::Continue(())
    });
    let [whole, range] = answers.map(Option::unwrap);
    assert_eq!((whole?, range?), (content(0), b"irs".to_vec()));
    assert_eq!(storage.list_containers(SERIES)?.len(), 3);
    storage.create(&manifest(2), b"second")?;
    storage.delete(&container(0))?;
    storage.delete_many(&[container(1), manifest(1)])?;
    Ok(())
}

#[test]
fn a_connection_that_breaks_anywhere_loses_and_replaces_nothing() {
    // Answers of the history have some 85 000 bytes, requests some 125 000.
    let early = (0..6_000).step_by(197);
    let cuts = early.chain((6_000..130_000).step_by(9_001));
    let retries = Retries::default().with_tries(12, Duration::ZERO);
    for (bytes, of_answers) in cuts.flat_map(|bytes| [(bytes, true), (bytes, false)]) {
        let (folder, aside) = (empty_folder(), empty_folder());
        let command = breaking(aside.path(), bytes, of_answers);
        let storage = reached(&command, folder.path(), retries, create_server);
        let what = format!("after {bytes} bytes of {}", if of_answers { "answers" } else { "requests" });
        history(&storage).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let disk = Disk::open(folder.path()).unwrap();
        let left: Vec<String> = disk.list(Listing::All).unwrap().iter().map(|it| it.name.to_string()).collect();
        assert_eq!(left.len(), 3, "{what}: {left:?}");
        assert_eq!(disk.read(&manifest(2), 100).unwrap(), b"second", "{what}");
        assert_eq!(disk.read(&container(2), 40_000).unwrap(), vec![2; 40_000], "{what}");
    }
}

#[test]
fn the_object_of_another_writer_is_never_taken_for_ours() {
    for bytes in (0..1_500).step_by(97) {
        let (folder, aside) = (empty_folder(), empty_folder());
        Disk::open(folder.path()).unwrap().create(&manifest(1), b"theirs").unwrap();
        let storage = by_program(&breaking(aside.path(), bytes, true), folder.path());
        let error = storage.create(&manifest(1), b"ours..").unwrap_err();
        assert!(error.is_already_exists(), "after {bytes}: {error:?}");
        assert_eq!(storage.read(&manifest(1), 100).unwrap(), b"theirs");
    }
}

#[test]
fn what_keeps_a_server_from_being_reached_is_told_without_waiting() {
    let folder = empty_folder();
    let cases = [
        ("no-such-program-here", vec!["no-such-program-here", "openssh-client", "SILT_SFTP_COMMAND"]),
        ("sh -c 'echo me@host: Permission denied >&2; exit 255'", vec!["Permission denied", "exit status: 255"]),
        ("sh -c 'echo Host key verification failed. >&2; exit 255'", vec!["Host key verification failed"]),
    ];
    for (command, expected) in cases {
        let said = by_program(command, folder.path()).list(Listing::All).unwrap_err();
        let said = format!("{said}: {:?}", std::error::Error::source(&said).map(ToString::to_string));
        assert!(expected.iter().all(|word| said.contains(word)), "{said}");
    }
    let retries = Retries::default().with_tries(2, Duration::ZERO);
    let unreachable = "sh -c 'echo connect to host x: No route to host >&2; exit 255'";
    let error = reached(unreachable, folder.path(), retries, create_server).list(Listing::All).unwrap_err();
    assert!(matches!(&error, StorageError::Unavailable { tries: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("No route to host"), "{error}");
}

#[test]
fn only_a_new_repository_makes_its_folder() {
    let above = empty_folder();
    let folder = above.path().join("deep/repository");
    let open = |how| reached(&server_program(), &folder, Retries::default(), how);
    let there = open(connect_server);
    assert_eq!(there.list(Listing::All).unwrap(), []);
    let said = there.create(&manifest(1), b"x").unwrap_err();
    assert!(format!("{said:?}").contains("there is no folder"), "{said:?}");
    assert!(!folder.exists());
    open(create_server).create(&manifest(1), b"x").unwrap();
    there.create(&manifest(2), b"x").unwrap();
}

#[test]
fn a_place_that_may_not_be_written_refuses() {
    let folder = empty_folder();
    by_program(&server_program(), folder.path()).create(&manifest(1), b"x").unwrap();
    let read_only = by_program(&format!("{} -R", server_program()), folder.path());
    assert_eq!(read_only.read(&manifest(1), 100).unwrap(), b"x");
    for error in [read_only.create(&container(1), b"x"), read_only.delete(&manifest(1))].map(Result::unwrap_err) {
        assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
    }
}

#[test]
fn the_disk_of_a_server_runs_full_and_a_cloud_does_not() {
    let folder = empty_folder();
    let capabilities = by_program(&server_program(), folder.path()).capabilities();
    assert!(capabilities.keeps_reserve && !capabilities.creates_natively);
    let rclone = create_server(
        &servers::address("rclone:cloud:x"),
        &Programs::default(),
        Retries::default(),
        &Traffic::default(),
    )
    .unwrap();
    assert!(!rclone.capabilities().keeps_reserve && !rclone.capabilities().creates_natively);
}

#[test]
fn foreign_files_are_passed_over() {
    let folder = empty_folder();
    let storage = by_program(&server_program(), folder.path());
    storage.create(&manifest(1), b"x").unwrap();
    let path = manifest(1).to_string();
    fs::create_dir_all(folder.path().join("data/not a series/x")).unwrap();
    fs::create_dir_all(folder.path().join(container(1).to_string())).unwrap();
    for foreign in ["readme.txt", &format!("{path}.old"), "keys-of-mine", "data/not a series/file"] {
        fs::write(folder.path().join(foreign), b"x").unwrap();
    }
    for what in [Listing::All, Listing::AllManifests, Listing::Manifests(SERIES)] {
        assert_eq!(storage.list(what).unwrap().len(), 1, "{what:?}");
    }
    assert!(storage.read(&container(1), 100).unwrap_err().to_string().contains(&container(1).to_string()));
}

#[test]
fn programs_need_no_shell() {
    let mut programs = Programs::default();
    programs.sftp_command = Some("'unclosed".to_owned());
    let server = servers::address("sftp:host:/x");
    assert!(connect_server(&server, &programs, Retries::default(), &Traffic::default()).is_err());
}
