//! Directed schedules: what is late, lost, or comes twice.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, LossReason, Patience, Release, Renewal, Request, valid_until,
};
use ylock_core::options::HandOver;
use ylock_core::url::Host;
use ylock_core::{ClientName, Key, Mode, Options, Owner, Ylock};
use ylock_engine_redis::RedisEngine;

use super::own_server::{Disk, OwnServer};
use super::proxy::{Link, Proxy};
use super::{LOCKS, client, until, waiters, within};

const LEASE: Duration = Duration::from_secs(6);

pub(super) async fn engine(server: &OwnServer, lease: Duration) -> RedisEngine {
    RedisEngine::connect(&server.options().with_lease(lease)).await.expect("the server answers")
}

pub(super) fn request(engine: &RedisEngine, mode: Mode, lease: Duration) -> Request {
    Request::new(
        Key::new("users", "alice").unwrap(),
        AcquisitionId::new(&*engine.environment()),
        mode,
        Owner::new(),
        ClientName::default(),
        lease,
    )
}

pub(super) async fn acquire(engine: &RedisEngine, request: &Request) -> Grant {
    within("it gets in", engine.acquire(request)).await.unwrap().expect("granted")
}

/// Releases, again and again until the server confirms it, as the keeper does.
pub(super) async fn release(engine: &RedisEngine, request: &Request, next: Option<&Request>) -> Release {
    within("given back", async {
        loop {
            if let Ok(answer) = engine.release(&request.key, request.id, next).await {
                return answer;
            }
        }
    })
    .await
}

pub(super) async fn nobody_is_there(engine: &RedisEngine, what: &str) {
    let seen = engine.inspect(&Key::new("users", "alice").unwrap()).await.unwrap();
    assert!(seen.holders.is_empty() && seen.queue.is_empty(), "{what}: {seen:?}");
}

/// Copies of the requests that the server gets, word by word, so that a test can send them once more.
pub(super) struct Copies(TcpStream);

impl Copies {
    pub(super) async fn of(server: &OwnServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        stream.write_all(b"MONITOR\r\n").await.unwrap();
        let mut confirmed = [0; 5];
        stream.read_exact(&mut confirmed).await.unwrap();
        Self(stream)
    }

