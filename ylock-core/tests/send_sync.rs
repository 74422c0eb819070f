//! Everything can be moved to other threads, also the futures.

use std::time::Duration;

use ylock_core::engine::Inspection;
use ylock_core::{
    Election, Error, ErrorKind, Guarantees, Guard, Guards, Key, Leader, Leaders, Leadership, Lease, Leases,
    Lock, Locks, MemoryEngine, MemoryStore, MultiLock, Options, Owner, Permit, PermitLease, Semaphore, Token,
    TwoPhaseLocking, Ylock,
};

fn is_send<T: Send>(_: &T) {}

fn is_shared<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}

fn is_send_and_sync<T: Send + Sync + Unpin + std::fmt::Debug + 'static>() {}

#[test]
fn everything_can_be_sent_and_shared() {
    is_shared::<Ylock>();
    is_shared::<Locks>();
    is_shared::<Lock>();
    is_shared::<Lease>();
    is_shared::<Owner>();
    is_shared::<Key>();
    is_shared::<Token>();
    is_shared::<Options>();
    is_shared::<Guarantees>();
    is_shared::<Error>();
    is_shared::<ErrorKind>();
    is_shared::<Inspection>();
    is_shared::<MemoryStore>();
    is_shared::<MemoryEngine>();
    is_shared::<Election>();
    is_shared::<Leader>();
    is_send_and_sync::<Guard>();
    is_shared::<MultiLock>();
    is_shared::<Leases>();
    is_shared::<TwoPhaseLocking>();
    is_send_and_sync::<Guards>();
    is_send_and_sync::<Leadership>();
    is_send_and_sync::<Leaders>();
    is_shared::<Semaphore>();
    is_shared::<PermitLease>();
    is_send_and_sync::<Permit>();
}

#[tokio::test]
async fn every_future_can_be_sent() {
    let ylock = Ylock::in_memory();
    let (locks, lock) = (ylock.locks("group"), ylock.lock("group", "name"));
    let time = Duration::ZERO;
    is_send(&locks.write("name"));
    is_send(&locks.read(String::from("name")));
    is_send(&locks.write("name").now());
    is_send(&locks.read("name").now());
    is_send(&locks.write("name").within(time));
    is_send(&locks.read("name").within(time));
    is_send(&locks.write("name").run(|lease| async move { lease.token() }));
    is_send(&locks.read("name").run(|_| async {}));
    is_send(&lock.write());
    is_send(&lock.read());
    is_send(&lock.write().now());
    is_send(&lock.read().now());
    is_send(&lock.write().within(time));
    is_send(&lock.read().within(time));
    is_send(&lock.write().run(|_| async {}));
    is_send(&lock.read().run(|_| async {}));
    let many = ylock.multi_lock().write("group", "name");
    is_send(&many.acquire());
    is_send(&many.acquire().now());
    is_send(&many.acquire().within(time));
    is_send(&many.acquire().run(|leases| async move { leases.is_valid() }));
    is_send(&Guards::default().unlock());
    is_send(&ylock.two_phase_locking(|taking| async move { taking.write("group", "name").await.map(drop) }));
    let election = locks.election("name");
    is_send(&election.campaign());
    is_send(&election.campaign().run(|_| async {}));
    is_send(&election.leader());
    is_send(&election.observe().next());
    let semaphore = locks.semaphore("name", 2);
    is_send(&semaphore.acquire());
    is_send(&semaphore.acquire().now());
    is_send(&semaphore.acquire().within(time));
    is_send(&semaphore.acquire().run(|permit| async move { permit.is_valid() }));
    is_send(&ylock.inspect("group", "name"));
    is_send(&ylock.revoke("group", "name"));
    is_send(&ylock.close());
    is_send(&Owner::new().scope(async {}));
    is_send(&lock.write().await.unwrap().lost());
    is_send(&lock.write().await.unwrap().unlock());
    is_send(&lock.write().await.unwrap().downgrade());
}

#[test]
fn handles_are_small_to_clone() {
    assert!(size_of::<Ylock>() <= 5 * size_of::<usize>());
    assert!(size_of::<Owner>() == 16 && size_of::<Token>() == 8);
    assert!(size_of::<Error>() == size_of::<usize>(), "a result does not grow by its error");
}
