//! Every metric: its name, what it counts, its labels. The documentation, the dashboards, the rules and the layer go by this
//! list, and tests compare them with it. A name here is API.

use ylock_core::{ErrorKind, LossReason, Mode};

use crate::outcome::{Acquired, Renewal, Request};

pub use crate::series::series_of_a_group;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "the kinds of the crate `metrics`")]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// The name, as Prometheus sees it.
    pub name: &'static str,
    /// Its kind, with the buckets where it has some.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// The meaning, in one sentence.
    pub help: &'static str,
}

/// Bounds of the buckets for a request or a wait, in seconds. Dense where locks are: a bucket that is too wide lies about quantiles.
pub const SHORT: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Bounds of the buckets for the time for which a user holds a lock, in seconds.
pub const LONG: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0,
];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    buckets: &'static [f64],
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(buckets), labels, help }
}

/// The number of acquisitions that have ended; see [`ALL`].
pub const ACQUISITIONS: Metric = counter(
    "ylock_acquisitions_total",
    &["engine", "group", "mode", "outcome"],
    "Acquisitions that have ended, by outcome; reentries are not among them.",
);
/// The number of acquisitions that ended with an error; see [`ALL`].
pub const ACQUISITION_ERRORS: Metric = counter(
    "ylock_acquisition_errors_total",
    &["engine", "group", "error"],
    "Acquisitions that ended with an error, by its kind.",
);
/// The number of acquisitions by an owner that held the lock already; see [`ALL`].
pub const REENTRIES: Metric = counter(
    "ylock_reentries_total",
    &["engine", "group", "mode"],
    "Acquisitions by an owner that held the lock already.",
);
/// The time until a lock was granted or the caller went without; see [`ALL`].
pub const WAIT: Metric = histogram(
    "ylock_wait_seconds",
    SHORT,
    &["engine", "group", "mode", "granted"],
    "Time from asking for a lock until it was granted (granted=\"yes\") or until the caller went without (granted=\"no\"); reentries are not among them.",
);
/// The time for which an owner held a lock; see [`ALL`].
pub const HOLD: Metric = histogram(
    "ylock_hold_seconds",
    LONG,
    &["engine", "group", "mode"],
    "Time from the first acquisition of an owner until it gave back its last one, or lost the lock.",
);
/// The time until the store confirmed a release; see [`ALL`].
pub const RELEASE: Metric = histogram(
    "ylock_release_seconds",
    SHORT,
    &["engine", "group"],
    "Time from giving a lock back until the store confirmed it; hand-overs inside a process are not among them.",
);
/// The locks that the process holds; see [`ALL`].
pub const HELD: Metric =
    gauge("ylock_held", &["engine", "group", "mode"], "Locks that this process holds, counted by owner.");
/// The acquisitions that wait; see [`ALL`].
pub const WAITING: Metric =
    gauge("ylock_waiting", &["engine", "group", "mode"], "Acquisitions of this process that wait.");
/// The time that the oldest hold has lasted; see [`ALL`].
pub const LONGEST_HOLD: Metric = gauge(
    "ylock_longest_hold_seconds",
    &["engine", "group"],
    "Time that the oldest present hold has lasted; 0 without one.",
);
/// The time that the oldest waiter has waited; see [`ALL`].
pub const LONGEST_WAIT: Metric = gauge(
    "ylock_longest_wait_seconds",
    &["engine", "group"],
    "Time that the oldest present waiter has waited; 0 without one.",
);
/// The releases that are tried again; see [`ALL`].
pub const RELEASES_PENDING: Metric = gauge(
    "ylock_releases_pending",
    &["engine", "group"],
    "Releases that the store has not confirmed at the first attempt and that are tried again.",
);
/// The number of holds that were lost; see [`ALL`].
pub const LOSSES: Metric = counter(
    "ylock_losses_total",
    &["engine", "group", "reason"],
    "Holds that were lost before they were given back, by reason.",
);
/// The number of hand-overs inside the process; see [`ALL`].
pub const HAND_OVERS: Metric = counter(
    "ylock_hand_overs_total",
    &["engine", "group"],
    "Grants that went from one owner of this process to the next without the store.",
);
/// The number of renewals of grants; see [`ALL`].
pub const RENEWALS: Metric =
    counter("ylock_renewals_total", &["engine", "group", "outcome"], "Renewals of grants, by outcome.");
