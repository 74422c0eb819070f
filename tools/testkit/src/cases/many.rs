//! Several locks at once: all of them, or none.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;
use ylock_core::{ErrorKind, Guards, Key, LossReason, Mode, MultiLock, Options, Owner, Result, Unlocked};

use crate::patient::answered;
use crate::{Client, ExclusionOracle, Fixture, eventually, poll_times, within};

/// More polls than any call needs.
const ENOUGH: usize = 200;

/// Returns the set of these names, to be written.
fn set(client: &Client, names: &[&str]) -> MultiLock {
    let group = client.fixture().group();
    names.iter().fold(client.multi_lock(), |many, name| many.write(Arc::clone(&group), *name))
}

fn key(fixture: &Fixture, name: &str) -> Key {
    Key::new(fixture.group(), name).unwrap()
}

/// Longer than a set of a hundred free locks takes.
const SOON: Duration = Duration::from_secs(30);

/// Acquires a set that must be free.
async fn acquire(many: &MultiLock) -> Guards {
    within(SOON, "a set that is free is granted", answered(|| many.acquire())).await.expect("a set")
}

/// A task that wants a set. Dropping it cancels the task, wherever it is.
struct Wants(JoinHandle<Result<Guards>>);

impl Wants {
    /// Starts a task, and returns when this client sees it wait for this name.
    async fn until_it_waits_for(many: &MultiLock, owner: Owner, name: &str, by: &Client) -> Self {
        let wants = Self(tokio::spawn(many.clone().owned_by(&owner).acquire()));
        let waits = || async {
            assert!(!wants.0.is_finished(), "a set that should wait was granted");
            let seen = answered(|| by.inspect(by.fixture().group(), name)).await.unwrap();
            seen.queue.iter().any(|waiter| waiter.owner == owner)
        };
        eventually(by.fixture().soon(), "a set waits", waits).await;
        wants
    }

    async fn outcome(&mut self, fixture: &Fixture) -> Result<Guards> {
        within(fixture.lapse() * 2, "a set that waited gets an answer", &mut self.0).await.expect("no panic")
    }
}

