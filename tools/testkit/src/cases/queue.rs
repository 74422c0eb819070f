//! Waiters in the queue that give up, die, or sleep.

use std::time::Duration;

use ylock_core::{HandOver, Mode, Options};

use crate::{Contender, Fixture, eventually, within};

/// A waiter in the middle that gives up does not change the order of the others, in one client or between clients.
pub async fn one_who_gives_up_in_the_middle_changes_no_order(fixture: Fixture) {
    let clients = fixture.clients(4).await;
    for among in [[0, 0, 0], [1, 2, 3]] {
        let guard = clients[0].write().await;
        let mut waiting: Vec<Contender> = Vec::new();
        for index in among {
            let contender = clients[index].queue_up_seen_by(Mode::Write, &clients[0]).await;
            waiting.push(contender);
        }
        let (last, middle, first) = (waiting.remove(2), waiting.remove(1), waiting.remove(0));
        middle.cancel().await;
        drop(guard);
        let inside = first.guard().await;
        assert!(!last.is_done(), "two are inside");
        drop(inside);
        drop(last.guard().await);
    }
}

/// The queue shows the waiters, in order, with owner and mode.
pub async fn the_queue_is_shown_in_order(fixture: Fixture) {
    let clients = fixture.clients(3).await;
    let guard = clients[0].write().await;
    let mut waiting = Vec::new();
    for (index, mode) in [(1, Mode::Write), (2, Mode::Read)] {
        let contender = clients[index].queue_up_seen_by(mode, &clients[0]).await;
        waiting.push((contender, mode));
    }
    let seen = clients[0].look().await;
    let queue: Vec<_> = seen.queue.iter().map(|waiter| (waiter.owner, waiter.mode)).collect();
    let expected: Vec<_> = waiting.iter().map(|(contender, mode)| (contender.owner(), *mode)).collect();
    assert_eq!(queue, expected);
    assert_eq!(seen.holders.len(), 1);
    assert_eq!(seen.holders[0].owner, guard.owner());
    drop(waiting);
    let empty = || async { clients[0].look().await.queue.is_empty() };
    eventually(fixture.soon(), "waiters that gave up are gone", empty).await;
}

/// A client that waits at the head and dies is skipped when its lease is over.
pub async fn a_dead_client_at_the_head_is_skipped(fixture: Fixture) {
    let (holder, head, next) = (fixture.client().await, fixture.short_lived().await, fixture.client().await);
    let guard = holder.write().await;
    let dead = head.queue_up_seen_by(Mode::Write, &holder).await;
    let waiting = next.queue_up_seen_by(Mode::Write, &holder).await;
    head.crash().await;
    drop(guard);
    drop(within(fixture.lapse(), "the next waiter gets in", waiting.outcome()).await.unwrap());
    assert!(!dead.is_done());
}

/// A client that waits as a writer and dies does not keep readers out for longer than its lease: those of other clients, nor those of a client that reads
/// already and has to ask the store for each of them.
pub async fn a_dead_writer_in_the_queue_does_not_keep_readers_out(fixture: Fixture) {
    let asks = Options::default()
        .with_lease(fixture.long_lease())
        .with_hand_over(HandOver::up_to(0, Duration::ZERO));
    let (holder, other) = (fixture.client_with(asks).await, fixture.client().await);
    for late in [&holder, &other] {
        let dying = fixture.short_lived().await;
        let guard = holder.read().await;
        let _dead = dying.queue_up_seen_by(Mode::Write, &holder).await;
        dying.crash().await;
        let read = || async { late.try_acquire(Mode::Read).await.is_some() };
        eventually(fixture.lapse(), "readers get in again", read).await;
        drop(guard);
    }
}

