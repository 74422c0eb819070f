//! The dashboard of the stores: requests, renewals, releases and hand-overs.

use ylock_metrics::catalogue::{
    ACQUISITIONS, CLIENTS, HAND_OVERS, LOSSES, RELEASE, RELEASES_PENDING, RENEWAL_LAG, RENEWALS,
    STORE_REQUEST, STORE_REQUESTS,
};

use super::{
    Dashboard,
    panel::{
        Draw::{Heatmap, Lines, Stack, Stat},
        Panel,
    },
};
use crate::{
    query::{GRANTED, chosen, max, part, quantile, rate, share, sum, top},
    rules,
};

const FAILED: &str = "outcome=\"failed\"";

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: super::ENGINE,
        title: "ylock: engine",
        description: "The stores behind the locks: latency, errors, renewals, releases, hand-overs.",
        rows: vec![
            ("At a glance", glance()),
            ("Store", store()),
            ("Renewals", renewals()),
            ("Giving back and handing over", giving_back()),
        ],
    }
}

fn glance() -> Vec<Panel> {
    vec![
        Panel::new(Stat, 4, "reqps", "Requests", "Requests to the store that end, per second.")
            .ask("", sum("", &rate(&chosen(&STORE_REQUESTS, "")))),
        Panel::new(
            Stat,
            4,
            "percentunit",
            "Requests that fail",
            "Should be 0. Otherwise see below which operation fails, and then look at the store's \
             servers and the network.",
        )
        .ask("", share("", &chosen(&STORE_REQUESTS, FAILED), &chosen(&STORE_REQUESTS, "")))
        .alert(rules::STORE_REQUESTS_FAIL)
        .from(0.01, "orange")
        .from(0.05, "red"),
        Panel::new(
            Stat,
            4,
            "percentunit",
            "Renewals that fail",
            "Should be 0. A grant that is not renewed for a lease is lost.",
        )
        .ask("", share("", &chosen(&RENEWALS, FAILED), &chosen(&RENEWALS, "")))
        .alert(rules::RENEWALS_FAIL)
        .from(0.01, "orange")
        .from(0.1, "red"),
        Panel::new(
            Stat,
            4,
            "s",
            "Renewal lag, 99 %",
            "How much later than planned renewals begin. Should be milliseconds; otherwise a process \
             does not run its tasks in time.",
        )
        .ask("", quantile(0.99, &RENEWAL_LAG, "", ""))
        .alert(rules::RENEWALS_LATE)
        .from(0.25, "orange")
        .from(1.0, "red"),
        Panel::new(
            Stat,
            4,
            "none",
            "Releases pending",
            "Releases that the store did not confirm at the first attempt. Should be 0; until the store \
             confirms a release, no waiter gets the lock.",
        )
        .ask("", sum("", &chosen(&RELEASES_PENDING, "")))
        .alert(rules::RELEASES_PENDING)
        .from(1.0, "orange"),
        Panel::new(
            Stat,
            4,
            "none",
            "Clients",
            "Clients that report. If a client is missing, its metrics are missing too.",
        )
        .ask("", sum("", &chosen(&CLIENTS, "")))
        .alert(rules::METRICS_ABSENT),
    ]
}

