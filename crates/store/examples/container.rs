//! Makes a repository in an empty folder, commits one chunk to a series, and reads it back with the password alone.
//! `cargo run -p siltstone-store --example container FOLDER`

use siltstone_store::config::ChunkerSettings;
use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader};
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::manifest::LeaseHolder;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionDecoder, RegionEncoder, ZSTD_LEVEL_DEFAULT};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter};
use siltstone_store::storage::Disk;
use siltstone_store::{ChunkNumber, Time};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

const PASSWORD: &[u8] = b"an example's password";
const CHUNK: &[u8] = b"silt settles, stone stays. ";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name an empty folder")?;
    let folder = Path::new(&folder);
    write(folder)?;
    read(folder)
}

/// Makes the repository, and commits a container under a lease.
fn write(folder: &Path) -> Result<(), Box<dyn Error>> {
    let label = KeyLabel { created: Time::default(), host: "example".into(), user: "example".into() };
    let chunker = ChunkerSettings { name: "lagged".into(), min_bytes: 8192, average_bytes: 16384, max_bytes: 65536 };
    let repository = Repository::init(Arc::new(Disk::create(folder)?), PASSWORD, &label, Argon2Cost::DEFAULT, chunker)?;
    let (host, user, boot) = ("example".into(), "example".into(), "example".into());
    let holder = LeaseHolder { host, user, pid: std::process::id(), boot, started_ticks: 0 };
    let mut writer = SeriesWriter::acquire(&repository, &LeaseRequest::new("example", holder, "example"))?;

    let bytes = CHUNK.repeat(1000);
    let (keys, number) = (repository.keys(), writer.manifest().next_data);
    let chunk = ChunkEntry { number, fingerprint: keys.fingerprint(&bytes), length: u32::try_from(bytes.len())? };
    let mut encoder = RegionEncoder::fast(ZSTD_LEVEL_DEFAULT);
    let region = EncodedRegion::encode(&mut encoder, vec![chunk], &bytes)?;
    println!("a chunk of {} bytes is a region of {}", bytes.len(), region.payload.len());

    let mut builder = ContainerBuilder::new(keys, writer.series(), writer.new_container_id(), ContainerKind::Data)?;
    builder.push(&region)?;
    let container = builder.finish()?;
    writer.put(&container)?;
    let mut next = writer.manifest().clone();
    next.containers.push(container.record);
    next.next_data = ChunkNumber(number.0 + 1);
    writer.commit(next, false, Time::default())?;
    Ok(())
}

/// Opens the repository, and verifies the chunk.
fn read(folder: &Path) -> Result<(), Box<dyn Error>> {
    let repository = Repository::open(Arc::new(Disk::open(folder)?), PASSWORD)?;
    for manifest in repository.manifests()? {
        for record in &manifest.containers {
            let reader = ContainerReader::open(repository.storage(), repository.keys(), manifest.series, record)?;
            let plain = reader.read_region(repository.storage(), 0, &mut RegionDecoder::new(), &[])?;
            reader.verify_region(repository.keys(), 0, &plain)?;
            println!("{} holds {} bytes, as they were", reader.object_name(), plain.len());
        }
    }
    Ok(())
}
