//! The meters of one group on one engine, made when the group is first seen: every series is there from then on, also those that stay at zero.
//! A series that appears with its first event hides that event from `rate()`.

use metrics::{Counter, Gauge, Histogram};
use ylock_core::layer::{End, GroupUsage, Outcome, Renewed};
use ylock_core::{ErrorKind, LossReason, Mode};

use crate::catalogue::{
    ACQUISITION_ERRORS, ACQUISITIONS, HAND_OVERS, HELD, HOLD, LONGEST_HOLD, LONGEST_WAIT, LOSSES, Metric,
    OTHER, REENTRIES, RELEASE, RELEASES_PENDING, RENEWALS, WAIT, WAITING,
};
use crate::outcome::{Acquired, Each, Renewal};
use crate::recorder::Sink;

/// The meters of one group; see the [module](self).
#[derive(Debug)]
pub(crate) struct GroupMeters {
    read: ModeMeters,
    write: ModeMeters,
    group: String,
    release: Histogram,
    longest_hold: Gauge,
    longest_wait: Gauge,
    releases_pending: Gauge,
    hand_overs: Counter,
    renewals: Each<Renewal>,
    losses: Each<LossReason>,
    errors: Each<ErrorKind>,
    /// Counts acquisitions, where these are the meters of many groups.
    in_other: Option<Counter>,
}

/// The meters of one mode.
#[derive(Debug)]
struct ModeMeters {
    acquired: Each<Acquired>,
    reentries: Counter,
    waited: Histogram,
    waited_in_vain: Histogram,
    hold: Histogram,
    held: Gauge,
    waiting: Gauge,
}

impl GroupMeters {
    pub(crate) fn new(sink: &Sink, engine: &'static str, group: &str) -> Self {
        let labels = [("engine", engine), ("group", group)];
        let with = |name: &'static str, value: &'static str| [labels[0], labels[1], (name, value)];
        Self {
            read: ModeMeters::new(sink, engine, group, Mode::Read),
            write: ModeMeters::new(sink, engine, group, Mode::Write),
            group: group.to_owned(),
            release: sink.histogram(&RELEASE, &labels),
            longest_hold: sink.gauge(&LONGEST_HOLD, &labels),
            longest_wait: sink.gauge(&LONGEST_WAIT, &labels),
            releases_pending: sink.gauge(&RELEASES_PENDING, &labels),
            hand_overs: sink.counter(&HAND_OVERS, &labels),
            renewals: Each::new(Renewal::ALL, |outcome| {
                sink.counter(&RENEWALS, &with("outcome", outcome.as_str()))
            }),
            losses: Each::new(LossReason::ALL, |reason| {
                sink.counter(&LOSSES, &with("reason", reason.as_str()))
            }),
            errors: Each::new(ErrorKind::ALL, |kind| {
                sink.counter(&ACQUISITION_ERRORS, &with("error", kind.as_str()))
            }),
            in_other: None,
        }
    }

    /// Creates the meters of all groups that there is no room for.
    pub(crate) fn of_others(sink: &Sink, engine: &'static str, group: &str) -> Self {
        let in_other = Some(sink.counter(&OTHER, &[("engine", engine)]));
        Self { in_other, ..Self::new(sink, engine, group) }
    }

    /// Returns the group, as its label says.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// Counts an acquisition that has ended. `tried`: the caller was not ready to wait.
    pub(crate) fn acquired(&self, mode: Mode, outcome: &Outcome, tried: bool, waited: std::time::Duration) {
        self.mode(mode).acquired(outcome, tried, waited);
        if let Outcome::Failed(error) = outcome {
            self.errors.count(error.kind());
        }
        if let Some(in_other) = &self.in_other {
            in_other.increment(1);
        }
    }

    fn mode(&self, mode: Mode) -> &ModeMeters {
        match mode {
            Mode::Read => &self.read,
            Mode::Write => &self.write,
        }
    }

    pub(crate) fn hold_ended(&self, mode: Mode, held: std::time::Duration, end: End) {
        self.mode(mode).hold.record(held);
        if let End::Lost(reason) = end {
            self.losses.count(reason);
        }
    }

    pub(crate) fn handed_over(&self) {
        self.hand_overs.increment(1);
    }

    pub(crate) fn renewed(&self, outcome: &Renewed) {
        self.renewals.count(Renewal::of(outcome));
    }

    pub(crate) fn released(&self, took: std::time::Duration) {
        self.release.record(took);
    }

    /// Shows what all clients together have in use.
    pub(crate) fn show(&self, usage: &Sum) {
        self.read.held.set(usage.held_read);
        self.write.held.set(usage.held_write);
        self.read.waiting.set(usage.waiting_read);
        self.write.waiting.set(usage.waiting_write);
        self.longest_hold.set(usage.longest_hold);
        self.longest_wait.set(usage.longest_wait);
        self.releases_pending.set(usage.releases_pending);
    }
}

impl ModeMeters {
    fn new(sink: &Sink, engine: &'static str, group: &str, mode: Mode) -> Self {
        let labels = [("engine", engine), ("group", group), ("mode", mode.as_str())];
        let with = |name: &'static str, value: &'static str| [labels[0], labels[1], labels[2], (name, value)];
        Self {
            acquired: Each::new(Acquired::ALL, |outcome| {
                sink.counter(&ACQUISITIONS, &with("outcome", outcome.as_str()))
            }),
            reentries: sink.counter(&REENTRIES, &labels),
            waited: sink.histogram(&WAIT, &with("granted", "yes")),
            waited_in_vain: sink.histogram(&WAIT, &with("granted", "no")),
            hold: sink.histogram(&HOLD, &labels),
            held: gauge_at_zero(sink, &HELD, &labels),
            waiting: gauge_at_zero(sink, &WAITING, &labels),
        }
    }

    fn acquired(&self, outcome: &Outcome, tried: bool, waited: std::time::Duration) {
        let Some(outcome) = Acquired::of(outcome, tried) else {
            self.reentries.increment(1);
            return;
        };
        self.acquired.count(outcome);
        let histogram = if outcome.is_granted() { &self.waited } else { &self.waited_in_vain };
        histogram.record(waited);
    }
}

fn gauge_at_zero(sink: &Sink, metric: &Metric, labels: &[(&'static str, &str)]) -> Gauge {
    let gauge = sink.gauge(metric, labels);
    gauge.set(0.0);
    gauge
}

/// The usage of several clients, or several groups, together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    held_read: f64,
    held_write: f64,
    waiting_read: f64,
    waiting_write: f64,
    longest_hold: f64,
    longest_wait: f64,
    releases_pending: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, usage: &GroupUsage) {
        self.held_read += usage.held_read as f64;
        self.held_write += usage.held_write as f64;
        self.waiting_read += usage.waiting_read as f64;
        self.waiting_write += usage.waiting_write as f64;
        self.longest_hold = self.longest_hold.max(usage.longest_hold.as_secs_f64());
        self.longest_wait = self.longest_wait.max(usage.longest_wait.as_secs_f64());
        self.releases_pending += usage.releases_pending as f64;
    }
}
