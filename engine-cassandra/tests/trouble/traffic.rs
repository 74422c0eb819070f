//! Clients that go in and out all the time, and notice if two holders that conflict meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use ylock_core::{Locks, Mode, Token};
use ylock_engine_cassandra::CassandraOptions;
use ylock_testkit::{ExclusionOracle, eventually};

use super::cluster;

const CLIENTS: usize = 4;
const NAMES: usize = 2;

/// The names that all clients want.
#[derive(Debug, Default)]
struct Place {
    oracle: ExclusionOracle,
    last_write: parking_lot::Mutex<Option<Token>>,
    visits: AtomicU64,
}

/// Traffic, until it is stopped.
pub(crate) struct Traffic {
    places: Arc<[Place; NAMES]>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    patience: Duration,
}

impl Traffic {
    pub(crate) async fn start(lease: Duration) -> Self {
        Self::start_by(lease, &cluster::options_with(lease)).await
    }

    pub(crate) async fn start_by(lease: Duration, options: &CassandraOptions) -> Self {
        let (group, stop) = (cluster::group(), Arc::new(AtomicBool::new(false)));
        let places: Arc<[Place; NAMES]> = Arc::default();
        let mut workers = Vec::new();
        for client in 0..CLIENTS {
            let ylock = cluster::client_by(lease, options).await;
            let locks = ylock.locks(group.clone());
            for name in 0..NAMES {
                let (locks, places, stop) = (locks.clone(), Arc::clone(&places), Arc::clone(&stop));
                workers.push(tokio::spawn(async move {
                    let mut round = client;
                    while !stop.load(Ordering::Relaxed) {
                        let mode = if round % 3 == 0 { Mode::Read } else { Mode::Write };
                        visit(&locks, name, mode, &places[name]).await;
                        round += 1;
                    }
                }));
            }
        }
        Self { places, stop, workers, patience: lease * 4 }
    }

    /// Waits until every place has been visited several times more; fails if two holders that conflict met.
    pub(crate) async fn until_more(&self) {
        let before: Vec<_> = self.visits();
        let more = || async {
            assert!(!self.workers.iter().any(JoinHandle::is_finished), "a visitor failed");
            self.visits().iter().zip(&before).all(|(now, before)| now - before > 10)
        };
        eventually(self.patience, "locks go from hand to hand", more).await;
    }

    /// Ends the traffic. Returns how many visits there were.
    pub(crate) async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.expect("no conflicting holders met");
        }
        self.places.iter().map(|place| place.visits.load(Ordering::Relaxed)).sum()
    }

    fn visits(&self) -> Vec<u64> {
        self.places.iter().map(|place| place.visits.load(Ordering::Relaxed)).collect()
    }
}

/// Goes in and out once. A store that does not answer is no failure of the lock.
async fn visit(locks: &Locks, name: usize, mode: Mode, place: &Place) {
    let name = format!("name-{name}");
    let entered = match mode {
        Mode::Read => locks.read(name).await,
        Mode::Write => locks.write(name).await,
    };
    let guard = match entered {
        Ok(guard) => guard,
        Err(error) => return assert!(error.is_retryable(), "{error}"),
    };
    // A guard that was lost meanwhile proves nothing about other holders.
    if guard.is_valid() {
        place.oracle.visit(&guard).await;
        if mode == Mode::Write {
            let before = place.last_write.lock().replace(guard.token().expect("a token"));
            assert!(before < guard.token(), "tokens grow from writer to writer");
        }
        place.visits.fetch_add(1, Ordering::Relaxed);
    }
    drop(guard);
}
