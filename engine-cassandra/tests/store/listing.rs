//! The pages of locks, as the table has them.

use std::collections::BTreeSet;

use ylock_core::Key;
use ylock_core::engine::AcquisitionId;
use ylock_engine_cassandra::algorithm::clock::TimeCell;
use ylock_engine_cassandra::algorithm::runs::RunCell;
use ylock_engine_cassandra::algorithm::store::{Page, State, Store, Write};
use ylock_engine_cassandra::driver::Table;

use super::cluster::*;

/// More rows than a page has.
const MANY: usize = 700;

/// Returns all pages, and checks that each goes on where the one before has ended.
async fn pages(table: &Table) -> Vec<Page> {
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let page = table.keys(after).await.unwrap();
        assert!(page.next.is_none() || page.next > after, "{page:?}");
        after = page.next;
        pages.push(page);
        if after.is_none() {
            return pages;
        }
    }
}

/// Returns the locks of one group that the pages name, those that are named twice among them twice.
async fn named(table: &Table, group: &str) -> Vec<Key> {
    let pages = pages(table).await;
    pages.into_iter().flat_map(|page| page.keys).filter(|key| key.group() == group).collect()
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_lock_is_named_while_a_client_takes_part() {
    let bench = Bench::new().await;
    let named = || named(&bench.table, bench.key.group());
    assert_eq!(named().await, []);
    for state in [State::Waiting, State::Claimed, State::Held] {
        bench.write(&write(stamp(), row(state))).await;
        assert_eq!(named().await, std::slice::from_ref(&bench.key), "{state:?}");
    }
    let idle = stamp();
    let used = Some(timed(7, ylock_core::Mode::Write, 60));
    bench.write(&Write { claim: used, used, ..write(idle, row(State::Idle)) }).await;
    assert_eq!(named().await, []);
    // Another client takes part beside it, and then both.
    let held = write(stamp(), row(State::Held));
    bench.table.write(&bench.key, slot(), &held).await.unwrap();
    assert_eq!(named().await, std::slice::from_ref(&bench.key));
    bench.write(&held).await;
    assert_eq!(named().await, std::slice::from_ref(&bench.key), "once, however many clients take part");
}

#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn a_row_that_was_buried_or_erased_and_what_is_no_lock_is_not_named() {
    let bench = Bench::new().await;
    let held =
        Write { claim: Some(timed(7, ylock_core::Mode::Write, 60)), ..write(stamp(), row(State::Held)) };
    bench.write(&held).await;
    bench.table.bury(&bench.key, bench.slot, held.stamp).await.unwrap();
    let id = AcquisitionId::new(&*environment());
    bench.table.revoke(&bench.key, bench.slot, id, stamp(), 60).await.unwrap();
    bench.table.write_run(&bench.key, "a run", stamp(), 60).await.unwrap();
    bench.table.write_time(stamp()).await.unwrap();
    assert_eq!(named(&bench.table, bench.key.group()).await, []);
    bench.write(&write(stamp(), row(State::Held))).await;
    assert_eq!(named(&bench.table, bench.key.group()).await, std::slice::from_ref(&bench.key));
    bench.table.erase(&bench.key, bench.slot, stamp()).await.unwrap();
    assert_eq!(named(&bench.table, bench.key.group()).await, []);
}

/// A page ends between two locks, or in the middle of one of many clients.
#[tokio::test]
#[ignore = "needs cassandra: run `cargo xtask test`"]
async fn no_lock_is_left_out_where_pages_end() {
    let bench = Bench::new().await;
    let mut keys = BTreeSet::from([bench.key.clone()]);
    let crowd = (0..MANY).map(|_| (bench.key.clone(), State::Idle));
    let single = (0..MANY).map(|number| {
        let key = Key::new(bench.key.group(), number.to_string()).unwrap();
        (key, State::Held)
    });
    let rows: Vec<_> = crowd.chain(single).collect();
    for some in rows.chunks(50) {
        let written = some.iter().map(|(key, state)| {
            let (written, table) = (write(stamp(), row(*state)), &bench.table);
            async move { table.write(key, slot(), &written).await.unwrap() }
        });
        futures_util::future::join_all(written).await;
        keys.extend(some.iter().map(|(key, _)| key.clone()));
    }
    // Its only client that takes part is behind all the others.
    let last = ylock_engine_cassandra::algorithm::store::Slot::from_u128(u128::MAX);
    bench.table.write(&bench.key, last, &write(stamp(), row(State::Waiting))).await.unwrap();
    let named = named(&bench.table, bench.key.group()).await;
    assert_eq!(named.len(), keys.len());
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), keys);
}
