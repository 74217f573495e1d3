//! Holds the engine's modules against the rule that imports go one way: no circle between its rooms (its top-level
//! modules), nor between the modules of a folder in `backup`, `restore` and `maintain`.
//!
//! Each file of a folder, and each folder in it with all it holds, counts as one module. A name that a module only
//! hands on counts as imported from where it is defined. Parent and child may know each other; tests may know
//! everybody. Read are `use` trees, and paths that begin with `crate` or `super`: a scan, no parser.

use siltstone_testbed::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders whose modules must not import each other in a circle, nor those of the folders in them.
const ONE_WAY: [&str; 3] = ["backup", "restore", "maintain"];
/// Modules that hand a name on, one to the next, at most: more would be a circle of its own.
const HANDED_ON_MAX: usize = 8;

/// Imports of each module, by its path from the root of the crate (`a::b::`): paths, and the name that a `use` gives.
type Crate = BTreeMap<String, Vec<(Option<String>, String)>>;

/// Reads the sources of a folder without comments, and without what is compiled for tests only.
fn read(folder: &Path, module: &str, found: &mut Crate) {
    let is_test = |path: &Path| ["tests", "tests.rs", "testing.rs"].iter().any(|name| path.ends_with(name));
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !is_test(path)) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let below = if ["mod", "lib"].contains(&name) { module.to_owned() } else { format!("{module}{name}::") };
        if path.is_dir() {
            read(&path, &below, found);
        } else {
            found.insert(below, imports(&without_tests(&fs::read_to_string(&path).unwrap())));
        }
    }
}

/// Leaves out comments, and items that only tests have: up to where their indentation ends them.
fn without_tests(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut kept, mut test) = (String::new(), None);
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        match test {
            None if line.trim() == "#[cfg(test)]" => test = Some(indent(line)),
            None => kept.extend([line, "\n"]),
            Some(depth) if indent(line) == depth && line.trim_end().ends_with([';', '}']) => test = None,
            Some(_) => {}
        }
    }
    kept
}

fn imports(text: &str) -> Vec<(Option<String>, String)> {
    let (mut found, mut rest) = (Vec::new(), text);
    let word =
        |rest: &str| ["use ", "crate::", "super::"].into_iter().filter_map(|word| Some((rest.find(word)?, word))).min();
    while let Some((at, word)) = word(rest) {
        let (before, from) = rest.split_at(at);
        rest = &from[word.len()..];
        if before.ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c)) {
            continue;
        }
        let is_use = word == "use ";
        let tree = if is_use { rest } else { from };
        let end = |c: char| if is_use { c == ';' } else { !c.is_alphanumeric() && !"_:".contains(c) };
        let (tree, after) = tree.split_at(tree.find(end).unwrap_or(tree.len()));
        leaves(&tree.replace('\n', " "), "", &mut |name, path| found.push((is_use.then_some(name), path)));
        rest = after;
    }
    found
}

/// Gives each path of a `use` tree and its name here; returns what follows the tree.
fn leaves<'t>(tree: &'t str, above: &str, each: &mut dyn FnMut(String, String)) -> &'t str {
    let end = tree.find(['{', ',', '}']).unwrap_or(tree.len());
    let (path, mut rest) = tree.split_at(end);
    let path = format!("{above}{}", path.trim());
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') && !rest.is_empty() {
            rest = leaves(rest, &path, each).trim_start_matches(',').trim_start();
        }
        return rest.strip_prefix('}').unwrap_or_default().trim_start();
    }
    let last = path.trim_end_matches("::self").rsplit("::").next().unwrap_or_default();
    let (path, name) = path.split_once(" as ").unwrap_or((&path, last));
    each(name.to_owned(), path.trim_end_matches("::self").to_owned());
    rest
}

/// Finds the module that defines what `path` names in `module`; `None` for another crate's.
fn home(found: &Crate, module: &str, path: &str, handed_on: usize) -> Option<String> {
    let (mut at, words) = (module.to_owned(), path.split("::").collect::<Vec<_>>());
    for (place, word) in words.iter().enumerate() {
        let below = format!("{at}{word}::");
        match *word {
            "crate" => at.clear(),
            "self" => {}
            "super" => at.truncate(at.trim_end_matches("::").rfind("::").map_or(0, |end| end + 2)),
            _ if found.contains_key(&below) => at = below,
            name => {
                let mut uses = found.get(&at)?.iter().filter(|_| handed_on < HANDED_ON_MAX);
                let Some((_, from)) = uses.find(|(here, _)| here.as_deref() == Some(name)) else {
                    return (place > 0).then_some(at);
                };
                let path = [&[from.as_str()], &words[place + 1..]].concat().join("::");
                return home(found, &at, &path, handed_on + 1);
            }
        }
    }
    Some(at)
}

/// Lists the imports between the modules of a folder that lead back to where they come from.
fn circles(found: &Crate, folder: &str) -> Vec<String> {
    let within = |module: &str| Some(module.strip_prefix(folder)?.split_once("::")?.0.to_owned());
    let mut arrows = BTreeSet::new();
    for (module, imports) in found {
        let homes = imports.iter().filter_map(|(_, path)| within(&home(found, module, path, 0)?));
        arrows.extend(homes.filter_map(|to| Some((within(module)?, to))).filter(|(from, to)| from != to));
    }
    let leads_back = |(goal, to): &&(String, String)| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![to]);
        while let Some(at) = open.pop().filter(|_| !seen.contains(goal)) {
            if seen.insert(at) {
                open.extend(arrows.iter().filter(|(from, _)| from == at).map(|(_, to)| to));
            }
        }
        seen.contains(goal)
    };
    arrows.iter().filter(leads_back).map(|(from, to)| format!("{folder}{from} -> {folder}{to}")).collect()
}

#[test]
fn imports_of_the_engine_go_one_way() {
    let mut engine = Crate::new();
    read(&workspace::root().join("crates/engine/src"), "", &mut engine);
    let folders = engine
        .keys()
        .filter(|folder| ONE_WAY.contains(&folder.split("::").next().unwrap_or_default()))
        .map(String::as_str)
        .chain([""]);
    let circles: Vec<String> = folders.flat_map(|folder| circles(&engine, folder)).collect();
    assert!(circles.is_empty(), "each of these imports leads back to where it comes from:\n{}", circles.join("\n"));
}

#[test]
fn a_circle_is_seen_through_names_handed_on_and_not_in_tests() {
    let texts = [
        ("", "mod a; pub use b::deep::{self as below, Word};"),
        ("a::", "use crate::{\n    Word, // a word\n    other::{Thing},\n};"),
        ("b::", "mod deep;"),
        ("b::deep::", "#[cfg(test)]\nmod tests {\n    use crate::c;\n}\nfn f() { super::super::a::g() }"),
        ("c::", "use crate::below::Word as Other; use a::Word;"),
    ];
    let made = texts.map(|(module, text)| (module.to_owned(), imports(&without_tests(text))));
    assert_eq!(circles(&Crate::from(made), ""), ["a -> b", "b -> a"]);
}
