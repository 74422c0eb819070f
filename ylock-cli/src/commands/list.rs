//! `ylock list`.

use serde_json::json;
use ylock::Error;

use crate::arguments::ListArguments;
use crate::exit::{Failed, OTHER, Result};
use crate::name::Named;
use crate::output;
use crate::store::Store;

pub(crate) async fn list(store: &Store, arguments: ListArguments) -> Result<u8> {
    let ylock = store.connect().await?;
    let mut listing = ylock.list();
    if let Some(group) = arguments.group {
        listing = listing.of_group(group);
    }
    let (mut left, mut damaged) = (arguments.limit.unwrap_or(usize::MAX), 0);
    while left > 0 {
        let Some(lock) = listing.next().await? else { break };
        left -= 1;
        let (named, seen) = Named::listed(lock);
        match seen {
            Ok(seen) if arguments.json => output::json_line(&output::json(&named, &seen))?,
            Ok(seen) => output::line(&output::summary(&named, &seen))?,
            Err(error) => {
                damaged += 1;
                print_damaged(&named, &error, arguments.json)?;
            }
        }
    }
    ylock.close().await;
    if damaged > 0 {
        return Err(Failed::new(OTHER, format!("{damaged} of the locks is damaged")));
    }
    Ok(0)
}

fn print_damaged(named: &Named, error: &Error, as_json: bool) -> Result<()> {
    let why = format!("{error:#}");
    if as_json {
        let key = &named.key;
        return output::json_line(
            &json!({"kind": named.kind(), "group": key.group(), "name": key.name(), "damaged": why}),
        );
    }
    output::line(&format!("{named}: DAMAGED: {why}"))
}
