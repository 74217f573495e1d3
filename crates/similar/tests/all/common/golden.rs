//! The lines of the golden files: the cases of a method, and what a case gives.

use super::random_bytes;
use siltstone_similar::Isa;
use siltstone_similar::sketch::{Grouping, METHODS, SampleSketch, Shape, Sketch, Sketcher};

/// The name of the file of Siltstone's own sketch, whose cases are of hashes instead of bytes.
pub const SAMPLES: &str = "samples";

/// All that have a golden file.
pub fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|method| method.name).chain([SAMPLES])
}

/// Path of the golden file of a method.
pub fn path(name: &str) -> String {
    format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"))
}

/// The cases for a method of that name: method, features, super-features, input, its length.
pub fn cases(name: &str) -> Vec<String> {
    let shapes = ["12 3", "6 2", "32 8", "1 1"];
    let inputs = [
        "golden-1 0",
        "golden-1 1",
        "golden-1 16",
        "golden-1 31",
        "golden-1 32",
        "golden-1 33",
        "golden-2 150",
        "golden-2 1000",
        "golden-3 8192",
        "golden-4 65536",
        "golden-5 100001",
        "zeros 4096",
        "spaces 4096",
        "counter 20000",
        "bits 20000",
    ];
    shapes.iter().flat_map(|shape| inputs.iter().map(move |input| format!("{name} {shape} {input}"))).collect()
}

/// The line of a case, which it begins with: then the first features, BLAKE3 of all features as little-endian u32, and
/// of the super-features as little-endian u64; or that there is none.
pub fn line(case: &str, isa: Isa) -> String {
    let fields: Vec<&str> = case.split_whitespace().take(5).collect();
    let number = |index: usize| fields[index].parse::<usize>().expect("a number");
    let shape = Shape::new(number(1), number(2)).expect("a shape");
    let data = input(fields[3], number(4));
    format!("{} {}", fields.join(" "), sketched(fields[0], shape, &data, isa))
}

fn sketched(name: &str, shape: Shape, data: &[u8], isa: Isa) -> String {
    if name == SAMPLES {
        let mut sketch = SampleSketch::with_isa(shape, isa);
        data.chunks_exact(8).for_each(|word| sketch.add(u64::from_le_bytes(word.try_into().expect("eight bytes"))));
        return sketch.finish().map_or("none".into(), |found| shown(&found, Grouping::Consecutive));
    }
    let method = METHODS.iter().find(|method| method.name == name).expect("a known name");
    let sketcher: Box<dyn Sketcher> = method.make(shape, isa);
    sketcher.sketch(data).map_or("none".into(), |found| shown(&found, sketcher.grouping()))
}

fn shown(sketch: &Sketch, grouping: Grouping) -> String {
    let first: Vec<String> = sketch.features().iter().take(2).map(|feature| format!("{feature:08x}")).collect();
    let features: Vec<u8> = sketch.features().iter().flat_map(|feature| feature.to_le_bytes()).collect();
    let hashes: Vec<u8> = sketch.super_features(grouping).iter().flat_map(|hash| hash.to_le_bytes()).collect();
    let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
    format!("{} {} {}", first.join(" "), digest(&features), digest(&hashes))
}

fn input(name: &str, len: usize) -> Vec<u8> {
    match name {
        "zeros" => vec![0; len],
        "spaces" => vec![b' '; len],
        "counter" => (0u32..).flat_map(u32::to_be_bytes).take(len).collect(),
        "bits" => random_bytes("bits", len).iter().map(|byte| byte & 1).collect(),
        seed => random_bytes(seed, len),
    }
}
