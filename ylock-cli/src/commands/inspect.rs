//! `ylock inspect`.

use crate::arguments::InspectArguments;
use crate::exit::Result;
use crate::output;
use crate::store::Store;

pub(crate) async fn inspect(store: &Store, arguments: InspectArguments) -> Result<u8> {
    let ylock = store.connect().await?;
    let named = &arguments.lock;
    let seen = named.inspect(&ylock).await?;
    if arguments.json {
        output::json_line(&output::json(named, &seen))?;
    } else {
        output::print(named, &seen)?;
    }
    ylock.close().await;
    Ok(0)
}