impl Drop for Wants {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A set is granted with all its locks, shown, and given back; a name that is wanted twice is written if one of the calls says so; a set of no
/// locks is granted at once.
pub async fn a_set_is_granted_whole_and_given_back(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let group = fixture.group();
    let many = set(&here, &["b", "a"]).read(group.clone(), "c").read(group.clone(), "a");
    let guards = acquire(&many).await;
    let seen: Vec<_> =
        guards.iter().map(|lease| (lease.key().name().to_owned(), lease.mode(), lease.is_valid())).collect();
    let expected = [("a", Mode::Write), ("b", Mode::Write), ("c", Mode::Read)];
    assert_eq!(seen, expected.map(|(name, mode)| (name.to_owned(), mode, true)));
    assert!(guards.is_valid() && guards.check().is_ok() && guards.loss().is_none());
    assert!(guards.remaining() <= fixture.long_lease() && !guards.remaining().is_zero());
    assert!(guards.get(group.clone(), "d").is_none() && guards.token("another group", "a").is_none());
    if fixture.harness().guarantees().fencing {
        let tokens: BTreeSet<_> =
            ["a", "b", "c"].map(|name| guards.token(group.clone(), name).unwrap()).into();
        assert!(
            tokens.len() > 1 || fixture.harness().name() == "memory",
            "each lock has its own: {tokens:?}"
        );
    }
    for name in ["a", "b", "c"] {
        assert!(!there.is_free(name).await, "{name} is free for others");
    }
    assert_eq!(guards.unlock().await.unwrap(), Unlocked::Released);
    for name in ["a", "b", "c"] {
        assert!(there.is_free(name).await, "{name} was not given back");
    }
    let none = acquire(&here.multi_lock()).await;
    assert!(none.is_empty() && none.is_valid());
    assert_eq!(none.unlock().await.unwrap(), Unlocked::Released);
}

/// A set of which one lock is held gets none, and keeps none back.
pub async fn a_try_for_a_set_gets_all_or_none(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = acquire(&set(&there, &["b"])).await;
    let tried = set(&here, &["a", "b", "c"]).acquire().now();
    assert!(within(fixture.soon(), "a try is answered", tried).await.unwrap().is_none());
    for name in ["a", "c"] {
        let free = || async { there.is_free(name).await };
        eventually(fixture.soon(), "what was not kept is free", free).await;
    }
    drop(held);
    let all = || async { set(&here, &["a", "b", "c"]).acquire().now().await.unwrap().is_some() };
    eventually(fixture.soon(), "a set that is free is granted", all).await;
}

/// A set that waits for a lock keeps those before it, and none after it.
pub async fn a_set_that_waits_holds_nothing_after_what_it_waits_for(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = acquire(&set(&there, &["b"])).await;
    let many = set(&here, &["c", "b", "a"]);
    let owner = Owner::new();
    let mut wants = Wants::until_it_waits_for(&many, owner, "b", &here).await;
    // The client sees its own waiter before the store has answered anything.
    let holds = || async {
        let seen = there.inspect(fixture.group(), "a").await.unwrap();
        seen.holders.iter().any(|holder| holder.owner == owner)
    };
    eventually(fixture.soon(), "it holds what comes before", holds).await;
    let free = || async { there.is_free("c").await };
    eventually(fixture.soon(), "it keeps nothing after what it waits for", free).await;
    assert!(!there.is_free("a").await, "it gave back what comes before");
    drop(held);
    let guards = wants.outcome(&fixture).await.unwrap();
    assert!(guards.is_valid() && guards.len() == 3);
}

/// Sets that name the same locks in opposite orders all end, and exclude each other.
pub async fn sets_in_opposite_orders_end(fixture: Fixture) {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let clients = fixture.clients(8).await;
    let oracles: Arc<Vec<_>> = Arc::new(NAMES.iter().map(|_| ExclusionOracle::default()).collect());
    let rounds = (fixture.harness().rounds() / 25).max(2);
    let tasks = clients.iter().enumerate().map(|(number, client)| {
        let mut names = NAMES.to_vec();
        names.rotate_left(number / 2);
        if number % 2 == 1 {
            names.reverse();
        }
        let (many, oracles) = (set(client, &names[..3]), Arc::clone(&oracles));
        tokio::spawn(async move {
            for _ in 0..rounds {
                let guards = many.acquire().await.unwrap();
                let guards = guards.into_guards();
                for guard in &guards {
                    let place = NAMES.iter().position(|name| *name == guard.key().name()).unwrap();
                    oracles[place].visit(guard).await;
                }
                drop(guards);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for ended in fixture.to_its_end("all sets end", join_all(tasks)).await {
        ended.unwrap();
    }
    let written: usize = oracles.iter().map(ExclusionOracle::written).sum();
    assert_eq!(written, clients.len() * rounds * 3, "every writer's update is there");
}

/// What sets are for: two clients that take two single locks in opposite orders wait for each other until one of them gives up.
pub async fn single_locks_in_opposite_orders_wait_for_each_other(fixture: Fixture) {
    let clients = fixture.clients(2).await;
    let (both_hold, both_know) = (Barrier::new(2), Barrier::new(2));
    let crossing = |client: &Client, first: &'static str, second: &'static str| {
        let locks = client.locks(fixture.group());
        let (both_hold, both_know, time) = (&both_hold, &both_know, fixture.soon() / 4);
        async move {
            let held = locks.write(first).await.unwrap();
            both_hold.wait().await;
            let second = answered(|| locks.write(second).within(time)).await.unwrap();
            both_know.wait().await;
            drop(held);
            second.is_some()
        }
    };
    let got = tokio::join!(crossing(&clients[0], "a", "b"), crossing(&clients[1], "b", "a"));
    assert_eq!(got, (false, false), "one of them got both");
}

/// A set that loses a lock while it waits for another one gives the rest back, and takes all anew.
pub async fn a_set_that_loses_a_lock_while_it_waits_begins_anew(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let other = fixture.client().await;
    let held = acquire(&set(&there, &["c"])).await;
    let many = set(&here, &["a", "b", "c"]);
    let mut wants = Wants::until_it_waits_for(&many, Owner::new(), "c", &there).await;
    let (owner, first) = (Owner::new(), set(&other, &["a"]));
    let mut next = Wants::until_it_waits_for(&first, owner, "a", &there).await;
    assert_eq!(there.revoke(fixture.group(), "a").await.unwrap(), 1);
    let next = next.outcome(&fixture).await.unwrap();
    // It waits at the lock that it has lost now, and holds nothing after that.
    let free = || async { there.is_free("b").await };
    eventually(fixture.lapse(), "it keeps nothing of a set that is lost", free).await;
    drop(held);
    fixture.work().await;
    assert!(!wants.0.is_finished() && next.is_valid(), "a set was granted whose lock another owner holds");
    drop(next);
    let guards = wants.outcome(&fixture).await.unwrap();
    assert!(guards.is_valid() && guards.len() == 3);
}

/// One lock that is lost is the set lost; the others stay held, and are renewed, until the set is dropped.
pub async fn a_lost_lock_is_told_and_the_others_stay(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let guards = acquire(&set(&here, &["a", "b", "c"])).await;
    let leases = guards.leases();
    assert_eq!(there.revoke(fixture.group(), "b").await.unwrap(), 1);
    let lost = within(fixture.lapse(), "it is told", leases.lost()).await;
    assert_eq!(lost, (key(&fixture, "b"), LossReason::Revoked));
    assert_eq!(guards.loss(), Some(lost));
    assert!(!guards.is_valid() && guards.remaining().is_zero());
    let error = guards.check().unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Lost, Some(&key(&fixture, "b"))));
    fixture.leases(2.0).await;
    for name in ["a", "c"] {
        assert!(guards.get(fixture.group(), name).unwrap().is_valid(), "{name} is lost, too");
        assert!(!there.is_free(name).await, "{name} is free before the set is dropped");
    }
    assert_eq!(guards.unlock().await.unwrap(), Unlocked::WasLost);
    there.become_free(&["a", "b", "c"]).await;
}

/// `run` stops the work when one of the locks is lost, says which, and gives the others back.
pub async fn a_run_under_a_set_stops_when_one_lock_is_lost(fixture: Fixture) {
    let (here, there) = (fixture.short_lived().await, fixture.client().await);
    let began = Arc::new(Barrier::new(2));
    let (many, begins) = (set(&here, &["a", "b"]), Arc::clone(&began));
    let run = tokio::spawn(many.acquire().run(|leases| async move {
        assert!(leases.is_valid() && Owner::current() == leases.iter().next().map(|lease| lease.owner()));
        begins.wait().await;
        pending::<()>().await;
    }));
    within(fixture.soon(), "the work begins", began.wait()).await;
    there.revoke(fixture.group(), "b").await.unwrap();
    let error = within(fixture.lapse(), "the work is stopped", run).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Lost, Some(&key(&fixture, "b"))));
    there.become_free(&["a", "b"]).await;
    assert_eq!(many.acquire().run(|leases| async move { leases.len() }).await.unwrap(), 2);
    there.become_free(&["a", "b"]).await;
}

/// A set whose time is over names the lock that it waited for, and leaves nothing.
pub async fn a_set_that_comes_too_late_leaves_nothing(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = acquire(&set(&there, &["b"])).await;
    let (many, time) = (set(&here, &["a", "b", "c"]), fixture.soon() / 4);
    assert!(answered(|| many.acquire().within(time)).await.unwrap().is_none());
    there.become_free(&["a", "c"]).await;
    let limited = many.clone().with_options(Options::default().with_max_wait(time));
    let error = answered(|| limited.acquire()).await.unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::TimedOut, Some(&key(&fixture, "b"))));
    assert!(error.to_string().contains("had 1 of them"), "{error}");
    there.become_free(&["a", "c"]).await;
    // The call has ended before the store knows that it waits no more.
    let left = || async { there.inspect(fixture.group(), "b").await.is_ok_and(|seen| seen.queue.is_empty()) };
    eventually(fixture.soon(), "it leaves its place", left).await;
    drop(held);
}

