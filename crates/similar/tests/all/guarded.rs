//! Nothing outside the chunk is touched: every form of every method runs on bytes that end where an inaccessible page
//! begins, and on bytes that begin where one ends. Whatever reads further ends the process.

use crate::common::{forms, random_bytes};
use siltstone_simd::guarded::Guarded;
use siltstone_similar::sketch::{METHODS, Shape};

/// Every length up to several blocks, then some around pages.
const LENGTHS_ALL: usize = 300;
const LENGTHS_LARGER: [usize; 8] = [511, 512, 513, 1500, 4095, 4096, 4097, 20_000];

#[test]
fn sketches_touch_nothing_outside_their_chunk() {
    let len = LENGTHS_LARGER[LENGTHS_LARGER.len() - 1];
    let few = random_bytes("few", len).iter().map(|byte| byte & 3).collect();
    for data in [random_bytes("guarded", len), few, vec![0xEE; len]] {
        let (beginning, ending) = (Guarded::beginning(&data), Guarded::ending(&data));
        for method in METHODS {
            for isa in forms(method) {
                let sketcher = method.make(Shape::DEFAULT, isa);
                for len in (0..=LENGTHS_ALL).chain(LENGTHS_LARGER) {
                    assert_eq!(
                        sketcher.sketch(&beginning[..len]),
                        sketcher.sketch(&data[..len]),
                        "{} {isa}",
                        method.name
                    );
                    let end = &ending[ending.len() - len..];
                    assert_eq!(
                        sketcher.sketch(end),
                        sketcher.sketch(&data[data.len() - len..]),
                        "{} {isa}",
                        method.name
                    );
                }
            }
        }
    }
}
