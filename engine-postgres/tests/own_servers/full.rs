//! A server whose log has no room: it ends all that it does, and starts again when there is room.

use std::time::Duration;

use ylock_core::{ErrorKind, Guard, Lease, Ylock};
use ylock_testkit::own_servers::SmallDisk;

use super::own_server::OwnServer;
use super::{
    LONG, acquire, client, client_with, one_holds_and_another_waits, unlock, until, waiters, within,
};

const LEASE: Duration = Duration::from_secs(4);

/// Fills the disk, and the log up to its end. A client that only tries is told.
async fn fill(server: &OwnServer, disk: &SmallDisk, tries: &Ylock) {
    disk.fill_but(0);
    until("a client that only tries is told", async || {
        // It may have begun again with the room that was left.
        server.fill_log().await;
        match tries.locks("users").write("bob").now().await {
            Ok(guard) => {
                drop(guard);
                false
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
                true
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_log_without_room_is_an_outage_and_no_two_hold_a_lock() {
    const TEST: &str = "full::a_log_without_room_is_an_outage_and_no_two_hold_a_lock";
    let Some(disk) = SmallDisk::mount("postgres", TEST, "size=32m,mode=0755") else { return };
    let mut server = OwnServer::start_on(&disk).await;
    let timeout = LEASE / 4;
    let tries = client_with(server.options().with_lease(LEASE).with_request_timeout(timeout)).await;

    // For less than a lease.
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    fill(&server, &disk, &tries).await;
    disk.free();
    server.start_again().await;
    until("the server is back", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    let token = guard.token();
    unlock(guard).await;
    let next = within("the next one gets in", waiting).await.unwrap();
    assert!(next.token() > token);
    unlock(next).await;

    // For longer.
    let short = client(&server, LEASE).await;
    let guard = acquire(&short).await;
    let waiting = tokio::spawn(enters(two, guard.lease()));
    until("it waits", async || waiters(&one).await == 1).await;
    fill(&server, &disk, &tries).await;
    within("the holder is told", guard.lost()).await;
    disk.free();
    server.start_again().await;
    let (next, other_holds) = within("the next one gets in", waiting).await.unwrap();
    assert!(!other_holds && next.token() > guard.token());
    unlock(next).await;
    drop(guard);
    unlock(within("the first gets in again", short.locks("users").write("alice")).await.unwrap()).await;
}

/// Returns the guard, and whether the other holder still relied on its lease at that moment.
async fn enters(ylock: Ylock, other: Lease) -> (Guard, bool) {
    let guard = ylock.locks("users").write("alice").await.unwrap();
    let other_holds = other.is_valid();
    (guard, other_holds)
}
