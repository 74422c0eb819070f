//! Inspect, list and revoke: what a lock's file says, which locks have one, and taking a grant away.

use ylock_core::engine::{AcquisitionId, Inspection, KeyPage};
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::{FileName, IfMissing, Shelf};

pub(crate) async fn inspect(client: &Client, key: &Key) -> Result<Inspection> {
    let inspected = async {
        client.folder.check_is_there()?;
        client.change_soon(key, IfMissing::Leave, |state, _| Ok(state.queue.inspect())).await
    };
    client.meter.measure(&*client.environment, "inspect", inspected).await
}

/// Returns a page of the keys that have a file, in use or not: what is in it, a look at each lock will say.
pub(crate) async fn keys(client: &Client, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let files = async {
        client.folder.check_is_there()?;
        client.folder.files(Shelf::Locks)
    };
    let files = client.meter.measure(&*client.environment, "keys", files).await?;
    let keys = files.iter().filter_map(FileName::key);
    KeyPage::of(keys.filter(|key| group.is_none_or(|group| key.group() == group)), after)
}

/// Marks a grant, so that its holder learns at its next renewal that it is revoked. It keeps others out until then.
pub(crate) async fn revoke(client: &Client, key: &Key, id: AcquisitionId) -> Result<bool> {
    let revoked = client.change_soon(key, IfMissing::Leave, |state, _| Ok(state.queue.revoke(id)));
    client.meter.measure(&*client.environment, "revoke", revoked).await
}
