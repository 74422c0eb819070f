//! What the machine did during a run: a test that fails on a machine which stands still may be right all the same.

use std::{
    fmt, fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The pause between two moments at which a thread wants to run.
const TICK: Duration = Duration::from_millis(20);

/// A watch over the machine, from its beginning until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    times: Option<Times>,
    latest: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// What the cores did, as Linux counts it, and how late a thread ran at most.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    cores: usize,
    /// Hundredths of the cores' time.
    busy: u64,
    taken: u64,
    disk: u64,
    latest: Duration,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        let watch = Self { times: Times::read(), latest: Arc::default(), is_over: Arc::default() };
        let (latest, is_over) = (Arc::clone(&watch.latest), Arc::clone(&watch.is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(TICK);
                let late = began.elapsed().saturating_sub(TICK).as_millis();
                latest.fetch_max(u64::try_from(late).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        });
        watch
    }

    /// Returns what the machine did since the beginning; nothing where the system does not say it.
    pub(crate) fn seen(&self) -> Option<Machine> {
        let latest = Duration::from_millis(self.latest.load(Ordering::Relaxed));
        Some(self.times?.until(Times::read()?, latest))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The ticks of all cores since the machine started.
#[derive(Clone, Copy, Debug)]
struct Times {
    all: u64,
    idle: u64,
    disk: u64,
    taken: u64,
}

impl Times {
    fn read() -> Option<Self> {
        Self::parse(fs::read_to_string("/proc/stat").ok()?.lines().next()?)
    }

    /// Reads the line of all cores: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            line.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [_, _, _, idle, disk, _, _, taken, ..] = numbers[..] else { return None };
        Some(Self { all: numbers[..8].iter().sum(), idle, disk, taken })
    }

    fn until(self, after: Self, latest: Duration) -> Machine {
        let all = after.all.saturating_sub(self.all).max(1);
        let hundredths = |before: u64, after: u64| after.saturating_sub(before) * 100 / all;
        let (disk, taken) = (hundredths(self.disk, after.disk), hundredths(self.taken, after.taken));
        let busy = 100_u64.saturating_sub(hundredths(self.idle, after.idle) + disk + taken);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Machine { cores, busy, taken, disk, latest }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, busy, taken, disk, latest } = self;
        write!(
            formatter,
            "{cores} cores: busy {busy} % of the time, taken by other machines {taken} %, waiting for a disk {disk} %; a thread that was due \
             ran {latest:.1?} late at most"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_time_are_told() {
        let before = Times::parse("cpu  100 0 100 700 50 0 0 50 0 0").unwrap();
        let after = Times::parse("cpu  160 5 110 710 55 0 5 55 0 0").unwrap();
        let machine = before.until(after, Duration::from_millis(1_250));
        assert_eq!((machine.busy, machine.taken, machine.disk), (80, 5, 5));
        let words = machine.to_string();
        assert!(words.contains("busy 80 %") && words.contains("ran 1.2s late"), "{words}");
        assert!(Times::parse("cpu0 1 2 3 4 5 6 7 8").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_says_it() {
        assert!(Watch::begin().seen().is_some());
    }
}
