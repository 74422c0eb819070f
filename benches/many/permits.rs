//! A semaphore that is busy, beside as many single locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ylock::layer::{ClientEvent, ClientView};
use ylock::{Layer, Ylock};

use crate::TIME;
use crate::clients::{CLIENTS, TASKS};

/// How many permits there are, and for how long each is held.
const PERMITS: u32 = 20;
const HOLD: Duration = Duration::from_millis(5);

/// Counts the requests that the clients send.
#[derive(Debug, Default)]
struct Counts(AtomicU64);

impl Layer for Counts {
    fn client_event(&self, _: &ClientView, event: &ClientEvent) {
        self.0.fetch_add(u64::from(matches!(event, ClientEvent::Requested { .. })), Ordering::Relaxed);
    }
}

pub(crate) async fn measure(clients: &[Ylock], group: &str) {
    let counts = Arc::new(Counts::default());
    let clients: Vec<_> = clients.iter().map(|client| client.layer_arc(Arc::clone(&counts) as _)).collect();
    let clients = &clients[..];
    let semaphore = busy(clients, async |ylock, _| {
        let permit = ylock.locks(group).semaphore("permits", PERMITS).acquire().await.expect("granted");
        tokio::time::sleep(HOLD).await;
        assert!(permit.unlock().await.expect("released").is_released());
    });
    let (semaphore, of_semaphore) = (semaphore.await, counts.0.swap(0, Ordering::Relaxed));
    let singly = busy(clients, async |ylock, task| {
        let guard = ylock.locks(group).write(task % PERMITS as usize).await.expect("granted");
        tokio::time::sleep(HOLD).await;
        assert!(guard.unlock().await.expect("released").is_released());
    });
    let (singly, of_locks) = (singly.await, counts.0.swap(0, Ordering::Relaxed));
    let of = |requests: u64, grants: f64| requests as f64 / (grants * TIME.as_secs_f64());
    println!(
        "{TASKS} tasks of {CLIENTS} clients, hold {} ms: {semaphore:.0} grants/s of {PERMITS} permits, {:.1} requests for each; {singly:.0} of {PERMITS} locks, {:.1} requests",
        HOLD.as_millis(),
        of(of_semaphore, semaphore),
        of(of_locks, singly),
    );
}

/// Returns how often in a second `work` was done, by as many at once as there are tasks.
async fn busy(clients: &[Ylock], work: impl AsyncFn(&Ylock, usize)) -> f64 {
    let (start, work) = (Instant::now(), &work);
    let tasks = (0..TASKS).map(|task| async move {
        let mut done = 0;
        while start.elapsed() < TIME {
            work(&clients[task % CLIENTS], task).await;
            done += 1;
        }
        done
    });
    let done: u32 = join_all(tasks).await.into_iter().sum();
    f64::from(done) / start.elapsed().as_secs_f64()
}
