//! Nothing outside the slice is touched: every form of everything runs on bytes that end where an inaccessible page
//! begins, and on bytes that begin where one ends. Whatever reads further ends the process.

use crate::common::{forms, lengths, random_bytes, sizes};
use siltstone_chunk::{ALGORITHMS, Chunker, Fingerprinter, Isa, Sizes};
use siltstone_simd::guarded::Guarded;

/// Every length up to several vectors, then some around blocks and pages.
const LENGTHS_ALL: usize = 300;
const LENGTHS_LARGER: [usize; 9] = [511, 512, 513, 1023, 1500, 4095, 4096, 4097, 20_000];

/// Bytes of each kind that leads to other loops: ends are found early, late, or never.
fn kinds() -> [Vec<u8>; 4] {
    let len = LENGTHS_LARGER[LENGTHS_LARGER.len() - 1];
    let few = random_bytes("few", len).iter().map(|byte| byte & 3).collect();
    [random_bytes("guarded", len), few, vec![0; len], (0..len).map(|i| (i / 50).to_le_bytes()[0]).collect()]
}

/// Calls `each` with the first and the last bytes of the data, in all lengths: the first with a guard before them, the
/// last with one behind.
fn beside_guards(data: &[u8], mut each: impl FnMut(&[u8])) {
    let (beginning, ending) = (Guarded::beginning(data), Guarded::ending(data));
    for len in (0..=LENGTHS_ALL).chain(LENGTHS_LARGER) {
        each(&beginning[..len]);
        each(&ending[ending.len() - len..]);
    }
}

#[test]
fn chunkers_touch_nothing_outside_their_slice() {
    let all_sizes = [sizes(64, 150, 300), Sizes::unlimited(128).unwrap(), Sizes::unlimited(1000).unwrap()];
    for data in kinds() {
        for algorithm in ALGORITHMS {
            for (sizes, isa) in
                all_sizes.iter().flat_map(|sizes| forms(algorithm).into_iter().map(move |isa| (*sizes, isa)))
            {
                let chunker = algorithm.make(sizes, &[5; 32], isa);
                beside_guards(&data, |slice| assert_all_is_cut(&chunker, slice));
            }
        }
    }
}

fn assert_all_is_cut(chunker: &dyn Chunker, slice: &[u8]) {
    let mut cut_bytes = 0;
    chunker.cut_all(slice, &mut |length| cut_bytes += length);
    assert_eq!(cut_bytes, slice.len(), "{}", chunker.name());
    assert_eq!(lengths(chunker, slice).iter().sum::<usize>(), slice.len(), "{}", chunker.name());
}

#[test]
fn fingerprints_touch_nothing_outside_their_chunks() {
    let key = [6; 32];
    let lengths = (0..=130).chain((1..=17).flat_map(|leaves| leaves * 1024 - 1..=leaves * 1024 + 1));
    let data = random_bytes("fingerprints", 20 << 10);
    let guarded: Vec<Guarded> =
        lengths.flat_map(|len| [Guarded::beginning(&data[..len]), Guarded::ending(&data[..len])]).collect();
    let chunks: Vec<&[u8]> = guarded.iter().map(|guarded| &**guarded).collect();
    let want: Vec<[u8; 32]> = chunks.iter().map(|chunk| *blake3::keyed_hash(&key, chunk).as_bytes()).collect();
    for isa in Isa::available() {
        let mut found = Vec::new();
        Fingerprinter::new(&key, isa).fingerprints(&chunks, &mut found);
        let wrong = (0..chunks.len()).find(|i| found[*i] != want[*i]);
        assert!(wrong.is_none(), "{isa}: a chunk of {:?} bytes", wrong.map(|i| chunks[i].len()));
    }
}
