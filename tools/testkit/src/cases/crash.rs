//! A client that dies while it holds.

use futures_util::future::join_all;
use ylock_core::Mode;

use crate::{Fixture, eventually, within};

/// The lock of a writer that died is free when its lease is over, and not before.
pub async fn the_lock_of_a_dead_writer_is_free_after_its_lease(fixture: Fixture) {
    for mode in [Mode::Write, Mode::Read] {
        let (dying, other) = (fixture.short_lived().await, fixture.client().await);
        let guard = dying.write().await;
        dying.crash().await;
        // Until then it might still be working.
        assert!(other.try_acquire(mode).await.is_none() || !guard.is_valid());
        let lock = &other.lock;
        let granted = async { if mode == Mode::Write { lock.write().await } else { lock.read().await } };
        let next = within(fixture.lapse(), "the next holder gets in", granted).await.unwrap();
        assert!(!guard.is_valid(), "two hold it");
        drop(next);
    }
}

/// A waiter gets in when the holder before it has died.
pub async fn one_who_waits_outlives_a_dead_holder(fixture: Fixture) {
    let (dying, other) = (fixture.short_lived().await, fixture.client().await);
    let guard = dying.write().await;
    let waiting = other.queue_up(Mode::Write).await;
    dying.crash().await;
    drop(within(fixture.lapse(), "it gets in", waiting.outcome()).await.unwrap());
    assert!(!guard.is_valid());
}

/// A reader that died does not keep writers out for longer than its lease.
pub async fn a_dead_reader_does_not_keep_writers_out(fixture: Fixture) {
    let (dying, other) = (fixture.short_lived().await, fixture.client().await);
    let guard = dying.read().await;
    dying.crash().await;
    drop(within(fixture.lapse(), "a writer gets in", other.lock.write()).await.unwrap());
    assert!(!guard.is_valid());
}

/// Readers that live, and come and go, do not keep a dead reader alive.
pub async fn live_readers_do_not_keep_a_dead_one_alive(fixture: Fixture) {
    let (dying, living, writer) =
        (fixture.short_lived().await, fixture.short_lived().await, fixture.client().await);
    let (dead, alive) = (dying.read().await, living.read().await);
    dying.crash().await;
    let only_one = || async {
        drop(living.try_acquire(Mode::Read).await);
        writer.look().await.holders.len() == 1
    };
    eventually(fixture.lapse(), "the dead reader is gone while the other still reads", only_one).await;
    assert!(alive.is_valid() && !dead.is_valid());
    let waiting = writer.queue_up(Mode::Write).await;
    fixture.work().await;
    assert!(!waiting.is_done(), "the living reader is still inside");
    drop(alive);
    drop(waiting.guard().await);
}

/// A client that died with locks of many names frees all of them.
pub async fn a_dead_client_frees_all_its_locks(fixture: Fixture) {
    let (dying, other) = (fixture.short_lived().await, fixture.client().await);
    let mut guards = Vec::new();
    for number in 0..20 {
        let locks = dying.locks(fixture.group());
        guards.push(locks.write(format!("name {number}")).await.unwrap());
    }
    dying.crash().await;
    // At once: where waiters watch a dead holder for a lease, one after the other would watch each for as long.
    let locks = other.locks(fixture.group());
    let free = join_all((0..guards.len()).map(|number| locks.write(format!("name {number}"))));
    let granted = within(fixture.lapse(), "all are free", free).await;
    assert!(granted.iter().all(Result::is_ok), "{granted:?}");
}
