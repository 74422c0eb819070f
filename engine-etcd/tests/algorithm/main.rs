//! The algorithm over servers in memory, where the test decides what becomes of each request, on a clock that it moves.
#![allow(clippy::disallowed_methods, reason = "a test starts tasks of its own")]

mod fake;
mod giving_way;
mod leases;

use std::sync::Arc;
use std::time::Duration;

use fake::{Fake, Fate, Servers};
use futures_util::future::join_all;
use tokio::task::JoinHandle;
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, LossReason, Patience, Release, Renewal, Request,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::url::Host;
use ylock_core::{ClientName, ErrorKind, Fairness, Key, Mode, Owner};
use ylock_engine_etcd::{EtcdEngine, EtcdOptions};

const LEASE: Duration = Duration::from_secs(10);
const LOCK: &str = "/k/users/alice/";

struct Fixture {
    environment: Arc<dyn Environment>,
    fake: Arc<Fake>,
}

impl Fixture {
    fn new() -> Self {
        let environment = SystemEnvironment::on_tokio_clock();
        Self { fake: Fake::new(&environment), environment }
    }

    fn client(&self) -> Arc<EtcdEngine> {
        let options = EtcdOptions::new([Host::new("in-memory", None)]).with_lease(LEASE);
        let servers = Arc::new(Servers(Arc::clone(&self.fake)));
        Arc::new(EtcdEngine::over(servers, Arc::clone(&self.environment), &options))
    }

    fn request(&self, mode: Mode) -> Request {
        let (key, id) = (Key::new("users", "alice").unwrap(), AcquisitionId::new(&*self.environment));
        Request::new(key, id, mode, Owner::new(), ClientName::default(), LEASE)
    }

    fn acquiring(&self, engine: &Arc<EtcdEngine>, request: &Request) -> JoinHandle<Option<Grant>> {
        let (engine, request) = (Arc::clone(engine), request.clone());
        tokio::spawn(async move { engine.acquire(&request).await.unwrap() })
    }

    async fn queue_up(&self, engine: &Arc<EtcdEngine>, mode: Mode) -> JoinHandle<Option<Grant>> {
        let before = self.fake.keys(LOCK).len();
        let waiting = self.acquiring(engine, &self.request(mode));
        self.until("it is in the queue", || self.fake.keys(LOCK).len() > before).await;
        waiting
    }

    /// Waits until the client has asked this by itself, and for what it asks then.
    async fn until_asked(&self, word: &str) {
        while !self.fake.asked().contains(&word) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Waits without letting time pass for more than a moment.
    async fn until(&self, what: &str, condition: impl Fn() -> bool) {
        for _ in 0..1_000 {
            if condition() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("not within a second: {what}");
    }
}

async fn granted(waiting: JoinHandle<Option<Grant>>) -> Grant {
    tokio::time::timeout(LEASE * 3, waiting).await.expect("it is let in").unwrap().expect("granted")
}

/// Acquires so many locks, each of another user.
async fn many(fixture: &Fixture, engine: &Arc<EtcdEngine>, count: usize) -> Vec<Grant> {
    let mut grants = Vec::new();
    for number in 0..count {
        let mut request = fixture.request(Mode::Write);
        request.key = Key::new("users", format!("user {number}")).unwrap();
        grants.push(engine.acquire(&request).await.unwrap().unwrap());
    }
    grants
}

async fn renews(engine: &EtcdEngine, grant: &Grant) -> Renewal {
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_free_lock_is_one_request_and_giving_it_back_another_one() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let first = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    engine.release(&first.key, first.id, None).await.unwrap();
    fixture.fake.asked();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert_eq!(fixture.fake.asked(), ["put", "transaction"]);
    assert!(grant.token > first.token && fixture.fake.keys(LOCK).is_empty());
}

/// The second request used to put the key once more, and the revision of that was taken for the place: nothing was deleted at it.
#[tokio::test(start_paused = true)]
async fn a_reader_that_tries_again_because_an_answer_was_lost_leaves_nothing() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let request = fixture.request(Mode::Read).with_patience(Patience::Try);
    fixture.fake.next_is(Fate::AnswerLost);
    let grant = engine.acquire(&request).await.unwrap().expect("the lock is free");
    assert!(matches!(renews(&engine, &grant).await, Renewal::Renewed { .. }));
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert_eq!(fixture.fake.keys(LOCK), [""; 0]);
}

/// The client that was there before used to put its floor back before it noticed that all was gone: with revisions that begin again.
#[tokio::test(start_paused = true)]
async fn tokens_grow_also_when_a_cluster_is_set_up_anew_under_the_same_id_while_a_client_runs() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    for _ in 0..500 {
        let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
        engine.release(&grant.key, grant.id, None).await.unwrap();
    }
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.set_up_anew();
    fixture.fake.asked();
    fixture.until_asked("grant").await;
    let next = fixture.client().acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert!(next.token > grant.token, "{:?} after {:?}", next.token, grant.token);
    assert!(matches!(renews(&engine, &grant).await, Renewal::Lost(_)));
}

