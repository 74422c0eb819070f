//! Rows that other clients observe: when they are buried, and when they must not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ylock_core::Mode;
use ylock_core::engine::{Engine, Grant, Holding, LossReason, Patience, Renewal, Request};
use ylock_core::environment::{Environment, Moment};
use ylock_engine_cassandra::CassandraEngine;
use ylock_engine_cassandra::algorithm::store::State;
use ylock_engine_cassandra::options::Expiry;

use crate::fake::{self, Fate, LEASE};
use crate::fixture::{Fixture, bounded, until};

/// What a waiter needs beside the lease: two pauses and a few requests.
const A_WAY_IN: Duration = Duration::from_millis(1_010);

/// A client that observes others, and a request of it.
pub(crate) fn observer(fixture: &Fixture) -> (Arc<CassandraEngine>, Request) {
    let (_, request) = fixture.contestant();
    let options = fake::options().with_expiry(Expiry::Observed);
    (Arc::new(fake::engine_with(&fixture.fake, &fixture.world, &options)), request)
}

/// A request that waits on a task of its own, and when it was granted.
fn waits(fixture: &Fixture) -> Arc<Mutex<Option<(Grant, Moment)>>> {
    let (engine, request) = observer(fixture);
    let granted = Arc::new(Mutex::new(None));
    let (answer, world) = (Arc::clone(&granted), Arc::clone(&fixture.world));
    tokio::spawn(async move {
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        *answer.lock() = Some((grant, world.now()));
    });
    granted
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_died_is_buried_a_lease_after_its_last_heartbeat() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let dead = engine.acquire(&request).await.unwrap().unwrap();
        let heartbeat = fixture.fake.seen(&fixture.key).rows[0].heartbeat.unwrap();
        let waiter = waits(&fixture);
        until("the waiter gets in", || waiter.lock().is_some()).await;
        let (grant, when) = waiter.lock().take().unwrap();
        assert!(when >= dead.sent.plus(LEASE) && when <= dead.sent.plus(LEASE + A_WAY_IN));
        assert!(grant.token > dead.token);
        let burials = fixture.fake.burials();
        assert_eq!(burials.iter().map(|burial| burial.1).collect::<Vec<_>>(), [heartbeat]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_renews_is_never_buried() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let mut grant = engine.acquire(&request).await.unwrap().unwrap();
        let waiter = waits(&fixture);
        for _ in 0..12 {
            tokio::time::sleep(LEASE * 8 / 10).await;
            match engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap() {
                Renewal::Renewed { sent, .. } => grant.sent = sent,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(fixture.fake.burials(), []);
        assert!(waiter.lock().is_none());
    })
    .await;
}

/// With a TTL the row goes by itself, and no client is asked to bury anything.
#[tokio::test(start_paused = true)]
async fn nothing_is_buried_where_rows_go_by_their_ttl() {
    bounded(async {
        let fixture = Fixture::new();
        let options = fake::options().with_expiry(Expiry::Ttl);
        let engine = || fake::engine_with(&fixture.fake, &fixture.world, &options);
        let (_, request) = fixture.contestant();
        let dead = engine().acquire(&request).await.unwrap().unwrap();
        engine().acquire(&fixture.again(&request)).await.unwrap().unwrap();
        assert!(fixture.world.now() >= dead.sent.plus(LEASE + Duration::from_secs(3)));
        assert_eq!(fixture.fake.burials(), []);
    })
    .await;
}

/// A heartbeat that arrives together with the burial of the one before is alive for every client: it is watched for a lease of its own.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_comes_with_the_burial_is_not_buried_with_it() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture
            .fake
            .plan(|_, write| if write.row.state == State::Held { Fate::IsLate } else { Fate::Arrives });
        engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap_err();
        fixture.fake.deliver_with_the_next_burial();
        let waiter = waits(&fixture);
        until("the first heartbeat is buried", || fixture.fake.burials().len() == 1).await;
        let buried = fixture.world.now();
        fixture.fake.plan(|_, _| Fate::Arrives);
        until("the waiter gets in", || waiter.lock().is_some()).await;
        let (_, when) = waiter.lock().take().unwrap();
        assert!(when >= buried.plus(LEASE), "after {:?}", when.since(buried));
        let burials = fixture.fake.burials();
        assert!(burials.len() == 2 && burials[0].1 < burials[1].1, "{burials:?}");
    })
    .await;
}

/// A look that took long says nothing of what was sent meanwhile.
#[tokio::test(start_paused = true)]
async fn a_lease_is_counted_from_the_end_of_a_look() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let dead = engine.acquire(&request).await.unwrap().unwrap();
        let (other, theirs) = observer(&fixture);
        let theirs = theirs.with_patience(Patience::Try);
        fixture.fake.slow_read(LEASE / 2);
        assert!(other.acquire(&theirs).await.unwrap().is_none());
        tokio::time::sleep(LEASE * 3 / 4).await;
        assert!(fixture.world.now() > dead.sent.plus(LEASE));
        let again = other.acquire(&fixture.again(&theirs)).await.unwrap();
        assert!(again.is_none(), "half a lease is not seen yet");
        assert_eq!(fixture.fake.burials(), []);
    })
    .await;
}

