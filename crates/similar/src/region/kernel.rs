//! The calls to the zstd library, made safe: plain frames of a text alone, frames of the end of a slice with its begin
//! as prefix, and frames written from sequences that were found elsewhere.
//!
//! Prefix and text lie in one slice because zstd then treats them as one: its loops for a past that lies elsewhere are
//! slower (see `delta.rs`). Contexts are reused; a prefix is referred to for one call only.

#![allow(unsafe_code)]

use super::levels::Tables;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::ptr::NonNull;
pub(super) use zstd_sys::ZSTD_Sequence as Sequence;
use zstd_sys::ZSTD_cParameter as Parameter;
use zstd_sys::{ZSTD_CCtx, ZSTD_DCtx, ZSTD_ResetDirective, ZSTD_format_e, ZSTD_strategy};

/// `ZSTD_c_format`, `ZSTD_c_blockDelimiters`, `ZSTD_c_repcodeResolution` and `ZSTD_d_format`, by the names the bindings
/// have.
const BLOCK_DELIMITERS: Parameter = Parameter::ZSTD_c_experimentalParam11;
const REPEATED_OFFSETS: Parameter = Parameter::ZSTD_c_experimentalParam19;
const C_FORMAT: Parameter = Parameter::ZSTD_c_experimentalParam2;
const D_FORMAT: zstd_sys::ZSTD_dParameter = zstd_sys::ZSTD_dParameter::ZSTD_d_experimentalParam1;

/// `ZSTD_CONTENTSIZE_UNKNOWN` and `ZSTD_CONTENTSIZE_ERROR`, which the bindings have as negative numbers.
const UNKNOWN_CONTENT: u64 = u64::MAX;
const BAD_HEADER: u64 = u64::MAX - 1;

/// The most bytes that a block of a frame can hold.
pub(super) const BLOCK_BYTES_MAX: usize = 128 << 10;

/// A complaint of the library, in its words.
pub(super) type Complaint = &'static str;

/// The complaint about a context that was not made.
const NO_MEMORY: Complaint = "not enough memory";

/// A compressor of one kind of frames: plain ones, or prefixed ones without magic number, content size and checksum.
pub(super) struct Compressor(NonNull<ZSTD_CCtx>);

// SAFETY: a context is memory of its own without ties to a thread; `&mut self` is needed for all that changes it.
unsafe impl Send for Compressor {}
// SAFETY: there is nothing to do with `&Compressor`.
unsafe impl Sync for Compressor {}

impl Compressor {
    /// A compressor for [`compress_plain`](Self::compress_plain) at one of zstd's levels; it takes the nearest for one
    /// beyond them, and its own default for 0.
    pub(super) fn plain(level: i32) -> Result<Self, Complaint> {
        let mut compressor = Self::allocate()?;
        compressor.set_level(level);
        Ok(compressor)
    }

    /// A compressor for [`compress`](Self::compress) at one of zstd's levels.
    ///
    /// # Panics
    /// If memory runs out.
    pub(super) fn prefixed(level: i32) -> Self {
        let mut compressor = Self::magicless();
        compressor.set_level(level);
        compressor
    }

    /// A compressor for [`write`](Self::write). The strategy decides how blocks are written (tables of its own, the
    /// last ones, or the format's are compared exactly), no search: tables are as small as can be.
    ///
    /// # Panics
    /// If memory runs out.
    pub(super) fn writer() -> Self {
        let mut compressor = Self::magicless();
        compressor.set(Parameter::ZSTD_c_strategy, ZSTD_strategy::ZSTD_lazy as u32);
        compressor.set_tables(Tables { hash_log: 6, chain_log: 6, word_bytes: 4 });
        compressor.set(BLOCK_DELIMITERS, 1);
        compressor.set(REPEATED_OFFSETS, 1);
        compressor
    }

    fn allocate() -> Result<Self, Complaint> {
        // SAFETY: no conditions; null is given where memory ran out.
        NonNull::new(unsafe { zstd_sys::ZSTD_createCCtx() }).map(Self).ok_or(NO_MEMORY)
    }

    fn magicless() -> Self {
        let mut compressor = Self::allocate().expect("memory for a zstd context");
        compressor.set(C_FORMAT, ZSTD_format_e::ZSTD_f_zstd1_magicless as u32);
        compressor.set(Parameter::ZSTD_c_contentSizeFlag, 0);
        compressor.set(Parameter::ZSTD_c_checksumFlag, 0);
        compressor
    }

