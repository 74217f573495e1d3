//! The key schedule of AES-128 (FIPS 197, section 5.2), for vectors that encrypt.

/// The round keys of one AES-128 key.
#[derive(Clone)]
pub struct AesKeys {
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) rounds: [[u8; 16]; 11],
}

impl AesKeys {
    /// Expands the key.
    pub fn new(key: &[u8; 16]) -> Self {
        let mut words = [[0; 4]; 44];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            word.copy_from_slice(bytes);
        }
        let mut round_constant = 1;
        for i in 4..44 {
            let mut word: [u8; 4] = words[i - 1];
            if i % 4 == 0 {
                word.rotate_left(1);
                word = word.map(substitute);
                word[0] ^= round_constant;
                round_constant = double(round_constant);
            }
            words[i] = core::array::from_fn(|k| words[i - 4][k] ^ word[k]);
        }
        Self { rounds: core::array::from_fn(|round| core::array::from_fn(|k| words[4 * round + k / 4][k % 4])) }
    }
}

/// Times x in the field of AES.
const fn double(a: u8) -> u8 {
    a << 1 ^ if a & 0x80 == 0 { 0 } else { 0x1B }
}

/// The S-box: the inverse in the field, and an affine map. Slow, for the schedule alone.
fn substitute(byte: u8) -> u8 {
    let inverse = (0..=255).find(|other| product(byte, *other) == 1).unwrap_or(0);
    (0..5).fold(0x63, |sum, turns| sum ^ inverse.rotate_left(turns))
}

fn product(a: u8, b: u8) -> u8 {
    let (mut sum, mut power) = (0, a);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= power;
        }
        power = double(power);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_keys_are_those_of_the_standard() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let rounds = AesKeys::new(&key).rounds;
        assert_eq!(rounds[0], key);
        assert_eq!(u128::from_be_bytes(rounds[1]), 0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605);
        assert_eq!(u128::from_be_bytes(rounds[10]), 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6);
    }
}
