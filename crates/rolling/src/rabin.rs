//! Rabin: the fingerprint of the last bytes, as a polynomial over GF(2).
//!
//! Source: Rabin, Fingerprinting by Random Polynomials, 1981. The definition, which is format; W is the window in
//! bytes:
//!
//! ```text
//! M(x)  the window as a polynomial: its first byte's highest bit is the coefficient of x^(8 W - 1), its last byte's lowest of 1
//! P(x)  x^64 + 0x243F6A8885A30907, the bits being the coefficients of x^63 .. 1
//! h     the 64 coefficients of M mod P
//! ```
//!
//! Reasons:
//! 1. **P is irreducible**, as Rabin's bound on collisions asks; a test proves it by Ben-Or's criterion. It is the
//!    first such polynomial of degree 64 whose low coefficients are at or above the first 64 binary digits of pi's
//!    fraction: nobody chose it. Polynomials of few terms would do for collisions, but their highest coefficients hang
//!    on few bits.
//! 2. **Two tables.** Appending a byte multiplies by x^8 and reduces what overflows (`ENTERING`, x^64 times a byte);
//!    the byte that leaves has by then been multiplied by x^(8 W), which `LEAVING` takes back.
//! 3. **Zeros before the begin change nothing**: they add nothing to M.
//!
//! Cost: a shift, two table lookups and three exclusive ors per byte, one lookup and one of these waiting for the byte
//! before.

use crate::RollingHash;

/// P without its x^64.
const POLYNOMIAL: u64 = 0x243F_6A88_85A3_0907;

static ENTERING: [u64; 256] = multiples(64);

/// The fingerprint of so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Rabin<const WINDOW_BYTES: usize>;

impl<const WINDOW_BYTES: usize> Rabin<WINDOW_BYTES> {
    const LEAVING: &'static [u64; 256] = &multiples(8 * WINDOW_BYTES);
}

impl<const WINDOW_BYTES: usize> RollingHash for Rabin<WINDOW_BYTES> {
    const WINDOW_BYTES: usize = WINDOW_BYTES;
    type Value = u64;

    #[inline(always)]
    fn slide(&self, value: u64, leaving: u8, entering: u8) -> u64 {
        let [overflow, ..] = value.to_be_bytes();
        let joined = value << 8 ^ u64::from(entering) ^ Self::LEAVING[usize::from(leaving)];
        joined ^ ENTERING[usize::from(overflow)]
    }
}

/// `b(x) x^exponent mod P` for every byte b.
const fn multiples(exponent: usize) -> [u64; 256] {
    let mut power = 1;
    let mut done = 0;
    while done < exponent {
        power = times_x(power);
        done += 1;
    }
    let mut table = [0; 256];
    let mut byte = 1usize;
    while byte < 256 {
        // A byte that is a power of two takes the next power of x; the others are sums of those.
        if byte.is_power_of_two() {
            table[byte] = power;
            power = times_x(power);
        } else {
            table[byte] = table[byte & (byte - 1)] ^ table[byte & byte.wrapping_neg()];
        }
        byte += 1;
    }
    table
}

/// `value x mod P`.
const fn times_x(value: u64) -> u64 {
    (value << 1) ^ ((value >> 63) * POLYNOMIAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a b mod x^64 + low`.
    fn product(a: u64, b: u64, low: u64) -> u64 {
        (0..64).rev().fold(0, |sum, bit| {
            let doubled = sum << 1 ^ if sum >> 63 == 1 { low } else { 0 };
            doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
        })
    }

    fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
        while b != 0 {
            while a.leading_zeros() <= b.leading_zeros() {
                a ^= b << (b.leading_zeros() - a.leading_zeros());
            }
            (a, b) = (b, a);
        }
        a
    }

    /// Ben-Or: a polynomial of degree n has no factor if it shares none with `x^(2^i) - x` for i in 1 ..= n / 2, which
    /// holds every irreducible polynomial whose degree divides i.
    fn is_irreducible(low: u64) -> bool {
        let x = 2;
        let mut power = x;
        (1..=32).all(|_| {
            power = product(power, power, low);
            greatest_common_divisor(1 << 64 | u128::from(low), u128::from(power ^ x)) == 1
        })
    }

    #[test]
    fn the_criterion_knows_a_product_from_a_prime() {
        assert!(is_irreducible(0b1_1011), "x^64 + x^4 + x^3 + x + 1");
        assert!(!is_irreducible(1), "(x + 1)^64");
        // (x^32 + x^7 + x^3 + x^2 + 1) (x^32 + x^7 + x^6 + x^2 + 1): two large factors.
        let (a, b) = (1u128 << 32 | 0b1000_1101, 1u128 << 32 | 0b1100_0101);
        let whole = (0..=32).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ a << bit);
        assert_eq!(whole >> 64, 1);
        assert!(!is_irreducible((whole & u128::from(u64::MAX)).try_into().unwrap()));
    }

    #[test]
    fn the_polynomial_is_the_first_irreducible_one_from_pi_on() {
        const PI: u64 = 0x243F_6A88_85A3_08D3;
        assert_eq!((PI..=POLYNOMIAL).find(|low| is_irreducible(*low)), Some(POLYNOMIAL));
    }
}
