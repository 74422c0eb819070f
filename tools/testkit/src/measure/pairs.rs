//! Acquire and release, one after the other.

use std::time::Instant;

use ylock_core::Locks;

use super::Times;

/// Returns how long each of `count` pairs takes, on one name that no other owner wants.
///
/// # Panics
/// If one fails.
pub async fn pairs(locks: &Locks, name: &str, count: usize) -> Times {
    let mut times = Times::default();
    for _ in 0..count {
        let start = Instant::now();
        let guard = locks.write(name).await.expect("granted");
        assert!(guard.unlock().await.expect("released").is_released());
        times.push(start.elapsed());
    }
    times
}
