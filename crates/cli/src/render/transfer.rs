//! Bytes that went over the network, as text and JSON.

use super::size;
use serde::Serialize;
use siltstone_remote::Traffic;

/// Bytes sent and received; none where all lies on this machine, and then neither text nor JSON says anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Transfer {
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_received: Option<u64>,
}

impl Transfer {
    /// A reading of the traffic of a command.
    pub(crate) fn of(traffic: &Traffic) -> Self {
        Self::new(traffic.bytes_sent(), traffic.bytes_received())
    }

    /// Both numbers, or neither where both are 0.
    pub(crate) fn new(sent: u64, received: u64) -> Self {
        let is_any = sent > 0 || received > 0;
        Self { bytes_sent: is_any.then_some(sent), bytes_received: is_any.then_some(received) }
    }

    /// `sent 12.000 MiB, received 838 B`; `None` where nothing was.
    pub(crate) fn text(self) -> Option<String> {
        let (sent, received) = self.bytes_sent.zip(self.bytes_received)?;
        Some(format!("sent {}, received {}", size(sent), size(received)))
    }

    /// A line that goes below a report; empty where nothing was sent or received.
    pub(crate) fn line_below(self) -> String {
        self.text().map_or_else(String::new, |text| format!("\nNetwork: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, to_value};

    #[test]
    fn nothing_is_said_of_a_folder() {
        let none = Transfer::new(0, 0);
        assert_eq!((none.text(), none.line_below().as_str(), to_value(none).ok()), (None, "", Some(json!({}))));
        let some = Transfer::new(2048, 0);
        assert_eq!(some.text().as_deref(), Some("sent 2.000 KiB, received 0 B"));
        assert_eq!(some.line_below(), "\nNetwork: sent 2.000 KiB, received 0 B");
        assert_eq!(to_value(some).ok(), Some(json!({"bytes_sent": 2048, "bytes_received": 0})));
    }
}
