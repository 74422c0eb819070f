//! Reads the holders and the queue of a lock from its hash.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ylock_core::engine::{AcquisitionId, Holder, Inspection, Waiter};
use ylock_core::{ClientName, Error, ErrorKind, Mode, Owner, Result, StoreToken};

use crate::driver::Answer;
use crate::identity;

/// The whole hash of a lock.
struct Hash {
    now: i64,
    /// True if tokens are shown.
    fencing: bool,
    fields: HashMap<String, String>,
}

/// Reads the answer of the script `inspect`.
pub(crate) fn read(mut answer: Answer, fencing: bool) -> Result<Inspection> {
    let now = answer.number()?;
    let list = answer.list()?;
    let fields = list.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let hash = Hash { now, fencing, fields };
    let mut inspection = Inspection::default();
    (inspection.holders, inspection.queue) = (hash.holders()?, hash.queue()?);
    Ok(inspection)
}

impl Hash {
    fn holders(&self) -> Result<Vec<Holder>> {
        let ids = self.fields.keys().filter_map(|field| field.strip_prefix("h:"));
        let mut holders = Vec::new();
        for id in ids {
            let [mode, expires, _, token, since, _] = self.words(&format!("h:{id}"))?;
            if number(expires)? <= self.now {
                continue;
            }
            let token = u64::try_from(number(token)?).ok().and_then(StoreToken::new);
            let shown = self.shown(id, mode, since)?;
            holders.push((token, Holder::of(shown, token.filter(|_| self.fencing).map(Into::into))));
        }
        holders.sort_by_key(|(token, _)| *token);
        Ok(holders.into_iter().map(|(_, holder)| holder).collect())
    }

    fn queue(&self) -> Result<Vec<Waiter>> {
        let mut queue = Vec::new();
        let mut next = self.after("f");
        // Damaged data could lead round and round.
        while let Some(id) = next.filter(|_| queue.len() < self.fields.len()) {
            let [mode, alive, _, since, ..] = self.words::<7>(&format!("a:{id}"))?;
            if number(alive)? > self.now {
                queue.push(self.shown(id, mode, since)?);
            }
            next = self.after(&format!("q:{id}"));
        }
        Ok(queue)
    }

    /// Returns the first waiter, or the one after a waiter: on the lowest level, which has all of them.
    fn after(&self, field: &str) -> Option<&str> {
        let links = self.fields.get(field)?;
        links.split(' ').next().filter(|id| *id != "-")
    }

    /// Reads what a holder and a waiter have in common.
    fn shown(&self, id: &str, mode: &str, since: &str) -> Result<Waiter> {
        let text = self.text(&format!("o:{id}"))?;
        // The client's name is the rest: it may have blanks in it.
        let [owner, _, client] = array(text, text.splitn(3, ' '))?;
        let owner = identity::read(owner).ok_or_else(|| odd(owner))?;
        let (owner, client) = (Owner::from_bytes(owner.to_be_bytes()), ClientName::stored(client));
        Ok(Waiter::new(acquisition(id)?, owner, client, mode_of(mode)?, time(number(since)?)))
    }

    fn words<const COUNT: usize>(&self, field: &str) -> Result<[&str; COUNT]> {
        let text = self.text(field)?;
        array(text, text.split(' '))
    }

    fn text(&self, field: &str) -> Result<&str> {
        self.fields.get(field).map(String::as_str).ok_or_else(|| odd(field))
    }
}

fn array<'a, const COUNT: usize>(
    text: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<[&'a str; COUNT]> {
    words.collect::<Vec<_>>().try_into().map_err(|_| odd(text))
}

fn acquisition(word: &str) -> Result<AcquisitionId> {
    identity::read(word).map(AcquisitionId::from_u128).ok_or_else(|| odd(word))
}

fn number(word: &str) -> Result<i64> {
    word.parse().map_err(|_| odd(word))
}

fn mode_of(word: &str) -> Result<Mode> {
    match word {
        "r" => Ok(Mode::Read),
        "w" => Ok(Mode::Write),
        _ => Err(odd(word)),
    }
}

fn time(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn odd(what: &str) -> Error {
    let message = format!("{what:?} of the stored lock is missing, or is not what this version writes");
    Error::new(ErrorKind::Unexpected, message)
}
