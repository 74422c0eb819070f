//! Single lines of the scripts, each with a lock in which it matters. Times are written into the lock: nothing waits for them.

mod lock;

#[path = "../server/mod.rs"]
mod server;

use futures_util::StreamExt;
use lock::{LONG, Lock};

/// The places of words in the record of a holder and in that of a waiter.
const EXPIRES: usize = 1;
const ALIVE: usize = 1;
const A_MINUTE: u64 = 60_000;

/// Otherwise the lock would be free while a holder relies on it, and a waiter would lose its place. Also where the hash would live for
/// longer than the last token has to: what counts is the lease.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_lives_for_longer_than_each_holder_and_waiter_in_it() {
    for left in [5_000, A_MINUTE - 5_000, LONG - A_MINUTE] {
        let mut lock = Lock::new().await;
        lock.acquire("holds", "w", A_MINUTE).await;
        lock.expires_in(left).await;
        assert_eq!(lock.acquire("waits", "w", LONG).await[0], "queued");
        assert!(lock.lives_for().await > LONG, "a waiter has come");
        lock.expires_in(left).await;
        assert_eq!(lock.acquire("waits", "w", LONG).await[0], "queued");
        assert!(lock.lives_for().await > LONG, "a waiter has asked");
        lock.expires_in(left).await;
        assert!(lock.release("holds", 0, Some(("waits", "w", LONG))).await);
        assert!(lock.field("h:waits").await.is_some());
        assert!(lock.lives_for().await > LONG, "a waiter was let in");
        lock.expires_in(left).await;
        assert!(lock.renew("waits", "w", LONG, None).await);
        assert!(lock.lives_for().await > LONG, "a holder has renewed");
        assert!(lock.release("waits", 0, None).await);
        lock.expires_in(left).await;
        assert_eq!(lock.acquire("enters", "w", LONG).await[0], "granted");
        assert!(lock.lives_for().await > LONG, "it was free");
        lock.remove().await;
    }
}

/// The record of the first end decides when holders are looked at: were it late, a dead holder would keep the lock for longer than its
/// lease, and were it early, each request would look at all holders.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_knows_when_the_first_lease_of_its_holders_ends() {
    let mut lock = Lock::new().await;
    // Not by the quick way.
    lock.release("unknown", A_MINUTE, None).await;
    lock.acquire("long", "r", LONG).await;
    assert_eq!(lock.field("m").await, Some(lock.word("h:long", EXPIRES).await.to_string()));
    lock.acquire("short", "r", A_MINUTE).await;
    assert_eq!(lock.field("m").await, Some(lock.word("h:short", EXPIRES).await.to_string()));
    lock.remove().await;
}

/// The clock of the server was set back since the last grant. By the quick ways, and by those behind them.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn each_token_is_larger_than_the_last_one_whatever_the_clock_shows() {
    for is_quick in [true, false] {
        let (mut lock, channel) = (Lock::new().await, ylock_core::Owner::new().to_string());
        let late = if is_quick { 0 } else { A_MINUTE };
        // The quick ways leave a lock that remembers what was undone to the others.
        lock.release("unknown", late, None).await;
        let client = redis::Client::open(server::address()).unwrap();
        let mut listening = client.get_async_pubsub().await.unwrap();
        listening.subscribe(format!("ylock:{channel}")).await.unwrap();
        let ahead = (lock.now().await + A_MINUTE) * 1_000;
        lock.set(&[("t", &ahead.to_string())]).await;

        let first = (ahead + 1).to_string();
        assert_eq!(lock.acquire("holds", "w", LONG).await[..2], ["granted", &first]);
        assert_eq!(lock.field("t").await.as_ref(), Some(&first));
        assert_eq!(lock.acquire_with("waits", "w", LONG, "-", &channel).await[0], "queued");
        assert!(lock.release("holds", late, None).await);
        let second = (ahead + 2).to_string();
        let message: String = listening.on_message().next().await.unwrap().get_payload().unwrap();
        assert_eq!(message.split(' ').nth(1), Some(&*second), "{message}");
        assert_eq!(lock.field("t").await.as_ref(), Some(&second));
        assert_eq!(lock.acquire("waits", "w", LONG).await[..2], ["granted", &second]);
        lock.remove().await;
    }
}

