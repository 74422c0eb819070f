//! What this process uses while it works.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The CPU time and the context switches of this process so far, or between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time, in steps of ten milliseconds.
    pub cpu: Duration,
    /// How often a thread of the process waited for something, or lost its core to another. Of threads that live.
    pub switches: u64,
}

/// The length of a step in which Linux counts CPU time.
const TICK: Duration = Duration::from_millis(10);

impl Usage {
    /// Returns what the process has used so far.
    pub fn now() -> Self {
        Self { cpu: cpu(), switches: switches() }
    }

    /// Returns what was used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let switches = self.switches.saturating_sub(earlier.switches);
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), switches }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, switches: self.switches + other.switches }
    }
}

fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|count| count.parse::<u32>().ok());
    TICK * ticks.sum::<u32>()
}

fn switches() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_thread = |status: String| -> u64 {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        counts.filter_map(|line| line.rsplit('\t').next()?.parse::<u64>().ok()).sum()
    };
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).map(of_thread).sum()
}

/// Returns how many futex calls this process makes in one second, while it works elsewhere. `None` where `perf` does not count them.
pub async fn futex_calls_in_a_second() -> Option<f64> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x,", "-e", "syscalls:sys_enter_futex", "-p", &std::process::id().to_string()]);
    perf.args(["sleep", "1"]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || perf.output()).await.ok()?.ok()?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    printed.lines().find_map(|line| line.split_once(",,syscalls:")?.0.parse().ok())
}
