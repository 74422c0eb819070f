//! Sessions that have ended for their client, and that the servers still have; and sessions that may be about to end.

use std::time::Duration;

use tokio::time::Instant;

use ylock_core::Mode;
use ylock_core::engine::{Engine, LossReason, Release, Renewal, valid_until};
use ylock_engine_zookeeper::algorithm::store::Fault;

use crate::fake::SESSION;
use crate::fates::Fate;
use crate::fixture::{Fixture, renew};

/// What other grants count from may have been confirmed a moment ago, and their holders rely on that until their time is over.
#[tokio::test(start_paused = true)]
async fn what_a_session_has_that_is_given_up_stays_until_the_servers_would_have_ended_it() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.fates.of_next("check", Fate::Refused(Fault::NoHosts));
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Gone));
    tokio::time::sleep(SESSION * 9 / 10).await;
    assert_eq!(fixture.contenders().len(), 1);
    tokio::time::sleep(SESSION / 10).await;
    assert!(fixture.contenders().is_empty());
}

/// The server that the next session comes to is behind, and would show nothing of the lock.
#[tokio::test(start_paused = true)]
async fn a_release_removes_also_what_an_earlier_session_of_its_client_has_left() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.give_up(0);
    fixture.fake.fates.fall_behind();
    assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert!(fixture.contenders().is_empty());
}

/// It would be let in with a node that goes when the servers end the earlier session, and another contender be let in beside it.
#[tokio::test(start_paused = true)]
async fn a_waiter_does_not_take_the_node_of_its_earlier_session_for_its_own() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    // It does not know whether its next session has made a node, and asks what there is.
    fixture.fake.fates.of_next("join", Fate::Lost);
    fixture.fake.give_up(1);
    fixture.until_contenders(3).await;
    assert!(fixture.fake.fates.has_come());
    here.release(&held.key, held.id, None).await.unwrap();
    fixture.until_contenders(2).await;
    tokio::time::sleep(SESSION / 10).await;
    assert!(!waits.is_finished(), "the servers still have the node of the earlier session");
    let granted = tokio::time::timeout(SESSION, waits).await.expect("that node is gone").unwrap();
    assert!(granted.is_some());
    assert_eq!(fixture.contenders().len(), 1);
}

/// The time after which a server has reported of which sessions it has heard.
const REPORT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 6);

/// The server that is asked for the lock reports a moment later that the client is alive. Until then the leader may end the session.
#[tokio::test(start_paused = true)]
async fn a_client_that_stood_still_takes_its_first_lock_when_the_leader_must_have_heard_of_it() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    tokio::time::advance(SESSION * 9 / 10).await;
    let (went_on, resumed) = (fixture.now(), Instant::now());
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert!(resumed.elapsed() >= REPORT, "{:?}", resumed.elapsed());
    assert!(grant.sent >= went_on.plus(REPORT));
    assert!(resumed.elapsed() < SESSION / 3, "{:?}", resumed.elapsed());
    assert!(fixture.fake.sent().len() < 30, "it asks all the time");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_stood_still_is_let_in_when_the_leader_must_have_heard_of_it() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    fixture.fake.end(0);
    tokio::time::advance(SESSION * 9 / 10).await;
    let (went_on, resumed) = (fixture.now(), Instant::now());
    let grant = fixture.granted(waits).await;
    assert!(resumed.elapsed() >= REPORT && grant.sent >= went_on.plus(REPORT), "{:?}", resumed.elapsed());
    drop(held);
}

/// The leader ends the session then at the earliest: a timeout after it heard of the heartbeat before.
#[tokio::test(start_paused = true)]
async fn a_renewal_after_a_silence_counts_from_soon_after_the_last_sign_of_life() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let before = fixture.now();
    tokio::time::advance(SESSION * 6 / 10).await;
    let Renewal::Renewed { sent, .. } = renew(&here, &grant).await.unwrap() else { panic!("it is lost") };
    assert!(sent <= before.plus(SESSION / 4), "{:?}", sent.since(before));
    tokio::time::sleep(REPORT + Duration::from_millis(100)).await;
    let went_on = fixture.now();
    let Renewal::Renewed { sent, .. } = renew(&here, &grant).await.unwrap() else { panic!("it is lost") };
    assert!(sent.plus(SESSION / 10) >= went_on, "{:?}", went_on.since(sent));
}

/// Its session has signs of life that are no heartbeats.
#[tokio::test(start_paused = true)]
async fn a_client_that_was_not_used_for_long_takes_its_first_lock_at_once() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    tokio::time::sleep(SESSION * 10).await;
    assert!(fixture.fake.sent().iter().all(|request| *request != "check"), "it sends no heartbeats");
    let asked = Instant::now();
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert!(asked.elapsed() < REPORT / 10, "{:?}", asked.elapsed());
}

/// A lock that is granted counts from a fifth after the last sign then, and has time left until a heartbeat prolongs it.
#[tokio::test(start_paused = true)]
async fn a_client_that_stood_still_waits_with_its_first_lock_if_that_was_for_most_of_the_session() {
    for (percent, waits) in [(40, false), (70, false), (76, true), (90, true)] {
        let fixture = Fixture::new();
        let here = fixture.client().await;
        let before = fixture.now();
        tokio::time::advance(SESSION * percent / 100).await;
        let resumed = Instant::now();
        let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
        assert_eq!(resumed.elapsed() >= REPORT, waits, "{:?} after {percent}", resumed.elapsed());
        let latest = before.plus(SESSION / 5 + MOMENT);
        assert_eq!(grant.sent > latest, waits, "{:?} after {percent}", grant.sent.since(before));
    }
}

