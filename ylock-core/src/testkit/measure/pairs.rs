//! Acquire and release, one after the other.

use std::time::Instant;

use super::Times;
use crate::Locks;

/// How long each of so many pairs takes, by one name that nobody else wants.
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
