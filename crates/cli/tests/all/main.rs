//! Tests of the program `silt`, run as a process: one file for each subject, all in one program, which is linked once.
//! `cargo test -p siltstone --test all restoring::` runs those of one file.

mod by_itself;
mod changed_list;
mod checking;
mod commands;
mod common;
mod comparing;
mod copying;
mod damaged_series;
mod exit_codes;
mod figures;
mod finding;
mod generating;
mod guide;
mod importing;
mod json;
mod labelling;
mod leases;
mod mounting;
mod passwords;
mod policies;
mod profiles;
mod repair;
mod restoring;
mod rewriting;
mod rollback;
mod servers;
mod serving;
mod sharing;
mod terminal;
mod undelete;
mod webdav;
mod words;
mod write_only;
