//! The election of a leader, which stands on the write lock of its name.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use ylock_core::{Election, ErrorKind, Leader, Leaders, Leadership, LossReason, Mode, Result, Unlocked};

use crate::patient::is_silence;
use crate::{Client, Fixture, eventually, within};

/// The pace of observers in these cases.
const PACE: Duration = Duration::from_millis(10);

/// The election on the lock of the fixture.
fn election(client: &Client) -> Election {
    client.lock.election().with_pace(PACE)
}

/// A candidate in a task of its own, which the queue of the store shows.
async fn candidate(client: &Client, waits: usize) -> JoinHandle<Result<Leadership>> {
    let campaign = election(client);
    let task = tokio::spawn(async move { campaign.campaign().await });
    let key = client.key();
    let is_shown =
        || async { client.look_when_stored(key.name()).await.is_some_and(|seen| seen.queue.len() >= waits) };
    eventually(client.fixture().soon(), "the queue shows the candidate", is_shown).await;
    task
}

async fn leads(client: &Client, task: JoinHandle<Result<Leadership>>) -> Leadership {
    within(client.fixture().lapse(), "the candidate leads", task).await.unwrap().unwrap()
}

/// One candidate leads and is shown; the next one leads as soon as it has resigned.
pub async fn one_leads_and_the_next_follows_when_it_resigns(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    assert!(election(&there).leader().await.unwrap().is_none(), "there is no leader");
    let first = within(fixture.soon(), "the only candidate leads", election(&here).campaign()).await.unwrap();
    let shown = election(&there).leader().await.unwrap().expect("there is a leader");
    assert_eq!((shown.owner(), shown.term()), (first.owner(), first.term()));
    assert_eq!(shown.client(), &here.name());
    let waiting = candidate(&there, 1).await;
    fixture.work().await;
    assert!(!waiting.is_finished() && first.is_leader(), "two lead");
    assert_eq!(first.resign().await.unwrap(), Unlocked::Released);
    let second = within(fixture.soon(), "the next one leads", waiting).await.unwrap().unwrap();
    let shown = election(&here).leader().await.unwrap().expect("there is a leader");
    assert_eq!(shown.owner(), second.owner());
    drop(second);
    let no_leader = || async { election(&here).leader().await.unwrap().is_none() };
    eventually(fixture.soon(), "a lead that is dropped ends", no_leader).await;
}

/// Candidates of several clients lead in the order in which they came.
pub async fn candidates_lead_in_the_order_in_which_they_came(fixture: Fixture) {
    let clients = fixture.clients(4).await;
    let mut leads_now = election(&clients[0]).campaign().await.unwrap();
    let mut waiting = Vec::new();
    for (before, client) in clients[1..].iter().enumerate() {
        waiting.push(candidate(client, before + 1).await);
    }
    let mut waiting = waiting.into_iter();
    while let Some(next) = waiting.next() {
        assert_eq!(leads_now.resign().await.unwrap(), Unlocked::Released);
        leads_now = within(fixture.soon(), "the next in line leads", next).await.unwrap().unwrap();
        assert!(waiting.as_slice().iter().all(|later| !later.is_finished()), "a later candidate leads");
    }
    drop(leads_now);
}

/// Each leader has a larger term than the one before it, whichever client it is of, and however the one before ended.
pub async fn terms_grow_from_leader_to_leader(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.short_lived().await);
    let mut last = None;
    for turn in 0..6 {
        let client = if turn % 2 == 0 { &here } else { &there };
        let leadership = within(fixture.lapse(), "it leads", election(client).campaign()).await.unwrap();
        assert!(leadership.term().is_some() && leadership.term() > last, "{last:?}, then {leadership:?}");
        last = leadership.term();
        match turn % 3 {
            0 => drop(leadership.resign().await.unwrap()),
            1 => drop(leadership),
            _ => drop(client.take_away().await),
        }
    }
}

/// A leader whose process died is followed when its lease is over, and not before.
pub async fn a_leader_that_died_is_followed_after_its_lease(fixture: Fixture) {
    let (dying, other) = (fixture.short_lived().await, fixture.client().await);
    let leadership = election(&dying).campaign().await.unwrap();
    let waiting = candidate(&other, 1).await;
    dying.crash().await;
    let next = leads(&other, waiting).await;
    assert!(!leadership.is_leader(), "two lead");
    assert!(next.is_leader());
}