/// A leader that stood still for longer than a lease, was replaced meanwhile, and goes on, ends what it takes for expired: its successor carries that out,
/// whoever has prolonged it there. The next contender used to enter at once, and the holder heard of it with its next renewal.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_deposed_ends_no_lease_that_a_key_is_in() {
    let fixture = Fixture::new();
    let [one, two] = [fixture.client(), fixture.client()];
    let mut held = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waiting = fixture.queue_up(&two, Mode::Write).await;
    for _ in 0..20 {
        tokio::time::sleep(LEASE / 5).await;
        fixture.fake.end_as_a_deposed_leader();
        assert!(!waiting.is_finished(), "two hold the lock");
        match renews(&one, &held).await {
            Renewal::Renewed { sent, .. } => held.sent = sent,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.fake.keys(LOCK).len(), 2, "both keep their places");
    one.release(&held.key, held.id, None).await.unwrap();
    granted(waiting).await;
}

/// A request that was to put the key under a younger lease, and arrives late, must not take it back to that one.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_arrives_late_takes_the_key_to_no_older_lease() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::sleep(LEASE / 3).await;
    fixture.fake.next_is(Fate::Late);
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap_err();
    tokio::time::sleep(LEASE / 3).await;
    assert!(matches!(renews(&engine, &grant).await, Renewal::Renewed { .. }));
    let lease = fixture.fake.lease_of(&fixture.fake.keys(LOCK)[0]);
    assert_eq!(fixture.fake.deliver(), [false]);
    assert_eq!(fixture.fake.lease_of(&fixture.fake.keys(LOCK)[0]), lease);
}

/// What was not answered may have been carried out: the next renewal finds the key changed by its own client.
#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_was_lost_is_made_up_for_by_the_next_one() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::sleep(LEASE / 3).await;
    fixture.fake.next_is(Fate::AnswerLost);
    engine.renew(&[Holding::new(grant.clone(), None)]).await.remove(0).unwrap_err();
    tokio::time::sleep(LEASE / 4).await;
    let Renewal::Renewed { sent, .. } = renews(&engine, &grant).await else { panic!("lost") };
    assert!(sent.since(grant.sent) > LEASE / 3);
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert!(fixture.fake.keys(LOCK).is_empty());
}

/// A client that comes later has the same key as the one before. A renewal of the one before must not take that for its own.
#[tokio::test(start_paused = true)]
async fn a_key_that_another_contender_of_the_same_client_has_now_renews_no_grant() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let key = fixture.fake.keys(LOCK).remove(0);
    fixture.fake.make_again(&key);
    assert_eq!(renews(&engine, &grant).await, Renewal::Lost(LossReason::Gone));
    tokio::time::sleep(LEASE / 3).await;
    assert_eq!(renews(&engine, &grant).await, Renewal::Lost(LossReason::Gone));
}

