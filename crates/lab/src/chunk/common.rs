//! Parts that the experiments of this room share: sizes, data, and bars from findings.

use crate::distinct;
use crate::experiment::Finding;
use crate::report::Bars;
use crate::settings::Settings;

/// The expected sizes asked for, or else the first `quick` or all of these; ascending.
pub(super) fn expected_sizes(settings: &Settings, usual: &[u32], quick: usize) -> Vec<u32> {
    let mut sizes = match &settings.expected_bytes[..] {
        [] if settings.quick => usual[..quick.min(usual.len())].to_vec(),
        [] => usual.to_vec(),
        asked => asked.to_vec(),
    };
    sizes.sort_unstable();
    sizes
}

/// Returns the data to go through when time is taken: far more than caches hold, and no more than needed.
pub(super) fn timed<'d>(data: &'d [u8], settings: &Settings) -> &'d [u8] {
    let bytes_max = if settings.quick { 32 << 20 } else { 128 << 20 };
    &data[..data.len().min(bytes_max)]
}

/// Findings by the data they were found on, in the order in which data first occurs; those without values are left out.
pub(super) fn by_data(findings: &[Finding]) -> Vec<(&str, Vec<&Finding>)> {
    let mut groups: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.wrong.is_none()) {
        match groups.iter_mut().find(|(data, _)| *data == finding.data) {
            Some((_, group)) => group.push(finding),
            None => groups.push((&finding.data, vec![finding])),
        }
    }
    groups
}

/// Those of a value of a parameter.
pub(super) fn with<'f>(findings: &[&'f Finding], parameter: &str, value: &str) -> Vec<&'f Finding> {
    findings.iter().copied().filter(|finding| finding.parameter(parameter) == value).collect()
}

/// Findings of one of these methods.
pub(super) fn of_methods<'f>(findings: &[&'f Finding], methods: &[&str]) -> Vec<&'f Finding> {
    findings.iter().copied().filter(|finding| methods.contains(&finding.parameter("method").as_str())).collect()
}

/// The different values of a parameter, in the order in which they occur.
pub(super) fn values(findings: &[&Finding], parameter: &str) -> Vec<String> {
    distinct(findings.iter().map(|finding| finding.parameter(parameter)).filter(|value| !value.is_empty()))
}

/// A group for each value of one parameter, in it a bar for each value of another.
pub(super) fn bars(findings: &[&Finding], group: &str, series: &str, measure: &str) -> (Vec<String>, Vec<Bars>) {
    let groups = values(findings, group);
    let one = |name: String| {
        let of_series = with(findings, series, &name);
        let value = |of: &String| with(&of_series, group, of).first().and_then(|finding| finding.spread(measure));
        Bars { values: groups.iter().map(value).collect(), name: shown(series, &name) }
    };
    let series = values(findings, series).into_iter().map(one).collect();
    (groups.iter().map(|name| shown(group, name)).collect(), series)
}

/// Sizes in KiB, all else as it is.
pub(super) fn shown(parameter: &str, value: &str) -> String {
    match value.parse() {
        Ok(bytes) if parameter == "expected_bytes" => kib(bytes),
        _ => value.to_owned(),
    }
}

/// A size in KiB if it is one.
pub(super) fn kib(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes / 1024) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
pub(super) mod testing {
    use crate::corpus::Corpus;
    use crate::experiment::Input;
    pub(crate) use crate::experiment::testing::findings;
    use crate::settings::Settings;
    use std::path::Path;

    /// An input of these versions.
    pub(crate) fn input(folder: &Path, versions: &[&[u8]]) -> Input {
        let write = |(number, bytes): (usize, &&[u8])| {
            let path = folder.join(number.to_string());
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let versions = versions.iter().enumerate().map(write).collect();
        Input::new(Corpus { name: "d".into(), description: String::new(), versions }, u64::MAX)
    }

    /// Settings for little data.
    pub(crate) fn quick(methods: &[&str]) -> Settings {
        let methods = methods.iter().map(ToString::to_string).collect();
        Settings { quick: true, methods, memory_mib: 64, ..Settings::default() }
    }
}
