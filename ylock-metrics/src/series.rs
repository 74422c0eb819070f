//! How many series Prometheus has of the metrics.

use crate::catalogue::{
    ACQUISITION_OUTCOMES, ACQUISITIONS, ALL, Kind, Metric, RENEWAL_OUTCOMES, RENEWALS, REQUEST_OUTCOMES,
    STORE_REQUESTS, VALUES,
};

/// What Prometheus has of a histogram beside its buckets: the bucket without a bound, the sum and the count.
const BESIDE_BUCKETS: usize = 3;

impl Metric {
    /// Returns how many series Prometheus has of this metric for one value each of `engine`, `group`, `operation`, `client` and `address`:
    /// one for each combination of the values of the other labels, and of a histogram one for each bucket and three more.
    pub fn series(&self) -> usize {
        let combinations: usize = self.labels.iter().map(|label| self.values(label)).product();
        combinations
            * match self.kind {
                Kind::Counter | Kind::Gauge => 1,
                Kind::Histogram(buckets) => buckets.len() + BESIDE_BUCKETS,
            }
    }

    /// Returns how many values a label of this metric can have; one if they are not from a closed set.
    fn values(&self, label: &str) -> usize {
        match label {
            "outcome" => self.outcomes().len(),
            _ => VALUES.iter().find(|(known, _)| *known == label).map_or(1, |(_, values)| values.len()),
        }
    }

    /// Returns the values of the label `outcome`; none if this metric does not have it.
    pub fn outcomes(&self) -> &'static [&'static str] {
        let known = [
            (ACQUISITIONS, ACQUISITION_OUTCOMES),
            (RENEWALS, RENEWAL_OUTCOMES),
            (STORE_REQUESTS, REQUEST_OUTCOMES),
        ];
        known.iter().find(|(metric, _)| metric.name == self.name).map_or(&[], |(_, values)| *values)
    }
}

/// Returns how many series Prometheus has of one group on one engine of one process.
pub fn series_of_a_group() -> usize {
    ALL.iter().filter(|metric| metric.labels.contains(&"group")).map(Metric::series).sum()
}
