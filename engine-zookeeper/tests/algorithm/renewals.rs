//! Renewals: what they tell, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Engine, Grant, Holding, LossReason, Renewal};
use ylock_core::environment::Moment;
use ylock_core::{ErrorKind, Key, Mode};
use ylock_engine_zookeeper::ZookeeperEngine;
use ylock_engine_zookeeper::algorithm::store::Fault;

use crate::fake::SESSION;
use crate::fates::Fate;
use crate::fixture::{Fixture, LOCK, renew};

const SECOND: Duration = Duration::from_secs(1);

/// Returns from when the lease counts, and whether a contender that conflicts waits elsewhere.
async fn renewed(engine: &ZookeeperEngine, grant: &Grant) -> (Moment, bool) {
    match renew(engine, grant).await.unwrap() {
        Renewal::Renewed { sent, contended } => (sent, contended),
        lost => panic!("{lost:?}"),
    }
}

async fn held(fixture: &Fixture, engine: &ZookeeperEngine, mode: Mode) -> Grant {
    engine.acquire(&fixture.request(mode)).await.unwrap().unwrap()
}

fn announced(engine: &ZookeeperEngine) -> usize {
    let in_memory = engine.in_memory();
    in_memory.iter().find(|(what, _)| *what == "announced").expect("it is counted").1
}

/// Returns what was sent since the last call, without what keeps the session.
fn reads(fixture: &Fixture) -> Vec<&'static str> {
    let all = fixture.fake.sent().into_iter();
    all.filter(|request| !["check", "count", "sync"].contains(request)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_told_of_a_writer_that_waits_elsewhere_for_as_long_as_it_waits() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = held(&fixture, &here, Mode::Read).await;
    assert!(!renewed(&here, &grant).await.1);
    let request = fixture.request(Mode::Write);
    let (engine, writes) = (Arc::clone(&there), request.clone());
    let waits = tokio::spawn(async move { engine.acquire(&writes).await });
    fixture.until_contenders(2).await;
    for _ in 0..2 {
        assert!(renewed(&here, &grant).await.1);
    }
    waits.abort();
    there.release(&request.key, request.id, None).await.unwrap();
    assert!(!renewed(&here, &grant).await.1);
}

/// The server has not told of the writer yet. It does so before it answers a heartbeat that is sent now, and the last one is not old.
#[tokio::test(start_paused = true)]
async fn a_reader_is_told_of_a_writer_that_came_before_the_renewal() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = held(&fixture, &here, Mode::Read).await;
    assert!(!renewed(&here, &grant).await.1);
    fixture.fake.nodes().tell_late();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    assert!(renewed(&here, &grant).await.1);
    waits.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_for_long_costs_a_read_for_each_thing_that_its_holder_is_to_be_told() {
    for (mode, once) in
        [(Mode::Write, &["read_and_watch"][..]), (Mode::Read, &["read_and_watch", "list_and_watch"])]
    {
        let fixture = Fixture::new();
        let here = fixture.client().await;
        let grant = held(&fixture, &here, mode).await;
        reads(&fixture);
        for _ in 0..10 {
            renewed(&here, &grant).await;
            tokio::time::sleep(SECOND * 3).await;
        }
        assert_eq!(reads(&fixture), once);
    }
}

#[tokio::test(start_paused = true)]
async fn writers_that_are_due_one_after_the_other_share_a_heartbeat() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let mut grants = Vec::new();
    for name in ["alice", "bob", "carol"] {
        let mut request = fixture.request(Mode::Write);
        request.key = Key::new("users", name).unwrap();
        grants.push(here.acquire(&request).await.unwrap().unwrap());
    }
    for grant in &grants {
        renewed(&here, grant).await;
    }
    tokio::time::sleep(SECOND).await;
    fixture.fake.sent();
    let (before, mut sent) = (fixture.now(), Vec::new());
    for grant in &grants {
        sent.push(renewed(&here, grant).await.0);
    }
    assert_eq!(fixture.fake.sent(), ["check"]);
    assert!(sent.iter().all(|sent| *sent == before), "{before:?} {sent:?}");
}