fn store() -> Vec<Panel> {
    let by = "engine, operation";
    let named = "{{engine}} {{operation}}";
    vec![
        Panel::new(
            Lines,
            12,
            "reqps",
            "Requests by operation",
            "Requests to the store. If they grow faster than the acquisitions, look at how many \
             requests one acquisition costs.",
        )
        .ask(named, sum(by, &rate(&chosen(&STORE_REQUESTS, "")))),
        Panel::new(
            Lines,
            12,
            "reqps",
            "Failed requests by operation",
            "Should be 0. If writes fail while reads work, look for missing rights, a full disk, or too \
             few replicas.",
        )
        .ask(named, sum(by, &rate(&chosen(&STORE_REQUESTS, FAILED))))
        .alert(rules::STORE_REQUESTS_FAIL),
        Panel::new(
            Lines,
            8,
            "s",
            "Latency by operation, half",
            "Half of the requests took no longer than this. A free lock costs at least this time; if it \
             rises, look at the store's load and the network.",
        )
        .ask(named, quantile(0.5, &STORE_REQUEST, by, "")),
        Panel::new(
            Lines,
            8,
            "s",
            "Latency by operation, 99 %",
            "If this rises and the half does not, look for pauses: garbage collection, disks, \
             failovers. Above a third of the lease, renewals are in danger.",
        )
        .ask(named, quantile(0.99, &STORE_REQUEST, by, ""))
        .alert(rules::RENEWALS_FAIL),
        Panel::new(
            Heatmap,
            8,
            "s",
            "Latency, all requests",
            "Every request, by how long it took. A second band far up means one slow server, or time-outs.",
        )
        .ask("{{le}}", sum("le", &rate(&part(&STORE_REQUEST, "_bucket", "")))),
        Panel::new(
            Lines,
            12,
            "none",
            "Requests per granted lock",
            "Requests that one granted acquisition costs, with its renewals and its waiting. If the \
             number grows, there are many waiters in many processes, or holds are long.",
        )
        .ask(
            "{{engine}}",
            format!(
                "{} / ({} > 0)",
                sum("engine", &rate(&chosen(&STORE_REQUESTS, ""))),
                sum("engine", &rate(&chosen(&ACQUISITIONS, GRANTED)))
            ),
        ),
        Panel::new(Lines, 12, "ops", "Granted locks", "Granted acquisitions by engine, for comparison.")
            .ask("{{engine}}", sum("engine", &rate(&chosen(&ACQUISITIONS, GRANTED)))),
    ]
}

fn renewals() -> Vec<Panel> {
    vec![
        Panel::new(
            Stack,
            8,
            "ops",
            "Renewals by outcome",
            "failed: the client tries again after a twelfth of the lease, at most a second. lost: the \
             store does not know the grant any more. Both should be 0.",
        )
        .ask("{{engine}} {{outcome}}", sum("engine, outcome", &rate(&chosen(&RENEWALS, ""))))
        .alert(rules::RENEWALS_FAIL),
        Panel::new(
            Lines,
            8,
            "s",
            "Renewal lag by instance, 99 %",
            "How much later than planned renewals begin. If one instance is late, it blocks its tasks, or \
             its machine is overloaded. If all are late, look at what was deployed last.",
        )
        .ask("{{instance}} {{engine}}", quantile(0.99, &RENEWAL_LAG, "instance, engine", ""))
        .alert(rules::RENEWALS_LATE),
        Panel::new(
            Lines,
            8,
            "none",
            "Losses by reason",
            "lapsed together with lag: look at the process. lapsed together with failed renewals: look at \
             the store. gone: the store lost data.",
        )
        .ask(
            "{{engine}} {{reason}}",
            sum("engine, reason", &format!("increase({}[$__rate_interval])", chosen(&LOSSES, ""))),
        )
        .alert(rules::LOCK_LOST),
    ]
}

fn giving_back() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "s",
            "Release by engine",
            "Time from a release until the store confirmed it. The next waiter waits for as long.",
        )
        .ask("{{engine}} 50 %", quantile(0.5, &RELEASE, "engine", ""))
        .ask("{{engine}} 99 %", quantile(0.99, &RELEASE, "engine", "")),
        Panel::new(
            Lines,
            8,
            "none",
            "Releases pending by group",
            "Should be 0. If a group stays above 0, the store does not confirm its releases, and its \
             locks stay taken until their leases end.",
        )
        .ask("{{engine}} {{group}}", top(&max("engine, group", &chosen(&RELEASES_PENDING, ""))))
        .alert(rules::RELEASES_PENDING)
        .drill_down(),
        Panel::new(
            Lines,
            8,
            "percentunit",
            "Handed over",
            "Share of the granted acquisitions that another owner of the same process handed over, \
             without a request to the store.",
        )
        .ask(
            "{{engine}}",
            format!(
                "{} / ({} > 0)",
                sum("engine", &rate(&chosen(&HAND_OVERS, ""))),
                sum("engine", &rate(&chosen(&ACQUISITIONS, GRANTED)))
            ),
        ),
    ]
}
