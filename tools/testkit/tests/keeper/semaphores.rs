//! Semaphores: two numbers for one name in one client, a permit that is lost, and a store that answers in part.

#![allow(
    clippy::disallowed_methods,
    reason = "a test stands outside: it looks at time and starts tasks of its own"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use ylock_core::layer::{Acquisition, End};
use ylock_core::{Error, ErrorKind, Layer, LossReason, MemoryStore, Result, Unlocked, Ylock};
use ylock_testkit::{Call, CountsCalls, Fault, Faulty, Slow};

const SOON: Duration = Duration::from_secs(1);

/// Looks take some milliseconds, for as long as it is on.
#[derive(Debug, Default)]
struct SlowLook(AtomicBool);

#[async_trait]
impl Fault for SlowLook {
    async fn before(&self, call: Call) -> Result<()> {
        if call == Call::Inspect && self.0.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// The next look is not answered, once it is on.
#[derive(Debug, Default)]
struct SilentLook(AtomicBool);

#[async_trait]
impl Fault for SilentLook {
    async fn before(&self, call: Call) -> Result<()> {
        if call == Call::Inspect && self.0.swap(false, Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "the store does not answer"));
        }
        Ok(())
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// The reader by which other clients know this one says 2, and goes while the call that says 3 is looking.
#[tokio::test(start_paused = true)]
async fn a_client_counts_on_the_number_that_others_see_it_count_on() {
    let (store, fault) = (MemoryStore::new(), Arc::new(SlowLook::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
    let there = Ylock::new(store.engine());
    let semaphore = |ylock: &Ylock, permits| ylock.locks("group").semaphore("name", permits);
    let first = semaphore(&here, 2).acquire().await.unwrap();
    fault.0.store(true, Ordering::SeqCst);
    let other = semaphore(&here, 3);
    let asks = tokio::spawn(async move { other.acquire().within(SOON).await });
    sleep(Duration::from_millis(2)).await;
    drop(first);
    let error = asks.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let both = [semaphore(&there, 2).acquire().await.unwrap(), semaphore(&there, 2).acquire().await.unwrap()];
    assert!(both.iter().all(|permit| permit.is_valid()));
    assert_eq!(semaphore(&here, 3).acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
}

/// The store does not answer the first look, and the permit is there before the second one.
#[tokio::test(start_paused = true)]
async fn a_look_that_was_not_answered_is_made_again_before_a_permit_counts() {
    let (store, fault) = (MemoryStore::new(), Arc::new(SilentLook::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
    let there = Ylock::new(store.engine());
    let held = there.locks("group").semaphore("name", 1).acquire().await.unwrap();
    fault.0.store(true, Ordering::SeqCst);
    let error = here.locks("group").semaphore("name", 8).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(!fault.0.load(Ordering::SeqCst) && held.is_valid());
}

/// The name is lost while the call waits for a permit: other numbers may be used by now.
#[tokio::test(start_paused = true)]
async fn a_permit_is_not_lost_from_the_beginning() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 1);
    let held = semaphore(&there).acquire().await.unwrap();
    let mut waits = Box::pin(semaphore(&here).acquire());
    assert!(timeout(SOON, waits.as_mut()).await.is_err());
    assert_eq!(here.revoke_semaphore("group", "name").await.unwrap(), 1);
    let permit = timeout(SOON * 60, waits).await.expect("the permit of the other one was revoked").unwrap();
    assert!(permit.is_valid() && permit.loss().is_none());
    assert!(!held.is_valid());
}

/// Two calls of a client that does not read the name yet meet in the same moment.
#[tokio::test(start_paused = true)]
async fn two_tries_at_once_get_a_permit_each() {
    let store = MemoryStore::new();
    for _ in 0..20 {
        let slow = Arc::new(Slow::new(Duration::from_millis(1), Duration::from_millis(1)));
        let ylock = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &slow));
        let semaphore = ylock.locks("group").semaphore("name", 64);
        let (one, other) = tokio::join!(semaphore.acquire().now(), semaphore.acquire().now());
        assert!(one.unwrap().is_some() && other.unwrap().is_some());
        ylock.close().await;
    }
}

/// The same of calls that wait: none takes the other one for a holder.
#[tokio::test(start_paused = true)]
async fn calls_at_once_that_wait_get_a_permit_each() {
    let store = MemoryStore::new();
    let slow = Arc::new(Slow::new(Duration::from_millis(1), Duration::from_millis(1)));
    let ylock = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &slow));
    let semaphore = ylock.locks("group").semaphore("name", 4);
    let (one, other) = tokio::join!(semaphore.acquire(), semaphore.acquire());
    assert!(one.unwrap().is_valid() && other.unwrap().is_valid());
}

/// Calls of one kind are not answered, once it is on.
#[derive(Debug)]
struct Silent {
    call: Call,
    is_on: AtomicBool,
}

#[async_trait]
impl Fault for Silent {
    async fn before(&self, call: Call) -> Result<()> {
        if call == self.call && self.is_on.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Unavailable, "the store does not answer"));
        }
        Ok(())
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// A permit of which nothing is known may be free; and a try that could not try is no refusal.
#[tokio::test(start_paused = true)]
async fn a_try_takes_no_silence_for_a_holder() {
    for call in [Call::Inspect, Call::Acquire] {
        let (store, fault) = (MemoryStore::new(), Arc::new(Silent { call, is_on: AtomicBool::new(false) }));
        let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
        let there = Ylock::new(store.engine());
        let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 8);
        let mut held = vec![semaphore(&here).acquire().await.unwrap()];
        for _ in 0..6 {
            held.push(semaphore(&there).acquire().await.unwrap());
        }
        fault.is_on.store(true, Ordering::SeqCst);
        // It begins with one that is drawn.
        for _ in 0..20 {
            let tried = semaphore(&here).acquire().now().await;
            match call {
                Call::Inspect => assert!(tried.unwrap().is_some(), "one is free"),
                _ => assert_eq!(tried.unwrap_err().kind(), ErrorKind::Unavailable),
            }
        }
        // On how many permits others count is not known.
        let asks_first = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
        let tried = timeout(SOON, semaphore(&asks_first).acquire().now()).await.expect("it does not wait");
        assert_eq!(tried.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}

/// Who comes later sees the reader that is there: so one look is enough for all that share it, and the next read needs one of its own.
#[tokio::test(start_paused = true)]
async fn one_look_at_the_name_is_enough_for_as_long_as_it_is_read() {
    let (store, calls) = (MemoryStore::new(), Arc::new(CountsCalls::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &calls));
    let there = Ylock::new(store.engine());
    let semaphore = |ylock: &Ylock, permits| ylock.locks("group").semaphore("name", permits);
    let mut held = semaphore(&here, 9).acquire().await.unwrap();
    assert_eq!(calls.of(Call::Inspect), 1);
    for _ in 0..5 {
        // One of them is always there.
        let before = calls.of(Call::Inspect);
        let next = semaphore(&here, 9).acquire().await.unwrap();
        assert_eq!(calls.of(Call::Inspect), before);
        assert!(std::mem::replace(&mut held, next).unlock().await.unwrap().is_released());
        assert_eq!(semaphore(&here, 2).acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(semaphore(&there, 2).acquire().await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    drop(held);
    while here.keys_in_use() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let other = semaphore(&there, 2).acquire().await.unwrap();
    assert_eq!(
        semaphore(&here, 9).acquire().await.unwrap_err().kind(),
        ErrorKind::Invalid,
        "a look of its own"
    );
    assert!(other.is_valid());
}

/// The look of one call is the look of another one only when it has shown that others use the name alike.
#[tokio::test(start_paused = true)]
async fn of_two_calls_at_once_none_relies_on_the_look_of_the_other_before_its_answer() {
    let (store, fault) = (MemoryStore::new(), Arc::new(SlowLook::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
    let there = Ylock::new(store.engine());
    let held = there.locks("group").semaphore("name", 1).acquire().await.unwrap();
    fault.0.store(true, Ordering::SeqCst);
    let semaphore = here.locks("group").semaphore("name", 8);
    let (one, other, third) =
        tokio::join!(semaphore.acquire(), semaphore.acquire(), semaphore.acquire().now());
    for error in [one.unwrap_err(), other.unwrap_err(), third.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(held.is_valid());
}

/// What a client has it hands over itself: the store is asked for no other permit.
#[tokio::test(start_paused = true)]
async fn a_permit_of_the_own_client_is_waited_for_without_the_store() {
    let (store, calls) = (MemoryStore::new(), Arc::new(CountsCalls::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &calls));
    let there = Ylock::new(store.engine());
    let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 40);
    let mut held = Vec::new();
    for number in 0..40 {
        held.push(semaphore(if number < 4 { &here } else { &there }).acquire().await.unwrap());
    }
    let waits = tokio::spawn(semaphore(&here).acquire());
    // Less than the time after which it waits for more.
    sleep(Duration::from_micros(500)).await;
    let asked = calls.of(Call::Acquire);
    let own = held.remove(0);
    let number = own.number();
    assert!(own.unlock().await.unwrap().is_released());
    let permit = waits.await.unwrap().unwrap();
    assert_eq!(permit.number(), number);
    assert_eq!(calls.of(Call::Acquire), asked, "it was handed over");
}

/// A store takes 20 ms for everything. A waiter that joined more queues after each millisecond would be in all of them when the first answer comes.
#[tokio::test(start_paused = true)]
async fn a_waiter_gives_a_slow_store_the_time_to_answer_before_it_joins_more_queues() {
    let (store, calls) = (MemoryStore::new(), Arc::new(CountsCalls::default()));
    let slow = Arc::new(Slow::new(Duration::from_millis(10), Duration::from_millis(10)));
    let slow = Faulty::over(Arc::new(store.engine()), &slow);
    let ylock = Ylock::from_arc(Faulty::over(slow, &calls));
    let semaphore = ylock.locks("group").semaphore("name", 40);
    let first = semaphore.acquire().await.unwrap();
    let before = calls.of(Call::Acquire);
    // The second of the two waits for the first one to leave the turnstile, and then goes to the queues.
    let (second, third) = tokio::join!(semaphore.acquire(), semaphore.acquire());
    let asked = calls.of(Call::Acquire) - before;
    assert!(asked <= 2 + 1 + 2, "{asked}: the turnstile for each, a permit that is tried, and two queues");
    assert!(first.is_valid() && second.unwrap().is_valid() && third.unwrap().is_valid());
}

/// A store that is slow once, as where the process was suspended while a permit was granted.
#[derive(Debug, Default)]
struct SlowOnce(AtomicBool);

#[async_trait]
impl Fault for SlowOnce {
    async fn before(&self, _: Call) -> Result<()> {
        Ok(())
    }

    async fn after(&self, call: Call) -> Result<()> {
        if call == Call::Acquire && self.0.load(Ordering::SeqCst) {
            sleep(Duration::from_secs(4)).await;
        }
        Ok(())
    }
}

/// The waiter stands in the queues of two permits, and another one becomes free: it must not take long until it finds that.
#[tokio::test(start_paused = true)]
async fn a_grant_that_took_long_once_keeps_no_waiter_from_other_permits() {
    let (store, fault) = (MemoryStore::new(), Arc::new(SlowOnce::default()));
    let here = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
    let there = Ylock::new(store.engine());
    let of = |ylock: &Ylock| ylock.locks("group").semaphore("name", 16);
    fault.0.store(true, Ordering::SeqCst);
    drop(of(&here).acquire().await.unwrap());
    fault.0.store(false, Ordering::SeqCst);
    sleep(Duration::from_millis(1)).await;
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(of(&there).acquire().await.unwrap());
    }
    let waits = tokio::spawn(of(&here).acquire());
    let queue = async |number: u32| {
        let name = format!("name \u{203a} permit {number}");
        there.inspect("group", name).await.unwrap().queue.len()
    };
    sleep(Duration::from_millis(20)).await;
    let mut free = None;
    for (at, permit) in held.iter().enumerate() {
        if queue(permit.number()).await == 0 {
            free = Some(at);
        }
    }
    drop(held.remove(free.expect("the waiter is in the queues of two")));
    let permit = timeout(SOON, waits).await.expect("it joins the others").unwrap().unwrap();
    assert!(permit.is_valid());
}

/// Writes down how holds ended.
#[derive(Debug, Default)]
struct Ends(Mutex<Vec<(String, Option<u32>, End)>>);

impl Layer for Ends {
    fn ended(&self, of: &Acquisition, end: End, _: Duration) {
        self.0.lock().push((of.key.name().to_owned(), of.permits, end));
    }
}

#[tokio::test(start_paused = true)]
async fn layers_are_told_that_a_permit_was_lost() {
    let (store, ends) = (MemoryStore::new(), Arc::new(Ends::default()));
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let watched = here.layer_arc(Arc::clone(&ends) as Arc<dyn Layer>);
    let held = watched.locks("group").semaphore("name", 1).acquire().await.unwrap();
    assert_eq!(there.revoke_semaphore("group", "name").await.unwrap(), 1);
    assert_eq!(timeout(SOON * 30, held.lost()).await.unwrap(), LossReason::Revoked);
    assert_eq!(held.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(*ends.0.lock(), [("name".to_owned(), Some(1), End::Lost(LossReason::Revoked))]);
}

/// Without the read other clients may count on another number.
#[tokio::test(start_paused = true)]
async fn a_permit_is_lost_with_the_read_of_its_client() {
    let (store, ends) = (MemoryStore::new(), Arc::new(Ends::default()));
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let watched = here.layer_arc(Arc::clone(&ends) as Arc<dyn Layer>);
    let held = watched.locks("group").semaphore("name", 1).acquire().await.unwrap();
    assert_eq!(there.revoke("group", "name \u{203a} semaphore").await.unwrap(), 1);
    assert_eq!(timeout(SOON * 30, held.lost()).await.unwrap(), LossReason::Revoked);
    assert!(!held.is_valid() && held.remaining().is_zero());
    assert_eq!((held.loss(), held.check().unwrap_err().kind()), (Some(LossReason::Revoked), ErrorKind::Lost));
    assert_eq!(held.unlock().await.unwrap(), Unlocked::WasLost);
    assert_eq!(*ends.0.lock(), [("name".to_owned(), Some(1), End::Lost(LossReason::Revoked))]);
}

/// The holder is at another permit whenever one is looked at, and the semaphore is in use all the time.
#[tokio::test(start_paused = true)]
async fn a_semaphore_is_listed_while_its_holder_moves_from_permit_to_permit() {
    let store = MemoryStore::new();
    let slow = Arc::new(Slow::new(Duration::from_millis(3), Duration::from_millis(3)));
    let looks = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &slow));
    let semaphore = Ylock::new(store.engine()).locks("group").semaphore("name", 100);
    let mut held = semaphore.acquire().await.unwrap();
    let moves = tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(1)).await;
            // One is always held.
            let next = semaphore.acquire().await.unwrap();
            drop(std::mem::replace(&mut held, next));
        }
    });
    for _ in 0..50 {
        assert_eq!(looks.list().next().await.unwrap().and_then(|listed| listed.permits), Some(100));
    }
    moves.abort();
}

