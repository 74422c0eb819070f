//! Another process that runs the same test: for what happens to a whole process, such as a pause.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use ylock_core::{Guard, Lease};

use super::own_servers::signal;
use super::{quiet_time, within};

/// The variable that tells such a process what its test told it.
const TOLD: &str = "YLOCK_TEST_OTHER";
/// The beginning of its lines; other lines are those of the test harness.
const SAYS: &str = "it says: ";
const BOUND: Duration = Duration::from_secs(60);

/// Another process that runs the same test. Killed when dropped.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl ChildProcess {
    /// Runs the test of this whole name, which calls this, once more, and tells it something.
    ///
    /// # Panics
    /// If that cannot be started.
    pub fn start(test: &str, told: &str) -> Self {
        Self::start_by(Command::new(std::env::current_exe().expect("this program")), test, told)
    }

    /// Does what [`start`](Self::start) does, by a command that runs this program, such as one that runs it as another user.
    ///
    /// # Panics
    /// If that cannot be started.
    pub fn start_by(mut command: Command, test: &str, told: &str) -> Self {
        command.args(["--exact", test, "--include-ignored", "--nocapture"]);
        let mut child = command.env(TOLD, told).stdout(Stdio::piped()).spawn().expect("started");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(said) = line.strip_prefix(SAYS) {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Self { child, lines }
    }

    /// Returns what this process was told, if it is the other process.
    pub fn told() -> Option<String> {
        std::env::var(TOLD).ok()
    }

    /// Says something to the test, from the other process.
    pub fn say(what: &str) {
        // The harness does not end its own line before.
        println!("\n{SAYS}{what}");
    }

    /// Pauses the process. When this returns, all of its threads stand still.
    pub fn stop(&self) -> Instant {
        signal(&self.child, "STOP");
        Instant::now()
    }

    /// Ends the pause.
    pub fn go_on(&self) {
        signal(&self.child, "CONT");
    }

    /// Returns the next thing that the process says, after the word that is expected.
    ///
    /// # Panics
    /// If it says something else, or nothing for a minute.
    pub async fn says(&mut self, word: &str) -> String {
        let said = within(BOUND, word, self.lines.recv()).await;
        let said = said.unwrap_or_else(|| panic!("{word}: it says nothing"));
        said.strip_prefix(word).unwrap_or_else(|| panic!("{word}: {said}")).trim().to_owned()
    }

    /// Returns all that the process still says until it ends.
    ///
    /// # Panics
    /// If it does not end within a minute.
    pub async fn says_until_it_ends(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(line) = within(BOUND, "it ends", self.lines.recv()).await {
            said.push(line);
        }
        said
    }

    /// Waits until the process has stopped itself, or has ended. Returns whether it has stopped.
    ///
    /// # Panics
    /// If neither happens within a minute.
    pub async fn has_stopped(&mut self) -> bool {
        let begun = quiet_time();
        while quiet_time() - begun < BOUND {
            let status =
                std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
            if status.contains("\nState:\tT") {
                return true;
            }
            if self.child.try_wait().expect("its own child").is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("it neither stops nor ends");
    }

    /// Returns what the process has said and was not asked for yet.
    pub fn has_said(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.try_recv().ok()).collect()
    }

    /// Returns the token that the process says next, after the word that is expected.
    ///
    /// # Panics
    /// As [`says`](Self::says), or if it is no number.
    pub async fn says_token(&mut self, word: &str) -> i64 {
        self.says(word).await.parse().expect("a token")
    }

    /// Holds until this process has stood still for longer than the lease, and tells what it finds then.
    ///
    /// # Panics
    /// If that does not happen within a minute, or the lock is not lost.
    pub async fn hold_through_pause(guard: Guard, lease: Duration) {
        let held = guard.lease();
        let (begun, looks) = oneshot::channel();
        let pause = tokio::task::spawn_blocking(move || Self::is_valid_after_pause(&held, lease, begun));
        // The other side pauses this process as soon as it hears of the lock.
        within(BOUND, "its thread looks", looks).await.expect("no panic");
        Self::say(&format!("holds {}", guard.token().expect("a token")));
        Self::say(&format!("valid {}", within(BOUND, "it is paused", pause).await.expect("no panic")));
        Self::say(&format!("lost {:?}", within(BOUND, "it is told", guard.lost()).await));
        let unlocked = within(BOUND, "given back", guard.unlock()).await.expect("an answer");
        Self::say(&format!("unlocked {unlocked:?}"));
    }

    /// Checks the other side of [`hold_through_pause`](Self::hold_through_pause), from the end of the pause on: it knew at once, and took
    /// nothing away by giving back.
    ///
    /// # Panics
    /// If that is not so.
    pub async fn knows_that_it_was_lost(&mut self) {
        assert_eq!(self.says("valid").await, "false");
        let reason = self.says("lost").await;
        assert!(["Lapsed", "Gone"].contains(&&*reason), "{reason}");
        assert_eq!(self.says("unlocked").await, "WasLost");
    }

    /// Looks at the lease after a pause, on a thread of its own, before any task runs.
    fn is_valid_after_pause(lease: &Lease, pause: Duration, begun: oneshot::Sender<()>) -> bool {
        let mut last = Instant::now();
        let _ = begun.send(());
        loop {
            thread::sleep(Duration::from_millis(1));
            // The clock is read once: a pause between two readings would be seen by neither.
            let now = Instant::now();
            if now.duration_since(last) > pause {
                return lease.is_valid();
            }
            last = now;
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
