//! The pages of locks, as the simulated cluster has them: what the table of a real one is asked in `engine-cassandra/tests/store/listing.rs`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Key, Mode, Owner};
use ylock_engine_cassandra::algorithm::store::{Row, Slot, State, Store, Write};
use ylock_simulation::chance::Chance;
use ylock_simulation::clocks::Clocks;
use ylock_simulation::store::{Cluster, Connection, Weather};
use ylock_simulation::world::World;

/// More than two pages.
const LOCKS: usize = 13;

fn write(stamp: i64, state: State) -> Write {
    let row = Row {
        acquisition: AcquisitionId::from_u128(1),
        mode: Mode::Write,
        state,
        ticket: Ticket::from_number(1),
        owner: Owner::from_bytes([1; 16]),
        client: ClientName::default(),
        since: 1,
        lease: Duration::from_secs(10),
        next: None,
        hints: None,
    };
    Write { stamp, row, row_ttl: 60, claim: None, used: None }
}

fn key(number: usize) -> Key {
    Key::new("group", number.to_string()).unwrap()
}

/// Returns the locks that the pages name, in order.
async fn named(store: &dyn Store) -> Vec<Key> {
    let (mut after, mut named) = (None, Vec::new());
    loop {
        let page = store.keys(after).await.unwrap();
        assert!(page.next.is_none() || page.next > after, "{page:?}");
        named.extend(page.keys);
        after = page.next;
        if after.is_none() {
            named.sort_unstable();
            return named;
        }
    }
}

async fn locks_are_named_while_clients_take_part(store: &dyn Store) {
    let [one, other] = [1, 2].map(Slot::from_u128);
    let mut stamp = 0;
    for state in [State::Waiting, State::Claimed, State::Held] {
        stamp += 1;
        for number in 0..LOCKS {
            store.write(&key(number), one, &write(stamp, state)).await.unwrap();
        }
        let mut expected: Vec<Key> = (0..LOCKS).map(key).collect();
        expected.sort_unstable();
        assert_eq!(named(store).await, expected, "{state:?}");
    }
    // One lock is held by another client too.
    store.write(&key(3), other, &write(1, State::Held)).await.unwrap();
    for number in 0..LOCKS {
        store.write(&key(number), one, &write(stamp + 1, State::Idle)).await.unwrap();
    }
    assert_eq!(named(store).await, [key(3)]);
    store.bury(&key(3), other, 1).await.unwrap();
    assert_eq!(named(store).await, []);
    store.write(&key(5), one, &write(stamp + 2, State::Held)).await.unwrap();
    assert_eq!(named(store).await, [key(5)]);
    store.erase(&key(5), one, stamp + 3).await.unwrap();
    assert_eq!(named(store).await, []);
}

#[test]
fn a_lock_is_named_while_a_client_takes_part() {
    let world = World::new(false);
    let weather = Weather::calm((Duration::from_millis(1), Duration::from_millis(3)));
    let cluster = Cluster::new(&world, weather, &[0; 3], Chance::new(1));
    let actor = world.new_actor();
    let clocks = Clocks::new(&world, actor, 1.0, 0, Chance::new(2));
    let store = Connection::new(&world, &cluster, &clocks, Duration::from_secs(1));
    let is_done = Arc::new(Mutex::new(false));
    let done = Arc::clone(&is_done);
    let work = async move {
        locks_are_named_while_clients_take_part(&store).await;
        *done.lock() = true;
    };
    world.spawn(actor, Box::pin(work));
    let until = world.now() + 60_000_000_000;
    assert!(world.run(until, || *is_done.lock()), "it ends within a minute");
}