/// The delay of renewals; see [`ALL`].
pub const RENEWAL_LAG: Metric = histogram(
    "ylock_renewal_lag_seconds",
    SHORT,
    &["engine"],
    "How much later than planned a renewal began: a process that has no time for its tasks.",
);
/// The number of requests to the store that have ended; see [`ALL`].
pub const STORE_REQUESTS: Metric = counter(
    "ylock_store_requests_total",
    &["engine", "operation", "outcome"],
    "Requests to the store that have ended, by outcome.",
);
/// The time that a request to the store took; see [`ALL`].
pub const STORE_REQUEST: Metric = histogram(
    "ylock_store_request_seconds",
    SHORT,
    &["engine", "operation"],
    "Time from sending a request to the store until its answer or its failure.",
);
/// The number of acquisitions in groups that are not told apart; see [`ALL`].
pub const OTHER: Metric = counter(
    "ylock_acquisitions_in_other_total",
    &["engine"],
    "Acquisitions counted under group=\"other\" because there are too many groups.",
);
/// The clients of the process that report metrics; see [`ALL`].
pub const CLIENTS: Metric =
    gauge("ylock_clients", &["engine", "version"], "Clients of this process that report metrics.");
/// The names and addresses of the clients; see [`ALL`].
pub const CLIENT_INFO: Metric = gauge(
    "ylock_client_info",
    &["engine", "client", "address", "version"],
    "1 for each client of this process that reports metrics: its name, as `inspect` shows it, and the address of its store; 0 for a name or an address that it has no more.",
);

/// All metrics, in the order of the documentation.
pub const ALL: &[Metric] = &[
    ACQUISITIONS,
    ACQUISITION_ERRORS,
    REENTRIES,
    WAIT,
    HOLD,
    RELEASE,
    HELD,
    WAITING,
    LONGEST_HOLD,
    LONGEST_WAIT,
    RELEASES_PENDING,
    LOSSES,
    HAND_OVERS,
    RENEWALS,
    RENEWAL_LAG,
    STORE_REQUESTS,
    STORE_REQUEST,
    OTHER,
    CLIENTS,
    CLIENT_INFO,
];

/// The words of a closed set, in the order of its values.
macro_rules! words_of {
    ($Set:ty) => {{
        const WORDS: [&str; <$Set>::ALL.len()] = {
            let mut words = [""; <$Set>::ALL.len()];
            let mut place = 0;
            while place < words.len() {
                words[place] = <$Set>::ALL[place].as_str();
                place += 1;
            }
            words
        };
        &WORDS
    }};
}

/// The labels that take their values from a closed set, with the set. `engine`, `group`, `operation` and `version` are not among
/// them: engines, and operations of an engine, are few; groups are bounded by [`MetricsLayer::with_groups`](crate::MetricsLayer). Nor are
/// `client` and `address`, of which a process has one for each client.
pub const VALUES: &[(&str, &[&str])] = &[
    ("mode", words_of!(Mode)),
    ("granted", &["yes", "no"]),
    ("reason", words_of!(LossReason)),
    ("error", words_of!(ErrorKind)),
];

/// Values of `outcome` of [`ACQUISITIONS`].
pub const ACQUISITION_OUTCOMES: &[&str] = words_of!(Acquired);
/// Values of `outcome` of [`RENEWALS`].
pub const RENEWAL_OUTCOMES: &[&str] = words_of!(Renewal);
/// Values of `outcome` of [`STORE_REQUESTS`].
pub const REQUEST_OUTCOMES: &[&str] = words_of!(Request);