/// A reader that waits behind a writer of another client, beside a reader of its own client, gets in when that writer is gone, long before the next renewal is due.
pub async fn a_reader_gets_in_when_the_writer_before_it_is_gone(fixture: Fixture) {
    let asks = Options::default()
        .with_lease(fixture.long_lease())
        .with_hand_over(HandOver::up_to(0, Duration::ZERO));
    let holder = fixture.client_with(asks).await;
    for dies in [true, false] {
        let gone = fixture.short_lived().await;
        let guard = holder.read().await;
        let writer = gone.queue_up_seen_by(Mode::Write, &holder).await;
        let reader = holder.queue_up(Mode::Read).await;
        fixture.work().await;
        assert!(!reader.is_done(), "a reader overtook a writer that waits");
        if dies {
            gone.crash().await;
        } else {
            writer.cancel().await;
        }
        drop(within(fixture.lapse(), "the reader gets in", reader.outcome()).await.unwrap());
        drop(guard);
    }
}

/// Many dead clients in the queue cost one lease together, not one each.
pub async fn many_dead_clients_cost_one_lease_together(fixture: Fixture) {
    let (holder, last) = (fixture.client().await, fixture.client().await);
    let guard = holder.write().await;
    let (mut clients, mut dead) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let client = fixture.short_lived().await;
        let contender = client.queue_up_seen_by(Mode::Write, &holder).await;
        clients.push(client);
        dead.push(contender);
    }
    let waiting = last.queue_up_seen_by(Mode::Write, &holder).await;
    for client in &clients {
        client.crash().await;
    }
    drop(guard);
    drop(within(fixture.lapse(), "the last waiter gets in", waiting.outcome()).await.unwrap());
}

/// A waiter that waits for longer than several leases keeps its place, and gets in.
pub async fn a_wait_may_be_longer_than_many_leases(fixture: Fixture) {
    let (holder, early, late) = (fixture.client().await, fixture.short_lived().await, fixture.client().await);
    let guard = holder.write().await;
    let first = early.queue_up_seen_by(Mode::Write, &holder).await;
    let second = late.queue_up_seen_by(Mode::Write, &holder).await;
    fixture.leases(4.0).await;
    assert_eq!(holder.look().await.queue.len(), 2, "both are still in the queue");
    drop(guard);
    let inside = first.guard().await;
    assert!(!second.is_done(), "the later waiter waits");
    drop(inside);
    drop(second.guard().await);
}

/// A short outage does not cost a waiter its place.
pub async fn a_short_pause_does_not_cost_the_place(fixture: Fixture) {
    let (holder, early, late) = (fixture.client().await, fixture.short_lived().await, fixture.client().await);
    let guard = holder.write().await;
    let first = early.queue_up_seen_by(Mode::Write, &holder).await;
    let second = late.queue_up_seen_by(Mode::Write, &holder).await;
    early.process().pause();
    fixture.leases(0.3).await;
    early.process().resume();
    drop(guard);
    let inside = within(fixture.lapse(), "the first waiter gets in", first.outcome()).await.unwrap();
    assert!(!second.is_done(), "the later waiter waits");
    drop(inside);
    drop(second.guard().await);
}

/// A client that slept in the queue for longer than its lease does not get in beside another holder when it wakes up.
pub async fn one_who_overslept_in_the_queue_does_not_get_in_beside_another(fixture: Fixture) {
    let (holder, sleeper, other) =
        (fixture.client().await, fixture.short_lived().await, fixture.client().await);
    let guard = holder.write().await;
    let sleeping = sleeper.queue_up_seen_by(Mode::Write, &holder).await;
    let waiting = other.queue_up(Mode::Write).await;
    sleeper.process().pause();
    fixture.leases(1.5).await;
    drop(guard);
    let inside = within(fixture.lapse(), "the other waiter gets in", waiting.outcome()).await.unwrap();
    sleeper.process().resume();
    fixture.leases(1.0).await;
    assert!(
        !sleeping.is_done(),
        "it got in beside another, or its sleep was taken for an outage of the store"
    );
    assert!(inside.is_valid() && other.look().await.holders.len() == 1, "two are inside");
    drop(inside);
    drop(within(fixture.lapse(), "it gets its turn", sleeping.outcome()).await.unwrap());
    drop(within(fixture.lapse(), "the lock is free", holder.lock.write()).await.unwrap());
}
