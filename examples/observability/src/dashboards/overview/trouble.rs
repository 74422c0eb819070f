//! Panels about losses, errors and alerts, and about the clients that report.

use ylock_metrics::catalogue::{ACQUISITION_ERRORS, ACQUISITIONS, CLIENT_INFO, LOSSES, OTHER};

use super::super::panel::{
    Draw::{Lines, Table},
    Panel,
};
use crate::{
    query::{chosen, in_range, not_zero, rate, sum},
    rules,
};

pub(super) fn trouble() -> Vec<Panel> {
    let (lost, by) = (chosen(&LOSSES, ""), "job, instance, engine, group, reason");
    vec![
        Panel::new(
            Lines,
            12,
            "none",
            "Losses by group",
            "Locks lost, by group and reason. lapsed: the holder was too slow or paused. gone: the store \
             lost the grant. revoked: an operator or a program called revoke. held_too_long: the holder has \
             had it for longer than max_hold allows. closed: the program closed its client.",
        )
        .ask_of_trouble(
            "{{engine}} {{group}} {{reason}}",
            not_zero(&sum("engine, group, reason", &format!("increase({lost}[$__rate_interval])"))),
        )
        .alert(rules::LOCK_LOST)
        .drill_down(),
        Panel::new(
            Table,
            12,
            "none",
            "Who lost locks",
            "Instances that lost locks in the time range shown. If it is one instance, look at its machine \
             and its pauses. If there are many, look at the store. Empty is good.",
        )
        .ask_of_trouble("", not_zero(&in_range(by, &lost)))
        .alert(rules::LOCK_LOST)
        .drill_down(),
        Panel::new(
            Lines,
            12,
            "ops",
            "Without the lock",
            "Acquisitions per second that timed out or failed. Time-outs: the lock is wanted more than \
             it is free. Failures: see the kinds of errors.",
        )
        .ask_of_trouble(
            "{{engine}} {{group}} {{outcome}}",
            not_zero(&sum(
                "engine, group, outcome",
                &rate(&chosen(&ACQUISITIONS, "outcome=~\"timed_out|failed\"")),
            )),
        )
        .alert(rules::ACQUISITIONS_TIME_OUT)
        .alert(rules::ACQUISITIONS_FAIL)
        .drill_down(),
        Panel::new(
            Lines,
            12,
            "ops",
            "Errors by kind",
            "unavailable and indeterminate: the store does not answer. would_deadlock, invalid, \
             unsupported, config: a mistake in the program. refused: a layer refused the acquisition.",
        )
        .ask_of_trouble(
            "{{engine}} {{error}}",
            not_zero(&sum("engine, error", &rate(&chosen(&ACQUISITION_ERRORS, "")))),
        )
        .alert(rules::ACQUISITIONS_FAIL),
    ]
}

pub(super) fn reporting() -> Vec<Panel> {
    vec![
        Panel::new(
            Table,
            8,
            "none",
            "Alerts",
            "Alerts of ylock that fire, or will fire if the trouble goes on. Empty is good.",
        )
        .ask_of_trouble(
            "",
            sum("alertname, alertstate, engine, group, severity", "ALERTS{alertname=~\"Ylock.+\"}"),
        ),
        Panel::new(
            Table,
            8,
            "none",
            "Clients",
            "Clients that report, by the names that `inspect` shows for holders and waiters. If a process is \
             missing, its metrics are missing too. More than one version for long means a deployment that \
             did not end.",
        )
        .ask("", sum("job, instance, engine, client, address, version", &chosen(&CLIENT_INFO, "")))
        .alert(rules::METRICS_ABSENT),
        Panel::new(
            Lines,
            8,
            "ops",
            "In too many groups",
            "Acquisitions that are counted under group=\"other\". Should be 0; otherwise the program \
             may put names into groups.",
        )
        .ask("{{engine}}", sum("engine", &rate(&chosen(&OTHER, ""))))
        .alert(rules::TOO_MANY_GROUPS),
    ]
}