/// The servers count a lease from when they carry out the request, and that may be long before its answer arrives.
#[tokio::test(start_paused = true)]
async fn a_lease_counts_from_before_the_request_and_not_from_its_answer() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let takes = Duration::from_millis(700);
    let before = fixture.environment.now();
    fixture.fake.next_lease_is_answered_after(takes);
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert!(fixture.environment.now().since(before) >= takes);
    assert!(grant.sent <= before, "it counts from {:?} later", grant.sent.since(before));
    tokio::time::sleep(LEASE / 2).await;
    let before = fixture.environment.now();
    fixture.fake.next_lease_is_answered_after(takes);
    let Renewal::Renewed { sent, .. } = renews(&engine, &grant).await else { panic!("lost") };
    assert!(fixture.environment.now().since(before) >= takes);
    assert!(sent <= before, "it counts from {:?} later", sent.since(before));
}

/// What a holder may rely on is over before the servers end the lease of its key.
#[tokio::test(start_paused = true)]
async fn the_lease_of_the_servers_is_longer_than_that_of_the_lock() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let times = fixture.fake.lease_times();
    assert!(times.len() == 1 && times[0] > LEASE, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_answer_was_lost_is_found_again_and_not_made_twice() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    fixture.fake.next_is(Fate::AnswerLost);
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(fixture.fake.keys(LOCK).len(), 1);
    // A copy may still be on its way, for all that the client knows.
    assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
    assert!(fixture.fake.keys(LOCK).is_empty());
    assert_eq!(fixture.fake.keys("/x/").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_everything_was_undone_makes_nothing() {
    for patience in [Patience::Queue, Patience::Try] {
        let fixture = Fixture::new();
        let engine = fixture.client();
        fixture.fake.next_is(Fate::Late);
        let request = fixture.request(Mode::Write).with_patience(patience);
        let grant = engine.acquire(&request).await.unwrap().unwrap();
        assert_eq!(engine.release(&grant.key, grant.id, None).await.unwrap(), Release::Released);
        assert_eq!(fixture.fake.deliver(), [false], "{patience:?}");
        assert!(fixture.fake.keys(LOCK).is_empty());
    }
}

/// A client uses the same key again, so that the servers do not keep something of thousands of them.
#[tokio::test(start_paused = true)]
async fn a_release_that_arrives_late_deletes_nothing_of_the_next_acquisition() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let first = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let key = fixture.fake.keys(LOCK);
    fixture.fake.next_is(Fate::Late);
    engine.release(&first.key, first.id, None).await.unwrap_err();
    assert_eq!(engine.release(&first.key, first.id, None).await.unwrap(), Release::Released);
    let second = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(fixture.fake.keys(LOCK), key);
    assert_eq!(fixture.fake.deliver(), [false]);
    assert_eq!(fixture.fake.keys(LOCK), key);
    assert!(matches!(renews(&engine, &second).await, Renewal::Renewed { .. }));
}

/// What undoes the next one, or its key, or the place of what is deleted, forbids the late release as a whole.
#[tokio::test(start_paused = true)]
async fn a_hand_on_that_arrives_late_deletes_nothing_of_the_next_acquisition() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let first = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let (key, next) = (fixture.fake.keys(LOCK), fixture.request(Mode::Write));
    fixture.fake.next_is(Fate::Late);
    engine.release(&first.key, first.id, Some(&next)).await.unwrap_err();
    assert_eq!(engine.release(&first.key, first.id, None).await.unwrap(), Release::Released);
    engine.release(&first.key, next.id, None).await.unwrap();
    let second = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(fixture.fake.keys(LOCK), key, "it has the same key");
    assert_eq!(fixture.fake.deliver(), [false]);
    assert_eq!(fixture.fake.keys(LOCK), key);
    assert!(matches!(renews(&engine, &second).await, Renewal::Renewed { .. }));
}

/// The mark goes with the lease, and a late request under that lease can do nothing from then on.
#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_the_lease_has_ended_makes_nothing() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    fixture.fake.next_is(Fate::Late);
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    engine.release(&grant.key, grant.id, None).await.unwrap();
    engine.close().await.unwrap();
    assert_eq!(fixture.fake.deliver(), [false]);
    assert!(fixture.fake.keys("/x/").is_empty() && fixture.fake.keys(LOCK).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hand_on_whose_answer_was_lost_is_found_again() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let next = fixture.request(Mode::Write);
    fixture.fake.next_is(Fate::AnswerLost);
    engine.release(&grant.key, grant.id, Some(&next)).await.unwrap_err();
    engine.release(&grant.key, grant.id, Some(&next)).await.unwrap();
    let second = engine.acquire(&next).await.unwrap().unwrap();
    assert!(second.token > grant.token);
    assert_eq!(fixture.fake.keys(LOCK).len(), 1);
}

