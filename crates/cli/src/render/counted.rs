//! Counts with their nouns: `1 file`, `2 files`, `0 entries`.

/// A count and its noun, given in the singular. What ends in `s` has no plural of its own, as *series*.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}

/// The noun alone, for this many: [`counted`] without the number.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 || noun.ends_with('s') {
        return noun.to_owned();
    }
    match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn one_is_singular_and_all_else_plural() {
        let counts = |noun: &str| [0, 1, 2].map(|count| counted(count, noun));
        assert_eq!(counts("file"), ["0 files", "1 file", "2 files"]);
        assert_eq!(counts("entry"), ["0 entries", "1 entry", "2 entries"]);
        assert_eq!(counts("series"), ["0 series", "1 series", "2 series"]);
        assert_eq!(counts("deleted snapshot"), ["0 deleted snapshots", "1 deleted snapshot", "2 deleted snapshots"]);
    }

    /// Nouns that a message may follow on a count that it fills in.
    const NOUNS: [&str; 16] = [
        "archives",
        "chunks",
        "containers",
        "entries",
        "errors",
        "files",
        "folders",
        "keys",
        "lines",
        "locks",
        "objects",
        "paths",
        "problems",
        "seconds",
        "snapshots",
        "versions",
    ];

    #[test]
    fn no_message_of_this_program_writes_a_plural_behind_a_count_that_may_be_one() {
        let mut found = Vec::new();
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |path, text| {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let is_plural = |noun: &str| line.contains(&format!("}} {noun}"));
                if NOUNS.iter().any(|noun| is_plural(noun)) {
                    found.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        });
        assert!(found.is_empty(), "use `counted`: {found:#?}");
    }

    fn visit(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, look);
            } else {
                look(&path, &std::fs::read_to_string(&path).expect("a text"));
            }
        }
    }
}
