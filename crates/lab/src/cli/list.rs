//! List of what can be measured.

use siltstone_lab::experiment::{Experiment, Head, Needs};
use siltstone_testbed::corpus::KINDS;
use std::fmt::Write as _;

pub(super) fn text(experiments: &[Box<dyn Experiment>]) -> String {
    let mut text = String::from("Experiments, chosen by --experiment NAME or by the command they begin with:\n");
    // Writing to a string does not fail.
    for experiment in experiments {
        let Head { name, title, reproduces, needs, methods, .. } = experiment.head();
        let _ = writeln!(text, "\n  {name}\n      {title}");
        if !reproduces.is_empty() {
            let _ = writeln!(text, "      repeats: {}", reproduces.join("; "));
        }
        let needs = match needs {
            Needs::Nothing => "nothing: it makes what it needs",
            Needs::Bytes => "data",
            Needs::Versions => "data in two versions or more",
        };
        let _ = writeln!(text, "      needs: {needs}");
        if !methods.is_empty() {
            let _ = writeln!(text, "      methods: {}", methods.join(", "));
        }
    }
    let _ = writeln!(text, "\nCorpora, chosen by --corpus NAME:\n");
    let width = KINDS.iter().map(|corpus| corpus.name.len()).max().unwrap_or(0);
    for corpus in KINDS {
        let _ = writeln!(text, "  {:width$}  {}", corpus.name, corpus.description);
    }
    text
}
