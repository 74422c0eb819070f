//! A server whose clock can be set: nothing that is promised rests on it.

use std::time::Instant;

use ylock_core::{Unlocked, Ylock};
use ylock_testkit::own_servers::SetClock;
use ylock_testkit::quiet_time;
use zookeeper_client::{Acls, Client, CreateMode};

use super::own_server::OwnServer;
use super::server::proxy::{Link, Proxy};
use super::{SESSION, client, queue_up, server, within};

/// See the [module](self).
struct SetServer {
    server: OwnServer,
    clock: SetClock,
    raw: Client,
}

impl SetServer {
    async fn start() -> Self {
        let clock = SetClock::make();
        let server = OwnServer::start_by(&clock).await;
        let raw = server::raw(&[server.host()]).await;
        Self { server, clock, raw }
    }

    async fn client(&self) -> Ylock {
        client(vec![self.server.host()]).await
    }

    /// Steps the clock by so many hours.
    async fn step(&mut self, by: i64) {
        self.clock.step(by * 60 * 60 * 1_000_000, async || time(&self.raw).await).await;
    }
}

/// The time that the server writes down for a node that is made now, in microseconds since 1970.
async fn time(raw: &Client) -> i64 {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (stat, _) = raw.create("/now-", b"", &options).await.expect("made");
    stat.ctime * 1_000
}

#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn no_step_of_the_clock_takes_a_hold_or_a_place() {
    let mut set = SetServer::start().await;
    let (one, two, three) = (set.client().await, set.client().await, set.client().await);
    let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
    let second = queue_up(&two, &one).await;
    set.step(1).await;
    let third = queue_up(&three, &one).await;
    for by in [24, -26] {
        set.step(by).await;
        // Longer than a session, so that all clients have sent something since, and the server has looked which sessions are over.
        tokio::time::sleep(SESSION * 3 / 2).await;
        assert!(guard.is_valid() && !second.is_finished() && !third.is_finished());
    }
    let mut token = guard.token();
    assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    for waiting in [second, third] {
        let guard = within("the next one gets in", waiting).await.unwrap();
        assert!(guard.token() > token, "tokens grow, and the order stays");
        token = guard.token();
        assert_eq!(within("given back", guard.unlock()).await.unwrap(), Unlocked::Released);
    }
}

/// The session ends neither sooner nor later: the server measures how much time has passed.
#[tokio::test]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn no_step_of_the_clock_ends_or_prolongs_the_session_of_a_client_that_is_gone() {
    let mut set = SetServer::start().await;
    let two = set.client().await;
    for by in [1, -2] {
        let line = Proxy::before(&[set.server.host()]).await;
        let one = client(line.hosts()).await;
        let guard = within("it gets in", one.locks("users").write("alice")).await.unwrap();
        let waiting = queue_up(&two, &two).await;
        line.set(Link::Cut);
        let (since, quiet_since) = (Instant::now(), quiet_time());
        set.step(by).await;
        let next = within("the next one gets in", waiting).await.unwrap();
        let (took, in_quiet) = (since.elapsed(), quiet_time() - quiet_since);
        assert!(!guard.is_valid() && next.token() > guard.token());
        // The last sign of life came a sixth of a session before at the earliest, and the server looks once in a tick.
        assert!(
            took > SESSION / 2 && in_quiet < SESSION * 2,
            "it took {took:?} for a session of {SESSION:?}"
        );
        assert!(within("given back", next.unlock()).await.unwrap().is_released());
    }
}
