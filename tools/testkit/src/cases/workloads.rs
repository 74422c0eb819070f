//! Whole workloads over many locks, whose books must be right at every moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::task::yield_now;
use ylock_core::{Guards, Leases, MultiLock};

use crate::{Client, FencedRegister, Fixture, short_or_long};

/// One account for each name, which refuses a token that is too old.
struct Books {
    accounts: Vec<FencedRegister>,
    readings: AtomicUsize,
}

impl Books {
    fn of(accounts: usize) -> Arc<Self> {
        let accounts = (0..accounts).map(|_| FencedRegister::default()).collect();
        Arc::new(Self { accounts, readings: AtomicUsize::new(0) })
    }

    fn read(&self, leases: &Leases, account: usize) -> u64 {
        self.accounts[account]
            .read(token(leases, account))
            .expect("a holder reads with a token that is new enough")
    }

    /// Writes under the lock of this account. The engines that give no token are not refused.
    fn write(&self, leases: &Leases, account: usize, value: u64) {
        self.accounts[account]
            .write(token(leases, account), value)
            .expect("a holder writes with a token that is new enough");
    }

    /// Reads all accounts, with pauses in which a writer that got in beside would be seen.
    async fn read_all(&self, leases: &Leases) -> Vec<u64> {
        let mut seen = Vec::with_capacity(self.accounts.len());
        for account in 0..self.accounts.len() {
            if account % 8 == 0 {
                yield_now().await;
            }
            seen.push(self.read(leases, account));
        }
        self.readings.fetch_add(1, Ordering::Relaxed);
        seen
    }
}

fn token(leases: &Leases, account: usize) -> Option<ylock_core::Token> {
    leases.iter().find(|lease| lease.key().name() == name(account)).and_then(|lease| lease.token())
}

fn name(account: usize) -> String {
    format!("account {account:02}")
}

fn reads_all(client: &Client, accounts: usize) -> MultiLock {
    (0..accounts)
        .fold(client.multi_lock(), |many, account| many.read(client.fixture().group(), name(account)))
}

fn writes(client: &Client, accounts: impl IntoIterator<Item = usize>) -> MultiLock {
    let group = client.fixture().group();
    accounts
        .into_iter()
        .fold(client.multi_lock(), |many, account| many.write(Arc::clone(&group), name(account)))
}

async fn granted(many: MultiLock) -> Guards {
    many.acquire().await.expect("a set")
}

/// Ten accounts grow by the same amount each time, and all readers see them equal.
pub async fn equal_increments_of_10_accounts(fixture: Fixture) {
    equal_increments(fixture, 10).await;
}

/// Thirty accounts grow by the same amount each time, and all readers see them equal.
pub async fn equal_increments_of_30_accounts(fixture: Fixture) {
    equal_increments(fixture, 30).await;
}

async fn equal_increments(fixture: Fixture, accounts: usize) {
    const CLIENTS: usize = 4;
    let clients = fixture.clients(CLIENTS).await;
    let books = Books::of(accounts);
    let rounds = (short_or_long(fixture.harness().rounds() / 25, fixture.harness().rounds())).max(5);
    let tasks = clients.iter().map(|client| {
        let (client, books) = (client.clone(), Arc::clone(&books));
        tokio::spawn(async move {
            for round in 0..rounds {
                if round % 3 == 2 {
                    let guards = granted(reads_all(&client, accounts)).await;
                    let seen = books.read_all(&guards).await;
                    assert!(seen.iter().all(|value| *value == seen[0]), "a reader saw a part: {seen:?}");
                    continue;
                }
                let guards = granted(writes(&client, 0..accounts)).await;
                let seen = books.read_all(&guards).await;
                yield_now().await;
                for (account, value) in seen.into_iter().enumerate() {
                    books.write(&guards, account, value + 1);
                }
            }
        })
    });
    finish(&fixture, tasks.collect()).await;
    let guards = granted(reads_all(&clients[0], accounts)).await;
    let seen = books.read_all(&guards).await;
    let writes = (0..rounds).filter(|round| round % 3 != 2).count() * CLIENTS;
    assert_eq!(seen, vec![writes as u64; accounts], "an increment was lost");
}

/// Four clients move money between thirty accounts, whose sum is zero whenever all of them are read.
pub async fn a_sum_stays_zero_with_4_clients(fixture: Fixture) {
    zero_sum(fixture, 4).await;
}

/// Thirty-two clients move money between thirty accounts, whose sum is zero whenever all of them are read.
pub async fn a_sum_stays_zero_with_32_clients(fixture: Fixture) {
    zero_sum(fixture, 32).await;
}

async fn zero_sum(fixture: Fixture, clients: usize) {
    const ACCOUNTS: usize = 30;
    let rounds = fixture.harness().rounds();
    let transfers = short_or_long(rounds / 2, rounds * 4) / clients;
    let (clients, books) = (fixture.clients(clients).await, Books::of(ACCOUNTS));
    let tasks = clients.iter().enumerate().map(|(number, client)| {
        let (client, books) = (client.clone(), Arc::clone(&books));
        tokio::spawn(async move {
            // One in ten at a time, while the others move money: if all did at once, nothing would happen but that each waits for thirty locks.
            let reads = |transfer| (transfer + number) % 10 == 0;
            for transfer in 0..transfers {
                move_money(&client, &books).await;
                if reads(transfer) {
                    expect_zero(&client, &books).await;
                }
            }
            (0..transfers).filter(|transfer| reads(*transfer)).count()
        })
    });
    let readings: usize = finish(&fixture, tasks.collect()).await.into_iter().sum();
    expect_zero(&clients[0], &books).await;
    assert!(readings > 0, "the books are read while money is moved");
    assert_eq!(books.readings.load(Ordering::Relaxed), readings + 1);
}

/// Moves one coin from one account to another. An account below zero is a very large number; only the sum counts.
async fn move_money(client: &Client, books: &Books) {
    let accounts = books.accounts.len();
    let from = rand::random_range(0..accounts);
    let to = (from + rand::random_range(1..accounts)) % accounts;
    let guards = granted(writes(client, [from, to])).await;
    let (giver, taker) = (books.read(&guards, from), books.read(&guards, to));
    yield_now().await;
    books.write(&guards, from, giver.wrapping_sub(1));
    yield_now().await;
    books.write(&guards, to, taker.wrapping_add(1));
}

async fn expect_zero(client: &Client, books: &Books) {
    let guards = granted(reads_all(client, books.accounts.len())).await;
    let seen = books.read_all(&guards).await;
    let sum = seen.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value));
    assert_eq!(sum, 0, "money was lost, or a part of a transfer was seen: {seen:?}");
}

/// Waits for all tasks, each of which must come to an end.
async fn finish<T>(fixture: &Fixture, tasks: Vec<tokio::task::JoinHandle<T>>) -> Vec<T> {
    let ended = fixture.to_its_end("all come to an end", join_all(tasks)).await;
    ended.into_iter().map(|ended| ended.expect("no panic")).collect()
}