    fn set(&mut self, parameter: Parameter, value: impl TryInto<i32>) {
        let value = value.try_into().ok().expect("a small number");
        // SAFETY: the context lives; unknown values give an error.
        let code = unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.0.as_ptr(), parameter, value) };
        check(code).expect("values of ours");
    }

    /// Chooses the sizes of tables for the frames to come.
    pub(super) fn set_tables(&mut self, tables: Tables) {
        let Tables { hash_log, chain_log, word_bytes } = tables;
        self.reset();
        self.set(Parameter::ZSTD_c_hashLog, hash_log);
        self.set(Parameter::ZSTD_c_chainLog, chain_log);
        self.set(Parameter::ZSTD_c_minMatch, word_bytes);
    }

    /// Chooses one of zstd's levels for the frames to come.
    pub(super) fn set_level(&mut self, level: i32) {
        self.set(Parameter::ZSTD_c_compressionLevel, level);
    }

    /// Chooses a window of this logarithm for the frames to come.
    pub(super) fn set_window(&mut self, window_log: u32) {
        self.set(Parameter::ZSTD_c_windowLog, window_log);
    }

    /// Begins a frame with a window of this logarithm.
    fn begin(&mut self, window_log: u32) {
        self.reset();
        self.set_window(window_log);
    }

    /// Ends the frame before, so that parameters can be set.
    fn reset(&mut self) {
        // SAFETY: the context lives.
        let code = unsafe { zstd_sys::ZSTD_CCtx_reset(self.0.as_ptr(), ZSTD_ResetDirective::ZSTD_reset_session_only) };
        check(code).expect("sessions can always be reset");
    }

    /// Compresses `text` alone into `out`, whose content is replaced.
    pub(super) fn compress_plain(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Complaint> {
        out.clear();
        // SAFETY: no conditions.
        out.reserve(unsafe { zstd_sys::ZSTD_compressBound(text.len()) });
        // SAFETY: the context lives, the text is readable and `out` writable for the lengths given.
        let code = unsafe {
            zstd_sys::ZSTD_compress2(
                self.0.as_ptr(),
                out.as_mut_ptr().cast(),
                out.capacity(),
                text.as_ptr().cast(),
                text.len(),
            )
        };
        let bytes = check(code)?;
        // SAFETY: so many bytes were written.
        unsafe { out.set_len(bytes) };
        Ok(())
    }

    /// Compresses `whole[prefix_bytes..]`, with what lies before as prefix, into `out`, whose content is replaced.
    ///
    /// # Panics
    /// If memory runs out, or `whole` is shorter than the prefix.
    pub(super) fn compress(&mut self, window_log: u32, whole: &[u8], prefix_bytes: usize, out: &mut Vec<u8>) {
        self.begin(window_log);
        let (prefix, text) = whole.split_at(prefix_bytes);
        // SAFETY: the context lives, the prefix is readable for the length given; it is referred to by the next frame
        // only, which is finished, or given up, before this function returns.
        let code = unsafe { zstd_sys::ZSTD_CCtx_refPrefix(self.0.as_ptr(), prefix.as_ptr().cast(), prefix.len()) };
        sound(check(code).and_then(|_| self.compress_plain(text, out)));
    }

    /// Writes `text` as these sequences into `out`, whose content is replaced. A block ends with a sequence of no
    /// length. Offsets may reach beyond the begin of the text, into a prefix that only the decoder sees.
    ///
    /// # Panics
    /// If memory runs out, or the sequences are not those of a text of that length in blocks of at most the window and
    /// [`BLOCK_BYTES_MAX`].
    pub(super) fn write(&mut self, window_log: u32, sequences: &[Sequence], text: &[u8], out: &mut Vec<u8>) {
        let block_bytes = BLOCK_BYTES_MAX.min(1 << window_log);
        assert!(describe(sequences, block_bytes, text.len()), "sequences of another text");
        self.begin(window_log);
        out.clear();
        // SAFETY: no conditions.
        out.reserve(unsafe { zstd_sys::ZSTD_compressBound(text.len()) });
        // SAFETY: the context lives, sequences and text are readable and `out` is writable for the lengths given. The
        // library reads literals from the text where sequences say they lie: inside of it, as was just asserted. It
        // reads nothing at offsets.
        let code = unsafe {
            zstd_sys::ZSTD_compressSequences(
                self.0.as_ptr(),
                out.as_mut_ptr().cast(),
                out.capacity(),
                sequences.as_ptr(),
                sequences.len(),
                text.as_ptr().cast(),
                text.len(),
            )
        };
        let bytes = sound(check(code));
        // SAFETY: so many bytes were written.
        unsafe { out.set_len(bytes) };
    }
}

/// Unwraps the result of compressing with a prefix.
///
/// # Panics
/// If the library complains: there was room for the worst case and parameters are sound, so memory ran out.
fn sound<T>(result: Result<T, Complaint>) -> T {
    result.unwrap_or_else(|complaint| panic!("zstd cannot compress: {complaint}"))
}

