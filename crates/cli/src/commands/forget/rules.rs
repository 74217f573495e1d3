//! The `--keep-*` options, and the policy they make.

use crate::parse::{KeepCount, KeepSpan, TagList};
use crate::render::plural;
use clap::Args;
use siltstone_engine::forget::policy::{KeepPolicy, span_text};
use std::fmt;

/// Rules; a snapshot that any of them keeps stays.
#[derive(Args, Debug, Default)]
#[command(
    next_help_heading = "Rules (n: a number or 'unlimited'; a span such as 1y5m7d2h, back from the newest snapshot)"
)]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct RuleArgs {
    /// Keep the last n snapshots
    #[arg(short = 'l', long, value_name = "n")]
    keep_last: Option<KeepCount>,
    /// Keep the last snapshot of each of the last n hours that have one
    #[arg(short = 'H', long, value_name = "n")]
    keep_hourly: Option<KeepCount>,
    /// Keep the last snapshot of each of the last n days that have one
    #[arg(short = 'd', long, value_name = "n")]
    keep_daily: Option<KeepCount>,
    /// Keep the last snapshot of each of the last n weeks that have one
    #[arg(short = 'w', long, value_name = "n")]
    keep_weekly: Option<KeepCount>,
    /// Keep the last snapshot of each of the last n months that have one
    #[arg(short = 'm', long, value_name = "n")]
    keep_monthly: Option<KeepCount>,
    /// Keep the last snapshot of each of the last n years that have one
    #[arg(short = 'y', long, value_name = "n")]
    keep_yearly: Option<KeepCount>,
    /// Keep all snapshots within a span
    #[arg(long, value_name = "span")]
    keep_within: Option<KeepSpan>,
    /// Keep the last snapshot of each hour within a span
    #[arg(long, value_name = "span")]
    keep_within_hourly: Option<KeepSpan>,
    /// Keep the last snapshot of each day within a span
    #[arg(long, value_name = "span")]
    keep_within_daily: Option<KeepSpan>,
    /// Keep the last snapshot of each week within a span
    #[arg(long, value_name = "span")]
    keep_within_weekly: Option<KeepSpan>,
    /// Keep the last snapshot of each month within a span
    #[arg(long, value_name = "span")]
    keep_within_monthly: Option<KeepSpan>,
    /// Keep the last snapshot of each year within a span
    #[arg(long, value_name = "span")]
    keep_within_yearly: Option<KeepSpan>,
    /// Keep snapshots with all of these tags, `tag[,tag,...]` (repeated: with those of any)
    #[arg(long, value_name = "tags")]
    keep_tag: Vec<TagList>,
}

impl RuleArgs {
    /// The policy these options make.
    pub(crate) fn policy(&self) -> KeepPolicy {
        let count = |option: Option<KeepCount>| option.map(|count| count.0);
        let span = |option: Option<KeepSpan>| option.map(|span| span.0);
        KeepPolicy::default()
            .with_last(count(self.keep_last))
            .with_hourly(count(self.keep_hourly))
            .with_daily(count(self.keep_daily))
            .with_weekly(count(self.keep_weekly))
            .with_monthly(count(self.keep_monthly))
            .with_yearly(count(self.keep_yearly))
            .with_within(span(self.keep_within))
            .with_within_hourly(span(self.keep_within_hourly))
            .with_within_daily(span(self.keep_within_daily))
            .with_within_weekly(span(self.keep_within_weekly))
            .with_within_monthly(span(self.keep_within_monthly))
            .with_within_yearly(span(self.keep_within_yearly))
            .with_tags(self.keep_tag.iter().map(|list| list.0.clone()).collect())
    }
}

/// A policy as a sentence: `keep 1 latest, 2 daily snapshots and all snapshots within 2d of the newest`.
pub(crate) struct Sentence<'a>(pub(crate) &'a KeepPolicy);

impl Sentence<'_> {
    fn counts(&self) -> Option<String> {
        let policy = self.0;
        let rules = [
            (policy.last, "latest"),
            (policy.hourly, "hourly"),
            (policy.daily, "daily"),
            (policy.weekly, "weekly"),
            (policy.monthly, "monthly"),
            (policy.yearly, "yearly"),
        ];
        let on =
            rules.into_iter().filter_map(|(count, word)| Some((KeepCount(count.filter(|count| *count > 0)?), word)));
        let words: Vec<String> = on.map(|(count, word)| format!("{count} {word}")).collect();
        let is_one = rules.iter().filter_map(|(count, _)| *count).fold(0, u32::saturating_add) == 1;
        (!words.is_empty()).then(|| format!("{} {}", words.join(", "), plural(if is_one { 1 } else { 2 }, "snapshot")))
    }

    fn spans(&self) -> Option<String> {
        let policy = self.0;
        let rules = [
            (policy.within, "all"),
            (policy.within_hourly, "hourly"),
            (policy.within_daily, "daily"),
            (policy.within_weekly, "weekly"),
            (policy.within_monthly, "monthly"),
            (policy.within_yearly, "yearly"),
        ];
        let on = rules.into_iter().filter_map(|(span, word)| Some((span.filter(|span| !span.is_zero())?, word)));
        let words: Vec<String> =
            on.map(|(span, word)| [word, "snapshots within", &span_text(&span)].join(" ")).collect();
        (!words.is_empty()).then(|| format!("{} of the newest", words.join(", ")))
    }

    fn tags(&self) -> Option<String> {
        let lists: Vec<String> = self.0.tags.iter().map(|list| format!("[{}]", list.join(", "))).collect();
        (!lists.is_empty()).then(|| format!("all snapshots with tags {}", lists.join(" or ")))
    }
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [self.counts(), self.tags(), self.spans()].into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("remove all") } else { write!(f, "keep {}", parts.join(" and ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_a_sentence() {
        let rules = RuleArgs {
            keep_last: Some(KeepCount(1)),
            keep_daily: Some(KeepCount(u32::MAX)),
            keep_weekly: Some(KeepCount(0)),
            keep_within: Some("2d".parse().expect("a span")),
            keep_within_daily: Some("1m".parse().expect("a span")),
            keep_tag: vec![TagList(vec!["a".into(), "b".into()])],
            ..RuleArgs::default()
        };
        let expected = "keep 1 latest, all daily snapshots and all snapshots with tags [a, b] \
                        and all snapshots within 2d, daily snapshots within 1m of the newest";
        assert_eq!(Sentence(&rules.policy()).to_string(), expected);
        assert_eq!(Sentence(&KeepPolicy::default()).to_string(), "remove all");
    }
}