/// A few trips.
const MOMENT: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn a_renewal_after_a_silence_prolongs_no_lease_beyond_what_it_counts() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::advance(SESSION * 6 / 10).await;
    let Renewal::Renewed { sent, .. } = renew(&here, &grant).await.unwrap() else { panic!("it is lost") };
    tokio::time::advance(valid_until(sent, grant.lease).since(fixture.now())).await;
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Lapsed));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_given_up_after_a_silence_ends_when_the_leader_may_end_it() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let before = fixture.now();
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::advance(SESSION * 6 / 10).await;
    let Renewal::Renewed { sent, .. } = renew(&here, &grant).await.unwrap() else { panic!("it is lost") };
    fixture.fake.fates.of_next("check", Fate::Refused(Fault::NoHosts));
    tokio::time::sleep(SESSION / 20).await;
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Gone));
    tokio::time::sleep(valid_until(sent, grant.lease).since(fixture.now())).await;
    assert_eq!(fixture.contenders().len(), 1);
    tokio::time::sleep(before.plus(SESSION + MOMENT).since(fixture.now())).await;
    assert!(fixture.contenders().is_empty());
}

/// A sign of life that got an answer late, or none, and a silence then. Returns for how long the sign was sent before the first lock counts.
async fn lock_after_a_sign(fate: Fate, until_answered: Duration) -> Duration {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    tokio::time::sleep(MOMENT).await;
    fixture.fake.fates.of_next("sync", fate);
    while !fixture.fake.fates.has_come() {
        tokio::time::sleep(MOMENT / 10).await;
    }
    let sent = fixture.now();
    tokio::time::sleep(until_answered + MOMENT).await;
    tokio::time::advance(REPORT + MOMENT).await;
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap().sent.since(sent)
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_that_is_answered_late_is_one_of_when_it_was_sent() {
    let late = Fixture::options().request_timeout() - MOMENT;
    let counts = lock_after_a_sign(Fate::Late(late), late).await;
    assert!(counts <= SESSION / 5 && counts + MOMENT >= SESSION / 5, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_no_sign_of_life() {
    let counts = lock_after_a_sign(Fate::Lost, Fixture::options().request_timeout()).await;
    assert!(counts <= SESSION / 5 - SESSION / 24, "{counts:?}");
}

/// Heartbeats of the session are farther apart than its lease is long.
#[tokio::test(start_paused = true)]
async fn a_waiter_with_a_short_lease_is_let_in_at_once_and_with_time_left() {
    for moment in 0..6 {
        let fixture = Fixture::new();
        let lease = SESSION / 12;
        let options = Fixture::short_leases(lease);
        let (here, there) = (fixture.client().await, fixture.client_with(&options).await.unwrap());
        let held = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
        let request = fixture.request(Mode::Write).with_lease(lease);
        let waits = tokio::spawn(async move { there.acquire(&request).await.unwrap() });
        fixture.until_contenders(2).await;
        tokio::time::sleep(SESSION / 2 + SESSION * moment / 60).await;
        here.release(&held.key, held.id, None).await.unwrap();
        let released = Instant::now();
        let grant = fixture.granted(waits).await;
        assert!(released.elapsed() < MOMENT, "{:?}", released.elapsed());
        assert!(fixture.now() < valid_until(grant.sent, lease), "it is over before it is held");
    }
}

/// What it made goes with the session.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_confirmed_when_its_session_was_given_up_lets_no_contender_in() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    fixture.make_bucket(&here).await;
    tokio::time::sleep(SESSION * 2).await;
    fixture.fake.fates.of_next("check", Fate::Refused(Fault::NoHosts));
    fixture.fake.fates.of_next("make_both", Fate::Late(MOMENT * 20));
    let waits = fixture.acquiring(&here, Mode::Write);
    tokio::time::sleep(MOMENT).await;
    assert!(fixture.fake.fates.has_come() && fixture.contenders().len() == 1);
    let grant = fixture.granted(waits).await;
    assert!(fixture.contenders().iter().any(|name| name.contains("-2-")), "{:?}", fixture.contenders());
    for _ in 0..6 {
        assert!(matches!(renew(&here, &grant).await.unwrap(), Renewal::Renewed { .. }), "it is lost");
        tokio::time::sleep(SESSION / 4).await;
    }
    assert_eq!(fixture.contenders().len(), 1, "the earlier session has ended");
}

/// Its node goes with the session, which is closed.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_confirmed_when_its_client_was_closed_lets_no_contender_in() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    fixture.make_bucket(&here).await;
    fixture.fake.fates.of_next("make_both", Fate::Late(MOMENT));
    let (engine, request) = (here.clone(), fixture.request(Mode::Write));
    let waits = tokio::spawn(async move { engine.acquire(&request).await });
    fixture.until_contenders(1).await;
    here.close().await.unwrap();
    let granted = tokio::time::timeout(SESSION, waits).await.expect("it ends").unwrap();
    assert!(granted.is_err(), "{granted:?}");
}
