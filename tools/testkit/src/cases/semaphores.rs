//! Semaphores: never more holders than permits, in the order in which they came.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use ylock_core::engine::Inspection;
use ylock_core::{
    ErrorKind, Fairness, LossReason, Options, Owner, Permit, Result, Semaphore, Unlocked, Ylock,
};

use super::listing::next;
use crate::patient::answered;
use crate::{Client, Fixture, eventually, poll_times, within};

/// More polls than any call needs.
const ENOUGH: usize = 200;
const NAME: &str = "render";

fn semaphore(client: &Client, permits: u32) -> Semaphore {
    client.locks(client.fixture().group()).semaphore(NAME, permits)
}

/// Acquires a permit that must be free.
async fn acquire(client: &Client, permits: u32) -> Permit {
    let acquired = semaphore(client, permits).acquire();
    within(client.fixture().soon(), "a permit that is free is granted", acquired).await.expect("a permit")
}

async fn is_free(client: &Client, permits: u32) -> bool {
    let semaphore = semaphore(client, permits);
    let tried = answered(|| semaphore.acquire().now());
    within(client.fixture().soon(), "a try is answered", tried).await.unwrap().is_some()
}

/// Returns how many clients hold or wait for the lock of this name.
async fn contenders(client: &Client, name: &str) -> usize {
    count(&answered(|| client.inspect(client.fixture().group(), name)).await.unwrap())
}

fn count(seen: &Inspection) -> usize {
    seen.holders.len() + seen.queue.len()
}

/// Waits until nothing of the semaphore is left in the store.
async fn becomes_free(client: &Client, permits: u32) {
    let each = (1..=permits).map(|number| format!("{NAME} \u{203a} permit {number}"));
    for name in each.chain([format!("{NAME} \u{203a} semaphore"), turnstile()]) {
        let free = || async { contenders(client, &name).await == 0 };
        eventually(client.fixture().lapse(), "it has no holders and no waiters", free).await;
    }
}

fn turnstile() -> String {
    format!("{NAME} \u{203a} turnstile")
}