/// A call that does not wait has only this one look; so what it saw is kept, for longer than a client's row is otherwise.
#[tokio::test(start_paused = true)]
async fn a_try_that_comes_again_after_a_lease_gets_past_a_dead_holder() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let long = request.with_lease(LEASE * 3);
        engine.acquire(&long).await.unwrap().unwrap();
        let (other, theirs) = observer(&fixture);
        let theirs = theirs.with_patience(Patience::Try);
        assert!(other.acquire(&theirs).await.unwrap().is_none());
        tokio::time::sleep(LEASE * 3 + Duration::from_millis(10)).await;
        let granted = other.acquire(&fixture.again(&theirs)).await.unwrap();
        assert!(granted.is_some());
        assert_eq!(fixture.fake.burials().len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_more_than_two_leases_ago_is_forgotten() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        engine.acquire(&request).await.unwrap().unwrap();
        let (other, theirs) = observer(&fixture);
        let theirs = theirs.with_patience(Patience::Try);
        assert!(other.acquire(&theirs).await.unwrap().is_none());
        let known = |engine: &CassandraEngine| engine.in_memory()[0].1;
        assert_eq!(known(&other), 1);
        tokio::time::sleep(LEASE * 2 + Duration::from_secs(2)).await;
        assert_eq!(known(&other), 0);
    })
    .await;
}

/// Its own row is shown again by a renewal that was late, and the client that came meanwhile has left.
#[tokio::test(start_paused = true)]
async fn a_holder_that_had_a_successor_has_lost_although_its_row_is_there() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = fixture.contestant();
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.plan(|_, _| Fate::IsLate);
        engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap_err();
        fixture.fake.expire(&fixture.key);
        fixture.fake.plan(|_, _| Fate::Arrives);
        let (other, theirs) = fixture.contestant();
        let later = other.acquire(&theirs).await.unwrap().unwrap();
        other.release(&fixture.key, theirs.id, None).await.unwrap();
        assert!(later.token > grant.token);
        assert_eq!(fixture.fake.deliver(), 1);
        let renewed = engine.renew(&[Holding::new(grant, None)]).await.remove(0).unwrap();
        assert_eq!(renewed, Renewal::Lost(LossReason::Gone));
    })
    .await;
}

/// A row that takes no part need not outlive the skew of clocks where rows are observed; one that a client relies on must. With a TTL what
/// a replica missed would stand in the way for as long as the clocks may differ.
#[tokio::test(start_paused = true)]
async fn a_row_that_takes_no_part_outlives_the_skew_of_clocks_only_where_none_is_observed() {
    bounded(async {
        let (seconds, hour) = (Duration::from_secs, Duration::from_secs(3_600));
        for (expiry, idle) in [(Expiry::Observed, seconds(3)), (Expiry::Ttl, seconds(1) + hour)] {
            let fixture = Fixture::new();
            let ttls = Arc::new(Mutex::new(Vec::new()));
            let written = Arc::clone(&ttls);
            fixture.fake.plan(move |_, write| {
                written.lock().push((write.row.state, Duration::from_secs(write.row_ttl.into())));
                Fate::Arrives
            });
            let (_, request) = fixture.contestant();
            let options = fake::options().with_expiry(expiry).with_max_clock_skew(hour);
            let engine = fake::engine_with(&fixture.fake, &fixture.world, &options);
            engine.acquire(&request).await.unwrap().unwrap();
            engine.release(&fixture.key, request.id, None).await.unwrap();
            let meant = [(State::Claimed, LEASE + seconds(1) + hour), (State::Idle, LEASE + idle)];
            assert_eq!(*ttls.lock(), meant, "{expiry:?}");
        }
    })
    .await;
}

/// A client that only looks buries nothing, but tells the dead from the living like one that waits.
#[tokio::test(start_paused = true)]
async fn a_holder_that_was_seen_for_a_lease_is_not_inspected_any_more() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        engine.acquire(&request).await.unwrap().unwrap();
        let (other, _) = observer(&fixture);
        let holders = async || other.inspect(&fixture.key).await.unwrap().holders.len();
        assert_eq!(holders().await, 1);
        tokio::time::sleep(LEASE - Duration::from_millis(10)).await;
        assert_eq!(holders().await, 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(holders().await, 0);
        assert!(!other.revoke(&fixture.key, request.id).await.unwrap(), "no client is there to hear it");
        assert_eq!(fixture.fake.burials(), []);
        assert_eq!(fixture.states(), [State::Claimed]);
    })
    .await;
}

