//! A writer gives up writing and goes on reading.

use futures_util::future::join_all;
use ylock_core::{ErrorKind, Guard, Mode, Owner, Unlocked};

use crate::{Client, Contender, Fixture, eventually, within};

/// Writes, and downgrades.
async fn downgraded(client: &Client) -> Guard {
    downgrade(client, client.write().await).await
}

async fn downgrade(client: &Client, guard: Guard) -> Guard {
    within(client.fixture().soon(), "a downgrade", guard.downgrade()).await.unwrap()
}

/// A downgraded guard reads: other readers get in, writers do not.
pub async fn a_downgraded_writer_shares_with_readers(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let write = here.write().await;
    let (owner, token) = (write.owner(), write.token());
    let read = downgrade(&here, write).await;
    assert_eq!((read.mode(), read.owner(), read.token()), (Mode::Read, owner, token));
    assert!(read.is_valid());
    assert_eq!(there.look().await.holders[0].mode, Mode::Read, "the store shows it when `downgrade` returns");
    for client in [&here, &there] {
        assert!(client.try_acquire(Mode::Write).await.is_none());
        assert!(client.try_acquire(Mode::Read).await.is_some());
    }
    assert_eq!(read.unlock().await.unwrap(), Unlocked::Released);
    drop(there.write().await);
}

/// A writer that waits, here or elsewhere, does not get in between writing and reading.
pub async fn a_downgrade_keeps_waiting_writers_out(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for writers in [vec![&here], vec![&there], vec![&here, &there]] {
        let write = here.write().await;
        let mut waiting = Vec::new();
        for client in writers {
            waiting.push(client.queue_up(Mode::Write).await);
        }
        let read = downgrade(&here, write).await;
        fixture.work().await;
        assert!(
            read.is_valid() && waiting.iter().all(|writer| !writer.is_done()),
            "a writer got in beside a reader"
        );
        drop(read);
        // Which of them is first is no matter of this case.
        join_all(waiting.into_iter().map(Contender::visit)).await;
    }
}

/// Readers that wait, here and elsewhere, get in when the writer becomes a reader.
pub async fn a_downgrade_lets_waiting_readers_in(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let write = here.write().await;
    let waiting = [here.queue_up(Mode::Read).await, there.queue_up(Mode::Read).await];
    let read = downgrade(&here, write).await;
    let [local, remote] = waiting;
    let inside = (local.guard().await, remote.guard().await);
    assert!(read.is_valid() && inside.0.is_valid() && inside.1.is_valid());
}

/// A downgraded guard is a reader also when it wants to write again.
pub async fn a_write_after_a_downgrade_would_deadlock(fixture: Fixture) {
    let client = fixture.client().await;
    let read = downgraded(&client).await;
    let error = client.lock.owned_by(&read.owner()).write().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
    drop(read);
    drop(client.write().await);
}

/// The downgrade of a reader is that reader.
pub async fn the_downgrade_of_a_reader_changes_nothing(fixture: Fixture) {
    let client = fixture.client().await;
    let read = client.read().await;
    let token = read.token();
    let read = downgrade(&client, read).await;
    assert_eq!((read.mode(), read.token(), read.is_valid()), (Mode::Read, token, true));
    assert_eq!(client.look().await.holders.len(), 1);
}

/// As long as the same owner has another write guard the lock stays exclusive.
pub async fn the_lock_stays_exclusive_while_another_guard_writes(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (first, second) = Owner::new().scope(async { (here.write().await, here.write().await) }).await;
    let first = downgrade(&here, first).await;
    for client in [&here, &there] {
        assert!(client.try_acquire(Mode::Read).await.is_none(), "the other guard still writes");
    }
    let second = downgrade(&here, second).await;
    assert!(there.try_acquire(Mode::Read).await.is_some());
    drop(first);
    assert!(second.is_valid() && there.try_acquire(Mode::Write).await.is_none());
    drop(second);
    drop(there.write().await);
}

/// A downgraded lock can be downgraded, renewed and given back like any other, again and again.
pub async fn writing_and_reading_can_alternate(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for round in 0..20 {
        let client = if round % 2 == 0 { &here } else { &there };
        let read = downgraded(client).await;
        assert!(read.is_valid());
        assert_eq!(read.unlock().await.unwrap(), Unlocked::Released);
    }
    let empty = || async { here.look().await.holders.is_empty() };
    eventually(fixture.soon(), "it has no holder", empty).await;
}
