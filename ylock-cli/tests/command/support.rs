//! What the tests share: a folder of their own, and the command with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What should happen at once has not happened after this.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A folder of a test, with the store of its locks in it.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ylock-command-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> String {
        format!("file://{}/locks?lease=2s", self.0.display())
    }

    /// Returns the command on this store, with an environment of its own.
    pub(crate) fn ylock(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments);
        command.env("YLOCK_STORE", self.store()).env("HOME", &self.0).current_dir(&self.0);
        // For scripts, which end with the test, however that ends.
        command.env("PLACE", &self.0);
        command
    }

    /// Runs the command to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Ended {
        end(self.ylock(arguments))
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.ylock(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    /// Returns a shell script that makes this file, and then waits for that one.
    pub(crate) fn until(&self, made: &str, waited: &str) -> String {
        format!("echo here > {made}; while [ -d $PLACE ] && [ ! -e {waited} ]; do sleep 0.02; done")
    }

    pub(crate) fn make(&self, file: &str) {
        fs::write(self.0.join(file), "").unwrap();
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        // A shell makes it before it has written to it.
        fs::metadata(self.0.join(file)).is_ok_and(|found| found.len() > 0)
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    pub(crate) fn wait_for(&self, file: &str) {
        eventually(file, || self.has(file));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the command without a store.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ylock"));
    command
        .args(arguments)
        .env_remove("YLOCK_STORE")
        .env_remove("YLOCK_CONFIG")
        .env_remove("XDG_CONFIG_HOME");
    command
}

/// What a command has said in the end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

/// Runs a command to its end.
pub(crate) fn end(mut command: Command) -> Ended {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(Some(command.spawn().unwrap())).ended()
}

/// A command that runs. Dropped, it is killed.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn of(child: Child) -> Self {
        Self(Some(child))
    }

    pub(crate) fn send(&self, signal: Signal) {
        let id = self.0.as_ref().unwrap().id();
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
    }

    /// Kills it, and returns without its output, which a command below it may go on to write.
    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until it has ended.
    pub(crate) fn ended(mut self) -> Ended {
        let mut child = self.0.take().unwrap();
        let until = Instant::now() + SOON;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                let _ = child.kill();
                panic!("it does not end: {:?}", Ended::from(child.wait_with_output().unwrap()));
            }
            sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < until, "not within {SOON:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}