    /// The scripts that were called since the last time.
    pub(super) async fn take(&mut self) -> Vec<Vec<String>> {
        let (mut text, mut buffer) = (String::new(), vec![0; 1 << 20]);
        let quiet = Duration::from_millis(100);
        while let Ok(Ok(length @ 1..)) = tokio::time::timeout(quiet, self.0.read(&mut buffer)).await {
            text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        let words = |line: &str| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let scripts = text.lines().filter(|line| !line.contains(" lua]")).map(words);
        scripts
            .filter(|words| words.first().is_some_and(|word| word.eq_ignore_ascii_case("EVALSHA")))
            .collect()
    }

    /// Returns the scripts that were called since the last time, when there are at least so many.
    pub(super) async fn at_least(&mut self, count: usize) -> Vec<Vec<String>> {
        let mut seen = Vec::new();
        let taking = async {
            while seen.len() < count {
                seen.extend(self.take().await);
            }
        };
        within("the server is asked", taking).await;
        seen
    }
}

pub(super) async fn send(server: &OwnServer, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    server.ask::<redis::Value>(&words).await.expect("a script may come twice");
}

/// Runs `future` while the client loses every answer, and drops it when the server has seen its request. Returns that request.
async fn unanswered<T>(
    proxy: &Proxy,
    copies: &mut Copies,
    future: impl Future<Output = T>,
) -> Vec<Vec<String>> {
    copies.take().await;
    proxy.set(Link::Deaf);
    let seen = tokio::select! {
        _ = future => panic!("there is no answer"),
        seen = copies.at_least(1) => seen,
    };
    proxy.set(Link::Open);
    seen
}

/// Asks until it is seen to wait.
async fn waits<T>(seen_by: &RedisEngine, request: &Request, asking: impl Future<Output = T>) {
    let shown = async || {
        let seen = seen_by.inspect(&request.key).await.unwrap();
        seen.queue.iter().any(|waiter| waiter.id == request.id)
    };
    tokio::select! {
        _ = asking => panic!("the lock is held"),
        () = until("it waits", shown) => {}
    }
}

async fn through(server: &OwnServer, lease: Duration) -> (Proxy, RedisEngine) {
    let host = Host::new("127.0.0.1", server.port());
    let proxy = Proxy::before(&[host]).await;
    let port = proxy.hosts()[0].port.unwrap();
    let options = ylock_engine_redis::RedisOptions::new("127.0.0.1", port)
        .with_lease(lease)
        .with_connect_timeout(lease / 12)
        .with_request_timeout(lease / 12);
    let engine = within("it connects", async {
        loop {
            if let Ok(engine) = RedisEngine::connect(&options).await {
                return engine;
            }
        }
    });
    (proxy, engine.await)
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_grant_that_a_release_handed_on_is_not_believed_for_longer_than_the_server_keeps_it() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (engine(&server, LEASE).await, engine(&server, LEASE).await);
    let (first, next) = (request(&one, Mode::Write, LEASE), request(&one, Mode::Write, LEASE));
    acquire(&one, &first).await;
    release(&one, &first, Some(&next)).await;
    // The answer is lost, or the process is paused: the question comes late.
    tokio::time::sleep(LEASE * 4 / 5).await;
    let mine = acquire(&one, &next).await;
    let theirs = acquire(&two, &request(&two, Mode::Write, LEASE)).await;
    let (now, end) = (two.environment().now(), valid_until(mine.sent, mine.lease));
    assert!(end <= now, "two hold for {:?}", end.since(now));
    assert!(now < valid_until(theirs.sent, theirs.lease));
}

/// As above, seen by the guards that users hold: nothing but answers is lost, for less than a lease.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn two_guards_are_never_valid_at_once_when_answers_are_lost() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(6));
    let (proxy, engine) = through(&server, lease).await;
    let options = Options::default().with_lease(lease).with_hand_over(HandOver::up_to(0, Duration::ZERO));
    let (one, two) = (Ylock::new(engine).with_options(options), client(&server, lease).await);
    let first = one.locks("users").write("alice").await.unwrap();
    let locks = one.locks("users");
    let second = tokio::spawn(async move { locks.write("alice").await });
    until("it waits here", async || one.usage().iter().any(|group| group.waiting() == 1)).await;
    let since = Instant::now();
    proxy.set(Link::Deaf);
    let owner = first.owner();
    drop(first);
    until("it is handed on", async || {
        let seen = two.inspect("users", "alice").await.unwrap();
        seen.holders.first().is_some_and(|holder| holder.owner != owner)
    })
    .await;
    let locks = two.locks("users");
    let third = tokio::spawn(async move { locks.write("alice").await });
    tokio::time::sleep((lease * 74 / 100).saturating_sub(since.elapsed())).await;
    proxy.set(Link::Open);
    // Either order will do. The client that is first holds on, and the other client must not get in.
    let (mut second, mut third) = (second, third);
    let (guard, mut other) = within("one of them is answered", async {
        tokio::select! {
            guard = &mut second => (guard.unwrap(), third),
            guard = &mut third => (guard.unwrap(), second),
        }
    })
    .await;
    // On a machine that is too busy to ask in time the answer may be an error.
    let Ok(guard) = guard else { return };
    if let Ok(answered) = tokio::time::timeout(lease, &mut other).await {
        if let Ok(theirs) = answered.unwrap() {
            // In this order: a guard that is valid at the end was valid before.
            assert!(!(theirs.is_valid() && guard.is_valid()), "two hold: {guard:?}, {theirs:?}");
        }
        return;
    }
    drop(guard);
    drop(within("the other client is answered", other).await.unwrap());
}

/// A question prolongs the lease, whichever request let its acquisition in.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_question_of_one_that_is_inside_prolongs_its_lease() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (one, two) = (engine(&server, LEASE).await, engine(&server, LEASE).await);
    let first = request(&one, Mode::Write, LEASE);
    let mut tries = request(&two, Mode::Write, LEASE);
    tries.patience = Patience::Try;
    let since = Instant::now();
    let token = acquire(&one, &first).await.token;
    while since.elapsed() < LEASE * 2 {
        tokio::time::sleep(LEASE / 4).await;
        assert_eq!(acquire(&one, &first).await.token, token, "it is the same grant");
        assert!(two.acquire(&tries).await.unwrap().is_none(), "after {:?}", since.elapsed());
    }
}

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_late_copy_of_a_release_lets_nobody_in_whom_it_took_along() {
    let server = OwnServer::start(Disk::Nothing).await;
    let (proxy, one) = through(&server, LEASE * 4).await;
    let (first, next) = (request(&one, Mode::Write, LEASE * 4), request(&one, Mode::Write, LEASE * 4));
    acquire(&one, &first).await;
    let mut copies = Copies::of(&server).await;
    let seen = unanswered(&proxy, &mut copies, one.release(&first.key, first.id, Some(&next))).await;
    // The keeper tries again, this time with an answer; the acquisition that followed holds the lock, and gives it back.
    release(&one, &first, Some(&next)).await;
    acquire(&one, &next).await;
    release(&one, &next, None).await;
    for words in &seen {
        send(&server, words).await;
    }
    nobody_is_there(&engine(&server, LEASE).await, "a copy of the release").await;
    assert_eq!(one.in_memory(), [("acquisitions", 0)]);
}

