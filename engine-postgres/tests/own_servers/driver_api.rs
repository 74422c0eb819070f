//! Locks in transactions of the program.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_postgres::{Client, IsolationLevel, Transaction};
use ylock_core::engine::{AcquisitionId, Engine, Grant, Holding, Renewal, Request};
use ylock_core::environment::SystemEnvironment;
use ylock_core::{ClientName, ErrorKind, Guard, Key, Mode, Owner, Token};
use ylock_engine_postgres::PostgresEngine;
use ylock_engine_postgres::driver_api::InTransaction;
use ylock_testkit::answered;

use super::own_server::OwnServer;
use super::{
    LEASE, LONG, OUTLASTS, acquire, channel, client, engine_with, is_held, joins, options, told, unlock,
    until, waiters, within,
};

fn key() -> Key {
    Key::new("users", "alice").unwrap()
}

/// Acquires a lock to write, straight at the engine.
async fn acquired(engine: &PostgresEngine, name: &str) -> Grant {
    let key = Key::new("users", name).unwrap();
    let id = AcquisitionId::new(&*SystemEnvironment::shared());
    let request = Request::new(key, id, Mode::Write, Owner::new(), ClientName::default(), LONG);
    engine.acquire(&request).await.unwrap().unwrap()
}

async fn locks(client: &mut Client) -> bool {
    let transaction = client.transaction().await.unwrap();
    let locked = within("it is answered", InTransaction::default().lock(&transaction, &key())).await.unwrap();
    transaction.rollback().await.unwrap();
    locked
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_transaction_excludes_leases_and_is_excluded_by_them() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LEASE).await;
    let mut raw = server.client().await;
    // A lock that there is a row of, and one that there is none of.
    for name in ["alice", "alice"] {
        let transaction = raw.transaction().await.unwrap();
        assert!(InTransaction::default().lock(&transaction, &key()).await.unwrap(), "{name}");
        assert!(InTransaction::default().lock(&transaction, &key()).await.unwrap(), "it has it already");
        assert!(is_held(&ylock).await);
        let of_users = ylock.locks("users");
        let waiting = tokio::spawn(async move { of_users.write("alice").await.unwrap() });
        // For longer than a lease, and other locks go on meanwhile.
        for _ in 0..30 {
            let other = within("others go on", ylock.locks("users").write("bob")).await.unwrap();
            unlock(other).await;
            tokio::time::sleep(LEASE / 20).await;
        }
        assert!(!waiting.is_finished());
        transaction.commit().await.unwrap();
        let guard = within("it gets in", waiting).await.unwrap();
        assert!(!locks(&mut raw).await, "a lease excludes a transaction");
        unlock(guard).await;
        until("it is free", async || locks(&mut server.client().await).await).await;
    }
}

/// Requests of one client stand behind each other: what is undone of waits for locks that a transaction has must not keep other locks from being renewed.
/// A release that waited for the transaction would wait for half a second, until the server ends its statement: the waits would end in errors.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn waits_for_locks_of_a_transaction_are_given_up_at_once() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LEASE).await;
    let guard = acquire(&ylock).await;
    let mut raw = server.client().await;
    let transaction = raw.transaction().await.unwrap();
    let names: Vec<String> = (0..60).map(|number| format!("user {number}")).collect();
    for name in &names {
        // There is a row.
        unlock(ylock.locks("users").write(name).await.unwrap()).await;
        let key = Key::new("users", name).unwrap();
        assert!(InTransaction::default().lock(&transaction, &key).await.unwrap());
    }
    let locks = ylock.locks("users");
    for _ in 0..3 {
        let waits = async || try_join_all(names.iter().map(|name| locks.write(name).within(LEASE / 2))).await;
        let given_up = within("they give up", answered(waits)).await.unwrap();
        assert!(given_up.iter().all(Option::is_none));
        // Behind all that the waits have left.
        unlock(within("a try is answered", locks.write("bob").now()).await.unwrap().unwrap()).await;
        assert!(guard.is_valid());
    }
    tokio::time::sleep(OUTLASTS).await;
    assert!(guard.is_valid());
    transaction.commit().await.unwrap();
    unlock(guard).await;
}

