//! 8x8 matrices over GF(2): linear maps from bytes to bytes.

/// Maps a byte to a byte linearly over GF(2): `apply(a ^ b) == apply(a) ^ apply(b)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// `columns[j]` is where bit j of the input goes.
    columns: [u8; 8],
    /// Outputs of input nibbles: `low[n]` for `n`, `high[n]` for `n << 4`. For byte shuffles.
    pub(crate) low: [u8; 16],
    pub(crate) high: [u8; 16],
    /// The rows as `GF2P8AFFINEQB` wants them: byte `7 - i` is the mask of the input bits that bit i of the output
    /// sums.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) rows: u64,
}

impl Matrix {
    /// The map that takes the byte `1 << j` to `columns[j]`.
    pub const fn from_columns(columns: [u8; 8]) -> Self {
        let (mut low, mut high) = ([0; 16], [0; 16]);
        let mut nibble = 0;
        while nibble < 16 {
            low[nibble as usize] = apply(columns, nibble);
            high[nibble as usize] = apply(columns, nibble << 4);
            nibble += 1;
        }
        let (mut rows, mut bit) = (0, 0);
        while bit < 8 {
            let (mut mask, mut column) = (0, 0);
            while column < 8 {
                mask |= (columns[column] as u64 >> bit & 1) << column;
                column += 1;
            }
            rows |= mask << (8 * (7 - bit));
            bit += 1;
        }
        Self { columns, low, high, rows }
    }

    /// The image of one byte.
    pub const fn apply(&self, byte: u8) -> u8 {
        apply(self.columns, byte)
    }
}

/// The `rows` of the matrix that shifts a byte up by `bits`: each row of the identity, as many places further.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const fn shifted_up(bits: i32) -> u64 {
    IDENTITY >> (8 * bits)
}

/// The `rows` of the matrix that shifts a byte down by `bits`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const fn shifted_down(bits: i32) -> u64 {
    IDENTITY << (8 * bits)
}

#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
const IDENTITY: u64 = 0x0102_0408_1020_4080;

const fn apply(columns: [u8; 8], byte: u8) -> u8 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 8 {
        if byte >> bit & 1 == 1 {
            sum ^= columns[bit];
        }
        bit += 1;
    }
    sum
}
