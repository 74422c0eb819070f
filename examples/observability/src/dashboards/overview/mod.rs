//! The overview dashboard. Is locking healthy? What waits longest? Who lost a lock?

mod trouble;

use ylock_metrics::catalogue::{ACQUISITIONS, HELD, HOLD, LONGEST_HOLD, LONGEST_WAIT, LOSSES, WAIT, WAITING};

use super::{
    Dashboard,
    panel::{
        Draw::{Lines, Stat},
        Panel,
    },
};
use crate::{
    query::{GRANTED, WANTED, chosen, in_range, max, part, quantile, rate, share, sum, top},
    rules,
};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: super::OVERVIEW,
        title: "ylock: overview",
        description: "Is locking healthy? What waits longest? Who lost a lock?",
        rows: vec![
            ("Is locking healthy?", health()),
            ("What waits longest?", waiting()),
            ("Who lost a lock, and what fails?", trouble::trouble()),
            ("Who reports?", trouble::reporting()),
        ],
    }
}

fn health() -> Vec<Panel> {
    let mut panels = safety();
    panels.extend(use_of_locks());
    panels
}

fn safety() -> Vec<Panel> {
    vec![
        Panel::new(
            Stat,
            4,
            "none",
            "Locks lost",
            "Holds that ended before they were given back, in the time range shown. Should be 0. \
             Otherwise see below which instance lost a lock of which group, and check the data that the \
             lock protects.",
        )
        .ask("", in_range("", &chosen(&LOSSES, "")))
        .alert(rules::LOCK_LOST)
        .from(0.5, "red"),
        Panel::new(
            Stat,
            4,
            "none",
            "Alerts firing",
            "Alerts of ylock that Prometheus fires now. Should be 0. The table below names them; each \
             alert says what to do.",
        )
        .ask("", "count(ALERTS{alertname=~\"Ylock.+\", alertstate=\"firing\"}) or vector(0)".to_owned())
        .from(0.5, "red"),
        Panel::new(
            Stat,
            4,
            "percentunit",
            "Got the lock",
            "Share of the callers ready to wait that got the lock. If it falls, see below which group \
             times out or fails.",
        )
        .ask("", share("", &chosen(&ACQUISITIONS, GRANTED), &chosen(&ACQUISITIONS, WANTED)))
        .alert(rules::ACQUISITIONS_TIME_OUT)
        .alert(rules::ACQUISITIONS_FAIL),
        Panel::new(
            Stat,
            4,
            "s",
            "Wait, 99 %",
            "99 of 100 acquisitions waited no longer than this for their lock. If it grows, see which \
             group waits, and whether its holds are long or the store is slow.",
        )
        .ask("", quantile(0.99, &WAIT, "", "granted=\"yes\""))
        .alert(rules::WAITS_SLOW)
        .from(1.0, "orange")
        .from(5.0, "red"),
        Panel::new(
            Stat,
            4,
            "s",
            "Longest present wait",
            "How long the oldest waiter has waited by now. If the time only grows, a holder does not give \
             its lock back: look at the longest hold.",
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
            "How long the oldest hold has lasted by now. If it lasts longer than your work ever takes, a \
             process hangs under the lock: `inspect` names the process, `revoke` takes the lock away.",
        )
        .ask("", max("", &chosen(&LONGEST_HOLD, "")))
        .alert(rules::HOLD_TOO_LONG)
        .from(60.0, "orange")
        .from(600.0, "red"),
    ]
}

fn use_of_locks() -> Vec<Panel> {
    vec![
        Panel::new(
            Stat,
            8,
            "ops",
            "Acquisitions",
            "Acquisitions that end, per second. Falls to 0 when no task wants a lock, or when no waiter is \
             let in: compare with the number that waits.",
        )
        .ask("", sum("", &rate(&chosen(&ACQUISITIONS, "")))),
        Panel::new(
            Stat,
            8,
            "none",
            "Held",
            "Locks that are held now, counted by owner. If it only grows, guards are kept by mistake.",
        )
        .ask("", sum("", &chosen(&HELD, ""))),
        Panel::new(
            Stat,
            8,
            "none",
            "Waiting",
            "Acquisitions that wait now. If the number only grows, locks are wanted more than they are \
             free: see below in which group.",
        )
        .ask("", sum("", &chosen(&WAITING, "")))
        .alert(rules::WAITERS_STUCK),
    ]
}

fn waiting() -> Vec<Panel> {
    let by = "engine, group";
    let named = "{{engine}} {{group}}";
    vec![
        Panel::new(
            Lines,
            12,
            "s",
            "Wait by group, 99 %",
            "The time that 99 of 100 acquisitions waited at most, for the ten slowest groups. If one group \
             stands out, shorten its work under the lock, or take finer names. If all rise at once, look at \
             the store.",
        )
        .ask(named, top(&quantile(0.99, &WAIT, by, "granted=\"yes\"")))
        .alert(rules::WAITS_SLOW)
        .drill_down(),
        Panel::new(
            Lines,
            12,
            "s",
            "Longest present wait by group",
            "How long the oldest waiter of a group has waited. A line that rises without end is a group \
             in which a waiter is not let in.",
        )
        .ask(named, top(&max(by, &chosen(&LONGEST_WAIT, ""))))
        .alert(rules::WAITERS_STUCK)
        .drill_down(),
        Panel::new(
            Lines,
            12,
            "none",
            "Time spent waiting",
            "Seconds waited per second, which is the number of waiters on average. Locks cost most in the \
             groups at the top.",
        )
        .ask(named, top(&sum(by, &rate(&part(&WAIT, "_sum", "")))))
        .drill_down(),
        Panel::new(
            Lines,
            12,
            "none",
            "Writers on average",
            "Seconds held for writing per second. Near the number of names in use, the group is \
             saturated: shorter holds or finer names help, a faster store does not.",
        )
        .ask(named, top(&sum(by, &rate(&part(&HOLD, "_sum", "mode=\"write\"")))))
        .drill_down(),
    ]
}