/// A client whose lease ends sees every contender of its own leave, and those of others whose leases end as well.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_own_lease_has_ended_does_not_enter_by_what_it_has_seen() {
    let fixture = Fixture::new();
    let clients: Vec<_> = (0..5).map(|_| fixture.client()).collect();
    let held = clients[0].acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let mut waiting = Vec::new();
    for client in &clients[1..] {
        waiting.push(fixture.queue_up(client, Mode::Write).await);
    }
    fixture.fake.end_leases();
    for turn in 1..clients.len() {
        let seen = fixture.fake.keys(LOCK).len();
        fixture.until("one is inside", || waiting.iter().any(JoinHandle::is_finished)).await;
        let inside: Vec<_> = waiting.iter().filter(|task| task.is_finished()).collect();
        assert_eq!(inside.len(), 1, "turn {turn}, {seen} in the queue");
        let at = waiting.iter().position(JoinHandle::is_finished).unwrap();
        let grant = granted(waiting.remove(at)).await;
        assert!(grant.token > held.token);
        for engine in &clients {
            engine.release(&grant.key, grant.id, None).await.unwrap();
        }
    }
}

/// A client uses its keys again, and a watch begins with what its member has carried out, which may be behind what the look beside it shows.
#[tokio::test(start_paused = true)]
async fn a_deletion_from_before_the_key_was_made_again_lets_nobody_in() {
    let fixture = Fixture::new();
    let [one, two] = [fixture.client(), fixture.client()];
    let first = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let key = fixture.fake.keys(LOCK).remove(0);
    one.release(&first.key, first.id, None).await.unwrap();
    let deleted = fixture.fake.revision();
    let held = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    assert_eq!(fixture.fake.keys(LOCK), [key.as_str()], "the same key again");
    let waiting = fixture.queue_up(&two, Mode::Write).await;
    for _ in 0..3 {
        fixture.until_asked("watch").await;
        fixture.fake.tell_of_deletion(&key, deleted);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished(), "two hold the lock");
    }
    one.release(&held.key, held.id, None).await.unwrap();
    assert!(granted(waiting).await.token > held.token);
}

