//! The listing of locks: pages of the keys of contenders, of which each lock has those that belong together.

use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use super::client::Client;
use super::store::{Keys, Look, Transaction, after_all_below, to_error};

/// The most contenders that are read for a page.
const SIZE: i64 = 400;

/// Returns a page of locks. The next one begins after the last lock of this one, whose other contenders are passed over.
pub(crate) async fn keys(client: &Client, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let prefix = client.names.locks(group).into_bytes();
    let end = after_all_below(&prefix);
    let begin = match after {
        None => prefix,
        Some(after) => {
            let after = Key::read(after).ok_or_else(KeyPage::wrong)?;
            if group.is_some_and(|group| group != after.group()) {
                return Err(KeyPage::wrong());
            }
            after_all_below(client.names.lock(&after).as_bytes())
        }
    };
    let look = Look { most: SIZE, values: false, ..Look::at(Keys { begin, end: Some(end) }) };
    let mut outcome = client.transact("list", Transaction::looking([look])).await.map_err(to_error)?;
    let seen = outcome.seen(0);
    // What other programs put there is no lock.
    let mut keys: Vec<Key> =
        seen.entries.iter().filter_map(|entry| client.names.read_lock(&entry.key)).collect();
    keys.dedup();
    let next = keys.last().filter(|_| seen.more).map(Key::to_text);
    Ok(KeyPage::new(keys, next))
}
