//! How a lock is stored, as far as this crate reads it by itself: the fields of its hash, and the words in them. The scripts write it; the
//! table at the beginning of `scripts/lock.lua` has all fields, and a test compares.

use std::collections::HashMap;

use ylock_core::{Error, ErrorKind, Result};

use crate::words::{BETWEEN, NONE};

/// The beginnings of the fields that there are for each acquisition; its identity follows.
const HOLDER: &str = "h:";
const WAITER: &str = "a:";
const NEXT: &str = "q:";
const WHO: &str = "o:";
/// The first waiter on each level of the queue.
const FIRST: &str = "f";

/// The whole hash of a lock.
pub(crate) struct Stored(HashMap<String, String>);

/// The words about a holder, in the order in which they are stored.
pub(crate) struct StoredHolder<'a> {
    pub(crate) mode: &'a str,
    pub(crate) expires: &'a str,
    pub(crate) token: &'a str,
    pub(crate) since: &'a str,
}

/// The words about a waiter.
pub(crate) struct StoredWaiter<'a> {
    pub(crate) mode: &'a str,
    pub(crate) alive: &'a str,
    pub(crate) since: &'a str,
}

impl Stored {
    /// Reads fields and values, in turn.
    pub(crate) fn of(list: &[String]) -> Self {
        Self(list.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
    }

    /// Returns the number of fields.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the identities of all holders, in no order.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|field| field.strip_prefix(HOLDER))
    }

    pub(crate) fn holder(&self, id: &str) -> Result<StoredHolder<'_>> {
        let text = self.text(HOLDER, id)?;
        let [mode, expires, _lease, token, since, _revoked] = array(text, text.split(BETWEEN))?;
        Ok(StoredHolder { mode, expires, token, since })
    }

    pub(crate) fn waiter(&self, id: &str) -> Result<StoredWaiter<'_>> {
        let text = self.text(WAITER, id)?;
        let [mode, alive, _lease, since, _ticket, _number, _behind] = array(text, text.split(BETWEEN))?;
        Ok(StoredWaiter { mode, alive, since })
    }

    /// Returns owner and client of a holder or waiter.
    pub(crate) fn who(&self, id: &str) -> Result<(&str, &str)> {
        let text = self.text(WHO, id)?;
        // The client's name is the rest: it may have blanks in it.
        let [owner, _channel, client] = array(text, text.splitn(3, BETWEEN))?;
        Ok((owner, client))
    }

    /// Returns the first waiter, or the one after a waiter: on the lowest level, which has all of them.
    pub(crate) fn first(&self) -> Option<&str> {
        lowest(self.0.get(FIRST)?)
    }

    pub(crate) fn after(&self, id: &str) -> Option<&str> {
        lowest(self.0.get(&format!("{NEXT}{id}"))?)
    }

    fn text(&self, field: &str, id: &str) -> Result<&str> {
        let field = format!("{field}{id}");
        self.0.get(&field).map(String::as_str).ok_or_else(|| odd(&field))
    }
}

fn lowest(links: &str) -> Option<&str> {
    links.split(BETWEEN).next().filter(|id| *id != NONE)
}

fn array<'a, const COUNT: usize>(
    text: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<[&'a str; COUNT]> {
    words.collect::<Vec<_>>().try_into().map_err(|_| odd(text))
}

/// Returns the error for something that no script writes.
pub(crate) fn odd(what: &str) -> Error {
    let message = format!("{what:?} of the stored lock is missing, or is not what this version writes");
    Error::new(ErrorKind::Unexpected, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scripts::{ACQUIRE, INSPECT, RELEASE, RENEW, REVOKE};

    /// Returns the fields of the table at the beginning of `lock.lua`; of those that have an identity or a number in them, the beginning.
    fn described() -> BTreeSet<String> {
        let rows = include_str!("scripts/lock.lua").lines().filter_map(|line| line.strip_prefix("--   "));
        let names = rows.filter_map(|row| row.split("  ").next());
        let fields = names.flat_map(|names| names.split(", ")).filter(|field| !field.is_empty());
        fields.map(|field| field.split('<').next().unwrap_or_default().to_owned()).collect()
    }

    /// Returns the fields that the scripts name: one letter or two, and a colon where something follows. Modes are not fields.
    fn used() -> BTreeSet<String> {
        let text = [ACQUIRE, RELEASE, RENEW, INSPECT, REVOKE].concat();
        let code: String = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
        let quoted = code.split('\'').skip(1).step_by(2);
        let is_field = |word: &&str| {
            let name = word.strip_suffix(':').unwrap_or(word);
            (1..=2).contains(&name.len()) && name.chars().all(|letter| letter.is_ascii_lowercase())
        };
        quoted.filter(is_field).filter(|word| *word != "r").map(str::to_owned).collect()
    }

    #[test]
    fn the_table_has_every_field_that_a_script_uses_and_no_other() {
        assert_eq!(described(), used());
    }

    #[test]
    fn what_is_read_is_in_the_table() {
        for field in [HOLDER, WAITER, NEXT, WHO, FIRST] {
            assert!(described().contains(field), "{field}");
        }
    }
}
