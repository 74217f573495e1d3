//! Key slots: the master key wrapped by a password, once per password. Any slot opens the repository; changing a
//! password touches its slot and nothing else.
//!
//! ```text
//! header | Argon2id cost and salt, plain, with checksum | sealed {master key, repository id} | sealed label
//! ```
//! The wrapping key is Argon2id of the password, with the cost written in the slot, so that costs can grow with
//! machines. A slot without a cost is opened by the line of a [`KeyFile`], which nobody can guess. A wrong password
//! shows in the header's key commitment before anything is decrypted. The label (who made the slot, when, where) is
//! sealed under the metadata key: listing slots needs an open repository, and a stranger learns nothing from them. With
//! it is sealed a hash of all that comes before, so that a check finds damage of a slot whose password it does not
//! know.
//!
//! The slot of a write-only client is an object of another kind in the same place. It wraps a [`WriteOnlyKey`] in place
//! of the master key, of a length that stands before it.
//!
//! [`KeyFile`]: crate::key_file::KeyFile
//! [`WriteOnlyKey`]: crate::write_only::WriteOnlyKey
//!
//! | file | what |
//! |---|---|
//! | `cost.rs` | the cost of guessing a password |
//! | `slot.rs` | a slot: made, read, opened |
//! | `unlock.rs` | a password tried on the slots of a repository |

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod cost;
mod kernel;
mod slot;
#[cfg(test)]
mod tests;
mod unlock;

pub use cost::Argon2Cost;
pub use slot::{KeyLabel, KeySlot, SlotSecret, Unlocked};
pub(crate) use unlock::read_slot;
pub use unlock::{OpenOptions, Opened, slot_ids, unlock};
