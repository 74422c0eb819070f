//! The dashboard of one group in depth.

mod holding;

use ylock_metrics::catalogue::{ACQUISITIONS, LONGEST_HOLD, LONGEST_WAIT, LOSSES, WAIT, WAITING};

use super::{
    Dashboard,
    panel::{
        Draw::{Heatmap, Lines, Stat},
        Panel,
    },
};
use crate::{
    query::{GRANTED, WANTED, chosen, in_range, max, part, quantile, rate, share, sum},
    rules,
};

const YES: &str = "granted=\"yes\"";

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: super::GROUP,
        title: "ylock: group",
        description: "One group in depth: choose it above. If you choose several groups, the panels show \
            them together.",
        rows: vec![
            ("At a glance", glance()),
            ("Waiting", waiting()),
            ("Holding", holding::holding()),
            ("Outcomes", holding::outcomes()),
            ("Keeping and giving back", holding::keeping()),
        ],
    }
}

fn glance() -> Vec<Panel> {
    vec![
        Panel::new(
            Stat,
            4,
            "none",
            "Locks lost",
            "Holds of this group that were lost in the time range shown. Should be 0; otherwise check the \
             data that the lock protects.",
        )
        .ask("", in_range("", &chosen(&LOSSES, "")))
        .alert(rules::LOCK_LOST)
        .from(0.5, "red"),
        Panel::new(Stat, 4, "ops", "Acquisitions", "Acquisitions that end, per second.")
            .ask("", sum("", &rate(&chosen(&ACQUISITIONS, "")))),
        Panel::new(
            Stat,
            4,
            "percentunit",
            "Got the lock",
            "Share of the callers ready to wait that got the lock. If it falls, look at the outcomes \
             below.",
        )
        .ask("", share("", &chosen(&ACQUISITIONS, GRANTED), &chosen(&ACQUISITIONS, WANTED)))
        .alert(rules::ACQUISITIONS_TIME_OUT)
        .alert(rules::ACQUISITIONS_FAIL),
        Panel::new(
            Stat,
            4,
            "s",
            "Wait, half",
            "Half of the acquisitions waited no longer than this. Compare with the hold: a waiter that \
             waits longer than one hold stands behind other waiters.",
        )
        .ask("", quantile(0.5, &WAIT, "", YES)),
        Panel::new(
            Stat,
            4,
            "s",
            "Longest present wait",
            "How long the oldest waiter has waited by now. If the time only grows, look at the longest hold.",
        )
        .ask("", max("", &chosen(&LONGEST_WAIT, "")))
        .alert(rules::WAITERS_STUCK)
        .from(30.0, "orange")
        .from(300.0, "red"),
        Panel::new(
            Stat,
            4,
            "s",
            "Longest present hold",
            "How long the oldest hold has lasted by now. If it lasts longer than the work ever takes, its \
             process hangs: `inspect` names the process, `revoke` takes the lock away.",
        )
        .ask("", max("", &chosen(&LONGEST_HOLD, "")))
        .alert(rules::HOLD_TOO_LONG)
        .from(60.0, "orange")
        .from(600.0, "red"),
    ]
}

fn waiting() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "s",
            "Wait",
            "How long the callers that got the lock had waited. If all lines rise, the lock is wanted more \
             than it is free. If only the highest rises, some holds are long, or some waiters are \
             overtaken (see the option fairness).",
        )
        .ask("50 %", quantile(0.5, &WAIT, "", YES))
        .ask("90 %", quantile(0.9, &WAIT, "", YES))
        .ask("99 %", quantile(0.99, &WAIT, "", YES))
        .alert(rules::WAITS_SLOW),
        Panel::new(
            Heatmap,
            8,
            "s",
            "Wait, all of them",
            "Every acquisition that got its lock, by how long it waited. Two bands are two kinds of \
             work, or acquisitions that find the lock free and others that do not. A band that wanders up \
             is a queue that grows.",
        )
        .ask("{{le}}", sum("le", &rate(&part(&WAIT, "_bucket", YES)))),
        Panel::new(
            Lines,
            8,
            "none",
            "Waiting",
            "Acquisitions that wait now. If the number only grows, the lock is wanted more than it is \
             free: shorten the work under the lock, or take finer names.",
        )
        .ask("{{mode}}", sum("mode", &chosen(&WAITING, "")))
        .alert(rules::WAITERS_STUCK),
        Panel::new(
            Lines,
            8,
            "s",
            "Wait that ended without the lock",
            "How long the callers that did not get the lock had waited: time lost for nothing. If it is \
             much, let callers wait for a shorter time, or shorten the holds.",
        )
        .ask("50 %", quantile(0.5, &WAIT, "", "granted=\"no\""))
        .ask("99 %", quantile(0.99, &WAIT, "", "granted=\"no\""))
        .alert(rules::ACQUISITIONS_TIME_OUT),
        Panel::new(
            Lines,
            8,
            "s",
            "Wait by mode, 99 %",
            "Writers and readers apart. If writers wait much longer, readers leave no gap: look at the \
             holds of the readers.",
        )
        .ask("{{mode}}", quantile(0.99, &WAIT, "mode", YES))
        .alert(rules::WAITS_SLOW),
        Panel::new(
            Lines,
            8,
            "s",
            "Longest present wait",
            "By instance. If the line of one instance alone rises, that process is not served. If all \
             lines rise, no process is served.",
        )
        .ask("{{instance}} {{engine}}", max("instance, engine", &chosen(&LONGEST_WAIT, "")))
        .alert(rules::WAITERS_STUCK),
    ]
}
