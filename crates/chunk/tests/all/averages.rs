//! The average on random bytes is the expected size, for every algorithm.

use crate::common::{lengths, random_bytes};
use siltstone_chunk::{ALGORITHMS, Isa};

#[test]
#[allow(clippy::cast_precision_loss)]
fn real_average_is_the_expected_size() {
    // Where processors are emulated, as few bytes as tell a small average.
    let (data_bytes, averages) = if cfg!(target_arch = "x86_64") {
        (64 << 20, &[2 << 10, 4 << 10, 5000, 8 << 10, 16 << 10][..])
    } else {
        (8 << 20, &[1 << 10][..])
    };
    let data = random_bytes("average", data_bytes);
    for algorithm in ALGORITHMS {
        for &expected in averages {
            let sizes = algorithm.usual_sizes(expected).unwrap();
            let count = lengths(&algorithm.make(sizes, &[1; 32], Isa::best()), &data).len();
            let ratio = data.len() as f64 / count as f64 / f64::from(expected);
            assert!((ratio - 1.0).abs() < 0.03, "{}: expected {expected}, found {ratio:.3} times that", algorithm.name);
        }
    }
}
