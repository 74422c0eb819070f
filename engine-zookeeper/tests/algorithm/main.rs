//! The algorithm over servers in memory, in paused time: that it needs nothing but what the traits in `algorithm::store` say.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own")]

mod costs;
mod fake;
mod fates;
mod fixture;
mod leases;
mod nodes;
mod releases;
mod renewals;
mod runs;
mod sessions;
mod tokens;
mod waiters;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::coop;
use ylock_core::engine::{Engine, LossReason, Patience, Release, Renewal};
use ylock_core::{ErrorKind, Mode};
use ylock_engine_zookeeper::algorithm::store::Fault;

use self::fates::Fate;
use self::fixture::{Fixture, renew};

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_idle_costs_one_request_each_way() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    for is_first in [true, false] {
        fixture.fake.sent();
        let request = fixture.request(Mode::Write);
        let grant = here.acquire(&request).await.unwrap().unwrap();
        let way_in = fixture.fake.sent();
        if !is_first {
            assert_eq!(way_in, ["make_both"]);
        }
        assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.sent(), ["remove_both"]);
        assert!(fixture.contenders().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_waits_and_is_let_in_when_the_holder_releases() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let first = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    assert!(!waits.is_finished());
    here.release(&first.key, first.id, None).await.unwrap();
    let second = fixture.granted(waits).await;
    assert!(second.token > first.token);
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_a_writer_waits_for_all_of_them() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let one = here.acquire(&fixture.request(Mode::Read)).await.unwrap().unwrap();
    let other = there.acquire(&fixture.request(Mode::Read)).await.unwrap().unwrap();
    let third = fixture.client().await;
    let writer = fixture.acquiring(&third, Mode::Write);
    fixture.until_contenders(3).await;
    here.release(&one.key, one.id, None).await.unwrap();
    fixture.until_contenders(2).await;
    assert!(!writer.is_finished());
    there.release(&other.key, other.id, None).await.unwrap();
    fixture.granted(writer).await;
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_becomes_a_reader_lets_readers_in_and_keeps_its_token() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let mut grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let reader = fixture.acquiring(&there, Mode::Read);
    fixture.until_contenders(2).await;
    grant.mode = Mode::Read;
    assert!(matches!(renew(&here, &grant).await.unwrap(), Renewal::Renewed { .. }));
    fixture.granted(reader).await;
    let holders = there.inspect(&grant.key).await.unwrap().holders;
    assert_eq!(holders.len(), 2);
    assert!(holders.iter().any(|holder| holder.token == grant.token.map(Into::into)));
}

#[tokio::test(start_paused = true)]
async fn a_contender_that_only_tries_leaves_nothing() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let mut tries = fixture.request(Mode::Read);
    tries.patience = Patience::Try;
    assert!(there.acquire(&tries).await.unwrap().is_none());
    assert_eq!(fixture.contenders().len(), 1);
    here.release(&grant.key, grant.id, None).await.unwrap();
    assert!(there.acquire(&tries).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_answer_got_lost_is_found_again() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    fixture.make_bucket(&here).await;
    fixture.fake.fates.of_next("make_both", Fate::Unheard);
    // A leader that is asked by a `sync` may not show it yet.
    fixture.fake.fates.fall_behind();
    let request = fixture.request(Mode::Write);
    let acquired = tokio::time::timeout(fake::SESSION * 10, here.acquire(&request)).await;
    let grant = acquired.expect("its own node is in its way").unwrap().unwrap();
    assert!(fixture.fake.fates.has_come() && fixture.contenders().len() == 1);
    fixture.fake.fates.of_next("join", Fate::Unheard);
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    fixture.fake.fates.of_next("remove", Fate::Unheard);
    assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    fixture.granted(waits).await;
    assert!(fixture.fake.fates.has_come() && fixture.contenders().len() == 1);
}

/// The holder may have been answered by a server that is ahead of the one that is asked.
#[tokio::test(start_paused = true)]
async fn each_page_of_a_listing_is_asked_for_at_a_server_that_has_caught_up() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let (mut listed, mut after) = (Vec::new(), None::<String>);
    loop {
        fixture.fake.fates.fall_behind();
        let page = there.keys(Some(grant.key.group()), after.as_deref()).await.unwrap();
        listed.extend(page.keys);
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!(listed, [grant.key]);
}

/// As an operator does who has read the holder's id elsewhere.
#[tokio::test(start_paused = true)]
async fn a_grant_is_revoked_also_at_a_server_that_is_behind() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.fates.fall_behind();
    assert!(there.revoke(&grant.key, grant.id).await.unwrap());
    assert!(matches!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Revoked)));
}

/// Resources ask so whose token is the holder's. A server that is behind knows neither the one that has come nor that the one before has left.
#[tokio::test(start_paused = true)]
async fn holders_are_exact_at_servers_that_have_caught_up() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.fates.fall_behind();
    let holders = here.exact_holders(&grant.key).await.unwrap();
    assert_eq!(holders.iter().map(|holder| holder.token).collect::<Vec<_>>(), [grant.token.map(Into::into)]);
}

/// The node that the list has shown is gone, and there is another one at its place.
#[tokio::test(start_paused = true)]
async fn a_writer_that_becomes_a_reader_is_among_the_exact_holders() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.fates.of_next("read", Fate::Refused(Fault::NoNode));
    let holders = here.exact_holders(&grant.key).await.unwrap();
    assert_eq!(holders.iter().map(|holder| holder.token).collect::<Vec<_>>(), [grant.token.map(Into::into)]);
    assert!(fixture.fake.fates.has_come());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_loses_its_grants() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waits = fixture.acquiring(&there, Mode::Write);
    fixture.until_contenders(2).await;
    fixture.fake.end(0);
    assert_eq!(renew(&here, &grant).await.unwrap(), Renewal::Lost(LossReason::Gone));
    let next = fixture.granted(waits).await;
    assert!(next.token > grant.token);
    let again = fixture.acquiring(&here, Mode::Write);
    fixture.until_contenders(2).await;
    there.release(&next.key, next.id, None).await.unwrap();
    fixture.granted(again).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_by_heartbeats_while_something_is_held_and_by_what_writes_nothing_otherwise() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.sent();
    tokio::time::sleep(fake::SESSION / 2).await;
    let beats = fixture.fake.sent().iter().filter(|request| **request == "check").count();
    assert!((4..=6).contains(&beats), "{beats}");
    here.release(&grant.key, grant.id, None).await.unwrap();
    fixture.fake.sent();
    tokio::time::sleep(fake::SESSION).await;
    let sent = fixture.fake.sent();
    assert!(sent.iter().all(|request| matches!(*request, "sync" | "count")), "{sent:?}");
    assert!((8..=12).contains(&sent.len()), "{sent:?}");
}

/// See `Claims::send`: between the look at a claim and the sending of a request for it nothing may come.
#[tokio::test(start_paused = true)]
async fn a_request_is_sent_at_once_also_by_a_task_that_has_used_up_its_budget() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.sent();
    let mut release = here.release(&grant.key, grant.id, None);
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
    assert!((&mut release).now_or_never().is_none());
    assert_eq!(fixture.fake.sent(), ["remove_both"]);
    assert_eq!(release.await.unwrap(), Release::Released);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_goes_when_it_is_closed() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    here.close().await.unwrap();
    assert!(fixture.contenders().is_empty());
    let error = here.acquire(&fixture.request(Mode::Write)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fixture.contenders().is_empty());
}
