//! The algorithm over servers in memory, in paused time: that it needs nothing but what the traits in `algorithm::store` say.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod fake;
mod fates;
mod leases;
mod nodes;
mod sessions;
mod stage;
mod tokens;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::coop;
use ylock_core::engine::{Engine, LossReason, Patience, Release, Renewal};
use ylock_core::{ErrorKind, Mode};

use self::fates::Fate;
use self::stage::{Stage, renew};

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_idle_costs_one_request_each_way() {
    let stage = Stage::new();
    let here = stage.client().await;
    for is_first in [true, false] {
        stage.fake.sent();
        let request = stage.request(Mode::Write);
        let grant = here.acquire(&request).await.unwrap().unwrap();
        let way_in = stage.fake.sent();
        if !is_first {
            assert_eq!(way_in, ["make_both"]);
        }
        assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
        assert_eq!(stage.fake.sent(), ["remove_both"]);
        assert!(stage.contenders().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_and_is_let_in_when_the_holder_releases() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    let first = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    let waits = stage.acquiring(&there, Mode::Write);
    stage.until_contenders(2).await;
    assert!(!waits.is_finished());
    here.release(&first.key, first.id, None).await.unwrap();
    let second = stage.granted(waits).await;
    assert!(second.token > first.token);
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_a_writer_waits_for_all_of_them() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    let one = here.acquire(&stage.request(Mode::Read)).await.unwrap().unwrap();
    let other = there.acquire(&stage.request(Mode::Read)).await.unwrap().unwrap();
    let third = stage.client().await;
    let writer = stage.acquiring(&third, Mode::Write);
    stage.until_contenders(3).await;
    here.release(&one.key, one.id, None).await.unwrap();
    stage.until_contenders(2).await;
    assert!(!writer.is_finished());
    there.release(&other.key, other.id, None).await.unwrap();
    stage.granted(writer).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_becomes_a_reader_lets_readers_in_and_keeps_its_token() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    let mut grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    let reader = stage.acquiring(&there, Mode::Read);
    stage.until_contenders(2).await;
    grant.mode = Mode::Read;
    assert!(matches!(renew(&here, &grant).await.unwrap(), Renewal::Renewed { .. }));
    stage.granted(reader).await;
    let holders = there.inspect(&grant.key).await.unwrap().holders;
    assert_eq!(holders.len(), 2);
    assert!(holders.iter().any(|holder| holder.token == grant.token.map(Into::into)));
}

#[tokio::test(start_paused = true)]
async fn a_contender_that_only_tries_leaves_nothing() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    let grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    let mut tries = stage.request(Mode::Read);
    tries.patience = Patience::Try;
    assert!(there.acquire(&tries).await.unwrap().is_none());
    assert_eq!(stage.contenders().len(), 1);
    here.release(&grant.key, grant.id, None).await.unwrap();
    assert!(there.acquire(&tries).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_answer_got_lost_is_found_again() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    stage.make_bucket(&here).await;
    stage.fake.fates.of_next("make_both", Fate::Unheard);
    let grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    assert!(stage.fake.fates.has_come() && stage.contenders().len() == 1);
    stage.fake.fates.of_next("join", Fate::Unheard);
    let waits = stage.acquiring(&there, Mode::Write);
    stage.until_contenders(2).await;
    stage.fake.fates.of_next("remove", Fate::Unheard);
    assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    stage.granted(waits).await;
    assert!(stage.fake.fates.has_come() && stage.contenders().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_loses_its_grants() {
    let stage = Stage::new();
    let (here, there) = (stage.client().await, stage.client().await);
    let grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    let waits = stage.acquiring(&there, Mode::Write);
    stage.until_contenders(2).await;
    stage.fake.end(0);
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Gone));
    let next = stage.granted(waits).await;
    assert!(next.token > grant.token);
    let again = stage.acquiring(&here, Mode::Write);
    stage.until_contenders(2).await;
    there.release(&next.key, next.id, None).await.unwrap();
    stage.granted(again).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_by_heartbeats_while_something_is_held_and_by_what_writes_nothing_otherwise() {
    let stage = Stage::new();
    let here = stage.client().await;
    let grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    stage.fake.sent();
    tokio::time::sleep(fake::SESSION / 2).await;
    let beats = stage.fake.sent().iter().filter(|request| **request == "check").count();
    assert!((4..=6).contains(&beats), "{beats}");
    here.release(&grant.key, grant.id, None).await.unwrap();
    stage.fake.sent();
    tokio::time::sleep(fake::SESSION).await;
    let sent = stage.fake.sent();
    assert!(sent.iter().all(|request| matches!(*request, "catch_up" | "count")), "{sent:?}");
    assert!((8..=12).contains(&sent.len()), "{sent:?}");
}

/// See `Claims::send`: between the look at a claim and the sending of a request for it nothing may come.
#[tokio::test(start_paused = true)]
async fn a_request_is_sent_at_once_also_by_a_task_that_has_used_up_its_budget() {
    let stage = Stage::new();
    let here = stage.client().await;
    let grant = here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    stage.fake.sent();
    let mut release = here.release(&grant.key, grant.id, None);
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
    assert!((&mut release).now_or_never().is_none());
    assert_eq!(stage.fake.sent(), ["remove_both"]);
    assert_eq!(release.await.unwrap(), Release::Released);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_goes_when_it_is_closed() {
    let stage = Stage::new();
    let here = stage.client().await;
    here.acquire(&stage.request(Mode::Write)).await.unwrap().unwrap();
    here.close().await.unwrap();
    assert!(stage.contenders().is_empty());
    let error = here.acquire(&stage.request(Mode::Write)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stage.contenders().is_empty());
}
