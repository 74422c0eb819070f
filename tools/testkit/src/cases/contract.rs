//! The contract of [`Engine`](ylock_core::engine::Engine), on which the keeper relies, asked of the engine itself.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Holding, Patience, Release, Renewal};
use ylock_core::{Key, LossReason, Mode};

use crate::contestant::{Contestant, pair};
use crate::patient::is_silence;
use crate::{Fixture, eventually, poll_times, within};

/// A grant says what was asked for.
pub async fn a_grant_repeats_its_request(fixture: Fixture) {
    let (one, _) = pair(&fixture, Mode::Write).await;
    let before = one.engine.environment().now();
    let grant = one.acquires().await.unwrap();
    assert_eq!((&grant.key, grant.id, grant.mode), (&one.request.key, one.request.id, Mode::Write));
    assert_eq!((grant.owner, grant.lease), (one.request.owner, one.request.lease));
    assert!(grant.sent >= before && grant.sent <= one.engine.environment().now());
    assert!(matches!(one.renews(&grant).await, Renewal::Renewed { sent, .. } if sent >= grant.sent));
    assert_eq!(one.releases(grant.id).await, Release::Released);
}

/// A release may be repeated, and says that there was nothing any more.
pub async fn a_release_may_be_repeated(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.unwrap();
    assert_eq!(one.releases(grant.id).await, Release::Released);
    assert_eq!(one.releases(grant.id).await, Release::WasGone);
    let held = other.tries().await.unwrap();
    assert_eq!(one.releases(grant.id).await, Release::WasGone);
    assert!(one.tries().await.is_none(), "the repeated release released the other grant");
    assert_eq!(one.releases(one.request.id).await, Release::WasGone, "a try leaves nothing");
    assert_eq!(other.releases(held.id).await, Release::Released);
}

/// The release of an acquisition that never was changes nothing.
pub async fn the_release_of_something_unknown_changes_nothing(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.unwrap();
    let unknown = AcquisitionId::new(&*other.engine.environment());
    assert_eq!(other.releases(unknown).await, Release::WasGone);
    assert!(other.tries().await.is_none());
    assert!(!other.engine.revoke(&grant.key, unknown).await.unwrap());
    assert!(matches!(one.renews(&grant).await, Renewal::Renewed { .. }));
    one.releases(grant.id).await;
}

/// A release and a renewal that gives up writing, and announces a waiter, cross on two threads: the release wins.
pub async fn a_release_that_crosses_a_renewal_leaves_nothing(fixture: Fixture) {
    let (mut one, other) = pair(&fixture, Mode::Write).await;
    let mut longest = Duration::ZERO;
    for round in 0..40 {
        let grant =
            one.tries().await.unwrap_or_else(|| panic!("the release before round {round} left something"));
        let (engine, key) = (Arc::clone(&one.engine), grant.key.clone());
        let next = one.request.clone().with_id(AcquisitionId::new(&*engine.environment()));
        let next = Some(next.with_patience(Patience::Queue)).filter(|_| round % 2 == 1);
        let shown = grant.clone().with_mode(Mode::Read);
        let holding = Holding::new(shown, next.clone());
        let start = engine.environment().now();
        let renewal = tokio::spawn(async move {
            drop(engine.renew(&[holding]).await);
            engine.environment().now().since(start)
        });
        // Now early, now late; in the first two rounds after it, to learn how long it takes.
        let pause = longest.mul_f64(f64::from(round % 20) / 20.0);
        while if round < 2 {
            !renewal.is_finished()
        } else {
            one.engine.environment().now().since(start) < pause
        } {
            tokio::task::yield_now().await;
        }
        one.engine.release(&key, grant.id, None).await.unwrap();
        let took = within(fixture.lapse(), "a renewal is answered", renewal).await.unwrap();
        longest = if round < 2 { longest.max(took) } else { longest };
        if let Some(next) = next {
            one.engine.release(&key, next.id, None).await.unwrap();
        }
        let gone = || async {
            let seen = other.engine.inspect(&key).await.unwrap();
            seen.holders.is_empty() && seen.queue.is_empty()
        };
        // Sooner than anything could lapse by itself.
        eventually(fixture.lease() / 2, "nothing is left", gone).await;
    }
}

