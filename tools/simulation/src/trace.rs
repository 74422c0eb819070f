//! The record of a run: a hash, and text for the reader who has to find out why a run failed.

use std::time::Duration;

/// The record; see the [module](self).
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Creates an empty trace, with or without text.
    pub fn new(lines: bool) -> Self {
        // The constants of FNV-1a.
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: lines.then(Vec::new) }
    }

    /// Notes that something happened.
    pub fn note(&mut self, now: u64, line: &str) {
        for byte in now.to_le_bytes().iter().chain(line.as_bytes()) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>12.6} {line}", Duration::from_nanos(now).as_secs_f64()));
        }
    }

    /// Returns a number that is the same for two runs in which the same happened.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns what happened, line by line; nothing if it was not kept.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
