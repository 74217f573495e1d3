//! Where chunks end, a second time: straight from the definitions, byte by byte, sharing nothing with `siltstone_chunk`
//! but the sizes of windows. What is timed is held against it on the first bytes of the data. Hash-based chunkers are
//! left out, but for those that are another way to the cuts of a simpler one.

use super::cuts::Digest;
use super::method::{LIMITED, Method};
use super::papers::{PaperForm, limited, wide_window};
use anyhow::Result;
use siltstone_chunk::{Ae, AeOpt2, Extreme, Isa, Maxp, Ram, Sizes, Value};

/// Bytes compared.
const PREFIX_BYTES: usize = 1 << 20;

/// Function that gives the end of the first chunk of some bytes.
type Cut = Box<dyn Fn(&[u8]) -> usize>;

/// Says in what the scalar form of a method differs from its definition on the first bytes of `data`; nothing if it
/// does not, or if no second definition is at hand.
///
/// # Errors
/// If the method does not take this expected size.
pub(super) fn difference(method: Method, expected: u32, data: &[u8]) -> Result<Option<String>> {
    let prefix = &data[..data.len().min(PREFIX_BYTES)];
    let found = Digest::of(&*method.chunker(expected, Isa::SCALAR)?, prefix);
    let (other, wanted) = match (twin(method.name()), definition(method.name(), expected)?) {
        (Some(twin), _) => (twin.name(), Digest::of(&*twin.chunker(expected, Isa::SCALAR)?, prefix)),
        (None, Some(cut)) => ("its definition", digest(&cut, prefix)),
        (None, None) => return Ok(None),
    };
    Ok((found != wanted).then(|| format!("{} at {expected} bytes cuts elsewhere than {other}", method.name())))
}

/// Returns [`difference`], or else where the method's best form cuts other than the scalar one on those bytes.
///
/// # Errors
/// If the method does not take this expected size.
pub(super) fn difference_of_best(method: Method, expected: u32, data: &[u8]) -> Result<Option<String>> {
    if let Some(difference) = difference(method, expected, data)? {
        return Ok(Some(difference));
    }
    let prefix = &data[..data.len().min(PREFIX_BYTES)];
    let of = |isa| anyhow::Ok(Digest::of(&*method.chunker(expected, isa)?, prefix));
    let best = method.best();
    let is_same = of(best)? == of(Isa::SCALAR)?;
    Ok((!is_same).then(|| format!("the form of {} for {best} cuts elsewhere than the scalar one", method.name())))
}

/// The method that has the same cuts, found in another way.
fn twin(name: &str) -> Option<Method> {
    if let Some(twin) = PaperForm::ALL.into_iter().find(|form| form.name() == name).and_then(PaperForm::twin) {
        return Method::by_name(twin);
    }
    let twin = match name {
        "ss-gear" => "gear",
        "ss-crc" => "crc",
        "ae-opt1" => "ae-max",
        "ae8-opt1" => "ae8-max",
        _ => return None,
    };
    Method::by_name(twin)
}

fn definition(name: &'static str, expected: u32) -> Result<Option<Cut>> {
    let sizes = Sizes::unlimited(expected)?;
    let limits = if LIMITED.contains(&name) { limited(expected)? } else { sizes };
    let ae = |extreme, value| {
        let window = Ae::new(name, extreme, value, sizes, Isa::SCALAR).window();
        Some(Box::new(move |data: &[u8]| asymmetric(data, window, extreme, value, usize::MAX)) as Cut)
    };
    let opt2 = |value, divisor| {
        let window = Ae::new(name, Extreme::Max, value, sizes, Isa::SCALAR).window();
        let lest = AeOpt2::new(name, value, divisor, sizes, Isa::SCALAR).lest();
        Some(Box::new(move |data: &[u8]| asymmetric(data, window, Extreme::Max, value, lest)) as Cut)
    };
    Ok(match name {
        "fixed" => Some(Box::new(move |data: &[u8]| data.len().min(expected as usize))),
        "ae-max" => ae(Extreme::Max, Value::Byte),
        "ae-min" => ae(Extreme::Min, Value::Byte),
        "ae8-max" => ae(Extreme::Max, Value::EightBytes),
        "ae8-min" => ae(Extreme::Min, Value::EightBytes),
        "ae-opt2-half" => opt2(Value::Byte, 2),
        "ae-opt2-quarter" => opt2(Value::Byte, 4),
        "ae-opt2-eighth" => opt2(Value::Byte, 8),
        "ae8-opt2-half" => opt2(Value::EightBytes, 2),
        "ae8-opt2-quarter" => opt2(Value::EightBytes, 4),
        "ae8-opt2-eighth" => opt2(Value::EightBytes, 8),
        "maxp" | "maxp-t" => {
            let window = Maxp::new(name, limits, Isa::SCALAR).window();
            Some(Box::new(move |data: &[u8]| local_maximum(up_to(data, limits), window)))
        }
        "ram" | "ram-t" => {
            let window = Ram::new(name, limits, Isa::SCALAR).window();
            Some(Box::new(move |data: &[u8]| rapid(up_to(data, limits), window)))
        }
        "maxp8" => Some(Box::new(move |data: &[u8]| local_maximum_wide(data, wide_window(sizes)))),
        _ => None,
    })
}