/// The copy finds a free lock, or one that is held; so did the question itself.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_late_copy_of_a_question_lets_nobody_in_who_was_undone() {
    let server = OwnServer::start(Disk::Nothing).await;
    let lease = LEASE * 4;
    let two = engine(&server, lease).await;
    for was_held in [false, true] {
        for is_held in [false, true] {
            let (proxy, one) = through(&server, lease).await;
            let (mine, theirs) = (request(&one, Mode::Write, lease), request(&two, Mode::Read, lease));
            if was_held {
                acquire(&two, &theirs).await;
            }
            let mut copies = Copies::of(&server).await;
            let seen = unanswered(&proxy, &mut copies, one.acquire(&mine)).await;
            // The next question is answered. What became of the first question is still not known.
            if !was_held {
                acquire(&one, &mine).await;
            }
            release(&one, &mine, None).await;
            if was_held {
                release(&two, &theirs, None).await;
            }
            let other = request(&two, Mode::Read, lease);
            if is_held {
                acquire(&two, &other).await;
            }
            for words in &seen {
                send(&server, words).await;
            }
            if is_held {
                let seen = two.inspect(&other.key).await.unwrap();
                assert!(seen.queue.is_empty() && seen.holders.len() == 1, "{was_held} {is_held}: {seen:?}");
                release(&two, &other, None).await;
            }
            nobody_is_there(&two, &format!("a copy of the question, {was_held} {is_held}")).await;
        }
    }
}

/// The copies are of requests of an acquisition that has long gone, all of which were answered. The network does not repeat a request that
/// was answered, and no client sends a lost copy again: but each copy must at least be harmless while another client holds.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn late_copies_of_renewals_and_releases_disturb_nobody() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, LEASE * 4);
    let (one, two) = (engine(&server, lease).await, engine(&server, lease).await);
    let (mine, next) = (request(&one, Mode::Read, lease), request(&one, Mode::Write, lease));
    let grant = acquire(&one, &mine).await;
    let mut copies = Copies::of(&server).await;
    for next in [Some(next.clone()), None] {
        let answer = one.renew(&[Holding::new(grant.clone(), next)]).await.remove(0).unwrap();
        assert!(matches!(answer, Renewal::Renewed { .. }));
    }
    release(&one, &mine, None).await;
    let seen = copies.at_least(3).await;
    assert_eq!(seen.len(), 3);
    let other = request(&two, Mode::Write, lease);
    let theirs = acquire(&two, &other).await;
    for words in &seen {
        send(&server, words).await;
    }
    let shown = two.inspect(&other.key).await.unwrap();
    assert!(
        shown.queue.is_empty() && shown.holders.len() == 1 && shown.holders[0].id == other.id,
        "{shown:?}"
    );
    let answer = two.renew(&[Holding::new(theirs, None)]).await.remove(0).unwrap();
    assert!(matches!(answer, Renewal::Renewed { contended: false, .. }), "{answer:?}");
}

/// No acquisition waits for the grant: it is given back, and for good.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_message_about_a_grant_that_nobody_waits_for_undoes_it() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(30));
    let (one, two) = (engine(&server, lease).await, engine(&server, lease).await);
    let (mine, theirs) = (request(&one, Mode::Write, lease), request(&two, Mode::Write, lease));
    acquire(&two, &theirs).await;
    let mut copies = Copies::of(&server).await;
    waits(&two, &mine, one.acquire(&mine)).await;
    release(&one, &mine, None).await;
    // As if the server had forgotten what was undone: the marks are gone.
    let keys: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
    let fields: Vec<String> = server.ask(&["HKEYS", &keys[0]]).await.unwrap();
    for field in fields.iter().filter(|field| field.starts_with("x:")) {
        server.command(&["HDEL", &keys[0], field]).await;
    }
    let question = copies.at_least(1).await.remove(0);
    send(&server, &question).await;
    release(&two, &theirs, None).await;
    until("it is given back", async || two.inspect(&mine.key).await.unwrap().holders.is_empty()).await;
    send(&server, &question).await;
    nobody_is_there(&two, "another copy").await;
}

