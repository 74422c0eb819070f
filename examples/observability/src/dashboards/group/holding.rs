//! Panels about holds, about the outcomes of acquisitions, and about renewals and releases.

use ylock_metrics::catalogue::{
    ACQUISITION_ERRORS, ACQUISITIONS, HAND_OVERS, HELD, HOLD, LONGEST_HOLD, LOSSES, REENTRIES, RELEASE,
    RELEASES_PENDING, RENEWALS,
};

use super::super::panel::{
    Draw::{Heatmap, Lines, Stack},
    Panel,
};
use crate::{
    query::{GRANTED, chosen, max, not_zero, part, quantile, rate, share, sum},
    rules,
};

pub(super) fn holding() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "s",
            "Hold",
            "How long locks are held. All waiters wait for as long: move work that need not be under the \
             lock out of the hold.",
        )
        .ask("{{mode}} 50 %", quantile(0.5, &HOLD, "mode", ""))
        .ask("{{mode}} 99 %", quantile(0.99, &HOLD, "mode", "")),
        Panel::new(
            Heatmap,
            8,
            "s",
            "Hold, all of them",
            "Every hold, by how long it lasted. Waiters wait for the holds far up.",
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
            "Seconds held per second. If write is near the number of names in use, writing is saturated.",
        )
        .ask("{{mode}}", sum("mode", &rate(&part(&HOLD, "_sum", "")))),
        Panel::new(
            Lines,
            12,
            "s",
            "Longest present hold",
            "By instance. A line that rises without end is a process that hangs under the lock, or has \
             forgotten a guard.",
        )
        .ask("{{instance}} {{engine}}", max("instance, engine", &chosen(&LONGEST_HOLD, "")))
        .alert(rules::HOLD_TOO_LONG),
    ]
}

pub(super) fn outcomes() -> Vec<Panel> {
    vec![
        Panel::new(
            Stack,
            12,
            "ops",
            "Outcomes",
            "How acquisitions end. at_once: the lock was free. after_waiting: the caller waited and got it. \
             not_free: a try_ method found it taken. timed_out: too much contention. failed: see the errors. \
             If at_once shrinks, contention grows.",
        )
        .ask("{{outcome}}", sum("outcome", &rate(&chosen(&ACQUISITIONS, ""))))
        .alert(rules::ACQUISITIONS_TIME_OUT),
        Panel::new(
            Stack,
            12,
            "ops",
            "Errors by kind",
            "unavailable, indeterminate: look at the store. would_deadlock, invalid, unsupported, config: \
             a mistake in the program. refused: a layer refused the acquisition.",
        )
        .ask_of_trouble("{{error}}", not_zero(&sum("error", &rate(&chosen(&ACQUISITION_ERRORS, "")))))
        .alert(rules::ACQUISITIONS_FAIL),
        Panel::new(
            Lines,
            8,
            "ops",
            "By mode",
            "Reads and writes. Work that only reads should take read locks, which are shared.",
        )
        .ask("{{mode}}", sum("mode", &rate(&chosen(&ACQUISITIONS, "")))),
        Panel::new(
            Lines,
            8,
            "ops",
            "Reentries",
            "Acquisitions by an owner that held the lock already. They cost nothing, and no other panel \
             counts them.",
        )
        .ask("{{mode}}", sum("mode", &rate(&chosen(&REENTRIES, "")))),
        Panel::new(
            Lines,
            8,
            "percentunit",
            "Free when wanted",
            "Share of the granted acquisitions that did not wait. It falls when contention grows.",
        )
        .ask(
            "{{mode}}",
            share("mode", &chosen(&ACQUISITIONS, "outcome=\"at_once\""), &chosen(&ACQUISITIONS, GRANTED)),
        ),
    ]
}

pub(super) fn keeping() -> Vec<Panel> {
    vec![
        Panel::new(
            Lines,
            8,
            "ops",
            "Hand-overs",
            "Grants that one owner of a process handed over to the next without the store. Many are good: \
             they save requests to the store. None under contention: the waiters are in different processes, \
             or fairness is strict.",
        )
        .ask("{{engine}}", sum("engine", &rate(&chosen(&HAND_OVERS, "")))),
        Panel::new(
            Lines,
            8,
            "s",
            "Release",
            "Time from a release until the store confirmed it. The next waiter waits for as long. If the \
             time rises, look at the store.",
        )
        .ask("50 %", quantile(0.5, &RELEASE, "", ""))
        .ask("99 %", quantile(0.99, &RELEASE, "", "")),
        Panel::new(
            Lines,
            8,
            "none",
            "Releases pending",
            "Releases that the store did not confirm at the first attempt. Should be 0; until the store \
             confirms a release, no waiter gets the lock. Look at the store.",
        )
        .ask("{{instance}} {{engine}}", sum("instance, engine", &chosen(&RELEASES_PENDING, "")))
        .alert(rules::RELEASES_PENDING),
        Panel::new(
            Stack,
            12,
            "ops",
            "Renewals",
            "By outcome. Short holds need no renewal. failed: the client tries again soon. lost: the store \
             does not know the grant any more.",
        )
        .ask("{{outcome}}", sum("outcome", &rate(&chosen(&RENEWALS, ""))))
        .alert(rules::RENEWALS_FAIL),
        Panel::new(
            Lines,
            12,
            "none",
            "Losses",
            "By reason. lapsed: the holder was too slow or paused. gone: the store lost the grant. revoked: \
             an operator or a program called revoke. held_too_long: the holder has had it for longer than \
             max_hold allows. closed: the program closed its client.",
        )
        .ask("{{reason}}", sum("reason", &format!("increase({}[$__rate_interval])", chosen(&LOSSES, ""))))
        .alert(rules::LOCK_LOST),
    ]
}
