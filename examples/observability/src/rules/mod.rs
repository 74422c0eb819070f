//! Recording rules and alerts, each alert with the case that shows that it fires and that it is over again. They are code for the same
//! reason as the dashboards. [`recording_yaml`], [`alerts_yaml`] and [`tests_yaml`] write the files that Prometheus and `promtool` read.

mod alerts;
mod cases;
mod recording;
mod yaml;

pub use self::{
    alerts::{
        ACQUISITIONS_FAIL, ACQUISITIONS_TIME_OUT, HOLD_TOO_LONG, LOCK_LOST, METRICS_ABSENT, RELEASES_PENDING,
        RENEWALS_FAIL, RENEWALS_LATE, STORE_REQUESTS_FAIL, TOO_MANY_GROUPS, WAITERS_STUCK, WAITS_SLOW,
        alerts,
    },
    cases::{Case, cases},
    recording::recordings,
    yaml::{alerts_yaml, recording_yaml, tests_yaml},
};

/// A series that Prometheus computes and stores.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The name of the series: `labels:metric:operation`.
    pub name: &'static str,
    /// The labels of the series.
    pub labels: &'static str,
    /// The expression that is computed.
    pub expression: String,
}

/// An alert.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Alert {
    /// The name of the alert.
    pub name: &'static str,
    /// The expression under which the alert fires.
    pub expression: String,
    /// The time for which the expression must hold before the alert fires.
    pub lasting: &'static str,
    /// The severity. `critical`: work may be damaged now. `warning`: work will be damaged, or is slow. `info`: something to set right.
    pub severity: &'static str,
    /// The trouble, in one line.
    pub summary: &'static str,
    /// The instructions of what to do about the trouble.
    pub description: &'static str,
    /// The uid of the dashboard that shows more.
    pub dashboard: &'static str,
    /// The reason for the form of the expression: a comment in the file.
    pub why: &'static str,
}
