use super::*;
use crate::experiment::{Needs, Rounds, row};
use crate::report::{Axis, InputSummary, Line, Plot};
use crate::settings::Settings;

const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

fn finding(method: &str, wrong: Option<&str>) -> Finding {
    let parameters = row([("method", method.into()), ("expected_bytes", 8192.into())]);
    let values = if wrong.is_some() { Vec::new() } else { vec![("gb_per_s".to_owned(), vec![1.0, 2.0, 3.0])] };
    Finding {
        experiment: "chunk-speed".into(),
        data: HOSTILE.into(),
        parameters,
        values,
        wrong: wrong.map(str::to_owned),
    }
}

fn report() -> Report {
    let line = Line { name: HOSTILE.into(), is_theory: false, points: vec![(1.0, 2.0), (2.0, 3.0)] };
    let plot = Plot::Lines { x: Axis::linear(HOSTILE), y: Axis::linear(HOSTILE), series: vec![line.clone(), line] };
    let figure = Figure { title: HOSTILE.into(), redraws: HOSTILE.into(), caption: HOSTILE.into(), plot };
    Report {
        settings: Settings { data: vec![HOSTILE.into()], ..Settings::default() },
        version: HOSTILE.into(),
        day: "2026-11-21".into(),
        machine: vec![format!("processor: {HOSTILE}")],
        inputs: vec![InputSummary { name: HOSTILE.into(), description: HOSTILE.into(), bytes: 12_345, versions: 3 }],
        experiments: vec![Head {
            name: "chunk-speed",
            title: "How fast",
            reproduces: &["AE, Fig. 5"],
            needs: Needs::Bytes,
            methods: Vec::new(),
            rounds: Rounds::All,
            columns: "method expected_bytes gb_per_s",
        }],
        findings: vec![finding(HOSTILE, None), finding("broken", Some(HOSTILE))],
        figures: vec![("chunk-speed".into(), vec![figure])],
        advice: vec![("chunk-speed".into(), vec![HOSTILE.into()])],
        skipped: vec![HOSTILE.into()],
        is_whole: false,
    }
}

#[test]
fn names_are_text_never_markup() {
    let page = page(&report());
    assert!(!page.contains("<script"), "{page}");
    assert!(!page.contains('\u{202e}'));
    assert!(page.matches("&lt;script&gt;").count() > 12);
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = page(&report()).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!page.contains("://") && !page.contains("@import") && !page.contains("src=\""));
}

#[test]
fn what_failed_is_said_and_has_no_time() {
    let page = page(&report());
    assert!(page.contains("1 result failed the check"));
    assert_eq!(page.matches("✗ failed its check: &lt;script").count(), 1);
    assert!(page.contains("did not come to its end"));
    let whole = Report { findings: vec![finding("fine", None)], is_whole: true, ..report() };
    let page = super::page(&whole);
    assert!(!page.contains('✗') && page.contains("is right"));
    assert!(page.contains("2 <i>1.00–3.00</i>"), "{page}");
}

#[test]
fn only_tags_that_html_does_without_are_left_out() {
    let drawn = "<g><path d=\"M0 0\"></path><path d=\"M1 1\"><title>one</title></path></g>";
    assert_eq!(lean(drawn), "<g><path d=\"M0 0\"/><path d=\"M1 1\"><title>one</title></path></g>");
    assert_eq!(lean("<tr><th>a</th><td class=\"l\">1</td></tr></table>"), "<tr><th>a<td class=\"l\">1</table>");
    let page = page(&report());
    for name in ["title", "text", "figure", "table", "details", "section", "svg", "g"] {
        let begun = page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(begun, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn the_page_opens_with_a_figure_of_each_question_and_its_sentence() {
    let bars = || Figure { title: "Bars".into(), ..report().figures[0].1[0].clone() };
    let points = Figure {
        title: "Points".into(),
        plot: Plot::Points { x: Axis::linear("x"), y: Axis::linear("y"), points: Vec::new() },
        ..bars()
    };
    let names = ["store-history", "chunk-savings", "sketch-detection", "chunk-throughput"];
    let figures = names.map(|name| (name.to_owned(), vec![bars(), points.clone()])).into();
    let advice = names.map(|name| (name.to_owned(), vec![format!("What follows of {name}."), "More.".into()])).into();
    let experiments = names.map(|name| Head { name, ..report().experiments[0].clone() }).into();
    let page = page(&Report { experiments, figures, advice, ..report() });
    let opening = page.split("id=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
    let at = |text: &str| opening.find(text).unwrap_or_else(|| panic!("{text}: {opening}"));
    let order = ["chunk-savings", "chunk-throughput", "sketch-detection", "store-history"];
    let places = order.map(|name| at(&format!("What follows of {name}.")));
    assert!(places.is_sorted(), "{places:?}");
    // Each figure is drawn once.
    assert_eq!((opening.matches("<figure").count(), page.matches("<figure").count()), (4, 8));
    assert!(!opening.contains("More."));
}

#[test]
fn the_page_of_a_quick_run_has_the_papers_figures_and_the_tables_of_the_first_data() {
    let input = |name: &str| InputSummary { name: name.into(), ..report().inputs[0].clone() };
    let of = |title: &str, redraws: &str| Figure {
        title: title.into(),
        redraws: redraws.into(),
        ..report().figures[0].1[0].clone()
    };
    let drawn = [of("Cuts, one", "AE, Fig. 5"), of("Cuts, two", "AE, Fig. 5"), of("Ours, one", "")];
    let on = |data: &str| Finding { data: data.into(), ..finding("fine", None) };
    let whole = Report {
        inputs: vec![input("one"), input("two")],
        figures: vec![("chunk-speed".into(), drawn.into())],
        findings: vec![on("one"), on("two")],
        ..report()
    };
    let count = |page: &str| (page.matches("<figure").count(), page.matches("<details").count());
    assert_eq!(count(&page(&whole)), (3, 2));
    let quick = page(&Report { settings: Settings { quick: true, ..whole.settings.clone() }, ..whole });
    assert_eq!(count(&quick), (1, 1));
    assert!(quick.contains("In results.csv: two"), "{quick}");
}

#[test]
fn of_the_versions_of_a_quick_run_the_page_has_the_last() {
    let mut findings = vec![finding("broken", Some("why"))];
    findings.extend((1..=3).map(|version| {
        let mut finding = finding("fine", None);
        finding.parameters.insert("version".into(), version.into());
        finding
    }));
    let rows = |quick: bool| {
        let settings = Settings { quick, ..report().settings };
        let page = page(&Report { settings, findings: findings.clone(), figures: Vec::new(), ..report() });
        assert_eq!(page.contains("In results.csv: the versions before"), quick);
        page.matches("<tr").count()
    };
    assert_eq!(rows(false) - rows(true), 2);
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let empty =
        Report { experiments: vec![], findings: vec![], figures: vec![], inputs: vec![], advice: vec![], ..report() };
    assert!(page(&empty).ends_with("</html>"));
}