/// As many hold a permit as there are, whichever clients they belong to, each another one; and no more.
pub async fn there_are_as_many_holders_as_permits(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let mut held = vec![acquire(&here, 3).await, acquire(&there, 3).await, acquire(&here, 3).await];
    let mut numbers: Vec<_> = held.iter().map(|permit| permit.number()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    for permit in &held {
        assert!(permit.is_valid() && permit.check().is_ok() && permit.loss().is_none());
        assert!(!permit.remaining().is_zero() && permit.remaining() <= fixture.long_lease());
        assert_eq!((permit.key().group(), permit.key().name()), (&*fixture.group(), NAME));
        assert_eq!(permit.token().is_some(), fixture.harness().guarantees().fencing);
    }
    assert!(!is_free(&here, 3).await && !is_free(&there, 3).await, "all are held");
    assert_eq!(held.remove(1).unlock().await.unwrap(), Unlocked::Released);
    assert!(is_free(&here, 3).await, "one was given back");
    drop(held);
    becomes_free(&there, 3).await;
}

/// Each call takes another permit, also in the scope of one owner.
pub async fn a_permit_is_not_reentered(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = Owner::new().scope(async { [acquire(&here, 2).await, acquire(&here, 2).await] }).await;
    assert_ne!(held[0].number(), held[1].number());
    assert!(!is_free(&there, 2).await && !is_free(&here, 2).await);
}

/// Many tasks of many clients: never more inside than permits, and now and then as many.
pub async fn never_more_are_inside_than_permits(fixture: Fixture) {
    const PERMITS: usize = 3;
    let clients = fixture.clients(4).await;
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let rounds = (fixture.harness().rounds() / 50).max(2);
    let tasks = clients.iter().flat_map(|client| [client, client]).map(|client| {
        let semaphore = semaphore(client, PERMITS as u32);
        let (inside, most, fixture) = (Arc::clone(&inside), Arc::clone(&most), fixture.clone());
        tokio::spawn(async move {
            for _ in 0..rounds {
                let permit = semaphore.acquire().await.unwrap();
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                assert!(now <= PERMITS, "{now} are inside");
                fixture.work().await;
                assert!(permit.is_valid());
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(permit.unlock().await.unwrap().is_released());
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        fixture.to_its_end("each task gets a permit", task).await.expect("no panic");
    }
    assert_eq!(most.load(Ordering::SeqCst), PERMITS, "all permits were used");
    becomes_free(&clients[0], PERMITS as u32).await;
}

/// A task that waits for a permit. Dropping it cancels the task.
struct Waits(JoinHandle<Result<Permit>>);

impl Waits {
    /// Starts it, and returns when the client sees one contender more at the turnstile, which the store has.
    async fn behind_others(client: &Client, permits: u32) -> Self {
        let before = contenders(client, &turnstile()).await;
        let waits = Self(tokio::spawn(semaphore(client, permits).acquire()));
        let waiting = || async {
            assert!(!waits.0.is_finished(), "all permits are held");
            client.look_when_stored(&turnstile()).await.is_some_and(|seen| count(&seen) > before)
        };
        eventually(client.fixture().soon(), "it waits", waiting).await;
        waits
    }

    /// Starts the first one.
    async fn first(client: &Client, permits: u32) -> Self {
        // One that has a permit already gives the turnstile back in the background.
        let free = || async { contenders(client, &turnstile()).await == 0 };
        eventually(client.fixture().soon(), "none waits", free).await;
        Self::behind_others(client, permits).await
    }

    async fn outcome(&mut self, fixture: &Fixture) -> Result<Permit> {
        within(fixture.lapse(), "one that waited gets a permit", &mut self.0).await.expect("no panic")
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whichever permit becomes free, the client that joined the queue first gets it.
pub async fn permits_go_to_those_who_came_first(fixture: Fixture) {
    let clients = fixture.clients(5).await;
    go_in_order(&fixture, &clients, [1, 2, 3, 4]).await;
}

/// With `Fairness::Strict` the one that came first gets it, over clients: a client hands no turn on among its own tasks.
pub async fn strict_permits_go_to_those_who_came_first_over_all_tasks(fixture: Fixture) {
    let options = Options::default().with_lease(fixture.long_lease()).with_fairness(Fairness::Strict);
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(fixture.client_with(options.clone()).await);
    }
    go_in_order(&fixture, &clients, [1, 1, 2, 1, 3, 1]).await;
}

/// Lets a task of each of these clients wait, one after the other, and serves them.
async fn go_in_order<const N: usize>(fixture: &Fixture, clients: &[Client], places: [usize; N]) {
    let mut held = vec![acquire(&clients[0], 2).await, acquire(&clients[0], 2).await];
    let mut waiting = vec![Waits::first(&clients[places[0]], 2).await];
    for place in &places[1..] {
        waiting.push(Waits::behind_others(&clients[*place], 2).await);
    }
    for turn in 0..waiting.len() {
        assert!(!is_free(&clients[0], 2).await, "a try does not overtake one that waits at the permits");
        assert!(held.remove(0).unlock().await.unwrap().is_released());
        held.push(waiting[turn].outcome(fixture).await.unwrap());
        assert!(waiting[turn + 1..].iter().all(|other| !other.0.is_finished()), "turn {turn}");
    }
}

/// A client that counts on another number of permits is told so, and gets none, as long as the semaphore is in use.
pub async fn another_number_of_permits_is_an_error(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    for (client, other) in [(&here, &there), (&here, &here)] {
        let held = acquire(client, 1).await;
        for error in [
            semaphore(other, 2).acquire().await.unwrap_err(),
            semaphore(other, 2).acquire().now().await.unwrap_err(),
            semaphore(other, 2).acquire().within(fixture.soon()).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().contains("semaphore of 1 permits, and not of 2"), "{error}");
        }
        assert!(held.is_valid());
        drop(held);
        becomes_free(&here, 2).await;
        drop(acquire(other, 2).await);
        becomes_free(&here, 2).await;
    }
}

/// A semaphore and a lock of one name know nothing of each other: neither waits for the other one, and each is looked at and taken away by itself.
pub async fn a_lock_of_the_same_name_is_another_lock(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = acquire(&here, 1).await;
    for client in [&there, &here] {
        let lock = client.lock(fixture.group(), NAME);
        let guard = within(fixture.soon(), "the lock is free", lock.write()).await.unwrap();
        assert!(!is_free(client, 1).await, "the permit is held");
        let locked = answered(|| there.inspect(fixture.group(), NAME)).await.unwrap();
        assert_eq!(locked.holders.iter().map(|holder| holder.owner).collect::<Vec<_>>(), [guard.owner()]);
        let seen = answered(|| there.inspect_semaphore(fixture.group(), NAME)).await.unwrap();
        assert_eq!((seen.permits, seen.holders.len()), (Some(1), 1), "{seen:?}");
        assert_ne!(seen.holders[0].owner, guard.owner());
        assert!(guard.unlock().await.unwrap().is_released() && held.is_valid());
    }
    let guard = there.lock(fixture.group(), NAME).write().await.unwrap();
    assert_eq!(answered(|| here.revoke_semaphore(fixture.group(), NAME)).await.unwrap(), 1);
    within(fixture.lapse(), "it is told", held.lost()).await;
    assert!(guard.is_valid(), "the lock was not revoked");
    drop((held, guard));
    becomes_free(&here, 1).await;
}

/// The names of the locks that a semaphore is made of are no names for locks.
pub async fn the_locks_of_a_semaphore_cannot_be_acquired_by_name(fixture: Fixture) {
    let client = fixture.client().await;
    let held = acquire(&client, 1).await;
    let locks = client.locks(fixture.group());
    for part in ["semaphore", "turnstile", "permit 1", "permit 1000"] {
        let name = format!("{NAME} \u{203a} {part}");
        for refused in [
            locks.write(&name).await.map(drop),
            locks.read(&name).now().await.map(drop),
            locks.semaphore(&name, 1).acquire().await.map(drop),
            client.multi_lock().write(fixture.group(), &name).acquire().await.map(drop),
            client.multi_lock().read(fixture.group(), &name).acquire().now().await.map(drop),
            client
                .two_phase_locking(async |taking| taking.write(fixture.group(), &name).await.map(drop))
                .await,
            client
                .two_phase_locking(async |taking| taking.read(fixture.group(), &name).await.map(drop))
                .await,
            locks.election(&name).campaign().await.map(drop),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().contains("choose another name"), "{error}");
        }
    }
    assert!(held.is_valid());
}

/// Of two that try at once each gets one of two permits that are free, wherever they begin to look.
pub async fn a_try_is_refused_only_where_no_permit_is_free(fixture: Fixture) {
    const PERMITS: u32 = 4;
    let clients = fixture.clients(3).await;
    let [holds, here, there] = &clients[..] else { unreachable!("three clients") };
    let _held = [acquire(holds, PERMITS).await, acquire(holds, PERMITS).await];
    let tries = async |client: &Client| {
        let semaphore = semaphore(client, PERMITS);
        answered(|| semaphore.acquire().now()).await.unwrap()
    };
    for _ in 0..(fixture.harness().rounds() / 10).max(5) {
        let (one, other) = tokio::join!(tries(here), tries(there));
        let (one, other) = (one.expect("two are free"), other.expect("two are free"));
        assert_ne!(one.number(), other.number());
        assert!(tries(here).await.is_none(), "all are held");
        assert!(one.unlock().await.unwrap().is_released() && other.unlock().await.unwrap().is_released());
    }
}

/// A semaphore is shown as one thing, with the holders of its permits and the waiters; and one permit can be taken away.
pub async fn a_semaphore_is_listed_and_looked_at_as_one(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    for (client, name) in [(&here, "here"), (&there, "there")] {
        drop(Ylock::clone(client).with_name(name).unwrap());
    }
    let looks = fixture.client().await;
    let (one, other) = (acquire(&here, 2).await, acquire(&there, 2).await);
    let waits = Waits::first(&there, 2).await;
    let group = fixture.group();
    let mut listing = looks.list().of_group(&*group);
    let listed = next(&mut listing).await.expect("it is listed");
    assert_eq!((listed.key.name(), listed.permits), (NAME, Some(2)));
    let listed = listed.seen.unwrap();
    let seen = answered(|| looks.inspect_semaphore(&*group, NAME)).await.unwrap();
    assert_eq!(seen.permits, Some(2));
    for (holders, queue) in [(&listed.holders, &listed.queue), (&seen.holders, &seen.queue)] {
        let has = |client: &Client| holders.iter().filter(|holder| holder.client == client.name()).count();
        assert_eq!((holders.len(), has(&here), has(&there)), (2, 1, 1), "{holders:?}");
        assert_eq!(queue.iter().map(|waiter| waiter.client.clone()).collect::<Vec<_>>(), [there.name()]);
    }
    assert!(next(&mut listing).await.is_none(), "one semaphore is one entry");

    let of_one = seen.holders.iter().find(|holder| holder.client == here.name()).expect("it is shown");
    let ids = [of_one.id];
    assert_eq!(answered(|| looks.revoke_permits(&*group, NAME, &ids)).await.unwrap(), 1);
    assert_eq!(within(fixture.lapse(), "it is told", one.lost()).await, LossReason::Revoked);
    assert!(other.is_valid(), "the other one was not revoked");
    drop((waits, one, other));
    becomes_free(&looks, 2).await;
    let seen = answered(|| looks.inspect_semaphore(&*group, NAME)).await.unwrap();
    assert_eq!((seen.permits, seen.holders.len(), seen.queue.len()), (None, 0, 0));
    assert_eq!(answered(|| looks.revoke_semaphore(&*group, NAME)).await.unwrap(), 0);
}

/// The permit of a client that is gone is free after its lease.
pub async fn the_permit_of_a_dead_client_is_free_after_its_lease(fixture: Fixture) {
    let (dies, waits) = (fixture.short_lived().await, fixture.client().await);
    let held = acquire(&dies, 1).await;
    let mut waiting = Waits::first(&waits, 1).await;
    dies.crash().await;
    let permit = within(fixture.lapse() * 2, "after the lease", &mut waiting.0).await.unwrap().unwrap();
    assert!(permit.is_valid());
    drop(held);
}

/// So is each of several, for calls that only try: they look at most of them before.
pub async fn tries_get_the_permits_of_a_dead_client_after_its_lease(fixture: Fixture) {
    const PERMITS: u32 = 3;
    let (dies, tries) = (fixture.short_lived().await, fixture.client().await);
    let mut held = Vec::new();
    for _ in 0..PERMITS {
        held.push(acquire(&dies, PERMITS).await);
    }
    dies.crash().await;
    for _ in 0..PERMITS {
        let permit = tokio::sync::Mutex::new(None);
        let found = || async {
            let semaphore = semaphore(&tries, PERMITS);
            let tried = answered(|| semaphore.acquire().now()).await.unwrap();
            let is_found = tried.is_some();
            *permit.lock().await = tried;
            is_found
        };
        eventually(fixture.lapse() * 2, "a permit is found", found).await;
        held.extend(permit.into_inner());
    }
    assert!(!is_free(&tries, PERMITS).await);
    drop(held);
}

/// Revoking the semaphore takes all permits away, and their holders are told.
pub async fn a_revocation_takes_all_permits(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.short_lived().await);
    let (one, other) = (acquire(&here, 2).await, acquire(&there, 2).await);
    assert!(there.revoke_semaphore(fixture.group(), NAME).await.unwrap() > 0);
    for permit in [&one, &other] {
        let reason = within(fixture.lapse(), "it is told", permit.lost()).await;
        assert_eq!((reason, permit.loss()), (LossReason::Revoked, Some(LossReason::Revoked)));
        assert!(!permit.is_valid() && permit.check().unwrap_err().kind() == ErrorKind::Lost);
        assert!(permit.remaining().is_zero());
    }
    // Although their holders have not given them back.
    let third = fixture.client().await;
    let both = async { [semaphore(&third, 2).acquire().await, semaphore(&third, 2).acquire().await] };
    for next in within(fixture.lapse() * 2, "the permits are free", both).await {
        assert!(next.unwrap().is_valid());
    }
    assert_eq!(one.unlock().await.unwrap(), Unlocked::WasLost);
    drop(other);
}

/// Work under a permit that is lost is stopped.
pub async fn a_run_with_a_permit_stops_when_it_is_lost(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let runs = semaphore(&here, 1).acquire().run(async |permit| {
        assert!(there.revoke_semaphore(fixture.group(), NAME).await.unwrap() > 0);
        permit.lost().await;
        std::future::pending::<()>().await;
    });
    let error = within(fixture.lapse(), "the work is stopped", runs).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    becomes_free(&there, 1).await;
    let done = semaphore(&here, 1).acquire().run(async |permit| permit.number());
    assert_eq!(within(fixture.soon(), "the work is done", done).await.unwrap(), 1);
}

/// A wait that is over leaves nothing, and says so.
pub async fn a_wait_for_a_permit_that_is_over_leaves_nothing(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (held, time) = (acquire(&there, 1).await, fixture.soon() / 4);
    let too_late = async || answered(|| semaphore(&here, 1).acquire().within(time)).await.unwrap().is_none();
    assert!(too_late().await);
    let limited = semaphore(&here, 1).with_options(Options::default().with_max_wait(time));
    let error = answered(|| limited.acquire()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.key().map(|key| key.name().to_owned())),
        (ErrorKind::TimedOut, Some(NAME.to_owned()))
    );
    let first_waits = Waits::first(&there, 1).await;
    assert!(too_late().await, "the second in the queue got in");
    drop(first_waits);
    drop(held);
    becomes_free(&there, 1).await;
}

/// Numbers of permits that make no sense are refused.
pub async fn bad_numbers_of_permits_are_refused(fixture: Fixture) {
    let client = fixture.client().await;
    for permits in [0, ylock_core::MAX_PERMITS + 1] {
        let error = semaphore(&client, permits).acquire().now().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let nameless = client.locks(fixture.group()).semaphore("", 1);
    assert_eq!(nameless.acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Lets `call` be polled once, twice, and so on until it ends by itself, beside a holder that leaves; afterwards the permits must be free.
async fn cancelled_everywhere<C, F>(fixture: &Fixture, call: C)
where
    C: Fn(Semaphore) -> F,
    F: Future,
{
    let (here, there) = (fixture.client().await, fixture.client().await);
    for holder in [None, Some(&here), Some(&there)] {
        for polls in 1..=ENOUGH {
            let held = match holder {
                Some(client) => vec![acquire(client, 2).await, acquire(client, 2).await],
                None => Vec::new(),
            };
            let leaves = async {
                tokio::task::yield_now().await;
                drop(held);
            };
            let call = poll_times(polls, call(semaphore(&here, 2)));
            let (ended, ()) = tokio::join!(call, leaves);
            let ended = ended.map(drop).is_some();
            becomes_free(&there, 2).await;
            if ended {
                break;
            }
            assert!(polls < ENOUGH, "it never ends");
        }
    }
}

/// `acquire`, `now` and `run` can be dropped after any poll.
pub async fn a_wait_for_a_permit_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |semaphore| async move { semaphore.acquire().await.unwrap() }).await;
    cancelled_everywhere(&fixture, |semaphore| async move { semaphore.acquire().now().await.unwrap() }).await;
    let work = async |_| tokio::task::yield_now().await;
    cancelled_everywhere(&fixture, |semaphore| async move { semaphore.acquire().run(work).await.unwrap() })
        .await;
}
