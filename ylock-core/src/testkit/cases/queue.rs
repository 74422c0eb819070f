//! Waiters in the queue that give up, die, or sleep.

use crate::mode::Mode;
use crate::testkit::{Contender, Stage, eventually, within};

/// A waiter in the middle that gives up does not change the order of the others, in one client or between clients.
pub async fn one_who_gives_up_in_the_middle_changes_no_order(stage: Stage) {
    let clients = stage.clients(4).await;
    for among in [[0, 0, 0], [1, 2, 3]] {
        let guard = clients[0].write().await;
        let mut waiting: Vec<Contender> = Vec::new();
        for index in among {
            let contender = clients[index].queue_up(Mode::Write).await;
            contender.seen_by(&clients[0]).await;
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
pub async fn the_queue_is_shown_in_order(stage: Stage) {
    let clients = stage.clients(3).await;
    let guard = clients[0].write().await;
    let mut waiting = Vec::new();
    for (index, mode) in [(1, Mode::Write), (2, Mode::Read)] {
        let contender = clients[index].queue_up(mode).await;
        contender.seen_by(&clients[0]).await;
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
    eventually(stage.soon(), "waiters that gave up are gone", empty).await;
}

/// A client that waits at the head and dies is skipped when its lease is over.
pub async fn a_dead_client_at_the_head_is_skipped(stage: Stage) {
    let (holder, head, next) = (stage.client().await, stage.short_lived().await, stage.client().await);
    let guard = holder.write().await;
    let dead = head.queue_up(Mode::Write).await;
    dead.seen_by(&holder).await;
    let waiting = next.queue_up(Mode::Write).await;
    waiting.seen_by(&holder).await;
    head.crash().await;
    drop(guard);
    drop(within(stage.lapse(), "the next waiter gets in", waiting.outcome()).await.unwrap());
    assert!(!dead.is_done());
}

/// A client that waits as a writer and dies does not keep readers out for longer than its lease.
pub async fn a_dead_writer_in_the_queue_does_not_keep_readers_out(stage: Stage) {
    let (holder, dying) = (stage.client().await, stage.short_lived().await);
    let guard = holder.read().await;
    let dead = dying.queue_up(Mode::Write).await;
    dead.seen_by(&holder).await;
    dying.crash().await;
    let read = || async { holder.try_acquire(Mode::Read).await.is_some() };
    eventually(stage.lapse(), "readers get in again", read).await;
    drop(guard);
}

/// Many dead clients in the queue cost one lease together, not one each.
pub async fn many_dead_clients_cost_one_lease_together(stage: Stage) {
    let (holder, last) = (stage.client().await, stage.client().await);
    let guard = holder.write().await;
    let (mut clients, mut dead) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let client = stage.short_lived().await;
        let contender = client.queue_up(Mode::Write).await;
        contender.seen_by(&holder).await;
        clients.push(client);
        dead.push(contender);
    }
    let waiting = last.queue_up(Mode::Write).await;
    waiting.seen_by(&holder).await;
    for client in &clients {
        client.crash().await;
    }
    drop(guard);
    drop(within(stage.lapse(), "the last waiter gets in", waiting.outcome()).await.unwrap());
}

/// A waiter that waits for longer than several leases keeps its place, and gets in.
pub async fn a_wait_may_be_longer_than_many_leases(stage: Stage) {
    let (holder, early, late) = (stage.client().await, stage.short_lived().await, stage.client().await);
    let guard = holder.write().await;
    let first = early.queue_up(Mode::Write).await;
    first.seen_by(&holder).await;
    let second = late.queue_up(Mode::Write).await;
    second.seen_by(&holder).await;
    stage.leases(4.0).await;
    assert_eq!(holder.look().await.queue.len(), 2, "both are still in the queue");
    drop(guard);
    let inside = first.guard().await;
    assert!(!second.is_done(), "the later waiter waits");
    drop(inside);
    drop(second.guard().await);
}

/// A short outage does not cost a waiter its place.
pub async fn a_short_pause_does_not_cost_the_place(stage: Stage) {
    let (holder, early, late) = (stage.client().await, stage.short_lived().await, stage.client().await);
    let guard = holder.write().await;
    let first = early.queue_up(Mode::Write).await;
    first.seen_by(&holder).await;
    let second = late.queue_up(Mode::Write).await;
    second.seen_by(&holder).await;
    early.life().pause();
    stage.leases(0.3).await;
    early.life().resume();
    drop(guard);
    let inside = within(stage.lapse(), "the first waiter gets in", first.outcome()).await.unwrap();
    assert!(!second.is_done(), "the later waiter waits");
    drop(inside);
    drop(second.guard().await);
}

/// A client that slept in the queue for longer than its lease does not get in beside another holder when it wakes up.
pub async fn one_who_overslept_in_the_queue_does_not_get_in_beside_another(stage: Stage) {
    let (holder, sleeper, other) = (stage.client().await, stage.short_lived().await, stage.client().await);
    let guard = holder.write().await;
    let sleeping = sleeper.queue_up(Mode::Write).await;
    sleeping.seen_by(&holder).await;
    let waiting = other.queue_up(Mode::Write).await;
    sleeper.life().pause();
    stage.leases(1.5).await;
    drop(guard);
    let inside = within(stage.lapse(), "the other waiter gets in", waiting.outcome()).await.unwrap();
    sleeper.life().resume();
    stage.leases(1.0).await;
    assert!(
        !sleeping.is_done(),
        "it got in beside another, or its sleep was taken for an outage of the store"
    );
    assert!(inside.is_valid() && other.look().await.holders.len() == 1, "two are inside");
    drop(inside);
    drop(within(stage.lapse(), "it gets its turn", sleeping.outcome()).await.unwrap());
    drop(within(stage.lapse(), "the lock is free", holder.lock.write()).await.unwrap());
}