/// The first question gets no answer, the second one finds the lock held.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_late_copy_of_a_question_lets_nobody_in_who_only_tried() {
    // A try bears a twelfth of it.
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, LEASE * 20);
    let two = engine(&server, lease).await;
    let (proxy, one) = through(&server, lease).await;
    let (mut tries, theirs) = (request(&one, Mode::Write, lease), request(&two, Mode::Write, lease));
    tries.patience = Patience::Try;
    acquire(&two, &theirs).await;
    let mut copies = Copies::of(&server).await;
    proxy.set(Link::Deaf);
    let answer = async {
        let seen = copies.at_least(1).await;
        // The client hears at once that there will be no answer: if it had to wait for one, the try would end.
        proxy.set(Link::Cut);
        until("the connection is closed", async || one.inspect(&tries.key).await.is_err()).await;
        proxy.set(Link::Open);
        seen
    };
    let (tried, seen) = within("an answer", async { tokio::join!(one.acquire(&tries), answer) }).await;
    assert!(tried.unwrap().is_none());
    assert_eq!(one.in_memory(), [("acquisitions", 0)]);
    release(&two, &theirs, None).await;
    for words in &seen {
        send(&server, words).await;
    }
    nobody_is_there(&two, "a copy of the question").await;
}

/// The message comes at once, and the process does not run: it then believes in the grant no longer than the server, or asks again.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_message_that_is_read_late_is_believed_for_as_long_as_the_server_keeps_the_grant() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, LEASE);
    let (one, two) = (engine(&server, lease).await, engine(&server, lease).await);
    for (pause, is_new) in [(lease / 3, false), (lease * 3 / 2, true)] {
        let (mine, theirs) = (request(&one, Mode::Write, lease), request(&two, Mode::Write, lease));
        acquire(&two, &theirs).await;
        let mut waiting = std::pin::pin!(one.acquire(&mine));
        waits(&two, &mine, &mut waiting).await;
        let before = one.environment().now();
        release(&two, &theirs, None).await;
        // The waiter is not polled.
        tokio::time::sleep(pause).await;
        let grant = within("an answer", waiting).await.unwrap().expect("granted");
        assert_eq!(grant.sent > before, is_new, "after {pause:?}");
        assert!(one.environment().now() < valid_until(grant.sent, lease), "after {pause:?} it is over");
        release(&one, &mine, None).await;
    }
}

/// The message was long on its way: its grant has ended, another client holds, and the waiter has asked since.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_message_about_an_earlier_grant_is_not_believed() {
    let server = OwnServer::start(Disk::Nothing).await;
    let lease = LEASE * 4;
    let (one, two) = (engine(&server, lease).await, engine(&server, lease).await);
    let (mine, theirs) = (request(&one, Mode::Write, lease), request(&two, Mode::Write, lease));
    let held = acquire(&two, &theirs).await;
    let mut waiting = std::pin::pin!(one.acquire(&mine));
    waits(&two, &mine, &mut waiting).await;
    let keys: Vec<String> = server.ask(&["KEYS", LOCKS]).await.unwrap();
    let fields: std::collections::HashMap<String, String> = server.ask(&["HGETALL", &keys[0]]).await.unwrap();
    let id = fields.keys().find_map(|field| field.strip_prefix("a:")).unwrap();
    let channel = fields[&format!("o:{id}")].split(' ').nth(1).unwrap();
    let message = format!("{id} {} 0 {}", held.token.unwrap().get() - 1, keys[0]);
    let heard: i64 = server.ask(&["PUBLISH", &format!("ylock:{channel}"), &message]).await.unwrap();
    assert_eq!(heard, 1);
    assert!(tokio::time::timeout(LEASE / 4, &mut waiting).await.is_err(), "it still waits");
    release(&two, &theirs, None).await;
    assert!(within("it gets in", waiting).await.unwrap().expect("granted").token > held.token);
}

/// An outage that is shorter than a lease; the lock is given back meanwhile.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_gets_in_after_an_outage_that_is_shorter_than_its_lease() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(8));
    let (proxy, engine) = through(&server, lease).await;
    let one = Ylock::new(engine).with_options(Options::default().with_lease(lease));
    for line in [Link::Deaf, Link::Dead, Link::Cut] {
        let two = client(&server, lease).await;
        let guard = within("it gets in", two.locks("users").write("alice")).await.unwrap();
        let locks = one.locks("users");
        let waiting = tokio::spawn(async move { locks.write("alice").await });
        until("it waits", async || waiters(&two).await == 1).await;
        let since = Instant::now();
        proxy.set(line);
        // The lease of the grant ends on the server before its client hears of the grant.
        tokio::time::sleep(lease / 20).await;
        drop(guard);
        tokio::time::sleep((lease * 3 / 5).saturating_sub(since.elapsed())).await;
        proxy.set(Link::Open);
        let guard = within("an answer", waiting).await.unwrap();
        assert!(guard.unwrap().is_valid(), "{line:?}");
        until("it is free", async || two.locks("users").write("alice").now().await.unwrap().is_some()).await;
    }
}

