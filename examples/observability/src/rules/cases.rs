//! For each alert, series under which it fires and under which it is over again. `promtool test rules` runs them.

use super::alerts::*;

/// One case.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Case {
    /// What happens, in a sentence.
    pub name: &'static str,
    /// The alert.
    pub alert: &'static str,
    /// What is scraped, every 30 s, in the notation of `promtool`.
    pub series: &'static [(&'static str, &'static str)],
    /// When it does not fire: before, and when it is over.
    pub quiet: &'static [&'static str],
    /// When it fires.
    pub fires: &'static [&'static str],
    /// With which labels, beside the severity.
    pub labels: &'static [(&'static str, &'static str)],
    /// With which summary.
    pub summary: &'static str,
}

/// All of them.
pub fn cases() -> Vec<Case> {
    [losses(), holding(), acquiring(), renewing(), others()].concat()
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
            name: "also one that was lost before the first scrape",
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
            name: "nobody is let in, by any instance, until the holder lets go",
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
            quiet: &["9m", "19m", "31m"],
            fires: &["21m", "29m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("group", "users")],
            summary: "somebody waits in users on redis, and nobody has been let in for 5 minutes",
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
            name: "a quarter of the acquisitions times out for twenty minutes",
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
            summary: "more than a tenth of those who want a lock of users on redis stop waiting",
        },
        Case {
            name: "a tenth of the acquisitions fails for ten minutes",
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

fn renewing() -> Vec<Case> {
    vec![
        Case {
            name: "a third of the renewals fails",
            alert: RENEWALS_FAIL,
            series: &[
                (
                    r#"ylock_renewals_total{job="ylock",instance="a:1",engine="redis",group="users",outcome="renewed"}"#,
                    "0+20x80",
                ),
                (
                    r#"ylock_renewals_total{job="ylock",instance="a:1",engine="redis",group="users",outcome="failed"}"#,
                    "0x20 10+10x20 210x40",
                ),
            ],
            quiet: &["10m", "11m", "30m"],
            fires: &["15m", "20m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("group", "users")],
            summary: "more than a tenth of the renewals in users on redis fail",
        },
        Case {
            name: "renewals begin seconds too late",
            alert: RENEWALS_LATE,
            series: &[
                (
                    r#"ylock_renewal_lag_seconds_bucket{job="ylock",instance="a:1",engine="redis",le="1"}"#,
                    "0+10x20 200x20 200+10x40",
                ),
                (
                    r#"ylock_renewal_lag_seconds_bucket{job="ylock",instance="a:1",engine="redis",le="2.5"}"#,
                    "0+10x80",
                ),
                (
                    r#"ylock_renewal_lag_seconds_bucket{job="ylock",instance="a:1",engine="redis",le="+Inf"}"#,
                    "0+10x80",
                ),
            ],
            quiet: &["10m", "13m", "27m"],
            fires: &["17m", "20m"],
            labels: &[("job", "ylock"), ("instance", "a:1"), ("engine", "redis")],
            summary: "a:1 renews its locks on redis more than a second late",
        },
        Case {
            name: "a tenth of one operation's requests fails",
            alert: STORE_REQUESTS_FAIL,
            series: &[
                (
                    r#"ylock_store_requests_total{job="ylock",instance="a:1",engine="redis",operation="renew",outcome="ok"}"#,
                    "0+90x80",
                ),
                (
                    r#"ylock_store_requests_total{job="ylock",instance="a:1",engine="redis",operation="renew",outcome="failed"}"#,
                    "0x20 10+10x20 210x40",
                ),
                (
                    r#"ylock_store_requests_total{job="ylock",instance="a:1",engine="redis",operation="release",outcome="ok"}"#,
                    "0+90x80",
                ),
            ],
            quiet: &["10m", "13m", "30m"],
            fires: &["19m", "21m"],
            labels: &[("job", "ylock"), ("engine", "redis"), ("operation", "renew")],
            summary: "more than 5 % of the requests renew to redis fail",
        },
    ]
}

fn others() -> Vec<Case> {
    vec![
        Case {
            name: "nobody reports any more",
            alert: METRICS_ABSENT,
            series: &[(
                r#"ylock_clients{job="ylock",instance="a:1",engine="redis",version="0.1.0"}"#,
                "1x20 _x39 1x20",
            )],
            quiet: &["10m", "18m", "31m"],
            // A series that just ends is believed for another five minutes.
            fires: &["21m", "29m"],
            labels: &[("job", "ylock")],
            summary: "no process of the job ylock reports metrics of its locks",
        },
        Case {
            name: "groups that are not told apart",
            alert: TOO_MANY_GROUPS,
            series: &[(
                r#"ylock_acquisitions_in_other_total{job="ylock",instance="a:1",engine="redis"}"#,
                "0x10 1+1x60 61x60",
            )],
            quiet: &["5m", "15m", "55m"],
            fires: &["25m", "40m"],
            labels: &[("job", "ylock"), ("engine", "redis")],
            summary: "ylock uses more groups on redis than its metrics tell apart",
        },
    ]
}
