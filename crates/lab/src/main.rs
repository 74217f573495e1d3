//! `silt-lab`: arguments in, tables and reports out.

#![allow(clippy::doc_markdown, reason = "the documentation of an option is its help text")]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    begin_with_few_arenas();
    cli::main()
}

/// Begins this program again with a setting that the C library takes from the environment alone: a run starts thousands
/// of threads, one after another, and in eight arenas for each core what they free would stay, beyond the bound on
/// memory. Where that fails, all else works.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn begin_with_few_arenas() {
    use std::os::unix::process::CommandExt;
    const ARENAS: &str = "MALLOC_ARENA_MAX";
    let mut arguments = std::env::args_os();
    if let (None, Some(name), Ok(program)) = (std::env::var_os(ARENAS), arguments.next(), std::env::current_exe()) {
        // Comes back only with an error.
        let _ = std::process::Command::new(program).arg0(name).args(arguments).env(ARENAS, "2").exec();
    }
}
