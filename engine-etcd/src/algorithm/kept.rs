//! A key of this client as it was stored last: what a change of it is checked against.

use std::sync::Arc;

use ylock_core::Result;
use ylock_core::engine::AcquisitionId;

use super::contender::Content;
use super::session::Session;
use super::store::{Condition, Entry, Put};

/// A key as it was stored last, as far as this client knows.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: AcquisitionId,
    pub(crate) number: u64,
    pub(crate) session: Arc<Session>,
    pub(crate) stored_at: Vec<u8>,
    pub(crate) place: i64,
    /// The revision of its last change.
    pub(crate) changed: i64,
    pub(crate) content: Content,
}

impl Kept {
    /// Returns what holds for as long as no other client has changed the key.
    pub(super) fn is_unchanged(&self) -> Condition {
        Condition::ChangedAt(self.stored_at.clone(), self.changed)
    }

    /// Returns what puts the key under the lease of a session.
    pub(super) fn put_in(&self, session: &Session) -> Put {
        Put { key: self.stored_at.clone(), value: self.content.write(), lease: Some(session.lease) }
    }

    /// Returns the key as it was seen; `None` if it is not this contender's any more.
    pub(super) fn seen(self, entry: Option<Entry>) -> Result<Option<Self>> {
        let Some(entry) = entry.filter(|entry| entry.made == self.place) else { return Ok(None) };
        Ok(Some(Self { changed: entry.changed, content: Content::read(&entry.value)?, ..self }))
    }
}
