use ylock_core::Mode;
use ylock_core::engine::AcquisitionId;
use ylock_engine_cassandra::algorithm::store::{State, Store, Write};

use super::cluster::*;

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_newest_row_stays_whatever_the_order() {
    let bench = Bench::new().await;
    let now = stamp();
    let newest = write(now + 3, row(State::Held));
    for write in [write(now + 1, row(State::Waiting)), newest.clone(), write(now + 2, row(State::Claimed))] {
        bench.write(&write).await;
    }
    assert_eq!(bench.read().await.rows[0].row, Some(newest.row));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_late_copy_of_an_older_write_changes_nothing() {
    let bench = Bench::new().await;
    let now = stamp();
    let claimed = Write { claim: Some(timed(7, Mode::Write, 60)), ..write(now, row(State::Claimed)) };
    let used = Some(timed(7, Mode::Write, 60));
    let released = Write { claim: used, used, ..write(now + 1, row(State::Idle)) };
    bench.write(&claimed).await;
    bench.write(&released).await;
    let after = bench.read().await;
    bench.write(&claimed).await;
    bench.write(&released).await;
    assert_eq!(bench.read().await, after);
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn last_tokens_keep_the_maximum() {
    let bench = Bench::new().await;
    for number in [20, 30, 10, 30] {
        for mode in [Mode::Write, Mode::Read] {
            let number = if mode == Mode::Read { number + 1 } else { number };
            let used = Some(timed(number, mode, 60));
            bench.write(&Write { used, ..write(stamp(), row(State::Idle)) }).await;
        }
    }
    let partition = bench.read().await;
    assert_eq!(partition.last_write, Some(claim(30, Mode::Write).token));
    assert_eq!(partition.last_read, Some(claim(31, Mode::Read).token));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_owner_never_overwrites_a_revocation() {
    let bench = Bench::new().await;
    let id = AcquisitionId::new(&*environment());
    bench.write(&write(stamp(), row(State::Held))).await;
    // An old stamp: it is only compared with other revocations.
    bench.table.revoke(&bench.key, bench.slot, id, 1, 60).await.unwrap();
    let used = Some(timed(3, Mode::Write, 60));
    for write in
        [write(stamp(), row(State::Held)), Write { claim: used, used, ..write(stamp(), row(State::Idle)) }]
    {
        bench.write(&write).await;
        let partition = bench.read().await;
        assert_eq!(partition.rows[0].revoked, Some(id));
        assert_eq!(partition.rows[0].row, Some(write.row));
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_slot_can_be_revoked_that_was_never_written() {
    let bench = Bench::new().await;
    let id = AcquisitionId::new(&*environment());
    bench.table.revoke(&bench.key, bench.slot, id, stamp(), 60).await.unwrap();
    let rows = bench.read().await.rows;
    assert_eq!((rows.len(), rows[0].revoked, &rows[0].row), (1, Some(id), &None));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn an_erased_row_is_gone_and_its_partition_keeps_the_last_tokens() {
    let bench = Bench::new().await;
    let used = Some(timed(5, Mode::Write, 60));
    bench.write(&Write { claim: used, used, ..write(stamp(), row(State::Idle)) }).await;
    bench.table.erase(&bench.key, bench.slot, stamp()).await.unwrap();
    let partition = bench.read().await;
    assert_eq!((partition.rows.len(), partition.last_write), (0, Some(claim(5, Mode::Write).token)));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn erasing_hits_one_slot_and_nothing_newer() {
    let bench = Bench::new().await;
    let (now, other) = (stamp(), slot());
    bench.write(&write(now + 10, row(State::Held))).await;
    bench.table.write(&bench.key, other, &write(now, row(State::Waiting))).await.unwrap();
    bench.table.erase(&bench.key, bench.slot, now + 5).await.unwrap();
    assert_eq!(bench.read().await.rows.len(), 2);
    bench.table.erase(&bench.key, other, now + 5).await.unwrap();
    assert_eq!(bench.read().await.rows.iter().map(|seen| seen.slot).collect::<Vec<_>>(), [bench.slot]);
}
