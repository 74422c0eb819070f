//! An example in which many processes move money between accounts, and only the locks keep the books right.
//!
//! ```text
//! cargo run -p ylock-ledger --example ledger                            # with locks: nothing is lost
//! cargo run -p ylock-ledger --example ledger -- --no-lock               # without: much is lost
//! cargo run -p ylock-ledger --example ledger -- --kill                  # with locks, and a kill -9 every second
//!
//! cargo xtask up                                                        # a three-node Cassandra
//! cargo run -p ylock-ledger --example ledger --features cassandra -- --store cassandra://127.0.0.1/ylock_ledger?schema=create
//! ```
//!
//! An account is one file, or one row of Cassandra: its balance, and how many moves of which worker it has seen. A worker reads two accounts,
//! computes, and writes them back, with no condition and no transaction: two workers at once would overwrite each
//! other's result. So the worker holds the locks of both accounts meanwhile ([`teller`]).
//!
//! **Fencing.** The token of an account's lock is the timestamp of its write. The store keeps the write with the largest
//! timestamp, so a write of a former holder, however late it arrives, loses against the write of a later holder.
//!
//! **A worker killed between its writes.** The first write debits an account *and* notes in the same row what the account owes
//! to which other account; the second write credits the other account; the third write deletes the note. The next worker that
//! takes money from an account that owes some settles this debt first: the creditor's count of the killed worker's moves tells
//! whether the creditor has been paid.
//!
//! **How the books are checked.** Each worker announces a transfer before its first write and acknowledges it after the last,
//! with the locks still held. The parent adds these reports up. In the end every account must have counted, of every worker,
//! the moves that the worker acknowledged; a count that is smaller is a lost update ([`audit`]). The one transfer that a killed
//! worker has announced and not acknowledged may have happened or not, but not in part, and the counts tell which.

#![allow(clippy::disallowed_methods, reason = "an example tells the time and spawns like any program")]

mod account;
mod audit;
mod bank;
mod office;
mod settings;
mod teller;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::audit::{Audit, Verdict};
use crate::office::Office;
use crate::settings::Settings;
use crate::teller::Teller;

#[tokio::main]
async fn main() -> ExitCode {
    let settings = Settings::parse();
    let result = match settings.worker {
        Some(number) => teller::work(&settings, number).await.map(|()| ExitCode::SUCCESS),
        None => run(settings).await,
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Runs the parent: opens the accounts, lets the workers work, and checks the result.
async fn run(settings: Settings) -> Result<ExitCode> {
    let teller = Teller::connect(&settings, 0).await?;
    teller.open_accounts().await?;
    let mut office = Office::open(settings.clone());
    office.work().await?;
    let half_done = teller.settle_all().await?;
    let audit = Audit::new(office.books, teller.read_all().await?);
    println!("{audit}");
    if settings.kill {
        println!(
            "  workers killed       {}; the audit completed {half_done} half-done transfers",
            office.killed
        );
    }
    teller.close_accounts();
    teller.close().await;
    Ok(judge(&audit.verdict(), settings.no_lock))
}

fn judge(verdict: &Verdict, no_lock: bool) -> ExitCode {
    let (good, text) = match (verdict, no_lock) {
        (Verdict::Nothing, _) => (false, "FAILED: no transfer was acknowledged, so nothing was tested"),
        (Verdict::Right, false) => (true, "OK: the locks kept the books right"),
        (Verdict::Wrong, false) => (false, "FAILED: the books are wrong in spite of the locks"),
        (Verdict::Wrong, true) => (true, "OK: this is what happens without locks"),
        (Verdict::Right, true) => (false, "FAILED: without locks nothing went wrong, so this proves nothing"),
    };
    println!("{text}");
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
