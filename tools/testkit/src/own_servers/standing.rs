//! The wait until a process that was stopped stands still: not when the signal was sent, but when the last of its threads has heard of it.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that it may take: a thread inside the kernel hears of it later.
const BOUND: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_micros(200);

/// Waits until all threads of a process that was sent `SIGSTOP` stand still. Where there is no `/proc` nothing tells, and this returns
/// at once.
///
/// # Panics
/// If one of them still runs after ten seconds.
pub fn await_standing(process: u32) {
    let tasks = format!("/proc/{process}/task");
    let (start, mut times) = (Instant::now(), 0);
    // Twice, because a thread that was looked at late may have started another thread before.
    while times < 2 && Path::new(&tasks).exists() {
        if all_stand(&tasks) {
            times += 1;
        } else {
            times = 0;
            assert!(start.elapsed() < BOUND, "process {process} was stopped and still runs");
            sleep(PAUSE);
        }
    }
}

fn all_stand(tasks: &str) -> bool {
    let Ok(tasks) = std::fs::read_dir(tasks) else { return false };
    tasks.flatten().all(|task| {
        // A thread that has just ended has no state.
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes().first().copied());
        !matches!(state, Some(Some(b'R' | b'S' | b'D' | b'I' | b'W' | b'P' | b'K')))
    })
}
