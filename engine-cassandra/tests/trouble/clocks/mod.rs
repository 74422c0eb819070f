//! Clocks of nodes that are far apart, and step: what is promised within `max_clock_skew`, and what becomes of it where that is less than
//! what the clocks are apart.
//!
//! The nodes must not compare clocks among themselves: `internode_timeout: false` in their configuration.

mod clients;
mod deaths;
mod set;
mod suite;

use std::time::{Duration, Instant};

use tracing::Level;
use ylock_engine_cassandra::options::Expiry;
use ylock_testkit::{Log, eventually, short_or_long};

use clients::{AtEach, NODES, Rule};
use deaths::Deaths;
use set::{Ahead, Clocks, RIGHT};

use crate::holds::Holds;
use crate::traffic::Traffic;
use crate::{LEASE, cluster};

const HOUR: i64 = 60 * 60;

/// An hour apart, and two hours less a minute from one end to the other: within `max_clock_skew=2h` also between any two of these.
/// Each node has each clock once: two steps of an hour, and one of two.
const APART: [Ahead; 3] = [[0, HOUR, 60 - HOUR], [HOUR, 60 - HOUR, 0], [60 - HOUR, 0, HOUR]];

const OBSERVED: Rule = Rule {
    table: "clocks_observed",
    expiry: Expiry::Observed,
    max_clock_skew: Duration::from_secs(2 * 60 * 60),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn clocks_an_hour_apart_that_step_by_hours_harm_no_holder_within_the_skew() {
    let rule = OBSERVED;
    let clocks = Clocks::connect().await;
    let at_each = AtEach::connect(rule, &clocks).await;
    clocks.set(APART[2]).await;
    let held = at_each.take().await;
    let any = Holds::take_by(50, &rule.options()).await;
    let traffic = Traffic::start_by(LEASE, &rule.options()).await;
    let began = Instant::now();
    for _ in 0..short_or_long(1, 10) {
        for ahead in APART {
            traffic.until_more().await;
            let deaths = Deaths::begin(rule, &clocks, &at_each.clients).await;
            // The waiters have seen what the dead have left by other clocks.
            clocks.set(ahead).await;
            at_each.no_other_gets_in(&held, rule, &clocks).await;
            let longest = deaths.passed().await;
            println!("clocks {ahead:?} s ahead: the dead were passed over within {longest:?}");
            at_each.no_other_gets_in(&held, rule, &clocks).await;
            assert_eq!(any.lost(), 0, "of {} that ask any node", any.count());
        }
    }
    clocks.set(RIGHT).await;
    traffic.until_more().await;
    at_each.no_other_gets_in(&held, rule, &clocks).await;
    let visits = traffic.stop().await;
    println!("{visits} visits, {} locks held for {:?}", held.len() + any.count(), began.elapsed());
    at_each.give_back(held).await;
    any.give_back().await;
}

#[tokio::test]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn connecting_warns_of_clocks_that_are_apart_also_of_one_that_was_set_back() {
    let clocks = Clocks::connect().await;
    OBSERVED.make_table().await;
    let warnings = async || {
        let (log, _guard) = Log::of(Level::WARN);
        cluster::client_by(LEASE, &OBSERVED.options()).await.close().await;
        log.lines(&["the clocks of two nodes differ"])
    };
    assert_eq!(warnings().await, [""; 0]);
    for ahead in [[0, 0, -HOUR], [0, HOUR, 0]] {
        clocks.set(ahead).await;
        // Not at once: a node that is slow to answer is not waited for.
        let warned = || async { warnings().await.iter().any(|line| line.contains("milliseconds=359")) };
        eventually(LEASE * 3, "it warns of an hour, less the time that it took to ask", warned).await;
    }
    clocks.set(RIGHT).await;
    assert_eq!(warnings().await, [""; 0]);
}

/// A coordinator whose clock is ahead takes a row that was given back for ended, and repairs a replica that does not have it yet by what it was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn a_listing_by_a_clock_that_is_ahead_damages_no_row() {
    let clocks = Clocks::connect().await;
    OBSERVED.make_table().await;
    clocks.set(APART[0]).await;
    let [users, listing, looking] = <[_; 3]>::try_from(OBSERVED.clients(&clocks).await).unwrap();
    let group = cluster::group();
    let names: Vec<_> = (0..20).map(|number| format!("user {number}")).collect();
    let used = async {
        for _ in 0..short_or_long(30, 300) {
            let visits = names.iter().map(async |name| drop(users.locks(&group).write(name).await.unwrap()));
            futures_util::future::join_all(visits).await;
            let looks = names.iter().map(async |name| looking.inspect(&group, name).await.map(drop));
            futures_util::future::try_join_all(looks).await.unwrap();
        }
    };
    let listed = async {
        loop {
            let mut pages = listing.list();
            while let Ok(Some(_)) = pages.next().await {}
        }
    };
    tokio::select! {
        () = used => {}
        () = listed => {}
    }
    clocks.set(RIGHT).await;
}

/// Two of the cases about dead holders, and with `--long` all cases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn the_suite_passes_with_clocks_an_hour_apart_that_step() {
    let clocks = Clocks::connect().await;
    OBSERVED.make_table().await;
    let few: &[&str] = &["one_who_waits_outlives_a_dead_holder", "a_dead_reader_does_not_keep_writers_out"];
    let wanted = short_or_long(Some(few), None);
    let suite = suite::run(OBSERVED, |case| wanted.is_none_or(|wanted| wanted.contains(&case.name)));
    let stepping = async {
        for ahead in APART.into_iter().cycle() {
            clocks.set(ahead).await;
            tokio::time::sleep(LEASE).await;
        }
    };
    let (count, failed) = tokio::select! {
        outcome = suite => outcome,
        () = stepping => unreachable!("clocks step for ever"),
    };
    println!("{count} cases");
    assert!(count > 0 && failed.is_empty(), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn clocks_an_hour_apart_break_locks_that_go_by_ttl() {
    let max_clock_skew = Duration::from_secs(2);
    locks_break(Rule { table: "clocks_ttl", expiry: Expiry::Ttl, max_clock_skew }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cassandra that may be broken: run `cargo xtask test`"]
async fn clocks_an_hour_apart_break_observed_locks_of_clients_that_expect_a_minute() {
    let max_clock_skew = Duration::from_secs(60);
    locks_break(Rule { table: "clocks_minute", expiry: Expiry::Observed, max_clock_skew }).await;
}

/// What holds within the skew proves something only if the same clocks break what is told too little of them: two clients hold a lock at once wherever
/// the clock of the second one's node is ahead of the first one's, and what was held before the clocks stepped is lost.
async fn locks_break(rule: Rule) {
    let clocks = Clocks::connect().await;
    let at_each = AtEach::connect(rule, &clocks).await;
    let any = Holds::take_by(50, &rule.options()).await;
    let ahead = APART[0];
    clocks.set(ahead).await;
    for holder in NODES {
        for other in NODES.filter(|other| *other != holder) {
            let times = at_each.both_hold(holder, other).await;
            let [before, after] = [ahead[holder - 1], ahead[other - 1]];
            println!("a holder at {before} s, a client at {after} s: both held {times} times");
            assert_eq!(times > 0, after > before, "where the row has ended for the second, and nowhere else");
        }
    }
    eventually(LEASE * 2, "locks are lost", || async { any.lost() > 0 }).await;
    println!("lost within a lease: at least {} of {}", any.lost(), any.count());
}
