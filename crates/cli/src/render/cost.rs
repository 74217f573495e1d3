//! Cost of a run that a dry run expects: requests, bytes and, where prices are known, money.

use super::size;
use crate::prices::Chosen;
use serde::{Serialize, Serializer};
use siltstone_engine::usage::{Estimate, Usage};

/// Money below this is not told more exactly.
const LEAST: f64 = 0.0001;

/// A usage, and the prices of where it happens.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cost {
    usage: Usage,
    chosen: Option<Chosen>,
}

/// JSON of a cost.
#[derive(Serialize)]
struct CostJson<'c> {
    puts: u64,
    lists: u64,
    gets: u64,
    deletes: u64,
    bytes_sent: u64,
    bytes_received: u64,
    bytes_kept: i64,
    #[serde(flatten)]
    money: Option<MoneyJson<'c>>,
}

/// Money, in dollars of the United States.
#[derive(Serialize)]
struct MoneyJson<'c> {
    prices: &'c str,
    prices_noted: &'c str,
    usd_once: f64,
    usd_per_month: f64,
}

impl Cost {
    pub(crate) fn new(usage: Usage, chosen: Option<Chosen>) -> Self {
        Self { usage, chosen }
    }

    /// Lines below a report; `what` says how exact they are.
    pub(crate) fn lines_below(&self, what: &str) -> String {
        let Usage { puts, lists, gets, deletes, bytes_sent, bytes_received, .. } = self.usage;
        let (sent, received) = (size(bytes_sent), size(bytes_received));
        let requests = format!("{puts} puts, {lists} lists, {gets} gets, {deletes} deletions");
        let money = self.chosen.as_ref().map_or_else(String::new, |chosen| {
            let Estimate { once, per_month } = chosen.prices.of(&self.usage);
            let sign = if per_month < 0.0 { "less" } else { "more" };
            let (once, month) = (dollars(once), dollars(per_month.abs()));
            let (store, noted) = (&chosen.store, &chosen.noted);
            format!("\nEstimate: {once} once, {month} {sign} a month (prices of {store} as of {noted}: check yours)")
        });
        format!("\nCost {what}: {requests}; sends {sent}, receives {received}{money}")
    }
}

/// `$0.0123`; `below $0.0001` for what is less and not nothing.
fn dollars(money: f64) -> String {
    if money > 0.0 && money < LEAST { format!("below ${LEAST}") } else { format!("${money:.4}") }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Usage { puts, lists, gets, deletes, bytes_sent, bytes_received, bytes_kept, .. } = self.usage;
        let money = self.chosen.as_ref().map(|chosen| {
            let Estimate { once, per_month } = chosen.prices.of(&self.usage);
            MoneyJson { prices: &chosen.store, prices_noted: &chosen.noted, usd_once: once, usd_per_month: per_month }
        });
        CostJson { puts, lists, gets, deletes, bytes_sent, bytes_received, bytes_kept, money }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_engine::usage::Prices;

    fn usage() -> Usage {
        let mut usage = Usage::default();
        (usage.puts, usage.gets, usage.bytes_sent, usage.bytes_kept) = (2000, 3, 2048, -1_000_000_000);
        usage
    }

    #[test]
    fn money_is_told_where_prices_are_known() {
        let expected = "\nCost at most: 2000 puts, 0 lists, 3 gets, 0 deletions; sends 2.000 KiB, receives 0 B";
        assert_eq!(Cost::new(usage(), None).lines_below("at most"), expected);
        let prices = Prices { put_1000: 0.005, kept_gb_month: 0.02, ..Prices::default() };
        let chosen = Chosen { store: "b2".into(), noted: "2026-11".into(), prices };
        let cost = Cost::new(usage(), Some(chosen));
        let estimate = "\nEstimate: $0.0100 once, $0.0200 less a month (prices of b2 as of 2026-11: check yours)";
        assert_eq!(cost.lines_below("at most"), format!("{expected}{estimate}"));
        let json = serde_json::to_value(&cost).expect("plain data");
        assert_eq!((&json["puts"], &json["prices"], &json["usd_once"]), (&2000.into(), &"b2".into(), &0.01.into()));
        assert_eq!(serde_json::to_value(Cost::new(usage(), None)).expect("plain data").get("prices"), None);
    }

    #[test]
    fn little_money_is_not_nothing() {
        assert_eq!([0.0, 0.000_01, 1.5].map(dollars), ["$0.0000", "below $0.0001", "$1.5000"]);
    }
}
