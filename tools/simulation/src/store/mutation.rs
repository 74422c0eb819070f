//! Writes as cells, and cells as what a look shows.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Error, ErrorKind, Mode, Owner, Result, StoreToken};
use ylock_engine_cassandra::algorithm::store::{
    Claim, Next, Partition, Row, SeenRow, Slot, State, TimedClaim, Write,
};

use super::cells::{Cell, Cells, Column, Life, Name, Value};

/// Returns the cells of one overwrite, taken by a coordinator whose clock shows `second`.
pub(super) fn of_write(slot: Slot, write: &Write, second: i64) -> Cells {
    let mut cells = Cells::default();
    let life = Life::of(second, write.row_ttl);
    for (column, value) in row_values(&write.row) {
        cells.put(Name::Of(slot, column), Cell { stamp: write.stamp, life, value });
    }
    if let Some(TimedClaim { claim, ttl }) = write.claim {
        let cell = |value| Cell { stamp: write.stamp, life: Life::of(second, ttl), value };
        cells.put(Name::Of(slot, Column::ClaimToken), cell(Value::Token(claim.token)));
        cells.put(Name::Of(slot, Column::ClaimMode), cell(Value::Text(mode_text(claim.mode))));
    }
    if let Some(TimedClaim { claim, ttl }) = write.used {
        let name = if claim.mode == Mode::Write { Name::LastWrite } else { Name::LastRead };
        let stamp = i64::try_from(claim.token.get()).unwrap_or(i64::MAX);
        cells.put(name, Cell { stamp, life: Life::of(second, ttl), value: Value::Token(claim.token) });
    }
    cells
}

pub(super) fn of_revoke(slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32, second: i64) -> Cells {
    let mut cells = Cells::default();
    let cell = Cell { stamp, life: Life::of(second, ttl), value: Value::Identity(id.as_u128()) };
    cells.put(Name::Of(slot, Column::Revoked), cell);
    cells
}

/// Returns the cell of the global time: the number is its own write timestamp.
pub(super) fn of_time(micros: i64) -> Cells {
    let mut cells = Cells::default();
    if let Some(token) = u64::try_from(micros).ok().and_then(StoreToken::new) {
        let cell = Cell { stamp: micros, life: Life::Unbounded, value: Value::Token(token) };
        cells.put(Name::LastWrite, cell);
    }
    cells
}

pub(super) fn of_erase(slot: Slot, stamp: i64, second: i64) -> Cells {
    let mut cells = Cells::default();
    cells.put(
        Name::Of(slot, Column::Deleted),
        Cell { stamp, life: Life::Tombstone { deleted: second }, value: Value::Number(0) },
    );
    cells
}

fn row_values(row: &Row) -> [(Column, Value); 8] {
    let next = row.next.map_or(Value::Next(0, 0, "", 0), |next| {
        let owner = u128::from_be_bytes(next.owner.to_bytes());
        Value::Next(next.acquisition.as_u128(), owner, mode_text(next.mode), next.ticket.get())
    });
    [
        (Column::Acquisition, Value::Identity(row.acquisition.as_u128())),
        (Column::Mode, Value::Text(mode_text(row.mode))),
        (Column::State, Value::Text(state_text(row.state))),
        (Column::Ticket, Value::Number(row.ticket.get())),
        (Column::Owner, Value::Identity(u128::from_be_bytes(row.owner.to_bytes()))),
        (Column::Since, Value::Number(row.since)),
        (Column::Lease, Value::Number(i64::try_from(row.lease.as_millis()).unwrap_or(i64::MAX))),
        (Column::Next, next),
    ]
}

/// Returns what a coordinator answers whose clock shows `second`.
pub(super) fn partition(cells: &Cells, second: i64) -> Result<Partition> {
    let mut look = Partition {
        rows: Vec::new(),
        last_write: token(cells.live(Name::LastWrite, second)),
        last_read: token(cells.live(Name::LastRead, second)),
    };
    for slot in cells.slots() {
        let seen = SeenRow {
            slot,
            row: row(cells, slot, second)?,
            claim: claim(cells, slot, second),
            revoked: match cells.live(Name::Of(slot, Column::Revoked), second) {
                Some(Value::Identity(id)) => Some(AcquisitionId::from_u128(id)),
                _ => None,
            },
        };
        if seen.row.is_some() || seen.claim.is_some() || seen.revoked.is_some() {
            look.rows.push(seen);
        }
    }
    Ok(look)
}

fn row(cells: &Cells, slot: Slot, second: i64) -> Result<Option<Row>> {
    let live = |column| cells.live(Name::Of(slot, column), second);
    let all = (
        (live(Column::Acquisition), live(Column::Mode), live(Column::State), live(Column::Ticket)),
        (live(Column::Owner), live(Column::Since), live(Column::Lease), live(Column::Next)),
    );
    match all {
        (
            (
                Some(Value::Identity(id)),
                Some(Value::Text(mode)),
                Some(Value::Text(state)),
                Some(Value::Number(ticket)),
            ),
            (
                Some(Value::Identity(owner)),
                Some(Value::Number(since)),
                Some(Value::Number(lease)),
                Some(next),
            ),
        ) => Ok(Some(Row {
            acquisition: AcquisitionId::from_u128(id),
            mode: mode_of(mode),
            state: state_of(state),
            ticket: Ticket::from_number(ticket),
            owner: Owner::from_bytes(owner.to_be_bytes()),
            // Nothing is decided by it: all rows show the same.
            client: ClientName::default(),
            since,
            lease: Duration::from_millis(u64::try_from(lease).unwrap_or(0)),
            next: next_of(next),
        })),
        ((None, None, None, None), (None, None, None, None)) => Ok(None),
        // As the driver does: a row that cannot be understood is never taken for nothing.
        parts => Err(Error::new(ErrorKind::Unexpected, format!("a damaged row: {parts:?}"))),
    }
}

fn next_of(value: Value) -> Option<Next> {
    match value {
        Value::Next(id, owner, mode, ticket) if id != 0 => Some(Next {
            acquisition: AcquisitionId::from_u128(id),
            owner: Owner::from_bytes(owner.to_be_bytes()),
            mode: mode_of(mode),
            ticket: Ticket::from_number(ticket),
        }),
        _ => None,
    }
}

fn claim(cells: &Cells, slot: Slot, second: i64) -> Option<Claim> {
    let token = token(cells.live(Name::Of(slot, Column::ClaimToken), second))?;
    match cells.live(Name::Of(slot, Column::ClaimMode), second) {
        Some(Value::Text(mode)) => Some(Claim { token, mode: mode_of(mode) }),
        _ => None,
    }
}

fn token(value: Option<Value>) -> Option<StoreToken> {
    match value {
        Some(Value::Token(token)) => Some(token),
        _ => None,
    }
}

fn mode_text(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "read",
        Mode::Write => "write",
    }
}

fn mode_of(text: &str) -> Mode {
    if text == "write" { Mode::Write } else { Mode::Read }
}

fn state_text(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Waiting => "waiting",
        State::Claimed => "claimed",
        State::Held => "held",
    }
}

fn state_of(text: &str) -> State {
    match text {
        "waiting" => State::Waiting,
        "claimed" => State::Claimed,
        "held" => State::Held,
        _ => State::Idle,
    }
}
