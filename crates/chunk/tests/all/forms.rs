//! Every form of every algorithm gives the cuts of the scalar one, on every kind of data, at every length and
//! alignment; and keeps what the trait promises.

use crate::common::{any_data, any_sizes, cases, forms, lengths, random_bytes, sizes};
use proptest::prelude::*;
use siltstone_chunk::{ALGORITHMS, Isa, Sizes};

#[test]
fn forms_agree_at_every_length_and_alignment() {
    let few: Vec<u8> = random_bytes("few", 1200).iter().map(|byte| byte | 0xFC).collect();
    for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.vector) {
        for sizes in [sizes(64, 150, 300), Sizes::unlimited(128).unwrap(), Sizes::unlimited(333).unwrap()] {
            let make = |isa| algorithm.make(sizes, &[1; 32], isa);
            let (scalar, forms) = (make(Isa::SCALAR), forms(algorithm).into_iter().map(|isa| (isa, make(isa))));
            let forms: Vec<_> = forms.collect();
            for data in [&random_bytes("forms", 1200), &few, &vec![0; 1200], &vec![255; 1200]] {
                let starts = [0, 1, 2, 3, 15, 16, 17, 31, 63, 64, 65];
                for slice in starts.into_iter().flat_map(|start| (0..=400).map(move |len| &data[start..start + len])) {
                    let want = scalar.cut(slice);
                    for (isa, form) in &forms {
                        assert_eq!(form.cut(slice), want, "{} {isa}, {sizes:?}, {}", algorithm.name, slice.len());
                    }
                }
            }
        }
    }
}

#[test]
fn forms_agree_wherever_a_run_ends() {
    for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.vector) {
        let make = |isa| algorithm.make(Sizes::unlimited(150).unwrap(), &[1; 32], isa);
        let (scalar, forms) = (make(Isa::SCALAR), forms(algorithm).into_iter().map(|isa| (isa, make(isa))));
        let forms: Vec<_> = forms.collect();
        for run in 0..=300 {
            for after in [3, 9] {
                let data = [vec![7; run], vec![after; 300]].concat();
                let want = scalar.cut(&data);
                for (isa, form) in &forms {
                    assert_eq!(form.cut(&data), want, "{} {isa}, {run} bytes, then {after}", algorithm.name);
                }
            }
        }
    }
}

#[test]
fn nothing_has_no_chunk_and_a_byte_is_one() {
    for algorithm in ALGORITHMS {
        for isa in forms(algorithm) {
            let chunker = algorithm.make(algorithm.usual_sizes(8 << 10).unwrap(), &[1; 32], isa);
            assert_eq!((chunker.cut(&[]), chunker.cut(&[7])), (0, 1), "{} {isa}", algorithm.name);
        }
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn forms_agree(sizes in any_sizes(), key: [u8; 32], data in any_data(6000), start in 0..70usize) {
        let data = data.get(start..).unwrap_or_default();
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.vector) {
            let want = lengths(&algorithm.make(sizes, &key, Isa::SCALAR), data);
            for isa in forms(algorithm) {
                prop_assert_eq!(&lengths(&algorithm.make(sizes, &key, isa), data), &want, "{} {}", algorithm.name, isa);
            }
        }
    }

    #[test]
    fn all_but_the_last_chunk_keep_the_limits(sizes in any_sizes(), key: [u8; 32], data in any_data(6000)) {
        for algorithm in ALGORITHMS {
            let found = lengths(&algorithm.make(sizes, &key, Isa::best()), &data);
            prop_assert_eq!(found.iter().sum::<usize>(), data.len());
            if let Some((last, whole)) = found.split_last() {
                let kept = whole.iter().all(|length| (sizes.min().max(1)..=sizes.max()).contains(length));
                prop_assert!(kept && (1..=sizes.max()).contains(last), "{}: {:?}", algorithm.name, found);
            }
        }
    }

    #[test]
    fn whole_segments_are_cut_as_single_chunks_are(sizes in any_sizes(), key: [u8; 32], data in any_data(6000)) {
        for algorithm in ALGORITHMS {
            for isa in forms(algorithm) {
                let chunker = algorithm.make(sizes, &key, isa);
                let mut found = Vec::new();
                chunker.cut_all(&data, &mut |length| found.push(length));
                prop_assert_eq!(found, lengths(&chunker, &data), "{} {}", algorithm.name, isa);
            }
        }
    }

    #[test]
    fn a_final_cut_depends_on_nothing_that_follows(sizes in any_sizes(), data in any_data(3000), other in any_data(3000)) {
        for algorithm in ALGORITHMS {
            let chunker = algorithm.make(sizes, &[7; 32], Isa::best());
            let cut = chunker.cut(&data);
            if cut < data.len() || cut == sizes.max() {
                prop_assert_eq!(chunker.cut(&[&data[..], &other].concat()), cut, "{}", algorithm.name);
            }
        }
    }
}
