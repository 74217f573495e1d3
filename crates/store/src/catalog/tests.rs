use super::testing::{Memory, directory, file, path, tree};
use super::*;
use crate::ids::{ChunkRun, Time};
use crate::recipe::{Piece, Recipe};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn write(memory: &mut Memory, entries: &[Entry]) -> ChunkNumber {
    let mut writer = CatalogWriter::new(memory);
    for entry in entries {
        writer.push(entry).unwrap();
    }
    writer.finish().unwrap()
}

fn read(memory: &Memory, root: ChunkNumber) -> Vec<Entry> {
    CatalogReader::new(memory, root).entries().collect::<Result<_, _>>().unwrap()
}

fn nodes(memory: &Memory, root: ChunkNumber) -> BTreeSet<ChunkNumber> {
    let mut nodes = BTreeSet::new();
    CatalogReader::new(memory, root).visit_chunks(&mut |run| {
        let run = run.unwrap();
        if run.first.is_metadata() {
            nodes.insert(run.first);
        }
    });
    nodes
}

fn content() -> impl Strategy<Value = Content> {
    let piece = prop_oneof![
        (0u64..1 << 62, 1u64..1 << 40)
            .prop_map(|(first, count)| Piece::Run(ChunkRun { first: ChunkNumber(first), count })),
        (1u64..1 << 62).prop_map(Piece::Hole),
    ];
    let part = (1u64 << 63.., any::<u64>())
        .prop_map(|(chunk, bytes)| crate::recipe::RecipePart { chunk: ChunkNumber(chunk), bytes });
    let recipe = prop_oneof![
        prop::collection::vec(piece, 0..4).prop_map(Recipe::Inline),
        prop::collection::vec(part, 0..4).prop_map(Recipe::Indirect),
    ];
    prop_oneof![
        4 => Just(Content::Directory),
        3 => (any::<u64>(), recipe).prop_map(|(size, recipe)| Content::File { size, recipe }),
        1 => any::<Vec<u8>>().prop_map(|target| Content::Symlink { target }),
        1 => Just(Content::Fifo),
        1 => any::<(u32, u32)>().prop_map(|(major, minor)| Content::CharDevice { major, minor }),
        1 => any::<(u32, u32)>().prop_map(|(major, minor)| Content::BlockDevice { major, minor }),
    ]
}

fn any_time() -> impl Strategy<Value = Time> {
    (any::<i64>(), 0u32..1_000_000_000).prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
}

fn any_metadata() -> impl Strategy<Value = Metadata> {
    let name = || prop::option::of(prop::collection::vec(any::<u8>(), 1..6).prop_map(|name| Name::from(&name[..])));
    let owner = (0u32..3, 0u32..3, name(), name());
    let xattrs = prop::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 0..3);
    (0u32..0o10000, owner, any_time(), any_time(), any::<bool>(), any::<[u64; 3]>(), xattrs).prop_map(
        |(mode, (uid, gid, user, group), modified, changed, same, [inode, device, links], xattrs)| Metadata {
            mode,
            uid,
            gid,
            user,
            group,
            modified,
            changed: if same { modified } else { changed },
            inode,
            device: device % 2,
            links,
            xattrs,
        },
    )
}

