//! Tests of places on other machines: simulated, and real servers on this machine. One file for each kind of place, all
//! in one program, which is linked once. `cargo test -p siltstone-remote --test all sftp::` runs those of one file.

mod conformance;
mod emulators;
mod minio;
mod servers;
mod sftp;
