//! What each sketch finds in real versions, the papers' way: three super-features, the first that fits, bases whole, every delta kept
//! (Finesse, section 5; Odess, section 4.3.1). Deltas are copies and insertions only, without compression inside, as there.
//!
//! ```text
//! DCR   bytes of unique chunks / bytes stored, a detected chunk as its delta, the others as they are
//! DCE   mean over detected chunks of 1 - delta / chunk
//! SCR   detected chunks / chunks that resemble nothing
//! SER   chunks without a sketch / chunks
//! ```

use super::Findings;
use super::versions::{Versions, in_parallel};
use crate::bench::publish::{Row, table_of};
use anyhow::Result;
use serde_json::{Value, json};
use siltstone_chunk::Isa;
use siltstone_lab::data::Data;
use siltstone_lab::statistics::rounded;
use siltstone_lab::table::as_float;
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::sketch::{Grouping, METHODS, Shape, Sketch};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// Average sizes of chunks, bytes.
const AVERAGES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];
/// The row that the others are held against.
const REFERENCE: &str = "ntransform";

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    unique_bytes: u64,
    stored_bytes: u64,
    detected: u64,
    whole: u64,
    unsampled: u64,
    saved_shares: f64,
}

impl Found {
    fn dcr(&self) -> f64 {
        as_float(self.unique_bytes) / as_float(self.stored_bytes)
    }

    fn dce(&self) -> f64 {
        self.saved_shares / as_float(self.detected).max(1.0)
    }

    fn scr(&self) -> f64 {
        as_float(self.detected) / as_float(self.whole).max(1.0)
    }
}

/// Sizes of deltas, each encoded once for all methods.
#[derive(Default)]
struct Deltas(Mutex<HashMap<(usize, usize), u64>>);

impl Deltas {
    fn size(&self, versions: &Versions, base: usize, target: usize) -> Result<u64> {
        if let Some(size) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(base, target)) {
            return Ok(*size);
        }
        let size = super::codecs::copy_insert_bytes(versions.bytes(base), versions.bytes(target))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((base, target), size);
        Ok(size)
    }
}

fn detect(versions: &Versions, sketches: &[Option<Sketch>], grouping: Grouping, deltas: &Deltas) -> Result<Found> {
    let mut index = Index::new(Fit::First(grouping), sketches.len(), Shape::DEFAULT.super_features(), u32::MAX);
    let mut found = Found { unique_bytes: versions.unique_bytes(), ..Found::default() };
    for (number, sketch) in sketches.iter().enumerate() {
        let bytes = versions.bytes(number).len() as u64;
        found.unsampled += u64::from(sketch.is_none());
        match sketch.as_ref().and_then(|sketch| index.find(sketch)) {
            Some(base) => {
                let delta = deltas.size(versions, usize::try_from(base.number)?, number)?;
                found.detected += 1;
                found.stored_bytes += delta;
                found.saved_shares += 1.0 - as_float(delta) / as_float(bytes);
            }
            None => {
                found.whole += 1;
                found.stored_bytes += bytes;
                if let Some(sketch) = sketch {
                    index.insert(number as u64, sketch);
                }
            }
        }
    }
    Ok(found)
}

/// All methods, and Siltstone's own sketch, on all data.
pub(super) fn measure(sources: impl Iterator<Item = Result<Data>>) -> Result<Findings> {
    let mut findings = Findings::default();
    for data in sources {
        let data = data?;
        for average in AVERAGES {
            eprintln!("{}: detection at {} KiB", data.name, average >> 10);
            let versions = Versions::of(&data, average, false)?;
            let deltas = Deltas::default();
            // The last is the sketch made of the chunker's own samples.
            let found = in_parallel(METHODS.len() + 1, |at| {
                let Some(method) = METHODS.get(at) else {
                    return Ok(("samples", detect(&versions, &versions.sketches(), Grouping::Consecutive, &deltas)?));
                };
                let sketcher = method.make(Shape::DEFAULT, Isa::best());
                let sketches: Vec<_> =
                    (0..versions.chunks.len()).map(|number| sketcher.sketch(versions.bytes(number))).collect();
                Ok((method.name, detect(&versions, &sketches, sketcher.grouping(), &deltas)?))
            });
            let found: Vec<(&str, Found)> = found.into_iter().collect::<Result<_>>()?;
            let reference =
                found.iter().find(|(name, _)| *name == REFERENCE).map_or(f64::NAN, |(_, found)| found.dcr());
            let rows: Vec<Row> =
                found.iter().map(|(name, found)| row(&data.name, average, name, found, reference)).collect();
            let table = table_of(&["method", "dcr", "ratio_to_ntransform", "dce", "scr", "ser"], &rows);
            let _ = write!(findings.tables, "\n### Detection, {}, {} KiB\n\n{table}", data.name, average >> 10);
            findings.rows.extend(rows);
        }
        findings.notes.push(format!("detection, {}: {}", data.name, data.description));
    }
    Ok(findings)
}

fn row(data: &str, average: u32, method: &str, found: &Found, reference: f64) -> Row {
    let mut row = Row::new();
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("table", json!("detection"));
    set("data", json!(data));
    set("chunk_bytes", json!(average));
    set("method", json!(method));
    set("dcr", json!(rounded(found.dcr(), 4)));
    set("ratio_to_ntransform", json!(rounded(found.dcr() / reference, 4)));
    set("dce", json!(rounded(found.dce(), 4)));
    set("scr", json!(rounded(found.scr(), 4)));
    set("ser", json!(rounded(as_float(found.unsampled) / as_float(found.detected + found.whole).max(1.0), 6)));
    set("unique_bytes", json!(found.unique_bytes));
    set("stored_bytes", json!(found.stored_bytes));
    row
}
