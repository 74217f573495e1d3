//! Holds the words in the names of types and modules against the glossary of `docs/ARCHITECTURE.md`: a word is one of
//! the glossary's, or plain English of programmers, listed in `glossary/plain.txt`. So a term of our own gets an entry,
//! or another name, before strangers meet it. A text scan: it sees lines that begin an item, not what macros make.

use siltstone_testbed::{tree, workspace};
use std::collections::BTreeSet;
use std::fs;

/// The crates whose names are read.
const CRATES: [&str; 8] = ["simd", "rolling", "chunk", "similar", "store", "engine", "remote", "serve"];
const ITEMS: [&str; 4] = ["struct", "enum", "trait", "type"];
const PLAIN: &str = include_str!("glossary/plain.txt");

/// The name that a line of source declares: of a public type, or of a module.
fn declared(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = match words.as_slice() {
        ["pub", item, name, ..] if ITEMS.contains(item) => name,
        ["mod", name, ..] => name,
        [visibility, "mod", name, ..] if visibility.starts_with("pub") => name,
        _ => return None,
    };
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The words of a name, in small letters: of `CamelCase`, of `snake_case`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && !before.is_uppercase() {
            words.push(String::new());
        }
        words.last_mut().expect("never empty").extend(c.to_lowercase().filter(|c| *c != '_'));
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The terms of the glossary: first cells of its table, word by word.
fn glossary() -> BTreeSet<String> {
    let text = fs::read_to_string(workspace::root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("## Glossary").expect("a glossary");
    let terms = table.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    terms.flat_map(|terms| terms.split(|c: char| !c.is_alphanumeric())).map(str::to_lowercase).collect()
}

/// The words that need no entry; lines that begin with `#` are headings.
fn plain() -> impl Iterator<Item = &'static str> {
    PLAIN.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace)
}

/// Tells whether a word, or what it is the plural of, is among these.
fn is_known(word: &str, known: &BTreeSet<String>) -> bool {
    let singular = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.or_else(|| word.strip_suffix('s').map(str::to_owned));
    known.contains(word) || singular.is_some_and(|word| known.contains(&word))
}

#[test]
fn names_are_made_of_words_of_the_glossary_or_plain_english() {
    let mut known = glossary();
    known.extend(plain().map(str::to_owned));
    let mut strangers = BTreeSet::new();
    for folder in CRATES.map(|name| workspace::root().join("crates").join(name).join("src")) {
        for path in tree::files(&folder).unwrap() {
            let source = fs::read_to_string(&path).unwrap();
            for name in source.lines().filter_map(declared) {
                let unknown = words_of(name).into_iter().filter(|word| !is_known(word, &known));
                strangers.extend(unknown.map(|word| format!("{word} (of {name}, {})", path.display())));
            }
        }
    }
    let list: Vec<String> = strangers.into_iter().collect();
    assert!(
        list.is_empty(),
        "neither in the glossary of docs/ARCHITECTURE.md nor in xtask/src/glossary/plain.txt:\n{}\nUse a word that is, \
         give the term an entry in the glossary, or, if every programmer knows it, add it to plain.txt.",
        list.join("\n")
    );
}

#[test]
fn plain_words_are_listed_once_and_have_no_entry() {
    let (glossary, mut seen) = (glossary(), BTreeSet::new());
    for word in plain() {
        assert!(!glossary.contains(word), "'{word}' is in the glossary: take it out of plain.txt");
        assert!(seen.insert(word), "'{word}' stands twice in plain.txt");
    }
}

#[test]
fn names_are_read_from_lines_that_declare_them() {
    assert_eq!(declared("pub struct ChunkNumber(pub u64);"), Some("ChunkNumber"));
    assert_eq!(declared("    pub(crate) mod wire {"), Some("wire"));
    assert_eq!(declared("pub(crate) struct Inner;"), None);
    assert_eq!(declared("//! mod tests"), None);
    assert_eq!(words_of("BaseIOError"), ["base", "ioerror"]);
    assert_eq!(words_of("gear_nc2"), ["gear", "nc2"]);
}
