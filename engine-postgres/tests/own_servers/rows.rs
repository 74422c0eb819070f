//! What functions decide from the rows of a lock when others change them at the same time, or when time goes by. The comparison with the model sees neither.

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::own_server::OwnServer;
use super::{engine_with, until, within};

/// A minute, as functions take it.
const MINUTE: i64 = 60_000_000;

/// A server with the functions.
async fn server() -> OwnServer {
    let server = OwnServer::start().await;
    drop(engine_with(&server.options()).await);
    server
}

fn id() -> Uuid {
    Uuid::from_u128(u128::from_be_bytes(ylock_core::Owner::new().to_bytes()))
}

/// Asks for the lock of alice, as a client that asks by itself.
async fn try_asks(raw: &Client, id: Uuid, mode: &str, lease: i64) -> Result<String, tokio_postgres::Error> {
    let statement = "select ylock.acquire(ylock.key_of('users', 'alice'), $1, $2, $3, true, true, null, $3, $1, null, 'a client', true)";
    Ok(raw.query_one(statement, &[&id, &mode, &lease]).await?.get(0))
}

async fn asks(raw: &Client, id: Uuid, mode: &str, lease: i64) -> String {
    try_asks(raw, id, mode, lease).await.expect("an answer")
}

async fn enters(raw: &Client, id: Uuid, mode: &str, lease: i64) -> i64 {
    let answer = asks(raw, id, mode, lease).await;
    let token = answer.strip_prefix("granted ").and_then(|rest| rest.split(' ').next());
    token.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

/// `late` is for how long a request of it may be on its way.
async fn leaves(raw: &Client, id: Uuid, late: i64) -> Result<Option<bool>, tokio_postgres::Error> {
    let statement = "select ylock.release(ylock.key_of('users', 'alice'), $1, $2, null, null, null, null, null, null, null, null, true)";
    Ok(raw.query_one(statement, &[&id, &late]).await?.get(0))
}

async fn renews(raw: &Client, id: Uuid) {
    let statement = "select ylock.renew(ylock.key_of('users', 'alice'), $1, 'w', $2, null, null, null, null, null, null, null, true)";
    let answer: String = raw.query_one(statement, &[&id, &MINUTE]).await.unwrap().get(0);
    assert!(answer.starts_with("renewed"), "{answer}");
}

async fn number(raw: &Client, question: &str) -> i64 {
    raw.query_one(question, &[]).await.unwrap().get(0)
}

async fn waits(server: &OwnServer) {
    until("it waits", async || {
        number(&server.client().await, "select count(*) from pg_locks where not granted").await > 0
    })
    .await;
}

/// In the transaction, which is not committed yet: the first look of one that comes meanwhile does not see it.
enum Enters {
    Writer,
    /// The second of two readers, when the first has left: the lock's row has no holder.
    SecondReader,
    /// A waiter, when its holder has left.
    Waiter,
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_transaction_is_refused_by_what_came_while_it_waited_for_the_row() {
    let server = server().await;
    let (raw, mut locks) = (server.client().await, server.client().await);
    for enters_now in [Enters::Writer, Enters::SecondReader, Enters::Waiter] {
        let (first, second) = (id(), id());
        enters(&raw, first, "w", MINUTE).await;
        leaves(&raw, first, 0).await.unwrap();
        raw.batch_execute("begin").await.unwrap();
        match enters_now {
            Enters::Writer => drop(enters(&raw, second, "w", MINUTE).await),
            Enters::SecondReader => {
                enters(&raw, first, "r", MINUTE).await;
                enters(&raw, second, "r", MINUTE).await;
                leaves(&raw, first, 0).await.unwrap();
            }
            Enters::Waiter => {
                enters(&raw, first, "w", MINUTE).await;
                assert!(asks(&raw, second, "w", MINUTE).await.starts_with("queued"));
                leaves(&raw, first, 0).await.unwrap();
            }
        }
        let locking: JoinHandle<(bool, Client)> = tokio::spawn(async move {
            let transaction = locks.transaction().await.unwrap();
            let lock = "select ylock.try_lock_in('users', 'alice')";
            let locked = transaction.query_one(lock, &[]).await.unwrap().get(0);
            transaction.rollback().await.unwrap();
            (locked, locks)
        });
        waits(&server).await;
        raw.batch_execute("commit").await.unwrap();
        let locked;
        (locked, locks) = within("it is answered", locking).await.unwrap();
        assert!(!locked, "beside a holder, or before a waiter");
        leaves(&raw, second, 0).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_row_whose_token_is_ahead_of_the_clock_is_not_swept() {
    let server = server().await;
    let raw = server.client().await;
    let first = id();
    enters(&raw, first, "w", MINUTE).await;
    leaves(&raw, first, 0).await.unwrap();
    // As if the clock had been set back by an hour since.
    raw.batch_execute("update ylock.lock set used = 0, token = ylock.micros() + 3600000000").await.unwrap();
    let token = number(&raw, "select token from ylock.lock").await;
    raw.batch_execute("update ylock.layout set swept = 0; select ylock.sweep(1000)").await.unwrap();
    assert!(enters(&raw, id(), "w", MINUTE).await > token, "the token has fallen");
}

/// By each way in: of a lock that is free, of a reader beside another one, and of a waiter.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn tokens_that_are_ahead_of_the_clock_grow_all_the_same() {
    let server = server().await;
    let raw = server.client().await;
    let (reader, waiter) = (id(), id());
    leaves(&raw, waiter, MINUTE).await.unwrap();
    raw.batch_execute("update ylock.lock set undone = null, token = ylock.micros() + 3600000000")
        .await
        .unwrap();
    let mut last = number(&raw, "select token from ylock.lock").await;
    let mut grows = |token: i64| {
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    let token = enters(&raw, reader, "r", MINUTE).await;
    assert_eq!(enters(&raw, reader, "r", MINUTE).await, token, "it is asked again");
    grows(token);
    grows(enters(&raw, id(), "r", MINUTE).await);
    assert!(asks(&raw, waiter, "w", MINUTE).await.starts_with("queued"));
    raw.batch_execute("update ylock.reader set expires = 0; update ylock.lock set earliest = 0")
        .await
        .unwrap();
    leaves(&raw, reader, 0).await.unwrap();
    grows(enters(&raw, waiter, "w", MINUTE).await);
}

/// Its client counts the lease from the question that was answered.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_holder_that_asks_again_has_a_whole_lease() {
    let server = server().await;
    let raw = server.client().await;
    let (first, second) = (id(), id());
    for (reader, table) in [(first, "lock"), (second, "reader")] {
        enters(&raw, reader, "r", MINUTE).await;
        raw.batch_execute(&format!("update ylock.{table} set expires = expires - 40000000")).await.unwrap();
        let before = number(&raw, "select ylock.micros()").await;
        enters(&raw, reader, "r", MINUTE).await;
        let expires = number(&raw, &format!("select expires from ylock.{table}")).await;
        assert!(expires >= before + MINUTE, "{table}: {expires} after {before}");
    }
}

/// It may be over by the count of another client.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_lease_that_is_over_is_not_renewed() {
    let server = server().await;
    let raw = server.client().await;
    let renew = "select ylock.renew(ylock.key_of('users', 'alice'), $1, 'r', 60000000, null, null, null, null, null, null, null, true)";
    for table in ["lock", "reader"] {
        let reader = id();
        enters(&raw, reader, "r", MINUTE).await;
        raw.batch_execute(&format!("update ylock.{table} set expires = ylock.micros() - 1")).await.unwrap();
        let answer: String = raw.query_one(renew, &[&reader]).await.unwrap().get(0);
        assert_eq!(answer, "gone");
        raw.batch_execute(&format!("update ylock.{table} set expires = ylock.micros() + 60000000"))
            .await
            .unwrap();
    }
}

/// Its row shows it until another one looks.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_holder_whose_lease_is_over_is_none() {
    let server = server().await;
    let raw = server.client().await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        tokens.push(enters(&raw, id(), "r", MINUTE).await);
    }
    for (token, table) in tokens.iter().zip(["lock", "reader"]) {
        let assert =
            format!("begin; select ylock.assert_holder('users', 'alice', {}); rollback", token << 10);
        raw.batch_execute(&assert).await.unwrap();
        raw.batch_execute(&format!("update ylock.{table} set expires = ylock.micros() - 1")).await.unwrap();
        let error = raw.batch_execute(&assert).await.unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some("YL003"));
        raw.batch_execute("rollback").await.unwrap();
    }
}

