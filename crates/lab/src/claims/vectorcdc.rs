//! What VectorCDC's evaluation says. Its factors are for AVX-512; a machine with less shows less.

use super::Measured::{Ratio, Value};
use super::{Claim, Expected};

const PAPER: &str = "VectorCDC (TOS'25)";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "Hashless chunkers with vectors are faster than hash-based ones with vectors",
        figure: "8.35x to 26.2x",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ram")],
            to: &[("method", "ss-gear")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Factor(8.35, 26.2),
    },
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "and VAE than SS-Gear",
        figure: "8.35x to 26.2x",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ae-max")],
            to: &[("method", "ss-gear")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Factor(8.35, 26.2),
    },
    Claim {
        paper: PAPER,
        place: "abstract",
        says: "Vectors make hashless chunkers faster than chunkers without are",
        figure: "15.3x to 207x, of the slowest",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ram")],
            to: &[("method", "rabin"), ("isa", "scalar")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Factor(15.3, 207.2),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "VRAM is faster than VAE-Max",
        figure: "the order only",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ram")],
            to: &[("method", "ae-max")],
            alike: &["expected_bytes", "isa"],
        },
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "VRAM is faster than VMAXP",
        figure: "the order only",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ram")],
            to: &[("method", "maxp")],
            alike: &["expected_bytes", "isa"],
        },
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "Without vectors, AE-Max is faster than Rabin",
        figure: "the order only",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ae-max"), ("isa", "scalar")],
            to: &[("method", "rabin"), ("isa", "scalar")],
            alike: &["expected_bytes"],
        },
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 10",
        says: "Without vectors, RAM is faster than Rabin",
        figure: "the order only",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ram"), ("isa", "scalar")],
            to: &[("method", "rabin"), ("isa", "scalar")],
            alike: &["expected_bytes"],
        },
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "Fig. 5",
        says: "Vectors give hash-based Gear little",
        figure: "below 2x",
        measured: Ratio {
            experiment: "chunk-throughput",
            measure: "gb_per_s",
            of: &[("method", "ss-gear")],
            to: &[("method", "gear")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Within(0.5, 2.0),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 8",
        says: "The best hashless chunker saves nearly what FastCDC does",
        figure: "equal within some percent",
        measured: Ratio {
            experiment: "chunk-savings",
            measure: "savings_percent",
            of: &[("method", "ae-max")],
            to: &[("method", "fastcdc-2016-nc2")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Within(0.89, 1.12),
    },
    Claim {
        paper: PAPER,
        place: "Fig. 3",
        says: "With Rabin and a fast hash, chunking takes more time than fingerprinting",
        figure: "more than half of both",
        measured: Value {
            experiment: "chunk-fingerprint",
            measure: "chunking_percent",
            of: &[("method", "rabin"), ("fingerprint", "xxh3-128")],
        },
        expected: Expected::Within(50.0, 100.0),
    },
];
