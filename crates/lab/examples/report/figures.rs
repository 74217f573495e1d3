//! Plots of every kind, easy and hard.

use super::Chance;
use siltstone_lab::report::{Axis, Bars, Figure, Line, Plot, Point};
use siltstone_testbed::statistics::Spread;

pub(super) const STORES: [&str; 9] = [
    "Greedy",
    "FGD (cap 10)",
    "FGD (cap 20)",
    "CLD (cap 20)",
    "MFD",
    "MeGA",
    "Siltstone off",
    "Siltstone forward 1",
    "Siltstone reverse",
];

/// Every algorithm in every width: long names.
pub(super) fn chunkers() -> Vec<String> {
    let algorithms = [
        "AE",
        "AE-Opt2",
        "RAM",
        "Rabin",
        "Gear",
        "FastCDC (normalized, level 2)",
        "TTTD",
        "MAXP",
        "SeqCDC (increasing)",
    ];
    algorithms
        .iter()
        .flat_map(|name| ["scalar", "SSE4.1", "AVX2", "AVX-512"].map(|isa| format!("{name}, {isa}")))
        .collect()
}

fn figure(title: String, redraws: &str, caption: &str, plot: Plot) -> Figure {
    Figure { title, redraws: redraws.into(), caption: caption.into(), plot }
}

fn bars(names: &[&str], groups: usize, mut value: impl FnMut(usize, usize) -> Option<Spread>) -> Vec<Bars> {
    let series = |(number, name): (usize, &&str)| Bars {
        name: (*name).into(),
        values: (0..groups).map(|group| value(number, group)).collect(),
    };
    names.iter().enumerate().map(series).collect()
}

pub(super) fn throughput(chance: &mut Chance, data: &str) -> Vec<Figure> {
    let names = chunkers();
    let mut around = |value: f64| Some(Spread::of(chance.rounds(value)));
    let all = bars(&["GB/s"], names.len(), |_, group| {
        if group % 11 == 6 {
            None
        } else {
            around(0.3 + 1.7 * f64::from(u32::try_from(group * group % 17).unwrap_or(0)))
        }
    });
    let three = bars(&["scalar", "AVX2", "AVX-512"], 5, |series, group| {
        if series == 1 && group == 3 {
            None
        } else {
            around(1.0 + f64::from(u32::try_from(series * 3 + group).unwrap_or(0)))
        }
    });
    let four = bars(&["2 KiB", "4 KiB", "8 KiB", "16 KiB"], 4, |series, group| {
        around(40.0 + f64::from(u32::try_from(series * 3 + group).unwrap_or(0)))
    });
    let huge = bars(&["containers"], 6, |_, group| around([1.0, 30.0, 0.0, 912.0, 4.1e6, 2e9][group]));
    let two = bars(&["find the extreme byte", "scan the range"], 9, |series, group| {
        around(if series == 0 { 60.0 } else { 30.0 } + f64::from(u32::try_from(group).unwrap_or(0)))
    });
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let groups = text(&["AE", "RAM", "MAXP", "Gear", "Rabin"]);
    vec![
        figure(
            format!("Chunking throughput on {data}"),
            "VectorCDC, Fig. 8",
            "Median of five rounds; the line goes from the slowest to the fastest.",
            Plot::Bars { y: Axis::linear("throughput, GB/s"), groups: names, series: all },
        ),
        figure(
            format!("Chunking throughput by width on {data}"),
            "VectorCDC, Fig. 11",
            "",
            Plot::Bars { y: Axis::linear("throughput, GB/s"), groups: groups.clone(), series: three },
        ),
        figure(
            format!("Savings by expected size on {data}"),
            "AE, Fig. 5",
            "",
            Plot::Bars {
                y: Axis::linear("savings, % of bytes"),
                groups: text(&["AE", "AE-Opt2", "Rabin", "low-entropy mix"]),
                series: four,
            },
        ),
        figure(
            format!("Containers read, huge ratios, on {data}"),
            "",
            "One of them is 0, which a logarithmic axis cannot show.",
            Plot::Bars {
                y: Axis::logarithmic("containers read (logarithmic)"),
                groups: text(&["one", "MeGA", "none", "Greedy", "more", "most"]),
                series: huge,
            },
        ),
        figure(
            format!("Shares of the two phases on {data}"),
            "VectorCDC, Fig. 3",
            "",
            Plot::Bars {
                y: Axis::linear("share of time, %"),
                groups: text(&[
                    "AE scalar",
                    "AE SSE4.1",
                    "AE AVX2",
                    "AE AVX-512",
                    "RAM scalar",
                    "RAM SSE4.1",
                    "RAM AVX2",
                    "RAM AVX-512",
                    "MAXP scalar",
                ]),
                series: two,
            },
        ),
    ]
}

