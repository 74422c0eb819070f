//! Moves money: the work of a worker under two locks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use ylock::{ErrorKind, Lease, Locks, Ylock};

use crate::account::{Account, Debt, Report, Transfer};
use crate::bank::Bank;
use crate::settings::Settings;

/// The balance of every account in the beginning.
pub(crate) const FIRST_BALANCE: i64 = 1000;
/// The stamp of the first write: below every token and every clock.
const FIRST_STAMP: i64 = 1;

/// Runs a worker: transfers money until the parent closes the pipe.
pub(crate) async fn work(settings: &Settings, number: i32) -> Result<()> {
    let teller = Teller::connect(settings, number).await?;
    let stop = end_of_stdin();
    while !stop.load(Ordering::Relaxed) {
        teller.transfer_something().await?;
    }
    teller.close().await;
    Ok(())
}

/// Returns a flag that becomes true when the parent closes the pipe, or dies.
fn end_of_stdin() -> Arc<AtomicBool> {
    let end = Arc::new(AtomicBool::new(false));
    let reached = Arc::clone(&end);
    std::thread::spawn(move || {
        // Nothing is ever sent, so an error and the end are the same here.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        reached.store(true, Ordering::Relaxed);
    });
    end
}

/// A worker's connections, with which it moves money.
#[derive(Debug)]
pub(crate) struct Teller {
    number: i32,
    bank: Bank,
    ylock: Ylock,
    /// The locks of the accounts; `None` in the control arm.
    locks: Option<Locks>,
    names: Vec<String>,
}

/// The outcome of a transfer.
enum Outcome {
    Moved,
    /// The account owes something that must be settled first.
    Owes(Debt),
}

/// The timestamp of a write: the token of the account's lock, or without locks the time.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    number: i64,
    is_token: bool,
}

impl Teller {
    pub(crate) async fn connect(settings: &Settings, number: i32) -> Result<Self> {
        let ylock = ylock::connect(&settings.ylock_url()).await.map_err(explain)?;
        let locks = ylock.locks(format!("ledger {}", settings.run));
        let bank = Bank::connect(&settings.store, &settings.run).await?;
        let locks = (!settings.no_lock).then_some(locks);
        Ok(Self { number, bank, ylock, locks, names: settings.names().collect() })
    }

    pub(crate) async fn open_accounts(&self) -> Result<()> {
        for name in &self.names {
            let account = Account { balance: FIRST_BALANCE, ..Account::default() };
            self.bank.write(name, &account, FIRST_STAMP).await?;
        }
        Ok(())
    }

    /// Makes one transfer between two accounts at random.
    async fn transfer_something(&self) -> Result<()> {
        let transfer = self.something();
        let outcome = self.with_both(&transfer.from, &transfer.to, async |from, to| {
            self.transfer(&transfer, from, to).await
        });
        // An error leaves in doubt what was written. So this worker ends, and another worker takes its place.
        match outcome.await? {
            Outcome::Moved => println!("{}", Report::Done),
            Outcome::Owes(debt) => self.settle(&transfer.from, &debt).await?,
        }
        Ok(())
    }

    fn something(&self) -> Transfer {
        let from = rand::random_range(0..self.names.len());
        let to = (from + rand::random_range(1..self.names.len())) % self.names.len();
        let amount = rand::random_range(1..=100);
        Transfer { from: self.names[from].clone(), to: self.names[to].clone(), amount }
    }

    /// Does `work` under the locks of two accounts.
    ///
    /// Every worker takes two locks in the order of their names: in any order, two workers might wait for each other.
    async fn with_both<T>(
        &self,
        from: &str,
        to: &str,
        work: impl AsyncFnOnce(Stamp, Stamp) -> Result<T>,
    ) -> Result<T> {
        let Some(locks) = &self.locks else { return work(Stamp::now(), Stamp::now()).await };
        let (first, second) = if from < to { (from, to) } else { (to, from) };
        let result = locks.write(first).run(|outer| async move {
            locks
                .write(second)
                .run(|inner| async move {
                    let (from, to) = if first == from { (outer, inner) } else { (inner, outer) };
                    work(Stamp::of(&from)?, Stamp::of(&to)?).await
                })
                .await?
        });
        result.await?
    }

