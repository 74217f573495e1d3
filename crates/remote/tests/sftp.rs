//! The contract of storages, held against OpenSSH's server, alone and behind a real `sshd`, and against rclone; and what
//! becomes of a repository when the connection breaks at any moment.

#![allow(missing_docs)]

mod servers;

use servers::{by_program, empty_folder, server_program};
use siltstone_store::storage::conformance::Contract;

fn every_storage(contract: Contract) {
    let folder = empty_folder();
    contract(&by_program(&server_program(), folder.path()));
}

siltstone_store::contracts!(every_storage);