/// What closes the lock says nothing of its holder: it may be a transaction that is about to be refused.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_holder_of_a_closed_lock_gives_back_when_it_may() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let guard = acquire(&one).await;
    let mut raw = server.client().await;
    let closed = raw.transaction().await.unwrap();
    let close = "select pg_advisory_xact_lock(ylock.closing(key)) from ylock.lock for update";
    closed.execute(close, &[]).await.unwrap();
    let given_back = tokio::spawn(guard.unlock());
    tokio::time::sleep(LEASE / 4).await;
    assert!(!given_back.is_finished());
    closed.rollback().await.unwrap();
    assert!(within("it is given back", given_back).await.unwrap().unwrap().is_released());
    unlock(acquire(&two).await).await;
}

/// None is told when the transaction ends: they ask again soon, also if the first of the readers has left.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn readers_ask_again_soon_while_a_transaction_asserts_another_one() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let first = one.locks("users").read("alice").await.unwrap();
    let second = two.locks("users").read("alice").await.unwrap();
    let ask = "select ylock.acquire(ylock.key_of('users', 'alice'), gen_random_uuid(), 'r', 30000000, true, true, null, 20000000, \
               gen_random_uuid(), null, 'another', false)";
    for leaves in [None, Some(first)] {
        if let Some(first) = leaves {
            unlock(first).await;
        }
        let mut raw = server.client().await;
        let transaction = asserting(&mut raw, &second).await;
        let answer: String = server.client().await.query_one(ask, &[]).await.unwrap().get(0);
        assert!(answer.starts_with("queued ") && answer.contains(" 200000 "), "{answer}");
        transaction.rollback().await.unwrap();
    }
}

/// A transaction that was refused must not keep the holder from renewing.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_transaction_that_was_refused_stops_no_holder() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let mut raw = server.client().await;
    let transaction = raw.transaction().await.unwrap();
    assert!(!InTransaction::default().lock(&transaction, &key()).await.unwrap());
    tokio::time::sleep(OUTLASTS).await;
    assert!(guard.is_valid() && is_held(&two).await);
    // By SQL it fails outright.
    let error = transaction.batch_execute("select ylock.lock_in('users', 'alice')").await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("55P03"));
    tokio::time::sleep(OUTLASTS).await;
    assert!(guard.is_valid());
    drop(transaction);
    unlock(guard).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn transactions_wait_for_each_other() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    let mut first = server.client().await;
    let transaction = first.transaction().await.unwrap();
    assert!(InTransaction::default().lock(&transaction, &key()).await.unwrap());
    let mut second = server.client().await;
    let waiting = tokio::spawn(async move { locks(&mut second).await });
    until("it waits", async || {
        let statement = "select exists (select from pg_locks where not granted)";
        server.client().await.query_one(statement, &[]).await.unwrap().get(0)
    })
    .await;
    assert!(!waiting.is_finished());
    transaction.commit().await.unwrap();
    assert!(within("it is answered", waiting).await.unwrap());
}

/// Returns a transaction that asserts the holder.
async fn asserting<'a>(raw: &'a mut Client, guard: &Guard) -> Transaction<'a> {
    let transaction = raw.transaction().await.unwrap();
    InTransaction::default().assert_holder(&transaction, &key(), guard.token().unwrap()).await.unwrap();
    transaction
}

async fn asserts(client: &mut Client, token: Token) -> Result<(), ErrorKind> {
    let transaction = client.transaction().await.unwrap();
    let asserted = InTransaction::default().assert_holder(&transaction, &key(), token).await;
    transaction.rollback().await.unwrap();
    asserted.map_err(|error| error.kind())
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn only_a_holder_that_is_valid_is_one() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let mut raw = server.client().await;
    let guard = acquire(&one).await;
    let first = guard.token().unwrap();
    assert_eq!(asserts(&mut raw, first).await, Ok(()));
    unlock(guard).await;
    assert_eq!(asserts(&mut raw, first).await, Err(ErrorKind::Lost));
    let guard = acquire(&two).await;
    assert_eq!(asserts(&mut raw, first).await, Err(ErrorKind::Lost));
    assert_eq!(asserts(&mut raw, guard.token().unwrap()).await, Ok(()));
    two.revoke("users", "alice").await.unwrap();
    assert_eq!(asserts(&mut raw, guard.token().unwrap()).await, Err(ErrorKind::Lost));
    drop(guard);
    let readers =
        [one.locks("users").read("alice").await.unwrap(), two.locks("users").read("alice").await.unwrap()];
    for reader in &readers {
        assert_eq!(asserts(&mut raw, reader.token().unwrap()).await, Ok(()));
    }
}

