//! One group in depth.

use ylock_metrics::catalogue::{
    ACQUISITION_ERRORS, ACQUISITIONS, HAND_OVERS, HELD, HOLD, LONGEST_HOLD, LONGEST_WAIT, LOSSES, REENTRIES,
    RELEASE, RELEASES_PENDING, RENEWALS, WAIT, WAITING,
};

use super::{
    Dashboard,
    panel::{
        Draw::{Heatmap, Lines, Stack, Stat},
        Panel,
    },
};
use crate::{
    query::{GRANTED, WANTED, chosen, in_range, max, not_zero, part, quantile, rate, share, sum},
    rules,
};

const YES: &str = "granted=\"yes\"";

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: super::GROUP,
        title: "ylock: group",
        description: "One group in depth: choose it above. With several chosen, everything is theirs \
            together.",
        rows: vec![
            ("At a glance", glance()),
            ("Waiting", waiting()),
            ("Holding", holding()),
            ("Outcomes", outcomes()),
            ("Keeping and giving back", keeping()),
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
            "Holds of this group that were lost in the time that is shown. Should be 0; otherwise check \
             the data that the lock protects.",
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
            "Of those who were ready to wait, the part that got it. If it falls, look at the outcomes \
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
            "Half of the acquisitions waited no longer than this. Compare with the hold: who waits \
             longer than one hold stands behind others.",
        )
        .ask("", quantile(0.5, &WAIT, "", YES)),
        Panel::new(
            Stat,
            4,
            "s",
            "Longest present wait",
            "How long the oldest waiter has waited by now. If it only grows, look at the longest hold.",
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
            "How long the oldest hold lasts by now. If it is longer than the work ever takes, its \
             process hangs: `inspect` names it, `revoke` takes the lock away.",
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
            "How long those waited who got the lock. If all lines rise, the lock is wanted more than it \
             is free; if only the highest, some holds are long, or somebody is overtaken (see fairness).",
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
             work, or one that finds the lock free and one that does not. A band that wanders up is a \
             queue that grows.",
        )
        .ask("{{le}}", sum("le", &rate(&part(&WAIT, "_bucket", YES)))),
        Panel::new(
            Lines,
            8,
            "none",
            "Waiting",
            "Acquisitions that wait now. If it only grows, more is wanted than the lock can give: \
             shorten the work or take finer names.",
        )
        .ask("{{mode}}", sum("mode", &chosen(&WAITING, "")))
        .alert(rules::WAITERS_STUCK),
        Panel::new(
            Lines,
            8,
            "s",
            "Wait of those who went without",
            "How long callers waited who did not get the lock: time lost for nothing. If it is much, \
             shorten their patience or the holds.",
        )
        .ask("50 %", quantile(0.5, &WAIT, "", "granted=\"no\""))
        .ask("99 %", quantile(0.99, &WAIT, "", "granted=\"no\""))
        .alert(rules::ACQUISITIONS_TIME_OUT),
        Panel::new(
            Lines,
            8,
            "s",
            "Wait by mode, 99 %",
            "Writers and readers apart. If writers wait much longer, readers leave no gap: look at \
             their holds.",
        )
        .ask("{{mode}}", quantile(0.99, &WAIT, "mode", YES))
        .alert(rules::WAITS_SLOW),
        Panel::new(
            Lines,
            8,
            "s",
            "Longest present wait",
            "By instance. One alone that rises: that process is not served. All: nobody is.",
        )
        .ask("{{instance}} {{engine}}", max("instance, engine", &chosen(&LONGEST_WAIT, "")))
        .alert(rules::WAITERS_STUCK),
    ]
}

fn holding() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "s",
            "Hold",
            "How long locks are held. Everybody else waits for as long: work that need not be under the \
             lock belongs outside.",
        )
        .ask("{{mode}} 50 %", quantile(0.5, &HOLD, "mode", ""))
        .ask("{{mode}} 99 %", quantile(0.99, &HOLD, "mode", "")),
        Panel::new(
            Heatmap,
            8,
            "s",
            "Hold, all of them",
            "Every hold, by how long it lasted. Spots far up are what others wait for.",
        )
        .ask("{{le}}", sum("le", &rate(&part(&HOLD, "_bucket", "")))),
        Panel::new(
            Lines,
            8,
            "none",
            "Held",
            "Locks that are held now, counted by owner. If it only grows, guards are kept by mistake.",
        )
        .ask("{{mode}}", sum("mode", &chosen(&HELD, ""))),
        Panel::new(
            Lines,
            12,
            "none",
            "Holders on average",
            "Seconds held per second. Near the number of names in use, writing is saturated.",
        )
        .ask("{{mode}}", sum("mode", &rate(&part(&HOLD, "_sum", "")))),
        Panel::new(
            Lines,
            12,
            "s",
            "Longest present hold",
            "By instance. A line that rises without end is a process that hangs under the lock, or \
             forgot a guard.",
        )
        .ask("{{instance}} {{engine}}", max("instance, engine", &chosen(&LONGEST_HOLD, "")))
        .alert(rules::HOLD_TOO_LONG),
    ]
}

