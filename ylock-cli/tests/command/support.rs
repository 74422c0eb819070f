//! What the tests share: a folder of their own, and the command with it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What should happen at once has not happened after this.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// A folder of a test, with the store of its locks in it, unless it has another one.
pub(crate) struct Place(PathBuf, Option<String>);

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ylock-command-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path, None)
    }

    /// One on another store.
    pub(crate) fn on(store: &str) -> Self {
        let mut place = Self::new();
        place.1 = Some(store.to_owned());
        place
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> String {
        self.1.clone().unwrap_or_else(|| format!("file://{}/locks?lease=6s", self.0.display()))
    }

    /// Returns the command on this store, with an environment of its own.
    pub(crate) fn ylock(&self, arguments: &[&str]) -> Command {
        self.by(&[], arguments)
    }

    /// Returns a program with its arguments that starts the command.
    pub(crate) fn by(&self, starter: &[&str], arguments: &[&str]) -> Command {
        let mut command = bare_by(starter, arguments);
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
        Running::start(self.ylock(arguments))
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
    bare_by(&[], arguments)
}

fn bare_by(starter: &[&str], arguments: &[&str]) -> Command {
    let words = [starter, &[env!("CARGO_BIN_EXE_ylock")], arguments].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
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

/// Runs a command to its end.
pub(crate) fn end(command: Command) -> Ended {
    Running::start(command).ended()
}

/// A command that runs. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    /// What it writes to standard output and error. Files and no pipes: what a command has left behind may have them open for longer than it
    /// lives.
    written: Option<[File; 2]>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let [(out, stdout), (error, stderr)] = [scratch(), scratch()];
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        Self { child: command.spawn().unwrap(), written: Some([out, error]) }
    }

    /// One whose output goes elsewhere.
    pub(crate) fn of(child: Child) -> Self {
        Self { child, written: None }
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) fn ended(mut self) -> Ended {
        let until = Instant::now() + SOON;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it does not end: {:?}", self.so_far(None));
            sleep(Duration::from_millis(5));
        }
        let code = self.child.wait().unwrap().code();
        self.so_far(code)
    }

    /// Returns what it has written to standard output since this was asked last.
    pub(crate) fn said(&mut self) -> String {
        self.more(0)
    }

    /// Returns what it has written to standard error since this was asked last.
    pub(crate) fn complained(&mut self) -> String {
        self.more(1)
    }

    fn more(&mut self, number: usize) -> String {
        let mut bytes = Vec::new();
        self.written.as_mut().map(|written| written[number].read_to_end(&mut bytes).unwrap());
        String::from_utf8(bytes).unwrap()
    }

    fn so_far(&mut self, code: Option<i32>) -> Ended {
        Ended { code, stdout: self.more(0), stderr: self.more(1) }
    }
}

/// Returns a file without a name: to read from, and to write to.
fn scratch() -> (File, File) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("ylock-output-{}-{number}", std::process::id()));
    let write = File::create_new(&path).unwrap();
    let read = File::open(&path).unwrap();
    fs::remove_file(path).unwrap();
    (read, write)
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the signals that a process ignores, one bit each, from what the system tells of it; none where it does not tell.
pub(crate) fn ignored_signals(status: &str) -> u64 {
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < until, "not within {SOON:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}