/// Lets `call` be polled once, twice, and so on until it ends by itself, beside a holder that leaves; afterwards the set must be free.
async fn cancelled_everywhere<C, F>(fixture: &Fixture, call: C)
where
    C: Fn(MultiLock) -> F,
    F: Future,
{
    let (here, there) = (fixture.client().await, fixture.client().await);
    for holder in [None, Some(&here), Some(&there)] {
        for polls in 1..=ENOUGH {
            let held = match holder {
                Some(client) => Some(acquire(&set(client, &["b"])).await),
                None => None,
            };
            let leaves = async {
                tokio::task::yield_now().await;
                drop(held);
            };
            let call = poll_times(polls, call(set(&here, &["a", "b", "c"])));
            let (ended, ()) = tokio::join!(call, leaves);
            let ended = ended.map(drop).is_some();
            drop(acquire(&set(&there, &["a", "b", "c"])).await);
            there.become_free(&["a", "b", "c"]).await;
            if ended {
                break;
            }
            assert!(polls < ENOUGH, "it never ends");
        }
    }
}

/// `acquire` can be dropped after any poll.
pub async fn a_set_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |many| async move { many.acquire().await.unwrap() }).await;
}

/// `now()` and `within()` can be dropped after any poll.
pub async fn a_limited_set_is_dropped_after_any_poll(fixture: Fixture) {
    cancelled_everywhere(&fixture, |many| async move { many.acquire().now().await.unwrap() }).await;
    let time = fixture.soon();
    cancelled_everywhere(&fixture, |many| async move { many.acquire().within(time).await.unwrap() }).await;
}

