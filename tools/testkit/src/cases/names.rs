//! The holders of a lock and the waiters for it, by the names of their clients.

use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::Patience;
use ylock_core::{ClientName, Lock, Mode, Ylock};

use crate::contestant::Contestant;
use crate::{Client, Fixture, eventually};

/// Names with what stores use between words, and the longest one.
fn names() -> [String; 3] {
    ["web 3/47:11 \"x\" {y} - ☃".to_owned(), " ".to_owned(), "ü".repeat(ClientName::MAX_BYTES / 2)]
}

fn named(client: &Client, name: &str) {
    drop(Ylock::clone(client).with_name(name).unwrap());
}

/// Other clients see the names of the clients that hold and wait, whatever letters are in them.
pub async fn those_who_look_see_the_names_of_clients(fixture: Fixture) {
    let (holder, waiter, looks) = (fixture.client().await, fixture.client().await, fixture.client().await);
    for name in names() {
        named(&holder, &name);
        named(&waiter, &format!("{}2", &name[..name.len() - name.chars().last().unwrap().len_utf8()]));
        let guard = holder.write().await;
        let waits = waiter.queue_up(Mode::Write).await;
        for client in [&looks, &holder, &waiter] {
            // Its own client shows a waiter before the store knows of it.
            waits.seen_by(client).await;
            let seen = client.look().await;
            assert_eq!(seen.holders[0].client, holder.name());
            assert_eq!(seen.queue[0].client, waiter.name());
        }
        drop(guard);
        // The waiter is the holder now, under its own name.
        let guard = waits.guard().await;
        assert_eq!(looks.look().await.holders[0].client, waiter.name());
        drop(guard);
    }
}

/// The name is that of the acquisition: it stays through renewals and a downgrade, and a client that is named anew is seen so with its next
/// one.
pub async fn a_name_stays_with_its_acquisition(fixture: Fixture) {
    let mut one = Contestant::long_lived(&fixture, Mode::Write, Patience::Queue).await;
    one.request.client = ClientName::new("the first").unwrap();
    let other = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
    let mut grant = one.acquires().await.unwrap();
    let seen = async || other.engine.inspect(&grant.key).await.unwrap().holders[0].client.to_string();
    assert_eq!(seen().await, "the first");
    one.renews(&grant).await;
    assert_eq!(seen().await, "the first");
    let reads = grant.clone().with_mode(Mode::Read);
    one.renews(&reads).await;
    assert_eq!(seen().await, "the first");
    one.releases(grant.id).await;
    one.request.client = ClientName::new("the second").unwrap();
    grant = one.tries().await.unwrap();
    assert_eq!(other.engine.inspect(&grant.key).await.unwrap().holders[0].client.as_str(), "the second");
    one.releases(grant.id).await;
}

/// Returns what the error of a wait says that is over, once it knows who waited. It does not where
/// the store answers late, as on a busy machine, and rightly: then again.
async fn over(lock: &Lock, mode: Mode, fixture: &Fixture) -> String {
    let said = Mutex::new(String::new());
    let knows = async || {
        let granted = match mode {
            Mode::Write => lock.write().await,
            Mode::Read => lock.read().await,
        };
        let text = granted.unwrap_err().to_string();
        println!("{text}");
        let knows = text.contains("waited before the caller");
        *said.lock() = text;
        knows
    };
    eventually(fixture.soon() * 2, "the error says who waited", knows).await;
    said.into_inner()
}

/// The error of a wait that is over says which client held the lock, and how many waited before the caller.
pub async fn the_error_of_a_wait_that_is_over_says_who_was_before(fixture: Fixture) {
    let (holder, waiter, gives_up) = (fixture.client().await, fixture.client().await, fixture.client().await);
    named(&holder, "the holder");
    let guard = holder.write().await;
    let options =
        fixture.short_options().with_max_wait(fixture.harness().trip() * 12 + Duration::from_secs(1));
    let impatient = gives_up.lock.with_options(options);
    let alone = over(&impatient, Mode::Write, &fixture).await;
    assert!(alone.contains("\"the holder\" held it to write (owner"), "{alone}");
    assert!(alone.contains(&format!("(owner {}, there since 20", guard.owner())), "{alone}");
    assert!(alone.contains(", 0 waited before the caller"), "{alone}");
    // Its own client shows a waiter before the store knows of it: each is seen by another client before the next one comes.
    let waits = waiter.queue_up_seen_by(Mode::Write, &gives_up).await;
    let local = gives_up.queue_up_seen_by(Mode::Write, &holder).await;
    let behind = over(&impatient, Mode::Read, &fixture).await;
    assert!(behind.contains(", 2 waited before the caller"), "{behind}");
    drop((guard, waits, local));
}
