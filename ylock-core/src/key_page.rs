//! A page of keys, as an engine lists them.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;

/// The keys of a page, where an engine knows all keys at once.
const SIZE: usize = 100;

/// Some of the keys that are held or waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPage {
    /// The keys, in no order in particular.
    pub keys: Vec<Key>,
    /// What to ask for the page after this one; `None` if this is the last one.
    pub next: Option<String>,
}

impl KeyPage {
    /// Creates a page.
    pub fn new(keys: Vec<Key>, next: impl Into<Option<String>>) -> Self {
        Self { keys, next: next.into() }
    }

    /// Creates a page for an engine that knows all keys at once, in whatever order: the first keys, or those that follow `after`.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if `after` is not the [`next`](Self::next) of such a page.
    pub fn of(all: impl Iterator<Item = Key>, after: Option<&str>) -> Result<Self> {
        let after = after.map(|next| Key::read(next).ok_or_else(Self::wrong)).transpose()?;
        let mut keys: Vec<Key> = all.filter(|key| after.as_ref().is_none_or(|after| key > after)).collect();
        let is_last = keys.len() <= SIZE;
        if !is_last {
            keys.select_nth_unstable(SIZE);
            keys.truncate(SIZE);
        }
        keys.sort_unstable();
        let next = keys.last().filter(|_| !is_last).map(Key::to_text);
        Ok(Self { keys, next })
    }

    /// Returns the error for what was not the [`next`](Self::next) of a page.
    pub fn wrong() -> Error {
        Error::new(ErrorKind::Invalid, "this is not what a page of keys says is next")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::new("a group: of 3 \n parts", format!("{number:05}")).unwrap()
    }

    #[test]
    fn pages_have_each_key_once_in_order() {
        for count in [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 3 * SIZE + 1] {
            let (mut all, mut after, mut pages) = (Vec::new(), None::<String>, 0);
            loop {
                // Whatever the order in which the engine has them.
                let page = KeyPage::of((0..count).rev().map(key), after.as_deref()).unwrap();
                all.extend(page.keys);
                pages += 1;
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(all, (0..count).map(key).collect::<Vec<_>>());
            assert_eq!(pages, count.div_ceil(SIZE).max(1));
        }
    }

    #[test]
    fn what_no_page_has_said_is_an_error() {
        for wrong in ["", "1", ":ab", "x:ab", "9:ab", "2:ab", "-1:ab", "+1:ab", "01:ab", "1:\u{fc}b", "1 ab"]
        {
            assert!(KeyPage::of(std::iter::empty(), Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
