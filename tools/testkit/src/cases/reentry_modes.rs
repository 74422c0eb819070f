//! The same owner enters again in another mode.

use ylock_core::{ErrorKind, Mode, Owner, Unlocked};

use crate::{Contender, Fixture, eventually, within};

/// An owner that writes may read as well, and gives both back in any order.
pub async fn a_read_inside_a_write_is_granted(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let owner = Owner::new();
    let (write, read) = owner.scope(async { (here.write().await, here.read().await) }).await;
    assert_eq!((write.mode(), read.mode()), (Mode::Write, Mode::Read));
    assert_eq!(write.token(), read.token());

    assert_eq!(read.unlock().await.unwrap(), Unlocked::Released);
    assert!(write.is_valid(), "giving back the read keeps the write");
    for client in [&here, &there] {
        assert!(client.try_acquire(Mode::Read).await.is_none(), "giving back the read keeps readers out");
        assert!(client.try_acquire(Mode::Write).await.is_none(), "giving back the read keeps writers out");
    }
}

/// An owner that gives back its write and keeps a read lets other readers in, and no writer.
pub async fn a_read_that_outlives_its_write_is_shared(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (write, read) = Owner::new().scope(async { (here.write().await, here.read().await) }).await;
    assert_eq!(write.unlock().await.unwrap(), Unlocked::Released);
    assert!(read.is_valid());
    for client in [&here, &there] {
        assert!(client.try_acquire(Mode::Write).await.is_none(), "a reader is still inside");
        let reads = || async { client.try_acquire(Mode::Read).await.is_some() };
        eventually(fixture.soon(), "another reader gets in", reads).await;
    }
    drop(read);
    drop(there.write().await);
}

/// A reader enters again although a writer waits: the writer waits for it.
pub async fn a_reader_enters_again_although_a_writer_waits(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let outer = here.read().await;
    let (local, remote) = (here.queue_up(Mode::Write).await, there.queue_up(Mode::Write).await);
    let again = here.lock.owned_by(&outer.owner());
    let inner = within(fixture.soon(), "a reader enters again", again.read()).await.unwrap();
    assert_eq!(inner.token(), outer.token());
    drop(outer);
    assert!(inner.is_valid() && !local.is_done() && !remote.is_done(), "one read is left");
    drop(inner);
    tokio::join!(local.visit(), remote.visit());
}

/// A reader that wants to write is told at once that it would wait for ever; it still reads.
pub async fn a_write_inside_a_read_would_deadlock(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let read = here.read().await;
    let lock = here.lock.owned_by(&read.owner());
    for _ in 0..2 {
        let error = within(fixture.soon(), "it is told at once", lock.write()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
        assert_eq!(error.key(), Some(&here.key()));
        assert_eq!(lock.write().now().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    }
    assert!(read.is_valid());
    assert!(there.look().await.queue.is_empty());
    assert_eq!(read.unlock().await.unwrap(), Unlocked::Released);
    drop(lock.write().await.expect("after the read was given back"));
}

/// Two readers that both want to write are both told, and neither hangs.
pub async fn two_readers_that_want_to_write_do_not_deadlock(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for (one, other) in [(&here, &here), (&here, &there)] {
        let (first, second) = (one.read().await, other.read().await);
        let (one, other) = (one.lock.owned_by(&first.owner()), other.lock.owned_by(&second.owner()));
        let both = async { tokio::join!(one.write(), other.write()) };
        let (one, other) = within(fixture.soon(), "both are told", both).await;
        assert_eq!(one.unwrap_err().kind(), ErrorKind::WouldDeadlock);
        assert_eq!(other.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    }
}

/// An owner that waits for a read and for a write at once is not left hanging.
pub async fn an_owner_that_waits_for_both_modes_does_not_hang(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for modes in [[Mode::Read, Mode::Write], [Mode::Write, Mode::Read]] {
        let (owner, guard) = (Owner::new(), there.write().await);
        let first = Contender::start_as(&here, modes[0], owner);
        first.seen_by(&here).await;
        let second = Contender::start_as(&here, modes[1], owner);
        eventually(fixture.soon(), "both wait", || async { here.look().await.queue.len() == 2 }).await;
        drop(guard);
        let first = first.guard().await;
        match second.outcome().await {
            Ok(second) => assert!(first.is_valid() && second.is_valid()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}"),
        }
        drop(first);
        drop(there.write().await);
    }
}
