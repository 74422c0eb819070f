//! The alerts. The thresholds are a start: operators who know their locks set their own.

mod store;

use ylock_metrics::catalogue::{ACQUISITIONS, LONGEST_HOLD, LONGEST_WAIT, LOSSES, WAITING};

use super::{
    Alert,
    recording::{ACQUISITION_RATE, WAIT_P99},
};
use crate::{
    dashboards::GROUP,
    query::{GRANTED, WANTED},
};

/// The name of the alert `YlockLockLost`; see [`alerts`].
pub const LOCK_LOST: &str = "YlockLockLost";
/// The name of the alert `YlockAcquisitionsTimeOut`; see [`alerts`].
pub const ACQUISITIONS_TIME_OUT: &str = "YlockAcquisitionsTimeOut";
/// The name of the alert `YlockAcquisitionsFail`; see [`alerts`].
pub const ACQUISITIONS_FAIL: &str = "YlockAcquisitionsFail";
/// The name of the alert `YlockWaitsSlow`; see [`alerts`].
pub const WAITS_SLOW: &str = "YlockWaitsSlow";
/// The name of the alert `YlockHoldTooLong`; see [`alerts`].
pub const HOLD_TOO_LONG: &str = "YlockHoldTooLong";
/// The name of the alert `YlockWaitersStuck`; see [`alerts`].
pub const WAITERS_STUCK: &str = "YlockWaitersStuck";
/// The name of the alert `YlockRenewalsFail`; see [`alerts`].
pub const RENEWALS_FAIL: &str = "YlockRenewalsFail";
/// The name of the alert `YlockRenewalsLate`; see [`alerts`].
pub const RENEWALS_LATE: &str = "YlockRenewalsLate";
/// The name of the alert `YlockStoreRequestsFail`; see [`alerts`].
pub const STORE_REQUESTS_FAIL: &str = "YlockStoreRequestsFail";
/// The name of the alert `YlockReleasesPending`; see [`alerts`].
pub const RELEASES_PENDING: &str = "YlockReleasesPending";
/// The name of the alert `YlockMetricsAbsent`; see [`alerts`].
pub const METRICS_ABSENT: &str = "YlockMetricsAbsent";
/// The name of the alert `YlockTooManyGroups`; see [`alerts`].
pub const TOO_MANY_GROUPS: &str = "YlockTooManyGroups";

/// Returns all alerts.
pub fn alerts() -> Vec<Alert> {
    let mut all = vec![lock_lost(), waiters_stuck(), hold_too_long()];
    all.extend([acquisitions_time_out(), acquisitions_fail(), waits_slow()]);
    all.extend([
        store::renewals_fail(),
        store::renewals_late(),
        store::store_requests_fail(),
        store::releases_pending(),
    ]);
    all.extend([store::metrics_absent(), store::too_many_groups()]);
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
            store does not know the grant any more; look for lost data, a failover or a wrong clock in \
            the store. revoked: an operator or a program called revoke. held_too_long: the holder has had \
            it for longer than max_hold allows; look for work that hangs.",
        dashboard: GROUP,
        why: "The second half sees a counter that was not 0 when it was first scraped: increase does \
            not. A program that closes its client loses its locks knowingly, so the alert leaves \
            `closed` out.",
    }
}

fn waiters_stuck() -> Alert {
    let (by, granted) = ("job, engine, group", GRANTED);
    let (waiting, longest, acquisitions) = (WAITING.name, LONGEST_WAIT.name, ACQUISITIONS.name);
    Alert {
        name: WAITERS_STUCK,
        expression: format!(
            "max by ({by}) ({longest}) > 300\n\
             or\n\
             (\n  \
               sum by ({by}) ({waiting}) > 0\n  \
               unless\n  \
               sum by ({by}) (increase({acquisitions}{{{granted}}}[5m])) > 0\n\
             )"
        ),
        lasting: "1m",
        severity: "critical",
        summary: "a waiter in {{ $labels.group }} on {{ $labels.engine }} is not let in",
        description: "One waiter has waited for 5 minutes, or no waiter was let in for 5 minutes. Either a \
                      holder does not give its lock back, or the store lets no waiter in. Look at the \
                      longest hold of the group; `inspect` names the holder, `revoke` takes the lock away \
                      from it. If no process reports a hold, look at the store's requests.",
        dashboard: GROUP,
        why: "The first half sees one stuck name among others that are not stuck. All processes of a job are \
              taken together: one process may wait for another.",
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
        why: "By instance, because one process is the holder.",
    }
}

/// Returns, by group, the share of the wanted acquisitions that had this outcome.
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
        summary: "more than a tenth of the callers ready to wait in {{ $labels.group }} on {{ \
            $labels.engine }} time out",
        description: "The lock is wanted more than it is free. Look at which processes hold it and for \
            how long: shorten the work under the lock, read instead of write where that is enough, or \
            take finer names. If only a few holds are long, see YlockHoldTooLong.",
        dashboard: GROUP,
        why: "Only callers that were ready to wait count: try_ methods find a lock taken as a matter of \
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
        why: "Refusals by a layer and cancelled calls are decisions of the program and do not count.",
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
        why: "Only callers that got the lock count; YlockAcquisitionsTimeOut counts those that timed out.",
    }
}
