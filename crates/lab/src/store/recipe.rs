//! Recipe of a version: its chunks in order. On disk a number of one to three bytes each for the step from the
//! last chunk's number, the length, and the distance to the base (0 for none), all compressed with the rest of the
//! metadata.

use anyhow::{Context, Result};

/// Number of a chunk: the order in which it was first stored.
pub(super) type Number = u32;

/// A chunk of a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    /// Which.
    pub(super) number: Number,
    /// Its length, bytes.
    pub(super) bytes: u32,
    /// Base it is stored against, if it is a delta.
    pub(super) base: Option<Number>,
}

/// The bytes of a recipe.
pub(super) fn encode(items: &[Item]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(items.len() * 4);
    let mut expected = 0;
    for item in items {
        let step = i64::from(item.number) - expected;
        expected = i64::from(item.number) + 1;
        write(&mut encoded, (step << 1 ^ step >> 63).cast_unsigned());
        write(&mut encoded, item.bytes.into());
        write(&mut encoded, item.base.map_or(0, |base| u64::from(item.number - base)));
    }
    encoded
}

/// The recipe of these bytes.
///
/// # Errors
/// If they are none.
pub(super) fn decode(mut encoded: &[u8]) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut expected = 0_i64;
    while !encoded.is_empty() {
        let step = read(&mut encoded)?;
        let number = expected.wrapping_add((step >> 1).cast_signed() ^ -((step & 1).cast_signed()));
        expected = number + 1;
        let number = Number::try_from(number).context("a chunk's number in a recipe is out of range")?;
        let bytes = u32::try_from(read(&mut encoded)?).context("a chunk's length in a recipe is out of range")?;
        let base = match read(&mut encoded)? {
            0 => None,
            distance => {
                let distance = Number::try_from(distance).ok().and_then(|distance| number.checked_sub(distance));
                Some(distance.context("a base in a recipe is out of range")?)
            }
        };
        items.push(Item { number, bytes, base });
    }
    Ok(items)
}

/// Seven bits in each byte, the lowest first, the highest bit set if more follow.
fn write(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    into.push(value.to_le_bytes()[0]);
}

fn read(from: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first().context("a recipe ends in the middle of a number")?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    anyhow::bail!("a number in a recipe has too many bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was_and_is_short_where_numbers_follow_one_another() {
        let item = |number, base| Item { number, bytes: 9000 + number % 7, base };
        let items = [item(0, None), item(1, Some(0)), item(9_000_000, Some(1)), item(2, None), item(3, Some(2))];
        assert_eq!(decode(&encode(&items)).unwrap(), items);
        let many: Vec<_> = (0..1000).map(|number| item(number, None)).collect();
        assert_eq!(encode(&many).len(), 4000);
        assert_eq!(decode(&encode(&many)).unwrap(), many);
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let encoded = encode(&[Item { number: 300, bytes: 70_000, base: Some(1) }]);
        for end in 1..encoded.len() {
            assert!(decode(&encoded[..end]).is_err());
        }
        assert!(decode(&[1, 1, 0]).is_err(), "a number below 0");
    }
}
