//! The record of the repository.

use crate::sealing::{KEYS, whole_object};
use siltstone_store::config::Config;
use siltstone_store::sealed::ObjectKind;
use siltstone_store::storage::ObjectName;

/// The number of the record that is made.
pub(crate) const SEQUENCE: u64 = 7;

/// The plain content of a record.
pub(crate) fn config(data: &[u8]) -> bool {
    let object = whole_object(ObjectName::Config(SEQUENCE), ObjectKind::Config, data);
    let Ok(config) = Config::open(&KEYS, SEQUENCE, object) else { return false };
    let again = config.seal(&KEYS).expect("a record that was read can be written");
    assert!(Config::open(&KEYS, SEQUENCE, again).expect("and read again") == config);
    true
}
