//! A layer with a recorder of its own, and what a scrape of it would show.

use std::sync::Arc;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use ylock_metrics::{MetricsLayer, prometheus};

/// A layer with a recorder of its own; see the [module](self).
pub(crate) struct Scraped {
    pub(crate) layer: MetricsLayer,
    handle: PrometheusHandle,
}

impl Scraped {
    pub(crate) fn new() -> Self {
        Self::over(PrometheusBuilder::new())
    }

    pub(crate) fn over(builder: PrometheusBuilder) -> Self {
        let recorder = prometheus::buckets(builder).build_recorder();
        let handle = recorder.handle();
        Self { layer: MetricsLayer::to(Arc::new(recorder)), handle }
    }

    pub(crate) fn text(&self) -> String {
        self.layer.sample();
        self.handle.render()
    }

    /// The sum of all series of this name that have all these labels, or nothing if there is none.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let text = self.text();
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .reduce(|sum, value| sum + value)
    }

    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).unwrap_or_else(|| panic!("no {name} {labels:?} in\n{}", self.text()))
    }
}
