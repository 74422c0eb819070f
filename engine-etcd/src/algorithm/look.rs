//! What a contender asks of its queue: who is before it, and who behind.

use ylock_core::{Error, ErrorKind, Key, Mode, Result};

use super::contender::Contender;
use super::judge::{Queue, is_enough};
use super::link::Link;
use super::session::Session;
use super::store::{Header, Keys, Look, Outcome, Seen, Step, Transaction, to_error};

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
pub(super) fn newest(link: &Link, key: &Key, mode: Mode, is_strict: bool) -> Look {
    let most = if mode == Mode::Write { 3 } else { READERS_LOOK };
    Look {
        newest_first: true,
        most,
        values: mode == Mode::Read || is_strict,
        ..Look::at(Keys::below(link.names.rivals(key, mode)))
    }
}

/// Looks at the queue of a contender.
pub(crate) async fn look(link: &Link, session: &Session, own: &Own) -> Result<Looked> {
    let is_strict = own.contender.ticket.is_some();
    let rivals = newest(link, &own.key, own.contender.mode, is_strict);
    match look_at(link, session, own, rivals.clone()).await? {
        Some(looked) => Ok(looked),
        None => {
            let all = look_at(link, session, own, Look { most: 0, ..rivals }).await?;
            all.ok_or_else(|| Error::new(ErrorKind::Unexpected, "a look at all contenders has not shown all"))
        }
    }
}

/// Looks at a contender's rivals; `None` if too few of those before it were shown.
async fn look_at(link: &Link, session: &Session, own: &Own, rivals: Look) -> Result<Option<Looked>> {
    let contender = &own.contender;
    let before = |look: Look| Look { made_before: Some(contender.place), ..look };
    let looks = vec![
        Look { values: false, ..Look::at(Keys::one(contender.key.clone())) },
        before(rivals.clone()),
        behind(rivals, contender.place, contender.ticket.is_some()),
    ];
    let mut outcome = session.transact(link, "look", Transaction::looking(looks)).await.map_err(to_error)?;
    let (header, own_seen, seen) = (outcome.header, outcome.seen(0), outcome.seen(1));
    if own_seen.entries.first().is_none_or(|entry| entry.made != contender.place) {
        return Ok(Some(Looked { header, queue: None }));
    }
    let before = contenders(&seen)?;
    if seen.more && !is_enough(&before, contender.mode) {
        return Ok(None);
    }
    let queue = Queue { before, behind: contenders(&outcome.seen(2))? };
    Ok(Some(Looked { header, queue: Some(queue) }))
}

/// Returns the look at those behind: all if tickets decide, otherwise enough to know whether there are any besides one of the same client.
fn behind(rivals: Look, place: i64, is_strict: bool) -> Look {
    let most = if is_strict { 0 } else { 2 };
    Look { most, newest_first: false, made_after: Some(place), values: true, ..rivals }
}

/// Returns the steps that show a holder its own key, and whether contenders wait behind it that conflict.
pub(super) fn renewal_steps(link: &Link, key: &Key, own: &Contender) -> [Step; 2] {
    let rivals = newest(link, key, own.mode, false);
    [Step::Look(Look::at(Keys::one(own.key.clone()))), Step::Look(behind(rivals, own.place, false))]
}

pub(crate) fn contenders(seen: &Seen) -> Result<Vec<Contender>> {
    seen.entries.iter().map(Contender::read).collect()
}

/// Returns what the look in the transaction that put a contender's key has shown. `None` if too few of those before were shown.
pub(crate) fn at_once(outcome: &mut Outcome, step: usize, own: &Contender) -> Result<Option<Looked>> {
    let seen = outcome.seen(step);
    let mut before = contenders(&seen)?;
    before.retain(|other| other.place < own.place);
    if seen.more && !is_enough(&before, own.mode) {
        return Ok(None);
    }
    // None can be behind: the contender has the newest key of all.
    let queue = Queue { before, behind: Vec::new() };
    Ok(Some(Looked { header: outcome.header, queue: Some(queue) }))
}