/// The waiter's turn comes again and again while it cannot be told, and the lock is never free when it asks.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_that_cannot_be_told_gets_in_beside_others_that_can() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, Duration::from_secs(12));
    let (proxy, engine) = through(&server, lease).await;
    let one = Ylock::new(engine).with_options(Options::default().with_lease(lease));
    // Its requests go on, and it gets no other connection for messages.
    proxy.set(Link::Full);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    let others = async || {
        let ylock = client(&server, lease).await;
        loop {
            let guard = ylock.locks("users").write("alice").await.unwrap();
            // Only if another client waits too is the lock handed on, and never free.
            until("both wait", async || waiters(&ylock).await == 2).await;
            assert!(guard.unlock().await.unwrap().is_released());
        }
    };
    let both = async { tokio::join!(others(), others()) };
    let comes_last = async {
        until("the others are there", async || waiters(&one).await == 1).await;
        drop(within("it gets in", one.locks("users").write("alice")).await.unwrap());
    };
    tokio::select! {
        _ = both => unreachable!(),
        () = comes_last => {}
    }
}

/// The server may have counted from the beginning of the time that goes by until the answer comes.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lease_counts_from_before_the_request_was_sent() {
    let (server, lease) = (OwnServer::start(Disk::Nothing).await, LEASE * 8);
    let one = engine(&server, lease).await;
    let mine = request(&one, Mode::Write, lease);
    let halfway = async || {
        tokio::time::sleep(LEASE / 10).await;
        let now = one.environment().now();
        server.signal("CONT");
        now
    };
    server.signal("STOP");
    let (grant, moment) = tokio::join!(acquire(&one, &mine), halfway());
    assert!(grant.sent < moment, "the grant");
    server.signal("STOP");
    let holdings = [Holding::new(grant, None)];
    let (mut answers, moment) = tokio::join!(one.renew(&holdings), halfway());
    let answer = answers.remove(0).unwrap();
    assert!(matches!(answer, Renewal::Renewed { sent, .. } if sent < moment), "{answer:?}");
}

/// Of the readers that share the lock two die. The script remembers the lease end that comes first, also after the first was found.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn dead_readers_keep_nobody_out_for_longer_than_their_own_leases() {
    let (server, long) = (OwnServer::start(Disk::Nothing).await, LEASE * 60);
    let (one, two) = (engine(&server, LEASE).await, engine(&server, long).await);
    for lease in [LEASE, LEASE * 2] {
        acquire(&one, &request(&one, Mode::Read, lease)).await;
    }
    let reader = request(&two, Mode::Read, long);
    acquire(&two, &reader).await;
    let writer = engine(&server, long).await;
    let waiting = tokio::spawn(async move { acquire(&writer, &request(&writer, Mode::Write, long)).await });
    let holders = async || two.inspect(&reader.key).await.unwrap().holders.len();
    until("both are over", async || holders().await == 1).await;
    release(&two, &reader, None).await;
    within("it gets in", waiting).await.unwrap();
}

/// The acquisition was let in, and revoked before its client heard of that: the call ends with the grant, and the next renewal tells it.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_revocation_does_not_end_the_call_of_one_that_waits_for_replicas() {
    let server = OwnServer::start(Disk::Nothing).await;
    let port = server.port().to_string();
    let _replica = OwnServer::start_with(Disk::Nothing, &["--replicaof", "127.0.0.1", &port]).await;
    let lease = LEASE * 10;
    let options = server.options().with_lease(lease).with_min_replicas(1);
    let one = RedisEngine::connect(&options).await.unwrap();
    let mine = request(&one, Mode::Write, lease);
    // The replica needs a moment to follow.
    until("a grant is replicated", async || matches!(one.acquire(&mine).await, Ok(Some(_)))).await;
    assert!(one.revoke(&mine.key, mine.id).await.unwrap());
    let grant = acquire(&one, &mine).await;
    let answer = one.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
    assert_eq!(answer, Renewal::Lost(LossReason::Revoked));
}
