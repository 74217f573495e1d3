#!/usr/bin/env python3
"""An independent reader of Siltstone repositories, written from docs/FORMAT.md alone.

It exists to prove the page: it shares no code with the program. It opens a repository with a password, walks every snapshot,
checks what the page says can be checked, and prints a listing or restores files. It is slow and keeps everything in memory.

    silt_reader.py list REPOSITORY PASSWORD_FILE
    silt_reader.py restore REPOSITORY PASSWORD_FILE TARGET      each snapshot into TARGET/<series name>/<place among the live ones>
    silt_reader.py verify REPOSITORY PASSWORD_FILE              every byte of every container, every set of chunks

It needs the packages in requirements.txt.
"""

import os
import stat
import struct
import sys
from pathlib import Path

import zstandard
from argon2.low_level import Type, hash_secret_raw
from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

HEADER = 64
TAG = 16
METADATA_FIRST = 1 << 63
MASK = (1 << 64) - 1
KEY_FILE = b"siltstone-key-1:"
CONFIG, KEY_SLOT, MANIFEST, DATA, METADATA, PARITY, PART, WRITE_ONLY_SLOT, LOAN, DIRECTORY = range(1, 11)
DERIVED, RECIPIENT = 0, 1
FOLDERS = {DATA: "data", METADATA: "metadata"}
INDEX, TRAILER, PADDING = 2**32 - 2, 2**32 - 1, 2**32 - 3
LENDERS_MAX, SKETCH_MAX, DIRECTORY_MAX = 64, 256, 1024


class Damaged(Exception):
    """The repository contradicts the page."""


def require(condition, what):
    if not condition:
        raise Damaged(what)


# ---------------------------------------------------------------------------------------------- section 3 and 4:
# objects


class Header:
    def __init__(self, name, data):
        require(len(data) >= HEADER, f"{name}: shorter than a header")
        self.raw = data[:HEADER]
        fields = struct.unpack("<8sHBB32s16s4s", self.raw)
        magic, version, self.kind, self.mode, self.salt, self.commitment, checksum = fields
        require(magic == b"SILTSTNE", f"{name}: magic")
        require(checksum == blake3(self.raw[:60]).digest(4), f"{name}: checksum of the header")
        require(version == 1, f"{name}: version")
        modes = (DERIVED, RECIPIENT) if self.kind in (DATA, METADATA, PARITY) else (DERIVED,)
        require(self.mode in modes, f"{name}: key mode")


class ObjectKey:
    """The key of one object, derived from a purpose key (section 4)."""

    def __init__(self, purpose, repository, salt, name):
        context = b"siltstone v1 object key\0" + repository + salt + name.encode()
        output = blake3(context, key=purpose).digest(48)
        self.cipher, self.commitment = AESGCM(output[:32]), output[32:]
        self.repository, self.name = repository, name

    def open(self, header, number, sealed, extra=b""):
        nonce = struct.pack("<I", number) + bytes(8)
        associated = header + self.repository + extra + self.name.encode() + struct.pack("<I", number)
        try:
            return self.cipher.decrypt(nonce, sealed, associated)
        except InvalidTag:
            raise Damaged(f"{self.name}: the seal of piece {number} does not hold") from None


def key_of_file(line):
    """The 32 bytes of a key file."""
    key, _, checksum = line[len(KEY_FILE):].partition(b":")
    key, checksum = bytes.fromhex(key.decode()), bytes.fromhex(checksum.decode())
    require(len(key) == 32 and checksum == blake3(key).digest(4), "the key file is damaged")
    return key


