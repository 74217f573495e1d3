//! Tests of a served place through its clients, one file for each subject, all in one program, which is linked once.
//! `cargo test -p siltstone-serve --test all tokens::` runs those of one file.

mod common;
mod conformance;
mod requests;
mod tokens;
