use std::future::Future;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use scylla::client::session::Session;
use ylock_core::engine::AcquisitionId;
use ylock_core::{Key, Mode};
use ylock_engine_cassandra::algorithm::store::{Partition, State, Store, Write};

use super::cluster::*;

/// Reads until the partition looks as it must, which it does when a TTL has passed.
async fn eventually(bench: &Bench, what: &str, fits: impl Fn(&Partition) -> bool) -> Partition {
    within(what, async {
        loop {
            let partition = bench.read().await;
            if fits(&partition) {
                return partition;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    ylock_testkit::within(Duration::from_secs(20), what, future).await
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_claim_outlives_its_row() {
    let bench = Bench::new().await;
    let claimed =
        Write { claim: Some(timed(7, Mode::Read, 60)), row_ttl: 1, ..write(stamp(), row(State::Claimed)) };
    bench.write(&claimed).await;
    let partition = eventually(&bench, "the row expires", |seen| seen.rows[0].row.is_none()).await;
    assert_eq!(partition.rows.len(), 1);
    assert_eq!(partition.rows[0].claim, Some(claim(7, Mode::Read)));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_revocation_outlives_its_row_and_expires_too() {
    let bench = Bench::new().await;
    let id = AcquisitionId::new(&*environment());
    bench.write(&Write { row_ttl: 1, ..write(stamp(), row(State::Held)) }).await;
    bench.table.revoke(&bench.key, bench.slot, id, stamp(), 4).await.unwrap();
    let partition = eventually(&bench, "the row expires", |seen| seen.rows[0].row.is_none()).await;
    assert_eq!(partition.rows[0].revoked, Some(id));
    eventually(&bench, "the revocation expires", |seen| seen.rows.is_empty()).await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn last_tokens_outlive_every_row() {
    let bench = Bench::new().await;
    let used = Some(timed(9, Mode::Write, 60));
    bench.write(&Write { used, row_ttl: 1, ..write(stamp(), row(State::Idle)) }).await;
    let partition = eventually(&bench, "the row expires", |seen| seen.rows.is_empty()).await;
    assert_eq!((partition.last_write, partition.last_read), (Some(claim(9, Mode::Write).token), None));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_rewrite_prolongs_the_row() {
    let bench = Bench::new().await;
    bench.write(&Write { row_ttl: 2, ..write(stamp(), row(State::Held)) }).await;
    let renewed = write(stamp(), row(State::Held));
    bench.write(&renewed).await;
    // A row beside it, written later with the TTL that the first one had, shows when that time is over.
    let other = slot();
    let short = Write { row_ttl: 2, ..write(stamp(), row(State::Waiting)) };
    bench.table.write(&bench.key, other, &short).await.unwrap();
    let partition = eventually(&bench, "the other row expires", |seen| seen.rows.len() == 1).await;
    assert_eq!(partition.rows[0].row, Some(renewed.row));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_row_without_ttl_does_not_live_for_ever() {
    let bench = Bench::new().await;
    bench.write(&Write { row_ttl: 0, ..write(stamp(), row(State::Held)) }).await;
    eventually(&bench, "the row expires", |seen| seen.rows.is_empty()).await;
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn names_that_are_used_once_vanish() {
    const NAMES: usize = 2_000;
    let name = format!("vanish_{:016x}", environment().random());
    let bench = Bench::with(options().with_table(&name).with_gc_grace(Duration::from_secs(1))).await;
    let uses = stream::iter(0..NAMES).map(|number| use_once(&bench, number));
    uses.buffer_unordered(32).collect::<()>().await;
    let session = session().await;
    within("all names vanish", async {
        while count_names(&session, &name).await > 0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    run(&session, &format!("DROP TABLE {KEYSPACE}.{name}")).await;
}

/// Claims, enters and releases a name, as a client with the shortest TTLs does.
async fn use_once(bench: &Bench, number: usize) {
    let key = Key::new(bench.key.group(), format!("name-{number}")).unwrap();
    let claim = Some(timed(number as u64 + 1, Mode::Write, 1));
    let claimed = Write { claim, row_ttl: 1, ..write(stamp(), row(State::Claimed)) };
    bench.table.write(&key, bench.slot, &claimed).await.unwrap();
    let released = Write { claim, used: claim, row_ttl: 1, ..write(stamp(), row(State::Idle)) };
    bench.table.write(&key, bench.slot, &released).await.unwrap();
}

async fn count_names(session: &Session, table: &str) -> usize {
    let cql = format!("SELECT DISTINCT lock_group, lock_name FROM {KEYSPACE}.{table}");
    let rows = session.query_unpaged(cql, ()).await.unwrap().into_rows_result().unwrap();
    rows.rows_num()
}