/// `run` can be dropped after any poll, also while the work is going on.
pub async fn a_run_under_a_set_is_dropped_after_any_poll(fixture: Fixture) {
    let work = |_| async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    };
    cancelled_everywhere(&fixture, |many| async move { many.acquire().run(work).await.unwrap() }).await;
}

/// Closing a client ends its waits for sets, and its sets.
pub async fn closing_ends_sets_and_waits_for_them(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let held = acquire(&set(&there, &["b"])).await;
    let own = acquire(&set(&here, &["d", "e"])).await;
    let many = set(&here, &["a", "b", "c"]);
    let mut wants = Wants::until_it_waits_for(&many, Owner::new(), "b", &here).await;
    within(fixture.soon(), "close", here.close()).await;
    assert_eq!(wants.outcome(&fixture).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(own.lost().await, (key(&fixture, "d"), LossReason::Closed));
    assert_eq!(own.unlock().await.unwrap(), Unlocked::WasLost);
    there.become_free(&["a", "c", "d", "e"]).await;
    assert!(held.is_valid(), "other clients are not affected");
    drop(held);
    assert_eq!(many.acquire().await.unwrap_err().kind(), ErrorKind::Closed);
}

/// An owner enters the locks of its sets again, singly and in sets; where its wait could close a ring it is told so at once.
pub async fn an_owner_enters_its_set_again(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let (owner, group) = (Owner::new(), fixture.group());
    let own = |names: &[&str]| set(&here, names).owned_by(&owner);
    let outer = acquire(&own(&["b", "d"])).await;
    let locks = here.locks(group.clone()).owned_by(&owner);
    let single = within(fixture.soon(), "a single lock", locks.write("b")).await.unwrap();
    let inner = acquire(&own(&["b"]).read(group.clone(), "d")).await;
    assert_eq!(inner.token(group.clone(), "b"), outer.token(group.clone(), "b"));
    // Beyond the last key: no owner that waits for this set holds that.
    let more = acquire(&own(&["b", "e"])).await;
    let error = own(&["b", "c"]).acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::WouldDeadlock, Some(&key(&fixture, "c"))));
    drop(own(&["a", "c"]).acquire().now().await.unwrap().expect("a try does not wait"));
    drop((single, outer, inner));
    assert!(!there.is_free("b").await, "one of its sets still has it");
    let error = own(&["c"]).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldDeadlock);
    drop(more);
    drop(acquire(&own(&["c"])).await);
    let reading = within(fixture.soon(), "a reader", locks.read("a")).await.unwrap();
    let error = own(&["a", "b"]).acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::WouldDeadlock, Some(&key(&fixture, "a"))));
    drop(reading);
    there.become_free(&["a", "b", "c", "d", "e"]).await;
}

