//! The alerts. Thresholds are a start: who knows his locks sets his own.

use ylock_metrics::catalogue::{
    ACQUISITIONS, CLIENTS, LONGEST_HOLD, LOSSES, OTHER, RELEASES_PENDING as PENDING, WAITING,
};

use super::{
    Alert,
    recording::{ACQUISITION_RATE, LAG_P99, RENEWAL_RATE, REQUEST_RATE, WAIT_P99},
};
use crate::{
    dashboards::{ENGINE, GROUP, OVERVIEW},
    query::{GRANTED, WANTED},
};

/// See [`alerts`].
pub const LOCK_LOST: &str = "YlockLockLost";
/// See [`alerts`].
pub const ACQUISITIONS_TIME_OUT: &str = "YlockAcquisitionsTimeOut";
/// See [`alerts`].
pub const ACQUISITIONS_FAIL: &str = "YlockAcquisitionsFail";
/// See [`alerts`].
pub const WAITS_SLOW: &str = "YlockWaitsSlow";
/// See [`alerts`].
pub const HOLD_TOO_LONG: &str = "YlockHoldTooLong";
/// See [`alerts`].
pub const WAITERS_STUCK: &str = "YlockWaitersStuck";
/// See [`alerts`].
pub const RENEWALS_FAIL: &str = "YlockRenewalsFail";
/// See [`alerts`].
pub const RENEWALS_LATE: &str = "YlockRenewalsLate";
/// See [`alerts`].
pub const STORE_REQUESTS_FAIL: &str = "YlockStoreRequestsFail";
/// See [`alerts`].
pub const RELEASES_PENDING: &str = "YlockReleasesPending";
/// See [`alerts`].
pub const METRICS_ABSENT: &str = "YlockMetricsAbsent";
/// See [`alerts`].
pub const TOO_MANY_GROUPS: &str = "YlockTooManyGroups";

/// All of them.
pub fn alerts() -> Vec<Alert> {
    let mut all = vec![lock_lost(), waiters_stuck(), hold_too_long()];
    all.extend([acquisitions_time_out(), acquisitions_fail(), waits_slow()]);
    all.extend([renewals_fail(), renewals_late(), store_requests_fail(), releases_pending()]);
    all.extend([metrics_absent(), too_many_groups()]);
    all
}

fn lock_lost() -> Alert {
    let (by, losses) = ("job, engine, group, reason", LOSSES.name);
    let lost = "reason!=\"closed\"";
    Alert {
        name: LOCK_LOST,
        expression: format!(
            "sum by ({by}) (increase({losses}{{{lost}}}[5m])) > 0\n\
             or\n\
             sum by ({by}) ({losses}{{{lost}}} unless {losses} offset 5m) > 0"
        ),
        lasting: "0s",
        severity: "critical",
        summary: "{{ $labels.group }} on {{ $labels.engine }} lost a lock while it was held: {{ \
            $labels.reason }}",
        description: "Two processes may have worked under the same lock, unless the resource checks \
            fencing tokens: check the data of this group. lapsed: the holder could not renew in time; \
            look at its pauses, its load and at YlockRenewalsFail and YlockRenewalsLate. gone: the \
            store does not know the grant any more; look for lost data, a failover or a wrong clock \
            there. revoked: somebody called revoke.",
        dashboard: GROUP,
        why: "The second half sees a counter that was not 0 when it was first scraped: increase does \
            not. A program that closes its client loses its locks knowingly, so `closed` is not among \
            them.",
    }
}

fn waiters_stuck() -> Alert {
    let (by, granted) = ("job, engine, group", GRANTED);
    Alert {
        name: WAITERS_STUCK,
        expression: format!(
            "sum by ({by}) ({}) > 0\n\
             unless\n\
             sum by ({by}) (increase({}{{{granted}}}[5m])) > 0",
            WAITING.name, ACQUISITIONS.name
        ),
        lasting: "5m",
        severity: "critical",
        summary: "somebody waits in {{ $labels.group }} on {{ $labels.engine }}, and nobody has been \
            let in for 5 minutes",
        description: "Either somebody holds a lock and does not give it back, or the store does not let \
            anybody in. Look at the longest hold of the group; `inspect` names the holder, `revoke` \
            takes the lock away from it. Without a holder look at the store's requests.",
        dashboard: GROUP,
        why: "All processes of a job are taken together: one may wait for another one.",
    }
}

fn hold_too_long() -> Alert {
    Alert {
        name: HOLD_TOO_LONG,
        expression: format!("max by (job, instance, engine, group) ({}) > 600", LONGEST_HOLD.name),
        lasting: "1m",
        severity: "warning",
        summary: "{{ $labels.instance }} has held a lock of {{ $labels.group }} on {{ $labels.engine }} \
            for more than 10 minutes",
        description: "Work under a lock hangs, or a guard was kept by mistake. Look at what this \
            process does; if others wait, `revoke` takes the lock away. If holds of this group may be \
            as long, raise the threshold.",
        dashboard: GROUP,
        why: "By instance, because it is one process that holds.",
    }
}

/// Which part of what was wanted in each group.
fn part_of_wanted(outcome: &str) -> String {
    let by = "job, engine, group";
    format!(
        "sum by ({by}) ({ACQUISITION_RATE}{{outcome=\"{outcome}\"}})\n\
         /\n\
         sum by ({by}) ({ACQUISITION_RATE}{{{WANTED}}})\n\
         "
    )
}

