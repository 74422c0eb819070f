//! Writes as cells, and cells as what a look shows.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Error, ErrorKind, Mode, Owner, Result, StoreToken};
use ylock_engine_cassandra::algorithm::store::{
    Claim, Next, Partition, Row, SeenRow, Slot, State, TimedClaim, Write,
};
use ylock_engine_cassandra::hints::{Endpoint, Key};

use super::cells::{Cell, Cells, Column, Life, Name, Value};

/// Returns the cells of one overwrite, taken by a coordinator whose clock shows `second`.
pub(super) fn of_write(slot: Slot, write: &Write, second: i64) -> Cells {
    let mut cells = Cells::default();
    let of_row = life(second, write.row_ttl);
    for (column, value) in row_values(&write.row, write.stamp) {
        cells.put(Name::Of(slot, column), Cell { stamp: write.stamp, life: of_row, value });
    }
    // Left out by clients that cannot be told to look. An idle row of one that can is written with empty cells instead, which say as little.
    if let Some(Endpoint { address, key }) = write.row.hints {
        let cell = |number| Cell { stamp: write.stamp, life: of_row, value: Value::Identity(number) };
        cells.put(Name::Of(slot, Column::HintAddress), cell(number_of(address)));
        cells.put(Name::Of(slot, Column::HintKey), cell(key.as_u128()));
    }
    if let Some(TimedClaim { claim, ttl }) = write.claim {
        let cell = |value| Cell { stamp: write.stamp, life: life(second, ttl), value };
        cells.put(Name::Of(slot, Column::ClaimToken), cell(Value::Token(claim.token)));
        cells.put(Name::Of(slot, Column::ClaimMode), cell(Value::Text(mode_text(claim.mode))));
    }
    if let Some(TimedClaim { claim, ttl }) = write.used {
        let name = if claim.mode == Mode::Write { Name::LastWrite } else { Name::LastRead };
        let stamp = i64::try_from(claim.token.get()).unwrap_or(i64::MAX);
        cells.put(name, Cell { stamp, life: life(second, ttl), value: Value::Token(claim.token) });
    }
    cells
}

/// Returns the life of what the driver writes with a TTL: zero would mean for ever, so it writes one second.
fn life(second: i64, ttl: u32) -> Life {
    Life::of(second, ttl.max(1))
}

pub(super) fn of_revoke(slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32, second: i64) -> Cells {
    let mut cells = Cells::default();
    let cell = Cell { stamp, life: life(second, ttl), value: Value::Identity(id.as_u128()) };
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

/// Returns the cell of the last run of a job, by the number of its text, from 1 on. Of two runs with one stamp the later write wins, where a real cluster goes by the
/// texts.
pub(super) fn of_run(number: usize, stamp: i64, ttl: u32, second: i64) -> Cells {
    let mut cells = Cells::default();
    if let Some(token) = u64::try_from(number).ok().and_then(StoreToken::new) {
        cells.put(Name::LastWrite, Cell { stamp, life: life(second, ttl), value: Value::Token(token) });
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

/// Returns the deletion of what a client writes of its row with one stamp; its token and a revocation stay.
pub(super) fn of_bury(slot: Slot, heartbeat: i64, second: i64) -> Cells {
    let mut cells = Cells::default();
    for column in Column::OF_ROW {
        let life = Life::Tombstone { deleted: second };
        cells.put(Name::Of(slot, column), Cell { stamp: heartbeat, life, value: Value::Number(0) });
    }
    cells
}

fn row_values(row: &Row, stamp: i64) -> [(Column, Value); 12] {
    let next = row.next;
    let owner = |owner: Owner| u128::from_be_bytes(owner.to_bytes());
    [
        (Column::Acquisition, Value::Identity(row.acquisition.as_u128())),
        (Column::Mode, Value::Text(mode_text(row.mode))),
        (Column::State, Value::Text(state_text(row.state))),
        (Column::Ticket, number(row.ticket.get())),
        (Column::Owner, Value::Identity(owner(row.owner))),
        (Column::Since, number(row.since)),
        (Column::Lease, number(lease_millis(row.lease))),
        (Column::Heartbeat, number(stamp)),
        // Cells of their own, and each wins or loses a tie for itself. Zeros where there is no next waiter.
        (Column::NextAcquisition, Value::Identity(next.map_or(0, |next| next.acquisition.as_u128()))),
        (Column::NextOwner, Value::Identity(next.map_or(0, |next| owner(next.owner)))),
        (Column::NextMode, Value::Text(next.map_or("", |next| mode_text(next.mode)))),
        (Column::NextTicket, number(next.map_or(0, |next| next.ticket.get()))),
    ]
}

fn number(number: i64) -> Value {
    Value::Number(number.cast_unsigned())
}

/// Converts an address, which is one of version 4, into a number.
fn number_of(address: SocketAddr) -> u128 {
    match address {
        SocketAddr::V4(address) => u128::from(address.ip().to_bits()) << 16 | u128::from(address.port()),
        SocketAddr::V6(_) => 0,
    }
}

fn hints(cells: &Cells, slot: Slot, second: i64) -> Option<Endpoint> {
    let live = |column| cells.live(Name::Of(slot, column), second);
    let (Some(Value::Identity(address)), Some(Value::Identity(key))) =
        (live(Column::HintAddress), live(Column::HintKey))
    else {
        return None;
    };
    let (ip, port) = (Ipv4Addr::from_bits((address >> 16) as u32), address as u16);
    Some(Endpoint { address: (ip, port).into(), key: Key::from_u128(key) })
}

/// Converts a lease, rounded up, as the driver does.
fn lease_millis(lease: Duration) -> i64 {
    i64::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
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
            heartbeat: match cells.live(Name::Of(slot, Column::Heartbeat), second) {
                Some(Value::Number(stamp)) => Some(stamp.cast_signed()),
                _ => None,
            },
            claim: claim(cells, slot, second),
            claim_stamp: cells.written(Name::Of(slot, Column::ClaimToken), second),
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
    let next = (
        (live(Column::NextAcquisition), live(Column::NextOwner)),
        (live(Column::NextMode), live(Column::NextTicket)),
    );
    let all = (
        (live(Column::Acquisition), live(Column::Mode), live(Column::State), live(Column::Ticket)),
        (live(Column::Owner), live(Column::Since), live(Column::Lease), next),
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
                (
                    (Some(Value::Identity(next_id)), Some(Value::Identity(next_owner))),
                    (Some(Value::Text(next_mode)), Some(Value::Number(next_ticket))),
                ),
            ),
        ) => Ok(Some(Row {
            acquisition: AcquisitionId::from_u128(id),
            mode: mode_of(mode),
            state: state_of(state),
            ticket: Ticket::from_number(ticket.cast_signed()),
            owner: Owner::from_bytes(owner.to_be_bytes()),
            // Nothing is decided by it: all rows show the same.
            client: ClientName::default(),
            since: since.cast_signed(),
            lease: Duration::from_millis(lease),
            next: (!next_mode.is_empty()).then(|| Next {
                acquisition: AcquisitionId::from_u128(next_id),
                owner: Owner::from_bytes(next_owner.to_be_bytes()),
                mode: mode_of(next_mode),
                ticket: Ticket::from_number(next_ticket.cast_signed()),
            }),
            hints: hints(cells, slot, second),
        })),
        ((None, None, None, None), (None, None, None, ((None, None), (None, None)))) => Ok(None),
        // As the driver does: a row that cannot be understood is never taken for nothing.
        parts => Err(Error::new(ErrorKind::Unexpected, format!("a damaged row: {parts:?}"))),
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
