//! Letting in: the client that makes room lets the next ones in, within the same change of the file, and tells them that they are inside. So a
//! waiter whose turn comes need not read the file.
//!
//! A message may be lost: a waiter that looks by itself finds that it is inside already. It may be late: the waiter goes by the moment in it.

use smallvec::SmallVec;
use ylock_core::engine::AcquisitionId;
use ylock_core::queue::{Contender, Now, Queue};

use crate::client_id::ClientId;
use crate::message::{LetIn, Message};
use crate::state::State;

/// What waiters are told, each with its client.
pub(crate) type Told = SmallVec<[(ClientId, Message); 2]>;
type Ids = SmallVec<[AcquisitionId; 2]>;

/// Lets in those whose turn it is. Returns what is to be told, once that is stored.
pub(crate) fn let_in(state: &mut State, token_clock: u64, now: Now) -> Told {
    let turns: Ids = state.queue.whose_turn_it_is().map(Contender::id).collect();
    let mut told = Told::new();
    for id in &turns {
        let Some(let_in) = enter(state, *id, token_clock, now) else { continue };
        told.extend(message(&state.queue, *id, Some(let_in)));
    }
    for id in to_look(&state.queue, &turns) {
        told.extend(message(&state.queue, id, None));
    }
    told
}

/// Lets one in. Nothing if it may not enter any more, because an unfair one has just entered; or has run out of tokens, which it finds out by a
/// look.
fn enter(state: &mut State, id: AcquisitionId, token_clock: u64, now: Now) -> Option<LetIn> {
    let token = state.enter(id, token_clock, now)?;
    Some(LetIn { token, sent: now.moment, contended: state.queue.is_contended(id, None) })
}

fn message(
    queue: &Queue<ClientId>,
    waiter: AcquisitionId,
    let_in: Option<LetIn>,
) -> Option<(ClientId, Message)> {
    queue.find(waiter).map(|contender| (contender.kept, Message { waiter, let_in }))
}

/// Returns the waiters that are to look: each whose turn it was until another one entered, because that one is in its way now and it need not
/// watch it. If it was none's turn, the first one: a reader that it does not know may be inside. Each other one watches all that are before it,
/// and so the one that has entered.
fn to_look(queue: &Queue<ClientId>, turns: &[AcquisitionId]) -> Ids {
    let mut waiters = queue.waiters().filter(|waiter| waiter.behind().is_none());
    if turns.is_empty() {
        return waiters.next().map(Contender::id).into_iter().collect();
    }
    waiters.map(Contender::id).filter(|id| turns.contains(id)).collect()
}
