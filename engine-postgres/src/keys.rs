//! The keys of the locks that are there, in the order of their bytes.

use ylock_core::engine::KeyPage;
use ylock_core::{Key, Result};

use crate::client::Client;
use crate::driver::{Call, Function, Value};
use crate::place;

/// The number of rows that the server looks at for one page.
const LOOKED_AT: i32 = 500;

/// Returns a page of the keys of the locks that are held or waited for.
pub(crate) async fn keys(client: &Client, group: Option<&str>, after: Option<&str>) -> Result<KeyPage> {
    let bounds = group.map(place::bounds);
    let after = after.map(|next| Key::read(next).ok_or_else(KeyPage::wrong)).transpose()?;
    if after.as_ref().is_some_and(|after| group.is_some_and(|group| group != after.group())) {
        return Err(KeyPage::wrong());
    }
    let first = bounds.as_ref().map(|(first, _)| first.clone()).unwrap_or_default();
    let begin = after.as_ref().map_or(first, place::of);
    let call = Call::of(Function::Keys)
        .with(Value::Bytes(Some(begin)))
        .with(Value::Bytes(bounds.map(|(_, behind)| behind)))
        .with(Value::Small(LOOKED_AT));
    let answer = client.store.call(call).await?;
    let (mut keys, mut last, mut count) = (Vec::new(), None, 0);
    for row in answer.rows() {
        count += 1;
        // What another program has put there is no lock.
        let Some(key) = place::read(row.get("key")?) else { continue };
        if row.get("used")? {
            keys.push(key.clone());
        }
        last = Some(key);
    }
    let next = last.filter(|_| count == LOOKED_AT).map(|key| key.to_text());
    Ok(KeyPage::new(keys, next))
}
