//! What a release says, and what it leaves.

use std::io;
use std::time::Duration;

use ylock_core::engine::{Engine, Release};
use ylock_core::{ErrorKind, Mode};
use ylock_engine_zookeeper::algorithm::store::{Cause, Fault};

use crate::fates::Fate;
use crate::fixture::{Fixture, LOCK};

#[tokio::test(start_paused = true)]
async fn a_release_of_what_is_not_there_says_so_and_leaves_nothing_to_be_looked_after() {
    let fixture = Fixture::new();
    let (here, request) = (fixture.client().await, fixture.request(Mode::Write));
    fixture.make_bucket(&here).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.fake.sent();
    assert_eq!(here.release(&request.key, request.id, None).await.unwrap(), Release::WasGone);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sent = fixture.fake.sent();
    assert!(!sent.contains(&"count"), "it looks whether the lock's node is empty: {sent:?}");
}

/// The first attempt has removed it.
#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_got_lost_says_released_also_of_what_an_earlier_session_has_left() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.give_up(0);
    fixture.fake.fates.of_next("remove", Fate::Unheard);
    assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert!(fixture.fake.fates.has_come() && fixture.contenders().is_empty());
}

/// It would try for ever. The client's background work goes on.
#[tokio::test(start_paused = true)]
async fn a_release_that_the_login_does_not_allow_fails_at_once() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let refused = Fault::NotAllowed(Cause::new(io::Error::other("not authorized")));
    fixture.fake.fates.of_next("remove_both", Fate::Refused(refused));
    let error = here.release(&grant.key, grant.id, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    fixture.until_contenders(0).await;
}

/// The servers would remove it much later.
#[tokio::test(start_paused = true)]
async fn an_empty_lock_is_removed_also_by_a_contender_that_did_not_get_into_it() {
    let fixture = Fixture::new();
    let (here, there) = (fixture.client().await, fixture.client().await);
    here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    // No client is left that would remove the lock's node.
    fixture.fake.end(0);
    assert!(fixture.contenders().is_empty() && fixture.fake.nodes().has(LOCK));
    fixture.fake.fates.of_next("join", Fate::Lost);
    let request = fixture.request(Mode::Write);
    assert!(tokio::time::timeout(Duration::from_secs(1), there.acquire(&request)).await.is_err());
    assert!(fixture.fake.fates.has_come());
    there.release(&request.key, request.id, None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!fixture.fake.nodes().has(LOCK));
}

#[tokio::test(start_paused = true)]
async fn an_empty_lock_is_removed_also_where_another_program_has_removed_the_contender() {
    let fixture = Fixture::new();
    let here = fixture.client().await;
    let grant = here.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let contender = format!("{LOCK}/{}", fixture.contenders()[0]);
    fixture.fake.nodes().remove(&contender).unwrap();
    assert_eq!(here.release(&grant.key, grant.id, None).await.unwrap(), Release::WasGone);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!fixture.fake.nodes().has(LOCK));
}
