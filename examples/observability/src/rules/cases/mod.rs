//! The cases of the alerts: for each alert, series under which it fires and under which it is over again. `promtool test rules` runs
//! them.

mod store;

use super::alerts::*;

/// One case of an alert.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Case {
    /// A sentence that says what happens.
    pub name: &'static str,
    /// The name of the alert.
    pub alert: &'static str,
    /// The series that are scraped every 30 s, in the notation of `promtool`.
    pub series: &'static [(&'static str, &'static str)],
    /// The times at which the alert does not fire: before, and when it is over.
    pub quiet: &'static [&'static str],
    /// The times at which the alert fires.
    pub fires: &'static [&'static str],
    /// The labels of the alert, beside the severity.
    pub labels: &'static [(&'static str, &'static str)],
    /// The summary of the alert.
    pub summary: &'static str,
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    [losses(), holding(), acquiring(), store::renewing(), store::others()].concat()
}

fn losses() -> Vec<Case> {
    let revoked = &[("job", "ylock"), ("engine", "redis"), ("group", "users"), ("reason", "revoked")];
    let summary = "users on redis lost a lock while it was held: revoked";
    vec![
        Case {
            name: "a lost lock is told at once, and for five minutes",
            alert: LOCK_LOST,
            series: &[(
                r#"ylock_losses_total{job="ylock",instance="a:1",engine="redis",group="users",reason="revoked"}"#,
                "0x19 1x40",
            )],
            quiet: &["9m30s", "16m"],
            fires: &["10m", "14m"],
            labels: revoked,
            summary,
        },
        Case {
            name: "a lock that was lost before the first scrape is told too",
            alert: LOCK_LOST,
            series: &[(
                r#"ylock_losses_total{job="ylock",instance="a:1",engine="redis",group="users",reason="revoked"}"#,
                "_x19 2x60",
            )],
            quiet: &["9m", "21m"],
            fires: &["10m", "13m"],
            labels: revoked,
            summary,
        },
        Case {
            name: "a client that closes is not an alert",
            alert: LOCK_LOST,
            series: &[(
                r#"ylock_losses_total{job="ylock",instance="a:1",engine="redis",group="users",reason="closed"}"#,
                "0x9 5x40",
            )],
            quiet: &["5m", "6m", "12m"],
            fires: &[],
            labels: &[],
            summary: "",
        },
    ]
}

fn holding() -> Vec<Case> {
    vec![
        Case {
            name: "no instance lets a waiter in until the holder gives back",
            alert: WAITERS_STUCK,
            series: &[
                (
                    r#"ylock_waiting{job="ylock",instance="a:1",engine="redis",group="users",mode="write"}"#,
                    "3x60 0x20",
                ),
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="b:1",engine="redis",group="users",mode="write",outcome="after_waiting"}"#,
                    "0+1x20 20x39 21+1x40",
                ),
            ],
            quiet: &["9m", "14m", "31m"],
            fires: &["17m", "29m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("group", "users")],
            summary: "a waiter in users on redis is not let in",
        },
        Case {
            name: "one name is stuck while others are not",
            alert: WAITERS_STUCK,
            series: &[
                (
                    r#"ylock_longest_wait_seconds{job="ylock",instance="a:1",engine="redis",group="users"}"#,
                    "0+30x20 0x20",
                ),
                (
                    r#"ylock_waiting{job="ylock",instance="a:1",engine="redis",group="users",mode="write"}"#,
                    "3x40",
                ),
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="b:1",engine="redis",group="users",mode="write",outcome="after_waiting"}"#,
                    "0+9x40",
                ),
            ],
            quiet: &["5m", "11m"],
            fires: &["7m", "10m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("group", "users")],
            summary: "a waiter in users on redis is not let in",
        },
        Case {
            name: "a hold of more than ten minutes",
            alert: HOLD_TOO_LONG,
            series: &[(
                r#"ylock_longest_hold_seconds{job="ylock",instance="a:1",engine="redis",group="users"}"#,
                "0+30x30 0x20",
            )],
            quiet: &["10m", "10m30s", "16m"],
            fires: &["12m", "15m"],
            labels: &[("job", "ylock"), ("instance", "a:1"), ("engine", "redis"), ("group", "users")],
            summary: "a:1 has held a lock of users on redis for more than 10 minutes",
        },
        Case {
            name: "the store does not confirm releases",
            alert: RELEASES_PENDING,
            series: &[(
                r#"ylock_releases_pending{job="ylock",instance="a:1",engine="redis",group="users"}"#,
                "0x9 2x20 0x20",
            )],
            quiet: &["5m", "9m", "16m"],
            fires: &["11m", "15m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("group", "users")],
            summary: "locks of users on redis were given back, but the store has not confirmed it",
        },
    ]
}

fn acquiring() -> Vec<Case> {
    let group: &[_] = &[("job", "ylock"), ("engine", "redis"), ("group", "users")];
    vec![
        Case {
            name: "a quarter of the acquisitions time out for twenty minutes",
            alert: ACQUISITIONS_TIME_OUT,
            series: &[
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="a:1",engine="redis",group="users",mode="write",outcome="after_waiting"}"#,
                    "0+30x120",
                ),
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="a:1",engine="redis",group="users",mode="write",outcome="not_free"}"#,
                    "0+900x120",
                ),
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="a:1",engine="redis",group="users",mode="write",outcome="timed_out"}"#,
                    "0x20 10+10x40 410x60",
                ),
            ],
            quiet: &["10m", "15m", "40m"],
            fires: &["25m", "30m"],
            labels: group,
            summary: "more than a tenth of the callers ready to wait in users on redis time out",
        },
        Case {
            name: "a tenth of the acquisitions fail for ten minutes",
            alert: ACQUISITIONS_FAIL,
            series: &[
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="a:1",engine="redis",group="users",mode="read",outcome="at_once"}"#,
                    "0+90x80",
                ),
                (
                    r#"ylock_acquisitions_total{job="ylock",instance="a:1",engine="redis",group="users",mode="read",outcome="failed"}"#,
                    "0x20 10+10x20 210x40",
                ),
            ],
            quiet: &["10m", "13m", "30m"],
            fires: &["19m", "21m"],
            labels: group,
            summary: "more than 5 % of the acquisitions in users on redis end with an error",
        },
        Case {
            name: "waits of up to ten seconds for twenty minutes",
            alert: WAITS_SLOW,
            series: &[
                (
                    r#"ylock_wait_seconds_bucket{job="ylock",instance="a:1",engine="redis",group="users",mode="write",granted="yes",le="5"}"#,
                    "0+10x20 200x40 200+10x40",
                ),
                (
                    r#"ylock_wait_seconds_bucket{job="ylock",instance="a:1",engine="redis",group="users",mode="write",granted="yes",le="10"}"#,
                    "0+10x100",
                ),
                (
                    r#"ylock_wait_seconds_bucket{job="ylock",instance="a:1",engine="redis",group="users",mode="write",granted="yes",le="+Inf"}"#,
                    "0+10x100",
                ),
            ],
            quiet: &["10m", "18m", "37m"],
            fires: &["22m", "30m"],
            labels: group,
            summary: "one of a hundred acquisitions in users on redis waits for more than 5 seconds",
        },
    ]
}
