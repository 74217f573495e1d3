//! Claims of the evaluation of Odess and Odess+.

use super::{Claim, Expected, by_size, ratio};

const PAPER: &str = "Odess (TOS)";

/// Odess+ as its paper rolls it, with two, four or eight windows side by side.
const TWO_WINDOWS: &str = "odess-plus-words; windows 2; isa 128-bit";
const FOUR_WINDOWS: &str = "odess-plus-words; windows 4; isa 128-bit";
const EIGHT_WINDOWS: &str = "odess-plus-words; windows 8; isa 128-bit";

/// Whole systems, by what finds resemblance in them.
const WITH_ODESS_PLUS: &str = "odess-plus; isa widest; system dedup, SHA-1, delta";
const WITH_N_TRANSFORM: &str = "ntransform-32; isa scalar; system dedup, SHA-1, delta";
const WITH_FINESSE: &str = "finesse; isa scalar; system dedup, SHA-1, delta";

/// Parameters of pairs of chunks that are alike on both sides.
const PAIRS: &str = "series modified_per_million modified_bytes";
const PAIRS_AND_FEATURES: &str = "series modified_per_million modified_bytes features";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(a)",
        says: "Odess+ makes sketches faster than N-Transform",
        figure: "29.6x to 33.5x",
        measured: by_size("sketch-speed", "gb_per_s", "odess-plus-words; isa 128-bit", "ntransform-32; isa scalar"),
        expected: Expected::Factor(29.6, 33.5),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(a)",
        says: "Odess+ makes sketches faster than Finesse",
        figure: "7.5x to 8.3x",
        measured: by_size("sketch-speed", "gb_per_s", "odess-plus-words; isa 128-bit", "finesse; isa scalar"),
        expected: Expected::Factor(7.5, 8.3),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(a)",
        says: "Odess+ makes sketches faster than Odess",
        figure: "1.39x to 1.57x",
        measured: by_size("sketch-speed", "gb_per_s", "odess-plus-words; isa 128-bit", "odess; isa scalar"),
        expected: Expected::Factor(1.39, 1.57),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.1",
        says: "Odess+ finds what N-Transform finds (DCR)",
        figure: "nearly the same",
        measured: by_size("sketch-detection", "dcr", "odess-plus; fit first", "ntransform; fit first"),
        expected: Expected::Within(0.95, 1.1),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.1",
        says: "Odess+ finds more than Finesse (DCR)",
        figure: "1.22x on average",
        measured: by_size("sketch-detection", "dcr", "odess-plus; fit first", "finesse; fit first"),
        expected: Expected::Factor(1.22, 1.22),
    },
    Claim {
        paper: PAPER,
        place: "section 4.2.1, Fig. 12",
        says: "Odess+ errs about as N-Transform does",
        figure: "nearly the same",
        measured: ratio("sketch-accuracy", "error_mean", "odess-plus", "ntransform", PAIRS_AND_FEATURES),
        expected: Expected::Within(0.8, 1.25),
    },
    Claim {
        paper: PAPER,
        place: "section 4.2.1, Fig. 12",
        says: "Finesse errs more than Odess+",
        figure: "the order only",
        measured: ratio("sketch-accuracy", "error_mean", "finesse", "odess-plus", PAIRS_AND_FEATURES),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 3.3, Fig. 7; section 4.2.2, Fig. 13",
        says: "Sampling 1 in 512 errs more than 1 in 128",
        figure: "the order only",
        measured: ratio(
            "sketch-accuracy-sampling",
            "error_mean",
            "odess; one_in 512",
            "odess; one_in 128",
            PAIRS_AND_FEATURES,
        ),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 3.2, Fig. 6",
        says: "Masks of middle and of high bits find much the same (DCE)",
        figure: "very close",
        measured: by_size("sketch-mask", "dce", "odess; mask middle", "odess; mask high"),
        expected: Expected::Within(0.95, 1.05),
    },
    Claim {
        paper: PAPER,
        place: "section 4.2.3, Fig. 14",
        says: "Odess+ errs less with 24 features than with 6",
        figure: "the order only",
        measured: ratio(
            "sketch-accuracy-features",
            "error_mean",
            "odess-plus; features 6",
            "odess-plus; features 24",
            PAIRS,
        ),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 4.2.3, Fig. 14",
        says: "Finesse errs more with 24 features than with 12",
        figure: "the order only",
        measured: ratio(
            "sketch-accuracy-features",
            "error_mean",
            "finesse; features 24",
            "finesse; features 12",
            PAIRS,
        ),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.2, Fig. 22(a)",
        says: "Odess is faster the less it samples: 1 in 512 against 1 in 32",
        figure: "the order only",
        measured: by_size(
            "sketch-sampling",
            "gb_per_s",
            "odess; isa scalar; one_in 512",
            "odess; isa scalar; one_in 32",
        ),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.2, Fig. 22(b)",
        says: "Odess+ finds more the more it samples: 1 in 64 against 1 in 512 (DCR)",
        figure: "the order only",
        measured: by_size(
            "sketch-sampling",
            "dcr",
            "odess-plus; isa widest; one_in 64",
            "odess-plus; isa widest; one_in 512",
        ),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.3, Table 3",
        says: "4 windows are faster than 2",
        figure: "1.39x",
        measured: by_size("sketch-windows", "gb_per_s", FOUR_WINDOWS, TWO_WINDOWS),
        expected: Expected::Factor(1.39, 1.39),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.3, Table 3",
        says: "8 windows are faster than 4",
        figure: "1.36x",
        measured: by_size("sketch-windows", "gb_per_s", EIGHT_WINDOWS, FOUR_WINDOWS),
        expected: Expected::Factor(1.36, 1.36),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.3, Table 3",
        says: "but find less (DCR)",
        figure: "1.33x less",
        measured: by_size("sketch-windows", "dcr", FOUR_WINDOWS, EIGHT_WINDOWS),
        expected: Expected::Factor(1.33, 1.33),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(b)",
        says: "The whole system is faster with Odess+ than with N-Transform",
        figure: "1.55x to 4.57x, on average 3.20x",
        measured: by_size("pipeline-sketches", "mb_per_s", WITH_ODESS_PLUS, WITH_N_TRANSFORM),
        expected: Expected::Factor(1.55, 4.57),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(b)",
        says: "The whole system is faster with Odess+ than with Finesse",
        figure: "1.11x to 1.67x, on average 1.41x",
        measured: by_size("pipeline-sketches", "mb_per_s", WITH_ODESS_PLUS, WITH_FINESSE),
        expected: Expected::Factor(1.11, 1.67),
    },
    Claim {
        paper: PAPER,
        place: "section 4.3.4, Fig. 23(c)",
        says: "The whole system reduces more with Odess+ than with Finesse",
        figure: "1.23x on average",
        measured: by_size("pipeline-sketches", "reduction_ratio", WITH_ODESS_PLUS, WITH_FINESSE),
        expected: Expected::Factor(1.23, 1.23),
    },
];
