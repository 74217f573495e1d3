//! Claims of VectorCDC's evaluation. Its factors are for AVX-512; a machine with less shows less.

use super::{Claim, Expected, ratio, value};

const PAPER: &str = "VectorCDC (TOS'25)";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "Hashless chunkers with vectors are faster than hash-based ones with vectors",
        figure: "8.35x to 26.2x",
        measured: ratio("chunk-throughput", "gb_per_s", "ram", "ss-gear", "expected_bytes"),
        expected: Expected::Factor(8.35, 26.2),
    },
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "and VAE than SS-Gear",
        figure: "8.35x to 26.2x",
        measured: ratio("chunk-throughput", "gb_per_s", "ae-max", "ss-gear", "expected_bytes"),
        expected: Expected::Factor(8.35, 26.2),
    },
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "Vectors make hashless chunkers faster than chunkers without are",
        figure: "15.3x to 207x, of the slowest",
        measured: ratio("chunk-throughput", "gb_per_s", "ram", "rabin; isa scalar", "expected_bytes"),
        expected: Expected::Factor(15.3, 207.2),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "VRAM is faster than VAE-Max",
        figure: "the order only",
        measured: ratio("chunk-throughput", "gb_per_s", "ram", "ae-max", "expected_bytes isa"),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "VRAM is faster than VMAXP",
        figure: "the order only",
        measured: ratio("chunk-throughput", "gb_per_s", "ram", "maxp", "expected_bytes isa"),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "Without vectors, AE-Max is faster than Rabin",
        figure: "the order only",
        measured: ratio("chunk-throughput", "gb_per_s", "ae-max; isa scalar", "rabin; isa scalar", "expected_bytes"),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "Without vectors, RAM is faster than Rabin",
        figure: "the order only",
        measured: ratio("chunk-throughput", "gb_per_s", "ram; isa scalar", "rabin; isa scalar", "expected_bytes"),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 5",
        says: "Vectors give hash-based Gear little",
        figure: "below 2x",
        measured: ratio("chunk-throughput", "gb_per_s", "ss-gear", "gear", "expected_bytes"),
        expected: Expected::Within(0.5, 2.0),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 8",
        says: "The best hashless chunker saves nearly what FastCDC does",
        figure: "equal within some percent",
        measured: ratio("chunk-savings", "savings_percent", "ae-max", "fastcdc-2016-nc2", "expected_bytes"),
        expected: Expected::Within(0.89, 1.12),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 3",
        says: "With Rabin and a fast hash, chunking takes more time than fingerprinting",
        figure: "more than half of both",
        measured: value("chunk-fingerprint", "chunking_percent", "rabin; fingerprint xxh3-128"),
        expected: Expected::Within(50.0, 100.0),
    },
];
