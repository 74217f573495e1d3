//! zstd alone: all versions in one stream with a long window, and each version against the one before.

use super::Keeper;
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// The level of the program `zstd` unless it is told otherwise.
const LEVEL: i32 = 3;
/// Window of `zstd --long`: 128 MiB.
const WINDOW_LOG: u32 = 27;
/// Widest window that zstd takes.
const WINDOW_LOG_MAX: u32 = 31;
/// Narrowest window asked for.
const WINDOW_LOG_MIN: u32 = 20;
/// Room for what is compressed, before it is counted and forgotten.
const ROOM_BYTES: usize = 1 << 20;

/// All versions in one stream.
pub(super) struct Long {
    context: CCtx<'static>,
    stored: u64,
}

impl Long {
    pub(super) fn create() -> Result<Self> {
        Ok(Self { context: context(WINDOW_LOG)?, stored: 0 })
    }
}

impl Keeper for Long {
    fn name(&self) -> &'static str {
        "zstd --long"
    }

    fn keep(&mut self, _: &Path, bytes: &[u8]) -> Result<()> {
        self.stored += compressed(&mut self.context, bytes, ZSTD_EndDirective::ZSTD_e_flush)?;
        Ok(())
    }

    fn stored(&self) -> Result<u64> {
        Ok(self.stored)
    }
}

/// Each version against the one before.
#[derive(Default)]
pub(super) struct Chain {
    before: Vec<u8>,
    stored: u64,
}

impl Keeper for Chain {
    fn name(&self) -> &'static str {
        "delta chain"
    }

    fn keep(&mut self, _: &Path, bytes: &[u8]) -> Result<()> {
        // The window reaches over both.
        let both = (self.before.len() + bytes.len()).max(1);
        let mut context = context((both.ilog2() + 1).clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX))?;
        context.ref_prefix(&self.before).map_err(failed)?;
        self.stored += compressed(&mut context, bytes, ZSTD_EndDirective::ZSTD_e_end)?;
        drop(context);
        self.before = bytes.to_vec();
        Ok(())
    }

    fn stored(&self) -> Result<u64> {
        Ok(self.stored)
    }
}

fn context<'c>(window_log: u32) -> Result<CCtx<'c>> {
    let mut context = CCtx::try_create().context("zstd gives no context")?;
    let long = CParameter::EnableLongDistanceMatching(true);
    for parameter in [CParameter::CompressionLevel(LEVEL), CParameter::WindowLog(window_log), long] {
        context.set_parameter(parameter).map_err(failed)?;
    }
    Ok(context)
}

/// The number of bytes that these become.
fn compressed(context: &mut CCtx<'_>, bytes: &[u8], end: ZSTD_EndDirective) -> Result<u64> {
    let (mut input, mut room, mut count) = (InBuffer::around(bytes), Vec::with_capacity(ROOM_BYTES), 0);
    loop {
        room.clear();
        let mut output = OutBuffer::around(&mut room);
        let left = context.compress_stream2(&mut output, &mut input, end).map_err(failed)?;
        count += output.pos() as u64;
        if left == 0 && input.pos() == bytes.len() {
            return Ok(count);
        }
    }
}

/// The error that zstd means by this code.
pub(super) fn failed(code: usize) -> anyhow::Error {
    anyhow!("zstd: {}", zstd_safe::get_error_name(code))
}
