//! A server whose clock can be set, and what becomes of locks then.

use std::time::Duration;

use ylock_testkit::own_servers::SetClock;
use ylock_testkit::quiet_time;

use super::own_server::OwnServer;
use super::{acquire, client, joins, unlock, until, waiters, within};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Duration = Duration::from_secs(4);

struct SetServer {
    server: OwnServer,
    clock: SetClock,
}

impl SetServer {
    async fn start() -> Self {
        let clock = SetClock::make();
        Self { server: OwnServer::start_by(&clock).await, clock }
    }

    async fn forwards(&mut self, by: Duration) {
        self.clock.forwards(by, async || time(&self.server).await).await;
    }

    async fn backwards(&mut self, by: Duration) {
        self.clock.backwards(by, async || time(&self.server).await).await;
    }
}

async fn time(server: &OwnServer) -> i64 {
    let statement = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
    server.client().await.query_one(statement, &[]).await.unwrap().get(0)
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_step_forwards_frees_the_lock_and_the_holder_is_told() {
    let mut set = SetServer::start().await;
    let (one, two) = (client(&set.server, LEASE).await, client(&set.server, LEASE).await);
    let guard = acquire(&one).await;
    set.forwards(HOUR).await;
    let next = acquire(&two).await;
    assert!(next.token() > guard.token());
    within("the holder is told", guard.lost()).await;
    assert!(next.is_valid());
    unlock(next).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_step_backwards_keeps_locks_and_order_and_tokens_grow() {
    let mut set = SetServer::start().await;
    let clients = [
        client(&set.server, LEASE).await,
        client(&set.server, LEASE).await,
        client(&set.server, LEASE).await,
    ];
    let [one, two, three] = &clients;
    let guard = acquire(one).await;
    let second = joins(two, one, 0).await;
    set.backwards(HOUR).await;
    let third = joins(three, one, 1).await;
    // It has been renewed since.
    tokio::time::sleep(LEASE).await;
    assert!(guard.is_valid() && waiters(one).await == 2);
    let token = guard.token();
    unlock(guard).await;
    let guard = within("the second gets in", second).await.unwrap();
    assert!(guard.token() > token && !third.is_finished());
    let token = guard.token();
    unlock(guard).await;
    let guard = within("the third gets in", third).await.unwrap();
    assert!(guard.token() > token);
    unlock(guard).await;
    until("nothing is left", async || one.inspect("users", "alice").await.unwrap().holders.is_empty()).await;
}

/// By the quick way in, too, which looks at nothing but the row.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn tokens_of_a_lock_that_is_free_grow_after_a_step_backwards() {
    let mut set = SetServer::start().await;
    let one = client(&set.server, LEASE).await;
    let guard = acquire(&one).await;
    let mut last = guard.token();
    unlock(guard).await;
    set.backwards(HOUR).await;
    for _ in 0..3 {
        let guard = acquire(&one).await;
        assert!(guard.token() > last, "{:?} after {last:?}", guard.token());
        last = guard.token();
        unlock(guard).await;
    }
}

/// A holder that is dead, and readers that are, count for no more than one lease from when they are met.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_step_backwards_prolongs_no_lease_by_more_than_itself() {
    let mut set = SetServer::start().await;
    let one = client(&set.server, LEASE).await;
    for reads in [false, true] {
        // As if its client had died: what is left of it is in the row.
        let mode = if reads { 'r' } else { 'w' };
        let acquire = "select ylock.acquire($1, gen_random_uuid(), $2, 4000000, true, true, null, 3000000, gen_random_uuid(), null, 'x', true)";
        let raw = set.server.client().await;
        for _ in 0..if reads { 3 } else { 1 } {
            raw.query_one(acquire, &[&&b"users\xffalice"[..], &mode.to_string()]).await.unwrap();
        }
        set.backwards(HOUR).await;
        let since = quiet_time();
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        let took = quiet_time() - since;
        assert!(took < LEASE * 3 / 2, "{took:?}");
        unlock(guard).await;
    }
}