/// Sets that only read share their locks, and keep a writer of one of them out.
pub async fn sets_of_readers_share(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let group = fixture.group();
    let readers = |client: &Client| {
        ["a", "b", "c"].into_iter().fold(client.multi_lock(), |many, name| many.read(group.clone(), name))
    };
    let (one, another) = (acquire(&readers(&here)).await, acquire(&readers(&there)).await);
    assert!(one.is_valid() && another.is_valid());
    let mixed = set(&here, &["d"]).read(group.clone(), "a").write(group.clone(), "b");
    assert!(mixed.acquire().now().await.unwrap().is_none(), "a writer got in beside readers");
    let mut wants = Wants::until_it_waits_for(&mixed, Owner::new(), "b", &there).await;
    drop((one, another));
    let guards = wants.outcome(&fixture).await.unwrap();
    assert!(there.lock(group, "a").read().now().await.unwrap().is_some(), "a reader of a set shares");
    drop(guards);
}

/// A set of a hundred locks is granted, renewed and given back.
pub async fn a_set_of_a_hundred(fixture: Fixture) {
    // A hundred renewals must be answered within one lease, on a busy machine too.
    let lease = fixture.lease() * 3;
    let options = Options::default().with_lease(lease);
    let (here, there) = (fixture.client_with(options).await, fixture.client().await);
    let names: Vec<_> = (0..100).map(|number| format!("name {number}")).collect();
    let all = |client: &Client| {
        names.iter().fold(client.multi_lock(), |many, name| many.write(fixture.group(), name))
    };
    let guards = acquire(&all(&here)).await;
    assert_eq!(guards.len(), 100);
    tokio::time::sleep(lease.mul_f64(1.2)).await;
    assert!(guards.is_valid(), "a lock of a large set was not renewed: {:?}", guards.loss());
    assert!(all(&there).acquire().now().await.unwrap().is_none());
    let later = tokio::spawn(all(&there).acquire());
    assert_eq!(guards.unlock().await.unwrap(), Unlocked::Released);
    let guards = within(fixture.lapse() * 4, "the next one gets in", later).await.unwrap().unwrap();
    assert_eq!(guards.unlock().await.unwrap(), Unlocked::Released);
}

/// The guards of a set can be taken apart, given back one by one, and put together again.
pub async fn guards_leave_a_set_and_form_one(fixture: Fixture) {
    let (here, there) = (fixture.client().await, fixture.client().await);
    let mut guards = acquire(&set(&here, &["c", "a", "b"])).await.into_guards();
    assert_eq!(guards.iter().map(|guard| guard.key().name()).collect::<Vec<_>>(), ["a", "b", "c"]);
    drop(guards.remove(1));
    there.become_free(&["b"]).await;
    guards
        .push(within(fixture.soon(), "another lock", here.lock(fixture.group(), "0").write()).await.unwrap());
    let again: Guards = guards.into_iter().collect();
    assert!(again.is_valid() && again.get(fixture.group(), "0").is_some() && again.len() == 3);
    assert_eq!(again.unlock().await.unwrap(), Unlocked::Released);
    there.become_free(&["0", "a", "c"]).await;
}
