//! What a program would do, done once: what is refused here would be refused there.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::timeout;
use ylock::{Options, Owner, Ylock};

use super::findings::Findings;
use super::words::time;
use crate::exit::{Failed, NOT_FREE, Result};

/// The group of the lock that is taken. It shows in listings while it is held.
const GROUP: &str = "ylock doctor";
/// So many looks tell what a trip to the store takes.
const LOOKS: usize = 20;
/// How long a listing may look for its first lock, in a store with many other keys.
const LISTING: Duration = Duration::from_secs(2);

pub(super) async fn all(ylock: &Ylock, findings: &mut Findings) -> Result<()> {
    // Named, so that it is checked: a store may keep locks for a shorter time than it was asked for.
    let lease = Options::default().with_lease(ylock.options().lease());
    if let Err(error) = ylock.locks(GROUP).try_with_options(lease) {
        findings.wrong("lease", error.into())?;
    }
    match looks(ylock).await {
        Ok((middle, longest)) => findings.say(
            "a look at a lock",
            &format!("takes {} in the middle of {LOOKS}, {} at most", time(middle), time(longest)),
            json!({"median": middle.as_secs_f64(), "longest": longest.as_secs_f64()}),
        )?,
        Err(error) => findings.wrong("a look at a lock", error.into())?,
    }
    match pair(ylock).await {
        Ok(took) => {
            findings.say(
                "acquire and release",
                &format!("take {}", time(took)),
                json!(took.as_secs_f64()),
            )?;
        }
        Err(failed) => findings.wrong("acquire and release", failed)?,
    }
    match timeout(LISTING, ylock.list().next()).await {
        Ok(Ok(_)) => findings.say("a listing", "is answered", json!(true)),
        Ok(Err(error)) => findings.wrong("a listing", error.into()),
        Err(_) => findings.say("a listing", "goes on for long: the store has many other keys", json!(null)),
    }
}

async fn looks(ylock: &Ylock) -> ylock::Result<(Duration, Duration)> {
    let mut took = Vec::new();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        ylock.inspect(GROUP, "a lock").await?;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    Ok((took[LOOKS / 2], took[LOOKS - 1]))
}

/// Acquires a lock that no other client has, and gives it back.
async fn pair(ylock: &Ylock) -> Result<Duration> {
    let begun = Instant::now();
    let name = Owner::new().to_string();
    let guard = ylock.locks(GROUP).write(name).now().await?;
    let guard = guard.ok_or_else(|| Failed::new(NOT_FREE, "a lock of a new name has a holder"))?;
    // Lost or not: what is measured is the store.
    let _ = guard.unlock().await?;
    Ok(begun.elapsed())
}