/// Tells whether sequences, each of 4 bytes at least, add up to blocks and blocks to a text.
fn describe(sequences: &[Sequence], block_bytes: usize, text_bytes: usize) -> bool {
    let (mut all, mut block) = (0, 0);
    for sequence in sequences {
        let Sequence { offset, litLength, matchLength, .. } = *sequence;
        block += litLength as usize + matchLength as usize;
        if matchLength == 0 {
            if offset != 0 || block > block_bytes {
                return false;
            }
            all += block;
            block = 0;
        } else if offset == 0 || matchLength < 4 || block > block_bytes {
            return false;
        }
    }
    all == text_bytes && block == 0
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: made by `ZSTD_createCCtx`, freed once.
        unsafe { zstd_sys::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

/// A decompressor of one kind of frames.
pub(super) struct Decompressor(NonNull<ZSTD_DCtx>);

// SAFETY: as for `Compressor`.
unsafe impl Send for Decompressor {}
// SAFETY: as for `Compressor`.
unsafe impl Sync for Decompressor {}

impl Decompressor {
    /// A decompressor of plain frames.
    pub(super) fn plain() -> Result<Self, Complaint> {
        // SAFETY: no conditions; null is given where memory ran out.
        NonNull::new(unsafe { zstd_sys::ZSTD_createDCtx() }).map(Self).ok_or(NO_MEMORY)
    }

    /// A decompressor of deltas' frames.
    pub(super) fn prefixed() -> Result<Self, Complaint> {
        let decompressor = Self::plain()?;
        // SAFETY: the context lives; unknown values give an error.
        let code = unsafe {
            zstd_sys::ZSTD_DCtx_setParameter(
                decompressor.0.as_ptr(),
                D_FORMAT,
                ZSTD_format_e::ZSTD_f_zstd1_magicless as i32,
            )
        };
        check(code).map(|_| decompressor)
    }

    /// Decompresses a frame of at most `text_bytes` into `text`, whose content is replaced, with these bytes as prefix.
    pub(super) fn decompress(
        &mut self,
        prefix: &[u8],
        payload: &[u8],
        text_bytes: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), Complaint> {
        text.clear();
        text.reserve_exact(text_bytes);
        let context = self.0.as_ptr();
        if !prefix.is_empty() {
            // SAFETY: the context lives, and the prefix is readable; only the frame below refers to it.
            check(unsafe { zstd_sys::ZSTD_DCtx_refPrefix(context, prefix.as_ptr().cast(), prefix.len()) })?;
        }
        // SAFETY: the context lives, the payload is readable and the text writable for the lengths given.
        let code = unsafe {
            zstd_sys::ZSTD_decompressDCtx(
                context,
                text.as_mut_ptr().cast(),
                text_bytes,
                payload.as_ptr().cast(),
                payload.len(),
            )
        };
        let bytes = check(code)?;
        // SAFETY: so many bytes were written.
        unsafe { text.set_len(bytes) };
        Ok(())
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: made by `ZSTD_createDCtx`, freed once.
        unsafe { zstd_sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

/// The tables that zstd would choose at this level, unless one of them holds a tree.
pub(super) fn usual_tables(level: i32, prefix_bytes: usize, text_bytes: usize) -> Option<Tables> {
    // SAFETY: no conditions.
    let usual = unsafe { zstd_sys::ZSTD_getCParams(level, text_bytes as u64, prefix_bytes) };
    let is_tree = usual.strategy as u32 >= ZSTD_strategy::ZSTD_btlazy2 as u32;
    (!is_tree).then_some(Tables { hash_log: usual.hashLog, chain_log: usual.chainLog, word_bytes: usual.minMatch })
}

/// The length of its text that a plain frame's header states, bytes; `None` if it states none.
pub(super) fn content_bytes(payload: &[u8]) -> Result<Option<u64>, Complaint> {
    // SAFETY: the payload is readable for its length.
    match unsafe { zstd_sys::ZSTD_getFrameContentSize(payload.as_ptr().cast(), payload.len()) } {
        UNKNOWN_CONTENT => Ok(None),
        BAD_HEADER => Err("it does not begin with the header of a frame"),
        bytes => Ok(Some(bytes)),
    }
}

/// The window that a payload's header asks for, bytes.
pub(super) fn window_bytes(payload: &[u8]) -> Result<u64, Complaint> {
    let mut header = core::mem::MaybeUninit::uninit();
    // SAFETY: the header is writable, the payload readable for its length.
    let code = unsafe {
        zstd_sys::ZSTD_getFrameHeader_advanced(
            header.as_mut_ptr(),
            payload.as_ptr().cast(),
            payload.len(),
            ZSTD_format_e::ZSTD_f_zstd1_magicless,
        )
    };
    match check(code)? {
        // SAFETY: 0 says that it is written.
        0 => Ok(unsafe { header.assume_init() }.windowSize),
        _ => Err("it ends inside its header"),
    }
}

/// A number of the library, or its complaint.
fn check(code: usize) -> Result<usize, Complaint> {
    // SAFETY: no conditions; names are static, and end with a zero.
    unsafe {
        if zstd_sys::ZSTD_isError(code) == 0 {
            return Ok(code);
        }
        Err(CStr::from_ptr(zstd_sys::ZSTD_getErrorName(code)).to_str().unwrap_or("an error without a name"))
    }
}
