//! `ylock watch`: who holds a lock, and each change.

use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use ylock::engine::{AcquisitionId, Inspection};

use crate::arguments::WatchArguments;
use crate::commands::client::Client;
use crate::exit::Result;
use crate::name::{Named, Seen};
use crate::output;
use crate::store::Store;

/// The shortest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(10);

/// Goes on until the process is ended.
pub(crate) async fn watch(store: Store, arguments: WatchArguments) -> Result<u8> {
    let mut client = Client::new(store);
    client.get().await?;
    let mut last = None;
    loop {
        match look(&mut client, &arguments.lock).await {
            Ok(seen) => {
                let now = ids(&seen.contenders);
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

async fn look(client: &mut Client, named: &Named) -> ylock::Result<Seen> {
    named.inspect(client.get().await?).await
}

fn ids(seen: &Inspection) -> (Vec<AcquisitionId>, Vec<AcquisitionId>) {
    (
        seen.holders.iter().map(|holder| holder.id).collect(),
        seen.queue.iter().map(|waiter| waiter.id).collect(),
    )
}

fn print(arguments: &WatchArguments, seen: &Seen) -> Result<()> {
    let (named, now) = (&arguments.lock, output::time(SystemTime::now()));
    if arguments.json {
        let mut value = output::json(named, seen);
        value["at"] = now.into();
        return output::json_line(&value);
    }
    output::line(&format!("{now} {}", output::summary(named, seen)))
}