/// A reader that died stands in the way of no reader, so none of them buries it.
#[tokio::test(start_paused = true)]
async fn only_what_stands_in_the_way_is_buried() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        engine.acquire(&request.with_mode(Mode::Read)).await.unwrap().unwrap();
        let (other, theirs) = observer(&fixture);
        let theirs = theirs.with_mode(Mode::Read).with_patience(Patience::Try);
        for _ in 0..3 {
            let reads = fixture.again(&theirs);
            assert!(other.acquire(&reads).await.unwrap().is_some());
            other.release(&fixture.key, reads.id, None).await.unwrap();
            tokio::time::sleep(LEASE * 6 / 10).await;
        }
        assert_eq!(fixture.fake.burials(), []);
        assert!(other.acquire(&fixture.again(&theirs.with_mode(Mode::Write))).await.unwrap().is_some());
        assert_eq!(fixture.fake.burials().len(), 1);
    })
    .await;
}

/// A reader's client lets no more readers of its own in while a writer waits elsewhere; and no client buries a dead writer that no other
/// waiter stands behind.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_died_does_not_make_a_lock_contended_for_long() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        let mut grant = engine.acquire(&request.with_mode(Mode::Read)).await.unwrap().unwrap();
        let (dying, theirs) = observer(&fixture);
        let waiting = tokio::spawn(async move { dying.acquire(&theirs).await });
        fixture.until(State::Waiting, 1).await;
        waiting.abort();
        let began = fixture.world.now();
        loop {
            tokio::time::sleep(LEASE / 3).await;
            match engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap() {
                Renewal::Renewed { sent, contended: true } => grant.sent = sent,
                Renewal::Renewed { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        let time = fixture.world.now().since(began);
        assert!(time > LEASE && time < LEASE * 2, "{time:?}");
    })
    .await;
}

/// Those of a process with a thousand clients, say; and each burial that is acknowledged is one less to ask for.
#[tokio::test(start_paused = true)]
async fn a_thousand_dead_rows_are_buried_some_at_a_time() {
    bounded(async {
        let fixture = Fixture::new();
        let readers = 1_000;
        for _ in 0..readers {
            let (engine, request) = observer(&fixture);
            engine.acquire(&request.with_mode(Mode::Read)).await.unwrap().unwrap();
        }
        let waiter = waits(&fixture);
        until("the waiter gets in", || waiter.lock().is_some()).await;
        assert_eq!(fixture.fake.burials().len(), readers);
        assert_eq!(fixture.fake.most_burying.load(Ordering::Relaxed), 64);
    })
    .await;
}

/// Without a pause it would be asked for as fast as the store answers.
#[tokio::test(start_paused = true)]
async fn a_row_that_cannot_be_buried_is_buried_once_in_a_lease() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        engine.acquire(&request).await.unwrap().unwrap();
        fixture.fake.bury_nothing();
        let waiter = waits(&fixture);
        tokio::time::sleep(LEASE * 3 + LEASE / 2).await;
        let burials = fixture.fake.burials().len();
        assert!((2..=3).contains(&burials), "{burials} burials");
        assert!(waiter.lock().is_none());
    })
    .await;
}

/// Readers that wait side by side do not wait for each other.
#[tokio::test(start_paused = true)]
async fn of_many_readers_that_wait_two_bury() {
    bounded(async {
        let fixture = Fixture::new();
        let (engine, request) = observer(&fixture);
        engine.acquire(&request).await.unwrap().unwrap();
        let granted = Arc::new(AtomicU64::new(0));
        for _ in 0..20 {
            let (engine, theirs) = observer(&fixture);
            let granted = Arc::clone(&granted);
            tokio::spawn(async move {
                engine.acquire(&theirs.with_mode(Mode::Read)).await.unwrap().unwrap();
                granted.fetch_add(1, Ordering::Relaxed);
            });
        }
        until("all get in", || granted.load(Ordering::Relaxed) == 20).await;
        let burials = fixture.fake.burials().len();
        assert!((1..=2).contains(&burials), "{burials}");
    })
    .await;
}

/// Dead readers are in no other reader's way, but none of them buries the writer before it either.
#[tokio::test(start_paused = true)]
async fn a_reader_behind_dead_readers_waits_no_longer_than_one_alone() {
    bounded(async {
        let mut took = Vec::new();
        for count in [0, 30] {
            let fixture = Fixture::new();
            let (engine, request) = observer(&fixture);
            engine.acquire(&request).await.unwrap().unwrap();
            let mut dying = Vec::new();
            for _ in 0..count {
                let (engine, theirs) = observer(&fixture);
                dying.push(tokio::spawn(async move {
                    drop(engine.acquire(&theirs.with_mode(Mode::Read)).await);
                }));
            }
            fixture.until(State::Waiting, count).await;
            dying.iter().for_each(|task| task.abort());
            let began = fixture.world.now();
            let (engine, theirs) = observer(&fixture);
            engine.acquire(&theirs.with_mode(Mode::Read)).await.unwrap().unwrap();
            took.push(fixture.world.now().since(began));
        }
        assert!(took[1] <= took[0] + LEASE / 10, "{took:?}");
    })
    .await;
}