fn outcomes() -> Vec<Panel> {
    vec![
        Panel::new(
            Stack,
            12,
            "ops",
            "Outcomes",
            "How acquisitions end. at_once: it was free. after_waiting: it was not. not_free: a try_ \
             method found it taken. timed_out: too much contention. failed: see the errors. If at_once \
             shrinks, contention grows.",
        )
        .ask("{{outcome}}", sum("outcome", &rate(&chosen(&ACQUISITIONS, ""))))
        .alert(rules::ACQUISITIONS_TIME_OUT),
        Panel::new(
            Stack,
            12,
            "ops",
            "Errors by kind",
            "unavailable, indeterminate: the store. would_deadlock, invalid, unsupported, config: the \
             program. refused: a layer.",
        )
        .ask_of_trouble("{{error}}", not_zero(&sum("error", &rate(&chosen(&ACQUISITION_ERRORS, "")))))
        .alert(rules::ACQUISITIONS_FAIL),
        Panel::new(
            Lines,
            8,
            "ops",
            "By mode",
            "Reads and writes. Many writes that only look could be reads, and share.",
        )
        .ask("{{mode}}", sum("mode", &rate(&chosen(&ACQUISITIONS, "")))),
        Panel::new(
            Lines,
            8,
            "ops",
            "Reentries",
            "Acquisitions by an owner that held the lock already. They cost nothing and are in no other \
             panel.",
        )
        .ask("{{mode}}", sum("mode", &rate(&chosen(&REENTRIES, "")))),
        Panel::new(
            Lines,
            8,
            "percentunit",
            "Free when wanted",
            "Part of the granted acquisitions that did not wait. Falls with contention.",
        )
        .ask(
            "{{mode}}",
            share("mode", &chosen(&ACQUISITIONS, "outcome=\"at_once\""), &chosen(&ACQUISITIONS, GRANTED)),
        ),
    ]
}

fn keeping() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "ops",
            "Hand-overs",
            "Grants that went from one owner of a process to the next without the store. Many are good: \
             the store is spared. None under contention: the waiters are in different processes, or \
             fairness is strict.",
        )
        .ask("{{engine}}", sum("engine", &rate(&chosen(&HAND_OVERS, "")))),
        Panel::new(
            Lines,
            8,
            "s",
            "Release",
            "Time from giving back until the store confirmed it. The next one waits for as long. If it \
             rises, look at the store.",
        )
        .ask("50 %", quantile(0.5, &RELEASE, "", ""))
        .ask("99 %", quantile(0.99, &RELEASE, "", "")),
        Panel::new(
            Lines,
            8,
            "none",
            "Releases pending",
            "Given back, and not confirmed at the first attempt. Should be 0; until it is, nobody else \
             gets in. Look at the store.",
        )
        .ask("{{instance}} {{engine}}", sum("instance, engine", &chosen(&RELEASES_PENDING, "")))
        .alert(rules::RELEASES_PENDING),
        Panel::new(
            Stack,
            12,
            "ops",
            "Renewals",
            "By outcome. Short holds need none. failed: tried again soon; lost: the store does not know \
             the grant any more.",
        )
        .ask("{{outcome}}", sum("outcome", &rate(&chosen(&RENEWALS, ""))))
        .alert(rules::RENEWALS_FAIL),
        Panel::new(
            Lines,
            12,
            "none",
            "Losses",
            "By reason. lapsed: too slow or paused. gone: the store forgot it. revoked: taken away. \
             closed: the program closed its client.",
        )
        .ask("{{reason}}", sum("reason", &format!("increase({}[$__rate_interval])", chosen(&LOSSES, ""))))
        .alert(rules::LOCK_LOST),
    ]
}
