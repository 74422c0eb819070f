//! The lock that the thesis set out to replace: `TryLock` (Listing 3) and `GetLock` (Listing 4). A baseline to measure against: not
//! fair, exclusive only, and slower the more clients contend.
//!
//! | Listing | here |
//! |---|---|
//! | 3.1 to 3.6: whose is the cell of the main row | `look`: another client says that it is inside |
//! | 3.7: add a cell to the shadow row | `join`, claiming |
//! | 3.8 to 3.10: alone in the shadow row, and no cell in the main row | `look`, and [`Verdict::Enter`] |
//! | 3.11, 3.12: from the shadow row to the main row | `move_in`: one write, where the listing has two |
//! | 3.14: remove the cell from the shadow row | `leave` |
//! | 4.6, 4.9: wait at random | up to 1 s; up to 50 ms times the attempt |
//!
//! The two tables are one: a row that has *claimed* is a cell of the shadow row, one that is *held* a cell of the main row, and one
//! look shows both. That saves the lock of the listing two trips, which is in its favour.
//!
//! **Safety** is the rule of the `judge`, as it is for the queue: my claim was acknowledged before I looked, and the look
//! showed no other client. What the listing leaves out, and what is added: cells have a TTL, so the claim must still be valid when a
//! quorum has the cell of the main row; and a look must show the very claim that was written.

use std::sync::Arc;
use std::time::Duration;

use ylock_core::engine::{Grant, Request, valid_until};
use ylock_core::retry_deadline::RetryDeadline;
use ylock_core::{Mode, Result};

use super::look_past_the_dead;
use crate::algorithm::judge::{Contender, Verdict, is_contended, places_of_others};
use crate::algorithm::own_row::OwnRow;
use crate::algorithm::store::Partition;

/// The longest wait while another client is inside: Listing 4.6.
const ANOTHER_IS_OWNER: Duration = Duration::from_millis(1_000);
/// The time that each attempt adds to the longest wait after several clients have tried at once: Listing 4.9.
const CONCURRENT_ATTEMPT: Duration = Duration::from_millis(50);

/// The outcome of one attempt.
enum Outcome {
    Success(Grant),
    AnotherThreadIsOwner,
    ConcurrentAttempt,
}

/// Tries until it succeeds: Listing 4.
///
/// # Errors
/// `Unavailable` if the store has not answered for one lease. An error that waiting cannot mend is returned at once.
pub(crate) async fn get_lock(own_row: &Arc<OwnRow>, request: &Request) -> Result<Grant> {
    let mut retry_deadline = RetryDeadline::new(&*own_row.client.environment, request.lease);
    let mut attempt = 1;
    let mut waited = false;
    loop {
        match try_lock(own_row, request).await {
            Ok(Outcome::Success(grant)) => return Ok(grant.after_waiting(waited)),
            Ok(Outcome::AnotherThreadIsOwner) => {
                waited = true;
                wait_up_to(own_row, ANOTHER_IS_OWNER).await;
            }
            Ok(Outcome::ConcurrentAttempt) => {
                waited = true;
                wait_up_to(own_row, CONCURRENT_ATTEMPT.saturating_mul(attempt)).await;
                attempt = attempt.saturating_add(1);
            }
            Err(error) => {
                retry_deadline.retry_or_fail(error).await?;
                continue;
            }
        }
        retry_deadline.answered();
    }
}

/// Takes the lock if it is free, and otherwise leaves nothing behind: Listing 3, once.
///
/// # Errors
/// The error of the first request that fails; the caller releases then.
pub(crate) async fn try_get_lock(own_row: &Arc<OwnRow>, request: &Request) -> Result<Option<Grant>> {
    match try_lock(own_row, request).await? {
        Outcome::Success(grant) => Ok(Some(grant)),
        Outcome::AnotherThreadIsOwner | Outcome::ConcurrentAttempt => Ok(None),
    }
}

/// Tries once: Listing 3.
async fn try_lock(own_row: &Arc<OwnRow>, request: &Request) -> Result<Outcome> {
    // An attempt that failed half-way may have left its cell.
    own_row.release(request.id, None).await?;
    if is_in_main_row(&look_past_the_dead(own_row, Mode::Write).await?, own_row) {
        return Ok(Outcome::AnotherThreadIsOwner);
    }
    let me = own_row.join(request, true).await?;
    let until = valid_until(own_row.sent(), request.lease);
    let look = own_row.look().await?;
    // No client is let in beside another one, whatever the modes are.
    match (Contender { mode: Mode::Write, ..me }).judge(&look) {
        Verdict::Enter => own_row.move_in(request, None).await?,
        Verdict::ClaimAbove(floor) => own_row.move_in(request, Some(floor)).await?,
        Verdict::Revoked => {
            own_row.shed(request).await?;
            return give_way(own_row, request).await;
        }
        _ => return give_way(own_row, request).await,
    }
    // The claim's row may have expired before the main row had its cell, and another client may have looked in between.
    if own_row.client.now() >= until {
        return give_way(own_row, request).await;
    }
    Ok(Outcome::Success(grant(own_row, request, &look)?))
}

/// Returns whether another client says that it is inside.
fn is_in_main_row(look: &Partition, own_row: &OwnRow) -> bool {
    places_of_others(look, own_row.client.slot).any(|place| place.is_held())
}

async fn give_way(own_row: &Arc<OwnRow>, request: &Request) -> Result<Outcome> {
    own_row.release(request.id, None).await?;
    Ok(Outcome::ConcurrentAttempt)
}

fn grant(own_row: &Arc<OwnRow>, request: &Request, look: &Partition) -> Result<Grant> {
    let token = own_row.moved_in(request)?;
    let contended = is_contended(look, own_row.client.slot, Mode::Write);
    Ok(Grant::of(request, token, own_row.sent(), contended))
}

/// Waits for a random time between none and `longest`.
async fn wait_up_to(own_row: &OwnRow, longest: Duration) {
    let environment = &own_row.client.environment;
    environment.sleep(longest.mul_f64(environment.fraction())).await;
}