/// Returns figures that are seldom, and must not look broken.
pub(super) fn odd(data: &str) -> Vec<Figure> {
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    vec![
        figure(
            format!("One group on {data}"),
            "",
            "",
            Plot::Bars {
                y: Axis::linear("GB/s"),
                groups: text(&["8 KiB"]),
                series: bars(&["Rabin", "AE", "MAXP", "AE-Opt2"], 1, |series, _| {
                    [Some(0.5), Some(1.2), None, Some(1.4)][series].map(|value| Spread::of([value]))
                }),
            },
        ),
        figure(
            format!("One far longer than the others on {data}"),
            "",
            "",
            Plot::Bars {
                y: Axis::linear("GB/s"),
                groups: text(&["Rabin", "AE", "MAXP", "RAM", "Gear", "fixed"]),
                series: bars(&["GB/s"], 6, |_, group| Some(Spread::of([[0.5, 1.2, 1.1, 2.0, 1.7, 1981.0][group]]))),
            },
        ),
        figure(
            format!("One value on {data}"),
            "",
            "",
            Plot::Bars {
                y: Axis::linear("seconds"),
                groups: text(&["only"]),
                series: vec![Bars { name: "s".into(), values: vec![Some(Spread::of([0.123]))] }],
            },
        ),
    ]
}

pub(super) fn sizes(chance: &mut Chance, data: &str) -> Vec<Figure> {
    let steps = || (0..=400_u32).map(f64::from);
    let cumulative = |name: &str, is_theory, rate: f64, wobble: &mut dyn FnMut() -> f64| Line {
        name: name.into(),
        is_theory,
        points: steps()
            .map(|step| (step * 160.0, (1.0 - (-step * rate).exp() + 0.004 * wobble()).clamp(0.0, 1.0)))
            .collect(),
    };
    let mut wobble = || chance.share() - 0.5;
    let distribution = vec![
        cumulative("AE", false, 0.03, &mut wobble),
        cumulative("AE (theory)", true, 0.031, &mut || 0.0),
        cumulative("Rabin", false, 0.015, &mut wobble),
        cumulative("Rabin (theory)", true, 0.0155, &mut || 0.0),
        cumulative("RAM", false, 0.02, &mut wobble),
    ];
    let long = |name: &str, is_theory, base: f64| Line {
        name: name.into(),
        is_theory,
        points: (1..=8).map(|times| (f64::from(times), base.powi(times))).collect(),
    };
    let by_size = |name: &str, height: f64| Line {
        name: name.into(),
        is_theory: false,
        points: (9..=16).map(|power| (f64::from(1 << power), height * f64::from(power))).collect(),
    };
    vec![
        figure(
            format!("Sizes of chunks on {data}"),
            "AE, Fig. 4",
            "A point (x, y) says: a share y of all chunks is not longer than x.",
            Plot::Lines {
                x: Axis::linear("size of chunk, bytes"),
                y: Axis::linear("share of chunks"),
                series: distribution,
            },
        ),
        figure(
            format!("Probability of long chunks on {data}"),
            "AE, Table 4",
            "",
            Plot::Lines {
                x: Axis::linear("size, in expected sizes"),
                y: Axis::logarithmic("probability of a longer chunk"),
                series: vec![
                    long("AE", false, 0.1),
                    long("AE (theory)", true, 0.11),
                    long("Rabin", false, 0.4),
                    long("Rabin (theory)", true, 0.37),
                ],
            },
        ),
        figure(
            format!("Savings by expected size on {data}"),
            "AE, Fig. 6",
            "",
            Plot::Lines {
                x: Axis::logarithmic("expected size, bytes"),
                y: Axis::linear("savings, %"),
                series: vec![by_size("AE", 4.0), by_size("RAM", 3.9), by_size("Gear", 3.3)],
            },
        ),
        figure(
            format!("A single point on {data}"),
            "",
            "",
            Plot::Lines {
                x: Axis::linear("version"),
                y: Axis::linear("seconds"),
                series: vec![long("one", false, 0.5)]
                    .into_iter()
                    .map(|line| Line { points: line.points[..1].to_vec(), ..line })
                    .collect(),
            },
        ),
    ]
}

