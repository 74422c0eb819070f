//! Decodes what comes back from the table.

use std::time::Duration;

use scylla::DeserializeRow;
use scylla::response::query_result::QueryResult;
use uuid::Uuid;
use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Error, ErrorKind, Key, Mode, Owner, Result, StoreToken};

use super::errors;
use super::values::{mode_of, state_of};
use crate::algorithm::store::{Claim, LastTokens, Next, Partition, Row, SeenRow, Slot, State};
use crate::hints::{self, Endpoint};

/// One row of the answer. Without a slot it carries only what belongs to the whole partition.
#[derive(DeserializeRow)]
pub(super) struct Cells<'frame> {
    slot: Option<Uuid>,
    acquisition: Option<Uuid>,
    mode: Option<&'frame str>,
    state: Option<&'frame str>,
    ticket: Option<i64>,
    owner: Option<Uuid>,
    client: Option<&'frame str>,
    since: Option<i64>,
    lease_millis: Option<i64>,
    heartbeat: Option<i64>,
    next_acquisition: Option<Uuid>,
    next_owner: Option<Uuid>,
    next_mode: Option<&'frame str>,
    next_ticket: Option<i64>,
    hint_address: Option<&'frame str>,
    hint_key: Option<Uuid>,
    claim_token: Option<i64>,
    claim_mode: Option<&'frame str>,
    claim_stamp: Option<i64>,
    revoked: Option<Uuid>,
    last_write_token: Option<i64>,
    last_read_token: Option<i64>,
}

/// Decodes a whole partition, or says which cell cannot be understood.
pub(super) fn partition(key: &Key, answer: QueryResult) -> Result<Partition> {
    let odd = |error: Error| error.with_key(key);
    let answer = answer.into_rows_result().map_err(|error| odd(errors::answer(error)))?;
    let mut partition = Partition::default();
    for cells in answer.rows::<Cells<'_>>().map_err(|error| odd(errors::answer(error)))? {
        let cells = cells.map_err(|error| odd(errors::answer(error)))?;
        cells.add_to(&mut partition, &Place { key, slot: cells.slot })?;
    }
    Ok(partition)
}

/// Decodes the cells of the last tokens.
pub(super) fn last_tokens(key: &Key, answer: QueryResult) -> Result<LastTokens> {
    let (odd, place) = (|error: Error| error.with_key(key), Place { key, slot: None });
    let answer = answer.into_rows_result().map_err(|error| odd(errors::answer(error)))?;
    let row = answer.maybe_first_row::<(Option<i64>, Option<i64>)>();
    let (write, read) = row.map_err(|error| odd(errors::answer(error)))?.unwrap_or_default();
    let token = |column, number: Option<i64>| number.map(|number| place.token(column, number)).transpose();
    Ok(LastTokens { write: token("last_write_token", write)?, read: token("last_read_token", read)? })
}

/// Decodes the cell of the last run of a job.
pub(super) fn run(key: &Key, answer: QueryResult) -> Result<Option<String>> {
    let odd = |error: Error| error.with_key(key);
    let answer = answer.into_rows_result().map_err(|error| odd(errors::answer(error)))?;
    let row = answer.maybe_first_row::<(Option<String>,)>().map_err(|error| odd(errors::answer(error)))?;
    Ok(row.and_then(|(run,)| run))
}

/// Decodes the cell of the global time.
pub(super) fn time(answer: QueryResult) -> Result<Option<i64>> {
    let answer = answer.into_rows_result().map_err(errors::answer)?;
    let row = answer.maybe_first_row::<(Option<i64>,)>().map_err(errors::answer)?;
    Ok(row.and_then(|(time,)| time))
}

