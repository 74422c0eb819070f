//! The threads of a blocking client, alone in its process so that threads can be counted.
#![cfg(target_os = "linux")]

use std::time::Duration;

use ylock::blocking::Ylock;

const PAUSE: Duration = Duration::from_millis(10);

/// Returns how many threads of clients there are.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("ylock")).count()
}

/// Waits until there are so many threads.
fn wait_for(count: usize) {
    for _ in 0..3000 {
        if threads() == count {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("there are {} threads, not {count}", threads());
}

#[test]
fn a_client_has_two_threads_which_end_with_its_last_value() {
    assert_eq!(threads(), 0);
    let ylock = Ylock::in_memory();
    let guard = ylock.lock("users", "alice").write().wait().unwrap();
    wait_for(2);
    let (clone, locks) = (ylock.clone(), ylock.locks("users"));
    drop((ylock, clone));
    let reading = locks.read("bob").wait().unwrap();
    drop((locks, reading));
    assert!(guard.is_valid());
    wait_for(2);
    drop(guard);
    wait_for(0);
}
