//! `ylock inspect`.

use crate::arguments::InspectArguments;
use crate::exit::Result;
use crate::output;
use crate::store::Store;

pub(crate) async fn inspect(store: &Store, arguments: InspectArguments) -> Result<u8> {
    let ylock = store.connect().await?;
    let key = &arguments.lock.0;
    let seen = ylock.inspect(key.group(), key.name()).await?;
    if arguments.json {
        output::json_line(&output::json(key, &seen))?;
    } else {
        output::print(key, &seen)?;
    }
    ylock.close().await;
    Ok(0)
}
