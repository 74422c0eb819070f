//! Locks that are found while the work goes on: what to do when one is not free and must not be waited for.
//!
//! Transfers between accounts, four of thirty in any order, and then once more where nine of ten want one of three. Every policy does the same work with the same
//! store, one after the other.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ylock::{Error, ErrorKind, Guard, Ylock};
use ylock_testkit::measure::{Times, ms};

use crate::clients::{CLIENTS, TASKS};

const ACCOUNTS: u32 = 30;
/// Those that nearly all want, where there are such.
const HOT: u32 = 3;
const TAKES: usize = 4;
const WORK: Duration = Duration::from_millis(2);
const TIME: Duration = Duration::from_secs(5);
/// How long one lock is waited for where nothing but that ends a ring of waiters.
const TIMEOUT: Duration = Duration::from_millis(200);
/// The longest pause before such a transfer begins anew, and before one that gave way to an older one does.
const BACK_OFF: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
enum Policy {
    /// All names are known beforehand: a set. No policy can do better.
    Known,
    /// `two_phase_locking`: gives way, and begins anew with all that it has learnt, in order.
    Learns,
    /// Waits for younger ones, gives way to older ones, and keeps its age. Who is how old costs nothing here: the tasks share a table.
    WaitDie,
    /// Waits for a time, in any order.
    TimesOut,
}

const POLICIES: [Policy; 4] = [Policy::Known, Policy::Learns, Policy::WaitDie, Policy::TimesOut];

pub(crate) async fn measure(clients: &[Ylock], group: &str) {
    for (what, hot) in [("any of 30", false), ("9 of 10 want one of 3", true)] {
        for policy in POLICIES {
            let bench = Bench { group, policy, hot, ages: Ages::default(), start: Instant::now() };
            let (mut times, mut anew) = (Times::default(), 0);
            for (one, again) in join_all((0..TASKS).map(|task| bench.task(&clients[task % CLIENTS]))).await {
                times.extend(one);
                anew += again;
            }
            let (done, took) = (times.len(), bench.start.elapsed().as_secs_f64());
            println!(
                "{policy:>9?}, {TAKES} accounts, {what}: {:.0} transfers/s, {:.2} begun anew for each, median {}, of 1000 the slowest {}, slowest {}",
                done as f64 / took,
                f64::from(anew) / done as f64,
                ms(times.quantile(0.5)),
                ms(times.quantile(0.999)),
                ms(times.quantile(1.0)),
            );
        }
    }
}

struct Bench<'a> {
    group: &'a str,
    policy: Policy,
    hot: bool,
    ages: Ages,
    start: Instant,
}