pub(super) fn sketches(chance: &mut Chance, data: &str) -> Vec<Figure> {
    let names = ["N-Transform", "Finesse", "Odess", "Odess+"];
    let mut around = |value: f64| Some(Spread::of(chance.rounds(value)));
    let speed = bars(&["MB/s"], 4, |_, group| around([88.0, 410.0, 1650.0, 2890.0][group]));
    let text: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    vec![
        figure(
            format!("Speed of sketching on {data}"),
            "Odess, Fig. 9",
            "",
            Plot::Bars { y: Axis::linear("speed, MB/s"), groups: text, series: speed },
        ),
        figure(
            format!("Nothing was measured on {data}"),
            "",
            "",
            Plot::Lines { x: Axis::linear("x"), y: Axis::linear("y"), series: Vec::new() },
        ),
    ]
}

pub(super) fn versions(chance: &mut Chance, data: &str) -> Vec<Figure> {
    let mut lines = |height: f64, slope: f64| -> Vec<Line> {
        let mut level = height;
        let line = |name: &&str| {
            level *= 0.83;
            Line {
                name: (*name).into(),
                is_theory: false,
                points: (1..=27)
                    .map(|version| {
                        (
                            f64::from(version),
                            level * (1.0 + slope * f64::from(version)) * (0.93 + 0.14 * chance.share()),
                        )
                    })
                    .collect(),
            }
        };
        STORES.iter().map(line).collect()
    };
    let (backup, containers) = (lines(2400.0, -0.01), lines(300.0, 0.3));
    let mut points: Vec<Point> = STORES
        .iter()
        .map(|name| Point {
            name: (*name).into(),
            x: 100.0 + 900.0 * chance.share(),
            y: 8.0 + 9.0 * chance.share(),
            size: chance.share(),
        })
        .collect();
    points.extend((1..=8).map(|number| Point {
        name: format!("MeGA t={}", f64::from(number) / 10.0),
        x: 820.0 + 25.0 * chance.share(),
        y: 15.0 + 0.5 * chance.share(),
        size: 0.2,
    }));
    let spread = |chance: &mut Chance, name: &str| Point {
        name: name.into(),
        x: 10_f64.powf(4.0 * chance.share()),
        y: 10_f64.powf(3.0 * chance.share()),
        size: chance.share(),
    };
    let logarithmic = chunkers().iter().step_by(2).map(|name| spread(chance, name)).collect();
    vec![
        figure(
            format!("Speed of backup per version of {data}"),
            "MeGA, Fig. 9",
            "",
            Plot::Lines { x: Axis::linear("version"), y: Axis::linear("speed of backup, MB/s"), series: backup },
        ),
        figure(
            format!("Containers read for a restore of {data}"),
            "MeGA, Fig. 12",
            "Fewer is better.",
            Plot::Lines { x: Axis::linear("version"), y: Axis::logarithmic("containers read"), series: containers },
        ),
        figure(
            format!("Overall view: {data}"),
            "MeGA, Fig. 16",
            "Up and to the right is better. The larger the disc, the faster the backup.",
            Plot::Points { x: Axis::linear("speed of restore, MB/s"), y: Axis::linear("deduplication ratio"), points },
        ),
        figure(
            format!("Overall view with logarithmic axes: {data}"),
            "",
            "",
            Plot::Points { x: Axis::logarithmic("speed, MB/s"), y: Axis::logarithmic("ratio"), points: logarithmic },
        ),
    ]
}