fn acquisitions_time_out() -> Alert {
    Alert {
        name: ACQUISITIONS_TIME_OUT,
        expression: format!("{}> 0.1", part_of_wanted("timed_out")),
        lasting: "10m",
        severity: "warning",
        summary: "more than a tenth of those who want a lock of {{ $labels.group }} on {{ \
            $labels.engine }} stop waiting",
        description: "The lock is wanted more than it is free. Look at who holds it and for how long: \
            shorten the work under the lock, read instead of write where that is enough, or take finer \
            names. If only a few hold it long, see YlockHoldTooLong.",
        dashboard: GROUP,
        why: "Only those count that were ready to wait: try_ methods find a lock taken as a matter of \
            course.",
    }
}

fn acquisitions_fail() -> Alert {
    Alert {
        name: ACQUISITIONS_FAIL,
        expression: format!("{}> 0.05", part_of_wanted("failed")),
        lasting: "5m",
        severity: "warning",
        summary: "more than 5 % of the acquisitions in {{ $labels.group }} on {{ $labels.engine }} end \
            with an error",
        description: "Look at the kinds of errors of the group. unavailable and indeterminate: the \
            store; see YlockStoreRequestsFail. would_deadlock, invalid, unsupported and config: a \
            mistake in the program.",
        dashboard: GROUP,
        why: "Refusals by a layer and cancelled calls are decisions of the program and not among them.",
    }
}

fn waits_slow() -> Alert {
    Alert {
        name: WAITS_SLOW,
        expression: format!("{WAIT_P99} > 5"),
        lasting: "10m",
        severity: "warning",
        summary: "one of a hundred acquisitions in {{ $labels.group }} on {{ $labels.engine }} waits \
            for more than 5 seconds",
        description: "If holds are long, the lock is the bottleneck: shorten the work under it or take \
            finer names. If holds are short, look at the latency of the store and at the hand-overs. If \
            such waits are all right for this group, raise the threshold.",
        dashboard: GROUP,
        why: "Of those who got the lock; those who stopped waiting are in YlockAcquisitionsTimeOut.",
    }
}

fn renewals_fail() -> Alert {
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
            does it answer, and in time? If only some instances are concerned, look at their network.",
        dashboard: ENGINE,
        why: "There are three renewals per lease, so that one that fails does no harm. What a renewal finds lost is told by \
              YlockLockLost.",
    }
}

fn renewals_late() -> Alert {
    Alert {
        name: RENEWALS_LATE,
        expression: format!("{LAG_P99} > 1"),
        lasting: "5m",
        severity: "warning",
        summary: "{{ $labels.instance }} renews its locks on {{ $labels.engine }} more than a second \
            late",
        description: "The process has no time for its tasks, and will lose locks when it is later by \
            two thirds of a lease. Look for blocking calls in async tasks, too few threads or CPU \
            shares, swapping, and pauses of the machine.",
        dashboard: ENGINE,
        why: "A second is a fifth of what the default lease allows.",
    }
}

fn store_requests_fail() -> Alert {
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
        summary: "more than 5 % of the requests {{ $labels.operation }} to {{ $labels.engine }} fail",
        description: "The store does not answer, or not in time. Look at its servers and at the network \
            between; held locks are kept as long as one of three renewals succeeds.",
        dashboard: ENGINE,
        why: "By operation: a store may be able to read and not to write.",
    }
}

fn releases_pending() -> Alert {
    Alert {
        name: RELEASES_PENDING,
        expression: format!("sum by (job, engine, group) ({}) > 0", PENDING.name),
        lasting: "5m",
        severity: "warning",
        summary: "locks of {{ $labels.group }} on {{ $labels.engine }} were given back, but the store \
            has not confirmed it",
        description: "Until it does, or their lease ends, nobody else gets in. Look at the store's \
            requests.",
        dashboard: ENGINE,
        why: "The client tries for one lease; what lasts longer means that it happens again and again.",
    }
}

fn metrics_absent() -> Alert {
    Alert {
        name: METRICS_ABSENT,
        expression: format!("absent({}{{job=\"ylock\"}})", CLIENTS.name),
        lasting: "5m",
        severity: "warning",
        summary: "no process of the job {{ $labels.job }} reports metrics of its locks",
        description: "All other alerts are blind. Is the program running, has it a MetricsLayer and the \
            endpoint of Prometheus, and does the target answer? Look at the page Targets of Prometheus. \
            Put your own job's name into this alert.",
        dashboard: OVERVIEW,
        why: "Counters that nobody reports do not grow: without this, silence would look like health.",
    }
}

fn too_many_groups() -> Alert {
    Alert {
        name: TOO_MANY_GROUPS,
        expression: format!("sum by (job, engine) (increase({}[15m])) > 0", OTHER.name),
        lasting: "15m",
        severity: "info",
        summary: "{{ $labels.job }} uses more groups on {{ $labels.engine }} than its metrics tell apart",
        description: "Those beyond the bound are counted together as group=\"other\". A group is a kind \
            of thing, like `users`, and its things are names: look whether the program puts names into \
            groups. Otherwise raise the bound with `MetricsLayer::with_groups`.",
        dashboard: OVERVIEW,
        why: "Nothing is wrong with the locks.",
    }
}
