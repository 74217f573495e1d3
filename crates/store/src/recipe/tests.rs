use super::codec::PartChunk;
use super::*;
use crate::catalog::{MetadataSink, testing::Memory, wire::mix};
use crate::error::StoreError;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn run(first: u64, count: u64) -> Piece {
    Piece::Run(ChunkRun { first: ChunkNumber(first), count })
}

fn write(memory: &mut Memory, pieces: &[Piece]) -> Recipe {
    let mut writer = RecipeWriter::new();
    for piece in pieces {
        writer.push(*piece, bytes(*piece), memory).unwrap();
    }
    writer.finish(memory).unwrap()
}

fn read(memory: &Memory, recipe: &Recipe) -> Vec<Piece> {
    RecipeReader::new(recipe, memory).collect::<Result<_, _>>().unwrap()
}

fn bytes(piece: Piece) -> u64 {
    match piece {
        Piece::Run(run) => run.count * 100,
        Piece::Hole(bytes) => bytes,
    }
}

/// Pieces none of which continues the one before.
fn scattered(count: u64) -> Vec<Piece> {
    (0..count).map(scattered_piece).collect()
}

fn scattered_piece(at: u64) -> Piece {
    if at % 50 == 49 { Piece::Hole(4096) } else { run(at * 1000 + mix(at) % 500, 1 + at % 7) }
}

#[test]
fn an_empty_file_has_an_empty_inline_recipe() {
    let recipe = write(&mut Memory::default(), &[]);
    assert_eq!(recipe, Recipe::Inline(Vec::new()));
    assert!(recipe.is_empty());
}

#[test]
fn neighbours_become_one_piece() {
    let mut memory = Memory::default();
    let pieces: Vec<_> = (0..100_000).map(|at| run(at, 1)).chain([Piece::Hole(5), Piece::Hole(6), run(7, 2)]).collect();
    assert_eq!(write(&mut memory, &pieces), Recipe::Inline(vec![run(0, 100_000), Piece::Hole(11), run(7, 2)]));
    assert!(memory.chunks.is_empty());
}

#[test]
fn a_long_recipe_goes_through_parts() {
    let pieces = scattered(20_000);
    let mut memory = Memory::default();
    let recipe = write(&mut memory, &pieces);
    let Recipe::Indirect(parts) = &recipe else { panic!("20 000 pieces do not fit an entry") };
    assert!((6..40).contains(&parts.len()), "{} parts", parts.len());
    let total: u64 = parts.iter().map(|part| part.bytes).sum();
    assert_eq!(total, pieces.iter().map(|piece| bytes(*piece)).sum::<u64>());
    assert_eq!(read(&memory, &recipe), pieces);
    assert!(memory.chunks.iter().all(|part| part.len() < 40_000));
}

#[test]
fn an_edit_of_a_long_recipe_changes_few_parts() {
    let pieces = scattered(20_000);
    let mut memory = Memory::default();
    write(&mut memory, &pieces);
    let before = memory.chunks.len();
    for at in [0, 300, 1024, 7777, 19_999] {
        let mut edited = pieces.clone();
        edited.splice(at..=at, [run(1 << 40, 1), run(1 << 41, 2)]);
        let known = memory.chunks.len();
        write(&mut memory, &edited);
        let fresh = memory.chunks.len() - known;
        assert!(fresh <= 3, "an edit at {at} made {fresh} new parts of {before}");
    }
}

#[test]
fn parts_of_parts_are_read() {
    let pieces = (0..4_000_000).map(scattered_piece);
    let mut memory = Memory::default();
    let mut writer = RecipeWriter::new();
    pieces.clone().for_each(|piece| writer.push(piece, bytes(piece), &mut memory).unwrap());
    let recipe = writer.finish(&mut memory).unwrap();
    assert!(memory.chunks.iter().any(|part| part[0] == 4), "the parts are too many for one list");
    assert!(RecipeReader::new(&recipe, &memory).map(Result::unwrap).eq(pieces));
    let mut parts = BTreeSet::new();
    recipe
        .visit_chunks(&memory, &mut |run| {
            if run.first.is_metadata() {
                parts.insert(run.first);
            }
        })
        .unwrap();
    assert_eq!(parts.len(), memory.chunks.len());
}

#[test]
fn the_pieces_around_an_offset_are_found_without_the_others() {
    let pieces: Vec<_> = (0..1_000_000).map(scattered_piece).collect();
    let mut memory = Memory::default();
    let recipe = write(&mut memory, &pieces);
    let starts: Vec<u64> = pieces
        .iter()
        .scan(0, |at, piece| {
            let start = *at;
            *at += bytes(*piece);
            Some(start)
        })
        .collect();
    let end = starts.last().unwrap() + bytes(*pieces.last().unwrap());
    for step in 0..300 {
        let offset = mix(step) % end;
        let stretch = recipe.stretch_at(&&memory, offset).unwrap().unwrap();
        let first = starts.binary_search(&stretch.start).expect("a piece begins there");
        assert_eq!(stretch.pieces, pieces[first..first + stretch.pieces.len()]);
        let covered: u64 = stretch.pieces.iter().map(|piece| bytes(*piece)).sum();
        assert_eq!(stretch.bytes, Some(covered));
        assert!((stretch.start..stretch.start + covered).contains(&offset));
    }
    assert_eq!(recipe.stretch_at(&&memory, end).unwrap(), None);
}

