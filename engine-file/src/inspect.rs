//! Inspect and revoke: what a lock's file says, and taking a grant away.

use ylock_core::engine::{AcquisitionId, Inspection};
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::IfMissing;

pub(crate) async fn inspect(client: &Client, key: &Key) -> Result<Inspection> {
    let inspected = client.change_soon(key, IfMissing::Leave, |state, _| Ok(state.queue.inspect()));
    client.meter.measure(&*client.environment, "inspect", inspected).await
}

/// Marks a grant, so that its holder learns at its next renewal that it is revoked. It keeps others out until then.
pub(crate) async fn revoke(client: &Client, key: &Key, id: AcquisitionId) -> Result<bool> {
    let revoked = client.change_soon(key, IfMissing::Leave, |state, _| Ok(state.queue.revoke(id)));
    client.meter.measure(&*client.environment, "revoke", revoked).await
}
