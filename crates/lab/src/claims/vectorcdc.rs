//! Claims of VectorCDC's evaluation, on its own forms (`vram`, `vae-max`, `vmaxp`: a search, then a scan) and at its
//! 8 KB. Its factors are for AVX-512; a machine with less shows less.
//!
//! Section 6.2.1 gives the speeds behind the abstract's factors: SS-Gear 3.57 GB/s, SS-CRC 1.17, `FastCDC` 1.95, Gear
//! 1.05, CRC 0.48.

use super::measured::{Measured, Rows, Side};
use super::{Claim, Expected, ratio, value};

const PAPER: &str = "VectorCDC (TOS'25)";

/// The paper's own forms, at 8 KiB.
const VRAM: &str = "vram; isa widest; expected_bytes 8192";
const VAE_MAX: &str = "vae-max; isa widest; expected_bytes 8192";
const VMAXP: &str = "vmaxp; isa widest; expected_bytes 8192";
/// Chunkers to which SS-CDC gives vectors.
const SS_GEAR: &str = "ss-gear; isa widest; expected_bytes 8192";
const SS_CRC: &str = "ss-crc; isa widest; expected_bytes 8192";
/// Chunkers without vectors.
const RABIN: &str = "rabin; isa scalar; expected_bytes 8192";
const CRC: &str = "crc; isa scalar; expected_bytes 8192";
const GEAR: &str = "gear; isa scalar; expected_bytes 8192";
const TTTD: &str = "tttd; isa scalar; expected_bytes 8192";
const FASTCDC: &str = "fastcdc-2016-nc2; isa scalar; expected_bytes 8192";
const AE_MAX: &str = "ae-max; isa scalar; expected_bytes 8192";
const AE_MIN: &str = "ae-min; isa scalar; expected_bytes 8192";
const MAXP: &str = "maxp-t; isa scalar; expected_bytes 8192";
const RAM: &str = "ram-t; isa scalar; expected_bytes 8192";

/// Chunkers of the paper, hash-based and hashless, without vectors.
const UNACCELERATED: Side = Side::Least(&[RABIN, CRC, GEAR, TTTD, FASTCDC, AE_MAX, AE_MIN, MAXP, RAM]);
/// Hash-based chunkers, with vectors where SS-CDC gives them some.
const HASH_BASED: Side = Side::Greatest(&[SS_GEAR, SS_CRC, FASTCDC, GEAR, CRC, RABIN, TTTD]);

/// Speed of the row `of` by that of the row `to`.
const fn speed(of: Rows, to: Rows) -> Measured {
    speed_beside(of, Side::Row(to))
}

/// Speed of the row `of` by that of one of several rows.
const fn speed_beside(of: Rows, to: Side) -> Measured {
    Measured::Ratio { experiment: "chunk-throughput", measure: "gb_per_s", of: Side::Row(of), to, alike: "" }
}

