//! Words for what the snapshots of a group have in common.

use super::visible;
use siltstone_engine::backup::default_series_name;
use siltstone_engine::snapshots::Group;
use std::fmt;

/// `host [kasimir], paths [/home/user/work]`; empty without grouping. A series is left out whose name the host and the
/// paths beside it give.
pub(crate) struct GroupHeader<'a>(pub(crate) &'a Group);

impl fmt::Display for GroupHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.0;
        let paths = |paths: &Vec<Vec<u8>>| paths.iter().map(|path| visible(path)).collect::<Vec<_>>().join(", ");
        let is_given = |series: &&String| match (&group.host, &group.paths) {
            (Some(host), Some(paths)) => **series == default_series_name(host, paths),
            _ => false,
        };
        let series = group.series.as_ref().filter(|series| !is_given(series));
        let parts = [
            group.host.as_ref().map(|host| format!("host [{}]", visible(host.as_bytes()))),
            group.tags.as_ref().map(|tags| format!("tags [{}]", visible(tags.join(", ").as_bytes()))),
            group.paths.as_ref().map(|all| format!("paths [{}]", paths(all))),
            series.map(|series| format!("series [{}]", visible(series.as_bytes()))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_named_unless_host_and_paths_give_its_name() {
        let group = |series: &str| Group {
            host: Some("kasimir".into()),
            paths: Some(vec![b"/home/user".to_vec()]),
            tags: None,
            series: Some(series.into()),
            snapshots: Vec::new(),
        };
        let said = |group: &Group| GroupHeader(group).to_string();
        assert_eq!(said(&group("kasimir:/home/user")), "host [kasimir], paths [/home/user]");
        assert_eq!(said(&group("pg-a")), "host [kasimir], paths [/home/user], series [pg-a]");
        let by_series = Group { host: None, paths: None, ..group("kasimir:/home/user") };
        assert_eq!(said(&by_series), "series [kasimir:/home/user]");
    }
}