/// So each is forgotten when its own lease is over: the quick look at the row must not pass over one that died.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn the_row_knows_when_the_first_lease_of_a_reader_ends() {
    let server = server().await;
    let raw = server.client().await;
    let knows = async || {
        let knows = "select earliest <= (select min(expires) from ylock.reader) and longest >= (select max(lease) from ylock.reader) from ylock.lock";
        assert!(raw.query_one(knows, &[]).await.unwrap().get::<_, bool>(0));
    };
    let mut readers = Vec::new();
    for minutes in [1, 2, 1, 3] {
        readers.push(id());
        enters(&raw, *readers.last().unwrap(), "r", minutes * MINUTE).await;
        if readers.len() > 1 {
            knows().await;
        }
    }
    // As if its lease had ended just now.
    let over = "update ylock.reader set expires = ylock.micros() - 1 where id = $1";
    raw.execute(over, &[&readers[2]]).await.unwrap();
    raw.batch_execute("update ylock.lock set earliest = ylock.micros() - 1").await.unwrap();
    assert!(asks(&raw, id(), "w", MINUTE).await.starts_with("queued"));
    assert_eq!(number(&raw, "select count(*) from ylock.reader").await, 2);
    knows().await;
}

/// What a request has read of the clock before it waited for the row says nothing about a lease that was renewed meanwhile.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_request_that_waited_for_the_row_cuts_no_lease() {
    let server = server().await;
    let (raw, expires) = (server.client().await, "select expires from ylock.lock");
    for (is_there, releases) in [(true, false), (false, false), (true, true), (false, true)] {
        raw.batch_execute("truncate ylock.lock, ylock.waiter").await.unwrap();
        let (holder, other) = (id(), id());
        if is_there {
            enters(&raw, holder, "w", MINUTE).await;
        }
        raw.batch_execute("begin").await.unwrap();
        if is_there {
            raw.batch_execute("select from ylock.lock for no key update").await.unwrap();
        } else {
            enters(&raw, holder, "w", MINUTE).await;
        }
        let waiting = server.client().await;
        let waiting = tokio::spawn(async move {
            let ask = async || match releases {
                true => leaves(&waiting, other, MINUTE).await.map(drop),
                false => try_asks(&waiting, other, "w", MINUTE).await.map(drop),
            };
            // A function does not wait for longer than half a second: then nothing has changed.
            while let Err(error) = ask().await {
                assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{error:?}");
            }
        });
        waits(&server).await;
        renews(&raw, holder).await;
        let renewed = number(&raw, expires).await;
        raw.batch_execute("commit").await.unwrap();
        within("it is answered", waiting).await.unwrap();
        assert_eq!(number(&raw, expires).await, renewed, "{is_there} {releases}");
    }
}

/// Otherwise a client would not hear that the server has given up waiting for a standby.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn a_session_that_hears_no_warnings_hears_them_from_functions() {
    let server = server().await;
    let raw = server.client().await;
    raw.batch_execute("set client_min_messages = error; begin").await.unwrap();
    enters(&raw, id(), "w", MINUTE).await;
    let shown: String = raw.query_one("show client_min_messages", &[]).await.unwrap().get(0);
    assert_eq!(shown, "warning");
    raw.batch_execute("rollback").await.unwrap();
}

/// Both find that it hears nothing: neither takes the look of the other for the listener.
#[tokio::test]
#[ignore = "needs postgres: run `cargo xtask test`"]
async fn two_that_look_at_once_both_find_that_a_waiter_hears_nothing() {
    let server = server().await;
    let mut looking = Vec::new();
    for _ in 0..2 {
        let raw = server.client().await;
        raw.batch_execute("begin").await.unwrap();
        let heard: String = raw.query_one("select ylock.hears(4711, true)", &[]).await.unwrap().get(0);
        assert_eq!(heard, "deaf");
        looking.push(raw);
    }
}
