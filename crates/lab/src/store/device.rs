//! Devices that are not here, as models: how long the recorded reads and writes of a store would take on them alone.
//! Computing comes on top, and is the same on all.
//!
//! ```text
//! seconds = accesses x access + bytes / transfer
//! ```
//!
//! A container that is read or written is one access, wherever it lies: the model knows of no neighbours. Module
//! `trace` holds it against the disk of this machine.

use super::cache::Reads;
use super::history::mb;
use crate::table::as_float;

/// A device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Device {
    /// Seconds until the first byte of an access.
    pub(super) access_seconds: f64,
    /// Transfer, MB per second.
    pub(super) mb_per_s: f64,
}

/// A hard disk of 7200 revolutions a minute, as MeGA's evaluation has (ATC 2022, section 5.1): 8.5 ms of seek and half
/// a revolution, 150 MB/s. The paper names no figures of its disk; these are usual ones.
pub(super) const HARD_DISK: Device = Device { access_seconds: 0.0085 + 0.5 * 60.0 / 7200.0, mb_per_s: 150.0 };
/// An object store over a network, one request at a time: 50 ms to the first byte, 100 MB/s.
pub(super) const OBJECT_STORE: Device = Device { access_seconds: 0.05, mb_per_s: 100.0 };

impl Device {
    /// Seconds for so many accesses that move so many bytes.
    pub(super) fn seconds(self, accesses: u64, bytes: u64) -> f64 {
        as_float(accesses) * self.access_seconds + mb(bytes) / self.mb_per_s
    }

    /// Seconds for these reads.
    pub(super) fn reading(self, reads: &Reads) -> f64 {
        self.seconds(reads.containers, reads.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::rounded;

    #[test]
    fn a_hard_disk_takes_a_seek_and_half_a_revolution_for_an_access() {
        let reads = Reads { involved: 100, containers: 100, bytes: 150_000_000, ..Reads::default() };
        // 100 x 12.67 ms, and a second of transfer.
        assert_eq!(rounded(HARD_DISK.reading(&reads), 3).to_bits(), 2.267_f64.to_bits());
        assert_eq!(rounded(OBJECT_STORE.reading(&reads), 3).to_bits(), 6.5_f64.to_bits());
        assert_eq!(HARD_DISK.seconds(0, 0).to_bits(), 0.0_f64.to_bits());
    }
}
