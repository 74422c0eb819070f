//! What a contender asks of its queue: who is before it, and who behind.

use ylock_core::engine::AcquisitionId;
use ylock_core::{Key, Mode, Result};

use super::client::Client;
use super::contender::Contender;
use super::judge::{Queue, is_enough};
use super::session::Session;
use super::store::{Header, Keys, Look, Seen, Step, Transaction, to_error};

/// How many of those before a reader are shown at first: some may be writers that have become readers, which do not count.
const READERS_LOOK: i64 = 16;

/// A contender that looks.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) key: Key,
    pub(crate) contender: Contender,
}

/// What a look has shown.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) header: Header,
    /// `None` if the contender's own key is not there.
    pub(crate) queue: Option<Queue>,
}

/// Returns the look at the newest contenders that conflict with one of this mode, or may. One more than is needed: that which looks may be
/// among them.
pub(super) fn newest(client: &Client, key: &Key, mode: Mode, is_strict: bool) -> Look {
    let most = if mode == Mode::Write { 3 } else { READERS_LOOK };
    Look {
        newest_first: true,
        most,
        values: mode == Mode::Read || is_strict,
        ..Look::at(Keys::below(client.names.rivals(key, mode)))
    }
}

/// Looks at the queue of a contender.
pub(crate) async fn look(client: &Client, session: &Session, own: &Own) -> Result<Looked> {
    let looked = look_at(
        client,
        session,
        own,
        newest(client, &own.key, own.contender.mode, own.contender.ticket.is_some()).most,
    )
    .await?;
    if let Some((_, true)) = looked.1 {
        let (header, queue) = look_at(client, session, own, 0).await?;
        return Ok(Looked { header, queue: queue.map(|(queue, _)| queue) });
    }
    Ok(Looked { header: looked.0, queue: looked.1.map(|(queue, _)| queue) })
}

/// Returns what the look has shown, and whether it has shown too little of those before.
async fn look_at(
    client: &Client,
    session: &Session,
    own: &Own,
    most: i64,
) -> Result<(Header, Option<(Queue, bool)>)> {
    let Own { key, contender } = own;
    let is_strict = contender.ticket.is_some();
    let rivals = newest(client, key, contender.mode, is_strict);
    let before = Look { most, made_before: Some(contender.place), ..rivals.clone() };
    let looks = [
        Look { values: false, ..Look::at(Keys::one(contender.key.clone())) },
        before,
        behind(rivals, contender.place, is_strict),
    ];
    let mut outcome =
        session.transact(client, "look", Transaction::looking(looks)).await.map_err(to_error)?;
    let own_seen = outcome.seen(0);
    if own_seen.entries.first().is_none_or(|entry| entry.made != contender.place) {
        return Ok((outcome.header, None));
    }
    let seen = outcome.seen(1);
    let before = contenders(&seen)?;
    let too_little = seen.more && !is_enough(&before, contender.mode);
    Ok((outcome.header, Some((Queue { before, behind: contenders(&outcome.seen(2))? }, too_little))))
}

/// Returns the look at those behind: all if tickets decide, otherwise enough to know whether there are any besides one of the same client.
fn behind(rivals: Look, place: i64, is_strict: bool) -> Look {
    Look { most: if is_strict { 0 } else { 2 }, newest_first: false, made_after: Some(place), ..rivals }
}

/// Returns the steps that show a holder its own key, and whether contenders wait behind it that conflict.
pub(super) fn renewal_steps(client: &Client, key: &Key, own: &Contender) -> [Step; 2] {
    let rivals = newest(client, key, own.mode, false);
    [Step::Look(Look::at(Keys::one(own.key.clone()))), Step::Look(behind(rivals, own.place, false))]
}

pub(crate) fn contenders(seen: &Seen) -> Result<Vec<Contender>> {
    seen.entries.iter().map(Contender::read).collect()
}

/// Returns those of a look at the newest that came before a contender.
pub(crate) fn before(seen: &Seen, id: AcquisitionId, place: i64) -> Result<Vec<Contender>> {
    let mut all = contenders(seen)?;
    all.retain(|other| other.place < place && other.id != id);
    Ok(all)
}