/// A renewal of something that was given back is lost, and brings nothing back.
pub async fn a_renewal_after_a_release_brings_nothing_back(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.unwrap();
    one.releases(grant.id).await;
    assert!(matches!(one.renews(&grant).await, Renewal::Lost(_)));
    let held = other.tries().await.expect("it has no holder");
    assert!(matches!(one.renews(&grant).await, Renewal::Lost(_)));
    assert!(matches!(other.renews(&held).await, Renewal::Renewed { .. }));
    other.releases(held.id).await;
}

/// A renewal after the lease is lost, and the key is free for others.
pub async fn a_renewal_after_the_lease_is_lost(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.unwrap();
    fixture.leases(1.5).await;
    assert!(matches!(one.renews(&grant).await, Renewal::Lost(_)));
    one.releases(grant.id).await;
    let held = other.tries().await.expect("the lease of the other grant is over");
    assert!(matches!(one.renews(&grant).await, Renewal::Lost(_)));
    other.releases(held.id).await;
}

/// Many grants are renewed in one call, each with its own answer, in order.
pub async fn many_grants_are_renewed_in_one_call(fixture: Fixture) {
    let mut one = Contestant::long_lived(&fixture, Mode::Write, Patience::Try).await;
    let mut holdings = Vec::new();
    for number in 0..20 {
        one.request.key = Key::new(fixture.group(), format!("name {number}")).unwrap();
        let grant = one.tries().await.unwrap();
        holdings.push(Holding::new(grant, None));
    }
    for holding in holdings.iter().step_by(3) {
        let grant = &holding.grant;
        assert_eq!(one.engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    }
    let answers = one.engine.renew(&holdings).await;
    assert_eq!(answers.len(), holdings.len());
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(matches!(answer.unwrap(), Renewal::Lost(_)), number % 3 == 0, "holding {number}");
    }
    for holding in holdings {
        one.engine.release(&holding.grant.key, holding.grant.id, None).await.unwrap();
    }
}

/// An acquisition dropped after any poll and then released is undone, whether it was granted or not.
pub async fn an_acquisition_dropped_after_any_poll_is_undone_by_its_release(fixture: Fixture) {
    for mode in [Mode::Write, Mode::Read] {
        for polls in 1.. {
            let one = Contestant::new(&fixture, mode, Patience::Queue).await;
            let cut = poll_times(polls, one.engine.acquire(&one.request));
            let cut = within(fixture.lapse(), "the engine goes on", cut).await;
            within(fixture.soon(), "it is undone", one.releases(one.request.id)).await;
            let mut other = Contestant::new(&fixture, Mode::Write, Patience::Try).await;
            let grant = other.tries().await.expect("nothing is left of it");
            other.releases(grant.id).await;
            if cut.is_some() {
                break;
            }
        }
    }
}

/// A contender in the queue that is released is gone from it.
pub async fn a_contender_leaves_the_queue_by_its_release(fixture: Fixture) {
    let mut holder = Contestant::long_lived(&fixture, Mode::Read, Patience::Try).await;
    let mut late = Contestant::new(&fixture, Mode::Read, Patience::Try).await;
    let grant = holder.tries().await.unwrap();
    let writer = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
    let granted = tokio::time::timeout(fixture.harness().trip() * 4, writer.acquires()).await;
    assert!(granted.is_err(), "a writer got in beside a reader");
    writer.releases(writer.request.id).await;
    assert!(holder.engine.inspect(&grant.key).await.unwrap().queue.is_empty());
    let second = late.tries().await.expect("no writer waits any more");
    holder.releases(grant.id).await;
    late.releases(second.id).await;
}

/// A revoked grant is lost at its next renewal, and only then, or after its lease, another contender gets in.
pub async fn a_revoked_grant_is_lost_at_its_renewal(fixture: Fixture) {
    let (mut one, mut other) = pair(&fixture, Mode::Write).await;
    let grant = one.tries().await.unwrap();
    assert!(other.engine.revoke(&grant.key, grant.id).await.unwrap());
    assert!(other.tries().await.is_none(), "the holder does not know it yet");
    let lost = one.renews(&grant).await;
    assert_eq!(lost, Renewal::Lost(LossReason::Revoked));
    assert!(other.tries().await.is_none(), "it was told, and may be about to stop its work");
    one.releases(grant.id).await;
    let held = other.tries().await.expect("it was given back");
    assert!(!one.engine.revoke(&grant.key, grant.id).await.unwrap());
    other.releases(held.id).await;
}

