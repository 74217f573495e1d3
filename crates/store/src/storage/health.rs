//! State of writing after failures: after a failed put nothing more is written, for what reached the place is unknown
//! to the layers above.

use super::StorageError;

/// Tells writers whether writing may go on.
#[derive(Default, Debug)]
pub struct WriteHealth(State);

#[derive(Default, Debug)]
enum State {
    #[default]
    Sound,
    /// A write failed and nobody was told yet.
    Failed(StorageError),
    Poisoned,
}

impl WriteHealth {
    /// Returns true while no write has failed.
    pub fn is_sound(&self) -> bool {
        matches!(self.0, State::Sound)
    }

    /// Notes a failed write. The first failure stays.
    pub fn fail(&mut self, error: StorageError) {
        if self.is_sound() {
            self.0 = State::Failed(error);
        }
    }

    /// Stops all further writing; the failure was told already.
    pub fn poison(&mut self) {
        self.0 = State::Poisoned;
    }

    /// Refuses after a failure.
    ///
    /// # Errors
    /// The first caller is told the failure itself, later ones [`StorageError::Poisoned`]. That the writer was
    /// overtaken ([`StorageError::Swept`]) is told to every caller: it is no fault of the place.
    pub fn check(&mut self) -> Result<(), StorageError> {
        match std::mem::replace(&mut self.0, State::Poisoned) {
            State::Sound => {
                self.0 = State::Sound;
                Ok(())
            }
            State::Failed(StorageError::Swept { name }) => {
                self.0 = State::Failed(StorageError::Swept { name });
                Err(StorageError::Swept { name })
            }
            State::Failed(error) => Err(error),
            State::Poisoned => Err(StorageError::Poisoned),
        }
    }
}
