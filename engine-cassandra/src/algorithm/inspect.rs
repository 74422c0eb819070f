//! Inspection, which reads holders and waiters from the rows of a partition; listing, which finds the partitions; and revocation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Holder, Inspection, KeyPage, Waiter};

use super::judge::{Place, floor};
use super::own_row::OwnRow;
use super::store::{Partition, SeenRow, State, Store};
use crate::hints::Hint;

/// The time for which a request to give up a lock is kept, in leases of the holder: it is found at the next renewal.
const REVOKE_LEASES: u32 = 2;

/// Returns the holders and waiters of a lock, without those that this client knows to be dead.
pub(crate) async fn inspect(own_row: &OwnRow) -> Result<Inspection> {
    Ok(shown_by(&own_row.look_at_the_living().await?))
}

/// Returns a page of the keys at which a client takes part, and of some that are free. The store cannot tell the locks of one group from others, which
/// are on the ring between them: a page may have none of the group.
pub(crate) async fn keys(store: &dyn Store, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let after = after.map(|after| position(after).ok_or_else(KeyPage::wrong)).transpose()?;
    let mut page = store.keys(after).await?;
    page.keys.retain(|key| group.is_none_or(|group| key.group() == group));
    Ok(KeyPage::new(page.keys, page.next.map(|position| position.to_string())))
}

fn position(text: &str) -> Option<i64> {
    // Written as a page writes it: without a plus, or zeros before it.
    text.parse::<i64>().ok().filter(|position| position.to_string() == text)
}

/// Asks the holder with this acquisition to give up. Returns whether there is one, as [`inspect`] would show it with a token. Its row stays
/// until it has heard of that.
pub(crate) async fn revoke(own_row: &OwnRow, id: AcquisitionId) -> Result<bool> {
    let look = own_row.look_at_the_living().await?;
    let is_holder = shown_by(&look).holders.iter().any(|holder| holder.id == id);
    let found = look.rows.iter().filter(|_| is_holder).find_map(|seen| {
        let row = seen.row.as_ref().filter(|row| row.acquisition == id)?;
        // With the token of a later acquisition it would stand in the way of a revocation of that one.
        Some((seen.slot, row.lease, seen.present_claim()?, row.hints))
    });
    let Some((slot, lease, claim, told_at)) = found else { return Ok(false) };
    // The tokens of a row grow from one acquisition to the next, so they can serve as write timestamps of the cell.
    let stamp = i64::try_from(claim.token.get()).unwrap_or(i64::MAX);
    let OwnRow { client, key, .. } = own_row;
    let ttl = client.row_ttl(lease.saturating_mul(REVOKE_LEASES));
    client.store.revoke(key, slot, id, stamp, ttl).await?;
    if let (Some(hints), Some(to)) = (&client.hints, told_at) {
        hints.send(Hint::End, to);
    }
    Ok(true)
}

/// Returns the holders and waiters that a partition shows.
fn shown_by(look: &Partition) -> Inspection {
    let mut places = Vec::new();
    for (seen, row) in look.rows.iter().filter_map(|seen| Some((seen, seen.row.as_ref()?))) {
        places.extend(Place::all_of(seen.slot, row).map(|place| (place, row, seen.present_claim())));
    }
    places.sort_by_key(|(place, ..)| (place.ticket, place.slot));
    let past = without_claims(look);
    let mut inspection = Inspection::default();
    for &(place, row, claim) in &places {
        let Place { acquisition: id, owner, mode, .. } = place;
        let shown = Waiter::new(id, owner, row.client.clone(), mode, time(row.since));
        let enters = || claim.is_none_or(|claim| Some(claim.token) > floor(&past, place.slot, mode));
        if is_inside(&place, places.iter().map(|(other, ..)| other), enters) {
            let token = claim.map(|claim| claim.token.into());
            inspection.holders.push(Holder::of(shown, token));
        } else {
            inspection.queue.push(shown);
        }
    }
    inspection
}

/// Returns the partition without the clients that have claimed and do not say that they are inside: the first in line claims while the holder is still
/// there, with a larger token than the holder's.
fn without_claims(look: &Partition) -> Partition {
    let claims = |seen: &&SeenRow| seen.row.as_ref().is_some_and(|row| row.state == State::Claimed);
    let rows = look.rows.iter().filter(|seen| !claims(seen)).cloned().collect();
    Partition { rows, ..*look }
}

/// Returns whether this place is inside: it says so, or it has claimed with a token by which it `enters`, and no other client that conflicts says so or
/// has claimed with an earlier ticket. One whose token is too small must claim again first, and never will if it is dead: it would be shown with a
/// smaller token than a holder before it.
fn is_inside<'a>(place: &Place, all: impl Iterator<Item = &'a Place>, enters: impl FnOnce() -> bool) -> bool {
    let precedes = |other: &Place| {
        other.is_held() || (other.is_in_main() && (other.ticket, other.slot) < (place.ticket, place.slot))
    };
    let mut rivals = all.filter(|other| other.slot != place.slot && other.mode.conflicts_with(place.mode));
    place.is_held() || (place.is_in_main() && !rivals.any(precedes) && enters())
}

fn time(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use ylock_core::{Mode, StoreToken};

    use super::*;
    use crate::algorithm::rows_for_tests::{row, seen};
    use crate::algorithm::store::Claim;

    fn claimed(slot: u128, state: State, token: u64) -> SeenRow {
        let claim = StoreToken::new(token).map(|token| Claim { token, mode: Mode::Write });
        SeenRow { claim, claim_stamp: Some(1), ..seen(slot, row(slot, Mode::Write, state, 3)) }
    }

    /// Its client may have died before it claimed again, and the holder before it have left.
    #[test]
    fn one_that_has_claimed_with_too_small_a_token_is_not_shown_as_a_holder() {
        for (token, holders) in [(6, 0), (7, 0), (8, 1)] {
            let rows = vec![claimed(1, State::Claimed, token), claimed(2, State::Idle, 7)];
            let shown = shown_by(&Partition { rows, last_write: None, last_read: None });
            assert_eq!((shown.holders.len(), shown.queue.len()), (holders, 1 - holders), "token {token}");
        }
    }

    /// The first in line has claimed while the holder is still there, which has not said yet that it is inside.
    #[test]
    fn a_claim_behind_a_holder_does_not_hide_it() {
        let behind =
            SeenRow { row: row(2, Mode::Write, State::Claimed, 4).into(), ..claimed(2, State::Claimed, 8) };
        let rows = vec![claimed(1, State::Claimed, 7), behind];
        let shown = shown_by(&Partition { rows, last_write: None, last_read: None });
        assert_eq!((shown.holders.len(), shown.queue.len()), (1, 1), "{shown:?}");
        assert_eq!(shown.holders[0].token, StoreToken::new(7).map(Into::into));
    }
}