/// Its first renewal would not prolong it.
#[tokio::test(start_paused = true)]
async fn a_lock_is_not_renewed_by_a_heartbeat_that_was_sent_before_it_was_granted() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let mut first = fixture.request(Mode::Write);
    first.key = Key::new("users", "bob").unwrap();
    let first = here.acquire(&first).await.unwrap().unwrap();
    let beat = renewed(&here, &first).await.0;
    tokio::time::sleep(SESSION / 100).await;
    let second = held(&fixture, &here, Mode::Write).await;
    assert!(second.sent > beat);
    assert!(renewed(&here, &second).await.0 >= second.sent);
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_told_by_its_next_renewal_that_its_lock_was_revoked_or_its_node_removed() {
    for is_first in [true, false] {
        for is_revoked in [true, false] {
            let fixture = Fixture::new();
            let (here, there) = (fixture.client().await, fixture.client().await);
            let grant = held(&fixture, &here, Mode::Write).await;
            if !is_first {
                renewed(&here, &grant).await;
            }
            let reason = if is_revoked {
                assert!(there.revoke(&grant.key, grant.id).await.unwrap());
                LossReason::Revoked
            } else {
                let own = format!("{LOCK}/{}", fixture.contenders()[0]);
                fixture.fake.nodes().transaction().remove(&own).unwrap();
                LossReason::Gone
            };
            assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(reason));
        }
    }
}

/// The server has not told of it, and the new node would say nothing of it.
#[tokio::test(start_paused = true)]
async fn a_revocation_is_not_lost_when_a_writer_becomes_a_reader() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let mut grant = held(&fixture, &here, Mode::Write).await;
    renewed(&here, &grant).await;
    fixture.fake.nodes().tell_late();
    assert!(there.revoke(&grant.key, grant.id).await.unwrap());
    grant.mode = Mode::Read;
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Revoked));
}

#[tokio::test(start_paused = true)]
async fn a_writer_becomes_a_reader_also_if_its_node_was_written_to_and_not_revoked() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let mut grant = held(&fixture, &here, Mode::Write).await;
    let own = format!("{LOCK}/{}", fixture.contenders()[0]);
    let content = fixture.fake.nodes().read(&own).unwrap().content;
    fixture.fake.nodes().transaction().write(&own, &content, 0).unwrap();
    grant.mode = Mode::Read;
    renewed(&here, &grant).await;
    let all = fixture.contenders();
    assert!(all.len() == 1 && all[0].starts_with("r-"), "{all:?}");
}

/// Nothing is known to be lost, and the next renewal is in time.
#[tokio::test(start_paused = true)]
async fn a_renewal_whose_heartbeat_fails_is_an_error_and_no_loss() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = held(&fixture, &here, Mode::Write).await;
    fixture.fake.fates.of_next("check", Fate::Refused(Fault::ConnectionLoss));
    assert_eq!(renew(&here, &grant).await.unwrap_err().kind(), ErrorKind::Unavailable);
    renewed(&here, &grant).await;
}

/// The servers have answered not long before, however long the process has run.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_without_an_answer_ends_no_session() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    tokio::time::sleep(SESSION * 2).await;
    let grant = held(&fixture, &here, Mode::Write).await;
    fixture.fake.fates.of_next("check", Fate::Lost);
    // The session sends it by itself, and gives it up in this time.
    tokio::time::sleep(SESSION / 10 + Fixture::options().request_timeout() + SECOND / 10).await;
    assert!(fixture.fake.fates.has_come());
    renewed(&here, &grant).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_behind_a_reader_of_its_own_client_is_shown_and_served_before_those_that_come_later() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = held(&fixture, &here, Mode::Read).await;
    let next = fixture.request(Mode::Write);
    let holding = Holding::new(grant.clone(), next.clone());
    let renewal = here.renew(std::slice::from_ref(&holding)).await.remove(0).unwrap();
    assert!(matches!(renewal, Renewal::Renewed { contended: false, .. }), "{renewal:?}");
    assert_eq!((fixture.contenders().len(), announced(&here)), (2, 1));
    let later = fixture.acquiring(&there, Mode::Read);
    fixture.until_contenders(3).await;
    tokio::time::sleep(SECOND).await;
    assert!(!later.is_finished(), "it comes later than the writer");
    here.release(&grant.key, grant.id, Some(&next)).await.unwrap();
    let writer = here.acquire(&next).await.unwrap().unwrap();
    assert!(!later.is_finished() && announced(&here) == 0);
    here.release(&writer.key, writer.id, None).await.unwrap();
    fixture.granted(later).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gave_up_is_not_shown_any_longer_behind_the_reader_of_its_client() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = held(&fixture, &here, Mode::Read).await;
    let holding = Holding::new(grant.clone(), fixture.request(Mode::Write));
    here.renew(&[holding]).await.remove(0).unwrap();
    let later = fixture.acquiring(&there, Mode::Read);
    fixture.until_contenders(3).await;
    renewed(&here, &grant).await;
    fixture.granted(later).await;
    assert_eq!((fixture.contenders().len(), announced(&here)), (2, 0));
}
