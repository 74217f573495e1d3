//! AE, MAXP and RAM against their definitions, each position tried by itself; and AE against its paper's theory.
#![allow(clippy::cast_possible_truncation)]

use crate::common::{EMULATED, algorithm, any_data, any_sizes, cases, forms, lengths, random_bytes};
use proptest::prelude::*;
use siltstone_chunk::{Ae, Extreme, Isa, Maxp, Ram, Sizes, Value};

/// The values of the positions that have one.
fn values(value: Value, bytes: &[u8]) -> Vec<u64> {
    match value {
        Value::Byte => bytes.iter().map(|byte| u64::from(*byte)).collect(),
        Value::EightBytes => bytes.windows(8).map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap())).collect(),
    }
}

/// TC'17, section 3.1, word for word: the first position whose value is greater than all before it and not less than
/// any in its right window, which lies inside. Least values are greatest ones of the complement.
fn ae(extreme: Extreme, value: Value, window: usize, data: &[u8]) -> Option<usize> {
    let complement = |value: u64| if extreme == Extreme::Max { value } else { !value };
    let values: Vec<u64> = values(value, data).into_iter().map(complement).collect();
    let is_maximum = |at: usize| {
        values[..at].iter().all(|before| *before < values[at])
            && values[at + 1..=at + window].iter().all(|after| *after <= values[at])
    };
    (0..values.len().saturating_sub(window)).find(|at| is_maximum(*at)).map(|at| at + window + 1)
}

/// TC'17, section 3.3: LEST equal values are a chunk.
fn ae_opt2(value: Value, window: usize, lest: usize, data: &[u8]) -> Option<usize> {
    let values = values(value, data);
    let run = values.get(..lest).is_some_and(|run| run.iter().all(|value| *value == run[0]));
    if run { Some(lest) } else { ae(Extreme::Max, value, window, data) }
}

fn maxp(window: usize, min: usize, data: &[u8]) -> Option<usize> {
    let is_peak = |at: usize| {
        let (left, right) = (&data[at - window..at], &data[at + 1..=at + window]);
        left.iter().chain(right).all(|other| *other < data[at])
    };
    (window..data.len().saturating_sub(window)).find(|at| at + 1 >= min && is_peak(*at)).map(|at| at + 1)
}

fn ram(window: usize, data: &[u8]) -> Option<usize> {
    let largest = data.get(..window)?.iter().max()?;
    (window..data.len()).find(|at| data[*at] >= *largest).map(|at| at + 1)
}

/// Returns the first chunk's length by the definition of the algorithm of that name.
fn definition(name: &str, sizes: Sizes, data: &[u8]) -> usize {
    let data = &data[..data.len().min(sizes.max())];
    let Some(searched) = data.get(sizes.min()..) else { return data.len() };
    let value = if name.starts_with("ae8") { Value::EightBytes } else { Value::Byte };
    let extreme = if name.ends_with("min") { Extreme::Min } else { Extreme::Max };
    let window = Ae::new("", extreme, value, sizes, Isa::SCALAR).window();
    let opt2 = |divisor: usize| ae_opt2(value, window, (sizes.expected() / divisor).min(window - 1), searched);
    let cut = match name.trim_start_matches("ae8-").trim_start_matches("ae-") {
        "max" | "min" | "opt1" => ae(extreme, value, window, searched),
        "opt2-half" => opt2(2),
        "opt2-quarter" => opt2(4),
        "opt2-eighth" => opt2(8),
        "ram" => ram(Ram::new("", sizes, Isa::SCALAR).window(), searched),
        "maxp" => {
            let window = Maxp::new("", sizes, Isa::SCALAR).window();
            return maxp(window, sizes.min(), data).unwrap_or(data.len());
        }
        other => unreachable!("{other}"),
    };
    cut.map_or(data.len(), |cut| sizes.min() + cut)
}

const NAMES: [&str; 14] = [
    "ae-max",
    "ae-min",
    "ae8-max",
    "ae8-min",
    "ae-opt1",
    "ae8-opt1",
    "ae-opt2-half",
    "ae-opt2-quarter",
    "ae-opt2-eighth",
    "ae8-opt2-half",
    "ae8-opt2-quarter",
    "ae8-opt2-eighth",
    "maxp",
    "ram",
];

fn assert_is_defined_so(name: &str, sizes: Sizes, data: &[u8]) {
    for isa in forms(algorithm(name)) {
        let chunker = algorithm(name).make(sizes, &[0; 32], isa);
        let mut rest = data;
        while !rest.is_empty() {
            let cut = chunker.cut(rest);
            assert_eq!(cut, definition(name, sizes, rest), "{name} {isa}, {sizes:?}, {} bytes left", rest.len());
            rest = &rest[cut..];
        }
    }
}