def padded(length):
    """The Padme size of a length of at least 2."""
    exponent = length.bit_length() - 1
    low = exponent - (exponent.bit_length() if exponent else 1)
    step = 1 << max(low, 0)
    return -(-length // step) * step


def without_padding(plain, name):
    (length,) = struct.unpack_from("<Q", plain)
    require(8 + length <= len(plain), f"{name}: length past the end")
    require(not any(plain[8 + length :]), f"{name}: padding that is not zero")
    return plain[8 : 8 + length]


# ------------------------------------------------------------------------------------------------------------- postcard


class Postcard:
    """Reads the serialization called postcard."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(self.at + count <= len(self.data), "postcard: the data ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        return unzigzag(self.number())

    def boolean(self):
        return {0: False, 1: True}[self.take(1)[0]]

    def bytes(self):
        return self.take(self.number())

    def text(self):
        return self.bytes().decode()

    def time(self):
        return (self.signed(), self.number())

    def list(self, item):
        return [item() for _ in range(self.number())]

    def sketch(self):
        """A sample of chunks: the begin of each fingerprint, and the number."""
        entries = self.list(lambda: (self.number(), self.number()))
        values = [value for value, _ in entries]
        require(len(entries) <= SKETCH_MAX and values == sorted(set(values)), "a sketch: order or size")
        require(all(number < METADATA_FIRST for _, number in entries), "a sketch has chunks of metadata")
        return entries

    def option(self, item):
        return item() if self.boolean() else None

    def is_done(self):
        return self.at == len(self.data)


def unzigzag(value):
    return (value >> 1) ^ -(value & 1)


# ------------------------------------------------------------------------------------------------------------- bitmaps


def bitmap(data):
    """The numbers of a 64-bit Roaring bitmap in its portable serialization, as ranges [first, end)."""
    if not data:
        return []
    (count,) = struct.unpack_from("<Q", data)
    at, ranges = 8, []
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        at = bitmap_of_32(data, at + 4, high << 32, ranges)
    require(at == len(data), "bitmap: bytes behind it")
    return ranges


def bitmap_of_32(data, at, base, ranges):
    (cookie,) = struct.unpack_from("<I", data, at)
    runs = b""
    if cookie & 0xFFFF == 12347:
        size = (cookie >> 16) + 1
        at += 4
        runs = data[at : at + (size + 7) // 8]
        at += len(runs)
        has_offsets = size >= 4
    else:
        require(cookie == 12346, "bitmap: cookie")
        (size,) = struct.unpack_from("<I", data, at + 4)
        at += 8
        has_offsets = True
    keys = [struct.unpack_from("<HH", data, at + 4 * i) for i in range(size)]
    at += 4 * size + (4 * size if has_offsets else 0)
    for i, (key, cardinality) in enumerate(keys):
        low, cardinality = base + (key << 16), cardinality + 1
        if runs and runs[i // 8] >> (i % 8) & 1:
            (pairs,) = struct.unpack_from("<H", data, at)
            at += 2
            for _ in range(pairs):
                start, length = struct.unpack_from("<HH", data, at)
                at += 4
                ranges.append((low + start, low + start + length + 1))
        elif cardinality > 4096:
            bits = int.from_bytes(data[at : at + 8192], "little")
            ranges.extend((low + j, low + j + 1) for j in range(65536) if bits >> j & 1)
            at += 8192
        else:
            values = struct.unpack_from(f"<{cardinality}H", data, at)
            ranges.extend((low + value, low + value + 1) for value in values)
            at += 2 * cardinality
    return at


def numbers(data):
    return {number for first, end in bitmap(data) for number in range(first, end)}


# ----------------------------------------------------------------------------------------------- section 9 and 10:
# metadata


class Fields:
    """Reads the numbers and bytes of metadata chunks (section 9)."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(self.at + count <= len(self.data), "metadata: the chunk ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def byte(self):
        return self.take(1)[0]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                require(byte or shift == 7, "metadata: a number that is not in its shortest form")
                return value

    def difference(self, base):
        return (base + unzigzag(self.number())) & MASK

    def signed_difference(self, base):
        value = self.difference(base & MASK)
        return value - (1 << 64) if value >= METADATA_FIRST else value

    def bytes(self):
        return self.take(self.number())

    def end(self):
        require(self.at == len(self.data), "metadata: bytes behind the last field")


def sort_key(path):
    """Paths compare as if `/` were smaller than every other byte."""
    return [0 if byte == 0x2F else byte + 1 for byte in path]


class Entry:
    pass


# -------------------------------------------------------------------------------------------------------------- the
# reader


class Repository:
    def __init__(self, place, password):
        self.place = Path(place)
        self.keys_tried = 0
        self.known = {}
        self.unlock(password)
        self.read_config()

    # -- keys (section 5)

    def names(self, folder):
        place = self.place / folder
        return sorted(f"{folder}/{name}" for name in os.listdir(place)) if place.is_dir() else []

    def read(self, name):
        return (self.place / name).read_bytes()

    def unlock(self, password):
        self.slots = {}
        self.master = None
        for name in self.names("keys"):
            data = self.read(name)
            header = Header(name, data)
            require(header.kind in (KEY_SLOT, WRITE_ONLY_SLOT), f"{name}: kind")
            box = data[64:96]
            memory, passes, lanes, salt, checksum = struct.unpack("<III16s4s", box)
            require(checksum == blake3(box[:28]).digest(4), f"{name}: checksum of the cost box")
            label = 160 if header.kind == KEY_SLOT else 100 + struct.unpack_from("<I", data, 96)[0]
            require(label <= len(data), f"{name}: length of the secret")
            self.slots[name] = (header, data, label)
            if header.kind == WRITE_ONLY_SLOT:
                continue  # It gives keys that read nothing.
            is_key_file = password.startswith(KEY_FILE)
            if is_key_file != ((memory, passes, lanes) == (0, 0, 0)):
                continue
            if is_key_file:
                wrapping = blake3(key_of_file(password) + salt, derive_key_context="siltstone v1 key file").digest()
            else:
                wrapping = hash_secret_raw(password, salt, passes, memory, lanes, 32, Type.ID, 0x13)
            key = ObjectKey(wrapping, bytes(16), header.salt, name)
            if key.commitment == header.commitment:
                secret = key.open(header.raw, 0, data[96:160], box)
                self.master, self.id, self.slot = secret[:32], secret[32:], name
        require(self.master is not None, "the password opens no key slot")
        self.purposes = {}
        # Until the config is read, the only epoch known is the newest.
        self.masters = [self.master]

    def purpose(self, name, epoch=1):
        """A purpose key; those that objects are sealed with are made once for each epoch, all others for the first."""
        if (name, epoch) not in self.purposes:
            material = self.masters[epoch - 1] + self.id
            self.purposes[name, epoch] = blake3(material, derive_key_context=f"siltstone v1 {name}").digest()
        return self.purposes[name, epoch]

    def purpose_of_series(self, purpose, name, epoch):
        """The key of the series that the object of this name belongs to."""
        return blake3(bytes.fromhex(name.split("/")[1]), key=self.purpose(purpose, epoch)).digest()

    def object_key(self, name, kind, salt, epoch, mode):
        if mode == RECIPIENT:
            purpose = self.agreed(name, salt, epoch)
        elif kind in (MANIFEST, PART):
            purpose = self.purpose_of_series("manifests", name, epoch)
        else:
            purpose = self.purpose("data" if kind == DATA else "metadata", epoch)
        return ObjectKey(purpose, self.id, salt, name)

    def agreed(self, name, salt, epoch):
        """The purpose key of one object that a write-only client has sealed (section 6)."""
        secret = X25519PrivateKey.from_private_bytes(self.purpose("recipient", epoch))
        material = secret.exchange(X25519PublicKey.from_public_bytes(salt)) + salt
        material += secret.public_key().public_bytes_raw() + self.purpose_of_series("write keys", name, epoch)
        return blake3(material, derive_key_context="siltstone v1 sealed to recipient").digest()

    def key_of(self, name, header):
        """The key of the epoch, newest first, whose commitment is the header's."""
        for epoch in range(len(self.masters), 0, -1):
            key = self.object_key(name, header.kind, header.salt, epoch, header.mode)
            if key.commitment == header.commitment:
                return key
        raise Damaged(f"{name}: sealed under another key")

    def open_whole(self, name, kind):
        data = self.read(name)
        header = Header(name, data)
        require(header.kind == kind, f"{name}: kind")
        key = self.key_of(name, header)
        require(len(data) == padded(len(data)), f"{name}: not a Padme size")
        return data, without_padding(key.open(header.raw, 0, data[HEADER:]), name)

    def read_config(self):
        """The newest record of the repository (section 5): what counts, and which series there are."""
        name = self.names("config")[-1]
        _, plain = self.open_whole(name, CONFIG)
        config = Postcard(plain)
        require(config.list(config.text) == [], f"{name}: a feature that this reader does not know")
        require(config.take(16) == self.id, f"{name}: of another repository")
        self.chunker = (config.text(), config.number(), config.number(), config.number())
        self.created = config.time()
        require(f"config/{config.number():016x}" == name, f"{name}: sequence")
        self.follows(name, config.take(32))
        self.masters = config.list(lambda: config.take(32)) + [self.master]
        self.purposes = {}
        slots = config.list(lambda: config.take(16).hex())
        require(self.slot.removeprefix("keys/") in slots, f"{self.slot}: the config does not list it")
        write_only = dict(config.list(lambda: (config.take(16).hex(), config.take(16).hex())))
        require(not set(slots) & set(write_only), f"{name}: a slot of two kinds")
        for slot, (header, _, _) in self.slots.items():
            kind = WRITE_ONLY_SLOT if slot.removeprefix("keys/") in write_only else KEY_SLOT
            require(header.kind == kind or slot.removeprefix("keys/") not in slots, f"{slot}: another kind is listed")
        self.names_of_series = dict(config.list(lambda: (config.take(16).hex(), config.text())))
        self.parity = (config.take(1)[0], config.take(1)[0])
        config.list(lambda: (config.text(), config.bytes()))
        require(config.is_done(), f"{name}: bytes behind its end")
        for series, text in self.names_of_series.items():
            require(self.series_id(text) == series, f"{name}: the list of series names another")

    def series_id(self, name):
        return blake3(name.encode(), key=self.purpose("series names")).digest(16).hex()

    def follows(self, name, previous):
        """The object before, where it is still there, is the one that this one says it follows."""
        folder, sequence = name.rsplit("/", 1)
        before = f"{folder}/{int(sequence, 16) - 1:016x}"
        if (self.place / before).exists():
            require(blake3(self.read(before)).digest() == previous, f"{name}: does not follow {before}")

    def verify_slots(self):
        """The label of each slot, which holds a hash of what stands before it."""
        for name, (header, data, start) in self.slots.items():
            key = ObjectKey(self.purpose("metadata", len(self.masters)), self.id, header.salt, name)
            header_of_label = data[:44] + key.commitment
            header_of_label += blake3(header_of_label).digest(4)
            label = Postcard(without_padding(key.open(header_of_label, 1, data[start:]), name))
            label.time(), label.text(), label.text()
            require(label.take(32) == blake3(data[:start]).digest(), f"{name}: the label is of another slot")
            require(label.is_done(), f"{name}: bytes behind the label")

    def verify_copies(self):
        """Copies are byte for byte what they are copies of."""
        for folder, _, names in os.walk(self.place / "copies"):
            for name in names:
                copy = Path(folder) / name
                original = self.place / copy.relative_to(self.place / "copies")
                require(original.exists() and original.read_bytes() == copy.read_bytes(), f"{copy}: not a copy")

    def series(self):
        folder = self.place / "series"
        return [self.series_of(name) for name in sorted(os.listdir(folder))] if folder.is_dir() else []

    def series_of(self, series_id):
        """A series by its id, read once."""
        if series_id not in self.known:
            require((self.place / "series" / series_id).is_dir(), f"series {series_id} is not there")
            self.known[series_id] = Series(self, series_id)
        return self.known[series_id]

    # -- loans and the directory (section 13)

    def loan(self, name):
        """The borrower of a loan, and its runs: first number and count at the borrower, first number at the lender."""
        _, plain = self.open_whole(name, LOAN)
        card = Postcard(plain)
        lender, borrower = card.take(16).hex(), card.take(16).hex()
        runs = card.list(lambda: (card.number(), card.number(), card.number()))
        require(card.is_done(), f"{name}: bytes behind its end")
        require(name.split("/")[1:2] == [lender] and name.split("/")[2][:32] == borrower, f"{name}: of other series")
        for here, count, there in runs:
            require(count > 0 and max(here, there) + count <= METADATA_FIRST, f"{name}: a run")
        return borrower, runs

    def verify_loans(self):
        """Every loan opens; those that manifests name are of what they import, and the lender keeps that."""
        folder = self.place / "loans"
        for lender in sorted(os.listdir(folder)) if folder.is_dir() else []:
            for name in self.names(f"loans/{lender}"):
                self.loan(name)
        for series in self.series():
            series.verify_imports()

    def verify_directory(self):
        """The newest directory: a list of series with their sketches."""
        for name in self.names("directory")[-1:]:
            _, plain = self.open_whole(name, DIRECTORY)
            card = Postcard(plain)
            entries = card.list(lambda: (card.take(16).hex(), card.sketch()))
            require(card.is_done() and len(entries) <= DIRECTORY_MAX, f"{name}: bytes behind its end, or too many")


class Series:
    """A series as its newest manifest says (section 11)."""

    def __init__(self, repository, series_id):
        self.repository, self.id = repository, series_id
        names = repository.names(f"series/{series_id}")
        self.object = names[-1]
        data, plain = repository.open_whole(self.object, MANIFEST)
        self.read_manifest(plain)
        require(repository.series_id(self.name) == series_id, f"{self.object}: the name is of another series")
        repository.follows(self.object, self.previous)
        self.containers = {}
        self.plain = {}
        self.where = {}
        for record in self.records:
            for first, count in record["chunks"]:
                for number in range(first, first + count):
                    require(number not in self.where, f"chunk {number} is answered for twice")
                    self.where[number] = record
        self.read_imports()

    def read_manifest(self, plain):
        self.sequence, self.previous, seconds, nanoseconds, lease = struct.unpack_from("<Q32sqIH", plain)
        require(f"{self.sequence:016x}" == self.object.rsplit("/", 1)[1], f"{self.object}: sequence")
        require(not any(plain[54 + lease : 564]), f"{self.object}: bytes behind the lease")
        body_bytes, zstd_bytes, salts_bytes, *counts = struct.unpack_from("<8Q", plain, 564)
        at = 628 + zstd_bytes
        body = zstandard.ZstdDecompressor().decompress(plain[628:at], max_output_size=body_bytes)
        require(len(body) == body_bytes, f"{self.object}: size of the body")
        card = Postcard(body)
        require(card.take(16).hex() == self.id, f"{self.object}: series")
        self.name = card.text()
        self.next_data, self.next_metadata = card.number(), card.number()
        self.snapshots = card.list(lambda: read_snapshot(card))
        card.list(lambda: card.take(32))  # unsettled
        self.ghosts_due = card.boolean()
        card.number()  # ghosts kept
        card.list(lambda: (card.take(32), card.option(card.number)))  # shortcuts
        self.damaged = numbers(card.bytes())
        card.boolean()  # listed
        lends, lent, unclaimed = card.boolean(), numbers(card.bytes()), numbers(card.bytes())
        require(lends or not (lent or unclaimed), f"{self.object}: it lends though it must not")
        self.lends, self.lent, self.unclaimed, self.sketch = lends, lent, unclaimed, card.sketch()
        require(not any(number >= METADATA_FIRST for number in lent | unclaimed), f"{self.object}: it lends metadata")
        self.lenders = card.list(lambda: (card.take(16).hex(), card.list(lambda: read_loan_id(card)), card.boolean()))
        differences, records, depths, imports = card.bytes(), card.bytes(), card.bytes(), card.bytes()
        require(card.is_done(), f"{self.object}: bytes behind the body")
        salts, at = plain[at : at + salts_bytes], at + salts_bytes
        at = self.read_marks(plain, at)
        lists = []
        for here, count in zip([differences, records, salts, depths, imports], counts, strict=True):
            require(not (here and count), f"{self.object}: a list has parts and bytes")
            lists.append(here + b"".join(self.read_part(plain, at + 52 * i) for i in range(count)))
            at += 52 * count
        require(len(plain) == at, f"{self.object}: bytes behind its end")
        self.read_lists(*lists)

    def read_marks(self, plain, at):
        """When deleted snapshots were marked, and until when they are kept; where what follows begins."""
        for snapshot in self.snapshots:
            if snapshot["deleted"]:
                since, since_ns, until, until_ns = struct.unpack_from("<qIqI", plain, at)
                require((since, since_ns) <= (until, until_ns), f"{self.object}: a mark ends before it begins")
                require(max(since_ns, until_ns) < 10**9 and not snapshot["partial"], f"{self.object}: a mark")
                at += 24
        return at

    def read_part(self, plain, at):
        """The plain text of the part whose record lies here."""
        lease, serial, plain_bytes, content_bytes = struct.unpack_from("<QIII", plain, at)
        name = f"parts/{self.id}/{lease:016x}-{serial:08x}"
        require(lease <= self.sequence and 0 < content_bytes <= plain_bytes <= 1 << 22, f"{self.object}: {name}")
        _, content = self.repository.open_whole(name, PART)
        require(len(content) == content_bytes, f"{name}: its length")
        if content_bytes < plain_bytes:
            content = zstandard.ZstdDecompressor().decompress(content, max_output_size=plain_bytes)
        require(blake3(content).digest() == plain[at + 20 : at + 52], f"{name}: not the one that is named")
        return content

    def read_lists(self, differences, records, salts, depths, imports):
        card = Postcard(differences)
        self.necessary, self.direct = [], []
        while not card.is_done():
            self.necessary.append((card.bytes(), card.bytes()))
            self.direct.append((card.bytes(), card.bytes()))
        require(len(self.direct) == len(self.snapshots), f"{self.object}: differences")
        card = Postcard(records)
        self.records = []
        while not card.is_done():
            self.records.append(read_record(card))
        require(len(salts) == 32 * len(self.records), f"{self.object}: salts")
        for i, record in enumerate(self.records):
            record["salt"] = salts[32 * i : 32 * i + 32]
        card = Postcard(depths)
        while not card.is_done():
            numbers(card.bytes())
        card = Postcard(imports)
        self.runs = []
        while not card.is_done():
            self.runs.append((card.number(), card.number(), card.number(), card.number()))
        self.live = [snapshot for snapshot in self.snapshots if not snapshot["deleted"]]

    # -- what is borrowed (section 13)

    def read_imports(self):
        """Where the chunks come from that are borrowed: of each the lender, and its number there."""
        lenders = [series for series, _, _ in self.lenders]
        sound = len(set(lenders)) == len(lenders) <= LENDERS_MAX and self.id not in lenders
        require(sound, f"{self.object}: it borrows of itself, of a series twice, or of too many")
        for _, loans, _ in self.lenders:
            require(all(borrower == self.id for borrower, _, _ in loans), f"{self.object}: a loan of another series")
        self.imports, free = {}, 0
        for lender, first, count, there in self.runs:
            ascends = first >= free and count > 0 and lender < len(lenders)
            require(ascends and max(first, there) + count <= METADATA_FIRST, f"{self.object}: imports")
            free = first + count
            for ahead in range(count):
                require(first + ahead not in self.where, f"chunk {first + ahead} is borrowed and in a container, too")
                self.imports[first + ahead] = (lenders[lender], there + ahead)
        require(len(set(self.imports.values())) == len(self.imports), f"{self.object}: a chunk is borrowed twice")

    def verify_imports(self):
        """What is borrowed is in loans that the manifest names, and the lender keeps it as its own."""
        for lender, loans, _ in self.lenders:
            borrowed = {here: there for here, (series, there) in self.imports.items() if series == lender}
            granted = {}
            for _, lease, serial in loans:
                borrower, runs = self.repository.loan(f"loans/{lender}/{self.id}-{lease:016x}-{serial:08x}")
                require(borrower == self.id and lease <= self.sequence, f"{self.object}: a loan of another series")
                for here, count, there in runs:
                    granted.update((here + ahead, there + ahead) for ahead in range(count))
            wrong = [here for here, there in borrowed.items() if granted.get(here) != there]
            require(not wrong, f"{self.object}: {len(wrong)} borrowed chunks are in no loan")
            if borrowed:
                kept = self.repository.series_of(lender).kept()
                require(set(borrowed.values()) <= kept, f"{self.object}: series {lender} keeps too little")

    def kept(self):
        """The chunks of a series that lends that are its own and not to be deleted."""
        require(self.lends, f"{self.object}: others borrow of it though it does not lend")
        kept, before = set(self.lent), set()
        for added, removed in self.necessary:
            before = (before - numbers(removed)) | numbers(added)
            kept |= before
        return kept & set(self.where)

    # -- containers and regions (sections 7 and 8)

    def container(self, record):
        """The regions of a container, opened by its index."""
        name = f"{FOLDERS[record['kind']]}/{self.id}/{record['id']}"
        if name not in self.containers:
            key = self.repository.object_key(name, record["kind"], record["salt"], record["epoch"], record["mode"])
            with open(self.repository.place / name, "rb") as file:
                header = Header(name, file.read(HEADER))
                same = (header.salt, header.kind, header.mode) == (record["salt"], record["kind"], record["mode"])
                require(same, f"{name}: header")
                require(header.commitment == key.commitment, f"{name}: sealed under another key")
                file.seek(record["index_offset"])
                sealed = file.read(record["index_bytes"])
            index = Postcard(key.open(header.raw, INDEX, sealed))
            regions, chunks, offset = [], {}, HEADER
            while not index.is_done():
                region = read_region(index)
                region["offset"], region["number"] = offset, len(regions)
                offset += region["bytes"] + TAG
                at = 0
                for number, length, fingerprint in region["chunks"]:
                    require(number not in chunks, f"{name}: chunk {number} twice")
                    chunks[number] = (region, at, length, fingerprint)
                    at += length
                region["plain"] = at
                regions.append(region)
            require(offset == record["index_offset"], f"{name}: the regions do not end where the index begins")
            for (first, count), run_bytes in zip(record["chunks"], record["run_bytes"]):
                total = sum(chunks[number][2] for number in range(first, first + count))
                require(run_bytes in (0, total), f"{name}: the bytes of a run")
            self.containers[name] = (name, key, header, regions, chunks)
        return self.containers[name]

    def region_text(self, record, region):
        """The plain text of a region, through all its bases."""
        name, key, header, _, _ = self.container(record)
        with open(self.repository.place / name, "rb") as file:
            file.seek(region["offset"])
            payload = key.open(header.raw, region["number"], file.read(region["bytes"] + TAG))
        if region["codec"] == 0:
            text = payload
        elif not region["bases"]:
            text = zstandard.ZstdDecompressor().decompress(payload, max_output_size=region["plain"])
        else:
            past = b"".join(self.chunk(base) for base in region["bases"])
            past = zstandard.ZstdCompressionDict(past, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            form = zstandard.FORMAT_ZSTD1_MAGICLESS
            decompressor = zstandard.ZstdDecompressor(past, max_window_size=1 << 31, format=form)
            text = decompressor.decompress(payload, max_output_size=region["plain"])
        require(len(text) == region["plain"], f"{name}: region {region['number']} has another length")
        return text

    def chunk(self, number):
        if number in self.imports:
            lender, there = self.imports[number]
            lender = self.repository.series_of(lender)
            require(there in lender.where, f"chunk {number}: series {lender.id} does not have {there} any more")
            return lender.chunk(there)
        if number not in self.plain:
            record = self.where[number]
            region = self.container(record)[4][number][0]
            self.keep_chunks(region, self.region_text(record, region), record)
        return self.plain[number]

    def keep_chunks(self, region, text, record):
        purpose = "metadata fingerprints" if record["kind"] == METADATA else "fingerprints"
        at = 0
        for number, length, fingerprint in region["chunks"]:
            data = text[at : at + length]
            at += length
            found = blake3(data, key=self.repository.purpose(purpose)).digest(16)
            require(found == fingerprint, f"chunk {number}: another fingerprint")
            if self.where.get(number) is record:
                self.plain[number] = data

    def bases_of(self, number):
        if number in self.imports:
            return []  # They are the lender's to keep.
        region = self.container(self.where[number])[4][number][0]
        return region["bases"]

    def closure(self, direct):
        """These numbers with all bases of the regions that hold them, and so on."""
        needed, waiting = set(direct), list(direct)
        while waiting:
            for base in self.bases_of(waiting.pop()):
                if base not in needed:
                    needed.add(base)
                    waiting.append(base)
        return needed

    # -- catalogs and recipes (sections 9 and 10)

    def entries(self, root, visited):
        """All entries below a node, in order."""
        last = []
        for entry in self.node(root, None, None, visited):
            require(sort_key(entry.path) > last, "catalog: paths do not ascend")
            last = sort_key(entry.path)
            yield entry

    def node(self, number, level, first, visited):
        require(number >= METADATA_FIRST, "catalog: a node among the data chunks")
        visited.add(number)
        fields = Fields(self.chunk(number))
        tag = fields.byte()
        if tag == 1:
            require(level in (None, 0), "catalog: a leaf on the wrong level")
            entries = self.leaf(fields, visited)
            require(first is None or (entries and entries[0].path == first), "catalog: another first path")
            yield from entries
            return
        require(tag == 2, "catalog: no node")
        own = fields.byte()
        require(level in (None, own) and own <= 64, "catalog: level")
        path, child, children = b"", METADATA_FIRST, []
        for _ in range(fields.number()):
            path = path[: fields.number()] + fields.bytes()
            child = fields.difference(child)
            children.append((path, child))
        fields.end()
        require(children and (first is None or children[0][0] == first), "catalog: another first path")
        for path, child in children:
            yield from self.node(child, own - 1, path, visited)

    def leaf(self, fields, visited):
        entries, before, self.expected = [], empty_entry(), 0
        for _ in range(fields.number()):
            entry = Entry()
            shared = fields.number()
            entry.path = before.path[:shared] + fields.bytes()
            self.read_fields(fields, entry, before, visited)
            entries.append(entry)
            before = entry
        fields.end()
        return entries

    def read_fields(self, fields, entry, before, visited):
        flags = fields.byte()
        entry.kind = flags & 7
        require(entry.kind < 6, "catalog: kind")
        if flags & 8:
            entry.owner = before.owner
        else:
            entry.owner = (fields.number(), fields.number(), fields.bytes(), fields.bytes())
        entry.mode = before.mode if flags & 16 else fields.number()
        entry.device = before.device if flags & 32 else fields.number()
        entry.modified = read_time(fields, before.modified[0])
        entry.changed = entry.modified if flags & 64 else read_time(fields, entry.modified[0])
        entry.inode = fields.difference(before.inode)
        entry.links = fields.number()
        entry.xattrs = []
        if flags & 128:
            entry.xattrs = [(fields.bytes(), fields.bytes()) for _ in range(fields.number())]
        entry.size = 0
        if entry.kind == 1:
            entry.size = fields.number()
            entry.recipe = self.recipe(fields, visited)
        elif entry.kind == 2:
            entry.target = fields.bytes()
        elif entry.kind in (4, 5):
            entry.numbers = (fields.number(), fields.number())

    def recipe(self, fields, visited):
        """The pieces of an entry: ("run", first, count) and ("hole", bytes)."""
        head = fields.number()
        if head & 1 == 0:
            pieces, self.expected = read_pieces(fields, head >> 1, self.expected)
            return pieces
        return self.parts(fields, head >> 1, None, visited)

    def parts(self, fields, count, level, visited):
        pieces, number = [], METADATA_FIRST
        for _ in range(count):
            number = fields.difference(number)
            fields.number()  # bytes covered
            pieces += self.part(number, level, visited)
        return pieces

    def part(self, number, level, visited):
        visited.add(number)
        fields = Fields(self.chunk(number))
        tag = fields.byte()
        if tag == 3:
            require(level in (None, 1), "recipe: level")
            pieces, _ = read_pieces(fields, fields.number(), 0)
        else:
            require(tag == 4, "recipe: no part")
            own = fields.byte()
            require(level in (None, own) and own <= 8, "recipe: level")
            pieces = self.parts(fields, fields.number(), own - 1, visited)
        fields.end()
        return pieces

    def content(self, entry, visited):
        """The bytes of a file, holes as zeros, one piece after another."""
        total = 0
        for piece in entry.recipe:
            if piece[0] == "hole":
                total += piece[1]
                yield None, piece[1]
                continue
            for number in range(piece[1], piece[1] + piece[2]):
                visited.add(number)
                data = self.chunk(number)
                total += len(data)
                yield data, len(data)
        require(total == entry.size, f"{entry.path!r}: its recipe makes {total} bytes instead of {entry.size}")

    # -- what a check can look at (section 11)

    def verify(self):
        for record in self.records:
            self.verify_container(record)
        live, before, direct = set(), set(), set()
        needs = []
        for i, snapshot in enumerate(self.snapshots):
            added, removed = map(numbers, self.direct[i])
            require(not added & direct and removed <= direct, f"snapshot {i}: direct is not minimal")
            direct = (direct - removed) | added
            visited = set()
            for entry in self.entries(snapshot["root"], visited):
                if entry.kind == 1:
                    for _ in self.content(entry, visited):
                        pass
            self.verify_record(snapshot)
            visited.add(snapshot["record"])
            require(visited == direct, f"snapshot {i}: it refers to other chunks than its direct says")
            added, removed = map(numbers, self.necessary[i])
            require(not added & before and removed <= before, f"snapshot {i}: NC is not minimal")
            before = (before - removed) | added
            needs.append((self.closure(direct), before))
            live |= before
        self.verify_hull(needs)
        require(live <= set(self.where) | set(self.imports), "a live chunk that no container answers for")
        require(set(self.imports) <= live, "an import that no snapshot needs")
        require(self.lent | self.unclaimed <= set(self.where), "a chunk that is lent and in no container")
        for value, number in self.sketch:
            require(number in live and number in self.where, "a sketch has chunks that are not needed, or not its own")
            fingerprint = self.container(self.where[number])[4][number][3]
            require(int.from_bytes(fingerprint[:8], "big") == value, f"a sketch has another fingerprint of {number}")

    def verify_record(self, snapshot):
        """The record of a snapshot, or of one before it, says what the manifest says (section 9)."""
        record = Postcard(self.chunk(snapshot["record"]))
        require(record.take(1) == b"\5" and record.text() == self.name, "record: of another series")
        found = read_snapshot(record)
        require(record.is_done() and not found["deleted"], "record: bytes behind its end, or a mark")
        fields = ["host", "user", "root"]
        if found["id"] == snapshot["id"]:
            fields += ["time", "program"]
        for field in fields:
            require(found[field] == snapshot[field], f"record: another {field}")

    def verify_hull(self, needs):
        """NC is the hull of what each snapshot needs itself."""
        for i, (_, necessary) in enumerate(needs):
            earlier = set().union(*(own for own, _ in needs[: i + 1]))
            later = set().union(*(own for own, _ in needs[i:]))
            hull = earlier & later
            require(hull <= necessary, f"snapshot {i}: NC lacks what it needs")
            require(self.ghosts_due or hull == necessary, f"snapshot {i}: NC holds more than the hull")

    def verify_container(self, record):
        name, key, header, regions, _ = self.container(record)
        data = self.repository.read(name)
        require(len(data) == record["bytes"] == padded(len(data)), f"{name}: size")
        trailer = key.open(header.raw, TRAILER, data[-48:])
        expected = struct.pack("<QQQQ", record["index_offset"], record["index_bytes"], len(data), 0)
        require(trailer == expected, f"{name}: trailer")
        end = record["index_offset"] + record["index_bytes"]
        require(not any(key.open(header.raw, PADDING, data[end:-48])), f"{name}: padding")
        for region in regions:
            own = [number for number, _, _ in region["chunks"] if self.where.get(number) is record]
            if own:
                self.keep_chunks(region, self.region_text(record, region), record)
            else:  # Superseded: its bases may be gone, but its seal holds.
                key.open(header.raw, region["number"], data[region["offset"] : region["offset"] + region["bytes"] + TAG])


def read_snapshot(card):
    snapshot = {
        "id": card.take(32).hex(),
        "time": card.time(),
        "made": card.time(),
        "host": card.text(),
        "user": card.text(),
        "paths": card.list(card.bytes),
        "tags": card.list(card.text),
        "description": card.option(card.text),
        "program": card.text(),
        "root": card.number(),
        "record": card.number(),
    }
    for _ in range(18):
        card.number()
    snapshot["partial"] = card.boolean()
    snapshot["deleted"] = card.boolean()
    return snapshot


def read_record(card):
    lease, serial = card.number(), card.number()
    record = {
        "id": f"{lease:016x}-{serial:08x}",
        "kind": (DATA, METADATA)[card.number()],
        "epoch": card.number(),
        "mode": card.number(),
        "bytes": card.number(),
        "index_offset": card.number(),
        "index_bytes": card.number(),
        "held": card.number(),
        "has_deltas": card.boolean(),
        "level": card.number(),
        "chunks": card.list(lambda: (card.number(), card.number())),
        "run_bytes": card.list(card.number),
    }
    require(len(record["chunks"]) == len(record["run_bytes"]), f"container {record['id']}: bytes of runs")
    return record


def read_loan_id(card):
    return card.take(16).hex(), card.number(), card.number()


def read_region(card):
    region = {"bytes": card.number(), "codec": card.number()}
    region["bases"] = expand(card.list(lambda: (card.number(), card.number())))
    chunks = expand(card.list(lambda: (card.number(), card.number())))
    lengths = card.list(card.number)
    fingerprints = card.list(lambda: card.take(16))
    require(len(chunks) == len(lengths) == len(fingerprints), "index: lists of different lengths")
    region["chunks"] = list(zip(chunks, lengths, fingerprints))
    return region


def expand(runs):
    """Runs of numbers: how far each begins after the last number of the run before, and how many it has."""
    result, last = [], 0
    for gap, count in runs:
        require(count >= 1, "index: an empty run")
        result.extend(range(last + gap, last + gap + count))
        last = result[-1]
    return result


def read_pieces(fields, count, expected):
    pieces = []
    for _ in range(count):
        head = fields.number()
        if head & 1:
            pieces.append(("hole", head >> 1))
        else:
            first = fields.difference(expected)
            expected = first + (head >> 1)
            pieces.append(("run", first, head >> 1))
    return pieces, expected


def read_time(fields, base):
    seconds = fields.signed_difference(base)
    return (seconds, struct.unpack("<I", fields.take(4))[0])


def empty_entry():
    entry = Entry()
    entry.path, entry.owner, entry.mode, entry.device = b"", (0, 0, b"", b""), 0, 0
    entry.modified, entry.inode = (0, 0), 0
    return entry


# ----------------------------------------------------------------------------------------------------------- the
# commands

KINDS = [stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK]


def listing(repository):
    """A line per entry, in the form of the golden repositories' listing.txt."""
    lines = []
    for series in repository.series():
        for snapshot in series.live:
            lines.append((snapshot["time"], series.name, list(snapshot_lines(series, snapshot))))
    lines.sort(key=lambda snapshot: snapshot[0])
    return "".join(line + "\n" for _, _, snapshot in lines for line in snapshot)


def snapshot_lines(series, snapshot):
    yield f"snapshot {moment(snapshot['time'])} of {series.name} [{' '.join(snapshot['tags'])}]"
    below = snapshot["paths"][0][1:]
    visited = set()
    for entry in series.entries(snapshot["root"], visited):
        if entry.path != below and not entry.path.startswith(below + b"/"):
            continue
        content, device = b"", 0
        if entry.kind == 1:
            content = b"".join(bytes(size) if data is None else data for data, size in series.content(entry, visited))
        elif entry.kind == 2:
            content = entry.target
        elif entry.kind == 4:
            device = os.makedev(*entry.numbers)
        name = entry.path[len(below) :].lstrip(b"/")
        seconds, nanoseconds = entry.modified
        line = f"{KINDS[entry.kind]:06o} {entry.mode:04o} {entry.owner[0]}:{entry.owner[1]} {seconds}.{nanoseconds:09d} "
        line += f"{device} {len(content)} {blake3(content).hexdigest()[:16]} /{escaped(name)}"
        yield line + "".join(f" {escaped(name)}={escaped(value)}" for name, value in entry.xattrs)


def moment(time):
    import datetime

    return datetime.datetime.fromtimestamp(time[0], datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def escaped(data):
    special = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data)


def restore(repository, target):
    for series in repository.series():
        for place, snapshot in enumerate(series.live):
            folder = os.path.join(target.encode(), series.name.replace("/", "_").encode(), str(place).encode())
            os.makedirs(folder, exist_ok=True)
            restore_snapshot(series, snapshot, folder)


def restore_snapshot(series, snapshot, folder):
    """Files, folders and symbolic links with modes and times; nothing that needs rights."""
    visited, folders = set(), []
    for entry in series.entries(snapshot["root"], visited):
        path = os.path.join(folder, entry.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if entry.kind == 0:
            os.makedirs(path, exist_ok=True)
            folders.append((path, entry))
            continue
        if entry.kind == 1:
            with open(path, "wb") as file:
                for data, size in series.content(entry, visited):
                    if data is None:
                        file.seek(size, os.SEEK_CUR)
                    else:
                        file.write(data)
                file.truncate(entry.size)
        elif entry.kind == 2:
            os.symlink(entry.target, path)
        else:
            continue
        apply(path, entry)
    for path, entry in reversed(folders):
        apply(path, entry)


def apply(path, entry):
    if entry.kind != 2:
        os.chmod(path, entry.mode)
    nanoseconds = entry.modified[0] * 10**9 + entry.modified[1]
    os.utime(path, ns=(nanoseconds, nanoseconds), follow_symlinks=False)


def main(arguments):
    command, place, password_file = arguments[:3]
    repository = Repository(place, Path(password_file).read_bytes())
    if command == "list":
        sys.stdout.write(listing(repository))
    elif command == "restore":
        restore(repository, arguments[3])
    elif command == "verify":
        repository.verify_slots()
        repository.verify_copies()
        repository.verify_loans()
        repository.verify_directory()
        for series in repository.series():
            series.verify()
        print(f"{len(repository.series())} series are as the page says")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    main(sys.argv[1:])