/// A try of a semaphore passes over a permit of which this is not said. By the quick way, and by the other one.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_may_be_free_unless_the_leases_of_its_holders_go_on() {
    for is_quick in [true, false] {
        let mut lock = Lock::new().await;
        assert!(lock.may_be_free().await, "there is none");
        lock.release("unknown", if is_quick { 0 } else { A_MINUTE }, None).await;
        lock.acquire("holds", "w", A_MINUTE).await;
        assert!(!lock.may_be_free().await);
        let now = lock.now().await;
        for (end, what) in [(now - 1, "its lease has ended"), (now + LONG, "the clock was set back")] {
            lock.set(&[("m", &end.to_string())]).await;
            assert!(lock.may_be_free().await, "{what}");
        }
        assert!(lock.release("holds", 0, None).await);
        assert!(lock.may_be_free().await, "it was given back");
        lock.remove().await;
    }
}

/// Its holder was told of the loss, or will be, and has nothing to give back.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_grant_that_is_over_is_neither_given_back_nor_renewed_nor_revoked() {
    // By the quick way, and by the other one.
    for late in [0, A_MINUTE] {
        let mut lock = Lock::new().await;
        lock.acquire("holds", "w", LONG).await;
        lock.set_word("h:holds", EXPIRES, 1).await;
        assert!(!lock.revoke("holds").await);
        assert!(!lock.renew("holds", "w", LONG, None).await);
        assert!(!lock.release("holds", late, None).await);
        lock.remove().await;
    }
}

/// It does not ask by itself: without the renewals of its client its place would be lost after one lease.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn each_renewal_keeps_the_waiter_alive_that_stands_behind_the_grant() {
    let mut lock = Lock::new().await;
    lock.acquire("holds", "r", LONG).await;
    let behind = Some(("waits", "w", A_MINUTE));
    assert!(lock.renew("holds", "r", LONG, behind).await);
    lock.set_word("a:waits", ALIVE, 1).await;
    assert!(lock.renew("holds", "r", LONG, behind).await);
    assert_eq!(lock.word("a:waits", ALIVE).await, lock.word("h:holds", EXPIRES).await);
    lock.remove().await;
}

/// Until it asks by itself, which may be later than the grant would have ended that it stood behind.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_waiter_that_stood_behind_a_grant_is_alive_for_its_own_time_from_the_release_on() {
    let mut lock = Lock::new().await;
    lock.acquire("holds", "r", A_MINUTE).await;
    lock.acquire("stays", "r", LONG).await;
    let next = Some(("waits", "w", LONG));
    assert!(lock.renew("holds", "r", A_MINUTE, next).await);
    assert!(lock.release("holds", 0, next).await);
    assert!(lock.word("a:waits", ALIVE).await > lock.now().await + LONG / 2);
    lock.remove().await;
}

/// It would keep readers out that no writer waits for.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_copy_of_a_renewal_brings_back_no_waiter_that_gave_up() {
    let mut lock = Lock::new().await;
    lock.acquire("holds", "r", LONG).await;
    let behind = Some(("waits", "w", LONG));
    assert!(lock.renew("holds", "r", LONG, behind).await);
    assert!(lock.release("waits", A_MINUTE, None).await);
    assert!(lock.renew("holds", "r", LONG, behind).await);
    assert_eq!(lock.field("a:waits").await, None);
    lock.remove().await;
}

/// It would wait behind itself, and keep writers waiting when it has long given back.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_copy_of_a_renewal_makes_no_waiter_of_a_holder() {
    let mut lock = Lock::new().await;
    lock.acquire("first", "w", LONG).await;
    let behind = Some(("second", "r", LONG));
    assert!(lock.renew("first", "w", LONG, behind).await);
    assert!(lock.renew("first", "r", LONG, behind).await);
    assert_eq!(lock.acquire("second", "r", LONG).await[0], "granted");
    assert!(lock.renew("first", "r", LONG, behind).await);
    assert_eq!(lock.field("a:second").await, None);
    lock.remove().await;
}

