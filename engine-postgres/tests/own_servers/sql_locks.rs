//! Locks in transactions of programs that call the functions by SQL.

use tokio_postgres::{Client, Error};
use ylock_core::ErrorKind;

use super::own_server::{OwnServer, USER};
use super::{LEASE, LONG, acquire, client, client_with, engine_with, is_held, unlock, until, within};

const LOCK: &str = "select ylock.lock_in('users', 'alice')";

/// Returns the code of the error, if there is one.
fn code<T>(answer: Result<T, Error>) -> Option<String> {
    answer.err().and_then(|error| error.code().map(|code| code.code().to_owned()))
}

/// By each way in which drivers send a statement.
async fn codes(raw: &Client, statement: &str) -> [Option<String>; 3] {
    [
        code(raw.batch_execute(statement).await),
        code(raw.query_typed(statement, &[]).await),
        code(raw.query(statement, &[]).await),
    ]
}

/// The transaction ends with the statement, and the lock with it.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lock_that_would_end_with_its_own_statement_is_refused() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let raw = server.client().await;
    let guard = within("it gets in", ylock.locks("users").write("bob")).await.unwrap();
    let assert = format!("select ylock.assert_holder('users', 'bob', {})", guard.token().unwrap().get());
    let try_lock = "-- of a program\nSELECT Ylock.Try_Lock_In('users', 'alice') ; ";
    for statement in [LOCK, try_lock, &assert] {
        for code in codes(&raw, statement).await {
            assert_eq!(code.as_deref(), Some("25P01"), "{statement}");
        }
        // In a transaction it works.
        for code in codes(&raw, &format!("begin; {statement}; commit")).await.iter().take(1) {
            assert_eq!(*code, None, "{statement}");
        }
        raw.batch_execute("begin").await.unwrap();
        assert_eq!(codes(&raw, statement).await, [None, None, None]);
        raw.batch_execute("commit").await.unwrap();
    }
    assert_eq!(code(raw.batch_execute(&format!("prepare lock as {LOCK}")).await), None);
    assert_eq!(code(raw.batch_execute("execute lock").await).as_deref(), Some("25P01"));
    // The server sends its error before it has ended the transaction.
    until("it is free", async || !is_held(&ylock).await).await;
    assert!(guard.is_valid());
    // One that does not lock says so, as ever.
    let try_lock = "select ylock.try_lock_in('users', 'bob')";
    assert!(!raw.query_one(try_lock, &[]).await.unwrap().get::<_, bool>(0));
    unlock(guard).await;
}

/// What goes on in the same transaction goes on under the lock, however it was begun.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lock_under_which_something_can_be_done_is_not_refused() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let raw = server.client().await;
    raw.batch_execute(
        "create table done (what text);
         create function work() returns void language plpgsql as $$ begin
           perform ylock.lock_in('users', 'alice'); insert into done values ('function');
         end $$;
         create procedure work_twice() language plpgsql as $$ begin
           perform ylock.lock_in('users', 'alice'); insert into done values ('procedure'); commit;
           perform ylock.lock_in('users', 'alice'); insert into done values ('procedure');
         end $$",
    )
    .await
    .unwrap();
    for statements in [
        "begin; select ylock.lock_in('users', 'alice'); insert into done values ('one message'); commit",
        "select ylock.lock_in('users', 'alice'); insert into done values ('without begin')",
        "select work()",
        "call work_twice()",
        "do $$ begin perform ylock.lock_in('users', 'alice'); insert into done values ('block'); end $$",
    ] {
        raw.batch_execute(statements).await.unwrap();
    }
    for statement in ["select work()", "call work_twice()"] {
        raw.query_typed(statement, &[]).await.unwrap();
        raw.query(statement, &[]).await.unwrap();
    }
    // Constraints that are checked at once change nothing.
    raw.batch_execute("begin; set constraints all immediate").await.unwrap();
    raw.batch_execute(LOCK).await.unwrap();
    assert!(is_held(&ylock).await);
    raw.batch_execute("set constraints all immediate").await.unwrap();
    raw.batch_execute("commit").await.unwrap();
    assert!(!is_held(&ylock).await);
}

