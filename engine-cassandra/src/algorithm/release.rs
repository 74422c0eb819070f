//! The way out: one write of the client's own row, wherever the acquisition stands: in the queue, in the main row, at the place behind what
//! is held, or in doubt. `own_row/release.rs` decides that write; an attempt that gives up by itself leaves by it, too.

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Release, Request};

use super::own_row::OwnRow;
use crate::options::Protocol;

/// Ends an acquisition for good, and lets `next` join the queue in the same write. Can be repeated until it is acknowledged.
pub(crate) async fn release(
    own_row: &OwnRow,
    id: AcquisitionId,
    next: Option<&Request>,
    protocol: Protocol,
) -> Result<Release> {
    // Without a queue there is nothing to join beforehand.
    let next = next.filter(|_| protocol == Protocol::Queue);
    let was_there = own_row.release(id, next).await?;
    Ok(if was_there { Release::Released } else { Release::WasGone })
}