impl Cells<'_> {
    fn add_to(&self, partition: &mut Partition, place: &Place<'_>) -> Result<()> {
        // The same in every row of the answer.
        partition.last_write =
            self.last_write_token.map(|n| place.token("last_write_token", n)).transpose()?;
        partition.last_read = self.last_read_token.map(|n| place.token("last_read_token", n)).transpose()?;
        let Some(slot) = self.slot else { return Ok(()) };
        let (row, claim) = (self.row(place)?, self.claim(place)?);
        // Of a row that has ended there may be cells left that its later versions did not write: where its client could be told something.
        if row.is_some() || claim.is_some() || self.revoked.is_some() {
            partition.rows.push(SeenRow {
                slot: Slot::from_u128(slot.as_u128()),
                row,
                heartbeat: self.heartbeat(place)?,
                claim,
                claim_stamp: self.claim_stamp,
                revoked: self.revoked.map(acquisition),
            });
        }
        Ok(())
    }

    /// Returns the cells that are always written together: all of them, or none after their TTL.
    fn row(&self, place: &Place<'_>) -> Result<Option<Row>> {
        if self.is_expired() {
            return Ok(None);
        }
        Ok(Some(Row {
            acquisition: acquisition(place.needed("acquisition", self.acquisition)?),
            mode: place.mode("mode", place.needed("mode", self.mode)?)?,
            state: place.state(place.needed("state", self.state)?)?,
            ticket: Ticket::from_number(place.needed("ticket", self.ticket)?),
            owner: Owner::from_bytes(place.needed("owner", self.owner)?.into_bytes()),
            client: ClientName::stored(place.needed("client", self.client)?),
            since: place.needed("since", self.since)?,
            lease: place.lease(place.needed("lease_millis", self.lease_millis)?)?,
            next: self.next(place)?,
            hints: self.hints(),
        }))
    }

    /// Returns where the client can be told to look. Cells that cannot be understood are left out: no client relies on them.
    fn hints(&self) -> Option<Endpoint> {
        let (address, key) = (self.hint_address?.parse().ok()?, self.hint_key?);
        Some(Endpoint { address, key: hints::Key::from_u128(key.as_u128()) })
    }

    /// Returns the heartbeat, which is there if the row is.
    fn heartbeat(&self, place: &Place<'_>) -> Result<Option<i64>> {
        if self.is_expired() { Ok(None) } else { place.needed("heartbeat", self.heartbeat).map(Some) }
    }

    fn is_expired(&self) -> bool {
        let numbers = [self.ticket, self.since, self.lease_millis, self.heartbeat, self.next_ticket];
        let words = [self.mode, self.state, self.client, self.next_mode];
        let names = [self.acquisition, self.owner, self.next_acquisition, self.next_owner];
        numbers.iter().all(Option::is_none)
            && words.iter().all(Option::is_none)
            && names.iter().all(Option::is_none)
    }

    fn next(&self, place: &Place<'_>) -> Result<Option<Next>> {
        let ticket = place.needed("next_ticket", self.next_ticket)?;
        let id = place.needed("next_acquisition", self.next_acquisition)?;
        let owner = place.needed("next_owner", self.next_owner)?;
        match place.needed("next_mode", self.next_mode)? {
            "" if ticket == 0 => Ok(None),
            "" => Err(place.damaged("next_ticket", format!("{ticket} without a next_mode"))),
            word => Ok(Some(Next {
                acquisition: acquisition(id),
                owner: Owner::from_bytes(owner.into_bytes()),
                mode: place.mode("next_mode", word)?,
                ticket: Ticket::from_number(ticket),
            })),
        }
    }

    fn claim(&self, place: &Place<'_>) -> Result<Option<Claim>> {
        if self.claim_token.is_none() && self.claim_mode.is_none() {
            return Ok(None);
        }
        Ok(Some(Claim {
            token: place.token("claim_token", place.needed("claim_token", self.claim_token)?)?,
            mode: place.mode("claim_mode", place.needed("claim_mode", self.claim_mode)?)?,
        }))
    }
}

/// The place of a cell, for the operator who must repair it.
struct Place<'a> {
    key: &'a Key,
    slot: Option<Uuid>,
}

impl Place<'_> {
    fn needed<T>(&self, column: &str, cell: Option<T>) -> Result<T> {
        cell.ok_or_else(|| self.damaged(column, "missing beside the others".to_owned()))
    }

    fn mode(&self, column: &str, word: &str) -> Result<Mode> {
        mode_of(word).ok_or_else(|| self.damaged(column, format!("{word:?} is neither read nor write")))
    }

    fn state(&self, word: &str) -> Result<State> {
        state_of(word).ok_or_else(|| self.damaged("state", format!("{word:?} is no state")))
    }

    fn token(&self, column: &str, number: i64) -> Result<StoreToken> {
        let token = u64::try_from(number).ok().and_then(StoreToken::new);
        token.ok_or_else(|| self.damaged(column, format!("{number} is not between 1 and 2^53 - 1")))
    }

    fn lease(&self, millis: i64) -> Result<Duration> {
        let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0);
        millis
            .map(Duration::from_millis)
            .ok_or_else(|| self.damaged("lease_millis", "not above zero".to_owned()))
    }

    fn damaged(&self, column: &str, what: String) -> Error {
        let place = self.slot.map_or_else(|| "the partition".to_owned(), |slot| format!("slot {slot}"));
        Error::new(ErrorKind::Unexpected, format!("damaged row: {place}, column {column}: {what}"))
            .with_engine(crate::NAME)
            .with_key(self.key)
    }
}

fn acquisition(id: Uuid) -> AcquisitionId {
    AcquisitionId::from_u128(id.as_u128())
}
