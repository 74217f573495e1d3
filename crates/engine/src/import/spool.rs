//! An archive as a file that can be read anywhere.

use super::TarBytes;
use super::member::Fault;
use crate::Observer;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

/// Bytes copied at once.
const PIECE_BYTES: usize = 256 << 10;
/// Longest beginning that tells how a file is compressed.
const MAGIC_BYTES: usize = 6;

/// How an archive is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compression {
    None,
    Gzip,
    Zstd,
    /// By a program that does it better than a library here would.
    Other(&'static str),
}

impl Compression {
    fn of(magic: &[u8]) -> Self {
        let known: [(&[u8], Self); 6] = [
            (b"\x1f\x8b", Self::Gzip),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
            (b"\xfd7zXZ\0", Self::Other("xz")),
            (b"BZh", Self::Other("bzip2")),
            (b"\x04\x22\x4d\x18", Self::Other("lz4")),
            (b"LZIP", Self::Other("lzip")),
        ];
        known.iter().find(|(begin, _)| magic.starts_with(begin)).map_or(Self::None, |(_, compression)| *compression)
    }
}

/// The archive itself if it is a file that is not compressed, else a nameless copy of it in the folder `scratch`.
///
/// # Errors
/// It cannot be read, copied or decompressed.
pub(super) fn readable(bytes: TarBytes, scratch: &Path, observer: &dyn Observer) -> Result<File, Fault> {
    let failed = |error: io::Error| Fault::new(0, error.to_string());
    let (mut from, file): (Box<dyn Read + Send>, _) = match bytes {
        TarBytes::Stream(stream) => (stream, None),
        TarBytes::File(file) => {
            let mut again = file.try_clone().map_err(failed)?;
            again.rewind().map_err(failed)?;
            (Box::new(again), Some(file))
        }
    };
    let mut magic = Vec::new();
    from.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic).map_err(failed)?;
    let compression = Compression::of(&magic);
    if let (Some(file), Compression::None) = (file, compression) {
        return Ok(file);
    }
    let whole = BufReader::with_capacity(PIECE_BYTES, io::Cursor::new(magic).chain(from));
    let plain: Box<dyn Read> = match compression {
        Compression::None => Box::new(whole),
        // Both forms may consist of several parts, one after the other.
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(whole).map_err(failed)?),
        Compression::Other(program) => {
            let reason = format!(
                "it is compressed by {program}; decompress it on the way: {program} -dc FILE | silt import tar -"
            );
            return Err(Fault::new(0, reason));
        }
    };
    copied(plain, scratch, observer)
}

fn copied(mut from: Box<dyn Read>, scratch: &Path, observer: &dyn Observer) -> Result<File, Fault> {
    let local = |at, error: io::Error| Fault::new(at, format!("a copy of it in {}: {error}", scratch.display()));
    let mut copy = tempfile::tempfile_in(scratch).map_err(|error| local(0, error))?;
    let (mut buffer, mut at) = (vec![0; PIECE_BYTES], 0);
    while !observer.is_cancelled() {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                copy.write_all(&buffer[..read]).map_err(|error| local(at, error))?;
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::new(at, error.to_string())),
        }
    }
    Ok(copy)
}
