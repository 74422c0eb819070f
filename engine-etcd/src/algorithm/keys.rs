//! The listing of locks: pages of the keys of contenders, of which each lock has those that belong together.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use super::client::Client;
use super::names::Names;
use super::store::{Entry, Keys, Look, Transaction, after_all_below, to_error};

/// The most contenders that are read for a page.
const SIZE: i64 = 400;

/// What the position of a page begins with that ends with what is no lock.
const FOREIGN: char = '/';

/// Returns a page of locks. The next one begins after the last lock of this one, whose other contenders are passed over.
pub(crate) async fn keys(client: &Client, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let prefix = client.names.locks(group).into_bytes();
    let end = after_all_below(&prefix);
    let begin = match after {
        None => prefix,
        Some(after) => {
            let begin = begin_after(&client.names, after).ok_or_else(KeyPage::wrong)?;
            Some(begin).filter(|begin| (&prefix..=&end).contains(&begin)).ok_or_else(KeyPage::wrong)?
        }
    };
    let look = Look { most: SIZE, values: false, ..Look::at(Keys { begin, end: Some(end) }) };
    let mut outcome = client.transact("list", Transaction::looking([look])).await.map_err(to_error)?;
    let seen = outcome.seen(0);
    let lock = |entry: &Entry| client.names.read_lock(&entry.key);
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
    fn a_page_begins_after_the_last_key_of_the_one_before_whatever_that_is() {
        let names = Names::below("y");
        assert_eq!(begin_after(&names, "1:gn").unwrap(), b"y/k/g/n0");
        assert_eq!(begin_after(&names, "/y%2Fk%2Fodd%FF").unwrap(), b"y/k/odd\xff\0");
        for wrong in ["", "nonsense", "1:", "/y/k/odd", "/%zz", "/%2f"] {
            assert_eq!(begin_after(&names, wrong), None, "{wrong}");
        }
    }
}
