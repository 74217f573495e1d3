//! Packets of the SFTP protocol, version 3 (draft-ietf-secsh-filexfer-02), and of OpenSSH's extensions to it (file
//! `PROTOCOL` of its source): requests to bytes, and bytes to answers. A packet is a length, a type, a number that the
//! answer repeats, and fields. Every length that a server names is held against the bytes that came.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes of a packet after its length at most: what OpenSSH itself takes, 256 KiB, and a little more.
pub(super) const PACKET_BYTES_MAX: usize = (256 << 10) + 1024;
/// The version that is spoken.
pub(super) const VERSION: u32 = 3;
/// Bytes of a packet before its fields: length, type and number.
const HEADER_BYTES: usize = 9;

/// Open for reading.
pub(super) const READ: u32 = 0x01;
/// Open for writing a file that is made by this, and must not be there.
pub(super) const WRITE_NEW: u32 = 0x02 | 0x08 | 0x20;

/// Makes a file's content durable.
pub(super) const FSYNC: &str = "fsync@openssh.com";
/// Gives a file a second name that must be free.
pub(super) const HARD_LINK: &str = "hardlink@openssh.com";
/// Tells how long requests may be.
pub(super) const LIMITS: &str = "limits@openssh.com";
/// Tells how much room a file system has.
pub(super) const SPACE: &str = "statvfs@openssh.com";

/// Type of the answer to the greeting.
const VERSION_TYPE: u8 = 2;
/// Attributes hold a size, owners, permissions, times, extensions.
const HAS_SIZE: u32 = 0x01;
const HAS_OWNERS: u32 = 0x02;
const HAS_PERMISSIONS: u32 = 0x04;
const HAS_TIMES: u32 = 0x08;
const HAS_EXTENSIONS: u32 = 0x8000_0000;
/// Permissions of files and folders that are made: their owner's alone.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The kind of a file in its permissions.
const KIND_MASK: u32 = 0o170_000;
const KIND_FILE: u32 = 0o100_000;
const KIND_FOLDER: u32 = 0o040_000;

/// A request that has no number yet.
#[derive(Debug)]
pub(super) struct Request {
    /// Name of the request, for the log.
    pub(super) name: &'static str,
    packet: BytesMut,
}

impl Request {
    fn new(name: &'static str, kind: u8) -> Self {
        let mut packet = BytesMut::with_capacity(256);
        packet.put_slice(&[0, 0, 0, 0, kind, 0, 0, 0, 0]);
        Self { name, packet }
    }

    fn text(mut self, text: &[u8]) -> Self {
        self.packet.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.packet.put_slice(text);
        self
    }

    fn number(mut self, number: u32) -> Self {
        self.packet.put_u32(number);
        self
    }

    fn offset(mut self, offset: u64) -> Self {
        self.packet.put_u64(offset);
        self
    }

    pub(super) fn open(path: &str, flags: u32) -> Self {
        let request = Self::new("open", 3).text(path.as_bytes()).number(flags);
        if flags == READ { request.number(0) } else { request.number(HAS_PERMISSIONS).number(FILE_MODE) }
    }

    pub(super) fn close(handle: &[u8]) -> Self {
        Self::new("close", 4).text(handle)
    }

    pub(super) fn read(handle: &[u8], offset: u64, bytes: u32) -> Self {
        Self::new("read", 5).text(handle).offset(offset).number(bytes)
    }

    pub(super) fn write(handle: &[u8], offset: u64, bytes: &[u8]) -> Self {
        let mut request = Self::new("write", 6);
        request.packet.reserve(handle.len() + bytes.len() + 64);
        request.text(handle).offset(offset).text(bytes)
    }

    pub(super) fn lstat(path: &str) -> Self {
        Self::new("lstat", 7).text(path.as_bytes())
    }

    pub(super) fn fstat(handle: &[u8]) -> Self {
        Self::new("fstat", 8).text(handle)
    }

    pub(super) fn open_folder(path: &str) -> Self {
        Self::new("opendir", 11).text(path.as_bytes())
    }

    pub(super) fn read_folder(handle: &[u8]) -> Self {
        Self::new("readdir", 12).text(handle)
    }