/// Between the check and the commit no other holder is let in: not when the holder gives back, and not when its lease ends.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn no_other_holder_is_let_in_before_the_transaction_has_ended() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LONG).await);
    for gives_back in [true, false] {
        let guard = acquire(&one).await;
        let mut raw = server.client().await;
        let transaction = raw.transaction().await.unwrap();
        let token = guard.token().unwrap();
        InTransaction::default().assert_holder(&transaction, &key(), token).await.unwrap();
        let waiting = {
            let locks = two.locks("users");
            tokio::spawn(async move { locks.write("alice").await.unwrap() })
        };
        if gives_back {
            // Renewals go on meanwhile.
            tokio::time::sleep(OUTLASTS).await;
            assert!(guard.is_valid());
            drop(guard);
        } else {
            // Its client is dead, as far as the server can tell: nothing of it arrives any more.
            server.execute("update ylock.lock set revoked = true").await;
            within("it is lost", guard.lost()).await;
        }
        tokio::time::sleep(OUTLASTS).await;
        assert!(!waiting.is_finished());
        transaction.commit().await.unwrap();
        unlock(within("the next one gets in", waiting).await.unwrap()).await;
    }
}

/// Nor one that finds no waiter before it.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lock_that_is_given_back_is_not_free_before_the_transaction_has_ended() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let guard = acquire(&one).await;
    let mut raw = server.client().await;
    let transaction = asserting(&mut raw, &guard).await;
    let given_back = tokio::spawn(guard.unlock());
    let end = tokio::time::Instant::now() + LEASE / 3;
    while tokio::time::Instant::now() < end {
        assert!(is_held(&two).await && !given_back.is_finished());
        tokio::time::sleep(LEASE / 150).await;
    }
    transaction.commit().await.unwrap();
    assert!(within("it is given back", given_back).await.unwrap().unwrap().is_released());
    until("it is free", async || !is_held(&two).await).await;
}

/// For as long as a transaction asserts the holder the others are only not let in: they keep their places, and are told that the lock is not free.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn waiters_bear_a_transaction_that_asserts_the_holder_for_long() {
    let server = OwnServer::start().await;
    let (one, two, three) =
        (client(&server, LEASE).await, client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let mut raw = server.client().await;
    let transaction = asserting(&mut raw, &guard).await;
    let waiting = joins(&two, &one, 0).await;
    let other = two.locks("users").write("bob").await.unwrap();
    let end = tokio::time::Instant::now() + OUTLASTS;
    while tokio::time::Instant::now() < end {
        assert!(is_held(&three).await, "an answer and no error");
        let of_users = three.locks("users");
        let waits = async || try_join_all((0..10).map(|_| of_users.write("alice").within(LEASE / 4))).await;
        assert!(answered(waits).await.unwrap().iter().all(Option::is_none));
        assert!(guard.is_valid(), "it is renewed beside them");
    }
    assert!(!waiting.is_finished() && other.is_valid());
    until("those that gave up are gone, and it keeps its place", async || waiters(&three).await == 1).await;
    transaction.commit().await.unwrap();
    assert!(!waiting.is_finished());
    unlock(guard).await;
    unlock(within("the waiter gets in", waiting).await.unwrap()).await;
    unlock(other).await;
}

/// The holder's lease ends, and no other is let in for as long as the transaction lasts.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lease_that_ends_while_a_transaction_asserts_it_lets_nobody_in() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let guard = acquire(&one).await;
    let mut raw = server.client().await;
    let transaction = asserting(&mut raw, &guard).await;
    let waiting = joins(&two, &two, 0).await;
    server.execute("update ylock.lock set expires = 0, revoked = true").await;
    within("it is lost", guard.lost()).await;
    let end = tokio::time::Instant::now() + OUTLASTS;
    while tokio::time::Instant::now() < end {
        assert!(!waiting.is_finished() && is_held(&two).await);
        tokio::time::sleep(LEASE / 10).await;
    }
    transaction.commit().await.unwrap();
    unlock(within("the waiter gets in", waiting).await.unwrap()).await;
}

