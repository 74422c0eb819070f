//! A call that holds locks on its way to more, and is not polled any more.
#![allow(clippy::disallowed_methods, reason = "its tasks and its time are those of a program")]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Engine, Grant, Request};
use ylock_core::{Acquirable, Acquire, Guards, MemoryEngine, MemoryStore, Options, Result, Ylock};
use ylock_testkit::{Faulty, Slow, Wrapped, Wrapper, eventually, within};

const LEASE: Duration = Duration::from_secs(10);
const FEW_LEASES: Duration = Duration::from_secs(35);

fn clients() -> [Ylock; 3] {
    let store = MemoryStore::new();
    [(); 3].map(|()| Ylock::new(store.engine()).with_options(Options::default().with_lease(LEASE)))
}

/// Polls it until it waits, for as long as the others need to do what it has asked for.
async fn waits<G: Acquirable>(call: &mut Acquire<G>) {
    let waiting = std::future::poll_fn(|context| Pin::new(&mut *call).poll(context).map(drop));
    assert!(tokio::time::timeout(Duration::from_millis(10), waiting).await.is_err(), "it waits");
}

/// Returns a set of "a" and "b" that was polled until it waits for one of them.
async fn set_that_waits(client: &Ylock) -> Acquire<Guards> {
    let mut set = client.multi_lock().write("group", "a").write("group", "b").acquire();
    waits(&mut set).await;
    set
}

#[tokio::test(start_paused = true)]
async fn a_set_on_its_way_that_is_not_polled_gives_its_locks_to_others_and_begins_anew() {
    let [holder, stands, other] = clients();
    let b = holder.lock("group", "b").write().await.unwrap();
    let set = set_that_waits(&stands).await;
    assert!(other.lock("group", "a").write().now().await.unwrap().is_none());
    let a = within(FEW_LEASES, "the lock goes on", other.lock("group", "a").write()).await.unwrap();
    drop(b);
    tokio::time::sleep(FEW_LEASES).await;
    assert!(a.is_valid());
    drop((a, within(FEW_LEASES, "so does the other", other.lock("group", "b").write()).await.unwrap()));
    let guards = within(FEW_LEASES, "it is polled again", set).await.unwrap();
    assert!(guards.is_valid() && guards.len() == 2);
}