    pub(super) fn remove(path: &str) -> Self {
        Self::new("remove", 13).text(path.as_bytes())
    }

    pub(super) fn make_folder(path: &str) -> Self {
        Self::new("mkdir", 14).text(path.as_bytes()).number(HAS_PERMISSIONS).number(FOLDER_MODE)
    }

    pub(super) fn real_path(path: &str) -> Self {
        Self::new("realpath", 16).text(path.as_bytes())
    }

    pub(super) fn stat(path: &str) -> Self {
        Self::new("stat", 17).text(path.as_bytes())
    }

    pub(super) fn rename(from: &str, to: &str) -> Self {
        Self::new("rename", 18).text(from.as_bytes()).text(to.as_bytes())
    }

    fn extended(extension: &'static str) -> Self {
        Self::new(extension, 200).text(extension.as_bytes())
    }

    pub(super) fn fsync(handle: &[u8]) -> Self {
        Self::extended(FSYNC).text(handle)
    }

    pub(super) fn hard_link(from: &str, to: &str) -> Self {
        Self::extended(HARD_LINK).text(from.as_bytes()).text(to.as_bytes())
    }

    pub(super) fn limits() -> Self {
        Self::extended(LIMITS)
    }

    pub(super) fn space(path: &str) -> Self {
        Self::extended(SPACE).text(path.as_bytes())
    }

    /// Returns the whole packet of the request under this number.
    pub(super) fn numbered(mut self, number: u32) -> Bytes {
        let length = u32::try_from(self.packet.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if let Some((header, _)) = self.packet.split_first_chunk_mut::<HEADER_BYTES>() {
            let [l0, l1, l2, l3] = length.to_be_bytes();
            let [n0, n1, n2, n3] = number.to_be_bytes();
            let [_, _, _, _, kind, ..] = *header;
            *header = [l0, l1, l2, l3, kind, n0, n1, n2, n3];
        }
        self.packet.freeze()
    }
}

/// Returns the greeting of a client.
pub(super) fn greeting() -> Bytes {
    let mut packet = BytesMut::with_capacity(HEADER_BYTES);
    packet.put_u32(5);
    packet.put_u8(1);
    packet.put_u32(VERSION);
    packet.freeze()
}

/// The answer of a server to the greeting.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Greeted {
    pub(super) version: u32,
    /// Names of the extensions that the server has.
    pub(super) extensions: Vec<String>,
}

impl Greeted {
    /// Reads a packet without its length; `None` if it is no such answer.
    pub(super) fn decode(packet: Bytes) -> Option<Self> {
        let mut fields = Fields(packet);
        if fields.byte()? != VERSION_TYPE {
            return None;
        }
        let version = fields.number()?;
        let mut extensions = Vec::new();
        while !fields.0.is_empty() {
            let (name, _data) = (fields.text()?, fields.text()?);
            extensions.push(String::from_utf8_lossy(&name).into_owned());
        }
        Some(Self { version, extensions })
    }
}

/// A code of success or failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    Done,
    End,
    Absent,
    Denied,
    Failure,
    BadMessage,
    NoConnection,
    Unsupported,
    Unknown(u32),
}

impl From<u32> for Code {
    fn from(code: u32) -> Self {
        match code {
            0 => Self::Done,
            1 => Self::End,
            2 => Self::Absent,
            3 => Self::Denied,
            4 => Self::Failure,
            5 => Self::BadMessage,
            6 | 7 => Self::NoConnection,
            8 => Self::Unsupported,
            other => Self::Unknown(other),
        }
    }
}

/// The answer to a request.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Status { code: Code, message: String },
    Handle(Bytes),
    Data(Bytes),
    Names(Vec<Entry>),
    Attributes(Attributes),
    Extended(Bytes),
}

/// An entry of a folder.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) attributes: Attributes,
}

/// Attributes of a file, as far as they are of use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Attributes {
    /// Length in bytes.
    pub(super) bytes: Option<u64>,
    permissions: Option<u32>,
}

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileKind {
    File,
    Folder,
    /// Anything else, or not told.
    Other,
}

