//! The alerts about the stores, the renewals and the metrics themselves.

use ylock_metrics::catalogue::{CLIENTS, OTHER, RELEASES_PENDING as PENDING};

use super::{
    super::{
        Alert,
        recording::{LAG_P99, RENEWAL_RATE, REQUEST_RATE},
    },
    METRICS_ABSENT, RELEASES_PENDING, RENEWALS_FAIL, RENEWALS_LATE, STORE_REQUESTS_FAIL, TOO_MANY_GROUPS,
};
use crate::dashboards::{ENGINE, OVERVIEW};

pub(super) fn renewals_fail() -> Alert {
    let by = "job, engine, group";
    Alert {
        name: RENEWALS_FAIL,
        expression: format!(
            "sum by ({by}) ({RENEWAL_RATE}{{outcome=\"failed\"}})\n\
             /\n\
             sum by ({by}) ({RENEWAL_RATE})\n\
             > 0.1"
        ),
        lasting: "2m",
        severity: "warning",
        summary: "more than a tenth of the renewals in {{ $labels.group }} on {{ $labels.engine }} fail",
        description: "A grant that is not renewed for a lease is lost. Look at the store's requests: \
            does it answer, and in time? If only some instances are affected, look at their network.",
        dashboard: ENGINE,
        why: "There are three renewals per lease, so that one failed renewal does no harm. YlockLockLost \
              tells of a lock that a renewal finds lost.",
    }
}

pub(super) fn renewals_late() -> Alert {
    Alert {
        name: RENEWALS_LATE,
        expression: format!("{LAG_P99} > 1"),
        lasting: "5m",
        severity: "warning",
        summary: "{{ $labels.instance }} renews its locks on {{ $labels.engine }} more than a second \
            late",
        description: "The process does not run its tasks in time, and will lose locks when it is late by \
            two thirds of a lease. Look for blocking calls in async tasks, too few threads or CPU \
            shares, swapping, and pauses of the machine.",
        dashboard: ENGINE,
        why: "A second is a fifth of what the default lease allows.",
    }
}

pub(super) fn store_requests_fail() -> Alert {
    let by = "job, engine, operation";
    Alert {
        name: STORE_REQUESTS_FAIL,
        expression: format!(
            "sum by ({by}) ({REQUEST_RATE}{{outcome=\"failed\"}})\n\
             /\n\
             sum by ({by}) ({REQUEST_RATE})\n\
             > 0.05"
        ),
        lasting: "5m",
        severity: "warning",
        summary: "more than 5 % of the {{ $labels.operation }} requests to {{ $labels.engine }} fail",
        description: "The store does not answer, or not in time. Look at its servers and at the network \
            between; held locks are kept as long as one of three renewals succeeds.",
        dashboard: ENGINE,
        why: "By operation: a store may be able to read and not to write.",
    }
}

pub(super) fn releases_pending() -> Alert {
    Alert {
        name: RELEASES_PENDING,
        expression: format!("sum by (job, engine, group) ({}) > 0", PENDING.name),
        lasting: "5m",
        severity: "warning",
        summary: "locks of {{ $labels.group }} on {{ $labels.engine }} were given back, but the store \
            has not confirmed it",
        description: "Until the store confirms the release, or the lease ends, no waiter gets the lock. \
            Look at the store's requests.",
        dashboard: ENGINE,
        why: "The client tries for one lease; a longer time means that it happens again and again.",
    }
}

pub(super) fn metrics_absent() -> Alert {
    Alert {
        name: METRICS_ABSENT,
        expression: format!("absent({}{{job=\"ylock\"}})", CLIENTS.name),
        lasting: "5m",
        severity: "warning",
        summary: "no process of the job {{ $labels.job }} reports metrics of its locks",
        description: "All other alerts are blind. Is the program running, does it have a MetricsLayer and \
            the endpoint for Prometheus, and does the target answer? Look at the page Targets of \
            Prometheus. Put your own job's name into this alert.",
        dashboard: OVERVIEW,
        why: "Counters that no process reports do not grow: without this, silence would look like health.",
    }
}

pub(super) fn too_many_groups() -> Alert {
    Alert {
        name: TOO_MANY_GROUPS,
        expression: format!("sum by (job, engine) (increase({}[15m])) > 0", OTHER.name),
        lasting: "15m",
        severity: "info",
        summary: "{{ $labels.job }} uses more groups on {{ $labels.engine }} than its metrics tell apart",
        description: "Groups beyond the bound are counted together as group=\"other\". A group is a kind \
            of thing, like `users`, and each thing is a name in it: check whether the program uses names \
            as groups. Otherwise raise the bound with `MetricsLayer::with_groups`.",
        dashboard: OVERVIEW,
        why: "Nothing is wrong with the locks.",
    }
}
