//! The line of counts that a user sees on the terminal.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The counts of one store.
#[derive(Debug)]
pub struct Tally {
    engine: &'static str,
    granted: AtomicU64,
    without: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
}

impl Tally {
    pub(super) fn new(engine: &'static str) -> Self {
        let zero = AtomicU64::default;
        Self { engine, granted: zero(), without: zero(), failed: zero(), lost: zero() }
    }

    pub(super) fn lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Counts how an acquisition ended, and returns what was granted.
    pub(super) fn count<T>(&self, ended: ylock::Result<Option<T>>) -> Option<T> {
        let (which, granted) = match ended {
            Ok(Some(granted)) => (&self.granted, Some(granted)),
            Ok(None) => (&self.without, None),
            Err(_) => (&self.failed, None),
        };
        which.fetch_add(1, Relaxed);
        granted
    }

    fn text(&self) -> String {
        let read = |number: &AtomicU64| number.load(Relaxed);
        let (granted, without) = (read(&self.granted), read(&self.without));
        let (failed, lost) = (read(&self.failed), read(&self.lost));
        format!("{}: {granted} granted, {without} without, {failed} failed, {lost} lost", self.engine)
    }
}

/// A line that is written again and again on a terminal, and now and then elsewhere.
#[derive(Debug)]
pub(super) struct Shown {
    began: Instant,
    next: Duration,
    is_terminal: bool,
}

impl Shown {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), next: Duration::ZERO, is_terminal: stderr().is_terminal() }
    }

    pub(super) fn show<'a>(&mut self, tallies: impl Iterator<Item = &'a Arc<Tally>>) {
        let passed = self.began.elapsed();
        if !self.is_terminal && passed < self.next {
            return;
        }
        self.next = passed + SELDOM;
        let texts: Vec<_> = tallies.map(|tally| tally.text()).collect();
        let line = format!("{:>5} s  {}", passed.as_secs(), texts.join("  |  "));
        let mut terminal = stderr().lock();
        // The terminal may be gone, which is no reason to stop.
        let _ = if self.is_terminal {
            write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush())
        } else {
            writeln!(terminal, "{line}")
        };
    }
}

/// The time between two lines in a log.
const SELDOM: Duration = Duration::from_secs(10);
