//! The values that are bound to the statements.

use std::time::Duration;

use scylla::SerializeRow;
use scylla::value::MaybeUnset::{self, Set, Unset};
use uuid::Uuid;
use ylock_core::engine::AcquisitionId;
use ylock_core::{Key, Mode, Owner};

use crate::algorithm::store::{Slot, State, TimedClaim, Write};

/// A whole row.
#[derive(SerializeRow)]
#[scylla(flavor = "enforce_order")]
pub(super) struct RowValues<'a> {
    #[scylla(rename = "[timestamp]")]
    stamp: i64,
    #[scylla(rename = "[ttl]")]
    ttl: i32,
    acquisition: Uuid,
    mode: &'a str,
    state: &'a str,
    ticket: i64,
    owner: Uuid,
    client: &'a str,
    since: i64,
    lease_millis: i64,
    heartbeat: i64,
    next_acquisition: Uuid,
    next_owner: Uuid,
    next_mode: &'a str,
    next_ticket: i64,
    hint_address: MaybeUnset<String>,
    hint_key: MaybeUnset<Uuid>,
    lock_group: &'a str,
    lock_name: &'a str,
    slot: Uuid,
}

impl<'a> RowValues<'a> {
    /// Returns the values of a write. `is_told`: the client can be told to look, whatever this row says.
    pub(super) fn new(key: &'a Key, slot: Slot, write: &'a Write, is_told: bool) -> Self {
        let row = &write.row;
        Self {
            stamp: write.stamp,
            ttl: ttl(write.row_ttl),
            acquisition: acquisition(row.acquisition),
            mode: row.mode.as_str(),
            state: row.state.as_str(),
            ticket: row.ticket.get(),
            owner: owner(row.owner),
            client: row.client.as_str(),
            since: row.since,
            lease_millis: lease_millis(row.lease),
            // A timestamp that every look can see: by it other clients tell a row that was written anew from one that was not.
            heartbeat: write.stamp,
            // Never a null: that would be a tombstone per write.
            next_acquisition: row.next.map_or(Uuid::nil(), |next| acquisition(next.acquisition)),
            next_owner: row.next.map_or(Uuid::nil(), |next| owner(next.owner)),
            next_mode: row.next.map_or("", |next| next.mode.as_str()),
            next_ticket: row.next.map_or(0, |next| next.ticket.get()),
            hint_address: hint(is_told, row.hints.map(|hints| hints.address.to_string())),
            hint_key: hint(is_told, row.hints.map(|hints| Uuid::from_u128(hints.key.as_u128()))),
            lock_group: key.group(),
            lock_name: key.name(),
            slot: uuid(slot),
        }
    }
}

/// Returns what a cell of hints shall say. What is not set is not written, and no tombstone either. Of a client that can be told, an idle row
/// overwrites what the row before said: those cells have the longer TTL of that row, and would be read until its end.
fn hint<T: Default>(is_told: bool, value: Option<T>) -> MaybeUnset<T> {
    match value {
        Some(value) => Set(value),
        // No address, and the nil UUID: a reader takes them for none.
        None if is_told => Set(T::default()),
        None => Unset,
    }
}

/// A row's token cell.
#[derive(SerializeRow)]
#[scylla(flavor = "enforce_order")]
pub(super) struct ClaimValues<'a> {
    #[scylla(rename = "[timestamp]")]
    stamp: i64,
    #[scylla(rename = "[ttl]")]
    ttl: i32,
    claim_token: i64,
    claim_mode: &'a str,
    lock_group: &'a str,
    lock_name: &'a str,
    slot: Uuid,
}

impl<'a> ClaimValues<'a> {
    pub(super) fn new(key: &'a Key, slot: Slot, stamp: i64, timed: TimedClaim) -> Self {
        Self {
            stamp,
            ttl: ttl(timed.ttl),
            claim_token: token(timed),
            claim_mode: timed.claim.mode.as_str(),
            lock_group: key.group(),
            lock_name: key.name(),
            slot: uuid(slot),
        }
    }
}

/// A last token of the partition: stamp, TTL, token, group, name. The token is its own stamp, so the largest stays
/// whatever the order in which they arrive.
pub(super) type UsedValues<'a> = (i64, i32, i64, &'a str, &'a str);

pub(super) fn used(key: &Key, timed: TimedClaim) -> UsedValues<'_> {
    (token(timed), ttl(timed.ttl), token(timed), key.group(), key.name())
}

/// Stamp, TTL, acquisition, group, name, slot.
pub(super) type RevokeValues<'a> = (i64, i32, Uuid, &'a str, &'a str, Uuid);

pub(super) fn revoke(key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, seconds: u32) -> RevokeValues<'_> {
    (stamp, ttl(seconds), acquisition(id), key.group(), key.name(), uuid(slot))
}

/// The last run of a job: stamp, TTL, run, group, name.
pub(super) type RunValues<'a> = (i64, i32, &'a str, &'a str, &'a str);

pub(super) fn run<'a>(key: &'a Key, run: &'a str, stamp: i64, seconds: u32) -> RunValues<'a> {
    (stamp, ttl(seconds), run, key.group(), key.name())
}

/// Stamp, group, name, slot.
pub(super) type EraseValues<'a> = (i64, &'a str, &'a str, Uuid);

pub(super) fn erase(key: &Key, slot: Slot, stamp: i64) -> EraseValues<'_> {
    (stamp, key.group(), key.name(), uuid(slot))
}

/// Heartbeat, group, name, slot.
pub(super) type BuryValues<'a> = (i64, &'a str, &'a str, Uuid);

pub(super) fn bury(key: &Key, slot: Slot, heartbeat: i64) -> BuryValues<'_> {
    (heartbeat, key.group(), key.name(), uuid(slot))
}

/// Returns the state that a word stands for.
pub(super) fn state_of(word: &str) -> Option<State> {
    State::ALL.iter().copied().find(|known| known.as_str() == word)
}

/// Returns the mode that a word stands for.
pub(super) fn mode_of(word: &str) -> Option<Mode> {
    Mode::ALL.iter().copied().find(|known| known.as_str() == word)
}

/// Converts a TTL. Zero would mean for ever, and what does not fit into the column is as good as for ever.
fn ttl(seconds: u32) -> i32 {
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

/// Converts a lease, rounded up: clients that wait for it to end must not think it shorter than its holder does.
fn lease_millis(lease: Duration) -> i64 {
    i64::try_from(lease.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Converts a token, which is below 2^53.
fn token(timed: TimedClaim) -> i64 {
    timed.claim.token.get() as i64
}

fn uuid(slot: Slot) -> Uuid {
    Uuid::from_u128(slot.as_u128())
}

fn acquisition(id: AcquisitionId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

fn owner(owner: Owner) -> Uuid {
    Uuid::from_bytes(owner.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_row_leaves_no_live_hint_behind() {
        assert!(matches!(hint(true, Some(7)), Set(7)));
        assert!(matches!(hint(true, None::<String>), Set(empty) if empty.is_empty()));
        assert!(matches!(hint(true, None::<Uuid>), Set(nil) if nil.is_nil()));
        assert!(matches!(hint(false, None::<Uuid>), Unset), "of a client that cannot be told");
    }
}
