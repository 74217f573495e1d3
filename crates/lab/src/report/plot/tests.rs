use super::*;
use crate::report::{Axis, Bars, Line, Point};
use crate::statistics::Spread;

fn figure(plot: Plot) -> Figure {
    Figure {
        title: "Speed of <script>alert(1)</script> & \"others\"".into(),
        redraws: String::new(),
        caption: String::new(),
        plot,
    }
}

fn svg(plot: Plot) -> Option<String> {
    let figure = figure(plot);
    let colours = Colours::of(&figure, std::slice::from_ref(&figure));
    drawn(&figure, "f0", &colours).map(|drawing| drawing.svg.into_string())
}

/// The elements of a drawing by name and class; panics if it is not well-formed or a number in it is none.
fn elements(svg: &str, wanted: &str) -> usize {
    found(svg, wanted, |_| 1)
}

/// The parts of the paths of this class: bars of a series are one path.
fn parts(svg: &str, class: &str) -> usize {
    found(svg, &format!("path.{class}"), |node| node.attribute("d").unwrap_or_default().matches('M').count())
}

fn found(svg: &str, wanted: &str, count: fn(&roxmltree::Node) -> usize) -> usize {
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let (name, class) = wanted.split_once('.').unwrap_or((wanted, ""));
    let is_wanted = |node: &roxmltree::Node| {
        let classes = node.attribute("class").unwrap_or_default();
        node.tag_name().name() == name && (class.is_empty() || classes.split(' ').any(|word| word == class))
    };
    document.descendants().filter(is_wanted).map(|node| count(&node)).sum()
}

fn spread(median: f64) -> Spread {
    Spread { low: median * 0.9, median, high: median * 1.1 }
}

fn bars(y: Axis, groups: &[&str], series: &[(&str, &[Option<Spread>])]) -> Plot {
    let series = series.iter().map(|(name, values)| Bars { name: (*name).into(), values: values.to_vec() }).collect();
    Plot::Bars { y, groups: groups.iter().map(|group| (*group).into()).collect(), series }
}

fn lines(x: Axis, y: Axis, points: &[(f64, f64)]) -> Plot {
    let line = |is_theory| Line {
        name: if is_theory { "a (theory)" } else { "a" }.into(),
        is_theory,
        points: points.to_vec(),
    };
    Plot::Lines { x, y, series: vec![line(false), line(true)] }
}

#[test]
fn bars_stand_or_lie_and_missing_ones_are_said() {
    let vertical = svg(bars(
        Axis::linear("GB/s"),
        &["AE", "RAM"],
        &[("one", &[Some(spread(1.0)), None]), ("two", &[Some(spread(2.0)), Some(spread(3.0))])],
    ));
    let vertical = vertical.expect("drawn");
    assert_eq!((parts(&vertical, "b"), parts(&vertical, "r")), (3, 3));
    assert_eq!(vertical.matches("<title>no value</title>").count(), 1);
    let names: Vec<String> = (0..36).map(|number| format!("chunker with a long name, number {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let values: Vec<Option<Spread>> =
        (0..36_u8).map(|number| if number == 7 { None } else { Some(spread(f64::from(number))) }).collect();
    let horizontal = svg(bars(Axis::linear("GB/s"), &names, &[("one", &values)])).expect("drawn");
    assert_eq!(
        (parts(&horizontal, "b"), elements(&horizontal, "text.v"), elements(&horizontal, "text.q")),
        (35, 35, 1)
    );
}

#[test]
fn what_is_strange_is_drawn_without_failing() {
    let values = [
        Some(spread(1e-9)),
        Some(spread(1e12)),
        Some(spread(0.0)),
        Some(spread(-3.0)),
        Some(spread(f64::NAN)),
        Some(spread(f64::INFINITY)),
        None,
    ];
    let groups = ["a", "b", "c", "d", "e", "f", "g"];
    for axis in [Axis::linear("x"), Axis::logarithmic("x")] {
        let drawing = svg(bars(axis.clone(), &groups, &[("one", &values)])).expect("drawn");
        assert_eq!(parts(&drawing, "b"), 4);
        assert_eq!(svg(bars(axis.clone(), &[], &[])), None);
        assert_eq!(svg(bars(axis.clone(), &["a"], &[("short", &[])])), None);
        assert!(svg(bars(axis.clone(), &["a"], &[("one", &[Some(spread(5.0))])])).is_some());
        let points = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 0.0), (3.0, 1e9), (f64::INFINITY, 2.0)];
        let drawing = svg(lines(axis.clone(), axis.clone(), &points)).expect("drawn");
        assert_eq!(elements(&drawing, "path.l"), 2);
        assert_eq!(svg(lines(axis.clone(), axis.clone(), &[])), None);
        assert!(svg(lines(axis.clone(), axis.clone(), &[(3.0, 4.0)])).is_some());
        let point = |name: &str, x, y| Point { name: name.into(), x, y, size: f64::NAN };
        let points = vec![point("a", 0.0, 1.0), point("b <&>", 5.0, 5.0), point("c", f64::NAN, 1.0)];
        assert!(svg(Plot::Points { x: axis.clone(), y: axis.clone(), points }).is_some());
        assert_eq!(svg(Plot::Points { x: axis.clone(), y: axis, points: vec![] }), None);
    }
}

