//! What the library says in the log.

use std::io;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// One more subscriber, which wants nothing. While there is only one, `tracing` decides for good
/// whether a place of the log is wanted by the subscriber of the thread that comes there first:
/// often that of another test, which has none.
static ONE_MORE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// What was logged by this thread.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Returns what this thread logs from now on, at this level and those above it, until the guard is dropped.
    pub fn of(level: Level) -> (Self, DefaultGuard) {
        LazyLock::force(&ONE_MORE);
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_max_level(level)
            .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
            .with_ansi(false)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Returns all that was logged so far.
    ///
    /// # Panics
    /// If that is no text.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).expect("a text")
    }

    /// Returns the lines with all of these parts.
    ///
    /// # Panics
    /// If what was logged is no text.
    pub fn lines(&self, with: &[&str]) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| with.iter().all(|part| line.contains(part)));
        lines.map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
