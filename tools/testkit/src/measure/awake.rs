//! Cores that do not sleep while something is measured.
//!
//! A core that sleeps takes a while to wake up, and both sides of a comparison pay for it with every request: what one of them costs more
//! is then a smaller part of the whole than on a machine with other work to do.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;

/// The first argument of a process that keeps the cores awake.
pub(super) const ROLE: &str = "keep-awake";

/// A process of the lowest priority that keeps all cores busy, until this is dropped. Not threads of the measuring process: its CPU time is
/// measured.
#[derive(Debug)]
pub(super) struct Awake(Child);

impl Awake {
    pub(super) fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(program).arg(ROLE);
        let child = command.stdin(Stdio::piped()).spawn();
        Self(child.expect("`chrt` of util-linux"))
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// Does the work of such a process, until the measuring process is gone.
pub(super) fn keep_awake() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..cores {
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
}