/// They are renewed in one request.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_writer_that_cannot_become_a_reader_yet_costs_no_other_lock() {
    let server = OwnServer::start().await;
    let engine = engine_with(&options(&server, LONG)).await;
    let mut grants = Vec::new();
    for name in ["alice", "bob", "carol"] {
        grants.push(acquired(&engine, name).await);
    }
    let mut raw = server.client().await;
    let transaction = raw.transaction().await.unwrap();
    // With the bits that count hand-overs.
    let token = i64::try_from(grants[0].token.unwrap().get()).unwrap() << 10;
    transaction.execute("select ylock.assert_holder('users', 'alice', $1)", &[&token]).await.unwrap();
    let holdings: Vec<_> = [grants[0].clone().with_mode(Mode::Read), grants[1].clone(), grants[2].clone()]
        .into_iter()
        .map(|grant| Holding::new(grant, None))
        .collect();
    let renewed = within("all are answered", engine.renew(&holdings)).await;
    assert!(matches!(renewed[0], Ok(Renewal::Kept { .. })), "{renewed:?}");
    for other in &renewed[1..] {
        assert!(matches!(other, Ok(Renewal::Renewed { contended: false, .. })), "{other:?}");
    }
}

/// It is renewed as a writer for as long as the transaction lasts, and is a reader soon afterwards, also if its lease is long.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_writer_that_becomes_a_reader_while_a_transaction_asserts_it_stays_held() {
    let server = OwnServer::start().await;
    // By the next renewal it would be too late.
    for lease in [LEASE, LONG * 20] {
        let (one, two) = (client(&server, lease).await, client(&server, lease).await);
        let guard = acquire(&one).await;
        let lost = guard.lease();
        let mut raw = server.client().await;
        let transaction = asserting(&mut raw, &guard).await;
        let downgraded = tokio::spawn(guard.downgrade());
        let reads = async || two.locks("users").read("alice").now().await.unwrap().is_some();
        let end = tokio::time::Instant::now() + OUTLASTS;
        while tokio::time::Instant::now() < end {
            assert!(!downgraded.is_finished() && lost.loss().is_none() && !reads().await);
            tokio::time::sleep(LEASE / 10).await;
        }
        transaction.commit().await.unwrap();
        let guard = within("it becomes a reader", downgraded).await.unwrap().unwrap();
        assert!(reads().await && guard.is_valid());
        unlock(guard).await;
    }
}

/// As many as are renewed in one request may be among them.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn readers_are_told_of_a_writer_that_becomes_one_of_them_among_many_renewals() {
    let server = OwnServer::start().await;
    let engine = engine_with(&options(&server, LONG)).await;
    let (alice, bob) = (acquired(&engine, "alice").await, acquired(&engine, "bob").await);
    let two = client(&server, LONG).await;
    let of_users = two.locks("users");
    let reader = tokio::spawn(async move { of_users.read("alice").await.unwrap() });
    until("it waits, and can be told", async || told(&server).await == 1).await;
    let (_listens, mut messages) = server.listen(&channel(&server).await).await;
    let holdings = [Holding::new(alice.with_mode(Mode::Read), None), Holding::new(bob, None)];
    for renewed in engine.renew(&holdings).await {
        assert!(matches!(renewed, Ok(Renewal::Renewed { .. })), "{renewed:?}");
    }
    unlock(within("the reader is let in", reader).await.unwrap()).await;
    // One that asks by itself is let in without a message.
    within("it was told", messages.recv()).await.unwrap();
}

/// Its place does not go with the grant that stays.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn the_next_of_a_client_that_gives_back_has_its_place_before_those_that_come_meanwhile() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let guard = acquire(&one).await;
    let of_users = one.locks("users");
    let next = tokio::spawn(async move { of_users.write("alice").await.unwrap() });
    until("it waits", async || waiters(&one).await == 1).await;
    let mut raw = server.client().await;
    let transaction = asserting(&mut raw, &guard).await;
    // Nothing is handed over: the time for that is over.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let given_back = tokio::spawn(guard.unlock());
    until("it has its place", async || waiters(&two).await == 1).await;
    let later = joins(&two, &two, 1).await;
    transaction.commit().await.unwrap();
    assert!(within("it is given back", given_back).await.unwrap().unwrap().is_released());
    let next = within("the next one gets in", next).await.unwrap();
    assert!(!later.is_finished(), "it came later");
    unlock(next).await;
    unlock(within("the later one gets in", later).await.unwrap()).await;
}

