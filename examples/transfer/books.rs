//! The accounts: one file each, with a number in it. Nothing here keeps two processes apart.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

/// What every account begins with.
const COINS: i64 = 100;
/// The time between reading an account and writing it: long enough for another process to come in between, if it may.
const WORK: Duration = Duration::from_micros(300);

/// The accounts of a folder.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    folder: PathBuf,
    accounts: u32,
}

impl Books {
    /// Opens new accounts in a new folder.
    pub(crate) fn open(folder: &Path, accounts: u32) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let books = Self::at(folder, accounts);
        (0..accounts).try_for_each(|account| std::fs::write(books.file(account), COINS.to_string()))?;
        Ok(books)
    }

    /// Returns the accounts that another process has opened.
    pub(crate) fn at(folder: &Path, accounts: u32) -> Self {
        Self { folder: folder.to_owned(), accounts }
    }

    /// Returns the number of accounts; their names are the numbers below it.
    pub(crate) fn accounts(&self) -> u32 {
        self.accounts
    }

    /// Returns two accounts by chance.
    pub(crate) fn any_two(&self) -> (u32, u32) {
        let from = rand::random_range(0..self.accounts);
        (from, (from + rand::random_range(1..self.accounts)) % self.accounts)
    }

    /// Returns the account that another one names by what is in it.
    pub(crate) fn named_by(&self, account: u32) -> u32 {
        let others = i64::from(self.accounts) - 1;
        let step = self.read(account).rem_euclid(others) + 1;
        (account + u32::try_from(step).expect("a step is smaller than the number of accounts"))
            % self.accounts
    }

    /// Moves a coin from one account to another.
    pub(crate) async fn move_one(&self, from: u32, to: u32) {
        let (giver, taker) = (self.read(from), self.read(to));
        tokio::time::sleep(WORK).await;
        self.write(from, giver - 1);
        self.write(to, taker + 1);
    }

    /// Returns the sum of all accounts, read one after the other.
    pub(crate) async fn slow_sum(&self) -> i64 {
        let mut sum = 0;
        for account in 0..self.accounts {
            sum += self.read(account);
            tokio::time::sleep(WORK / 10).await;
        }
        sum
    }

    /// Returns the sum of all accounts.
    pub(crate) fn sum(&self) -> i64 {
        (0..self.accounts).map(|account| self.read(account)).sum()
    }

    /// Returns the sum that they must have.
    pub(crate) fn right_sum(&self) -> i64 {
        i64::from(self.accounts) * COINS
    }

    /// Returns what an account has. One that is just being written by another process may be empty: without locks, that is seen.
    fn read(&self, account: u32) -> i64 {
        let text = std::fs::read_to_string(self.file(account)).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    fn write(&self, account: u32, coins: i64) {
        // A disk that is full shows as a sum that is wrong.
        drop(std::fs::write(self.file(account), coins.to_string()));
    }

    fn file(&self, account: u32) -> PathBuf {
        self.folder.join(format!("account-{account:03}"))
    }
}