#[test]
fn pieces_no_file_can_have_are_refused() {
    let mut memory = Memory::default();
    for piece in
        [run(0, 0), run(1 << 63, 1), run((1 << 63) - 2, 2), run(u64::MAX, 2), run(5, u64::MAX), Piece::Hole(u64::MAX)]
    {
        let refused = RecipeWriter::new().push(piece, 1, &mut memory);
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{piece:?}");
    }
    let mut writer = RecipeWriter::new();
    writer.push_hole(0, &mut memory).unwrap();
    assert!(writer.finish(&mut memory).unwrap().is_empty());
}

#[test]
fn a_part_that_holds_itself_ends_the_reading() {
    let mut memory = Memory::default();
    let chunk = ChunkNumber::METADATA_FIRST;
    let own = RecipePart { chunk, bytes: 1 };
    assert_eq!(memory.store(&PartChunk::encode_parts(2, &[own])).unwrap(), chunk);
    let read: Vec<_> = RecipeReader::new(&Recipe::Indirect(vec![own]), &memory).collect();
    assert!(matches!(&read[..], [Err(StoreError::Damaged { .. })]), "{read:?}");
}

#[test]
fn a_part_that_holds_nothing_is_damage_however_often_it_is_named() {
    let mut memory = Memory::default();
    let mut chunk = memory.store(&PartChunk::encode_pieces(&[])).unwrap();
    for level in 2..=8 {
        let parts = [RecipePart { chunk, bytes: 0 }; 40];
        chunk = memory.store(&PartChunk::encode_parts(level, &parts)).unwrap();
    }
    let recipe = Recipe::Indirect(vec![RecipePart { chunk, bytes: 0 }]);
    let read: Vec<_> = RecipeReader::new(&recipe, &memory).collect();
    assert_eq!(read.len(), 1);
    assert!(read[0].as_ref().unwrap_err().to_string().contains("it holds nothing"), "{read:?}");
}

/// Eight lists of forty parts each, all of them the same: 40^7 ways to the pieces.
#[test]
fn parts_named_again_and_again_are_visited_once() {
    let mut memory = Memory::default();
    let chunk = |at: u64| ChunkNumber(ChunkNumber::METADATA_FIRST.0 + at);
    memory.store(&PartChunk::encode_pieces(&[run(0, 1)])).unwrap();
    for level in 2..=8 {
        let below = RecipePart { chunk: chunk(u64::from(level) - 2), bytes: 1 };
        memory.store(&PartChunk::encode_parts(level, &[below; 40])).unwrap();
    }
    let mut visited = Vec::new();
    let recipe = Recipe::Indirect(vec![RecipePart { chunk: chunk(7), bytes: 1 }]);
    recipe.visit_chunks(&memory, &mut |run| visited.push(run.first)).unwrap();
    let expected: Vec<_> = (0..8).rev().map(chunk).chain([ChunkNumber(0)]).collect();
    assert_eq!(visited, expected);
}

proptest! {
    #[test]
    fn any_pieces_come_back(seeds in prop::collection::vec((0u64..1000, 1u64..50, any::<bool>()), 0..3000)) {
        let pieces: Vec<_> = seeds.iter().map(|&(first, count, hole)| if hole { Piece::Hole(count) } else { run(first, count) }).collect();
        let mut memory = Memory::default();
        let recipe = write(&mut memory, &pieces);
        // Merging changes pieces, never what they say: which chunks, and how many bytes of nothing between them.
        let flat = |pieces: &[Piece]| {
            let mut flat: Vec<(u64, u64)> = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Run(run) => flat.extend(run.range().map(|number| (number, 0))),
                    Piece::Hole(bytes) => match flat.last_mut() {
                        Some((u64::MAX, before)) => *before += bytes,
                        _ => flat.push((u64::MAX, *bytes)),
                    },
                }
            }
            flat
        };
        prop_assert_eq!(flat(&read(&memory, &recipe)), flat(&pieces));
    }

    #[test]
    fn hostile_parts_give_errors_that_name_them(bytes: Vec<u8>, tag in 2u8..6) {
        let mut memory = Memory::default();
        let chunk = memory.store(&[&[tag], &bytes[..]].concat()).unwrap();
        for piece in RecipeReader::new(&Recipe::Indirect(vec![RecipePart { chunk, bytes: 0 }]), &memory) {
            if let Err(error) = piece {
                prop_assert!(error.to_string().contains("chunk m"), "{}", error);
            }
        }
    }

    #[test]
    fn damaged_parts_are_no_reason_to_panic(place: prop::sample::Index, byte: u8, cut: bool) {
        let mut memory = Memory::default();
        let recipe = write(&mut memory, &scattered(3000));
        let mut part = memory.bytes_of(ChunkNumber::METADATA_FIRST).to_vec();
        let place = place.index(part.len());
        if cut { part.truncate(place) } else { part[place] = byte }
        memory.replace(ChunkNumber::METADATA_FIRST, part);
        let errors = RecipeReader::new(&recipe, &memory).filter(Result::is_err).count();
        prop_assert!(errors <= 1);
        prop_assert!(!cut || errors == 1);
    }
}
