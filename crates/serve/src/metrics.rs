//! Counters of a server, in the text form of Prometheus.

use hyper::{Method, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The form of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Vec<(String, String)>, Counter>,
    seconds: Counter<f64, AtomicU64>,
    received: Counter,
    sent: Counter,
    pub(crate) created: Counter,
    pub(crate) deleted: Counter,
    pub(crate) connections: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("silt"),
            requests: Family::default(),
            seconds: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            created: Counter::default(),
            deleted: Counter::default(),
            connections: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Requests by method and status", metrics.requests.clone());
        registry.register("request_seconds", "Seconds spent on requests", metrics.seconds.clone());
        registry.register("received_bytes", "Bytes of bodies received", metrics.received.clone());
        registry.register("sent_bytes", "Bytes of bodies sent", metrics.sent.clone());
        registry.register("objects_created", "Objects created", metrics.created.clone());
        registry.register("objects_deleted", "Objects that were asked to be deleted", metrics.deleted.clone());
        registry.register("connections", "Connections that are open", metrics.connections.clone());
        metrics
    }

    /// Counts a request.
    pub(crate) fn count(&self, method: &Method, status: StatusCode, received: u64, sent: u64, took: Duration) {
        let labels =
            vec![("method".to_owned(), known(method).to_owned()), ("status".to_owned(), status.as_str().to_owned())];
        self.requests.get_or_create(&labels).inc();
        self.seconds.inc_by(took.as_secs_f64());
        self.received.inc_by(received);
        self.sent.inc_by(sent);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to memory does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// A method's name, or one for all that are not served: strangers must not make counters.
fn known(method: &Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "HEAD" | "PUT" | "POST" | "DELETE") => known,
        _ => "other",
    }
}
