//! Rows for the tests of what judges them.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Mode, Owner};

use super::store::{Row, SeenRow, Slot, State};

/// Returns a row with this number as its acquisition, and a lease of ten seconds.
pub(crate) fn row(number: u128, mode: Mode, state: State, ticket: i64) -> Row {
    Row {
        acquisition: AcquisitionId::from_u128(number),
        mode,
        state,
        ticket: Ticket::from_number(ticket),
        owner: Owner::from_bytes([1; 16]),
        client: ClientName::default(),
        since: 0,
        lease: Duration::from_secs(10),
        next: None,
        hints: None,
    }
}

/// Returns what a look shows of a client that has this row, and has never claimed.
pub(crate) fn seen(slot: u128, row: Row) -> SeenRow {
    let slot = Slot::from_u128(slot);
    SeenRow { slot, row: Some(row), heartbeat: Some(1), claim: None, claim_stamp: None, revoked: None }
}
