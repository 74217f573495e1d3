//! Slots: which secrets open them, what they demand, and that nothing wrong passes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::slot::{COST_BYTES, cost_box};
use super::*;
use crate::config::{ChunkerSettings, Config};
use crate::key_file::KeyFile;
use crate::sealed::HEADER_BYTES;
use crate::secrets::MasterKey;
use crate::storage::ObjectName;
use crate::write_only::WriteOnlyKey;
use crate::{KeyId, RepositoryId, StoreError, Time};

fn unlocked() -> Unlocked {
    Unlocked { slot: KeyId([9; 16]), master: MasterKey::from_bytes([3; 32]), repository: RepositoryId([4; 16]) }
}

fn label() -> KeyLabel {
    KeyLabel { created: Time { seconds: 1_700_000_000, nanoseconds: 5 }, host: "granite".into(), user: "ada".into() }
}

fn full(slot: &KeySlot, password: &[u8]) -> Option<Unlocked> {
    match slot.open(password).unwrap()? {
        SlotSecret::Full(unlocked) => Some(unlocked),
        SlotSecret::WriteOnly(_) => None,
    }
}

fn write_only_key() -> WriteOnlyKey {
    let chunker = ChunkerSettings { name: "lagged".into(), min_bytes: 64, average_bytes: 128, max_bytes: 256 };
    let config = Config::new(unlocked().repository, chunker, Time::default(), unlocked().slot);
    unlocked().keys().write_only("home", &config).unwrap()
}

fn write_only_slot() -> Vec<u8> {
    let sealed = (&label(), &unlocked().keys());
    KeySlot::create_write_only(KeyId([9; 16]), &write_only_key(), b"pw", Argon2Cost::TEST, sealed).unwrap()
}

fn slot(password: &[u8]) -> Vec<u8> {
    KeySlot::create(&unlocked(), password, Argon2Cost::TEST, &label()).unwrap()
}

#[test]
fn a_slot_opens_with_its_password_only() {
    let slot = KeySlot::parse(KeyId([9; 16]), &slot(b"correct horse\n")).unwrap();
    let opened = full(&slot, b"correct horse\n").unwrap();
    assert_eq!(opened.master.bytes(), unlocked().master.bytes());
    assert_eq!(opened.repository, unlocked().repository);
    assert_eq!(slot.label(&opened.keys()).unwrap(), label());
    assert_eq!(slot.cost(), Some(Argon2Cost::TEST));
    for wrong in [&b"correct horse"[..], b"", b"Correct horse\n", b"correct horse\n\0"] {
        assert!(slot.open(wrong).unwrap().is_none());
    }
}

#[test]
fn an_empty_password_works() {
    let slot = KeySlot::parse(KeyId([9; 16]), &slot(b"")).unwrap();
    assert!(slot.open(b"").unwrap().is_some() && slot.open(b" ").unwrap().is_none());
}

#[test]
fn a_slot_of_a_key_file_has_no_cost_and_opens_with_its_line_only() {
    let (line, other) = (KeyFile::random().unwrap().line(), KeyFile::random().unwrap().line());
    let object = slot(line.as_bytes());
    let parsed = KeySlot::parse(KeyId([9; 16]), &object).unwrap();
    assert_eq!(parsed.cost(), None);
    let opened = full(&parsed, line.as_bytes()).unwrap();
    assert_eq!(opened.master.bytes(), unlocked().master.bytes());
    assert_eq!(parsed.label(&opened.keys()).unwrap(), label());
    for wrong in [other.as_bytes(), b"pw", b""] {
        assert!(parsed.open(wrong).unwrap().is_none());
    }
    assert!(matches!(parsed.open(&line.as_bytes()[..40]), Err(StoreError::KeyFile)));
    let of_password = KeySlot::parse(KeyId([9; 16]), &slot(b"pw")).unwrap();
    assert!(of_password.open(line.as_bytes()).unwrap().is_none());
}

