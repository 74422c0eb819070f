//! The gap between two holders of different clients, and what it costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use ylock_core::Locks;

use super::{Measured, Times, group};

/// The figures of clients that wanted one lock all the time.
#[derive(Debug)]
pub struct HandOvers {
    /// The times from the call of a release to the next grant.
    pub gaps: Times,
    /// The requests of all clients together, meanwhile.
    pub requests: u64,
    /// The most turns of one client, divided by the fewest.
    pub unevenness: f64,
}

impl HandOvers {
    /// Returns how many requests each hand-over took.
    pub fn requests_each(&self) -> f64 {
        self.requests as f64 / self.gaps.len().max(1) as f64
    }
}

/// The moment at which the last release was called; the next holder takes it.
type Released = Arc<Mutex<Option<Instant>>>;

#[derive(Clone, Default)]
struct Switches {
    counts: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

/// Lets each client take the same lock again and again, and hold it for this long. What happens in the time to warm up does not count.
/// Closes the clients.
pub async fn contend(clients: Vec<Measured>, hold: Duration, warm_up: Duration, time: Duration) -> HandOvers {
    let (group, released, switches) = (group(), Released::default(), Switches::default());
    let work = |client: &Measured| {
        let locks = client.ylock.locks(group.clone());
        tokio::spawn(take_turns(locks, hold, released.clone(), switches.clone()))
    };
    let workers: Vec<_> = clients.iter().map(work).collect();
    let requests = || clients.iter().map(Measured::requests).sum::<u64>();
    tokio::time::sleep(warm_up).await;
    let before = requests();
    switches.counts.store(true, Ordering::Relaxed);
    tokio::time::sleep(time).await;
    switches.counts.store(false, Ordering::Relaxed);
    let requests = requests() - before;
    switches.stop.store(true, Ordering::Relaxed);
    let (mut gaps, mut each) = (Times::default(), Vec::new());
    for worker in workers {
        let times = worker.await.expect("a worker");
        each.push(times.len());
        gaps.extend(times);
    }
    for client in clients {
        client.ylock.close().await;
    }
    let (most, fewest) = (each.iter().max().copied().unwrap_or(0), each.iter().min().copied().unwrap_or(0));
    HandOvers { gaps, requests, unevenness: most as f64 / fewest as f64 }
}

async fn take_turns(locks: Locks, hold: Duration, released: Released, switches: Switches) -> Times {
    let mut gaps = Times::default();
    while !switches.stop.load(Ordering::Relaxed) {
        let guard = locks.write("hot").await.expect("granted");
        let now = Instant::now();
        if let Some(before) = released.lock().await.take()
            && switches.counts.load(Ordering::Relaxed)
        {
            gaps.push(now - before);
        }
        tokio::time::sleep(hold).await;
        *released.lock().await = Some(Instant::now());
        assert!(guard.unlock().await.expect("released").is_released());
    }
    gaps
}
