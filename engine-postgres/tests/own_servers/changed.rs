//! Rows that other hands have changed.

use ylock_core::LossReason;

use super::own_server::OwnServer;
use super::{
    LEASE, LONG, acquire, client, joins, one_holds_and_another_waits, unlock, until, waiters, within,
};

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_holder_whose_row_was_deleted_is_told() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    for statement in
        ["delete from ylock.lock", "truncate ylock.lock", "update ylock.lock set id = gen_random_uuid()"]
    {
        let guard = acquire(&one).await;
        server.execute(statement).await;
        let reason = within("the holder is told", guard.lost()).await;
        assert!(matches!(reason, LossReason::Gone | LossReason::Lapsed), "{reason:?}");
        let token = guard.token();
        drop(guard);
        let next = acquire(&two).await;
        assert!(next.token() > token);
        unlock(next).await;
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_waiter_whose_row_was_deleted_waits_again() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    server.execute("delete from ylock.waiter").await;
    until("it waits again", async || waiters(&one).await == 1).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    unlock(guard).await;
    unlock(within("it gets in", waiting).await.unwrap()).await;
}

/// What the row says of the other tables is found out to be wrong.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn what_the_row_says_wrongly_of_others_keeps_no_contender_out() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    unlock(acquire(&one).await).await;
    server.execute("update ylock.lock set waiting = true, shared = true, earliest = 1, longest = 1").await;
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
}

/// A waiter that is dead, or was put there by other hands, keeps its place until it counts as dead.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_waiter_that_never_asks_is_passed_over() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let put = "insert into ylock.waiter (key, id, mode, lease, alive, since, ticket, number, owner, client)
        select key, gen_random_uuid(), 'w', 1000000, ylock.micros() + 5000000, 0, 0, 0, gen_random_uuid(), 'x' from ylock.lock;
        update ylock.lock set waiting = true";
    server.execute(put).await;
    let waiting = joins(&two, &two, 1).await;
    unlock(guard).await;
    unlock(within("the one behind it gets in", waiting).await.unwrap()).await;
}