/// Entries in order, none beneath one that is no directory; directories may lack an entry of their own.
fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let name =
        prop_oneof![Just("a"), Just("a-"), Just("a.b"), Just("b"), Just(".c"), Just("\n"), Just("..d"), Just("\u{1}")];
    let path = prop::collection::vec(name, 1..5).prop_map(|names| EntryPath::new(names.join("/")).unwrap());
    prop::collection::btree_map(path, (any_metadata(), content()), 0..60).prop_map(|entries| {
        let mut kept: Vec<Entry> = Vec::new();
        for (path, (metadata, content)) in entries {
            if kept.last().is_none_or(|last| last.is_directory() || !path.is_beneath(&last.path)) {
                kept.push(Entry { path, metadata, content });
            }
        }
        kept
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(entries in entries()) {
        let mut memory = Memory::default();
        let root = write(&mut memory, &entries);
        prop_assert_eq!(read(&memory, root), entries);
    }

    #[test]
    fn subtrees_directories_and_paths_are_found(entries in entries(), picked: prop::sample::Index) {
        let mut memory = Memory::default();
        let root = write(&mut memory, &entries);
        let catalog = CatalogReader::new(&memory, root);
        let model: BTreeMap<_, _> = entries.iter().map(|entry| (entry.path.clone(), entry.clone())).collect();
        let mut paths: Vec<EntryPath> = entries.iter().flat_map(|entry| [Some(entry.path.clone()), entry.path.parent()]).flatten().collect();
        paths.push(path("zz/nowhere"));
        let wanted = picked.get(&paths);
        prop_assert_eq!(catalog.find(wanted).unwrap(), model.get(wanted).cloned());
        let under: Vec<_> = catalog.under(wanted).map(Result::unwrap).collect();
        let expected: Vec<_> = entries.iter().filter(|entry| entry.path == *wanted || entry.path.is_beneath(wanted)).cloned().collect();
        prop_assert_eq!(under, expected);
        let children: Vec<_> = catalog.children(Some(wanted)).map(Result::unwrap).collect();
        let expected: Vec<_> = entries.iter().filter(|entry| entry.path.parent().as_ref() == Some(wanted)).cloned().collect();
        prop_assert_eq!(children, expected);
        let top: Vec<_> = catalog.children(None).map(Result::unwrap).collect();
        prop_assert_eq!(top, entries.iter().filter(|entry| entry.path.parent().is_none()).cloned().collect::<Vec<_>>());
    }

    #[test]
    fn hostile_nodes_give_errors_that_name_them(at: prop::sample::Index, byte: u8, place: prop::sample::Index, cut: bool) {
        let mut memory = Memory::default();
        let root = write(&mut memory, &tree(60, 20));
        let number = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + at.index(memory.chunks.len()) as u64);
        let mut bytes = memory.bytes_of(number).to_vec();
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] = byte }
        memory.replace(number, bytes);
        let catalog = CatalogReader::new(&memory, root);
        let mut last: Option<EntryPath> = None;
        for entry in catalog.entries() {
            match entry {
                Ok(entry) => {
                    prop_assert!(last.as_ref().is_none_or(|last| *last < entry.path));
                    last = Some(entry.path);
                }
                Err(error) => prop_assert!(error.to_string().contains("chunk m"), "{}", error),
            }
        }
        catalog.children(Some(&path("source/module-0001"))).for_each(drop);
        let _ = catalog.find(&path("source/module-0002/part.03/file_00003.rs"));
    }

    #[test]
    fn any_bytes_are_no_reason_to_panic(bytes: Vec<u8>, tag in 0u8..5, level in 0u8..3) {
        let mut memory = Memory::default();
        let mut node = vec![tag];
        if tag == 2 { node.push(level) }
        node.extend(bytes);
        let root = memory.store(&node).unwrap();
        CatalogReader::new(&memory, root).visit_chunks(&mut |_| ());
    }
}

#[test]
fn an_empty_catalog_is_one_empty_leaf() {
    let mut memory = Memory::default();
    let root = write(&mut memory, &[]);
    assert_eq!(memory.chunks.len(), 1);
    assert!(read(&memory, root).is_empty());
    assert!(CatalogReader::new(&memory, root).find(&path("a")).unwrap().is_none());
}

#[test]
fn a_large_tree_is_read_as_written_and_its_nodes_have_the_sizes_they_should() {
    let entries = tree(4000, 60);
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    assert_eq!(read(&memory, root), entries);
    let leaves: Vec<usize> = memory.chunks.iter().filter(|node| node[0] == 1).map(|node| node.len()).collect();
    let average = leaves.iter().sum::<usize>() / leaves.len();
    assert!((6 << 10..20 << 10).contains(&average), "leaves of {average} bytes");
    assert!(memory.chunks.iter().all(|node| node.len() <= writer::NODE_BYTES_CUT_MAX + 20));
    assert!(memory.chunks.iter().any(|node| node[0] == 2 && node[1] == 2), "the tree has two inner levels");
    let entry_bytes = leaves.iter().sum::<usize>() / entries.len();
    assert!(entry_bytes < 40, "{entry_bytes} bytes an entry");
}

/// Changes the entry at a position, or those around it.
type Edit = fn(&mut Vec<Entry>, usize);

#[test]
fn an_edit_changes_few_nodes() {
    let entries = tree(1000, 40);
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    let before = nodes(&memory, root);
    let edits: [(&str, Edit); 3] = [
        ("change", |entries, at| entries[at].metadata.modified.seconds += 1),
        ("insertion", |entries, at| {
            let name = format!("{}+", entries[at].path);
            entries.insert(at + 1, file(&name, 1 << 40, 1));
        }),
        ("deletion", |entries, at| drop(entries.remove(at))),
    ];
    for (name, edit) in edits {
        for at in (0..entries.len()).step_by(1777) {
            let mut edited = entries.clone();
            let at = (at..edited.len()).find(|&at| !edited[at].is_directory()).unwrap();
            edit(&mut edited, at);
            let root = write(&mut memory, &edited);
            let after = nodes(&memory, root);
            let fresh = after.difference(&before).count();
            assert!(fresh <= 6, "{name} at {at} made {fresh} new nodes of {}", after.len());
        }
    }
}

