//! The loss of power on a simulated disk: each pending change meets a fate drawn by a seed.

use super::SimulatedDisk;
use super::content::{Bytes, Change, DiskContent};
use crate::storage::ObjectName;

/// The disk as found when the power comes back.
pub(super) fn after_power_loss(before: &DiskContent, seed: u64) -> DiskContent {
    let mut after = DiskContent {
        durable: before.durable.clone(),
        unreadable: before.unreadable.clone(),
        unfinished: before.unfinished.clone(),
        capacity_bytes: before.capacity_bytes,
        ..DiskContent::default()
    };
    let mut dice = Dice::new(seed);
    for pending in &before.pending {
        match &pending.change {
            Change::Put { bytes, torn } => after.keep_some(pending.name, bytes, dice.fate_of_put(*torn), &mut dice),
            Change::Create { bytes } if dice.happened() => drop(after.durable.insert(pending.name, bytes.clone())),
            Change::Delete if dice.happened() => drop(after.durable.remove(&pending.name)),
            Change::Create { .. } | Change::Delete => {}
        }
    }
    after
}

/// The fate of a pending put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Whole,
    /// A prefix lies under the object's name.
    CutShort,
    /// A prefix, then zeros up to the object's length: the length reached the disk before the bytes did.
    ZeroTail,
    Absent,
    /// Nothing under the object's name, but a temporary file takes up space.
    Unfinished,
}

impl DiskContent {
    fn keep_some(&mut self, name: ObjectName, bytes: &Bytes, fate: Fate, dice: &mut Dice) {
        let cut = dice.below(bytes.len());
        match fate {
            Fate::Absent => {}
            Fate::Unfinished => self.unfinished.push((name, cut as u64)),
            Fate::Whole => drop(self.durable.insert(name, bytes.clone())),
            Fate::CutShort => drop(self.durable.insert(name, bytes.iter().copied().take(cut).collect())),
            Fate::ZeroTail => {
                let kept = bytes.iter().copied().take(cut);
                let zeros = std::iter::repeat_n(0, bytes.len() - cut);
                self.durable.insert(name, kept.chain(zeros).collect());
            }
        }
    }
}

/// Draws fates. Two seeds are not random: one loses everything, one keeps everything.
enum Dice {
    NothingHappened,
    AllHappened,
    /// The state of a `SplitMix64` generator (Steele, Lea, Flood, OOPSLA'14).
    Random(u64),
}

impl Dice {
    fn new(seed: u64) -> Self {
        match seed {
            SimulatedDisk::NOTHING_REACHED => Self::NothingHappened,
            SimulatedDisk::ALL_REACHED => Self::AllHappened,
            _ => Self::Random(seed),
        }
    }

    fn draw(&mut self) -> u64 {
        let Self::Random(state) = self else { return 0 };
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn happened(&mut self) -> bool {
        match self {
            Self::NothingHappened => false,
            Self::AllHappened => true,
            Self::Random(_) => self.draw() & 1 == 1,
        }
    }

    /// A number below `limit`; half of it when nothing is random, 0 for a limit of 0.
    fn below(&mut self, limit: usize) -> usize {
        match self {
            Self::NothingHappened | Self::AllHappened => limit / 2,
            Self::Random(_) => {
                self.draw().checked_rem(limit as u64).map_or(0, |drawn| usize::try_from(drawn).unwrap_or(0))
            }
        }
    }

    fn fate_of_put(&mut self, torn: bool) -> Fate {
        match self {
            Self::NothingHappened => Fate::Absent,
            Self::AllHappened if torn => Fate::CutShort,
            Self::AllHappened => Fate::Whole,
            Self::Random(_) => match self.below(if torn { 4 } else { 8 }) {
                0 => Fate::Absent,
                1 => Fate::Unfinished,
                2 => Fate::CutShort,
                3 => Fate::ZeroTail,
                _ => Fate::Whole,
            },
        }
    }
}
