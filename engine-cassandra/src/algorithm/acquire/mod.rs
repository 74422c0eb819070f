//! The ways in: the [`queue`] of the thesis, and the lock that it replaces, [`shadow_rows`].

pub(crate) mod queue;
pub(crate) mod shadow_rows;

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Grant, Patience, Request};
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Mode, Result};

use super::own_row::{Client, OwnRow};
use super::store::Partition;
use crate::options::Protocol;

/// Acquires the lock, or returns nothing if the request does not wait and the lock is not free. `longest` is for how long such a request
/// looks at a later claim.
pub(crate) async fn acquire(
    own_row: &Arc<OwnRow>,
    request: &Request,
    protocol: Protocol,
    longest: Duration,
) -> Result<Option<Grant>> {
    match (protocol, request.patience) {
        (Protocol::Queue, Patience::Queue) => queue::get_lock(own_row, request).await.map(Some),
        (Protocol::Queue, Patience::Try) => queue::try_get_lock(own_row, request, longest).await,
        (Protocol::ShadowRows, Patience::Queue) => shadow_rows::get_lock(own_row, request).await.map(Some),
        (Protocol::ShadowRows, Patience::Try) => shadow_rows::try_get_lock(own_row, request).await,
    }
}

/// Looks. Where that shows dead rows in the way of this mode, they are buried, and only another look counts.
async fn look_past_the_dead(own_row: &OwnRow, mode: Mode) -> Result<Partition> {
    let look = own_row.look().await?;
    let dead = own_row.dead_in_the_way(&look, mode);
    if dead.is_empty() {
        return Ok(look);
    }
    own_row.bury(&dead).await?;
    own_row.look().await
}

/// Asks for the global time, because a place in the queue needs the time as it is now. Where the store does not answer, the time that was
/// known last has to do. Without a global time there is nothing to ask for.
pub(crate) async fn ask_for_the_time(client: &Client, lease: Duration) -> Result<()> {
    let Some(time) = &client.global_time else { return Ok(()) };
    let mut retry_deadline = RetryDeadline::new(&*client.environment, lease);
    loop {
        match time.current().await {
            Err(error) if time.latest() == 0 => retry_deadline.retry_or_fail(error).await?,
            _ => return Ok(()),
        }
    }
}