#[tokio::test(start_paused = true)]
async fn a_lease_and_a_key_that_are_gone_are_a_loss() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let key = fixture.fake.keys(LOCK).remove(0);
    fixture.fake.delete(&key);
    assert_eq!(renews(&engine, &grant).await, Renewal::Lost(LossReason::Gone));
    engine.release(&grant.key, grant.id, None).await.unwrap();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    fixture.fake.end_leases();
    assert_eq!(renews(&engine, &grant).await, Renewal::Lost(LossReason::Gone));
    engine.release(&grant.key, grant.id, None).await.unwrap();
    assert!(engine.acquire(&fixture.request(Mode::Write)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_used_is_given_up_and_another_one_made() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    engine.release(&grant.key, grant.id, None).await.unwrap();
    tokio::time::sleep(LEASE * 4).await;
    assert!(fixture.fake.asked().contains(&"revoke"));
    tokio::time::sleep(LEASE * 4).await;
    assert!(fixture.fake.asked().is_empty(), "a client that does nothing asks nothing");
    assert!(engine.acquire(&fixture.request(Mode::Write)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn waiters_that_do_not_run_lose_their_places_and_those_that_do_keep_them() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.client(), fixture.client());
    let held = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let gone = fixture.queue_up(&two, Mode::Write).await;
    gone.abort();
    let waiting = fixture.queue_up(&two, Mode::Read).await;
    for _ in 0..8 {
        tokio::time::sleep(LEASE / 4).await;
        assert!(matches!(renews(&one, &held).await, Renewal::Renewed { .. }));
    }
    assert_eq!(fixture.fake.keys(LOCK).len(), 2, "{:?}", fixture.fake.keys(LOCK));
    one.release(&held.key, held.id, None).await.unwrap();
    granted(waiting).await;
}

/// A reader is told of each change of the key that it waits for. It used to begin its pause anew with each, and lost its place when its lease ended.
#[tokio::test(start_paused = true)]
async fn a_waiting_reader_keeps_its_place_however_often_it_is_told_of_something() {
    let fixture = Fixture::new();
    let [one, two, three] = [fixture.client(), fixture.client(), fixture.client()];
    let held = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let reader = fixture.queue_up(&two, Mode::Read).await;
    let writer = fixture.queue_up(&three, Mode::Write).await;
    for _ in 0..24 {
        tokio::time::sleep(LEASE / 8).await;
        assert!(matches!(renews(&one, &held).await, Renewal::Renewed { .. }));
    }
    one.release(&held.key, held.id, None).await.unwrap();
    granted(reader).await;
    assert!(!writer.is_finished(), "it came later");
    writer.abort();
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_writers_that_still_are_writers() {
    let fixture = Fixture::new();
    let [one, two, three] = [fixture.client(), fixture.client(), fixture.client()];
    let written = one.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    let waiting = fixture.queue_up(&two, Mode::Read).await;
    let trying = fixture.request(Mode::Read).with_patience(Patience::Try);
    assert!(three.acquire(&trying).await.unwrap().is_none());
    assert!(matches!(renews(&one, &written.with_mode(Mode::Read)).await, Renewal::Renewed { .. }));
    granted(waiting).await;
    let trying = fixture.request(Mode::Read).with_patience(Patience::Try);
    assert!(three.acquire(&trying).await.unwrap().is_some(), "the writer reads now");
}

/// More of them than a page has are no reason to end a listing.
#[tokio::test(start_paused = true)]
async fn what_other_programs_have_put_between_the_locks_is_passed_over_page_by_page() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    for number in 0..1_500 {
        // Before the lock and after it.
        fixture.fake.put(&format!("ylock/k/odd-{number}"));
        fixture.fake.put(&format!("ylock/k/zzz-{number}"));
    }
    let (mut after, mut all, mut pages) = (None::<String>, Vec::new(), 0);
    loop {
        let page = engine.keys(None, after.as_deref()).await.unwrap();
        (after, pages) = (page.next, pages + 1);
        all.extend(page.keys);
        assert!(pages < 20, "the listing does not end");
        if after.is_none() {
            break;
        }
    }
    assert_eq!((all, pages), (vec![grant.key], 8));
}

/// A hundred thousand locks would want a lease each.
#[tokio::test(start_paused = true)]
async fn renewals_that_are_due_at_once_share_a_lease() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grants = many(&fixture, &engine, 50).await;
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    fixture.fake.asked();
    fixture.fake.next_lease_is_answered_after(Duration::from_millis(20));
    let before = fixture.environment.now();
    for renewed in join_all(grants.iter().map(|grant| renews(&engine, grant))).await {
        assert!(matches!(renewed, Renewal::Renewed { sent, .. } if sent >= before), "{renewed:?}");
    }
    let asked = fixture.fake.asked();
    let count = |word: &str| asked.iter().filter(|asked| **asked == word).count();
    assert_eq!((count("grant"), count("put")), (1, 50), "{asked:?}");
}

/// It may be in the hands of a runtime that is not driven any more: the renewals of other runtimes have no more time than for a request.
#[tokio::test(start_paused = true)]
async fn a_lease_that_does_not_come_back_keeps_no_renewal_waiting_for_long() {
    let fixture = Fixture::new();
    let engine = fixture.client();
    let grant = engine.acquire(&fixture.request(Mode::Write)).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    fixture.fake.next_lease_is_answered_after(LEASE * 10);
    let before = fixture.environment.now();
    let Renewal::Renewed { .. } = renews(&engine, &grant).await else { panic!("lost") };
    // A request takes a fifth of the lease at most.
    assert!(fixture.environment.now().since(before) <= LEASE / 5);
}