/// Answers no revocation but the first, while it is on.
#[derive(Debug, Default)]
struct BreaksOff(AtomicBool, AtomicBool);

#[async_trait]
impl Fault for BreaksOff {
    async fn before(&self, call: Call) -> Result<()> {
        let fails =
            call == Call::Revoke && self.0.load(Ordering::SeqCst) && self.1.swap(true, Ordering::SeqCst);
        if fails { Err(Error::new(ErrorKind::Unavailable, "the store does not answer")) } else { Ok(()) }
    }

    async fn after(&self, _: Call) -> Result<()> {
        Ok(())
    }
}

/// The holders hang: none gives its permit back when it is told.
#[tokio::test(start_paused = true)]
async fn a_revocation_that_has_broken_off_can_be_made_again() {
    let (store, fault) = (MemoryStore::new(), Arc::new(BreaksOff::default()));
    let operator = Ylock::from_arc(Faulty::over(Arc::new(store.engine()), &fault));
    let clients = [Ylock::new(store.engine()), Ylock::new(store.engine()), Ylock::new(store.engine())];
    let semaphore = |ylock: &Ylock| ylock.locks("group").semaphore("name", 2);
    let _held =
        [semaphore(&clients[0]).acquire().await.unwrap(), semaphore(&clients[1]).acquire().await.unwrap()];
    fault.0.store(true, Ordering::SeqCst);
    let error = operator.revoke_semaphore("group", "name").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    sleep(SOON * 60).await;
    fault.0.store(false, Ordering::SeqCst);
    assert_eq!(operator.revoke_semaphore("group", "name").await.unwrap(), 1);
    sleep(SOON * 60).await;
    let both = [
        semaphore(&clients[2]).acquire().now().await.unwrap(),
        semaphore(&clients[2]).acquire().now().await.unwrap(),
    ];
    assert!(both.iter().all(Option::is_some));
}

/// It hangs, so the permit stays held; an operator must see it.
#[tokio::test(start_paused = true)]
async fn a_permit_whose_client_is_none_any_more_is_listed_as_the_lock_that_it_is() {
    let store = MemoryStore::new();
    let (here, there) = (Ylock::new(store.engine()), Ylock::new(store.engine()));
    let held = here.locks("group").semaphore("name", 1).acquire().await.unwrap();
    let listed = async || {
        let mut listing = there.list();
        let mut names = Vec::new();
        while let Some(listed) = listing.next().await.unwrap() {
            names.push((listed.key.name().to_owned(), listed.is_semaphore));
        }
        names
    };
    while here.keys_in_use() > 2 {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(listed().await, [("name".to_owned(), true)]);
    assert_eq!(there.revoke("group", "name \u{203a} semaphore").await.unwrap(), 1);
    assert_eq!(timeout(SOON * 60, held.lost()).await.unwrap(), LossReason::Revoked);
    sleep(SOON * 60).await;
    assert_eq!(listed().await, [("name \u{203a} permit 1".to_owned(), false)]);
    assert_eq!(there.revoke("group", "name \u{203a} permit 1").await.unwrap(), 1);
    drop(held);
}