/// One that is polled keeps what it has for as long as it waits.
#[tokio::test(start_paused = true)]
async fn a_set_on_its_way_that_is_polled_keeps_its_locks() {
    let [holder, waits, other] = clients();
    let b = holder.lock("group", "b").write().await.unwrap();
    let set = tokio::spawn(waits.multi_lock().write("group", "a").write("group", "b").acquire());
    tokio::time::sleep(FEW_LEASES).await;
    assert!(other.lock("group", "a").write().within(FEW_LEASES).await.unwrap().is_none());
    drop(b);
    assert!(within(LEASE, "its turn", set).await.unwrap().unwrap().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_call_for_a_permit_that_is_not_polled_keeps_no_other_from_one() {
    let [holder, stands, other] = clients();
    let semaphore = |client: &Ylock| client.locks("group").semaphore("few", 1);
    let held = semaphore(&holder).acquire().await.unwrap();
    let mut call = semaphore(&stands).acquire();
    waits(&mut call).await;
    drop(held);
    let permit = within(FEW_LEASES * 2, "the permit goes on", semaphore(&other).acquire()).await.unwrap();
    drop(permit);
    let permit = within(FEW_LEASES, "it is polled again", call).await.unwrap();
    assert!(permit.is_valid());
}

/// It does not wait for the last lock while others may have the first.
#[tokio::test(start_paused = true)]
async fn a_set_that_has_lost_a_lock_on_its_way_takes_it_again_before_the_next_is_free() {
    let [holder, stands, other] = clients();
    let _b = holder.lock("group", "b").write().await.unwrap();
    let set = set_that_waits(&stands).await;
    drop(within(FEW_LEASES, "the lock goes on", other.lock("group", "a").write()).await.unwrap());
    let _set = tokio::spawn(set);
    let is_taken = async || other.lock("group", "a").write().now().await.unwrap().is_none();
    eventually(FEW_LEASES, "it has the first lock again", is_taken).await;
}

/// Nothing was taken from it: it goes on where it was.
#[tokio::test(start_paused = true)]
async fn a_set_that_has_nothing_yet_keeps_its_place_although_it_is_polled_seldom() {
    let [holder, seldom, other] = clients();
    let a = holder.lock("group", "a").write().await.unwrap();
    let mut set = set_that_waits(&seldom).await;
    let later = tokio::spawn(other.lock("group", "a").write());
    tokio::time::sleep(LEASE * 6 / 5).await;
    waits(&mut set).await;
    let set = tokio::spawn(set);
    tokio::time::sleep(LEASE / 5).await;
    drop(a);
    let guards = within(FEW_LEASES, "its turn", set).await.unwrap().unwrap();
    assert!(guards.is_valid() && !later.is_finished());
}

/// A store that grants a shorter lease than it is asked for.
#[derive(Debug)]
struct Short(MemoryEngine);

impl Wrapper for Short {
    fn inner(&self) -> &dyn Engine {
        &self.0
    }

    async fn acquire(&self, request: &Request) -> Result<Option<Grant>> {
        let mut short = request.clone();
        short.lease = short.lease.min(LEASE);
        self.0.acquire(&short).await
    }
}

/// It notes that it is polled three times in the lease that it has asked for.
#[tokio::test(start_paused = true)]
async fn a_set_that_is_polled_keeps_its_locks_where_the_store_grants_a_shorter_lease() {
    let (store, options) = (MemoryStore::new(), Options::default().with_lease(LEASE * 6));
    let here = Ylock::from_arc(Arc::new(Wrapped(Short(store.engine())))).with_options(options);
    let other = Ylock::new(store.engine()).with_options(Options::default().with_lease(LEASE));
    let b = other.lock("group", "b").write().await.unwrap();
    let set = tokio::spawn(here.multi_lock().write("group", "a").write("group", "b").acquire());
    tokio::time::sleep(LEASE).await;
    assert!(other.lock("group", "a").write().within(LEASE * 5).await.unwrap().is_none());
    drop(b);
    assert!(within(FEW_LEASES, "its turn", set).await.unwrap().unwrap().is_valid());
}

/// All calls of a client share its read of the clients' lock, which one of them asks for first.
#[tokio::test(start_paused = true)]
async fn a_call_for_a_permit_that_is_not_polled_costs_another_call_of_its_client_no_turn() {
    let store = MemoryStore::new();
    let options = Options::default().with_lease(LEASE);
    let [holder, other] = [(); 2].map(|()| Ylock::new(store.engine()).with_options(options.clone()));
    // So slow that both calls wait for the same answer.
    let slow = Arc::new(Slow::new(LEASE / 1000, LEASE / 1000));
    let client = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &slow)).with_options(options);
    let semaphore = |client: &Ylock| client.locks("group").semaphore("few", 1);
    let held = semaphore(&holder).acquire().await.unwrap();
    let (mut stands, mut polled) = (semaphore(&client).acquire(), semaphore(&client).acquire());
    let both = std::future::poll_fn(|context| {
        let _ = (Pin::new(&mut stands).poll(context), Pin::new(&mut polled).poll(context));
        std::task::Poll::<()>::Pending
    });
    assert!(tokio::time::timeout(LEASE / 5, both).await.is_err(), "both wait");
    let polled = tokio::spawn(polled);
    tokio::time::sleep(FEW_LEASES).await;
    let later = tokio::spawn(semaphore(&other).acquire());
    tokio::time::sleep(LEASE / 5).await;
    drop(held);
    let permit = within(FEW_LEASES, "its turn", polled).await.unwrap().unwrap();
    assert!(permit.is_valid() && !later.is_finished());
    drop(permit);
    assert!(within(FEW_LEASES, "the later one", later).await.unwrap().unwrap().is_valid());
}

/// What was received is not on its way any more, whether it is asked about or not.
#[tokio::test(start_paused = true)]
async fn a_set_and_a_permit_that_were_received_are_kept() {
    let [here, _, other] = clients();
    let set = here.multi_lock().write("group", "a").write("group", "b").acquire().await.unwrap();
    let permit = here.locks("group").semaphore("few", 1).acquire().await.unwrap();
    tokio::time::sleep(FEW_LEASES).await;
    assert!(set.is_valid() && permit.is_valid());
    assert!(other.lock("group", "a").write().now().await.unwrap().is_none());
    assert!(other.locks("group").semaphore("few", 1).acquire().now().await.unwrap().is_none());
}

/// Another task of the owner has entered the lock: that is not on its way any more.
#[tokio::test(start_paused = true)]
async fn what_another_task_of_the_owner_holds_is_not_taken_from_it() {
    let [holder, stands, other] = clients();
    let _b = holder.lock("group", "b").write().await.unwrap();
    let me = ylock_core::Owner::new();
    let mut set = stands.multi_lock().write("group", "a").write("group", "b").acquire().owned_by(&me);
    waits(&mut set).await;
    let guard = stands.lock("group", "a").write().owned_by(&me).await.unwrap();
    assert!(other.lock("group", "a").write().within(FEW_LEASES).await.unwrap().is_none());
    assert!(guard.is_valid());
    drop(set);
    assert!(other.lock("group", "a").write().now().await.unwrap().is_none());
}
