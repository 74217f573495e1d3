//! Dumps of a changing key-value store: the files a Redis server writes with `SAVE`, 3 % of the values being rewritten
//! between one and the next and 1 % added. Strings, hashes, lists, sorted sets and binary values; what compresses well
//! is compressed by Redis itself.
//!
//! Commands come from fixed seeds, but Redis keeps its keys in an order that it draws anew at each start. So the dumps
//! of one making share their order, as those of one running server do, and those of two makings differ.

use super::stop::go_on;
use super::{Amount, Corpora, Corpus, once};
use crate::deterministic::Sequence;
use crate::install::{self, Missing};
use crate::program::{self, Owned};
use crate::tree;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Keys of the first version, and versions.
struct Shape {
    name: &'static str,
    keys: u64,
    versions: u64,
    /// Changes every value: 0 in what benchmarks use.
    salt: u64,
}

/// About 24 MB.
const LITTLE: Shape = Shape { name: "redis-little", keys: 20_000, versions: 3, salt: 0 };
/// About 1.1 GB. The keys stay below a power of two: where Redis resizes its table, their order changes.
const FULL: Shape = Shape { name: "redis", keys: 230_000, versions: 12, salt: 0 };
/// About 1.1 GB too, in more versions.
const HISTORY: Shape = Shape { name: "redis-history", keys: 104_000, versions: 25, salt: 0 };

/// Bytes that a key and its value take in a dump.
const KEY_BYTES: u64 = 385;

/// Parameters of a key-value server's dumps.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Redis {
    /// Seed of keys and values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 25)]
    pub versions: u64,
    /// Bytes of the first version, about (as 40MB)
    #[arg(long, default_value = "44MB", value_parser = super::parse_bytes)]
    pub size: u64,
}

impl Redis {
    /// All versions into `folder`.
    pub(super) fn make(&self, folder: &Path, missing: Missing) -> Result<()> {
        let salt = Sequence::of(&[self.seed]).next();
        let keys = (self.size / KEY_BYTES).max(100);
        make(folder, &Shape { name: "", keys, versions: self.versions, salt }, missing)
    }
}

/// The versions, generated if they are not there yet.
pub(super) fn corpus(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let shape = match amount {
        Amount::Little => LITTLE,
        Amount::Memory | Amount::Full => FULL,
    };
    dumps(corpora, &shape)
}

/// More versions, each smaller.
pub(super) fn history(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    dumps(corpora, if amount == Amount::Little { &LITTLE } else { &HISTORY })
}

fn dumps(corpora: &Corpora, shape: &Shape) -> Result<Corpus> {
    let kept = corpora.folder.join(shape.name);
    once(&kept, |partial| make(partial, shape, corpora.missing))?;
    let description = format!(
        "{} dumps of a Redis server of {} keys, 3 % of the values rewritten between them",
        shape.versions, shape.keys
    );
    Ok(Corpus { name: "redis".into(), description, versions: tree::entries(&kept)? })
}

fn make(folder: &Path, shape: &Shape, missing: Missing) -> Result<()> {
    missing.obtain(&[install::REDIS, install::REDIS_CLIENT])?;
    let server = Server::start()?;
    let added = shape.keys / 100;
    for version in 0..shape.versions {
        go_on()?;
        eprintln!("generating version {} of {} of the key-value store", version + 1, shape.versions);
        let keys = shape.keys + version * added;
        if version == 0 {
            server.write((0..keys).map(|key| (key, 0)), shape.salt)?;
        } else {
            let mut sequence = Sequence::new(version ^ shape.salt);
            let rewritten = (0..keys * 3 / 100).map(|_| (sequence.below(keys - added), version));
            server.write(rewritten.chain((keys - added..keys).map(|key| (key, version))), shape.salt)?;
        }
        server.save(&folder.join(format!("{version:03}.rdb")))?;
    }
    Ok(())
}

