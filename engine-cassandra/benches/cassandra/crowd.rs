//! Measures many clients that wait for one lock: what they ask while nothing happens, and what it takes until each had a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use ylock_core::Locks;
use ylock_engine_cassandra::options::{Notify, SchemaMode};
use ylock_engine_cassandra::{CassandraEngine, driver_api};
use ylock_testkit::measure::{Measured, Times, group, ms};

const CROWDS: [usize; 3] = [100, 300, 1_000];
const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(5);
/// A queue that long grows slowly; each newcomer asks for all of it.
const BETWEEN: Duration = Duration::from_millis(40);
const TIME: Duration = Duration::from_secs(20);
/// The longest until all wait, and again until each had a turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the turns have taken, and when the last one ended.
type Turns = Arc<Mutex<(Times, Option<Instant>)>>;

pub(crate) async fn run(notify: Notify) {
    for count in CROWDS {
        let session = SessionBuilder::new().known_nodes(super::hosts()).build().await;
        // A thousand sessions on so small a machine would be measured instead of the lock.
        let session = Arc::new(session.expect("the cluster answers"));
        let clients = stream::iter(0..count).map(|_| client(&session, notify)).buffered(16);
        let clients: Vec<_> = clients.collect().await;
        wait_and_take_turns(&clients, notify).await;
    }
}

async fn client(session: &Arc<Session>, notify: Notify) -> Measured {
    let options = driver_api::options(Arc::clone(session), super::KEYSPACE);
    let options = options.with_schema(SchemaMode::Create).with_lease(LEASE).with_notify(notify);
    let engine = CassandraEngine::connect(&options).await.expect("the cluster answers");
    Measured::new(engine, LEASE, CassandraEngine::requests)
}

async fn wait_and_take_turns(clients: &[Measured], notify: Notify) {
    let (group, turns, count) = (group(), Turns::default(), clients.len());
    let holder = clients[0].ylock.locks(group.clone());
    let guard = holder.write("name").await.expect("granted");
    let mut waiting = Vec::new();
    for client in &clients[1..] {
        waiting.push(tokio::spawn(take_turn(client.ylock.locks(group.clone()), Arc::clone(&turns))));
        tokio::time::sleep(BETWEEN).await;
    }
    let joined = queue_of(&clients[0], &group, count - 1).await;
    tokio::time::sleep(LEASE / 3).await;
    // They are counted for the session, which all have.
    let requests = || clients[0].requests();
    let before = requests();
    tokio::time::sleep(TIME).await;
    let quiet = (requests() - before) as f64 / TIME.as_secs_f64();
    let failed = waiting.iter().filter(|waiter| waiter.is_finished()).count();
    println!(
        "{count:4} clients, notify={notify}: {quiet:5.0} requests/s while nothing happens; seen waiting: {joined}, given up: {failed}"
    );
    let (before, start) = (requests(), Instant::now());
    drop(guard);
    let _ = tokio::time::timeout(PATIENCE, join_all(waiting.iter_mut())).await;
    waiting.iter().for_each(JoinHandle::abort);
    let gaps = &mut turns.lock().await.0;
    println!(
        "      then turns: gap p50 {}  p99 {}  {:.1} requests, {} gaps between {} turns in {:.1} s",
        ms(gaps.quantile(0.5)),
        ms(gaps.quantile(0.99)),
        (requests() - before) as f64 / gaps.len().max(1) as f64,
        gaps.len(),
        count - 1,
        start.elapsed().as_secs_f64(),
    );
}

/// Waits for a turn, and notes how long after the turn before it came.
async fn take_turn(locks: Locks, turns: Turns) {
    let Ok(guard) = locks.write("name").await else { return };
    let entered = Instant::now();
    tokio::time::sleep(HOLD).await;
    let (gaps, released) = &mut *turns.lock().await;
    if let Some(before) = released.replace(Instant::now()) {
        gaps.push(entered.saturating_duration_since(before));
    }
    drop(guard);
}

/// Waits until so many wait, but not for ever. Returns whether they do.
async fn queue_of(client: &Measured, group: &str, length: usize) -> bool {
    let start = Instant::now();
    while !client.ylock.inspect(group, "name").await.is_ok_and(|seen| seen.queue.len() == length) {
        if start.elapsed() > PATIENCE {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    true
}
