//! Claims of MeGA's evaluation.

use super::{Claim, Expected, ratio};

const PAPER: &str = "MeGA (ATC'22)";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "section 5.2, Fig. 11",
        says: "MeGA backs up faster than Greedy",
        figure: "4.47x to 34.45x",
        measured: ratio("store-history", "backup_mb_per_s", "MeGA", "Greedy", "version"),
        expected: Expected::Factor(4.47, 34.45),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 13",
        says: "MeGA restores faster than Greedy",
        figure: "30x to 105x",
        measured: ratio("store-history", "restore_mb_per_s", "MeGA", "Greedy", "version"),
        expected: Expected::Factor(30.0, 105.0),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 13",
        says: "the last version too",
        figure: "30x to 105x",
        measured: ratio("store-history", "restore_mb_per_s", "MeGA; version last", "Greedy; version last", ""),
        expected: Expected::Factor(30.0, 105.0),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Figs. 13 and 14",
        says: "for it reads fewer containers than Greedy",
        figure: "the order only",
        measured: ratio("store-history", "containers_read", "Greedy; version last", "MeGA; version last", ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 14",
        says: "FGD reads more containers than MeGA to restore",
        figure: "the order only",
        measured: ratio("store-history", "containers_read", "FGD; version last", "MeGA; version last", ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 14",
        says: "Greedy reads more megabytes than MeGA to restore",
        figure: "the order only",
        measured: ratio("store-history", "restore_read_mb", "Greedy; version last", "MeGA; version last", ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "MeGA reduces more than chunk-level deduplication laid out by lifecycles",
        figure: "1.18x to 8.73x",
        measured: ratio("store-history", "deduplication_ratio", "MeGA; version last", "MFD; version last", ""),
        expected: Expected::Factor(1.18, 8.73),
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "MeGA reduces more than chunk-level deduplication with capping",
        figure: "1.18x to 8.73x",
        measured: ratio("store-history", "deduplication_ratio", "MeGA; version last", "CLD; version last", ""),
        expected: Expected::Factor(1.18, 8.73),
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "Greedy reduces most, MeGA nearly as much",
        figure: "similar",
        measured: ratio("store-history", "deduplication_ratio", "Greedy; version last", "MeGA; version last", ""),
        expected: Expected::Within(1.0, 1.25),
    },
    Claim {
        paper: PAPER,
        place: "section 5.6, Fig. 17",
        says: "Maintenance of MeGA takes over all versions about what collecting garbage at 25 % takes",
        figure: "0.32x to 1.92x",
        measured: ratio(
            "store-maintenance",
            "total_seconds",
            "MeGA; version last",
            "FGD; gc_percent 25; version last",
            "",
        ),
        expected: Expected::Within(0.32, 1.92),
    },
];
