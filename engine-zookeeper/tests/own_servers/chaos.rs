//! Clients whose lines break at random, on an ensemble whose leader is killed: no two conflicting holders are inside at once, tokens grow,
//! every client gets in, and nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ylock_core::{Guard, Lease, Lock, Mode, Owner, Ylock};
use ylock_testkit::{FencedRegister, short_or_long};

use super::own_server::OwnEnsemble;
use super::server::proxy::{Link, Proxy};
use super::{LOCK, SESSION, client, contenders, until, within};

const CLIENTS: usize = 5;
const TASKS: usize = 2;
/// The time in which one leader is killed.
const ROUND: Duration = Duration::from_secs(30);

/// The holders that are inside, and what they saw.
#[derive(Default)]
struct Oracle {
    inside: Mutex<Vec<(Owner, Mode, Lease)>>,
    register: FencedRegister,
    entered: AtomicUsize,
    writes: AtomicU64,
}

impl Oracle {
    /// Lets a holder in: no other that conflicts is valid at this moment, unless this one is not valid either.
    fn enter(&self, guard: &Guard) {
        let mut inside = self.inside.lock();
        for (owner, mode, other) in inside.iter() {
            let conflict = guard.mode().conflicts_with(*mode) && other.is_valid();
            assert!(!(conflict && guard.is_valid()), "{owner} is inside, and {} enters", guard.owner());
        }
        inside.push((guard.owner(), guard.mode(), guard.lease()));
        self.entered.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, guard: &Guard) {
        self.inside.lock().retain(|(owner, ..)| *owner != guard.owner());
    }

    /// Works as a holder: its token is accepted for as long as its lock is valid.
    fn work(&self, guard: &Guard) {
        let read = self.register.read(guard.token());
        let Ok(value) = read else {
            assert!(!guard.is_valid(), "a holder was refused as stale");
            return;
        };
        if guard.mode() == Mode::Write && self.register.write(guard.token(), value + 1).is_ok() {
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn visit(lock: &Lock, mode: Mode, oracle: &Oracle) {
    let acquired = if mode == Mode::Write { lock.write().await } else { lock.read().await };
    // The servers may have been away for a lease.
    let Ok(guard) = acquired else { return };
    oracle.enter(&guard);
    oracle.work(&guard);
    tokio::time::sleep(Duration::from_millis(2)).await;
    oracle.work(&guard);
    oracle.leave(&guard);
    drop(guard.unlock().await);
}

/// A number below `most`, as random as it needs to be.
fn chance(most: u64) -> u64 {
    u64::from_be_bytes(Owner::new().to_bytes()[..8].try_into().unwrap()) % most
}

async fn break_lines(proxies: Vec<Proxy>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::SeqCst) {
        let proxy = &proxies[chance(proxies.len() as u64) as usize];
        let line = [Link::Cut, Link::Dead, Link::Deaf][chance(3) as usize];
        // Now and then for longer than a session.
        let time = if chance(4) == 0 { SESSION * 3 / 2 } else { Duration::from_millis(chance(600)) };
        proxy.set(line);
        let back = proxy.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            back.set(Link::Cut);
            back.set(Link::Open);
        });
        tokio::time::sleep(Duration::from_millis(chance(700))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs zookeeper: run `cargo xtask test`"]
async fn broken_lines_and_a_killed_leader_let_nobody_in_beside_anybody() {
    let mut ensemble = OwnEnsemble::start(&[]).await;
    let (oracle, stop) = (Arc::new(Oracle::default()), Arc::new(AtomicBool::new(false)));
    let (mut clients, mut proxies, mut tasks): (Vec<Ylock>, Vec<Proxy>, Vec<_>) = Default::default();
    for _ in 0..CLIENTS {
        let proxy = Proxy::before(&ensemble.hosts()).await;
        clients.push(client(proxy.hosts()).await);
        proxies.push(proxy);
    }
    for number in 0..CLIENTS * TASKS {
        let lock = clients[number % CLIENTS].lock("users", "alice");
        let (oracle, stop) = (Arc::clone(&oracle), Arc::clone(&stop));
        tasks.push(tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let mode = if chance(3) == 0 { Mode::Read } else { Mode::Write };
                visit(&lock, mode, &oracle).await;
            }
        }));
    }
    let breaking = tokio::spawn(break_lines(proxies.clone(), Arc::clone(&stop)));
    // Half a minute, or five.
    for _ in 0..short_or_long(1, 10) {
        let since = Instant::now();
        tokio::time::sleep(ROUND / 2).await;
        let leader = ensemble.leader().await;
        ensemble.0[leader].kill();
        tokio::time::sleep(Duration::from_secs(2)).await;
        ensemble.0[leader].start_again().await;
        tokio::time::sleep(ROUND.saturating_sub(since.elapsed())).await;
    }
    stop.store(true, Ordering::SeqCst);
    breaking.await.unwrap();
    for task in tasks {
        within("the task ends", task).await.unwrap();
    }
    tokio::time::sleep(SESSION * 3 / 2).await;
    proxies.iter().for_each(|proxy| proxy.set(Link::Open));
    for client in &clients {
        drop(within("every client gets in", client.locks("users").write("alice")).await.unwrap());
    }
    until("nothing is left", async || contenders(&ensemble.hosts(), LOCK).await.is_empty()).await;
    let (entered, writes) = (oracle.entered.load(Ordering::SeqCst), oracle.writes.load(Ordering::SeqCst));
    println!("entered {entered} times, wrote {writes} times");
    assert!(entered > 20, "{entered}");
    let last = clients[0].locks("users").write("alice").await.unwrap();
    assert_eq!(oracle.register.read(last.token()), Ok(writes), "no update is lost");
}
