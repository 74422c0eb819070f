//! The cell of the global time.

use ylock_core::{Key, Options, Ylock};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::Store;
use ylock_engine_cassandra::clock::{GlobalTime, TimeCell};
use ylock_engine_cassandra::options::Clock;

use super::cluster::*;
use super::expiry::within;

/// Returns the options of a table whose global time no other client moves.
fn options_of(table: &str) -> ylock_engine_cassandra::CassandraOptions {
    options().with_table(format!("{table}_{:x}", slot().as_u128() >> 96)).with_clock(Clock::GlobalTime)
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_cell_shows_the_largest_time_that_was_written() {
    let table = connect(&options_of("cell")).await.unwrap();
    assert_eq!(table.read_time().await.unwrap(), None);
    for (written, shown) in [(1_000, 1_000), (900, 1_000), (2_000, 2_000)] {
        table.write_time(written).await.unwrap();
        assert_eq!(table.read_time().await.unwrap(), Some(shown));
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_time_moves_on_while_a_client_lives() {
    let cell = std::sync::Arc::new(connect(&options_of("moves")).await.unwrap());
    let time = GlobalTime::new(cell, environment());
    let first = time.current().await.unwrap();
    time.keep_going();
    within("the time moves on", async {
        while time.current().await.unwrap() <= first {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn places_come_from_the_global_time() {
    let options = options_of("places");
    let engine = CassandraEngine::connect(&options).await.unwrap();
    let ylock = Ylock::new(engine).with_options(Options::default().with_lease(options.lease()));
    let guard = ylock.locks("users").write("alice").await.unwrap();
    // While it is held: later its row may have ended.
    let row = connect(&options).await.unwrap().read(&Key::new("users", "alice").unwrap()).await.unwrap();
    let shown = connect(&options).await.unwrap().read_time().await.unwrap();
    assert!(guard.unlock().await.unwrap().is_released());
    let ticket = row.rows[0].row.as_ref().map(|row| row.ticket.get()).unwrap();
    assert!(ticket > 0 && Some(ticket) <= shown, "{ticket}, and the cell shows {shown:?}");
    ylock.close().await;
}
