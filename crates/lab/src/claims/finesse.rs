//! Claims of Finesse's evaluation.

use super::{Claim, Expected, by_size, value};

const PAPER: &str = "Finesse (FAST'19)";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "section 5.2, Fig. 4",
        says: "Finesse makes sketches faster than N-Transform",
        figure: "3.2x to 3.5x",
        measured: by_size("sketch-speed", "gb_per_s", "finesse; isa scalar", "ntransform; isa scalar"),
        expected: Expected::Factor(3.2, 3.5),
    },
    Claim {
        paper: PAPER,
        place: "Table 1",
        says: "Parts of similar chunks have the same feature at the same place",
        figure: "87.22 %",
        measured: value("sketch-subchunks", "equal_features_percent", "ntransform; subchunks 12"),
        expected: Expected::Within(75.0, 99.0),
    },
    Claim {
        paper: PAPER,
        place: "Table 1",
        says: "although many of those parts are not duplicates",
        figure: "41.07 % of them",
        measured: value("sketch-subchunks", "equal_features_changed_percent", "ntransform; subchunks 12"),
        expected: Expected::Within(30.8, 51.3),
    },
    Claim {
        paper: PAPER,
        place: "Table 3",
        says: "Deltas found by Finesse save about as much as those found by N-Transform (DCR)",
        figure: "higher on two data sets, lower on two",
        measured: by_size("sketch-detection", "dcr", "finesse; fit first", "ntransform; fit first"),
        expected: Expected::Within(0.9, 1.1),
    },
    Claim {
        paper: PAPER,
        place: "Table 3",
        says: "A delta found by Finesse is smaller (DCE)",
        figure: "higher on all six data sets",
        measured: by_size("sketch-detection", "dce", "finesse; fit first", "ntransform; fit first"),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 5",
        says: "The whole system is faster with Finesse than with N-Transform",
        figure: "1.41x to 1.85x",
        measured: by_size(
            "pipeline-sketches",
            "mb_per_s",
            "finesse; isa scalar; system dedup, SHA-1, delta",
            "ntransform-32; isa scalar; system dedup, SHA-1, delta",
        ),
        expected: Expected::Factor(1.41, 1.85),
    },
];