    /// Reads, computes and writes. Right only while no other worker does so with one of the two accounts.
    async fn transfer(&self, transfer: &Transfer, from: Stamp, to: Stamp) -> Result<Outcome> {
        let mut debtor = self.read(&transfer.from, from).await?;
        let mut creditor = self.read(&transfer.to, to).await?;
        if let Some(debt) = debtor.owes {
            return Ok(Outcome::Owes(debt));
        }
        println!("{}", Report::Begins(transfer.clone()));
        let Transfer { amount, .. } = *transfer;
        let count = creditor.count(self.number) + 1;
        debtor.book(self.number, -amount);
        debtor.owes = Some(Debt { worker: self.number, to: transfer.to.clone(), amount, count });
        self.bank.write(&transfer.from, &debtor, from.number).await?;
        creditor.book(self.number, amount);
        self.bank.write(&transfer.to, &creditor, to.number).await?;
        self.bank.settle(&transfer.from, from.number).await?;
        Ok(Outcome::Moved)
    }

    /// Completes a transfer whose worker died.
    async fn settle(&self, name: &str, debt: &Debt) -> Result<()> {
        let pay = async |from: Stamp, to: Stamp| {
            // Another worker may have settled it while this worker waited for the locks.
            if self.read(name, from).await?.owes.as_ref() != Some(debt) {
                return Ok(());
            }
            let mut creditor = self.read(&debt.to, to).await?;
            if creditor.count(debt.worker) < debt.count {
                creditor.book(debt.worker, debt.amount);
                self.bank.write(&debt.to, &creditor, to.number).await?;
            }
            self.bank.settle(name, from.number).await
        };
        self.with_both(name, &debt.to, pay).await
    }

    /// Reads an account that is about to be written under this stamp.
    async fn read(&self, name: &str, stamp: Stamp) -> Result<Account> {
        let account = self.bank.read(name).await?;
        // The rule of the token for reads: a worker whose token is smaller than the last writer's is a former holder.
        ensure!(
            !stamp.is_token || account.stamp <= stamp.number,
            "{name} has been written under a later token"
        );
        Ok(account)
    }

    /// Settles the debts that are left when all workers have ended, and returns their number. Waits until the leases of killed
    /// workers have passed.
    pub(crate) async fn settle_all(&self) -> Result<usize> {
        let mut count = 0;
        for name in &self.names {
            let guard = match &self.locks {
                Some(locks) => Some(locks.read(&**name).await?),
                None => None,
            };
            let debt = self.bank.read(name).await?.owes;
            drop(guard);
            if let Some(debt) = debt {
                self.settle(name, &debt).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    pub(crate) async fn read_all(&self) -> Result<BTreeMap<String, Account>> {
        let mut accounts = BTreeMap::new();
        for name in &self.names {
            accounts.insert(name.clone(), self.bank.read(name).await?);
        }
        Ok(accounts)
    }

    /// Removes the accounts. For the parent, when all workers have ended.
    pub(crate) fn close_accounts(&self) {
        self.bank.clear();
    }

    pub(crate) async fn close(&self) {
        self.ylock.close().await;
    }
}

impl Stamp {
    fn of(lease: &Lease) -> Result<Self> {
        let token = lease.token().context("the engine gives no fencing token")?;
        Ok(Self { number: token.get(), is_token: true })
    }

    fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { number: i64::try_from(now.as_micros()).unwrap_or(i64::MAX), is_token: false }
    }
}

fn explain(error: ylock::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Unavailable => {
            anyhow!(
                "{error}\nthe store does not answer: start a Cassandra with `cargo xtask up`, or name another store with --store"
            )
        }
        _ => error.into(),
    }
}