#[test]
fn one_group_of_many_bars_is_many_groups() {
    let series: [(&str, &[Option<Spread>]); 3] =
        [("a", &[Some(spread(1.0))]), ("b", &[Some(spread(2.0))]), ("c", &[None])];
    let figure = figure(bars(Axis::linear("GB/s"), &["8 KiB"], &series));
    let drawing = drawn(&figure, "f0", &Colours::default()).expect("drawn");
    assert!(drawing.keys.is_empty());
    let svg = drawing.svg.into_string();
    assert!(svg.contains("GB/s (8 KiB)") && svg.contains(">a</text>") && !svg.contains(">c</text>"), "{svg}");
}

#[test]
fn one_bar_far_longer_than_the_others_is_cut() {
    let values: Vec<Option<Spread>> = [1.0, 2.0, 3.0, 2.5, 1.5, 2000.0].map(|value| Some(spread(value))).into();
    for name in ["short", "a name that is far too long to stand below a bar of any width"] {
        let drawing = svg(bars(Axis::linear("GB/s"), &[name; 6], &[("one", &values)])).expect("drawn");
        assert_eq!((elements(&drawing, "path.z"), parts(&drawing, "r")), (1, 5), "{drawing}");
        assert!(drawing.contains(">2000</text>"));
        let drawing = svg(bars(Axis::logarithmic("GB/s"), &[name; 6], &[("one", &values)])).expect("drawn");
        assert_eq!(elements(&drawing, "path.z"), 0);
    }
}

#[test]
fn names_are_text_never_markup() {
    let hostile = "<script>alert('x')</script>\"]]>&amp;\u{0}\u{202e}";
    let one = [Some(spread(1.0))];
    let long = hostile.repeat(9);
    for name in [hostile, &long] {
        let point = Point { name: name.into(), x: 1.0, y: 1.0, size: 1.0 };
        let line = Line { name: name.into(), is_theory: false, points: vec![(1.0, 1.0)] };
        let axis = Axis::linear(name);
        let plots = [
            bars(axis.clone(), &[name, name], &[(name, &one), (name, &one)]),
            Plot::Lines { x: axis.clone(), y: axis.clone(), series: vec![line.clone(), line] },
            Plot::Points { x: axis.clone(), y: axis, points: vec![point.clone(), point] },
        ];
        for plot in plots {
            let drawing = svg(plot).expect("drawn");
            assert_eq!(elements(&drawing, "script"), 0);
            assert!(!drawing.contains("<script"), "{drawing}");
        }
    }
}

#[test]
fn theory_is_dashed_and_has_no_markers() {
    let drawing =
        svg(lines(Axis::linear("x"), Axis::linear("y"), &[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)])).expect("drawn");
    assert_eq!((elements(&drawing, "path.l"), elements(&drawing, "path.d")), (2, 1));
    assert_eq!(drawing.matches("stroke-dasharray").count(), 1);
}

#[test]
fn long_lines_stay_small() {
    let points: Vec<(f64, f64)> = (0..100_000_u32).map(|x| (f64::from(x), f64::from(x).sqrt())).collect();
    let drawing = svg(lines(Axis::linear("x"), Axis::linear("y"), &points)).expect("drawn");
    assert!(drawing.len() < 12_000, "{} bytes", drawing.len());
}
