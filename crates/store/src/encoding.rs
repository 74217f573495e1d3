//! Structured bytes: postcard with nothing left over, and a failure that names the object.

use crate::error::StoreError;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// The postcard form of `value`, at the end of `bytes`.
pub(crate) fn append<T: Serialize>(value: &T, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    postcard::to_extend(value, bytes)
        .map_err(|error| StoreError::Machine { operation: "encoding a structure", reason: error.to_string() })
}

/// The postcard form of `value`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    append(value, Vec::new())
}

/// The value at the start of `bytes`, and what follows it.
pub(crate) fn take<'b, T: DeserializeOwned>(
    object: &dyn fmt::Display,
    part: &str,
    bytes: &'b [u8],
) -> Result<(T, &'b [u8]), StoreError> {
    postcard::take_from_bytes(bytes).map_err(|error| StoreError::damaged(object, part, error.to_string()))
}

/// The value that `bytes` hold, with not a byte more.
pub(crate) fn decode<T: DeserializeOwned>(
    object: &dyn fmt::Display,
    part: &str,
    bytes: &[u8],
) -> Result<T, StoreError> {
    match take(object, part, bytes)? {
        (value, []) => Ok(value),
        (_, rest) => Err(StoreError::damaged(object, part, format!("{} bytes too many", rest.len()))),
    }
}