/// Also where no request follows but those of acquisitions that the lock knows nothing of.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn what_was_undone_long_ago_is_forgotten_when_something_else_is_undone() {
    let mut lock = Lock::new().await;
    lock.set(&[("x:old", "1"), ("y:0", "old"), ("xf", "0"), ("xn", "1")]).await;
    lock.release("unknown", A_MINUTE, None).await;
    assert_eq!((lock.field("x:old").await, lock.field("y:1").await), (None, None));
    assert_eq!(lock.field("y:0").await.as_deref(), Some("unknown"));
    lock.remove().await;
}

/// With `strict` a client guesses the server's time. Each waiter that comes before that time would go first.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn no_place_is_later_than_the_servers_clock() {
    let mut lock = Lock::new().await;
    lock.acquire("holds", "w", LONG).await;
    let ahead = (lock.now().await + A_MINUTE) * 1_000;
    let answer = lock.acquire_with("waits", "w", LONG, &ahead.to_string(), "-").await;
    assert_eq!(answer[0], "queued");
    let ticket: u64 = answer[1].parse().unwrap();
    assert!(ticket < ahead - A_MINUTE * 500, "{ticket}");
    lock.remove().await;
}

/// The server takes only so many words in one call.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_lock_with_very_many_readers_can_be_looked_through() {
    const MANY: usize = 5_000;
    let mut lock = Lock::new().await;
    let long = LONG.to_string();
    let expires = lock.now().await + LONG;
    lock.set(&[("hn", &(2 * MANY).to_string()), ("m", "1"), ("l", &long)]).await;
    for (prefix, expires) in [("h:living", expires), ("h:dead", 1)] {
        let fields: Vec<_> = (0..MANY).map(|number| format!("{prefix}{number}")).collect();
        let record = format!("r {expires} {long} 1 1 0");
        let fields: Vec<_> = fields.iter().map(|field| (field.as_str(), record.as_str())).collect();
        lock.set(&fields).await;
    }
    assert_eq!(lock.acquire("another", "r", LONG).await[0], "granted");
    assert_eq!(lock.field("hn").await, Some((MANY + 1).to_string()));
    lock.remove().await;
}

/// What is written stays written, and the waiter asks by itself. Were the release an error, its client would send it again, and hear that
/// there was nothing to give back: that the lock was lost.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_message_that_cannot_be_sent_does_not_make_a_release_fail() {
    let (mut lock, user) = (Lock::new().await, ylock_core::Owner::new().to_string());
    let mut create = redis::cmd("ACL");
    create.arg("SETUSER").arg(&user).arg(&["on", ">a password", "~*", "&*", "+@all", "-publish"]);
    lock.ask::<()>(&create).await;
    let client = redis::Client::open(server::address()).unwrap();
    let mut listening = client.get_async_pubsub().await.unwrap();
    listening.subscribe(format!("ylock:{user}")).await.unwrap();
    lock.acquire("holds", "w", LONG).await;
    lock.acquire_with("waits", "w", LONG, "-", &user).await;
    lock.ask::<()>(redis::cmd("AUTH").arg(&user).arg("a password")).await;
    assert!(lock.release("holds", 0, None).await);
    assert_eq!(lock.acquire("waits", "w", LONG).await[0], "granted");
    let mut remove = redis::cmd("ACL");
    remove.arg("DELUSER").arg(&user);
    lock.remove().await;
    remove.exec_async(&mut server::raw().await).await.unwrap();
    drop(listening);
}

/// The release is an error, and no waiter is let in beside a holder that nobody can read.
#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_release_that_finds_what_no_script_writes_changes_nothing() {
    for waiter in [None, Some("waits")] {
        let (mut lock, channel) = (Lock::new().await, ylock_core::Owner::new().to_string());
        let client = redis::Client::open(server::address()).unwrap();
        let mut listening = client.get_async_pubsub().await.unwrap();
        listening.subscribe(format!("ylock:{channel}")).await.unwrap();
        lock.acquire("holds", "w", LONG).await;
        if let Some(waiter) = waiter {
            lock.acquire_with(waiter, "w", LONG, "-", &channel).await;
        }
        lock.set(&[("h:holds", "garbage")]).await;
        let before = lock.all().await;
        assert!(lock.release_fails("holds").await);
        assert_eq!(lock.all().await, before);
        lock.remove().await;
    }
}
