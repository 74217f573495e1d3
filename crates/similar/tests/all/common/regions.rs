//! Helpers of the tests of regions: regions of every kind, and the lines of the golden file.

use super::pairs::{self, any_data, any_edit, edited};
use proptest::prelude::*;
use siltstone_similar::region::{Codec, Level, RegionDecoder, RegionEncoder, RegionError};

/// A region: its bases and its members.
#[derive(Clone, Debug)]
pub struct Region {
    pub bases: Vec<Vec<u8>>,
    pub members: Vec<Vec<u8>>,
}

impl Region {
    pub fn bases(&self) -> Vec<&[u8]> {
        self.bases.iter().map(Vec::as_slice).collect()
    }

    pub fn members(&self) -> Vec<&[u8]> {
        self.members.iter().map(Vec::as_slice).collect()
    }

    pub fn text(&self) -> Vec<u8> {
        self.members.concat()
    }

    /// Encodes the region.
    pub fn encoded(&self, encoder: &mut RegionEncoder) -> (Codec, Vec<u8>) {
        let mut payload = vec![1, 2, 3];
        let codec = encoder.encode(&self.bases(), &self.members(), &mut payload);
        (codec, payload)
    }

    /// Decodes a payload with the region's bases.
    pub fn decoded(&self, codec: Codec, payload: &[u8], text_bytes: usize) -> Result<Vec<u8>, RegionError> {
        RegionDecoder::new().decode(codec, &self.bases(), payload, text_bytes).map(<[u8]>::to_vec)
    }
}

pub fn encoder(level: Level) -> RegionEncoder {
    RegionEncoder::new(level).expect("a level")
}

/// Chunks, changes to some of them, and what is new.
pub fn any_region() -> impl Strategy<Value = Region> {
    let bases = prop::collection::vec(any_data(4000), 0..5);
    let edits = prop::collection::vec((any::<u8>(), prop::collection::vec(any_edit(), 0..6)), 0..6);
    (bases, edits, any_data(1000)).prop_map(|(bases, edits, new)| {
        let member = |(base, edits): &(u8, Vec<_>)| {
            let base = bases.get(usize::from(*base) % (bases.len() + 1)).cloned().unwrap_or_default();
            edits.iter().fold(base, edited)
        };
        let mut members: Vec<Vec<u8>> = edits.iter().map(member).collect();
        members.push(new);
        Region { bases, members }
    })
}

/// Path of the golden file.
pub fn golden_path() -> String {
    format!("{}/tests/golden/regions.txt", env!("CARGO_MANIFEST_DIR"))
}

/// The regions there are: level, then a pair as the deltas of chunks have it, of which the base is cut in three and the
/// target in two.
pub const CASES: [&str; 20] = [
    "fast random same 0",
    "fast random same 1",
    "fast random same 100",
    "fast random same 300000",
    "fast random unrelated 100",
    "fast random few 8192",
    "fast random few 500000",
    "fast random moved 8192",
    "fast random moved 600000",
    "fast random doubled 4000",
    "fast random many 1000",
    "fast zeros few 8192",
    "fast zeros same 400000",
    "fast counter many 2000",
    "fast counter few 300000",
    "fast bits shortened 4096",
    "1 random few 200000",
    "3 counter moved 20000",
    "12 random many 900",
    "19 bits shortened 3000",
];

/// The region of a case.
pub fn region(case: &str) -> Region {
    let (_, pair) = case.split_once(' ').expect("a level and a pair");
    let (base, target) = pairs::golden::pair(pair);
    let cut = |data: &[u8], parts: usize| -> Vec<Vec<u8>> {
        data.chunks(data.len().div_ceil(parts).max(1)).map(<[u8]>::to_vec).collect()
    };
    Region { bases: cut(&base, 3), members: cut(&target, 2) }
}

/// The line of a case, which it begins with: then codec, length of the text, BLAKE3 of the text, and the payload.
pub fn line(case: &str) -> String {
    let level = match case.split(' ').next() {
        Some("fast") => Level::Fast,
        number => Level::Zstd(number.and_then(|number| number.parse().ok()).expect("a level")),
    };
    let region = region(case);
    let (codec, payload) = region.encoded(&mut encoder(level));
    let hexadecimal = payload.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let shown = if payload.is_empty() { "-" } else { &hexadecimal };
    let text = region.text();
    format!("{case} {codec:?} {} {} {shown}", text.len(), &blake3::hash(&text).to_hex()[..32])
}