#[test]
fn a_slot_whose_cost_was_taken_away_opens_with_nothing() {
    let mut object = slot(b"pw");
    object[HEADER_BYTES..HEADER_BYTES + COST_BYTES].copy_from_slice(&cost_box(None, &[0; 16]));
    let planted = KeySlot::parse(KeyId([9; 16]), &object).unwrap();
    assert!(planted.open(b"pw").unwrap().is_none());
    assert!(planted.open(KeyFile::random().unwrap().line().as_bytes()).unwrap().is_none());
}

#[test]
fn a_slot_does_not_open_under_another_name() {
    let slot = KeySlot::parse(KeyId([8; 16]), &slot(b"pw")).unwrap();
    assert!(slot.open(b"pw").unwrap().is_none());
}

#[test]
fn a_planted_cost_is_refused_before_it_is_paid() {
    let mut object = slot(b"pw");
    for (cost, word) in [
        (Argon2Cost { memory_kib: u32::MAX, ..Argon2Cost::TEST }, "memory"),
        (Argon2Cost { passes: 65, ..Argon2Cost::TEST }, "passes"),
        (Argon2Cost { lanes: 1 << 20, ..Argon2Cost::TEST }, "lanes"),
        (Argon2Cost { memory_kib: 7, ..Argon2Cost::TEST }, "Argon2"),
        (Argon2Cost { lanes: 0, ..Argon2Cost::TEST }, "Argon2"),
    ] {
        object[HEADER_BYTES..HEADER_BYTES + COST_BYTES].copy_from_slice(&cost_box(Some(cost), &[0; 16]));
        let error = KeySlot::parse(KeyId([9; 16]), &object).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("keys/"), "{error}");
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_an_error_naming_the_slot() {
    let try_all = |object: &[u8]| -> Result<KeyLabel, StoreError> {
        let slot = KeySlot::parse(KeyId([9; 16]), object)?;
        slot.open(b"pw")?.ok_or(StoreError::Misplaced { object: ObjectName::Key(slot.id()).to_string() })?;
        slot.label(&unlocked().keys())
    };
    for object in [slot(b"pw"), write_only_slot()] {
        every_flip_and_cut_fails(&object, try_all);
    }
}

fn every_flip_and_cut_fails(object: &[u8], try_all: impl Fn(&[u8]) -> Result<KeyLabel, StoreError>) {
    assert!(try_all(object).is_ok());
    for at in 0..object.len() {
        let mut flipped = object.to_vec();
        flipped[at] ^= 1 << (at % 8);
        let flip = try_all(&flipped).unwrap_err();
        let cut = try_all(&object[..at]).unwrap_err();
        for error in [flip, cut] {
            assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error:?}");
            assert!(error.to_string().contains("keys/09"), "{error}");
        }
    }
}

#[test]
fn the_slot_of_a_write_only_client_gives_its_key_and_no_master_key() {
    let slot = KeySlot::parse(KeyId([9; 16]), &write_only_slot()).unwrap();
    let Some(SlotSecret::WriteOnly(key)) = slot.open(b"pw").unwrap() else { panic!("another secret") };
    assert_eq!(*key, write_only_key());
    assert!(slot.open(b"pW").unwrap().is_none());
    assert_eq!(slot.label(&unlocked().keys()).unwrap(), label());
    assert!(matches!(slot.label(&key.keys()), Err(StoreError::WriteOnly { .. })));
}

#[test]
fn a_slot_does_not_tell_how_long_the_series_name_is() {
    let key = |name: &str| WriteOnlyKey { series_name: name.to_owned(), ..write_only_key() };
    let bytes = |name: &str| key(name).encode().unwrap().len();
    assert_eq!(bytes("a"), bytes("a name of forty letters or thereabouts, ok"));
    assert!(matches!(key(&"x".repeat(40_000)).encode(), Err(StoreError::Limit { .. })));
}

#[test]
fn slots_are_padded_and_never_alike() {
    let (one, two) = (slot(b"pw"), slot(b"pw"));
    assert_ne!(one[HEADER_BYTES..], two[HEADER_BYTES..]);
    assert_eq!(one.len() as u64, crate::pad::padded(one.len() as u64));
}