fn digest(cut: &Cut, data: &[u8]) -> Digest {
    let (mut rest, mut digest) = (data, Digest::default());
    while !rest.is_empty() {
        let length = cut(rest);
        digest.add(length);
        rest = &rest[length..];
    }
    digest
}

/// AE, TC'17, Algorithms 1 and 3; positions are counted from 1 as there.
fn asymmetric(data: &[u8], window: usize, extreme: Extreme, value: Value, lest: usize) -> usize {
    let value = |position: usize| match (value, extreme) {
        (Value::Byte, _) => data.get(position - 1).map(|byte| u64::from(*byte)),
        (Value::EightBytes, _) => data[position - 1..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
    };
    // The least value is the greatest of all complements.
    let value = |position| value(position).map(|value| if extreme == Extreme::Min { !value } else { value });
    let Some(mut greatest) = value(1) else { return data.len() };
    let (mut least, mut at) = (greatest, 1);
    for position in 2..=data.len() {
        let Some(now) = value(position) else { return data.len() };
        least = least.min(now);
        if now > greatest {
            (greatest, at) = (now, position);
        } else if position == at + window || position == lest && least == greatest {
            return position;
        }
    }
    data.len()
}

/// A byte that exceeds all others in the window on each side of it ends the chunk.
fn local_maximum(data: &[u8], window: usize) -> usize {
    let is_peak = |at: usize| {
        let others = data[at - window..at].iter().chain(&data[at + 1..=at + window]);
        others.into_iter().all(|other| *other < data[at])
    };
    (window..data.len().saturating_sub(window)).find(|at| is_peak(*at)).map_or(data.len(), |at| at + 1)
}

/// The stretch in which a chunk ends at the latest.
fn up_to(data: &[u8], sizes: Sizes) -> &[u8] {
    &data[..data.len().min(sizes.max())]
}

/// Cuts over the numbers that eight bytes make.
fn local_maximum_wide(data: &[u8], window: usize) -> usize {
    let count = data.len().saturating_sub(7);
    let value = |at: usize| data[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let is_peak = |at: usize| (at - window..=at + window).all(|other| other == at || value(other) < value(at));
    (window..count.saturating_sub(window)).find(|at| is_peak(*at)).map_or(data.len(), |at| at + 1)
}

/// The first byte after the window that reaches the largest in it ends the chunk.
fn rapid(data: &[u8], window: usize) -> usize {
    let mut largest = 0;
    for (at, byte) in data.iter().enumerate() {
        if at < window {
            largest = largest.max(*byte);
        } else if *byte >= largest {
            return at + 1;
        }
    }
    data.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;

    fn mixed() -> Vec<u8> {
        let mut sequence = Sequence::new(8);
        let text: Vec<u8> = sequence.bytes(60_000).iter().map(|byte| b'a' + byte % 26).collect();
        [sequence.bytes(100_000), vec![0; 30_000], text, [5, 9].repeat(9000), sequence.bytes(999)].concat()
    }

    #[test]
    fn every_method_cuts_by_its_definition() {
        let data = mixed();
        for method in Method::timed().chain(Method::all()) {
            for expected in [1 << 10, 3000] {
                assert_eq!(difference(method, expected, &data).unwrap(), None);
            }
        }
    }

    #[test]
    fn definitions_tell_algorithms_apart() {
        let data = mixed();
        let of = |name| digest(&definition(name, 1000).unwrap().unwrap(), &data);
        let names =
            ["fixed", "ae-max", "ae-min", "ae8-max", "ae8-min", "ae-opt2-half", "ae-opt2-eighth", "maxp", "ram"];
        for (index, name) in names.iter().enumerate() {
            assert!(names[..index].iter().all(|other| of(other) != of(name)), "{name}");
        }
        assert!(definition("rabin", 1000).unwrap().is_none());
    }
}
