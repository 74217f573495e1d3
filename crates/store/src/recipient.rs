//! Sealing objects that their writer cannot open again: key mode 1.
//!
//! ```text
//! writer   e random, E = X25519(e, 9), shared = X25519(e, R)        E is the object's salt; e is dropped
//! reader                               shared = X25519(r, E)        r derives from the master key, R = X25519(r, 9)
//! both     purpose key of this one object = BLAKE3 derive_key(context, shared | E | R | write key)
//! ```
//! The write key is of one series, so what a writer seals for its own series opens under no other one's name. It is
//! symmetric: who finds the recipient's public key alone seals nothing that opens.
//!
//! Cost: two multiplications on the curve for each object written, one for each object opened, some 40 us each.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::header::Salt;
use crate::secrets::PurposeKey;
use aws_lc_rs::agreement::{EphemeralPrivateKey, PrivateKey, PublicKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::rand::SystemRandom;
use zeroize::Zeroizing;

/// Bytes of a public key.
pub(crate) const PUBLIC_BYTES: usize = 32;
const CONTEXT: &str = "siltstone v1 sealed to recipient";

/// The public key of whoever opens the objects.
pub(crate) type Recipient = [u8; PUBLIC_BYTES];

/// Returns the public key of this secret one.
pub(crate) fn public_of(secret: &PurposeKey) -> Result<Recipient, StoreError> {
    private(secret)?.compute_public_key().map_err(|_| refused("making a public key")).and_then(|key| bytes_of(&key))
}

/// Makes the salt and the purpose key of a new object.
pub(crate) fn seal_to(recipient: &Recipient, write: &PurposeKey) -> Result<(Salt, PurposeKey), StoreError> {
    let failed = || refused("making a key for the recipient");
    let ephemeral = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| failed())?;
    let salt: Salt = bytes_of(&ephemeral.compute_public_key().map_err(|_| failed())?)?;
    let peer = UnparsedPublicKey::new(&X25519, recipient);
    let combine = |shared: &[u8]| Ok(combined(shared, &salt, recipient, write));
    let purpose = aws_lc_rs::agreement::agree_ephemeral(ephemeral, peer, failed(), combine)?;
    Ok((salt, purpose))
}

/// Returns the purpose key of an object with this salt; `None` if the salt is no public key that anybody would have.
pub(crate) fn open_with(
    secret: &PurposeKey,
    write: &PurposeKey,
    salt: &Salt,
) -> Result<Option<PurposeKey>, StoreError> {
    let recipient = public_of(secret)?;
    let peer = UnparsedPublicKey::new(&X25519, salt);
    Ok(agree(&private(secret)?, peer, (), |shared| Ok(combined(shared, salt, &recipient, write))).ok())
}

fn combined(shared: &[u8], salt: &Salt, recipient: &Recipient, write: &PurposeKey) -> PurposeKey {
    let material = Zeroizing::new([shared, salt, recipient, write.bytes()].concat());
    PurposeKey::from_bytes(Zeroizing::new(blake3::derive_key(CONTEXT, &material)))
}

fn private(secret: &PurposeKey) -> Result<PrivateKey, StoreError> {
    PrivateKey::from_private_key(&X25519, secret.bytes()).map_err(|_| refused("making a private key"))
}

fn bytes_of(key: &PublicKey) -> Result<[u8; PUBLIC_BYTES], StoreError> {
    key.as_ref().try_into().map_err(|_| refused("making a public key"))
}

fn refused(operation: &'static str) -> StoreError {
    StoreError::Machine { operation, reason: "the curve's library refused".into() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PurposeKey {
        PurposeKey::from_bytes(Zeroizing::new([byte; 32]))
    }

    /// This value is format: a change here makes every object of key mode 1 unreadable.
    #[test]
    fn the_purpose_key_of_an_object_never_changes() {
        let salt = public_of(&key(3)).unwrap();
        let purpose = open_with(&key(1), &key(2), &salt).unwrap().unwrap();
        let hash = blake3::hash(purpose.bytes());
        assert_eq!(hash.to_hex().as_str(), "bcccbb17e666ffb6141f81b6558945104cd473c15507d52a5a2955dcab4b1690");
    }

    #[test]
    fn the_recipient_opens_what_was_sealed_to_it_and_others_do_not() {
        let recipient = public_of(&key(1)).unwrap();
        let (salt, sealed) = seal_to(&recipient, &key(2)).unwrap();
        let open = |secret, write| *open_with(&key(secret), &key(write), &salt).unwrap().unwrap().bytes();
        assert_eq!(open(1, 2), *sealed.bytes());
        assert_ne!(open(9, 2), *sealed.bytes());
        assert_ne!(open(1, 9), *sealed.bytes());
        assert_ne!(seal_to(&recipient, &key(2)).unwrap().0, salt);
    }

    #[test]
    fn a_salt_that_fixes_the_shared_secret_opens_nothing() {
        assert!(open_with(&key(1), &key(2), &[0; 32]).unwrap().is_none());
    }
}
