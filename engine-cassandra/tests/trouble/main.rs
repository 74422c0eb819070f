//! What happens to locks while nodes of the cluster die, stop and return.
//!
//! Run by `cargo xtask test`, which started the nodes and so may break them, when no other test uses them.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

#[cfg(feature = "scylla-1")]
mod clocks;
#[path = "../cluster/mod.rs"]
mod cluster;
mod coordinators;
mod holds;
mod nodes;
mod requests;
mod timestamps;
mod traffic;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ylock_core::{ErrorKind, Unlocked};
use ylock_testkit::{an_outage_is_told_as_one, eventually, within};

use holds::Holds;
use nodes::{Broken, How};
use requests::Newcomer;
use traffic::Traffic;

/// Long enough for one node that answers nothing to be noticed by the driver and left.
const LEASE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_node_that_is_killed_while_locks_are_held_harms_nobody() {
    one_node_fails(How::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_node_that_is_stopped_while_locks_are_held_harms_nobody() {
    one_node_fails(How::Stopped).await;
}

/// Locks that are held stay held for longer than a lease, others go from hand to hand, and no two holders that conflict meet, while the
/// node is away and when it is back with all that it missed.
async fn one_node_fails(how: How) {
    let holder = cluster::client_with(LEASE).await;
    let held = holder.locks(cluster::group());
    let mut guards = Vec::new();
    for name in 0..20 {
        guards.push(held.write(format!("held-{name}")).await.unwrap());
    }
    let traffic = Traffic::start(LEASE).await;
    traffic.until_more().await;

    let broken = Broken::one(2, how).await;
    traffic.until_more().await;
    let newcomer = within(LEASE * 2, "a new client connects", cluster::client_with(LEASE)).await;
    let taken = newcomer.locks(held.group()).write("held-0").now().await.unwrap();
    assert!(taken.is_none(), "what is held stays held");
    // Every lease was renewed at least once without the node.
    tokio::time::sleep(LEASE + LEASE / 2).await;
    assert!(guards.iter().all(|guard| guard.is_valid()), "one node down loses no lock");
    traffic.until_more().await;

    broken.mend().await;
    traffic.until_more().await;
    let visits = traffic.stop().await;
    assert!(visits > 0);
    for guard in guards {
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Released);
    }
    holder.close().await;
}

/// How long the node is cut off: several leases.
const CUT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_node_that_hears_nothing_of_its_peers_costs_no_lock() {
    let default = Holds::take(50, None).await;
    let impatient = Holds::take(50, Some(Duration::from_secs(1))).await;
    let traffic = Traffic::start(LEASE).await;
    traffic.until_more().await;

    let broken = Broken::one(3, How::Cut).await;
    // Not shorter, whatever traffic does: what is asked is whether all renewals of this time get through.
    tokio::time::sleep(CUT).await;
    let lost = [&default, &impatient].map(|holds| (holds.lost(), holds.count()));
    println!("lost with the default request timeout and with 1 s: {lost:?}");
    traffic.until_more().await;

    broken.mend().await;
    traffic.until_more().await;
    assert!(traffic.stop().await > 0);
    assert_eq!(lost.map(|(lost, _)| lost), [0, 0], "two nodes of three are well");
    default.give_back().await;
    impatient.give_back().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_read_does_not_wait_for_a_node_that_hangs_and_a_write_is_sent_once() {
    // Each goes to the node that hangs by a chance of one third: that none of thirty does happens once in 190 000 times.
    let newcomers = stream::iter(0..60).map(|_| Newcomer::connect()).buffered(6);
    let newcomers: Vec<_> = newcomers.collect().await;
    let (readers, writers) = newcomers.split_at(30);
    let broken = Broken::one(3, How::Stopped).await;
    let reads = join_all(readers.iter().map(Newcomer::read)).await;
    let writes = join_all(writers.iter().map(Newcomer::write)).await;
    broken.mend().await;
    let [hedged, in_vain] = [reads, writes].map(|all| all.into_iter().filter(|met| *met).count());
    println!("{hedged} of 30 reads asked a second node, {in_vain} of 30 writes met the one that hangs");
    assert!(hedged > 0 && in_vain > 0, "no request met the node that hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn without_a_majority_nothing_is_acquired_until_it_is_back() {
    let ylock = cluster::client_with(LEASE).await;
    let users = ylock.locks(cluster::group());
    let held = users.write("held").await.unwrap();

    let broken = Broken::two(2, 3, How::Killed).await;
    let start = Instant::now();
    for attempt in ["try_write", "write"] {
        let outcome = match attempt {
            "write" => within(LEASE * 2, "an answer", users.write("free")).await.map(Some),
            _ => within(LEASE, "an answer", users.write("free").now()).await,
        };
        let error = outcome.err().unwrap_or_else(|| panic!("{attempt} was granted by one node of three"));
        // Or it is unknown whether the claim got through: then it is being undone, and nothing was acquired either.
        let kinds = [ErrorKind::Unavailable, ErrorKind::Indeterminate];
        assert!(kinds.contains(&error.kind()), "{attempt}: {error}");
        assert_eq!(error.key().map(|key| key.name()), Some("free"), "{attempt}: {error}");
    }
    let request_timeout = cluster::options_with(LEASE).request_timeout();
    an_outage_is_told_as_one(&ylock, users.group(), request_timeout).await;
    let bound = LEASE * 2;
    within(bound, "a lock that cannot be renewed is lost", held.lost()).await;
    assert!(!held.is_valid());
    println!("refused and lost within {:.1} s", start.elapsed().as_secs_f64());

    broken.mend().await;
    for name in ["free", "held"] {
        let guard = within(LEASE * 3, "granted again", async {
            loop {
                match users.write(name).await {
                    Ok(guard) => return guard,
                    Err(error) => assert!(error.is_retryable(), "{name}: {error}"),
                }
            }
        })
        .await;
        assert!(guard.unlock().await.unwrap().is_released());
    }
    let nobody = || async {
        let seen = ylock.inspect(users.group(), "free").await.unwrap();
        seen.holders.is_empty() && seen.queue.is_empty()
    };
    eventually(LEASE * 2, "what was refused has left nothing behind", nobody).await;
    ylock.close().await;
}
