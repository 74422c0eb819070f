//! The parent: starts workers, kills workers if it is told to, and writes down their reports.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::account::Report;
use crate::audit::Books;
use crate::settings::Settings;

/// The time that the workers have to end after they were asked to.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of workers that may end with an error. Beyond this something is badly wrong; killed workers do not count.
const MOST_FAILURES: usize = 20;

/// The workers at work, and the books of the parent.
#[derive(Debug)]
pub(crate) struct Office {
    settings: Settings,
    workers: BTreeMap<i32, Child>,
    events: (mpsc::UnboundedSender<Event>, mpsc::UnboundedReceiver<Event>),
    next_number: i32,
    progress: ProgressBar,
    /// What was last printed where there is no terminal for the bar: the second, and the number of transfers.
    printed: (u64, u64),
    pub(crate) books: Books,
    /// Set when the next worker that begins a transfer shall be killed.
    wants_blood: bool,
    pub(crate) killed: usize,
    failed: usize,
    is_over: bool,
}

#[derive(Debug)]
enum Event {
    Said(i32, String),
    Ended(i32),
}

impl Office {
    pub(crate) fn open(settings: Settings) -> Self {
        let Settings { workers, accounts, seconds, .. } = settings;
        let locks = if settings.no_lock { "without locks" } else { "with locks" };
        eprintln!("{workers} processes move money between {accounts} accounts for {seconds} s, {locks} ...");
        Self {
            progress: progress_bar(seconds),
            printed: (0, 0),
            books: Books::open(settings.names()),
            settings,
            workers: BTreeMap::new(),
            events: mpsc::unbounded_channel(),
            next_number: 1,
            wants_blood: false,
            killed: 0,
            failed: 0,
            is_over: false,
        }
    }

    /// Lets the workers work for their time, and waits until they have ended.
    pub(crate) async fn work(&mut self) -> Result<()> {
        for _ in 0..self.settings.workers {
            self.start_one()?;
        }
        let start = Instant::now();
        let end = start + Duration::from_secs(self.settings.seconds);
        let mut tick = interval_at(start, Duration::from_millis(100));
        let mut kill = interval_at(start + Duration::from_secs(1), Duration::from_secs(1));
        kill.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < end || !self.has_tested_something() {
            tokio::select! {
                _ = tick.tick() => self.show(start),
                _ = kill.tick(), if self.settings.kill => self.wants_blood = true,
                Some(event) = self.events.1.recv() => self.note(event).await?,
            }
        }
        self.end_all().await
    }

    /// Returns whether enough has happened that the books tell something, however slow the machine is.
    fn has_tested_something(&self) -> bool {
        self.books.acknowledged >= self.settings.transfers && (self.killed > 0 || !self.settings.kill)
    }

    /// Closes the pipes to the workers, which tells them to end, and notes all that they still report.
    async fn end_all(&mut self) -> Result<()> {
        (self.is_over, self.wants_blood) = (true, false);
        for worker in self.workers.values_mut() {
            drop(worker.stdin.take());
        }
        let all_ended = async {
            while !self.workers.is_empty() {
                let event = self.events.1.recv().await.context("this object keeps a sender")?;
                self.note(event).await?;
            }
            Ok(())
        };
        let result = tokio::time::timeout(PATIENCE, all_ended).await;
        self.progress.finish_and_clear();
        result
            .with_context(|| format!("a worker was still busy {PATIENCE:?} after it had been asked to end"))?
    }

    fn start_one(&mut self) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        let mut worker = Command::new(std::env::current_exe()?)
            .args(self.settings.for_worker(number))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a worker")?;
        let stdout = worker.stdout.take().context("stdout is a pipe")?;
        self.workers.insert(number, worker);
        tokio::spawn(listen(number, stdout, self.events.0.clone()));
        Ok(())
    }

    /// Kills a worker with SIGKILL, somewhere in the middle of a transfer: it gets no chance to give anything back.
    async fn kill(&mut self, number: i32) -> Result<()> {
        let Some(worker) = self.workers.get_mut(&number) else { return Ok(()) };
        sleep(Duration::from_micros(rand::random_range(0..10_000))).await;
        worker.kill().await?;
        self.wants_blood = false;
        self.killed += 1;
        self.start_one()
    }

    /// Writes down an event.
    async fn note(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Said(worker, line) => {
                let report: Report = line.parse()?;
                let begins = matches!(report, Report::Begins(_));
                self.books.note(worker, report);
                if begins && self.wants_blood {
                    self.kill(worker).await?;
                }
            }
            Event::Ended(number) => {
                let Some(mut worker) = self.workers.remove(&number) else { return Ok(()) };
                let status = worker.wait().await?;
                // A worker that was killed has no code.
                if status.code().is_some_and(|code| code != 0) {
                    self.replace_failed()?;
                }
            }
        }
        Ok(())
    }

    /// Replaces a worker that ended by itself, because it did not know the outcome of a write. That is no failure of the locks.
    fn replace_failed(&mut self) -> Result<()> {
        self.failed += 1;
        ensure!(self.failed < MOST_FAILURES, "{} workers ended with an error", self.failed);
        if self.is_over { Ok(()) } else { self.start_one() }
    }

    /// Shows how far it is: as a bar, or where there is no terminal as a line a second.
    fn show(&mut self, start: Instant) {
        let mut text = format!("{} transfers", self.books.acknowledged);
        if self.settings.kill {
            text += &format!(", {} workers killed", self.killed);
        }
        self.progress.set_position(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        let now = (start.elapsed().as_secs(), self.books.acknowledged);
        if self.progress.is_hidden() && now.0 > self.printed.0 && now.1 > self.printed.1 {
            eprintln!("  {text} after {} s", now.0);
            self.printed = now;
        }
        self.progress.set_message(text);
    }
}

/// Passes on the lines of a worker, to the last one, also after the worker was killed.
async fn listen(worker: i32, stdout: ChildStdout, events: mpsc::UnboundedSender<Event>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = events.send(Event::Said(worker, line));
    }
    let _ = events.send(Event::Ended(worker));
}

fn progress_bar(seconds: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(seconds * 1000).with_style(style)
}
