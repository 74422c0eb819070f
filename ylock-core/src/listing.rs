//! The locks that are held or waited for, as the store shows them.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::engine::Inspection;
use crate::error::{ErrorKind, Result};
use crate::handle::Handle;
use crate::key::Key;
use crate::name::Name;
use crate::purpose::Purpose;
use crate::semaphore;

/// So many locks are looked at at once: more than one, because each is a trip to the store, and not so many that users of locks notice.
const LOOKS: usize = 16;

/// A listing of the locks that are held or waited for, from [`Ylock::list`](crate::Ylock::list). Nothing is asked before the first call of
/// [`next`](Self::next).
#[derive(Debug)]
pub struct Listing {
    handle: Handle,
    group: Option<Arc<str>>,
    page: Page,
    /// The keys of the page that was read last and that were not looked at yet.
    keys: VecDeque<Key>,
    /// The locks that were looked at and not returned yet.
    found: VecDeque<Listed>,
}

/// A lock or a semaphore that is held or waited for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// The group and the name.
    pub key: Key,
    /// Whether it is a semaphore, and no lock.
    pub is_semaphore: bool,
    /// How many permits a semaphore has, as its clients say.
    pub permits: Option<u32>,
    /// The holders and the waiters, as of [`Ylock::inspect`](crate::Ylock::inspect) or
    /// [`Ylock::inspect_semaphore`](crate::Ylock::inspect_semaphore); or why they cannot be read. One lock that is damaged does not
    /// end the listing, and is not left out of it.
    pub seen: Result<Inspection>,
}

#[derive(Debug)]
enum Page {
    First,
    After(String),
    None,
}

impl Listing {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, group: None, page: Page::First, keys: VecDeque::new(), found: VecDeque::new() }
    }

    /// Returns the listing of the locks of one group only.
    #[must_use]
    pub fn of_group(self, group: impl Name) -> Self {
        Self { group: Some(group.into_name()), ..self }
    }

    /// Returns the next lock, or `None` when all have been returned.
    ///
    /// # Cancel safety
    /// No lock is left out if the future is dropped and the call made again.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the store does not answer: the same call may be made again, and goes on where it stood.
    /// [`Invalid`](crate::ErrorKind::Invalid) for a group outside its limits.
    pub async fn next(&mut self) -> Result<Option<Listed>> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Ok(Some(found));
            }
            if !self.keys.is_empty() {
                self.look().await?;
            } else if !self.read_page().await? {
                return Ok(None);
            }
        }
    }

    /// Looks at some of the keys.
    async fn look(&mut self) -> Result<()> {
        let handle = &self.handle;
        let looks = self.keys.iter().take(LOOKS).cloned().map(|key| look_at(handle, key));
        let looks: Vec<Option<Listed>> = stream::iter(looks).buffered(LOOKS).try_collect().await?;
        // Not before all answers are there: a call that is dropped is made again.
        self.keys.drain(..looks.len());
        let in_use = |seen: &Inspection| !seen.holders.is_empty() || !seen.queue.is_empty();
        // A semaphore has clients while it is in use, and their permits may move behind a look.
        let is_listed =
            |listed: &Listed| listed.permits.is_some() || listed.seen.as_ref().map_or(true, in_use);
        self.found.extend(looks.into_iter().flatten().filter(is_listed));
        Ok(())
    }

    /// Reads the next page of keys. Returns whether there was one.
    async fn read_page(&mut self) -> Result<bool> {
        let after = match &self.page {
            Page::First => None,
            Page::After(after) => Some(after.as_str()),
            Page::None => return Ok(false),
        };
        let page = self.handle.keeper.keys_in_store(self.group.as_deref(), after).await?;
        self.page = page.next.map_or(Page::None, Page::After);
        let mut known = HashSet::new();
        self.keys = page.keys.into_iter().filter(|key| known.insert(key.clone())).collect();
        Ok(true)
    }
}

/// Returns what is to be listed for a key, if anything is.
async fn look_at(handle: &Handle, key: Key) -> Result<Option<Listed>> {
    let listed = match Purpose::of(&key) {
        Purpose::Clients(name) => {
            let seen = semaphore::inspect(handle, &name).await;
            let permits = seen.as_ref().ok().and_then(|seen| seen.permits);
            let seen = seen.map(|seen| Inspection { holders: seen.holders, queue: seen.queue });
            Listed { key: name, is_semaphore: true, permits, seen }
        }
        // Shown with its semaphore, unless that has lost its clients: a holder that hangs may have a permit all the same.
        Purpose::Part(name) if semaphore::is_in_use(handle, &name).await? => return Ok(None),
        Purpose::Lock | Purpose::Part(_) => {
            let seen = handle.keeper.inspect(&key).await;
            Listed { key, is_semaphore: false, permits: None, seen }
        }
    };
    match &listed.seen {
        // Not of this lock, but of the store.
        Err(error) if error.kind() != ErrorKind::Unexpected => Err(error.clone()),
        _ => Ok(Some(listed)),
    }
}