/// As all locks of PostgreSQL. A program that goes on asks again.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lock_ends_with_the_savepoint_that_it_was_taken_behind() {
    let server = OwnServer::start().await;
    let ylock = client(&server, LONG).await;
    let raw = server.client().await;
    raw.batch_execute("begin; savepoint here").await.unwrap();
    raw.batch_execute(LOCK).await.unwrap();
    assert!(is_held(&ylock).await);
    raw.batch_execute("rollback to here").await.unwrap();
    assert!(!is_held(&ylock).await, "it ended");
    until("it has it again", async || {
        raw.query_one("select ylock.try_lock_in('users', 'alice')", &[]).await.unwrap().get(0)
    })
    .await;
    raw.batch_execute("release here; savepoint here").await.unwrap();
    raw.batch_execute("rollback to here").await.unwrap();
    assert!(is_held(&ylock).await, "it was taken before this one");
    raw.batch_execute("commit").await.unwrap();
    assert!(!is_held(&ylock).await);
}

/// For as long as it is prepared, over restarts. What closes the lock is shown.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_prepared_transaction_keeps_the_lock_and_is_shown_until_it_is_ended() {
    let mut server = OwnServer::start_with(&["max_prepared_transactions=5"], &[]).await;
    drop(engine_with(&server.options()).await);
    server.execute("create role app login; grant usage on schema ylock to app").await;
    server.execute("begin; select ylock.lock_in('users', 'alice'); prepare transaction 'transfer 7'").await;
    for is_again in [false, true] {
        if is_again {
            server.kill();
            server.start_again().await;
        }
        for role in [USER, "app"] {
            // What a client is to forget that has given up takes a while for as long as the lock is closed.
            let ylock = client_with(server.options_for(role).with_lease(LONG)).await;
            until("it is shown", async || {
                let seen = ylock.inspect("users", "alice").await;
                seen.is_ok_and(|seen| {
                    seen.holders.iter().any(|one| one.client.as_str().contains("transfer 7"))
                })
            })
            .await;
            assert!(is_held(&ylock).await);
            if is_again {
                continue;
            }
            let waits = ylock.clone().with_options(ylock.options().clone().with_max_wait(LEASE));
            let error = waits.locks("users").write("alice").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            assert!(error.to_string().contains("pg_prepared_xacts"), "{error}");
        }
    }
    server.execute("rollback prepared 'transfer 7'").await;
    let ylock = client(&server, LONG).await;
    until("it is free", async || !is_held(&ylock).await).await;
    until("none is shown", async || ylock.inspect("users", "alice").await.unwrap().holders.is_empty()).await;
}

/// Whether it has the lock by the function, or has only closed it.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_transaction_that_closes_a_lock_is_shown() {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    let ylock = client(&server, LONG).await;
    let raw = server.client().await;
    let pid: i32 = raw.query_one("select pg_backend_pid()", &[]).await.unwrap().get(0);
    for lock in [LOCK, "select pg_advisory_xact_lock(ylock.closing(ylock.key_of('users', 'alice')))"] {
        raw.batch_execute("begin").await.unwrap();
        raw.batch_execute(lock).await.unwrap();
        let seen = ylock.inspect("users", "alice").await.unwrap();
        let [holder] = &seen.holders[..] else { panic!("{seen:?}") };
        assert!(holder.client.as_str().contains(&pid.to_string()), "{holder:?}");
        assert_eq!(ylock.revoke("users", "alice").await.unwrap(), 0, "it is not ylock's to take away");
        raw.batch_execute("commit").await.unwrap();
        assert!(ylock.inspect("users", "alice").await.unwrap().holders.is_empty());
    }
    // Beside a holder it has nothing but closed the lock.
    let guard = acquire(&ylock).await;
    raw.batch_execute("begin; select pg_advisory_xact_lock(ylock.closing(ylock.key_of('users', 'alice')))")
        .await
        .unwrap();
    let seen = ylock.inspect("users", "alice").await.unwrap();
    assert!(seen.holders.len() == 1 && seen.holders[0].token.is_some(), "{seen:?}");
    raw.batch_execute("commit").await.unwrap();
    unlock(guard).await;
}
