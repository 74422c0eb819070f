//! A release that names the request that follows, and waiters that are announced behind what is held.

use ylock_core::engine::{Engine, Holding, Release, Renewal};
use ylock_core::environment::Environment;
use ylock_core::{Mode, Unlocked};
use ylock_engine_cassandra::algorithm::store::State;

use crate::fake::{Fate, LEASE};
use crate::fixture::{Fixture, bounded};

/// The claim may be in the store since the first release that named it, and it lets no client in: the lease of its grant counts from a
/// write that was sent when, or shortly before, the grant was asked for.
#[tokio::test(start_paused = true)]
async fn a_request_that_followed_a_release_is_shown_again_before_it_enters() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let next = fixture.again(&request);
        engine.acquire(&request).await.unwrap().unwrap();
        let mut is_first = true;
        fixture.fake.plan(
            move |_, _| if std::mem::take(&mut is_first) { Fate::ArrivesUnheard } else { Fate::Arrives },
        );
        engine.release(&fixture.key, request.id, Some(&next)).await.unwrap_err();
        assert_eq!(engine.release(&fixture.key, request.id, Some(&next)).await.unwrap(), Release::Released);
        assert_eq!((fixture.states(), fixture.rows()[0].acquisition), (vec![State::Claimed], next.id));
        // Paused: the row is watched for a lease and buried, and another client gets in.
        tokio::time::sleep(LEASE * 2).await;
        let other = fixture.locks().write("alice").await.unwrap();
        let waiting = tokio::spawn(async move { engine.acquire(&next).await.unwrap().unwrap() });
        fixture.until(State::Claimed, 1).await;
        tokio::time::sleep(LEASE).await;
        assert!(other.is_valid() && !waiting.is_finished());
        assert_eq!(other.unlock().await.unwrap(), Unlocked::Released);
        let grant = waiting.await.unwrap();
        assert!(fixture.world.now().since(grant.sent) < LEASE / 2, "valid when it is granted");
    })
    .await;
}

/// The waiter has gone, or the release was given up: whatever is still on its way does not bring it back.
#[tokio::test(start_paused = true)]
async fn a_request_that_followed_a_release_in_doubt_is_undone_for_good() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let next = fixture.again(&request);
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        for _ in 0..3 {
            engine.release(&fixture.key, request.id, Some(&next)).await.unwrap_err();
        }
        engine.release(&fixture.key, next.id, None).await.unwrap_err();
        fixture.fake.plan(|_, _| Fate::Arrives);
        assert_eq!(engine.release(&fixture.key, next.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.deliver(), 4, "a minute later");
        assert_eq!(fixture.states(), [State::Idle]);
        assert!(fixture.locks().write("alice").now().await.unwrap().is_some());
    })
    .await;
}

/// A writer that waited behind its own client's reader, and gave up: readers elsewhere come in again at once.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_announced_can_be_taken_back() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let reading = request.clone().with_mode(Mode::Read);
        let grant = engine.acquire(&reading).await.unwrap().unwrap();
        let writer = fixture.again(&request).with_ticket(engine.ticket());
        let holding = Holding::new(grant.clone(), writer.clone());
        assert!(matches!(engine.renew(&[holding]).await.remove(0).unwrap(), Renewal::Renewed { .. }));
        assert_eq!(fixture.rows()[0].next.map(|next| next.acquisition), Some(writer.id));
        assert!(fixture.locks().read("alice").now().await.unwrap().is_none(), "behind the writer");
        assert_eq!(engine.release(&fixture.key, writer.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.rows()[0].next, None);
        assert!(fixture.locks().read("alice").now().await.unwrap().is_some());
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert!(matches!(renewed, Renewal::Renewed { .. }), "the reader holds on: {renewed:?}");
        assert_eq!(engine.release(&fixture.key, writer.id, None).await.unwrap(), Release::WasGone);
    })
    .await;
}

/// The announced waiter goes with the grant that it was announced behind.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_announced_goes_with_its_grant() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let next = Some(fixture.again(&request));
        engine.renew(&[Holding::new(grant, next)]).await.remove(0).unwrap();
        engine.release(&fixture.key, request.id, None).await.unwrap();
        assert_eq!((fixture.states(), fixture.rows()[0].next), (vec![State::Idle], None));
        assert!(fixture.locks().write("alice").now().await.unwrap().is_some());
    })
    .await;
}

/// Its place is that at which other clients have seen it, and they have come behind it.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_announced_keeps_its_place_when_it_follows() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        let next = fixture.again(&request);
        engine.renew(&[Holding::new(grant, next.clone())]).await.remove(0).unwrap();
        let announced = fixture.rows()[0].next.unwrap().ticket;
        let (other, theirs) = fixture.contestant();
        let waiting = tokio::spawn(async move { other.acquire(&theirs).await.unwrap().unwrap() });
        fixture.until(State::Waiting, 1).await;
        engine.release(&fixture.key, request.id, Some(&next)).await.unwrap();
        let followed = fixture.rows().into_iter().find(|row| row.acquisition == next.id).unwrap();
        assert_eq!(followed.ticket, announced);
        engine.acquire(&next).await.unwrap().unwrap();
        assert!(!waiting.is_finished(), "it has come later");
        waiting.abort();
    })
    .await;
}

/// A claim would only disturb them: perhaps one of them comes first.
#[tokio::test(start_paused = true)]
async fn a_request_that_follows_claims_at_once_only_where_no_other_client_waits() {
    bounded(async {
        for (others, state) in [(0, State::Claimed), (1, State::Waiting)] {
            let fixture = Fixture::new();
            let (engine, request) = fixture.contestant();
            let grant = engine.acquire(&request).await.unwrap().unwrap();
            for _ in 0..others {
                let (other, theirs) = fixture.contestant();
                tokio::spawn(async move { drop(other.acquire(&theirs).await) });
                fixture.until(State::Waiting, 1).await;
            }
            // Its look shows who is there.
            engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
            let next = fixture.again(&request);
            engine.release(&fixture.key, request.id, Some(&next)).await.unwrap();
            let followed = fixture.rows().into_iter().find(|row| row.acquisition == next.id).unwrap();
            assert_eq!(followed.state, state, "{others} others");
        }
    })
    .await;
}
