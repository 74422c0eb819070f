//! Servers of a cluster die, and give parts of the locks to each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ylock_core::engine::Engine;
use ylock_core::{ErrorKind, Key, Options, Ylock};
use ylock_engine_redis::transport::place;
use ylock_engine_redis::{RedisEngine, RedisOptions};
use ylock_testkit::quiet_time;

use super::own_cluster::OwnCluster;
use super::own_server::{Disk, OwnServer};
use super::{LOCKS, LONG, client_with, joins, replicated, until, waiters, within};

const LEASE: Duration = Duration::from_secs(15);

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_the_replica_has_stays_when_it_takes_over() {
    let mut cluster = OwnCluster::start(3).await;
    let (one, two) = (
        client_with(cluster.options().with_lease(LEASE).with_min_replicas(1)).await,
        client_with(cluster.options().with_lease(LEASE)).await,
    );
    let guard = replicated(&one).await;
    assert_eq!(guard.token(), None, "a server that takes over could give the same again");
    let waiting = joins(&two, 0).await;
    let (_, master) = cluster.place_of("users").await;
    cluster.servers[master].kill();
    until("the waiter is in the queue of the new master", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().is_valid());
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn locks_that_are_given_from_server_to_server_stay_locks() {
    let cluster = OwnCluster::start(0).await;
    let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let is_inside = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for _ in 0..4 {
        let ylock = client_with(cluster.options().with_lease(LEASE)).await;
        let (stop, rounds, is_inside) = (Arc::clone(&stop), Arc::clone(&rounds), Arc::clone(&is_inside));
        workers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let guard = ylock.locks("users").write("alice").await.unwrap();
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two are inside");
                tokio::task::yield_now().await;
                is_inside.store(false, Ordering::SeqCst);
                assert!(guard.unlock().await.unwrap().is_released());
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    until("work begins", async || rounds.load(Ordering::Relaxed) > 0).await;
    let (place, mut keeper) = cluster.place_of("users").await;
    for _ in 0..20 {
        let next = (keeper + 1) % 3;
        cluster.begin_move(&place, keeper, next).await;
        goes_on(&rounds).await;
        cluster.end_move(&place, keeper, next).await;
        goes_on(&rounds).await;
        keeper = next;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        within("the worker ends", worker).await.unwrap();
    }
}

async fn goes_on(rounds: &AtomicU64) {
    let before = rounds.load(Ordering::Relaxed);
    until("work goes on", async || rounds.load(Ordering::Relaxed) > before + 8).await;
}

/// The waiter listens at the server that its part leaves: the one that the lock is on already cannot tell it of its turn, and must not pass it
/// over for that.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_keeps_its_turn_while_its_part_moves() {
    let cluster = OwnCluster::start(0).await;
    let options = cluster.options().with_lease(LONG);
    let (one, three) = (client_with(options.clone()).await, client_with(options.clone()).await);
    let engine = Arc::new(RedisEngine::connect(&options).await.unwrap());
    let two = Ylock::from_arc(Arc::clone(&engine) as Arc<dyn Engine>)
        .with_options(Options::default().with_lease(LONG));
    let guard = one.locks("users").write("alice").await.unwrap();
    let mut waiting = joins(&two, 0).await;
    let (place, keeper) = cluster.place_of("users").await;
    let neighbour = neighbour_of(&place);
    let _stays = one.locks("users").write(neighbour.as_str()).await.unwrap();
    let next = (keeper + 1) % 3;
    cluster.begin_move(&place, keeper, next).await;
    // It learns from one question where the lock is, and says with the next one that no message reaches it there. The third has begun.
    let before = engine.requests();
    until("the waiter has asked there", async || engine.requests() >= before + 3).await;
    // Another lock of the part is still where it was. What is heard of that one says nothing of this one.
    let before = engine.requests();
    assert!(two.inspect("users", &neighbour).await.unwrap().holders.len() == 1);
    until("the waiter has asked once more", async || engine.requests() >= before + 2).await;
    assert!(guard.unlock().await.unwrap().is_released());
    let newcomers = three.locks("users");
    let first = async {
        tokio::select! {
            biased;
            waited = &mut waiting => waited.unwrap(),
            newcomer = newcomers.write("alice") => panic!("a newcomer gets in before a client that waits: {newcomer:?}"),
        }
    };
    drop(within("the waiter gets in", first).await);
    cluster.end_move(&place, keeper, next).await;
}

/// Returns the name of another lock in the same part.
fn neighbour_of(place_of_it: &str) -> String {
    let part = |place: &str| place.split('}').next().map(str::to_owned);
    let is_neighbour =
        |name: &String| part(&place("ylock", &Key::new("users", name).unwrap())) == part(place_of_it);
    (0..).map(|number| format!("neighbour-{number}")).find(is_neighbour).unwrap()
}

/// While the part is away the server says so, on the connection over which waiters for other locks are told.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn waiters_are_heard_also_after_their_part_was_away() {
    let cluster = OwnCluster::start(0).await;
    let (one, two) = (
        client_with(cluster.options().with_lease(LONG)).await,
        client_with(cluster.options().with_lease(LONG)).await,
    );
    let guard = one.locks("users").write("alice").await.unwrap();
    let (place, keeper) = cluster.place_of("users").await;
    let waiting = joins(&two, 0).await;
    let (away, channel) = ((keeper + 1) % 3, channel_of(&place));
    for (from, to) in [(keeper, away), (away, keeper)] {
        cluster.move_slot(&place, from, to).await;
    }
    until("the waiter hears the server again", async || {
        let question = ["PUBSUB", "SHARDCHANNELS", &channel];
        let channels: Vec<String> = cluster.servers[keeper].ask(&question).await.unwrap();
        channels.len() == 1
    })
    .await;
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    assert!(within("the next one gets in", waiting).await.unwrap().unlock().await.unwrap().is_released());
}

