//! `ylock list`.

use crate::arguments::ListArguments;
use crate::exit::Result;
use crate::output;
use crate::store::Store;

pub(crate) async fn list(store: &Store, arguments: ListArguments) -> Result<u8> {
    let ylock = store.connect().await?;
    let mut listing = ylock.list();
    if let Some(group) = arguments.group {
        listing = listing.of_group(group);
    }
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    while left > 0 {
        let Some(lock) = listing.next().await? else { break };
        left -= 1;
        if arguments.json {
            output::json_line(&output::json(&lock.key, &lock.seen))?;
        } else {
            output::line(&output::summary(&lock.key, &lock.seen))?;
        }
    }
    ylock.close().await;
    Ok(0)
}
