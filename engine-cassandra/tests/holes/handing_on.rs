//! A release that names the request that follows, and waiters that are announced behind what is held.

use ylock_core::engine::{Engine, Holding, Release, Renewal, Request};
use ylock_core::environment::Environment;
use ylock_core::{Mode, Unlocked};
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{Fate, LEASE};
use crate::stage::{Stage, bounded};

/// The claim may be in the store since the first release that named it, and it lets no client in: the lease of its grant counts from a
/// write that was sent when, or shortly before, the grant was asked for.
#[tokio::test(start_paused = true)]
async fn a_request_that_followed_a_release_is_shown_again_before_it_enters() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let next = stage.again(&request);
        engine.acquire(&request).await.unwrap().unwrap();
        let mut is_first = true;
        stage.fake.plan(
            move |_, _| if std::mem::take(&mut is_first) { Fate::ArrivesUnheard } else { Fate::Arrives },
        );
        engine.release(&stage.key, request.id, Some(&next)).await.unwrap_err();
        assert_eq!(engine.release(&stage.key, request.id, Some(&next)).await.unwrap(), Release::Released);
        assert_eq!((stage.states(), stage.rows()[0].acquisition), (vec![State::Claimed], next.id));
        // Paused: the row expires, and another client gets in.
        tokio::time::sleep(LEASE * 2).await;
        let other = stage.locks().try_write("alice").await.unwrap().expect("the row has expired");
        let waiting = tokio::spawn(async move { engine.acquire(&next).await.unwrap().unwrap() });
        stage.until(State::Claimed, 1).await;
        tokio::time::sleep(LEASE).await;
        assert!(other.is_valid() && !waiting.is_finished());
        assert_eq!(other.unlock().await.unwrap(), Unlocked::Released);
        let grant = waiting.await.unwrap();
        assert!(stage.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// The waiter has gone, or the release was given up: whatever is still on its way does not bring it back.
#[tokio::test(start_paused = true)]
async fn a_request_that_followed_a_release_in_doubt_is_undone_for_good() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let next = stage.again(&request);
        engine.acquire(&request).await.unwrap().unwrap();
        stage.fake.plan(|_, _| Fate::IsLate);
        for _ in 0..3 {
            engine.release(&stage.key, request.id, Some(&next)).await.unwrap_err();
        }
        engine.release(&stage.key, next.id, None).await.unwrap_err();
        stage.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&stage.key, next.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.fake.deliver(), 4, "a minute later");
        assert_eq!(stage.states(), [State::Idle]);
        assert!(stage.locks().try_write("alice").await.unwrap().is_some());
    })
    .await;
}

/// A writer that waited behind its own client's reader, and gave up: readers elsewhere come in again at once.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_announced_can_be_taken_back() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let reading = Request { mode: Mode::Read, ..request.clone() };
        let grant = engine.acquire(&reading).await.unwrap().unwrap();
        let writer = Request { ticket: Some(engine.ticket()), ..stage.again(&request) };
        let holding = Holding { grant: grant.clone(), next: Some(writer.clone()) };
        assert!(matches!(engine.renew(&[holding]).await.remove(0).unwrap(), Renewal::Renewed { .. }));
        assert_eq!(stage.rows()[0].next.map(|next| next.acquisition), Some(writer.id));
        assert!(stage.locks().try_read("alice").await.unwrap().is_none(), "behind the writer");
        assert_eq!(engine.release(&stage.key, writer.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.rows()[0].next, None);
        assert!(stage.locks().try_read("alice").await.unwrap().is_some());
        let renewed = engine.renew(&[Holding { grant, next: None }]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Renewed { .. }), "the reader holds on: {renewed:?}");
        assert_eq!(engine.release(&stage.key, writer.id, None).await.unwrap(), Release::WasGone);
    })
    .await;
}

/// The announced waiter goes with the grant that it was announced behind.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_announced_goes_with_its_grant() {
    bounded(async {
        let stage = Stage::new();
        let (engine, request) = stage.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let next = Some(stage.again(&request));
        engine.renew(&[Holding { grant, next }]).await.remove(0).unwrap();
        engine.release(&stage.key, request.id, None).await.unwrap();
        assert_eq!((stage.states(), stage.rows()[0].next), (vec![State::Idle], None));
        assert!(stage.locks().try_write("alice").await.unwrap().is_some());
    })
    .await;
}
