//! The check: compares the moves that the workers acknowledged with those that the accounts show.

use std::collections::BTreeMap;
use std::fmt;

use crate::account::{Account, Report, Transfer};
use crate::teller::FIRST_BALANCE;

/// The accounts as they must be, by the reports of the workers.
#[derive(Debug)]
pub(crate) struct Books {
    accounts: BTreeMap<String, Account>,
    /// Transfers that were begun and not acknowledged, by worker.
    in_doubt: BTreeMap<i32, Transfer>,
    pub(crate) acknowledged: u64,
}

impl Books {
    pub(crate) fn open(names: impl Iterator<Item = String>) -> Self {
        let account = Account { balance: FIRST_BALANCE, ..Account::default() };
        let accounts = names.map(|name| (name, account.clone())).collect();
        Self { accounts, in_doubt: BTreeMap::new(), acknowledged: 0 }
    }

    pub(crate) fn note(&mut self, worker: i32, report: Report) {
        match report {
            Report::Begins(transfer) => {
                self.in_doubt.insert(worker, transfer);
            }
            Report::Done => {
                if let Some(transfer) = self.in_doubt.remove(&worker) {
                    self.book(worker, &transfer);
                    self.acknowledged += 1;
                }
            }
        }
    }

    fn book(&mut self, worker: i32, transfer: &Transfer) {
        for (name, amount) in [(&transfer.from, -transfer.amount), (&transfer.to, transfer.amount)] {
            if let Some(account) = self.accounts.get_mut(name) {
                account.book(worker, amount);
            }
        }
    }

    /// Books the transfers in doubt that have happened, and returns their number.
    fn resolve(&mut self, found: &BTreeMap<String, Account>) -> usize {
        let happened = |(worker, transfer): &(i32, Transfer)| {
            let count = |accounts: &BTreeMap<String, Account>| accounts[&transfer.from].count(*worker);
            count(found) > count(&self.accounts)
        };
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let happened: Vec<_> = in_doubt.into_iter().filter(happened).collect();
        for (worker, transfer) in &happened {
            self.book(*worker, transfer);
        }
        happened.len()
    }
}

/// The result of the check.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    acknowledged: u64,
    in_doubt: usize,
    happened: usize,
    /// Moves that were acknowledged and that the account has not counted.
    lost: i64,
    /// Moves that the account has counted and no worker has made.
    invented: i64,
    wrong_balances: usize,
    money: i64,
    money_before: i64,
}

/// The verdict on the books.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No transfer was acknowledged.
    Nothing,
    Right,
    Wrong,
}

impl Audit {
    pub(crate) fn new(mut books: Books, found: BTreeMap<String, Account>) -> Self {
        let in_doubt = books.in_doubt.len();
        let mut audit = Self { acknowledged: books.acknowledged, in_doubt, ..Self::default() };
        audit.happened = books.resolve(&found);
        for (name, wanted) in &books.accounts {
            audit.compare(wanted, &found[name]);
        }
        audit
    }

    fn compare(&mut self, wanted: &Account, found: &Account) {
        for worker in
            wanted.moves.keys().chain(found.moves.keys().filter(|worker| !wanted.moves.contains_key(worker)))
        {
            let difference = wanted.count(*worker) - found.count(*worker);
            self.lost += difference.max(0);
            self.invented += (-difference).max(0);
        }
        self.wrong_balances += usize::from(wanted.balance != found.balance);
        self.money += found.balance;
        self.money_before += FIRST_BALANCE;
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let right = self.lost == 0
            && self.invented == 0
            && self.wrong_balances == 0
            && self.money == self.money_before;
        match (self.acknowledged, right) {
            (0, _) => Verdict::Nothing,
            (_, true) => Verdict::Right,
            (_, false) => Verdict::Wrong,
        }
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, in_doubt, happened, lost, invented, wrong_balances, money, money_before } =
            self;
        writeln!(
            f,
            "  transfers            {acknowledged} acknowledged: {} moves of money",
            2 * acknowledged
        )?;
        writeln!(f, "  transfers in doubt   {in_doubt}, of which {happened} have happened")?;
        writeln!(f, "  moves lost           {lost}")?;
        writeln!(f, "  moves invented       {invented}")?;
        write!(f, "  money                {money} of {money_before}; {wrong_balances} accounts are wrong")
    }
}