#[test]
fn listing_a_directory_reads_few_nodes() {
    let entries = tree(1000, 40);
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    let catalog = CatalogReader::new(&memory, root);
    memory.take_loads();
    assert_eq!(catalog.children(None).count(), 1);
    assert!(memory.take_loads() <= 8);
    assert!(catalog.find(&path("source/module-0031/part.07/file_00011.rs")).unwrap().is_some());
    assert!(memory.take_loads() <= 4);
    assert_eq!(catalog.under(&path("source/module-0031/part.07")).count(), 41);
    assert!(memory.take_loads() <= 5);
    // Fifty subtrees of 820 entries: each is stepped over, not through.
    assert_eq!(catalog.children(Some(&path("source"))).count(), 50);
    let loads = memory.take_loads();
    assert!(loads <= 60, "{loads} nodes of {}", memory.chunks.len());
}

#[test]
fn a_lost_leaf_costs_its_entries_only() {
    let entries = tree(200, 40);
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    let leaf = memory.chunks.iter().skip(3).position(|node| node[0] == 1).unwrap() + 3;
    let lost = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + leaf as u64);
    memory.lost.insert(lost);
    let (read, errors): (Vec<_>, Vec<_>) = CatalogReader::new(&memory, root).entries().partition(Result::is_ok);
    let missing = entries.len() - read.len();
    assert!(missing > 10 && missing < 2000, "{missing} entries are missing");
    assert_eq!(errors.len(), 1);
    assert!(errors[0].as_ref().unwrap_err().to_string().contains(&lost.to_string()));
}

#[test]
fn entries_can_be_passed_over() {
    let entries = tree(200, 40);
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    memory.take_loads();
    let mut reader = CatalogReader::new(&memory, root).entries();
    assert_eq!(reader.next().unwrap().unwrap().path, path("source"));
    reader.skip_to(&path("source/module-0007/part.03"));
    assert_eq!(reader.next().unwrap().unwrap().path, path("source/module-0007/part.03"));
    reader.skip_beneath(&path("source/module-0007/part.03"));
    assert_eq!(reader.next().unwrap().unwrap().path, path("source/module-0007/part.04"));
    reader.skip_to(&path("source/module-0001"));
    assert_eq!(reader.next().unwrap().unwrap().path, path("source/module-0007/part.04/file_00000.rs"));
    reader.skip_to(&path("target"));
    assert!(reader.next().is_none());
    assert!(memory.take_loads() < 10);
}

#[test]
fn entries_out_of_place_are_refused_and_the_writer_goes_on() {
    let mut memory = Memory::default();
    let mut writer = CatalogWriter::new(&mut memory);
    writer.push(&directory("a")).unwrap();
    writer.push(&file("a/b", 0, 1)).unwrap();
    for refused in [directory("a"), file("a/b", 0, 1), file("a/b/c", 0, 1), file("Z", 0, 1)] {
        assert!(matches!(writer.push(&refused), Err(StoreError::Refused { .. })), "{}", refused.path);
    }
    let mut wrong = file("a/c", 0, 1);
    wrong.metadata.modified.nanoseconds = 1_000_000_000;
    assert!(matches!(writer.push(&wrong), Err(StoreError::Refused { .. })));
    let mut huge = file("a/c", 0, 1);
    huge.metadata.xattrs = vec![(b"user.huge".to_vec(), vec![7; ENTRY_BYTES_MAX])];
    assert!(matches!(writer.push(&huge), Err(StoreError::Limit { .. })));
    writer.push(&file("a/c", 1, 1)).unwrap();
    let root = writer.finish().unwrap();
    assert_eq!(read(&memory, root).len(), 3);
}

#[test]
fn the_longest_paths_and_large_attributes_fit() {
    let mut entries = Vec::new();
    for at in 0..12 {
        let name = format!("{at:02}{}", "/long".repeat((PATH_BYTES_MAX - 2) / 5));
        let mut entry = file(&name, at, 1);
        entry.metadata.xattrs = vec![(b"user.large".to_vec(), vec![b'x'; 1 << 20])];
        entries.push(entry);
    }
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    assert_eq!(read(&memory, root), entries);
    assert!(memory.chunks.iter().all(|node| node.len() <= NODE_BYTES_MAX));
    assert_eq!(CatalogReader::new(&memory, root).find(&entries[7].path).unwrap().as_ref(), Some(&entries[7]));
}

