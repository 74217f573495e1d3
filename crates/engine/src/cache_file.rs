//! The frame of cache files: what is kept on this machine from one backup to the next, records of one size,
//! authenticated.
//!
//! ```text
//! header    a magic of 8 bytes | version u64 | what the records describe, as each kind of file has it
//! records   of one size each
//! trailer   40 bytes   number of records u64 | MAC [32]: BLAKE3, keyed, of all bytes before it
//! ```
//!
//! Numbers are little-endian. The count stands behind the records because it is known only then. A file is written
//! beside its place and renamed; it is not synced, since one torn by a crash fails its MAC and is only built again. It
//! is verified as a whole when opened: after that it is read through the same open file, which nothing of ours writes
//! to.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Magic and version.
const KIND_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
const TRAILER_BYTES: u64 = 8 + MAC_BYTES as u64;
/// Records read at a time.
const BLOCK_RECORDS: usize = 4096;
/// Bytes written at a time.
const WRITE_BYTES: usize = 96 << 10;

/// Why a cache file is not used. Never a reason to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheRefused {
    /// It is not there, or cannot be read.
    #[error("no cache file could be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is no cache file of a version known here.
    #[error("the cache file is of another version")]
    Unknown,
    /// It describes another series, or another state of it.
    #[error("the cache file belongs to another state of the series")]
    OtherSnapshot,
    /// Its content is not what was written.
    #[error("the cache file is damaged")]
    Damaged,
}

/// Records of `BYTES` each, one after the other in an open file.
#[derive(Debug)]
pub(crate) struct RecordFile<const BYTES: usize> {
    file: File,
    start: u64,
    count: u64,
}

impl<const BYTES: usize> RecordFile<BYTES> {
    /// The first `count` records of a file that holds nothing else.
    pub(crate) fn bare(file: File, count: u64) -> Self {
        Self { file, start: 0, count }
    }

    /// Opens the cache file at `path`. What its records say is not to be trusted before [`RecordFile::verify`].
    ///
    /// # Errors
    /// [`CacheRefused`] if it is none, or its header another.
    pub(crate) fn open(path: &Path, header: &[u8]) -> Result<Self, CacheRefused> {
        let file = File::open(path)?;
        let start = header.len() as u64;
        let body = file.metadata()?.len().checked_sub(start + TRAILER_BYTES).ok_or(CacheRefused::Damaged)?;
        if !body.is_multiple_of(BYTES as u64) {
            return Err(CacheRefused::Damaged);
        }
        let mut found = vec![0; header.len()];
        file.read_exact_at(&mut found, 0)?;
        if found != header {
            let is_known = found.first_chunk::<KIND_BYTES>() == header.first_chunk();
            return Err(if is_known { CacheRefused::OtherSnapshot } else { CacheRefused::Unknown });
        }
        Ok(Self { file, start, count: body / BYTES as u64 })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Shows all records of a file that was opened with this header, and says whether they were what was written under
    /// this key.
    ///
    /// # Errors
    /// [`CacheRefused::Damaged`]: nothing of what was shown is to be used. What `each` complains of.
    pub(crate) fn verify(
        &self,
        header: &[u8],
        key: &[u8; 32],
        mut each: impl FnMut(&[[u8; BYTES]]) -> Result<(), CacheRefused>,
    ) -> Result<(), CacheRefused> {
        let mut mac = blake3::Hasher::new_keyed(key);
        mac.update(header);
        self.blocks(|block| {
            mac.update(block.as_flattened());
            each(block)
        })?;
        let end = self.start + self.count * BYTES as u64;
        let (mut count, mut found) = ([0; 8], [0; MAC_BYTES]);
        self.file.read_exact_at(&mut count, end)?;
        self.file.read_exact_at(&mut found, end + 8)?;
        mac.update(&count);
        // `Hash` compares in constant time.
        let is_genuine = mac.finalize() == blake3::Hash::from_bytes(found);
        if is_genuine && u64::from_le_bytes(count) == self.count { Ok(()) } else { Err(CacheRefused::Damaged) }
    }

    /// Shows all records, some at a time.
    pub(crate) fn blocks<E: From<io::Error>>(
        &self,
        mut each: impl FnMut(&[[u8; BYTES]]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut block = Vec::new();
        let (mut offset, mut left) = (self.start, self.count);
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_RECORDS);
            block.resize(count, [0; BYTES]);
            self.file.read_exact_at(block.as_flattened_mut(), offset)?;
            each(&block)?;
            left -= count as u64;
            offset += (count * BYTES) as u64;
        }
        Ok(())
    }

