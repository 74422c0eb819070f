//! A clock that can be set, for one server.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::clock_files::ClockFiles;

/// The microseconds that a look at the clock may seem to take longer than it does, because the machine's own clock is kept right
/// meanwhile.
const TOLERANCE: i64 = 10_000;

/// The time of day of one process, which a test sets. Removed when dropped.
#[derive(Debug)]
pub struct SetClock {
    /// The microseconds that it is ahead of the machine's clock.
    ahead: i64,
    folder: PathBuf,
    files: ClockFiles,
}

impl SetClock {
    /// Creates a clock that is right until it is set.
    ///
    /// # Panics
    /// Without a C compiler: a test must not pass because nothing was tried.
    pub fn make() -> Self {
        let folder = std::env::temp_dir().join(format!("ylock-clock-{}", ylock_core::Owner::new()));
        let files = ClockFiles::in_folder(folder.clone());
        files.make().unwrap_or_else(|error| panic!("a clock, by the C compiler `cc`: {error}"));
        Self { ahead: 0, folder, files }
    }

    /// Returns the variables with which a process goes by this clock; a process that loads the clock does not start without both.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        self.files.variables()
    }

    /// Sets the clock forwards.
    pub async fn forwards(&mut self, by: Duration, time: impl AsyncFn() -> i64) {
        self.step(micros(by), time).await;
    }

    /// Sets the clock backwards.
    pub async fn backwards(&mut self, by: Duration, time: impl AsyncFn() -> i64) {
        self.step(-micros(by), time).await;
    }

    /// Sets the clock by this many microseconds. `time` asks the process what time it is, in microseconds since 1970: otherwise tests
    /// would pass that have tried nothing.
    ///
    /// # Panics
    /// If the process did not see the step.
    pub async fn step(&mut self, by: i64, time: impl AsyncFn() -> i64) {
        let (asked, before) = (Instant::now(), time().await);
        self.ahead += by;
        self.files.set(self.ahead).expect("written");
        let (after, took) = (time().await, micros(asked.elapsed()));
        let rest = after - before - by;
        assert!((-TOLERANCE..=took + TOLERANCE).contains(&rest), "a step by {by} took {rest} of {took}");
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).expect("not for ever")
}

impl Drop for SetClock {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