/// A server of our own, on a socket in a folder of its own.
struct Server {
    _process: Owned,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--dbfilename", "dump.rdb"]);
        command.arg("--dir").arg(folder.path()).arg("--unixsocket").arg(folder.path().join("socket"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut process = Owned(child.context("redis-server could not be started")?);
        let answer = || program::quietly(client(folder.path()).arg("ping"));
        process.wait_until("redis-server", || answer().is_ok_and(|said| said.trim() == "PONG"))?;
        Ok(Self { _process: process, folder })
    }

    /// Gives each of these keys the value of this version.
    fn write(&self, mut values: impl Iterator<Item = (u64, u64)>, salt: u64) -> Result<()> {
        program::fed(client(self.folder.path()).arg("--pipe"), |out| {
            values.try_for_each(|(key, version)| write_value(out, key, version, salt))
        })
    }

    /// Lets the server write a dump, and moves it to `to`.
    fn save(&self, to: &Path) -> Result<()> {
        program::quietly(client(self.folder.path()).arg("save"))?;
        let dump: PathBuf = self.folder.path().join("dump.rdb");
        fs::copy(dump, to).with_context(|| format!("{} cannot be written", to.display())).map(drop)
    }
}

/// The client of the server in this folder.
fn client(folder: &Path) -> Command {
    let mut command = Command::new("redis-cli");
    command.arg("-s").arg(folder.join("socket"));
    command
}

/// Deletes what the key held and writes the value anew; its kind is the key's for ever.
fn write_value(out: &mut impl Write, key: u64, version: u64, salt: u64) -> Result<()> {
    let mut sequence = Sequence::new(key ^ version << 40 ^ salt);
    let name = format!("item:{key:08}");
    command(out, &[b"DEL", name.as_bytes()])?;
    let mut words: Vec<Vec<u8>> = Vec::new();
    match key % 6 {
        0 | 1 => words.extend([b"SET".to_vec(), document(&mut sequence)]),
        2 => {
            words.push(b"HSET".to_vec());
            for field in 0..8 {
                words.extend([format!("field{field}").into_bytes(), sequence.next().to_string().into_bytes()]);
            }
        }
        3 => {
            words.push(b"RPUSH".to_vec());
            words.extend((0..24).map(|_| format!("{:016x}", sequence.next()).into_bytes()));
        }
        4 => {
            words.push(b"ZADD".to_vec());
            for _ in 0..24 {
                words.extend([sequence.below(100_000), sequence.below(1 << 40)].map(|n| n.to_string().into_bytes()));
            }
        }
        _ => {
            let count = 200 + sequence.index(800);
            words.extend([b"SET".to_vec(), sequence.bytes(count)]);
        }
    }
    words.insert(1, name.into_bytes());
    command(out, &words)
}

/// A record of text as services keep it: words, numbers and a token.
fn document(sequence: &mut Sequence) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "order",
        "paid",
        "shipment",
        "customer",
        "returned",
        "priority",
        "warehouse",
        "north",
        "invoice",
        "pending",
        "address",
        "changed",
        "by",
        "the",
        "carrier",
        "again",
    ];
    let mut text = format!("{{\"id\":{},\"token\":\"{:016x}\",\"note\":\"", sequence.below(1 << 32), sequence.next());
    for _ in 0..30 + sequence.below(150) {
        text += WORDS[sequence.index(WORDS.len())];
        text.push(' ');
    }
    (text + "\"}").into_bytes()
}

/// A command in the protocol of Redis.
fn command(out: &mut impl Write, words: &[impl AsRef<[u8]>]) -> Result<()> {
    write!(out, "*{}\r\n", words.len())?;
    for word in words {
        write!(out, "${}\r\n", word.as_ref().len())?;
        out.write_all(word.as_ref())?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_each_time_and_differ_between_versions() {
        let value = |key, version| {
            let mut out = Vec::new();
            write_value(&mut out, key, version, 0).unwrap();
            out
        };
        for key in 0..6 {
            assert_eq!(value(key, 1), value(key, 1));
            assert_ne!(value(key, 1), value(key, 2));
            assert!(value(key, 1).starts_with(b"*2\r\n$3\r\nDEL\r\n$13\r\nitem:0000000"));
        }
    }
}