/// One that tries again and again must not close the lock to those that may join its readers.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_transaction_is_refused_at_once_by_readers_behind_the_first() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let other = client(&server, LONG).await;
    let first = ylock.locks("users").read("alice").await.unwrap();
    let second = other.locks("users").read("alice").await.unwrap();
    unlock(first).await;
    let mut closing = server.client().await;
    let closed = closing.transaction().await.unwrap();
    let close = "select pg_advisory_xact_lock(ylock.closing(ylock.key_of('users', 'alice')))";
    closed.execute(close, &[]).await.unwrap();
    assert!(!locks(&mut server.client().await).await, "it is refused without a look at what closes");
    closed.rollback().await.unwrap();
    unlock(second).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_fence_lets_no_older_token_pass() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server.execute("create table account (id int, fence bigint); insert into account values (1, null)").await;
    let raw = server.client().await;
    let update = "update account set fence = ylock.fence(fence, $1) where id = 1";
    for token in [5_i64, 5, 6] {
        assert_eq!(raw.execute(update, &[&token]).await.unwrap(), 1);
    }
    let error = raw.execute(update, &[&5_i64]).await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("YL004"));
    let waits = client(&server, LONG).await;
    let guard = acquire(&waits).await;
    let waiting = joins(&client(&server, LONG).await, &waits, 0).await;
    unlock(guard).await;
    unlock(within("it gets in", waiting).await.unwrap()).await;
}

/// A snapshot from before the lock was there shows nothing of what the holder before has committed.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn transactions_with_a_snapshot_of_their_own_are_refused() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    for call in
        ["lock_in('users', 'alice')", "try_lock_in('users', 'alice')", "assert_holder('users', 'alice', 1)"]
    {
        let raw = server.client().await;
        raw.batch_execute("begin isolation level repeatable read").await.unwrap();
        let error = raw.query(&format!("select ylock.{call}"), &[]).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("YL001"), "{call}");
    }
    let mut raw = server.client().await;
    let building = raw.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let transaction = building.start().await.unwrap();
    let error = InTransaction::default().lock(&transaction, &key()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "to be repeated is no use: {error}");
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn readers_are_renewed_while_a_transaction_asserts_one() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LEASE).await);
    let first = one.locks("users").read("alice").await.unwrap();
    let second = two.locks("users").read("alice").await.unwrap();
    for reader in [&first, &second] {
        let mut raw = server.client().await;
        let transaction = raw.transaction().await.unwrap();
        let token = reader.token().unwrap();
        InTransaction::default().assert_holder(&transaction, &key(), token).await.unwrap();
        tokio::time::sleep(OUTLASTS).await;
        assert!(first.is_valid() && second.is_valid());
        transaction.commit().await.unwrap();
    }
    // The first reader has its place in the lock's row, the other one has a row of its own.
    unlock(first).await;
    assert!(!locks(&mut server.client().await).await, "a reader is inside");
    let token = second.token().unwrap();
    assert_eq!(asserts(&mut server.client().await, token).await, Ok(()));
    server.execute("update ylock.reader set revoked = true").await;
    assert_eq!(asserts(&mut server.client().await, token).await, Err(ErrorKind::Lost));
}

/// A writer that becomes a reader lets readers in: not while a transaction asserts it, which has checked that it writes alone.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn no_reader_is_let_in_beside_a_writer_that_a_transaction_asserts() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LEASE).await, client(&server, LONG).await);
    let guard = acquire(&one).await;
    let reads = two.locks("users");
    let reading = tokio::spawn(async move { reads.read("alice").await.unwrap() });
    until("the reader can be told", async || told(&server).await == 1).await;
    let mut raw = server.client().await;
    let transaction = asserting(&mut raw, &guard).await;
    let downgrading = tokio::spawn(guard.downgrade());
    tokio::time::sleep(OUTLASTS).await;
    assert!(!reading.is_finished());
    transaction.commit().await.unwrap();
    unlock(within("the reader gets in", reading).await.unwrap()).await;
    drop(within("the downgrade ends", downgrading).await.unwrap());
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn names_that_no_client_takes_are_refused() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    for call in ["lock_in('', 'alice')", "lock_in('users', '')", "lock_in('users', repeat('x', 1025))"] {
        let error = server.client().await.query(&format!("select ylock.{call}"), &[]).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("22023"), "{call}");
    }
}
