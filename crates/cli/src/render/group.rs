//! Words for what the snapshots of a group have in common.

use super::visible;
use siltstone_engine::snapshots::Group;
use std::fmt;

/// `host [kasimir], paths [/home/user/work]`; empty without grouping.
pub(crate) struct GroupHeader<'a>(pub(crate) &'a Group);

impl fmt::Display for GroupHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.0;
        let paths = |paths: &Vec<Vec<u8>>| paths.iter().map(|path| visible(path)).collect::<Vec<_>>().join(", ");
        let parts = [
            group.host.as_ref().map(|host| format!("host [{}]", visible(host.as_bytes()))),
            group.tags.as_ref().map(|tags| format!("tags [{}]", visible(tags.join(", ").as_bytes()))),
            group.paths.as_ref().map(|all| format!("paths [{}]", paths(all))),
            group.series.as_ref().map(|series| format!("series [{}]", visible(series.as_bytes()))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
