//! Times that cannot be trusted yet: a file changed again within the same tick of the clock has the same time.

use siltstone_store::Time;
use siltstone_store::catalog::Metadata;

/// A file whose inode changed so shortly before it was read may be changed again without its time telling so: the clock
/// that stamps inodes ticks every 1 to 10 ms. It is read again next time.
const TICK_NANOSECONDS: i128 = 20_000_000;
/// Tick of file systems that keep whole seconds, or even ones (FAT).
const COARSE_TICK_NANOSECONDS: i128 = 2_000_000_000;

/// Forgets the change time of an inode changed within the last tick before it was opened, so that the next backup reads
/// the file again.
pub(super) fn distrust_fresh(metadata: &mut Metadata, opened: Time) {
    let nanoseconds = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let age = nanoseconds(opened) - nanoseconds(metadata.changed);
    let tick = if metadata.changed.nanoseconds == 0 { COARSE_TICK_NANOSECONDS } else { TICK_NANOSECONDS };
    if age < tick {
        metadata.changed = Time::default();
    }
}