#[test]
fn front_coding_cannot_hide_much() {
    // Each of these entries takes some 30 bytes and has a path of 1 MB: whoever reads them must not be made to hold
    // them all.
    let deep = "d/".repeat(400_000);
    let entries: Vec<_> = (0..64).map(|at| file(&format!("{deep}{at:03}"), at, 1)).collect();
    let mut memory = Memory::default();
    let root = write(&mut memory, &entries);
    assert!(memory.chunks.len() > 8);
    assert_eq!(read(&memory, root), entries);
}

#[test]
fn a_node_that_holds_itself_ends_the_walk() {
    let mut memory = Memory::default();
    let root = ChunkNumber::METADATA_FIRST;
    // An inner node of level 1 with one child, "a", which has its own number.
    assert_eq!(memory.store(&[2, 1, 1, 0, 1, b'a', 0]).unwrap(), root);
    let steps: Vec<_> = CatalogReader::new(&memory, root).entries().collect();
    assert!(matches!(&steps[..], [Err(StoreError::Damaged { .. })]), "{steps:?}");
}

#[test]
fn visiting_shows_data_nodes_and_parts() {
    let mut memory = Memory::default();
    let mut recipe = crate::recipe::RecipeWriter::new();
    for at in 0..3000 {
        recipe.push_chunk(ChunkNumber(at * 2), 10, &mut memory).unwrap();
    }
    let recipe = recipe.finish(&mut memory).unwrap();
    let mut large = file("large", 0, 1);
    large.content = Content::File { size: 30_000, recipe };
    let root = write(&mut memory, &[large, file("small", 9_000, 5)]);
    let mut seen = BTreeSet::new();
    CatalogReader::new(&memory, root).visit_chunks(&mut |run| seen.extend(run.unwrap().range()));
    let mut expected: BTreeSet<u64> = (0..3000).map(|at| at * 2).chain(9_000..9_005).collect();
    expected.extend((0..memory.chunks.len() as u64).map(|at| ChunkNumber::METADATA_FIRST.0 + at));
    assert_eq!(seen, expected);
}

#[test]
fn a_catalog_has_the_same_bytes_for_ever() {
    let mut memory = Memory::default();
    write(&mut memory, &tree(100, 40));
    let mut hash = blake3::Hasher::new();
    for node in &memory.chunks {
        hash.update(&(node.len() as u64).to_le_bytes()).update(node);
    }
    // Written by this program on 2026-11-21. Another digest means another format: it would not share a node with older
    // snapshots.
    assert_eq!(hash.finalize().to_hex()[..32], *"9e998e811bc0bfbb70ce4a8c0b44cb96");
}

#[test]
fn what_differs_lies_in_the_nodes_that_the_other_lacks() {
    let mut memory = Memory::default();
    let before = tree(60, 30);
    let mut after = before.clone();
    let changed = after.iter().position(|entry| matches!(entry.content, Content::File { .. })).unwrap() + 700;
    after[changed] = file(std::str::from_utf8(after[changed].path.as_bytes()).unwrap(), 1 << 40, 3);
    let roots = [write(&mut memory, &before), write(&mut memory, &after)];
    let [old, new] = roots.map(|root| nodes(&memory, root));
    let only = |these: &BTreeSet<ChunkNumber>, those: &BTreeSet<ChunkNumber>| {
        these.difference(those).map(|number| number.0).collect::<roaring::RoaringTreemap>()
    };
    for (root, entries, nodes) in [(roots[0], &before, only(&old, &new)), (roots[1], &after, only(&new, &old))] {
        memory.take_loads();
        let found: Vec<_> = CatalogReader::new(&memory, root).entries_in(nodes.clone()).map(Result::unwrap).collect();
        assert!(found.contains(&entries[changed]));
        assert!(found.len() < entries.len() / 2, "{} of {}", found.len(), entries.len());
        assert!(found.is_sorted_by(|a, b| a.path < b.path));
        assert_eq!(memory.take_loads() as u64, nodes.len(), "each node once, and no other");
    }
    let none = CatalogReader::new(&memory, roots[0]).entries_in(roaring::RoaringTreemap::new());
    assert_eq!(none.count(), 0);
}
