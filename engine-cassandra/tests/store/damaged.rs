use scylla::serialize::row::SerializeRow;
use uuid::Uuid;
use ylock_core::ErrorKind;
use ylock_engine_cassandra::algorithm::store::{Partition, State, Store};

use super::cluster::*;

/// Writes one cell of a good row anew, behind the back of the library, and returns what reading then says.
async fn damage(cell: &str, value: impl SerializeRow) -> (Bench, ylock_core::Error) {
    let bench = Bench::new().await;
    bench.write(&write(stamp(), row(State::Held))).await;
    overwrite(&bench, cell, value).await;
    let error = bench.table.read(&bench.key).await.unwrap_err();
    (bench, error)
}

async fn overwrite(bench: &Bench, cell: &str, value: impl SerializeRow) {
    let place = format!(
        "lock_group = '{}' AND lock_name = '{}'{}",
        bench.key.group(),
        bench.key.name(),
        if cell.starts_with("last") {
            String::new()
        } else {
            format!(" AND slot = {}", Uuid::from_u128(bench.slot.as_u128()))
        }
    );
    let cql = format!("UPDATE {KEYSPACE}.locks SET {cell} = ? WHERE {place}");
    session().await.query_unpaged(cql, value).await.unwrap();
}

fn assert_names(bench: &Bench, error: &ylock_core::Error, column: &str) {
    assert_eq!(error.kind(), ErrorKind::Unexpected, "{error}");
    assert_eq!(error.engine(), Some("cassandra"));
    assert_eq!(error.key(), Some(&bench.key));
    let text = error.to_string();
    assert!(text.contains(column), "{column}: {text}");
    if !column.starts_with("last") {
        assert!(text.contains(&Uuid::from_u128(bench.slot.as_u128()).to_string()), "{text}");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn unknown_words_are_named() {
    for column in ["mode", "state", "next_mode"] {
        let (bench, error) = damage(column, ("both",)).await;
        assert_names(&bench, &error, column);
        assert!(error.to_string().contains("\"both\""), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn missing_cells_are_named() {
    for column in ["mode", "state", "next_mode"] {
        let (bench, error) = damage(column, (None::<&str>,)).await;
        assert_names(&bench, &error, column);
    }
    for column in ["ticket", "since", "lease_millis", "heartbeat", "next_ticket"] {
        let (bench, error) = damage(column, (None::<i64>,)).await;
        assert_names(&bench, &error, column);
    }
    for column in ["acquisition", "owner"] {
        let (bench, error) = damage(column, (None::<Uuid>,)).await;
        assert_names(&bench, &error, column);
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn numbers_out_of_bounds_are_named() {
    for (column, number) in [
        ("lease_millis", -1),
        ("lease_millis", 0),
        ("next_ticket", 5),
        ("last_write_token", 0),
        ("last_write_token", -1),
        ("last_read_token", 1_i64 << 53),
        ("last_read_token", i64::MAX),
    ] {
        let (bench, error) = damage(column, (number,)).await;
        assert_names(&bench, &error, column);
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn damaged_claims_are_named() {
    let (bench, error) = damage("claim_token", (5i64,)).await;
    assert_names(&bench, &error, "claim_mode");
    overwrite(&bench, "claim_mode", ("write",)).await;
    assert_eq!(bench.read().await.rows[0].claim, Some(claim(5, ylock_core::Mode::Write)));
    for number in [0, -7, 1_i64 << 53] {
        overwrite(&bench, "claim_token", (number,)).await;
        assert_names(&bench, &bench.table.read(&bench.key).await.unwrap_err(), "claim_token");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn one_damaged_row_spoils_the_whole_answer() {
    let (bench, _) = damage("state", ("both",)).await;
    bench.table.write(&bench.key, slot(), &write(stamp(), row(State::Held))).await.unwrap();
    assert_names(&bench, &bench.table.read(&bench.key).await.unwrap_err(), "state");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_row_of_nothing_but_its_key_says_nothing() {
    let bench = Bench::new().await;
    let cql = format!("INSERT INTO {KEYSPACE}.locks (lock_group, lock_name, slot) VALUES (?, ?, ?)");
    let values = (bench.key.group(), bench.key.name(), Uuid::from_u128(bench.slot.as_u128()));
    session().await.query_unpaged(cql, values).await.unwrap();
    assert_eq!(bench.read().await, Partition::default());
}
