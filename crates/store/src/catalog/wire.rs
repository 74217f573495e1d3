//! The small change of metadata chunks: integers of variable length and byte strings with their length before them.
//!
//! Integers are LEB128: seven bits a byte, the low ones first, the high bit set on all bytes but the last. Only the
//! shortest form of a number is read, so that equal values have equal bytes. Signed numbers are zigzag-coded first. A
//! reader never allocates more than the bytes it was given.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

/// The reason why bytes do not decode; the caller adds which chunk they are from.
pub(crate) type Fault = &'static str;

/// Appends an unsigned number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Appends a signed number.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_number(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends the difference of two numbers, modulo 2^64, as a signed number.
pub(crate) fn put_difference(out: &mut Vec<u8>, value: u64, from: u64) {
    put_signed(out, value.wrapping_sub(from).cast_signed());
}

/// Appends a length and so many bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what the `put_` functions wrote.
pub(crate) struct WireReader<'b> {
    rest: &'b [u8],
}

impl<'b> WireReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of bytes left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.rest.split_first().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Fault> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err("a number exceeds 64 bits");
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err("a number is longer than need be") } else { Ok(value) };
            }
        }
        Err("a number exceeds 64 bits")
    }

    pub(crate) fn number32(&mut self) -> Result<u32, Fault> {
        u32::try_from(self.number()?).map_err(|_| "a number exceeds 32 bits")
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Fault> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// A number written as its difference from another.
    pub(crate) fn difference(&mut self, from: u64) -> Result<u64, Fault> {
        Ok(from.wrapping_add(self.signed()?.cast_unsigned()))
    }

    pub(crate) fn fixed32(&mut self) -> Result<u32, Fault> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// A byte string with its length before it.
    pub(crate) fn bytes(&mut self) -> Result<&'b [u8], Fault> {
        let length = self.number()?;
        let length = usize::try_from(length).map_err(|_| "a length exceeds the bytes left")?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or("a length exceeds the bytes left")?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Checks that nothing follows.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        if self.is_empty() { Ok(()) } else { Err("bytes follow its end") }
    }
}

/// A 64-bit hash of few bits to decide where node and recipe lists are cut: the finalizer of `MurmurHash3` (Appleby,
/// public domain). Cuts are no secret and no check, so that speed and a written-down definition are all that is asked
/// of it.
pub(crate) const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_read(number: u64, signed: i64, from: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_signed(&mut out, signed);
            put_difference(&mut out, number, from);
            put_bytes(&mut out, &bytes);
            let mut reader = WireReader::new(&out);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.difference(from), Ok(number));
            prop_assert_eq!(reader.bytes(), Ok(&bytes[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn a_number_has_one_form_only(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = WireReader::new(&bytes);
            if let Ok(number) = reader.number() {
                let mut again = Vec::new();
                put_number(&mut again, number);
                prop_assert_eq!(bytes.strip_suffix(reader.rest), Some(&again[..]));
            }
        }
    }

    #[test]
    fn numbers_at_the_edges_are_read() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(WireReader::new(&out).number(), Ok(number));
        }
        assert!(WireReader::new(&[0xff; 10]).number().is_err());
        assert!(WireReader::new(&[0x80, 0]).number().is_err());
        assert!(WireReader::new(&[0xff; 9]).number().is_err());
    }
}
