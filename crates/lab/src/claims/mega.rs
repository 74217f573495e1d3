//! Claims of MeGA's evaluation, all with one threshold and one capping level: T = 2 and L = 10, the median of three, as
//! its section 5.6 takes the median. The others are rows of the tables, and claims of nothing.

use super::{Claim, Expected, ratio, value};

const PAPER: &str = "MeGA (ATC'22)";
const HISTORY: &str = "store-history";

/// After the last version.
const MEGA_LAST: &str = "MeGA; parameter 2; version last";
const GREEDY_LAST: &str = "Greedy; version last";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "section 3.1, Fig. 4",
        says: "Of what a backup writes and reads for bases, with everything shared, little is what it writes",
        figure: "about 0.3 %",
        measured: value(HISTORY, "written_percent", GREEDY_LAST),
        expected: Expected::Within(0.24, 0.375),
    },
    Claim {
        paper: PAPER,
        place: "section 3.1, Fig. 4",
        says: "Of what a restore reads, with everything shared, little is what it needs",
        figure: "1.12 %",
        measured: value(HISTORY, "needed_percent", GREEDY_LAST),
        expected: Expected::Within(0.9, 1.4),
    },
    Claim {
        paper: PAPER,
        place: "section 3.2, Fig. 5",
        says: "Most containers have few bases, fewer than 30",
        figure: "64.1 %",
        measured: value("store-bases", "containers_percent", "Greedy; fewer_than 30"),
        expected: Expected::Within(51.3, 80.1),
    },
    Claim {
        paper: PAPER,
        place: "section 3.2, Fig. 5",
        says: "and few of all bases lie in those",
        figure: "8.31 %",
        measured: value("store-bases", "bases_percent", "Greedy; fewer_than 30"),
        expected: Expected::Within(6.6, 10.4),
    },
    Claim {
        paper: PAPER,
        place: "section 5.2, Fig. 11",
        says: "MeGA backs up faster than Greedy",
        figure: "4.47x to 34.45x",
        measured: ratio(HISTORY, "backup_mb_per_s", "MeGA; parameter 2", "Greedy", "version"),
        expected: Expected::Factor(4.47, 34.45),
    },
    Claim {
        paper: PAPER,
        place: "section 5.2, Fig. 11",
        says: "and on a hard disk, by the model",
        figure: "4.47x to 34.45x",
        measured: ratio(HISTORY, "backup_disk_seconds", "Greedy", "MeGA; parameter 2", "version"),
        expected: Expected::Factor(4.47, 34.45),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 13",
        says: "MeGA restores faster than Greedy",
        figure: "30x to 105x",
        measured: ratio(HISTORY, "restore_mb_per_s", "MeGA; parameter 2", "Greedy", "version"),
        expected: Expected::Factor(30.0, 105.0),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 13",
        says: "the last version too",
        figure: "30x to 105x",
        measured: ratio(HISTORY, "restore_mb_per_s", MEGA_LAST, GREEDY_LAST, ""),
        expected: Expected::Factor(30.0, 105.0),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 13",
        says: "and on a hard disk, by the model, the last version",
        figure: "30x to 105x",
        measured: ratio(HISTORY, "restore_disk_seconds", GREEDY_LAST, MEGA_LAST, ""),
        expected: Expected::Factor(30.0, 105.0),
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Figs. 13 and 14",
        says: "for it reads fewer containers than Greedy",
        figure: "the order only",
        measured: ratio(HISTORY, "containers_read", GREEDY_LAST, MEGA_LAST, ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 14",
        says: "FGD reads more containers than MeGA to restore",
        figure: "the order only",
        measured: ratio(HISTORY, "containers_read", "FGD; parameter 10; version last", MEGA_LAST, ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.3, Fig. 14",
        says: "Greedy reads more megabytes than MeGA to restore",
        figure: "the order only",
        measured: ratio(HISTORY, "restore_read_mb", GREEDY_LAST, MEGA_LAST, ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "MeGA reduces more than chunk-level deduplication laid out by lifecycles",
        figure: "1.18x to 8.73x",
        measured: ratio(HISTORY, "deduplication_ratio", MEGA_LAST, "MFD; version last", ""),
        expected: Expected::Factor(1.18, 8.73),
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "MeGA reduces more than chunk-level deduplication with capping",
        figure: "1.18x to 8.73x",
        measured: ratio(HISTORY, "deduplication_ratio", MEGA_LAST, "CLD; parameter 10; version last", ""),
        expected: Expected::Factor(1.18, 8.73),
    },
    Claim {
        paper: PAPER,
        place: "section 5.4, Fig. 15",
        says: "Greedy reduces most, MeGA nearly as much",
        figure: "similar",
        measured: ratio(HISTORY, "deduplication_ratio", GREEDY_LAST, MEGA_LAST, ""),
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
            MEGA_LAST,
            "FGD; parameter 10; gc_percent 25; version last",
            "",
        ),
        expected: Expected::Within(0.32, 1.92),
    },
];
