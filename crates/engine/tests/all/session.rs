//! The example of the README's, run.

#[path = "../../examples/backup_and_restore.rs"]
mod backup_and_restore;

#[test]
fn the_example_backs_up_restores_and_forgets() {
    let folder = tempfile::tempdir().expect("a folder");
    backup_and_restore::run(folder.path()).expect("it runs");
    let restored = std::fs::read_to_string(folder.path().join("restored/notes.txt")).expect("restored");
    assert_eq!(restored, "the first version");
    assert!(!folder.path().join("source/restored").exists());
}
