//! Shows progress on stderr: on a terminal a spinner with the elapsed time, elsewhere two plain lines.

use std::{
    io::{IsTerminal, stderr},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// True if other commands print at the same time, in whose lines a spinner would stand.
static BESIDE: AtomicBool = AtomicBool::new(false);

/// Has all steps shown by plain lines from now on.
pub(crate) fn beside_others() {
    BESIDE.store(true, Ordering::Relaxed);
}

#[derive(Debug)]
pub(crate) struct Step {
    began: Instant,
    spinner: Option<ProgressBar>,
}

impl Step {
    pub(crate) fn begin(what: impl Into<String>) -> Self {
        let what = what.into();
        let has_line = stderr().is_terminal() && !BESIDE.load(Ordering::Relaxed);
        let spinner = has_line.then(|| spinner(&what));
        if spinner.is_none() {
            eprintln!("{what} ...");
        }
        Self { began: Instant::now(), spinner }
    }

    /// Shows what is going on just now. Without a terminal it is not shown: it changes too often for a log.
    pub(crate) fn detail(&self, text: impl Into<String>) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(text.into());
        }
    }

    pub(crate) fn done(self, result: &str) {
        let seconds = self.began.elapsed().as_secs_f32();
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        eprintln!("{result} ({seconds:.1} s)");
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn spinner(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {msg:.dim}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let spinner = ProgressBar::new_spinner().with_style(style).with_prefix(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}
