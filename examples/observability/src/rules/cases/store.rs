//! The cases of the alerts about the stores, the renewals and the metrics themselves.

use super::{super::alerts::*, Case};

pub(super) fn renewing() -> Vec<Case> {
    vec![
        Case {
            name: "a third of the renewals fail",
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
            name: "a tenth of one operation's requests fail",
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
            summary: "more than 5 % of the renew requests to redis fail",
        },
    ]
}

pub(super) fn others() -> Vec<Case> {
    vec![
        Case {
            name: "no process reports any more",
            alert: METRICS_ABSENT,
            series: &[(
                r#"ylock_clients{job="ylock",instance="a:1",engine="redis",version="0.1.0"}"#,
                "1x20 _x39 1x20",
            )],
            quiet: &["10m", "18m", "31m"],
            // Prometheus believes a series that just ends for another five minutes.
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
