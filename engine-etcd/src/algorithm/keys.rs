//! The listing of locks: pages of the keys of contenders, of which each lock has those that belong together.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use super::link::Link;
use super::names::Names;
use super::store::{Entry, Keys, Look, Transaction, after_all_below, to_error};

/// The most contenders that are read for a page.
const SIZE: i64 = 400;

/// What the position of a page begins with that ends with what is no lock.
const FOREIGN: char = '/';

/// Returns a page of locks. The next one begins after the last lock of this one, whose other contenders are passed over.
pub(crate) async fn keys(link: &Link, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let prefix = link.names.locks(group).into_bytes();
    let end = after_all_below(&prefix);
    let begin = match after {
        None => prefix,
        Some(after) => {
            let begin = begin_after(&link.names, after).ok_or_else(KeyPage::wrong)?;
            Some(begin).filter(|begin| (&prefix..=&end).contains(&begin)).ok_or_else(KeyPage::wrong)?
        }
    };
    let look = Look { most: SIZE, values: false, ..Look::at(Keys { begin, end: Some(end) }) };
    let mut outcome = link.transact("list", Transaction::looking([look])).await.map_err(to_error)?;
    let seen = outcome.seen(0);
    let lock = |entry: &Entry| lock_of(&link.names, &entry.key);
    let last = seen.entries.last().filter(|_| seen.more);
    let next = last.map(|entry| match lock(entry) {
        Some(key) => key.to_text(),
        None => format!("{FOREIGN}{}", percent_encode(&entry.key, NON_ALPHANUMERIC)),
    });
    // What other programs put there is no lock.
    let mut keys: Vec<Key> = seen.entries.iter().filter_map(lock).collect();
    keys.dedup();
    Ok(KeyPage::new(keys, next))
}

/// Returns the lock below which a contender would have this key.
fn lock_of(names: &Names, key: &[u8]) -> Option<Key> {
    // As no client writes it, it may be anywhere in the order of keys.
    names.read_lock(key).filter(|lock| key.starts_with(names.lock(lock).as_bytes()))
}

/// Returns where the page begins that follows this position.
fn begin_after(names: &Names, position: &str) -> Option<Vec<u8>> {
    let Some(foreign) = position.strip_prefix(FOREIGN) else {
        return Some(after_all_below(names.lock(&Key::read(position)?).as_bytes()));
    };
    let mut key: Vec<u8> = percent_decode_str(foreign).collect();
    let is_as_written = percent_encode(&key, NON_ALPHANUMERIC).to_string() == foreign;
    key.push(0);
    Some(key).filter(|_| is_as_written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_client_writes_is_no_lock() {
        let names = Names::below("y");
        for (key, is_lock) in
            [("y/k/g/n/w/7-0", true), ("y/k/g/~n/v", false), ("y/k/%67/n/v", false), ("y/k/g/n", false)]
        {
            assert_eq!(lock_of(&names, key.as_bytes()).is_some(), is_lock, "{key}");
        }
    }

    #[test]
    fn a_page_begins_after_the_last_key_of_the_one_before_whatever_that_is() {
        let names = Names::below("y");
        assert_eq!(begin_after(&names, "1:gn").unwrap(), b"y/k/g/n0");
        assert_eq!(begin_after(&names, "/y%2Fk%2Fodd%FF").unwrap(), b"y/k/odd\xff\0");
        for wrong in ["", "nonsense", "1:", "/y/k/odd", "/%zz", "/%2f"] {
            assert_eq!(begin_after(&names, wrong), None, "{wrong}");
        }
    }
}
