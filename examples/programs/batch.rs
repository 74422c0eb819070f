//! Takes a fee from several accounts at once: under the locks of all of them, or not at all.
//! If one of the accounts is busy for too long, it says who is at it, and the batch is tried again later.
#![allow(clippy::disallowed_methods, reason = "a program's tasks and pauses are its own")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ylock::Ylock;

type Balances = Mutex<BTreeMap<String, i64>>;

/// Returns whether the fee was taken; if not, no account has changed.
async fn take_fee(ylock: &Ylock, balances: &Balances, accounts: &[&str], fee: i64) -> ylock::Result<bool> {
    let set = accounts.iter().fold(ylock.multi_lock(), |set, account| set.write("accounts", *account));
    let taken = set.acquire().within(Duration::from_millis(300)).run(|leases| async move {
        for account in accounts {
            println!("  {account} pays {fee}, under token {:?}", leases.token("accounts", *account));
            let mut balances = balances.lock().unwrap_or_else(PoisonError::into_inner);
            *balances.entry((*account).to_owned()).or_default() -= fee;
        }
    });
    if taken.await?.is_some() {
        return Ok(true);
    }
    for account in accounts {
        for holder in ylock.inspect("accounts", *account).await?.holders {
            println!(
                "  {account} is busy: {} has held it for {:?}",
                holder.client,
                holder.since.elapsed().unwrap_or_default()
            );
        }
    }
    Ok(false)
}

/// Tries a few times; `false` means that the batch is left for another day.
async fn take_fee_patiently(
    ylock: &Ylock,
    balances: &Balances,
    accounts: &[&str],
    fee: i64,
) -> ylock::Result<bool> {
    for attempt in 1..=3 {
        println!("attempt {attempt}");
        match take_fee(ylock, balances, accounts, fee).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            // Nothing was acquired, so nothing has changed. After a loss (`Lost`) a part may be done: that is for a human.
            Err(error) if error.kind() == ylock::ErrorKind::Unavailable => eprintln!("  {error:#}"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(false)
}

#[tokio::main]
async fn main() -> ylock::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    let ylock = ylock::connect(&url).await?;
    let balances = Balances::default();
    let accounts = ["bob", "alice", "carol"];

    // Another program edits carol's account for a while.
    let carol = ylock.lock("accounts", "carol").write().await?;
    let editing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        drop(carol);
    });

    if take_fee_patiently(&ylock, &balances, &accounts, 5).await? {
        println!("the fee was taken: {:?}", balances.lock().unwrap_or_else(PoisonError::into_inner));
    } else {
        println!("the accounts are too busy, try again tomorrow");
    }
    editing.await.expect("the task did not panic");
    ylock.close().await;
    Ok(())
}
