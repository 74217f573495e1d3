//! Says how much of a file's new version its old one saves: chunks of 16 KiB, for each new one the likest old one by
//! sketches, all that are alike encoded as one region delta.
//! `cargo run --release -p siltstone-similar --example versions OLD NEW`

use siltstone_similar::index::{Fit, Index};
use siltstone_similar::region::{Level, REGION_BYTES_MAX, RegionDecoder, RegionEncoder};
use siltstone_similar::sketch::{Shape, by_name};
use std::collections::BTreeSet;
use std::error::Error;

const CHUNK_BYTES: usize = 16 << 10;
const REGION_CHUNKS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [old, new] = &paths[..] else { return Err("name an old file and a new one".into()) };
    let (old, new) = (std::fs::read(old)?, std::fs::read(new)?);
    let old: Vec<&[u8]> = old.chunks(CHUNK_BYTES).collect();

    let shape = Shape::DEFAULT;
    let sketcher = by_name("odess-plus", shape)?;
    let mut index = Index::new(Fit::Best, old.len().max(1), shape.features(), 1);
    for (number, chunk) in (0..).zip(&old) {
        if let Some(sketch) = sketcher.sketch(chunk) {
            index.insert(number, &sketch);
        }
    }

    let (mut encoder, mut decoder) = (RegionEncoder::new(Level::Fast)?, RegionDecoder::new());
    let (mut plain_bytes, mut delta_bytes, mut payload) = (0, 0, Vec::new());
    for text in new.chunks(REGION_CHUNKS * CHUNK_BYTES) {
        let likest = |chunk| index.find(&sketcher.sketch(chunk)?);
        let numbers: BTreeSet<u64> = text.chunks(CHUNK_BYTES).filter_map(likest).map(|likest| likest.number).collect();
        let bases = numbers.iter().map(|number| Ok(old[usize::try_from(*number)?]));
        let bases = bases.collect::<Result<Vec<&[u8]>, std::num::TryFromIntError>>()?;
        assert!(bases.len() * CHUNK_BYTES + text.len() <= REGION_BYTES_MAX);
        encoder.encode_plain(&[text], &mut payload)?;
        plain_bytes += payload.len();
        let codec = encoder.encode(&bases, &[text], &mut payload);
        delta_bytes += payload.len();
        assert_eq!(decoder.decode(codec, &bases, &payload, text.len())?, text);
    }
    println!("{} bytes: {plain_bytes} compressed alone, {delta_bytes} against the old version", new.len());
    Ok(())
}