    /// The file, and where in it the first record begins.
    pub(crate) fn into_file(self) -> (File, u64) {
        (self.file, self.start)
    }
}

/// A cache file under way.
pub(crate) struct CacheWriter<const BYTES: usize> {
    to: BufWriter<HashedFile>,
    count: u64,
    path: PathBuf,
}

impl<const BYTES: usize> CacheWriter<BYTES> {
    /// Begins a file that takes the place of the one at `path` when it is finished.
    pub(crate) fn create(path: &Path, header: &[u8], key: &[u8; 32]) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let hashed = HashedFile { file: NamedTempFile::new_in(folder)?, mac: blake3::Hasher::new_keyed(key) };
        let mut to = BufWriter::with_capacity(WRITE_BYTES, hashed);
        to.write_all(header)?;
        Ok(Self { to, count: 0, path: path.to_owned() })
    }

    pub(crate) fn push(&mut self, record: &[u8; BYTES]) -> io::Result<()> {
        self.count += 1;
        self.to.write_all(record)
    }

    /// Puts the file in its place; gives the number of its records.
    pub(crate) fn finish(self) -> io::Result<u64> {
        self.put(|_| Ok(()))
    }

    /// As [`CacheWriter::finish`], for what cannot be built again: whatever happens to the machine, the file before or
    /// this one is there.
    pub(crate) fn finish_durably(self) -> io::Result<u64> {
        let folder = self.path.parent().map(Path::to_owned);
        let count = self.put(File::sync_all)?;
        folder.map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
        Ok(count)
    }

    fn put(mut self, before_naming: impl FnOnce(&File) -> io::Result<()>) -> io::Result<u64> {
        self.to.write_all(&self.count.to_le_bytes())?;
        let HashedFile { mut file, mac } = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.write_all(mac.finalize().as_bytes())?;
        before_naming(file.as_file())?;
        file.persist(&self.path)?;
        Ok(self.count)
    }
}

/// A file under way and the hash of what it holds so far.
struct HashedFile {
    file: NamedTempFile,
    mac: blake3::Hasher,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.mac.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const HEADER: &[u8] = b"SILTTEST\x01\0\0\0\0\0\0\0state";
    const KEY: [u8; 32] = [9; 32];

    fn write(path: &Path, records: &[[u8; 5]]) {
        let mut writer = CacheWriter::create(path, HEADER, &KEY).expect("begun");
        for record in records {
            writer.push(record).expect("written");
        }
        assert_eq!(writer.finish().expect("finished"), records.len() as u64);
    }

    fn read(path: &Path, header: &[u8], key: &[u8; 32]) -> Result<Vec<[u8; 5]>, CacheRefused> {
        let file = RecordFile::open(path, header)?;
        let mut found = Vec::new();
        file.verify(header, key, |block| {
            found.extend_from_slice(block);
            Ok(())
        })?;
        assert_eq!(file.count(), found.len() as u64);
        Ok(found)
    }

    #[test]
    fn what_was_written_comes_back() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("made/on/the/way");
        for count in [0u32, 1, 4095, 4096, 4097, 20_000] {
            let records: Vec<[u8; 5]> =
                (0..count).map(|n| [n.to_le_bytes().as_slice(), b"x"].concat().try_into().expect("5")).collect();
            write(&path, &records);
            assert_eq!(read(&path, HEADER, &KEY).expect("genuine"), records);
        }
    }

    #[test]
    fn any_flipped_bit_and_any_missing_byte_refuse_the_file() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        write(&path, &[*b"12345", *b"67890"]);
        let genuine = std::fs::read(&path).expect("the file");
        let is_read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            read(&path, HEADER, &KEY).is_ok()
        };
        assert!(is_read(&genuine));
        for at in 0..genuine.len() {
            let mut bytes = genuine.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(!is_read(&bytes), "byte {at}");
            assert!(!is_read(&genuine[..at]), "{at} bytes");
        }
    }

    #[test]
    fn a_file_of_another_kind_state_or_key_is_refused() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        assert!(matches!(read(&path, HEADER, &KEY), Err(CacheRefused::Unreadable(_))));
        write(&path, &[*b"12345"]);
        let other = |at: usize| {
            let mut header = HEADER.to_vec();
            header[at] ^= 1;
            read(&path, &header, &KEY)
        };
        assert!(matches!(other(0), Err(CacheRefused::Unknown)));
        assert!(matches!(other(15), Err(CacheRefused::Unknown)));
        assert!(matches!(other(16), Err(CacheRefused::OtherSnapshot)));
        assert!(matches!(read(&path, HEADER, &[8; 32]), Err(CacheRefused::Damaged)));
    }
}