impl Bench<'_> {
    /// Makes transfers until the time is over. Returns how long each took, and how often one began anew.
    async fn task(&self, ylock: &Ylock) -> (Times, u32) {
        let (mut times, mut anew) = (Times::default(), 0);
        while self.start.elapsed() < TIME {
            let (accounts, begun) = (self.accounts(), Instant::now());
            anew += match self.policy {
                Policy::Known => self.known(ylock, &accounts).await,
                Policy::Learns => self.learns(ylock, &accounts).await,
                Policy::WaitDie => self.wait_die(ylock, &accounts).await,
                Policy::TimesOut => self.times_out(ylock, &accounts).await,
            };
            times.push(begun.elapsed());
        }
        (times, anew)
    }

    /// Draws different accounts, in any order.
    fn accounts(&self) -> Vec<u32> {
        let mut accounts = Vec::new();
        if self.hot && rand::random_range(0..10) < 9 {
            accounts.push(rand::random_range(0..HOT));
        }
        while accounts.len() < TAKES {
            let account = rand::random_range(0..ACCOUNTS);
            if !accounts.contains(&account) {
                accounts.push(account);
            }
        }
        // The hot one at any place.
        let last = accounts.len() - 1;
        accounts.swap(0, rand::random_range(0..=last));
        accounts
    }

    async fn known(&self, ylock: &Ylock, accounts: &[u32]) -> u32 {
        let many = accounts.iter().fold(ylock.multi_lock(), |many, account| many.write(self.group, *account));
        let guards = many.acquire().await.expect("granted");
        tokio::time::sleep(WORK).await;
        assert!(guards.unlock().await.expect("released").is_released());
        0
    }

    async fn learns(&self, ylock: &Ylock, accounts: &[u32]) -> u32 {
        let mut runs = 0;
        let grown = ylock.two_phase_locking(|taking| {
            runs += 1;
            async move {
                for account in accounts {
                    taking.write(self.group, *account).await?;
                }
                tokio::time::sleep(WORK).await;
                Ok::<_, Error>(())
            }
        });
        grown.await.expect("granted");
        runs - 1
    }

    async fn wait_die(&self, ylock: &Ylock, accounts: &[u32]) -> u32 {
        let (age, mut anew) = (self.ages.next(), 0);
        loop {
            let guards = self.wait_or_die(ylock, accounts, age).await;
            if guards.len() == accounts.len() {
                tokio::time::sleep(WORK).await;
            }
            self.ages.forget(age);
            let took_all = guards.len() == accounts.len();
            give_back(guards).await;
            if took_all {
                return anew;
            }
            anew += 1;
            back_off().await;
        }
    }

    /// Takes what it may have: fewer than all if an older one is before it.
    async fn wait_or_die(&self, ylock: &Ylock, accounts: &[u32], age: u64) -> Vec<Guard> {
        let (locks, mut guards) = (ylock.locks(self.group), Vec::new());
        for account in accounts {
            let guard = match locks.write(*account).now().await.expect("an answer") {
                Some(guard) => Some(guard),
                None if !self.ages.is_oldest(*account, age) => None,
                None => {
                    self.ages.note(*account, age);
                    // Two may have come in another order than they stand in the table.
                    in_time(locks.write(*account).within(TIMEOUT).await)
                }
            };
            let Some(guard) = guard else { break };
            self.ages.note(*account, age);
            guards.push(guard);
        }
        guards
    }

    async fn times_out(&self, ylock: &Ylock, accounts: &[u32]) -> u32 {
        let (locks, mut anew) = (ylock.locks(self.group), 0);
        loop {
            let mut guards = Vec::new();
            for account in accounts {
                match in_time(locks.write(*account).within(TIMEOUT).await) {
                    Some(guard) => guards.push(guard),
                    None => break,
                }
            }
            let took_all = guards.len() == accounts.len();
            if took_all {
                tokio::time::sleep(WORK).await;
            }
            give_back(guards).await;
            if took_all {
                return anew;
            }
            anew += 1;
            back_off().await;
        }
    }
}

/// Returns the guard, if it came in time. That the store did not answer the last question in time is no more than that.
fn in_time(answer: ylock::Result<Option<Guard>>) -> Option<Guard> {
    answer
        .or_else(|error| if error.kind() == ErrorKind::Unavailable { Ok(None) } else { Err(error) })
        .expect("an answer")
}

async fn back_off() {
    tokio::time::sleep(BACK_OFF.mul_f64(rand::random())).await;
}

async fn give_back(guards: Vec<Guard>) {
    for unlocked in join_all(guards.into_iter().map(Guard::unlock)).await {
        assert!(unlocked.expect("released").is_released());
    }
}

/// Who holds which account or waits for it, by age: the smaller, the older.
#[derive(Default)]
struct Ages {
    next: AtomicU64,
    known: Mutex<HashMap<u32, Vec<u64>>>,
}

impl Ages {
    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, account: u32, age: u64) {
        let mut known = self.known.lock().expect("no panic");
        let ages = known.entry(account).or_default();
        if !ages.contains(&age) {
            ages.push(age);
        }
    }

    /// Returns whether all others there are known, and younger.
    fn is_oldest(&self, account: u32, age: u64) -> bool {
        let known = self.known.lock().expect("no panic");
        known.get(&account).is_some_and(|ages| !ages.is_empty() && ages.iter().all(|other| age < *other))
    }

    fn forget(&self, age: u64) {
        self.known.lock().expect("no panic").values_mut().for_each(|ages| ages.retain(|other| *other != age));
    }
}