/// A pattern for the channels of the lock's part.
fn channel_of(place: &str) -> String {
    let (start, _) = place.split_once('}').expect("a part in braces");
    format!("{start}}}:*")
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_killed_connection_for_messages_costs_a_second() {
    let cluster = OwnCluster::start(0).await;
    let (one, two) = (
        client_with(cluster.options().with_lease(LONG)).await,
        client_with(cluster.options().with_lease(LONG)).await,
    );
    let guard = one.locks("users").write("alice").await.unwrap();
    let waiting = joins(&two, 0).await;
    for server in &cluster.servers {
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    }
    assert!(within("given back", guard.unlock()).await.unwrap().is_released());
    let since = quiet_time();
    drop(within("the next one gets in", waiting).await.unwrap());
    let took = quiet_time() - since;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_server_that_is_not_part_of_a_cluster_is_refused() {
    let server = OwnServer::start(Disk::Nothing).await;
    let options = RedisOptions::cluster([("127.0.0.1".to_owned(), server.port())]);
    let error = RedisEngine::connect(&options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("is not part of a cluster"), "{error}");
}

/// The master that hangs takes all requests and answers none. Locks that other masters keep are renewed in time.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_master_that_hangs_costs_no_lock_on_another_one() {
    let cluster = OwnCluster::start(0).await;
    for server in &cluster.servers {
        // The other servers go on serving, also where the machine is so busy that they hear nothing of each other for a while.
        server.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await;
        server.command(&["CONFIG", "SET", "cluster-node-timeout", "60000"]).await;
    }
    let ylock = client_with(cluster.options().with_lease(Duration::from_secs(3))).await;
    let mut guards = Vec::new();
    for number in 0..90 {
        guards.push(ylock.locks("many").write(number.to_string()).await.unwrap());
        // Due at different moments, as in a program that lives.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let kept: Vec<String> = cluster.servers[2].ask(&["KEYS", LOCKS]).await.unwrap();
    cluster.servers[2].signal("STOP");
    tokio::time::sleep(Duration::from_secs(8)).await;
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    cluster.servers[2].signal("CONT");
    assert!((1..89).contains(&kept.len()), "{} are kept by it", kept.len());
    assert_eq!(lost, kept.len(), "those that it keeps, and no others");
}
