//! Recording rules and alerts, each alert with the case that shows that it fires and that it is over again. Code for the same reason as
//! the dashboards; what `promtool` and Prometheus read is written by [`recording_yaml`], [`alerts_yaml`] and [`tests_yaml`].

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
    /// `labels:metric:operation`.
    pub name: &'static str,
    /// The labels that it has.
    pub labels: &'static str,
    /// What is computed.
    pub expression: String,
}

/// An alert.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Alert {
    /// Its name.
    pub name: &'static str,
    /// When it is true.
    pub expression: String,
    /// For how long it must be so.
    pub lasting: &'static str,
    /// `critical`: work may be damaged now. `warning`: it will be, or is slow. `info`: something to set right.
    pub severity: &'static str,
    /// What is the case.
    pub summary: &'static str,
    /// What to do about it.
    pub description: &'static str,
    /// The uid of the dashboard that shows more.
    pub dashboard: &'static str,
    /// Why it asks as it asks.
    pub why: &'static str,
}