/// A leader that is no longer one is told, for good, and before the next one leads.
pub async fn a_leader_that_lost_the_lead_is_told_before_another_leads(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let old = election(&here).campaign().await.unwrap();
    let waiting = candidate(&there, 1).await;
    assert_eq!(there.take_away().await, 1);
    let next = leads(&there, waiting).await;
    assert!(!old.is_leader(), "two lead");
    assert_eq!(within(fixture.soon(), "it is told", old.lost()).await, LossReason::Revoked);
    assert_eq!(old.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(old.resign().await.unwrap(), Unlocked::WasLost);
    fixture.work().await;
    assert!(next.is_leader(), "a leader that had lost the lead took it away from the next by resigning");
}

/// Returns what an observer is told next, but for what a busy machine has not answered in time.
async fn told(leaders: &mut Leaders) -> Option<Leader> {
    loop {
        match leaders.next().await {
            Err(error) if is_silence(&error) => {}
            told => return told.unwrap(),
        }
    }
}

/// An observer is told that there is no leader, who leads, and of each change, but of nothing twice.
pub async fn those_who_observe_are_told_of_each_leader(fixture: Fixture) {
    let (observer, here, there) =
        (fixture.client().await, fixture.short_lived().await, fixture.short_lived().await);
    let mut leaders = election(&observer).observe();
    let soon = fixture.lapse();
    assert!(within(soon, "at first", told(&mut leaders)).await.is_none());
    for client in [&here, &there, &here] {
        let leadership = within(soon, "the only candidate leads", election(client).campaign()).await.unwrap();
        let shown = within(soon, "a leader is shown", told(&mut leaders)).await.expect("there is a leader");
        assert_eq!((shown.owner(), shown.term()), (leadership.owner(), leadership.term()));
        // Long enough for many looks and some renewals, which are no change.
        let again = tokio::time::timeout(fixture.lease().max(PACE * 5), told(&mut leaders)).await;
        assert!(again.is_err(), "told again: {again:?}");
        assert_eq!(leadership.resign().await.unwrap(), Unlocked::Released);
        assert!(within(soon, "no leader is shown", told(&mut leaders)).await.is_none());
    }
}

/// One who observes in a `select!` loses no change by it, and its pauses do not begin anew with each call.
pub async fn an_observer_that_is_dropped_between_two_looks_misses_nothing(fixture: Fixture) {
    let (observer, here) = (fixture.client().await, fixture.short_lived().await);
    let patience = fixture.harness().trip();
    // Longer than any one call lasts: who began its pause anew would never look again.
    let mut leaders = observer.lock.election().with_pace(patience * 3).observe();
    let mut next = async || loop {
        if let Ok(told) = tokio::time::timeout(patience, leaders.next()).await {
            return told.unwrap();
        }
    };
    assert!(within(fixture.lapse(), "at first", next()).await.is_none());
    let leadership = election(&here).campaign().await.unwrap();
    let told = within(fixture.lapse(), "it is told", next()).await.expect("there is a leader");
    assert_eq!(told.owner(), leadership.owner());
}

/// The work of a leader is dropped when the lead is lost, and one that comes to its end resigns.
pub async fn the_work_of_a_leader_is_stopped_when_the_lead_is_lost(fixture: Fixture) {
    struct Stopped(Arc<AtomicBool>);
    impl Drop for Stopped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let stopped = Arc::new(AtomicBool::new(false));
    let (working, campaign) = (Stopped(Arc::clone(&stopped)), election(&here));
    let (begun, has_begun) = oneshot::channel();
    let work = tokio::spawn(async move {
        let work = |_| async move {
            let _working = working;
            begun.send(()).unwrap();
            pending::<()>().await;
        };
        campaign.campaign().run(work).await
    });
    // One that is about to lead may be shown as the leader, and only one that leads gives up.
    within(fixture.lapse(), "it leads", has_begun).await.unwrap();
    let taken = || async { there.take_away().await > 0 };
    eventually(fixture.soon(), "the lead is taken away", taken).await;
    let error = within(fixture.lapse(), "the work is stopped", work).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(stopped.load(Ordering::SeqCst), "the work's future was dropped");
    let term = async |lease: ylock_core::Lease| lease.token();
    let done = within(fixture.lapse(), "it leads again", election(&here).campaign().run(term)).await;
    assert_eq!(done.unwrap().is_some(), fixture.harness().guarantees().fencing);
    assert!(there.try_acquire(Mode::Write).await.is_some(), "work that has ended has resigned");
}

/// A candidate that stops waiting keeps no other one from leading.
pub async fn a_candidate_that_gives_up_leaves_nothing(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let leadership = election(&here).campaign().await.unwrap();
    let gives_up = candidate(&there, 1).await;
    gives_up.abort();
    drop(gives_up.await);
    assert_eq!(leadership.resign().await.unwrap(), Unlocked::Released);
    let next = within(fixture.soon(), "another one leads", election(&here).campaign()).await.unwrap();
    drop(next);
}
