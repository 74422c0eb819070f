//! Connections that the server ends, and messages that are lost with them.

use std::time::Duration;

use super::own_server::OwnServer;
use super::{
    LEASE, LONG, acquire, client, client_with, one_holds_and_another_waits, options, told, unlock, until,
    waiters, within,
};

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_connection_that_was_ended_costs_neither_a_hold_nor_a_place() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    for listening in [false, true] {
        let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
        until("it can be told", async || told(&server).await == 1).await;
        assert!(server.end_connections(listening).await > 0);
        until("the connection is back", async || waiters(&one).await == 1).await;
        assert!(guard.is_valid() && !waiting.is_finished());
        unlock(guard).await;
        unlock(within("the next one gets in", waiting).await.unwrap()).await;
    }
}

/// The message went to no listener, or there was none to be told: the waiter asks by itself.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_listener_that_was_ended_costs_a_second() {
    let server = OwnServer::start().await;
    let lease = LONG * 20;
    let (one, two) = (client(&server, lease).await, client(&server, lease).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    until("it can be told", async || told(&server).await == 1).await;
    assert!(server.end_connections(true).await > 0);
    unlock(guard).await;
    // Much earlier than the end of a lease.
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
}

/// What a program does to a server by mistake: a channel is heard by each that listens to it.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn messages_that_no_function_has_sent_change_nothing() {
    let server = OwnServer::start().await;
    let (one, two) = (client(&server, LONG).await, client(&server, LONG).await);
    let (guard, waiting) = one_holds_and_another_waits(&one, &two).await;
    until("it can be told", async || told(&server).await == 1).await;
    let raw = server.client().await;
    let row = raw.query_one("select id::text, to_hex(channel) from ylock.waiter", &[]).await.unwrap();
    let (id, channel): (String, String) = (row.get(0), row.get(1));
    let key = "users\u{ff}alice";
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    // Of an earlier grant, which has a smaller token than the last one; what is no message; and about an acquisition that is not there.
    let other = "00000000-0000-0000-0000-000000000001";
    for message in [format!("{id} 7 0 {hex}"), "x".to_owned(), String::new(), format!("{other} 9 0 {hex}")] {
        raw.execute("select pg_notify($1, $2)", &[&format!("ylock_{channel}"), &message]).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(guard.is_valid() && !waiting.is_finished());
    unlock(guard).await;
    unlock(within("the next one gets in", waiting).await.unwrap()).await;
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_login_may_take_longer_than_a_request() {
    let server = OwnServer::start_with(&["post_auth_delay=3"], &[]).await;
    assert!(options(&server, LEASE).request_timeout() < Duration::from_secs(3));
    let ylock = client(&server, LEASE).await;
    unlock(acquire(&ylock).await).await;
}

/// The server compiles functions anew for each session, and on a busy machine that takes long: a connection that was forgotten for it would be followed by
/// one that is as cold.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn the_first_call_of_a_session_may_take_longer_than_a_request() {
    let server = OwnServer::start().await;
    drop(client(&server, LONG).await);
    // What a session has taken from a sequence it keeps, also when the transaction is rolled back.
    server
        .execute(
            "create sequence ylock.sessions; alter function ylock.started() rename to started_warm;
            create function ylock.started() returns bigint language plpgsql volatile as $$ begin
              begin
                perform currval('ylock.sessions');
              exception when others then
                perform nextval('ylock.sessions'), pg_sleep(3);
              end;
              return ylock.started_warm();
            end $$",
        )
        .await;
    let options = server.options().with_lease(LONG);
    assert!(options.request_timeout() < Duration::from_secs(3));
    let ylock = client_with(options).await;
    unlock(within("it gets in", ylock.locks("users").write("alice").now()).await.unwrap().unwrap()).await;
    assert!(server.end_connections(false).await > 0);
    unlock(acquire(&ylock).await).await;
}
