//! An account, and the reports of a worker about its transfers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

/// One account: one row, which is always written as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) balance: i64,
    /// The number of moves that the account has seen, by worker.
    pub(crate) moves: BTreeMap<i32, i64>,
    /// A transfer that was begun here and may not have reached the other account.
    pub(crate) owes: Option<Debt>,
    /// The timestamp of the last write: the token of its writer.
    pub(crate) stamp: i64,
}

/// An amount that is still to be paid to another account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    pub(crate) worker: i32,
    pub(crate) to: String,
    pub(crate) amount: i64,
    /// The creditor has been paid when it has counted this many moves of the worker.
    pub(crate) count: i64,
}

impl Account {
    pub(crate) fn count(&self, worker: i32) -> i64 {
        self.moves.get(&worker).copied().unwrap_or(0)
    }

    /// Moves money in, or out if it is negative, and counts it.
    pub(crate) fn book(&mut self, worker: i32, amount: i64) {
        self.balance += amount;
        *self.moves.entry(worker).or_default() += 1;
    }
}

/// Money that goes from one account to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) amount: i64,
}

/// A message of a worker to its parent, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The beginning of a transfer, told just before the first write.
    Begins(Transfer),
    /// The transfer that the worker began last is done, and the worker held both locks until then.
    Done,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begins(Transfer { from, to, amount }) => write!(f, "begins {from} {to} {amount}"),
            Self::Done => f.write_str("done"),
        }
    }
}

impl FromStr for Report {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["begins", from, to, amount] => {
                let amount = amount.parse().with_context(|| format!("a worker said {line:?}"))?;
                Ok(Self::Begins(Transfer { from: from.to_owned(), to: to.to_owned(), amount }))
            }
            ["done"] => Ok(Self::Done),
            _ => bail!("a worker said {line:?}"),
        }
    }
}
