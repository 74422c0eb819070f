//! `ylock watch`: who holds a lock, and each change.

use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use ylock::Key;
use ylock::engine::{AcquisitionId, Inspection};

use crate::arguments::WatchArguments;
use crate::commands::client::Client;
use crate::exit::Result;
use crate::output;
use crate::store::Store;

/// The shortest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(10);

/// Goes on until the process is ended.
pub(crate) async fn watch(store: Store, arguments: WatchArguments) -> Result<u8> {
    let key = &arguments.lock.0;
    let mut client = Client::new(store);
    client.get().await?;
    let mut last = None;
    loop {
        match look(&mut client, key).await {
            Ok(seen) => {
                let now = contenders(&seen);
                if last.as_ref() != Some(&now) {
                    print(&arguments, &seen)?;
                    last = Some(now);
                }
            }
            Err(error) if error.is_retryable() || client.is_left_after(&error).await => {
                output::say(&format!("{error:#}"));
            }
            Err(error) => return Err(error.into()),
        }
        sleep(arguments.every.max(SHORTEST)).await;
    }
}

async fn look(client: &mut Client, key: &Key) -> ylock::Result<Inspection> {
    client.get().await?.inspect(key.group(), key.name()).await
}

fn contenders(seen: &Inspection) -> (Vec<AcquisitionId>, Vec<AcquisitionId>) {
    (
        seen.holders.iter().map(|holder| holder.id).collect(),
        seen.queue.iter().map(|waiter| waiter.id).collect(),
    )
}

fn print(arguments: &WatchArguments, seen: &Inspection) -> Result<()> {
    let (key, now) = (&arguments.lock.0, output::time(SystemTime::now()));
    if arguments.json {
        let mut value = output::json(key, seen);
        value["at"] = now.into();
        return output::json_line(&value);
    }
    output::line(&format!("{now} {}", output::summary(key, seen)))
}