impl Attributes {
    pub(super) fn kind(&self) -> FileKind {
        match self.permissions.map(|permissions| permissions & KIND_MASK) {
            Some(KIND_FILE) => FileKind::File,
            Some(KIND_FOLDER) => FileKind::Folder,
            _ => FileKind::Other,
        }
    }
}

/// Reads an answer, a packet without its length, and the number of its request; `None` if it is malformed.
pub(super) fn decode(packet: Bytes) -> Option<(u32, Answer)> {
    let mut fields = Fields(packet);
    let (kind, number) = (fields.byte()?, fields.number()?);
    let answer = match kind {
        101 => Answer::Status { code: fields.number()?.into(), message: fields.message() },
        102 => Answer::Handle(fields.text()?),
        103 => Answer::Data(fields.text()?),
        104 => Answer::Names(fields.entries()?),
        105 => Answer::Attributes(fields.attributes()?),
        201 => Answer::Extended(fields.0),
        _ => return None,
    };
    Some((number, answer))
}

/// Reads the answer to [`Request::limits`]: bytes of one read and of one write.
pub(super) fn decode_limits(answer: Bytes) -> Option<(u64, u64)> {
    let mut fields = Fields(answer);
    let (_packet, read, write) = (fields.offset()?, fields.offset()?, fields.offset()?);
    Some((read, write))
}

/// Reads the answer to [`Request::space`]: bytes that a user may still write.
pub(super) fn decode_space(answer: Bytes) -> Option<u64> {
    let mut fields = Fields(answer);
    let (_block, unit, _blocks, _free) = (fields.offset()?, fields.offset()?, fields.offset()?, fields.offset()?);
    Some(unit.saturating_mul(fields.offset()?))
}

/// The fields of a packet that were not read yet.
struct Fields(Bytes);

impl Fields {
    fn byte(&mut self) -> Option<u8> {
        self.0.try_get_u8().ok()
    }

    fn number(&mut self) -> Option<u32> {
        self.0.try_get_u32().ok()
    }

    fn offset(&mut self) -> Option<u64> {
        self.0.try_get_u64().ok()
    }

    fn text(&mut self) -> Option<Bytes> {
        let bytes = self.number()? as usize;
        (bytes <= self.0.len()).then(|| self.0.split_to(bytes))
    }

