//! Prices of stores, and the money that a usage costs by them: an estimate, as prices depend on region and volume.

use super::Usage;
use serde::Deserialize;

/// Bytes that prices call a gigabyte. Some stores mean 2^30, which is cheaper.
const GIGABYTE: f64 = 1e9;
const THOUSAND: f64 = 1e3;

/// Prices of a store, in dollars of the United States; what is not named is free.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// A thousand requests that write.
    pub put_1000: f64,
    /// A thousand requests that list.
    pub list_1000: f64,
    /// A thousand requests that read.
    pub get_1000: f64,
    /// A thousand deletions.
    pub delete_1000: f64,
    /// A gigabyte sent to the store.
    pub sent_gb: f64,
    /// A gigabyte received from it, over the internet, retrieval included.
    pub received_gb: f64,
    /// A gigabyte kept for a month.
    pub kept_gb_month: f64,
}

/// Money, in dollars of the United States.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimate {
    /// Cost of requests and transfer, paid once.
    pub once: f64,
    /// Difference in cost for a month of what is kept; negative if less is kept.
    pub per_month: f64,
}

impl Prices {
    /// Returns the money that a usage costs.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn of(&self, usage: &Usage) -> Estimate {
        let requests = [
            (usage.puts, self.put_1000),
            (usage.lists, self.list_1000),
            (usage.gets, self.get_1000),
            (usage.deletes, self.delete_1000),
        ];
        let bytes = [(usage.bytes_sent, self.sent_gb), (usage.bytes_received, self.received_gb)];
        let money = |parts: &[(u64, f64)], unit: f64| {
            parts.iter().map(|(amount, price)| *amount as f64 / unit * price).sum::<f64>()
        };
        Estimate {
            once: money(&requests, THOUSAND) + money(&bytes, GIGABYTE),
            per_month: usage.bytes_kept as f64 / GIGABYTE * self.kept_gb_month,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_price_counts_for_its_own_amount() {
        let usage = Usage {
            puts: 1000,
            lists: 2000,
            gets: 3000,
            deletes: 4000,
            bytes_sent: 5_000_000_000,
            bytes_received: 6_000_000_000,
            bytes_kept: -7_000_000_000,
        };
        let each = [
            (Prices { put_1000: 1.0, ..Prices::default() }, 1.0, 0.0),
            (Prices { list_1000: 1.0, ..Prices::default() }, 2.0, 0.0),
            (Prices { get_1000: 1.0, ..Prices::default() }, 3.0, 0.0),
            (Prices { delete_1000: 1.0, ..Prices::default() }, 4.0, 0.0),
            (Prices { sent_gb: 1.0, ..Prices::default() }, 5.0, 0.0),
            (Prices { received_gb: 1.0, ..Prices::default() }, 6.0, 0.0),
            (Prices { kept_gb_month: 1.0, ..Prices::default() }, 0.0, -7.0),
        ];
        for (prices, once, per_month) in each {
            assert_eq!(prices.of(&usage), Estimate { once, per_month }, "{prices:?}");
        }
    }
}
