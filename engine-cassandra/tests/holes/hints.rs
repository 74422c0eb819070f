//! Clients that tell each other to look: what a hint changes, and what it must not change.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ylock_core::engine::{Engine, Grant, Holding};
use ylock_core::environment::Environment;
use ylock_core::{LossReason, Options, Ylock};
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::hints::{Endpoint, Hint, Key};

use crate::fake::{Fate, LEASE};
use crate::fixture::{Fixture, bounded, until};
use crate::post::Post;
use crate::told::Told;

/// The longest pause of the first waiter that is told, by chance a tenth longer.
const LONG_PAUSE: Duration = Duration::from_millis(1_840);
/// The same of one that is not told.
const PAUSE: Duration = Duration::from_millis(560);
const MOMENT: Duration = Duration::from_millis(100);

/// As a user has it: with a keeper, which renews by itself.
fn locks(fixture: &Fixture, post: &Arc<Post>) -> Ylock {
    Ylock::new(post.engine(fixture)).with_options(Options::default().with_lease(LEASE))
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_told_looks_rarely_and_is_in_at_once() {
    bounded(async {
        let told = Told::new().await;
        let (_, _, waiter) = told.told_waiter().await;
        let before = told.reads();
        for _ in 0..3 {
            tokio::time::sleep(LEASE / 3).await;
            told.renew().await;
        }
        // A renewal looks once.
        let reads = told.reads() - before - 3;
        assert!((18..=25).contains(&reads), "{reads} looks in a lease");
        assert!(!waiter.is_finished(), "the holder has not died");
        told.leaves().await;
        let left = told.now();
        let found = waiter.await.unwrap().since(left);
        assert!(found <= Duration::from_millis(5), "{found:?}");
        assert_eq!(told.holder.hints().missed, 0);
    })
    .await;
}

/// A hint that comes while a look is on its way may tell of what that look does not show.
#[tokio::test(start_paused = true)]
async fn a_hint_during_a_look_asks_for_exactly_one_more() {
    bounded(async {
        let told = Told::new().await;
        let (_, request, waiter) = told.told_waiter().await;
        tokio::time::sleep(MOMENT).await;
        told.fixture.fake.slow_read(MOMENT);
        let before = told.reads();
        told.ring(&request, Hint::Next);
        tokio::time::sleep(MOMENT / 2).await;
        assert_eq!(told.reads() - before, 1, "the look is on its way");
        (0..3).for_each(|_| told.ring(&request, Hint::Next));
        tokio::time::sleep(MOMENT * 2).await;
        assert_eq!(told.reads() - before, 2);
        assert!(!waiter.is_finished(), "no hint lets a client in");
        waiter.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_lets_no_client_in() {
    bounded(async {
        let told = Told::new().await;
        let (_, request, waiter) = told.told_waiter().await;
        for hint in [Hint::Free { second: false }, Hint::Free { second: true }, Hint::Next, Hint::End] {
            told.ring(&request, hint);
            tokio::time::sleep(MOMENT).await;
            assert!(!waiter.is_finished(), "{hint:?}");
        }
        waiter.abort();
    })
    .await;
}

/// However often it is told to look, a waiter shows itself three times in a lease.
#[tokio::test(start_paused = true)]
async fn hints_do_not_keep_a_waiter_from_showing_itself_again() {
    bounded(async {
        let told = Told::new().await;
        let (_, request, waiter) = told.told_waiter().await;
        let writes = || told.fixture.fake.writes.load(Ordering::Relaxed);
        let before = writes();
        for round in 0..1_000 {
            tokio::time::sleep(LEASE / 100).await;
            told.ring(&request, Hint::Next);
            if round % 30 == 0 {
                told.renew().await;
            }
        }
        let written = writes() - before - 34;
        assert!((27..=35).contains(&written), "{written} writes in ten leases");
        waiter.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_with_an_unknown_key_asks_for_nothing() {
    bounded(async {
        let told = Told::new().await;
        let (engine, request, waiter) = told.told_waiter().await;
        let before = told.reads();
        let address = told.endpoint(&request).address;
        for number in 0..100 {
            told.post.forge(Hint::Free { second: false }, Endpoint { address, key: Key::from_u128(number) });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!((told.reads() - before, engine.hints().dropped), (0, 100));
        waiter.abort();
    })
    .await;
}

/// What a client is told for an acquisition that has ended is unknown, and nothing of that is kept.
#[tokio::test(start_paused = true)]
async fn a_key_ends_with_its_acquisition() {
    bounded(async {
        let told = Told::new().await;
        let endpoint = told.endpoint(&told.held);
        let keys = || told.holder.in_memory().last().copied();
        assert_eq!(keys(), Some(("keys of hints", 1)));
        told.leaves().await;
        tokio::time::sleep(LEASE * 3).await;
        assert_eq!(keys(), Some(("keys of hints", 0)), "it goes with what is kept of the row");
        told.post.forge(Hint::Next, endpoint);
        assert_eq!(told.holder.hints().dropped, 1);
        let again = told.fixture.again(&told.held);
        told.holder.acquire(&again).await.unwrap().unwrap();
        assert_ne!(told.endpoint(&again).key, endpoint.key);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_hints_costs_fifty_looks_a_second_at_most() {
    bounded(async {
        let told = Told::new().await;
        let (engine, request, waiter) = told.told_waiter().await;
        let before = told.reads();
        for _ in 0..3_000 {
            told.ring(&request, Hint::Free { second: false });
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let reads = told.reads() - before;
        assert!((75..=3 * 50).contains(&reads), "{reads} looks in three seconds");
        assert!(engine.hints().dropped > 2_000, "{:?}", engine.hints());
        told.leaves().await;
        let left = told.now();
        assert!(waiter.await.unwrap().since(left) < MOMENT, "a right one among them is followed");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_gets_lost_costs_a_long_pause_and_two_of_them_end_that() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (one, other) = (post.engine(&fixture), post.engine(&fixture));
        let (one, other) = (Arc::new(one), Arc::new(other));
        let mut found = Vec::new();
        for round in 0..6 {
            post.loses(round >= 2);
            let (_, held) = fixture.contestant();
            one.acquire(&held).await.unwrap().unwrap();
            let (_, request) = fixture.contestant();
            let (engine, world) = (Arc::clone(&other), Arc::clone(&fixture.world));
            let asked = request.clone();
            let waiter = tokio::spawn(async move {
                engine.acquire(&asked).await.unwrap().unwrap();
                world.now()
            });
            until("it waits", || fixture.rows().iter().any(|row| row.acquisition == request.id)).await;
            let grant = Grant::of(&held, None, fixture.world.now(), false);
            let holding = Holding::new(grant, None);
            one.renew(&[holding]).await.remove(0).unwrap();
            tokio::time::sleep(Duration::from_secs(2)).await;
            one.release(&fixture.key, held.id, None).await.unwrap();
            let left = fixture.world.now();
            found.push(waiter.await.unwrap().since(left));
            other.release(&fixture.key, request.id, None).await.unwrap();
        }
        assert!(found[1] < Duration::from_millis(5), "{found:?}");
        assert!(found[2..4].iter().all(|time| *time <= LONG_PAUSE), "{found:?}");
        assert!(found[4..].iter().all(|time| *time <= PAUSE), "{found:?}");
        assert_eq!(other.hints().missed, 2, "{found:?}");
    })
    .await;
}

/// A look that begins before the release is acknowledged may not show it, and the hint would be used up.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_says_so_when_that_is_acknowledged() {
    bounded(async {
        let told = Told::new().await;
        let (_, request, waiter) = told.told_waiter().await;
        told.renew().await;
        let idle = move |fate: Fate| {
            move |_, write: &ylock_engine_cassandra::algorithm::store::Write| {
                if write.row.state == State::Idle { fate } else { Fate::Arrives }
            }
        };
        let freed = || {
            let sent = told.post.sent();
            sent.into_iter().filter(|(hint, ..)| matches!(hint, Hint::Free { .. })).collect::<Vec<_>>()
        };
        told.fixture.fake.plan(idle(Fate::IsLate));
        told.holder.release(&told.fixture.key, told.held.id, None).await.unwrap_err();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(freed(), [], "it is in doubt");
        told.fixture.fake.plan(idle(Fate::IsHeardAfter(MOMENT)));
        told.leaves().await;
        let acknowledged = told.now();
        let address = told.endpoint(&request).address;
        assert_eq!(freed(), [(Hint::Free { second: false }, address, acknowledged)]);
        waiter.await.unwrap();
    })
    .await;
}

/// The first may be dead.
#[tokio::test(start_paused = true)]
async fn the_first_two_in_line_are_told() {
    bounded(async {
        let told = Told::new().await;
        let (_, first, dead) = told.told_waiter().await;
        let (_, second, waiter) = told.told_waiter().await;
        let (_, _, third) = told.told_waiter().await;
        told.renew().await;
        let [one, two] = [&first, &second].map(|request| told.endpoint(request).address);
        dead.abort();
        told.leaves().await;
        let sent = told.post.sent().into_iter().filter(|(hint, ..)| matches!(hint, Hint::Free { .. }));
        let sent: Vec<_> = sent.map(|(hint, to, _)| (hint, to)).collect();
        assert_eq!(sent, [(Hint::Free { second: false }, one), (Hint::Free { second: true }, two)]);
        waiter.abort();
        third.abort();
    })
    .await;
}

/// The next one can claim then, while the holder is inside. Before that the row does not say so, and a look would be in vain.
#[tokio::test(start_paused = true)]
async fn a_client_that_enters_tells_the_next_one_when_its_row_says_so() {
    bounded(async {
        let told = Told::new().await;
        let (_, first, entering) = told.told_waiter().await;
        let (_, second, waiting) = told.told_waiter().await;
        let address = told.endpoint(&second).address;
        let first_id = first.id;
        told.fixture.fake.plan(move |_, write| {
            let enters = write.row.acquisition == first_id && write.row.state == State::Held;
            if enters { Fate::IsHeardAfter(MOMENT) } else { Fate::Arrives }
        });
        told.renew().await;
        told.leaves().await;
        let entered = entering.await.unwrap();
        let next =
            || told.post.sent().into_iter().find(|(hint, to, _)| *hint == Hint::Next && *to == address);
        until("the second one is told", || next().is_some()).await;
        let next = next().unwrap();
        assert!(next.2 >= entered.plus(MOMENT), "{next:?}, in at {entered:?}");
        waiting.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_revoked_hears_at_once() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (here, there) = (locks(&fixture, &post), locks(&fixture, &post));
        let guard = here.locks("users").write("alice").await.unwrap();
        tokio::time::sleep(MOMENT).await;
        assert_eq!(there.revoke("users", "alice").await.unwrap(), 1);
        let revoked = fixture.world.now();
        assert_eq!(guard.lost().await, LossReason::Revoked);
        let heard = fixture.world.now().since(revoked);
        assert!(heard <= Duration::from_millis(5), "{heard:?}");
    })
    .await;
}

/// A holder for reading lets no more readers of its own client in, once a writer waits elsewhere.
#[tokio::test(start_paused = true)]
async fn a_holder_for_reading_hears_at_once_of_a_writer_that_waits() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (here, there) = (locks(&fixture, &post), locks(&fixture, &post));
        let _reader = here.locks("users").read("alice").await.unwrap();
        tokio::time::sleep(MOMENT).await;
        assert_eq!(fixture.states(), [State::Claimed]);
        let writer = tokio::spawn(async move { there.locks("users").write("alice").await.map(drop) });
        let came = fixture.world.now();
        fixture.until(State::Held, 1).await;
        let heard = fixture.world.now().since(came);
        assert!(heard < MOMENT, "{heard:?}");
        assert!(fixture.rows().len() == 2 && !writer.is_finished(), "renewed long before it was due");
        let writes = fixture.fake.writes.load(Ordering::Relaxed);
        tokio::time::sleep(MOMENT * 3).await;
        assert!(fixture.fake.writes.load(Ordering::Relaxed) - writes <= 2, "once");
        writer.abort();
    })
    .await;
}

/// A client without hints is found at its own pace, and tells no other.
#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_told_waits_among_those_that_can() {
    bounded(async {
        let told = Told::new().await;
        let (engine, request) = told.fixture.contestant();
        let waiter = tokio::spawn(async move { engine.acquire(&request).await.unwrap().unwrap() });
        told.fixture.until(State::Claimed, 1).await;
        let (_, _, second) = told.waiter().await;
        told.renew().await;
        assert_eq!(told.fixture.rows().iter().filter(|row| row.hints.is_none()).count(), 1);
        told.leaves().await;
        waiter.await.unwrap();
        second.abort();
    })
    .await;
}

/// Alone, it does not say at once that it is inside. One that waits can claim only when it does.
#[tokio::test(start_paused = true)]
async fn a_holder_that_had_entered_alone_tells_when_its_row_says_that_it_is_inside() {
    bounded(async {
        let told = Told::alone().await;
        let (_, _, waiter) = told.waiter().await;
        let entries = || told.post.sent().iter().filter(|(hint, ..)| *hint == Hint::Next).count();
        assert_eq!((told.row(&told.held).unwrap().state, entries()), (State::Claimed, 0));
        told.renew().await;
        assert_eq!(entries(), 1);
        told.renew().await;
        assert_eq!(entries(), 1, "that is no news");
        waiter.abort();
    })
    .await;
}

/// Readers that wait for a writer enter when that goes on as a reader.
#[tokio::test(start_paused = true)]
async fn a_writer_that_goes_on_as_a_reader_tells_the_readers() {
    bounded(async {
        let fixture = Fixture::new();
        let post = Post::new(&fixture);
        let (here, there) = (locks(&fixture, &post), locks(&fixture, &post));
        let writer = here.locks("users").write("alice").await.unwrap();
        let (locks, world) = (there.locks("users"), Arc::clone(&fixture.world));
        let reader = tokio::spawn(async move {
            let guard = locks.read("alice").await.unwrap();
            (guard, world.now())
        });
        fixture.until(State::Held, 1).await;
        tokio::time::sleep(LEASE / 2).await;
        assert!(!reader.is_finished());
        let sent = post.sent().len();
        let _guard = writer.downgrade().await.unwrap();
        let changed = fixture.world.now();
        let (_reader, entered) = reader.await.unwrap();
        let sent = post.sent().split_off(sent);
        assert!(sent.iter().any(|(hint, ..)| *hint == Hint::Next), "{sent:?}");
        assert!(entered.since(changed) < MOMENT, "{:?}", entered.since(changed));
    })
    .await;
}
