//! `silt generate`: completion scripts for shells, and manual pages.

use crate::error::{CliError, Done};
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write completion scripts for shells (- for standard output) and manual pages
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct GenerateArgs {
    /// For bash
    #[arg(long, value_name = "FILE")]
    bash_completion: Option<PathBuf>,
    /// For zsh
    #[arg(long, value_name = "FILE")]
    zsh_completion: Option<PathBuf>,
    /// For fish
    #[arg(long, value_name = "FILE")]
    fish_completion: Option<PathBuf>,
    /// For PowerShell
    #[arg(long, value_name = "FILE")]
    powershell_completion: Option<PathBuf>,
    /// Manual pages, one for each command of silt and of silt-import, into this folder
    #[arg(long, value_name = "FOLDER")]
    man: Option<PathBuf>,
}

pub(crate) fn run(arguments: &GenerateArgs, mut program: Command, import: Command) -> Result<Done, CliError> {
    let scripts = [
        (&arguments.bash_completion, Shell::Bash),
        (&arguments.zsh_completion, Shell::Zsh),
        (&arguments.fish_completion, Shell::Fish),
        (&arguments.powershell_completion, Shell::PowerShell),
    ];
    for (file, shell) in scripts {
        if let Some(file) = file {
            write(file, &script(shell, &mut program))?;
        }
    }
    if let Some(folder) = &arguments.man {
        // 'silt import' and the program 'silt-import' have one page, that of the former, which names the latter.
        for program in [import, program] {
            clap_mangen::generate_to(program.disable_help_subcommand(true), folder)
                .map_err(|source| CliError::OutputFile { path: folder.clone(), source })?;
        }
    }
    Ok(Done::Whole)
}

fn script(shell: Shell, program: &mut Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, program, "silt", &mut script);
    script
}

fn write(file: &Path, script: &[u8]) -> Result<(), CliError> {
    if file.as_os_str() == "-" {
        return std::io::stdout().lock().write_all(script).map_err(CliError::Output);
    }
    std::fs::write(file, script).map_err(|source| CliError::OutputFile { path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, ImportCli};
    use clap::CommandFactory;

    #[test]
    fn scripts_know_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
            let text = String::from_utf8(script(shell, &mut Cli::command())).expect("text");
            assert!(text.contains("backup") && text.contains("restore"), "{shell}");
        }
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = GenerateArgs {
            bash_completion: None,
            zsh_completion: None,
            fish_completion: None,
            powershell_completion: None,
            man: None,
        };
        let arguments = GenerateArgs { man: Some(folder.path().to_owned()), ..none };
        run(&arguments, Cli::command(), ImportCli::command()).expect("pages");
        let page = std::fs::read_to_string(folder.path().join("silt-backup.1")).expect("a page");
        assert!(page.contains(".TH silt\\-backup") || page.contains(".TH silt-backup"), "{page}");
        assert!(page.contains("checkpoint"), "its options are in it");
        assert!(folder.path().join("silt.1").exists());
        let mut names = std::fs::read_dir(folder.path()).expect("pages").map(|page| page.expect("a page").file_name());
        assert!(!names.any(|name| name.to_string_lossy().contains("-help")), "help says nothing of its own");
        let pages = ["silt-import.1", "silt-import-tar.1", "silt-import-restic.1"];
        let [import, tar, restic] =
            pages.map(|page| std::fs::read_to_string(folder.path().join(page)).expect("a page"));
        assert!(import.contains("import\\-tar(1)") && import.contains("restic"), "{import}");
        assert!(tar.contains("archive") && restic.contains("from\\-repo"), "{restic}");
    }
}
