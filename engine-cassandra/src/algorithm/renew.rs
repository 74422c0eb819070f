//! The lease (section 5.3 of the thesis): rows live for a TTL, and a holder rewrites its row before that.
//!
//! Departures: a renewal reads before it writes, so that a holder that has lost its lock finds out and does not write itself back next
//! to the new holder. Such a renewal reports the loss and writes nothing: the release that follows a loss sets the row idle, and only
//! after the holder knows; otherwise another client would be inside beside a holder that still believes to be. And a holder stops
//! relying on its row earlier, by its own clock, than the servers do by theirs.

use std::sync::Arc;

use ylock_core::engine::{Grant, Holding, LossReason, Renewal, valid_until};
use ylock_core::{Mode, Result};

use super::judge::is_contended;
use super::own_row::OwnRow;
use super::store::{Next, Partition, State};

/// Renews a grant, and makes the row show what the holding says. A loss is only reported; releasing comes after it.
///
/// # Errors
/// Those of the store: then the outcome is unknown, and the renewal can be tried again.
pub(crate) async fn renew(own_row: &Arc<OwnRow>, holding: &Holding) -> Result<Renewal> {
    let grant = &holding.grant;
    let mut look = own_row.look_from_inside().await?;
    if let Some(reason) = loss(&look, own_row, grant) {
        return Ok(Renewal::Lost(reason));
    }
    let until = valid_until(grant.sent, grant.lease);
    if own_row.client.now() >= until {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    let next = holding.next.as_ref().map(|next| Next {
        acquisition: next.id,
        owner: next.owner,
        mode: next.mode,
        ticket: next.ticket.unwrap_or_else(|| own_row.ticket()),
    });
    let Some(sent) = own_row.hold(grant.id, grant.mode, next).await? else {
        return Ok(Renewal::Lost(LossReason::Gone));
    };
    // Acknowledged too late: the row may have been gone in between, and another client inside.
    if own_row.client.now() >= until {
        return Ok(Renewal::Lost(LossReason::Lapsed));
    }
    // A waiter that died is buried by those that it stands in the way of: it must not keep new holders of this client out meanwhile.
    own_row.leave_out_the_dead(&mut look);
    Ok(Renewal::Renewed { sent, contended: is_contended(&look, own_row.client.slot, grant.mode) })
}

/// Returns why this grant is lost, by what the partition shows; nothing if it is not lost.
fn loss(look: &Partition, own_row: &OwnRow, grant: &Grant) -> Option<LossReason> {
    let own = look.rows.iter().find(|seen| seen.slot == own_row.client.slot);
    let id = own_row.shown_as(grant.id);
    if own.is_some_and(|own| own.revoked == Some(id)) {
        return Some(LossReason::Revoked);
    }
    let shown = own.and_then(|own| own.row.as_ref()).is_some_and(|row| row.acquisition == id);
    (!shown || is_taken(look, own_row, grant) || is_succeeded(look, grant)).then_some(LossReason::Gone)
}

/// Returns whether another client that conflicts says that it is inside, with a later token of that very row: the token of a row that was buried
/// stays, and beside an earlier row, which a replica shows again that missed the burial, it would look like a successor's.
fn is_taken(look: &Partition, own_row: &OwnRow, grant: &Grant) -> bool {
    look.rows.iter().filter(|seen| seen.slot != own_row.client.slot).any(|seen| {
        let held = seen.row.as_ref().filter(|row| row.state == State::Held);
        let later = seen.present_claim().map(|claim| claim.token) > grant.token;
        later && held.is_some_and(|row| conflicts(row.mode, grant.mode))
    })
}

/// Returns whether a client that conflicts was inside with a later token, and has left again. The own row may still be there then: a burial
/// may have hidden it from that client, and a renewal that was late, or a replica that missed the burial, shows it again. Only tokens of
/// clients that were inside are kept there, so a holder that is valid never finds a larger one.
fn is_succeeded(look: &Partition, grant: &Grant) -> bool {
    let last_read = look.last_read.filter(|_| conflicts(Mode::Read, grant.mode));
    look.last_write.max(last_read) > grant.token
}

fn conflicts(one: Mode, other: Mode) -> bool {
    one.conflicts_with(other)
}