/// Share of chunking in the time of a row, beside fingerprinting.
const fn chunking(of: Rows) -> Measured {
    value("chunk-fingerprint", "chunking_percent", of)
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        paper: PAPER,
        place: "abstract; section 6.2.1, Fig. 10(a, b)",
        says: "VRAM is faster than SS-Gear",
        figure: "8.35x",
        measured: speed(VRAM, SS_GEAR),
        expected: Expected::Factor(8.35, 8.35),
    },
    Claim {
        paper: PAPER,
        place: "abstract; section 6.2.1, Fig. 10(a, b)",
        says: "VRAM is faster than SS-CRC",
        figure: "26.2x",
        measured: speed(VRAM, SS_CRC),
        expected: Expected::Factor(26.2, 26.2),
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.1, Fig. 10(a, b)",
        says: "VRAM is faster than FastCDC, the fastest hash-based chunker without vectors",
        figure: "15.3x",
        measured: speed(VRAM, FASTCDC),
        expected: Expected::Factor(15.3, 15.3),
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.1, Fig. 10(a, b)",
        says: "VRAM is faster than the slowest chunker without vectors",
        figure: "207x",
        measured: speed_beside(VRAM, UNACCELERATED),
        expected: Expected::Factor(207.0, 207.0),
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.3, Fig. 10(d)",
        says: "VRAM is faster than VAE-Max",
        figure: "the order only",
        measured: speed(VRAM, VAE_MAX),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.3, Fig. 10(d)",
        says: "VRAM is faster than VMAXP",
        figure: "the order only",
        measured: speed(VRAM, VMAXP),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.3",
        says: "VAE-Max is faster than every hash-based chunker",
        figure: "the order only",
        measured: speed_beside(VAE_MAX, HASH_BASED),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.3",
        says: "VMAXP is faster than every hash-based chunker",
        figure: "the order only",
        measured: speed_beside(VMAXP, HASH_BASED),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.1, Fig. 10(a, b)",
        says: "Without vectors, AE-Max is faster than Rabin",
        figure: "the order only",
        measured: speed(AE_MAX, RABIN),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.1, Fig. 10(a, b)",
        says: "Without vectors, RAM is faster than Rabin",
        figure: "the order only",
        measured: speed(RAM, RABIN),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 3.2, Fig. 5; section 6.2.1",
        says: "SS-Gear, with vectors, is a little faster than Gear without",
        figure: "3.1x to 3.4x (3.3 or 3.57 over 1.05 GB/s)",
        measured: speed(SS_GEAR, GEAR),
        expected: Expected::Factor(3.1, 3.4),
    },
    Claim {
        paper: PAPER,
        place: "section 3.2, Fig. 5; section 6.2.1",
        says: "SS-CRC, with vectors, is a little faster than CRC without",
        figure: "2.4x to 2.5x (1.17 or 1.2 over 0.48 GB/s)",
        measured: speed(SS_CRC, CRC),
        expected: Expected::Factor(2.4, 2.5),
    },
    Claim {
        paper: PAPER,
        place: "section 6.1.1, Fig. 8",
        says: "The best hashless chunker saves about what the best hash-based one does",
        figure: "at most 6 % less; 11 % on one data set",
        measured: Measured::Ratio {
            experiment: "chunk-savings",
            measure: "savings_percent",
            of: Side::Greatest(&[
                "ae-max; expected_bytes 8192",
                "ae-min; expected_bytes 8192",
                "maxp-t; expected_bytes 8192",
                "ram-t; expected_bytes 8192",
            ]),
            to: Side::Greatest(&[
                "crc; expected_bytes 8192",
                "fastcdc-2016-nc2; expected_bytes 8192",
                "gear; expected_bytes 8192",
                "rabin; expected_bytes 8192",
                "tttd; expected_bytes 8192",
            ]),
            alike: "",
        },
        expected: Expected::Within(0.94, f64::INFINITY),
    },
    Claim {
        paper: PAPER,
        place: "section 3.1, Fig. 3",
        says: "With FastCDC and xxHash3, chunking takes more time than fingerprinting",
        figure: "more than half of both",
        measured: chunking("fastcdc-2016-nc2; isa scalar; expected_bytes 8192; fingerprint xxh3-128"),
        expected: Expected::Within(50.0, 100.0),
    },
    Claim {
        paper: PAPER,
        place: "section 3.1, Fig. 3",
        says: "With FastCDC and SHA-1, chunking and fingerprinting take nearly equal time",
        figure: "nearly equal",
        measured: chunking("fastcdc-2016-nc2; isa scalar; expected_bytes 8192; fingerprint sha1"),
        expected: Expected::Within(40.0, 60.0),
    },
    Claim {
        paper: PAPER,
        place: "section 3.1, Fig. 3",
        says: "With FastCDC and MD5, fingerprinting takes more time than chunking",
        figure: "more than half of both",
        measured: chunking("fastcdc-2016-nc2; isa scalar; expected_bytes 8192; fingerprint md5"),
        expected: Expected::Within(0.0, 50.0),
    },
    Claim {
        paper: PAPER,
        place: "section 6.2.4, Fig. 11",
        says: "With VRAM and xxHash3, chunking takes no more time than fingerprinting",
        figure: "similar or less",
        measured: chunking("vram; isa widest; expected_bytes 8192; fingerprint xxh3-128"),
        expected: Expected::Within(0.0, 55.0),
    },
    Claim {
        paper: PAPER,
        place: "section 6.4, Fig. 14",
        says: "Vectors of 128 bits make VAE-Max faster than AE-Max",
        figure: "the order only",
        measured: ratio("chunk-widths", "gb_per_s", "vae-max; isa 128-bit; expected_bytes 8192", AE_MAX, ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.4, Fig. 14",
        says: "Vectors of 128 bits make VRAM faster than RAM",
        figure: "the order only",
        measured: ratio("chunk-widths", "gb_per_s", "vram; isa 128-bit; expected_bytes 8192", RAM, ""),
        expected: Expected::More,
    },
    Claim {
        paper: PAPER,
        place: "section 6.4.2, Fig. 14",
        says: "Wider vectors make VRAM faster than vectors of 128 bits",
        figure: "the order only",
        measured: ratio("chunk-widths", "gb_per_s", VRAM, "vram; isa 128-bit; expected_bytes 8192", ""),
        expected: Expected::More,
    },
];
