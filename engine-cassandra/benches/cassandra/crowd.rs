//! Measures a thousand clients that wait for one lock: what they ask while nothing happens, and a hand-over among them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use ylock_core::Ylock;
use ylock_engine_cassandra::options::{Notify, SchemaMode};
use ylock_engine_cassandra::{CassandraEngine, driver_api};
use ylock_testkit::measure::{Measured, contend, group, ms};

const CLIENTS: usize = 1_000;
const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(5);
/// Each has been inside once by then.
const WARM_UP: Duration = Duration::from_secs(40);
const TIME: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) async fn run(notify: Notify) {
    let session = SessionBuilder::new().known_nodes(super::hosts()).build().await;
    // A thousand sessions on so small a machine would be measured instead of the lock.
    let session = Arc::new(session.expect("the cluster answers"));
    let clients = stream::iter(0..CLIENTS).map(|_| client(&session, notify)).buffered(16);
    let clients: Vec<_> = clients.collect().await;
    let quiet = while_nothing_happens(&clients).await;
    let mut result = contend(clients, HOLD, WARM_UP, TIME).await;
    println!(
        "{CLIENTS} clients, notify={notify}: {quiet:.0} requests/s while nothing happens; gap p50 {}  p99 {}  {:.1} requests  {} hand-overs",
        ms(result.gaps.quantile(0.5)),
        ms(result.gaps.quantile(0.99)),
        result.requests_each(),
        result.gaps.len(),
    );
}

async fn client(session: &Arc<Session>, notify: Notify) -> Measured {
    let options = driver_api::options(Arc::clone(session), super::KEYSPACE);
    let options = options.with_schema(SchemaMode::Create).with_lease(LEASE);
    let options = match notify {
        Notify::Udp => options.with_notify(notify).with_notify_bind(([127, 0, 0, 1], 0)),
        _ => options,
    };
    let engine = CassandraEngine::connect(&options).await.expect("the cluster answers");
    Measured::new(engine, LEASE, CassandraEngine::requests)
}

/// Returns the requests in a second of all clients together, of which one holds the lock and the others wait.
async fn while_nothing_happens(clients: &[Measured]) -> f64 {
    let group = group();
    let locks = |client: &Measured| client.ylock.locks(group.clone());
    let holder = locks(&clients[0]);
    let guard = holder.write("name").await.expect("granted");
    let wait = |client: &Measured| {
        let locks = locks(client);
        tokio::spawn(async move { drop(locks.write("name").await) })
    };
    let waiting: Vec<_> = clients[1..].iter().map(wait).collect();
    queue_of(&clients[0].ylock, &group, CLIENTS - 1).await;
    tokio::time::sleep(LEASE / 3).await;
    let requests = || clients.iter().map(Measured::requests).sum::<u64>();
    let before = requests();
    tokio::time::sleep(TIME).await;
    let quiet = (requests() - before) as f64 / TIME.as_secs_f64();
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    drop(guard);
    queue_of(&clients[0].ylock, &group, 0).await;
    quiet
}

/// Waits until so many wait.
async fn queue_of(ylock: &Ylock, group: &str, length: usize) {
    let start = Instant::now();
    while ylock.inspect(group, "name").await.is_ok_and(|seen| seen.queue.len() != length) {
        assert!(start.elapsed() < PATIENCE, "the queue does not become {length} long");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