    /// The words of a status; some servers leave them out.
    fn message(&mut self) -> String {
        self.text().map_or_else(String::new, |text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The entries of a folder; those whose names are not UTF-8 are foreign and left out.
    fn entries(&mut self) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        for _ in 0..self.number()? {
            let (name, _long_name, attributes) = (self.text()?, self.text()?, self.attributes()?);
            if let Ok(name) = String::from_utf8(name.into()) {
                entries.push(Entry { name, attributes });
            }
        }
        Some(entries)
    }

    fn attributes(&mut self) -> Option<Attributes> {
        let flags = self.number()?;
        let has = |flag| flags & flag != 0;
        let mut attributes = Attributes::default();
        if has(HAS_SIZE) {
            attributes.bytes = Some(self.offset()?);
        }
        if has(HAS_OWNERS) {
            self.offset()?;
        }
        if has(HAS_PERMISSIONS) {
            attributes.permissions = Some(self.number()?);
        }
        if has(HAS_TIMES) {
            self.offset()?;
        }
        if has(HAS_EXTENSIONS) {
            for _ in 0..self.number()? {
                let (_name, _data) = (self.text()?, self.text()?);
            }
        }
        Some(attributes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    /// A packet of these fields, without its length.
    fn packet(kind: u8, number: u32, fields: &[&[u8]]) -> Bytes {
        let mut bytes = vec![kind];
        bytes.extend(number.to_be_bytes());
        bytes.extend(fields.concat());
        bytes.into()
    }

    fn text(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes(), text].concat()
    }

    /// The answers that a server can give, one of each kind.
    fn answers() -> Vec<(Bytes, Answer)> {
        let attributes = [0x8000_000fu32.to_be_bytes().as_slice(), &7u64.to_be_bytes(), &[0; 8]].concat();
        let attributes = [attributes, 0o100_644u32.to_be_bytes().into(), vec![0; 8], vec![0, 0, 0, 1]].concat();
        let attributes = [attributes, text(b"acl"), text(b"x")].concat();
        let read = Attributes { bytes: Some(7), permissions: Some(0o100_644) };
        let entry = [text(b"name"), text(b"-rw- name"), attributes.clone()].concat();
        vec![
            (
                packet(101, 9, &[&[0, 0, 0, 4], &text(b"said"), &text(b"en")]),
                Answer::Status { code: Code::Failure, message: "said".to_owned() },
            ),
            (packet(102, 9, &[&text(b"h")]), Answer::Handle(Bytes::from_static(b"h"))),
            (packet(103, 9, &[&text(b"data")]), Answer::Data(Bytes::from_static(b"data"))),
            (packet(105, 9, &[&attributes]), Answer::Attributes(read)),
            (
                packet(104, 9, &[&[0, 0, 0, 2], &entry, &text(b"\xff"), &text(b""), &[0; 4]]),
                Answer::Names(vec![Entry { name: "name".to_owned(), attributes: read }]),
            ),
            (packet(201, 9, &[b"any"]), Answer::Extended(Bytes::from_static(b"any"))),
        ]
    }

    #[test]
    fn every_answer_is_read() {
        for (packet, answer) in answers() {
            assert_eq!(decode(packet), Some((9, answer)));
        }
        assert_eq!(
            decode(packet(101, 1, &[&[0; 4]])).unwrap().1,
            Answer::Status { code: Code::Done, message: String::new() }
        );
    }

    #[test]
    fn a_packet_cut_short_or_with_a_false_length_is_no_answer() {
        for (packet, _) in answers() {
            let is_exact = !matches!(packet[0], 101 | 201);
            for end in 0..packet.len() {
                let cut = decode(packet.slice(..end));
                assert!(cut.is_none() || !is_exact, "{packet:?} up to {end}: {cut:?}");
            }
            for place in 5..packet.len() {
                let mut broken = packet.to_vec();
                broken[place] = 0xff;
                let _ = decode(broken.into());
            }
        }
        for kind in [0, 2, 3, 100, 106, 255] {
            assert_eq!(decode(packet(kind, 1, &[&[0; 100]])), None);
        }
        let many = packet(104, 1, &[&u32::MAX.to_be_bytes(), &text(b"a")]);
        assert_eq!(decode(many), None, "a count is not believed");
    }

    #[test]
    fn a_request_is_its_length_its_type_its_number_and_its_fields() {
        let packet = Request::write(b"h", 5, b"data").numbered(0x0102_0304);
        let fields = [text(b"h"), 5u64.to_be_bytes().to_vec(), text(b"data")].concat();
        let expected = [&((fields.len() + 5) as u32).to_be_bytes(), [6, 1, 2, 3, 4].as_slice(), &fields].concat();
        assert_eq!(packet, expected);
        assert_eq!(Request::real_path("").numbered(0), [0, 0, 0, 9, 16, 0, 0, 0, 0, 0, 0, 0, 0].as_slice());
        assert_eq!(greeting(), [0, 0, 0, 5, 1, 0, 0, 0, 3].as_slice());
    }

    #[test]
    fn a_greeting_is_answered_by_a_version_and_extensions() {
        let answer = [vec![2, 0, 0, 0, 3], text(FSYNC.as_bytes()), text(b"1")].concat();
        let greeted = Greeted { version: 3, extensions: vec![FSYNC.to_owned()] };
        assert_eq!(Greeted::decode(answer.clone().into()), Some(greeted));
        assert_eq!(Greeted::decode(Bytes::from(answer).slice(..20)), None);
        assert_eq!(Greeted::decode(Bytes::from_static(b"Welcome!")), None);
    }

    #[test]
    fn limits_and_space_are_read_from_their_places() {
        let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Bytes>();
        assert_eq!(decode_limits(numbers(&[1, 2, 3, 4])), Some((2, 3)));
        assert_eq!(decode_limits(numbers(&[1, 2])), None);
        assert_eq!(decode_space(numbers(&[4096, 512, 100, 50, 20, 0, 0])), Some(512 * 20));
    }
}
