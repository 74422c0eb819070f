//! The recording rules: expressions that alerts use again and again.

use ylock_metrics::catalogue::{
    ACQUISITIONS, HOLD, Metric, RENEWAL_LAG, RENEWALS, STORE_REQUEST, STORE_REQUESTS, WAIT,
};

use super::Recording;

pub(super) const ACQUISITION_RATE: &str = "job_engine_group_outcome:ylock_acquisitions:rate5m";
pub(super) const WAIT_P99: &str = "job_engine_group:ylock_wait_seconds:p99_5m";
pub(super) const RENEWAL_RATE: &str = "job_engine_group_outcome:ylock_renewals:rate5m";
pub(super) const LAG_P99: &str = "job_instance_engine:ylock_renewal_lag_seconds:p99_5m";
pub(super) const REQUEST_RATE: &str = "job_engine_operation_outcome:ylock_store_requests:rate5m";
const HOLD_P99: &str = "job_engine_group:ylock_hold_seconds:p99_5m";
const WRITERS: &str = "job_engine_group:ylock_hold_seconds:writers5m";
const REQUEST_P99: &str = "job_engine_operation:ylock_store_request_seconds:p99_5m";

/// Returns all recording rules.
pub fn recordings() -> Vec<Recording> {
    let group = "job, engine, group";
    vec![
        rate(ACQUISITION_RATE, "job, engine, group, outcome", &ACQUISITIONS),
        p99(WAIT_P99, group, &WAIT, "{granted=\"yes\"}"),
        p99(HOLD_P99, group, &HOLD, ""),
        // Seconds held per second: the number of writers on average.
        Recording {
            name: WRITERS,
            labels: group,
            expression: format!("sum by ({group}) (rate({}_sum{{mode=\"write\"}}[5m]))", HOLD.name),
        },
        rate(RENEWAL_RATE, "job, engine, group, outcome", &RENEWALS),
        // By instance, because one process is late.
        p99(LAG_P99, "job, instance, engine", &RENEWAL_LAG, ""),
        rate(REQUEST_RATE, "job, engine, operation, outcome", &STORE_REQUESTS),
        p99(REQUEST_P99, "job, engine, operation", &STORE_REQUEST, ""),
    ]
}

fn rate(name: &'static str, labels: &'static str, of: &Metric) -> Recording {
    Recording { name, labels, expression: format!("sum by ({labels}) (rate({}[5m]))", of.name) }
}

fn p99(name: &'static str, labels: &'static str, of: &Metric, matching: &str) -> Recording {
    let buckets = format!("rate({}_bucket{matching}[5m])", of.name);
    Recording {
        name,
        labels,
        expression: format!("histogram_quantile(0.99, sum by ({labels}, le) ({buckets}))"),
    }
}