#[test]
fn cuts_of_simple_data_are_those_of_the_definitions() {
    let peaks = |distance: usize| (0..5000).map(|i| if i % distance == 0 { 9 } else { (i % 7) as u8 }).collect();
    let mut inputs: Vec<Vec<u8>> = [50, 51, 127, 128, 129, 500].map(peaks).to_vec();
    inputs.extend([vec![0; 5000], vec![255; 5000], b"abc".repeat(1700)]);
    inputs
        .extend([(0..5000u32).map(|i| (i / 20) as u8).collect(), (0..5000u32).rev().map(|i| (i / 20) as u8).collect()]);
    inputs.extend((0..9).map(|len| vec![1; len]));
    for name in NAMES {
        // The definitions are slow. Two sizes are tried where processors are emulated.
        for expected in [128, 255, 160, 1000].into_iter().take(if EMULATED { 2 } else { 4 }) {
            let sizes = Sizes::unlimited(expected).unwrap();
            for data in &inputs {
                assert_is_defined_so(name, sizes, data);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn cuts_are_those_of_the_definitions(sizes in any_sizes(), data in any_data(3000)) {
        for name in NAMES {
            assert_is_defined_so(name, sizes, &data);
        }
    }
}

#[test]
fn maxp_cuts_after_the_peaks_of_the_whole_stream() {
    let data = random_bytes("peaks", 300_000);
    let sizes = Sizes::unlimited(1000).unwrap();
    let window = Maxp::new("maxp", sizes, Isa::best()).window();
    let peaks = (window..data.len() - window)
        .filter(|at| (at - window..=at + window).all(|other| other == *at || data[other] < data[*at]));
    let ends: Vec<usize> = peaks.map(|at| at + 1).chain([data.len()]).collect();
    let mut end = 0;
    let found = lengths(&Maxp::new("maxp", sizes, Isa::best()), &data).into_iter().map(|length| {
        end += length;
        end
    });
    assert_eq!(found.collect::<Vec<_>>(), ends);
}

/// Chunks are so long that the vector form forgets cells more than once within one.
#[test]
fn maxp_finds_peaks_that_lie_far_apart() {
    for expected in [600, 1000, 8 << 10] {
        let sizes = Sizes::unlimited(expected).unwrap();
        let window = Maxp::new("maxp", sizes, Isa::best()).window();
        let mut data: Vec<u8> = (0..300_000u32).map(|i| (i % 7) as u8).collect();
        for at in
            [window, 40_000, 40_000 + window, 90_001, 90_002 + window, 91_003 + 2 * window, 200_000, 299_999 - window]
        {
            data[at] = 9;
        }
        assert_is_defined_so("maxp", sizes, &data);
        assert!(lengths(&Maxp::new("maxp", sizes, Isa::best()), &data).iter().any(|length| *length > 100_000));
    }
}

#[test]
fn no_chunk_of_ae_is_shorter_than_its_window() {
    let data = random_bytes("shortest", 1 << 20);
    for (name, value) in [("ae-max", Value::Byte), ("ae8-max", Value::EightBytes)] {
        let chunker = Ae::new(name, Extreme::Max, value, Sizes::unlimited(2000).unwrap(), Isa::best());
        let found = lengths(&chunker, &data);
        assert!(found[..found.len() - 1].iter().all(|length| *length > chunker.window()));
    }
}

/// A chunk is longer than x windows with the probability of Dickman's function at x. TC'17, Table 4, has `1 / x!` for
/// it, which is never less: long chunks are even rarer than the paper says.
#[test]
#[allow(clippy::cast_precision_loss)]
fn long_chunks_of_ae_are_as_rare_as_theory_says() {
    let sizes = Sizes::unlimited(1024).unwrap();
    let chunker = Ae::new("ae8-max", Extreme::Max, Value::EightBytes, sizes, Isa::best());
    let found = lengths(&chunker, &random_bytes("long", 32 << 20));
    let share = |limit: usize| found.iter().filter(|length| **length > limit).count() as f64 / found.len() as f64;
    for (windows, dickman) in [(1, 1.0), (2, 0.306_85), (3, 0.048_61), (4, 0.004_91)] {
        let found = share(windows * chunker.window());
        assert!((found / dickman - 1.0).abs() < 0.1, "{windows} windows: {found}, not {dickman}");
    }
    for (averages, paper) in [(2, 0.0938), (3, 0.0064), (4, 2.56e-4), (5, 6.85e-6)] {
        assert!(share(averages * 1024) < paper, "{averages} averages");
    }
}
