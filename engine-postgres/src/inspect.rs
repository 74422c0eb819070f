//! Inspection, which reads the holders and the queue of a lock; and revocation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock_core::{ClientName, Error, ErrorKind, Key, Owner, Result, StoreToken};

use crate::client::Client;
use crate::driver::{Call, Fields, Function, Value};
use crate::words::mode_of;

/// Returns the holders and waiters of a lock.
pub(crate) async fn inspect(client: &Client, key: &Key) -> Result<Inspection> {
    let answer = client.store.call(Call::at(Function::Inspect, key)).await?;
    let mut inspection = Inspection::default();
    for row in answer.rows() {
        let shown = shown(&row)?;
        if row.get::<&str>("kind")? == "holder" {
            // A transaction that closes the lock has none.
            let token = row.get::<Option<i64>>("token")?.and_then(|token| u64::try_from(token).ok());
            let token = token.and_then(StoreToken::new).filter(|_| client.fencing).map(Into::into);
            inspection.holders.push(Holder::of(shown, token));
        } else {
            inspection.queue.push(shown);
        }
    }
    Ok(inspection)
}

/// Marks a grant as revoked, so that its holder's next renewal finds out. Returns whether this acquisition held the lock.
pub(crate) async fn revoke(client: &Client, key: &Key, id: AcquisitionId) -> Result<bool> {
    client.store.call(Call::at(Function::Revoke, key).with(Value::id(id))).await?.flag()
}

fn shown(row: &Fields<'_>) -> Result<Waiter> {
    let id = AcquisitionId::from_u128(row.identity("id")?);
    let owner = Owner::from_bytes(row.identity("owner")?.to_be_bytes());
    let mode = row.get::<&str>("mode")?;
    let mode = mode_of(mode).ok_or_else(|| {
        Error::new(
            ErrorKind::Unexpected,
            format!("the stored lock has the mode {mode:?}, which no client writes"),
        )
    })?;
    Ok(Waiter::new(id, owner, ClientName::stored(row.get("client")?), mode, time(row.get("since")?)))
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
