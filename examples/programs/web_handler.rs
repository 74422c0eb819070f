//! A handler of a web service that saves a user's profile, one request per user at a time.
//! It answers 200 when it has saved, 409 when another request edits the same user, and 503 when the lock store is away.
#![allow(clippy::disallowed_methods, reason = "a program's tasks and pauses are its own")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ylock::layer::Acquisition;
use ylock::{Error, ErrorKind, Layer, Locks};

/// Stands for the database.
#[derive(Default)]
struct Profiles(Mutex<HashMap<u64, String>>);

impl Profiles {
    async fn store(&self, id: u64, text: &str) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, text.to_owned());
    }
}

async fn save(users: &Locks, id: u64, profiles: &Profiles, text: &str) -> u16 {
    let saved =
        users.write(id).within(Duration::from_millis(200)).run(|_lease| profiles.store(id, text)).await;
    match saved {
        Ok(Some(())) => 200,
        Ok(None) => 409,
        Err(error) => {
            eprintln!("user {id} is not saved: {error:#}");
            match error.kind() {
                ErrorKind::TimedOut => 409, // only if the URL has the option `wait`
                ErrorKind::Unavailable | ErrorKind::Indeterminate | ErrorKind::Lost | ErrorKind::Closed => {
                    503
                }
                _ => 500,
            }
        }
    }
}

/// Plays a store that does not answer: `memory://` always does.
#[derive(Clone, Debug, Default)]
struct Outage(Arc<AtomicBool>);

impl Layer for Outage {
    fn acquiring(&self, _: &Acquisition) -> ylock::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Unavailable, "the store does not answer"));
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ylock::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory://".to_owned());
    let outage = Outage::default();
    let ylock = ylock::connect(&url).await?.layer(outage.clone());
    let (users, profiles) = (ylock.locks("users"), Profiles::default());

    println!("user 7 is free: {}", save(&users, 7, &profiles, "likes tea").await);

    let edited_elsewhere = users.write(7).await?;
    println!("another request edits user 7: {}", save(&users, 7, &profiles, "likes coffee").await);
    println!("user 8 at the same time: {}", save(&users, 8, &profiles, "likes milk").await);
    drop(edited_elsewhere);

    outage.0.store(true, Ordering::Relaxed);
    println!("the store is away: {}", save(&users, 7, &profiles, "likes water").await);

    ylock.close().await;
    Ok(())
}
