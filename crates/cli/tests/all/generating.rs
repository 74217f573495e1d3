//! Completions and manual pages, read by the programs that they are for, where those are there.

use crate::common::Sandbox;
use std::path::Path;
use std::process::Command;

/// Returns the complaints of `program`; `None` where there is no such program.
fn complaints(program: &str, words: &[&str], file: &Path) -> Option<String> {
    let output = Command::new(program).args(words).arg(file).output().ok()?;
    assert!(output.status.success(), "{program} {}: {output:?}", file.display());
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn generate(sandbox: &Sandbox, option: &str, name: &str) -> std::path::PathBuf {
    let file = sandbox.path(name);
    sandbox.run(&["generate", option, &file.display().to_string()]).ok();
    file
}

#[test]
fn shells_read_their_completions() {
    let sandbox = Sandbox::bare();
    for (shell, words) in [("bash", ["-n"].as_slice()), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let script = generate(&sandbox, &format!("--{shell}-completion"), &format!("silt.{shell}"));
        assert_eq!(complaints(shell, words, &script).unwrap_or_default(), "", "{shell}");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let sandbox = Sandbox::bare();
    let script = generate(&sandbox, "--bash-completion", "silt.bash");
    let complete = |words: &str, last: usize| {
        let line = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={last}; _silt silt \"${{COMP_WORDS[{last}]}}\" \
             \"${{COMP_WORDS[{last}-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &line]).output().expect("bash");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("silt snap", 1), "snapshots\n");
    assert_eq!(complete("silt backup --exclude-c", 2), "--exclude-caches\n");
}

#[test]
fn manual_pages_are_set_without_warnings() {
    let sandbox = Sandbox::bare();
    std::fs::create_dir(sandbox.path("man")).expect("made");
    let folder = generate(&sandbox, "--man", "man");
    let pages: Vec<_> = std::fs::read_dir(folder).expect("read").map(|page| page.expect("a page").path()).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let words = ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"];
        assert_eq!(complaints("man", &words, &page).unwrap_or_default(), "", "{}", page.display());
    }
}
