use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{Key, MAX_GROUP_BYTES, MAX_NAME_BYTES, Mode, Owner};
use ylock_engine_cassandra::algorithm::store::{Next, Row, SeenRow, State, Store, Write};

use super::cluster::*;

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn every_field_comes_back() {
    let bench = Bench::new().await;
    for (state, mode) in [
        (State::Idle, Mode::Read),
        (State::Waiting, Mode::Write),
        (State::Claimed, Mode::Read),
        (State::Held, Mode::Write),
    ] {
        for next in [None, Some(next())] {
            let write = write(stamp(), Row { mode, next, ..row(state) });
            bench.write(&write).await;
            let seen = SeenRow {
                slot: bench.slot,
                row: Some(write.row),
                heartbeat: Some(write.stamp),
                claim: None,
                claim_stamp: None,
                revoked: None,
            };
            assert_eq!(bench.read().await.rows, [seen]);
        }
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_lease_is_rounded_up_to_milliseconds() {
    let bench = Bench::new().await;
    bench.write(&write(stamp(), Row { lease: Duration::from_micros(1500), ..row(State::Held) })).await;
    let lease = bench.read().await.rows[0].row.as_ref().unwrap().lease;
    assert_eq!(lease, Duration::from_millis(2));
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn claim_and_last_tokens_come_back() {
    let bench = Bench::new().await;
    for (number, mode) in [(1, Mode::Read), ((1 << 53) - 1, Mode::Write)] {
        let claimed = Write { claim: Some(timed(number, mode, 60)), ..write(stamp(), row(State::Claimed)) };
        bench.write(&claimed).await;
        let seen = bench.read().await.rows.remove(0);
        assert_eq!((seen.claim, seen.claim_stamp), (Some(claim(number, mode)), Some(claimed.stamp)));
        let used = Some(timed(number, mode, 60));
        bench.write(&Write { used, claim: None, ..write(stamp(), row(State::Idle)) }).await;
        let both = Write { claim: used, used, ..write(stamp(), row(State::Idle)) };
        bench.write(&both).await;
        let partition = bench.read().await;
        assert_eq!(partition.rows[0].row.as_ref(), Some(&both.row));
        let last = if mode == Mode::Read { partition.last_read } else { partition.last_write };
        assert_eq!(last, Some(claim(number, mode).token));
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn odd_names_are_kept_apart() {
    let bench = Bench::new().await;
    let long = "ü".repeat(MAX_NAME_BYTES / 2);
    // The fourth and the fifth look the same and are not: one é is one character, the other two.
    let names =
        ["\0", "a'b\"c;--", "🔒🧵", "caf\u{e9}", "cafe\u{301}", " ", "\u{feff}x", "$$", long.as_str()];
    let mut written = Vec::new();
    for name in names {
        let key = Key::new(bench.key.group(), name).unwrap();
        let write = write(stamp(), row(State::Held));
        bench.table.write(&key, bench.slot, &write).await.unwrap();
        written.push((key, write.row));
    }
    for (key, row) in written {
        let partition = bench.table.read(&key).await.unwrap();
        assert_eq!(partition.rows.len(), 1, "{key:?}");
        assert_eq!(partition.rows[0].row, Some(row), "{key:?}");
    }
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn the_longest_group_and_name_fit() {
    let bench = Bench::new().await;
    let random = key("x").group().to_owned();
    let group = random.clone() + &"g".repeat(MAX_GROUP_BYTES - random.len());
    let key = Key::new(group, "n".repeat(MAX_NAME_BYTES)).unwrap();
    bench.table.write(&key, bench.slot, &write(stamp(), row(State::Held))).await.unwrap();
    assert_eq!(bench.table.read(&key).await.unwrap().rows.len(), 1);
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn many_clients_of_one_key_are_all_seen() {
    let bench = Bench::new().await;
    let mut slots: Vec<_> = (0..50).map(|_| slot()).collect();
    for slot in &slots {
        bench.table.write(&bench.key, *slot, &write(stamp(), row(State::Waiting))).await.unwrap();
    }
    let mut seen: Vec<_> = bench.read().await.rows.iter().map(|seen| seen.slot).collect();
    seen.sort_unstable();
    slots.sort_unstable();
    assert_eq!(seen, slots);
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn an_unused_key_is_empty() {
    let bench = Bench::new().await;
    assert_eq!(bench.read().await, Default::default());
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn every_call_is_exactly_one_request() {
    let bench = Bench::new().await;
    let id = AcquisitionId::new(&*environment());
    let mut before = bench.table.requests();
    let mut one_more = |what: &str| {
        before += 1;
        assert_eq!(bench.table.requests(), before, "{what}");
    };
    // Twice each: nothing is prepared, and no metadata is fetched, on the first use either.
    for _ in 0..2 {
        for (claim, used) in [
            (None, None),
            (Some(timed(1, Mode::Write, 60)), None),
            (None, Some(timed(1, Mode::Read, 60))),
            (Some(timed(1, Mode::Write, 60)), Some(timed(1, Mode::Write, 60))),
        ] {
            bench.write(&Write { claim, used, ..write(stamp(), row(State::Held)) }).await;
            one_more("write");
        }
        bench.read().await;
        one_more("read");
        bench.table.keys(None).await.unwrap();
        one_more("keys");
        bench.table.revoke(&bench.key, bench.slot, id, stamp(), 60).await.unwrap();
        one_more("revoke");
        bench.table.erase(&bench.key, bench.slot, stamp()).await.unwrap();
        one_more("erase");
    }
}

fn next() -> Next {
    Next {
        acquisition: AcquisitionId::from_u128(u128::MAX),
        owner: Owner::new(),
        mode: Mode::Read,
        ticket: Ticket::from_number(i64::MAX),
    }
}

/// What is newer than the heartbeat stays, and so does the token.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_burial_deletes_one_heartbeat_and_neither_a_later_one_nor_the_token() {
    let bench = Bench::new().await;
    let claimed = Write { claim: Some(timed(7, Mode::Write, 60)), ..write(stamp(), row(State::Claimed)) };
    bench.write(&claimed).await;
    bench.table.bury(&bench.key, bench.slot, claimed.stamp - 1).await.unwrap();
    assert_eq!(bench.read().await.rows[0].heartbeat, Some(claimed.stamp));
    bench.table.bury(&bench.key, bench.slot, claimed.stamp).await.unwrap();
    let seen = &bench.read().await.rows[0];
    assert_eq!(
        (&seen.row, seen.heartbeat, seen.claim),
        (&None, None, claimed.claim.map(|timed| timed.claim))
    );
    // A copy of the write that arrives late: the deletion wins the tie.
    bench.write(&claimed).await;
    assert_eq!(bench.read().await.rows[0].row, None);
    let renewed = Write { stamp: claimed.stamp + 1, ..claimed };
    bench.write(&renewed).await;
    assert_eq!(bench.read().await.rows[0].row, Some(renewed.row));
}
