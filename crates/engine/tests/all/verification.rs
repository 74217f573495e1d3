//! Checks that end: what was read is remembered, what was not read for longest comes first, and a sample of files is
//! restored into nothing.

use crate::common::scene::Scene;
use crate::common::{Sandbox, noise, resources};
use siltstone_engine::check::{self, CheckOptions, CheckReport, Finding, Help, ReadData, RestoreSample, SampleOutcome};
use siltstone_engine::protect::protect;
use siltstone_engine::{EngineError, Observer};
use siltstone_store::config::Config;
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::storage::{Call, Damage, Guarded, ObjectName, Outcome, SimulatedDisk, StorageError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

/// Many small snapshots, so many containers.
fn scene(snapshots: u64) -> Scene {
    let mut scene = Scene { migrate: false, ..Scene::new() };
    for number in 0..snapshots {
        scene.sandbox.write(&format!("file{number}"), &noise(number, 30_000));
        scene.backup();
    }
    scene
}

fn state(scene: &Scene) -> PathBuf {
    scene.sandbox.folder.path().join("state")
}

fn remembering(scene: &Scene) -> CheckOptions {
    CheckOptions::reading(ReadData::All).with_state(Some(state(scene)))
}

fn run(sandbox: &Sandbox, options: &CheckOptions) -> CheckReport {
    check::check(&sandbox.repository(), options, &resources()).expect("a check")
}

#[test]
fn what_was_read_of_late_is_not_read_again() {
    let mut scene = scene(3);
    let all = scene.sandbox.manifest().containers.len() as u64;
    let options = remembering(&scene).with_max_age(Some(DAY));
    let first = run(&scene.sandbox, &options);
    assert_eq!((first.containers_read, first.containers_fresh), (all, 0));
    let second = run(&scene.sandbox, &options);
    assert_eq!((second.containers_read, second.containers_fresh, second.findings), (0, all, Vec::new()));
    scene.sandbox.write("new", &noise(99, 30_000));
    scene.backup();
    let third = run(&scene.sandbox, &options);
    assert!(third.containers_read > 0 && third.containers_fresh == all);
    assert_eq!(run(&scene.sandbox, &remembering(&scene)).containers_fresh, 0, "only with an age");
    let elsewhere = options.with_state(Some(state(&scene).join("another")));
    assert_eq!(run(&scene.sandbox, &elsewhere).containers_fresh, 0, "another machine remembers nothing");
}

#[test]
fn damage_is_never_remembered_as_sound_and_a_forged_memory_is_not_believed() {
    let scene = scene(2);
    let options = remembering(&scene).with_max_age(Some(DAY));
    let manifest = scene.sandbox.manifest();
    let name = manifest.containers[0].object_name(manifest.series);
    let flip = Damage::Flip { offset: 90, mask: 1 };
    scene.disk.damage(&name, flip.clone());
    assert!(!run(&scene.sandbox, &options).findings.is_empty());
    let again = run(&scene.sandbox, &options);
    assert!(!again.findings.is_empty(), "it is read again, and found again");
    assert_eq!(again.containers_read, 1);
    scene.disk.damage(&name, flip);
    assert_eq!(run(&scene.sandbox, &options).findings, []);

    let folder = state(&scene).join(scene.sandbox.repository().id().to_string());
    let file = std::fs::read_dir(&folder).expect("a folder").next().expect("a file").expect("a file").path();
    let mut bytes = std::fs::read(&file).expect("the file");
    assert_eq!(bytes.len(), 32 + 28 * manifest.containers.len() + 40, "so many bytes for each container");
    bytes[60] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    assert_eq!(run(&scene.sandbox, &options).containers_fresh, 0);
}

/// The story: what parity made good was no damage of the container, and damaged parity was named by its own object.
#[test]
fn what_parity_heals_and_parity_that_is_damaged_are_never_remembered_as_sound() {
    let scene = scene(2);
    let repository = scene.sandbox.repository();
    let wanted = |config: &mut Config| {
        config.parity.data_percent = 5;
        Ok(())
    };
    repository.amend(wanted).expect("a record");
    protect(&repository, "user", &resources()).expect("parity is made");
    let manifest = scene.sandbox.manifest();
    let record = manifest.containers.iter().find(|record| record.kind == ContainerKind::Data).expect("data");
    for name in [record.object_name(manifest.series), ObjectName::Parity(manifest.series, record.id)] {
        let bytes = repository.storage().read(&name, u64::MAX).expect("it is there").len();
        let flip = Damage::Flip { offset: u64::try_from(bytes / 2).expect("small"), mask: 1 };
        assert!(scene.disk.damage(&name, flip.clone()));
        let first = run(&scene.sandbox, &remembering(&scene)).findings;
        assert!(first.iter().any(|finding| finding.object == name.to_string()), "{name}: {first:?}");
        let again = run(&scene.sandbox, &remembering(&scene).with_max_age(Some(DAY)));
        assert_eq!(again.findings, first, "{name}: it is read again, and found again");
        assert_eq!(again.containers_fresh, manifest.containers.len() as u64 - 1, "{name}: the others are not");
        assert!(scene.disk.damage(&name, flip));
        assert_eq!(run(&scene.sandbox, &remembering(&scene)).findings, []);
    }
}

#[test]
fn a_check_that_ends_early_says_what_is_left_and_others_read_the_rest() {
    let scene = scene(20);
    let all = scene.sandbox.manifest().containers.len() as u64;
    let options = remembering(&scene).with_max_duration(Some(Duration::ZERO));
    let first = run(&scene.sandbox, &options);
    assert_eq!(first.findings, []);
    assert!(first.containers_read > 0 && first.containers_left > 0 && first.bytes_left > 0);
    assert_eq!(first.containers_read + first.containers_left, all);
    let mut rounds = 1;
    loop {
        let next = run(&scene.sandbox, &options.clone().with_max_age(Some(DAY)));
        assert!(next.containers_read > 0, "every check comes further");
        rounds += 1;
        if next.containers_left == 0 {
            break;
        }
    }
    assert_eq!(rounds, all.div_ceil(16));
    assert_eq!(run(&scene.sandbox, &options.with_max_age(Some(DAY))).containers_fresh, all);
}

fn unavailable(name: &ObjectName) -> StorageError {
    let (location, reason) = ("the place".to_owned(), "503".to_owned());
    StorageError::Unavailable { operation: "read", name: name.to_string(), location, tries: 12, reason }
}

/// How a read fails.
type Failure = fn(&ObjectName) -> StorageError;

fn refused(name: &ObjectName) -> StorageError {
    let (location, reason) = ("the place".to_owned(), "403".to_owned());
    StorageError::Refused { operation: "read", name: name.to_string(), location, reason }
}

/// A disk that gives data back so many times, and then fails.
fn failing_after(reads: u64, disk: SimulatedDisk, failure: Failure) -> Guarded<SimulatedDisk> {
    let left = AtomicU64::new(reads);
    Guarded::new(disk, move |call| match call {
        Call::Read(name @ ObjectName::Container(ContainerKind::Data, ..)) => {
            let left = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if left.is_ok() { Outcome::Made } else { Outcome::Refused(failure(name)) }
        }
        _ => Outcome::Made,
    })
}

/// The story: an outage during a check was recorded as the loss of all that it kept from being read.
#[test]
fn a_place_that_is_away_or_refuses_is_never_taken_for_damage() {
    let scene = scene(2);
    let options = CheckOptions::reading(ReadData::All).with_record(Some("user".into()));
    let failures: [(Failure, &str); 2] = [(unavailable, "check the network"), (refused, "check the credentials")];
    for (failure, advice) in failures {
        let mut reads = 0;
        loop {
            let sandbox = scene.sandbox.at(failing_after(reads, scene.disk.clone(), failure));
            match check::check(&sandbox.repository(), &options, &resources()) {
                Ok(report) if report.findings.is_empty() => break,
                // A refusal may concern one object: the others are looked at.
                Ok(report) => {
                    let is_told = |finding: &Finding| finding.help == Help::LookAfterPlace;
                    assert!(advice == "check the credentials" && report.findings.iter().any(is_told), "{report:?}");
                }
                Err(error) => assert!(error.to_string().contains(advice), "{error} after {reads} reads"),
            }
            assert!(scene.sandbox.manifest().damaged.is_empty(), "after {reads} reads");
            reads += 1;
        }
        assert!(reads > 2, "indexes were opened and containers read");
    }
}

/// Asks to stop once so many containers were read.
struct Impatient(AtomicU64);

impl Observer for Impatient {
    fn advance(&self, _: u64, bytes: u64) {
        if bytes > 0 {
            // It stays at nothing: who asked to stop goes on asking.
            let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn what_was_read_before_an_interrupt_counts() {
    let scene = scene(20);
    let options = remembering(&scene).with_max_age(Some(DAY)).with_max_duration(Some(DAY));
    let impatient = Arc::new(Impatient(AtomicU64::new(20)));
    let error = check::check(&scene.sandbox.repository(), &options, &resources().with_observer(impatient))
        .expect_err("interrupted");
    assert!(matches!(error, EngineError::Interrupted));
    assert_eq!(run(&scene.sandbox, &options).containers_fresh, 16, "the group that was read whole");
}

fn sampling(files: usize, seed: u64) -> CheckOptions {
    let sample = RestoreSample::new(files, seed, "host".into());
    CheckOptions::reading(ReadData::None).with_restore_sample(Some(sample)).with_record(Some("user".into()))
}

#[test]
fn a_sample_is_restored_into_nothing_and_compared_with_the_source() {
    let mut scene = Scene::new();
    for number in 0..10 {
        scene.sandbox.write(&format!("file{number}"), &noise(number, 50_000));
    }
    scene.backup();
    let report = run(&scene.sandbox, &sampling(4, 1));
    assert_eq!((report.sample.len(), report.findings.len()), (4, 0));
    assert!(report.sample.iter().all(|file| file.outcome == SampleOutcome::SameAsSource), "{:?}", report.sample);
    assert_eq!(run(&scene.sandbox, &sampling(4, 1)).sample, report.sample, "the same seed draws the same files");
    assert_ne!(run(&scene.sandbox, &sampling(4, 2)).sample, report.sample);
    assert_eq!(run(&scene.sandbox, &sampling(100, 1)).sample.len(), 10, "all, where there are fewer");

    // A source that was changed, or is gone, is no witness.
    scene.sandbox.write("file3", &noise(33, 50_000));
    scene.sandbox.remove("file4");
    let outcomes: Vec<_> = run(&scene.sandbox, &sampling(100, 1)).sample.into_iter().map(|file| file.outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == SampleOutcome::Sound).count(), 2);

    // One that decayed unseen is.
    let path = scene.sandbox.source().join("file5");
    let modified = std::fs::metadata(&path).expect("it").modified().expect("a time");
    let mut bytes = noise(5, 50_000);
    bytes[40_000] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    std::fs::File::options().write(true).open(&path).expect("it").set_modified(modified).expect("a time");
    let report = run(&scene.sandbox, &sampling(100, 1));
    assert_eq!(report.findings.len(), 1);
    assert!(report.findings[0].what.contains("40000"), "{:?}", report.findings);
    assert!(scene.sandbox.manifest().damaged.is_empty());
}

#[test]
fn damage_that_a_sample_meets_is_an_error_and_recorded() {
    let mut scene = Scene::new();
    scene.sandbox.write("file", &noise(1, 300_000));
    scene.backup();
    let before = scene.sandbox.manifest();
    let record = before.containers.iter().find(|record| record.kind == ContainerKind::Data).expect("data");
    let repository = scene.sandbox.repository();
    let reader = ContainerReader::open(repository.storage(), repository.keys(), before.series, record).expect("opens");
    let offset = reader.index().regions()[0].offset + 50;
    assert!(scene.disk.damage(&record.object_name(before.series), Damage::Flip { offset, mask: 1 }));
    let report = run(&scene.sandbox, &sampling(10, 7));
    assert!(matches!(report.sample[0].outcome, SampleOutcome::Wrong { .. }));
    assert_eq!(report.findings.len(), 1);
    assert_eq!(scene.sandbox.manifest().damaged.len(), record.chunk_count());
}
