//! Acquire and release without contention, against the same statements sent by hand on the same session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::environment::SystemEnvironment;
use ylock_core::{ClientName, Key, Mode, Owner, StoreToken, Ylock};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::{Claim, Row, Slot, State, Store, TimedClaim, Write};
use ylock_engine_cassandra::driver::Table;

use ylock_testkit::measure::{Times, group, ms, pairs, ratio};

const LEASE: Duration = Duration::from_secs(30);
const WARM_UP: usize = 3_000;
const PAIRS: usize = 3_000;
/// The two arms take turns, so that both see the same machine.
const TURN: usize = 100;

pub(crate) async fn run() {
    let environment = SystemEnvironment::shared();
    let table = Table::connect(&super::options(LEASE), &environment).await.expect("the cluster answers");
    let table = Arc::new(table);
    let engine = CassandraEngine::over(table.clone(), environment, table.options());
    let ylock = Ylock::new(engine).with_options(ylock_core::Options::default().with_lease(LEASE));
    let locks = ylock.locks(group());
    let key = Key::new(group(), "raw").expect("a key");
    let (mut raw, mut ours) = (Times::default(), Times::default());
    for round in 0..(WARM_UP + PAIRS) / TURN {
        let (one, other) = (raw_turn(&table, &key).await, pairs(&locks, "ours", TURN).await);
        if round >= WARM_UP / TURN {
            raw.extend(one);
            ours.extend(other);
        }
    }
    for (name, times) in [("raw (write, read, write)", &mut raw), ("acquire + release", &mut ours)] {
        println!("{name:26} p50 {:>10}  p99 {:>10}", ms(times.quantile(0.5)), ms(times.quantile(0.99)));
    }
    println!("ratio of the medians       {:.3}  (target 1.15)", ratio(ours.quantile(0.5), raw.quantile(0.5)));
    ylock.close().await;
}

async fn raw_turn(table: &Table, key: &Key) -> Times {
    let mut times = Times::default();
    let slot = Slot::from_u128(1 << 100);
    for _ in 0..TURN {
        let (claim, release) = (write(State::Claimed, false), write(State::Idle, true));
        let start = Instant::now();
        table.write(key, slot, &claim).await.expect("written");
        table.read(key).await.expect("read");
        table.write(key, slot, &release).await.expect("written");
        times.push(start.elapsed());
    }
    times
}

/// Returns what the engine writes: the row and its token, and at the end the last token too.
pub(super) fn write(state: State, releases: bool) -> Write {
    let stamp = SystemEnvironment::shared().wall_micros();
    let token = StoreToken::new(u64::try_from(stamp).expect("after 1970")).expect("a token");
    let claim = TimedClaim { claim: Claim { token, mode: Mode::Write }, ttl: 604_800 };
    let row = Row {
        acquisition: AcquisitionId::from_u128(7),
        mode: Mode::Write,
        state,
        ticket: Ticket::from_number(stamp),
        owner: Owner::from_bytes([7; 16]),
        client: ClientName::default(),
        since: stamp,
        lease: LEASE,
        next: None,
        hints: None,
    };
    let short = TimedClaim { ttl: 33, ..claim };
    let claim_cell = if releases { short } else { claim };
    Write { stamp, row, row_ttl: 33, claim: Some(claim_cell), used: releases.then_some(claim) }
}