/// An acquisition whose future was dropped, with its runtime, is made again and goes on where it stood.
pub async fn an_acquisition_goes_on_after_its_future_was_dropped(fixture: Fixture) {
    for polls in 1.. {
        let mut holder = Contestant::new(&fixture, Mode::Write, Patience::Try).await;
        let first = Contestant::new(&fixture, Mode::Write, Patience::Queue).await;
        let grant = holder.tries().await.expect("it is free");
        let cut = poll_times(polls, first.engine.acquire(&first.request));
        let is_over = tokio::time::timeout(fixture.lease() / 4, cut).await.is_err();
        let again = tokio::spawn(async move { (first.acquires().await, first) });
        holder.renews(&grant).await;
        holder.releases(grant.id).await;
        let (granted, first) = within(fixture.lapse(), "it goes on", again).await.unwrap();
        assert_eq!(granted.expect("no other wants it").id, first.request.id);
        assert_eq!(first.releases(first.request.id).await, Release::Released);
        let held = holder.tries().await.expect("nothing is left of it");
        holder.releases(held.id).await;
        // It was in the queue, and waited for its turn.
        if is_over {
            break;
        }
    }
}

/// When another contender tries, beside a try that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Never,
    Before,
    Meanwhile,
}

/// A try whose future was dropped, with its runtime, is made again: it is granted a lock that is free, and leaves nothing of one that is held; and of two, one
/// of which stands still in the middle, one gets in.
pub async fn a_try_goes_on_after_its_future_was_dropped(fixture: Fixture) {
    for (mode, comes) in [Mode::Write, Mode::Read]
        .into_iter()
        .flat_map(|mode| [Other::Never, Other::Before, Other::Meanwhile].map(|comes| (mode, comes)))
    {
        for polls in 1.. {
            let mut other = Contestant::long_lived(&fixture, Mode::Write, Patience::Try).await;
            let one = Contestant::new(&fixture, mode, Patience::Try).await;
            let mut held = match comes {
                Other::Before => Some(other.tries().await.expect("it is free")),
                Other::Never | Other::Meanwhile => None,
            };
            let cut = poll_times(polls, one.engine.acquire(&one.request));
            let cut = within(fixture.lapse(), "the engine goes on", cut).await;
            let is_over = cut.is_some();
            if comes == Other::Meanwhile {
                held = other.tries().await;
            }
            let answer = match cut {
                Some(answer) => answer,
                None => one.engine.acquire(&one.request).await,
            };
            let granted = match answer {
                // It was refused, and the answer to its own undoing is lost: as after every unknown outcome its caller releases.
                Err(error) if held.is_some() && is_silence(&error) => {
                    one.releases(one.request.id).await;
                    None
                }
                answer => answer.unwrap(),
            };
            assert_ne!(granted.is_some(), held.is_some(), "{mode}, dropped after {polls} polls, {comes:?}");
            if let Some(granted) = granted {
                assert_eq!(one.releases(granted.id).await, Release::Released);
            }
            if let Some(held) = held {
                let waits = async || !other.engine.inspect(&held.key).await.unwrap().queue.is_empty();
                eventually(fixture.soon(), "nothing of it waits", async || !waits().await).await;
                assert_eq!(other.releases(held.id).await, Release::Released);
            }
            let last = other.tries().await.expect("nothing is left of it");
            other.releases(last.id).await;
            if is_over {
                break;
            }
        }
    }
}

/// A revocation and a renewal that gives up writing cross: the revocation stays.
pub async fn a_revocation_that_crosses_a_downgrade_is_not_lost(fixture: Fixture) {
    let (mut one, other) = pair(&fixture, Mode::Write).await;
    for round in 0..40 {
        let grant = one.tries().await.unwrap_or_else(|| panic!("round {round}: it is not free"));
        let holding = Holding::new(grant.clone().with_mode(Mode::Read), None);
        let (engine, shown) = (Arc::clone(&one.engine), holding.clone());
        let downgrade = tokio::spawn(async move { engine.renew(&[shown]).await.remove(0) });
        for _ in 0..round % 8 {
            tokio::task::yield_now().await;
        }
        let revoked = other.engine.revoke(&grant.key, grant.id).await.unwrap();
        let first = within(fixture.lapse(), "a renewal is answered", downgrade).await.unwrap();
        assert!(revoked, "round {round}: it held the lock");
        let is_told = |answer| matches!(answer, Ok(Renewal::Lost(LossReason::Revoked)));
        let is_lost = is_told(first) || is_told(one.engine.renew(&[holding]).await.remove(0));
        assert!(is_lost, "round {round}: the revocation is forgotten");
        one.releases(grant.id).await;
    }
}
