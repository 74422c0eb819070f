//! What was undone for good must not be in a lock later.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::server::{Inner, Server};

/// The time for which a request may be on its way, in milliseconds.
const LATE: i64 = 60_000;

/// The acquisitions that are undone for good, and until when a request of them may come, in milliseconds since 1970. All servers of a
/// cluster have it in common: a late request may come when the lock has moved.
pub(super) type Undone = Arc<Mutex<BTreeMap<Vec<u8>, i64>>>;

impl Server {
    /// Notes that nothing of an acquisition may be in the store from now on.
    pub(super) fn has_ended(&self, id: Vec<u8>) {
        let inner = self.inner();
        let until = inner.micros() / 1_000 + LATE;
        inner.undone.lock().insert(id, until);
    }

    pub(super) fn undone(&self) -> Undone {
        Arc::clone(&self.inner().undone)
    }
}

impl Inner {
    /// Looks whether an acquisition that was undone is in the lock all the same.
    pub(super) fn look_for_undone(&mut self, hash: &str, key: &[u8], arguments: &[Vec<u8>]) {
        let now = self.micros() / 1_000;
        if let ([id, late, ..], true) = (arguments, hash == self.release) {
            // Whatever the client says: it says zero only if no request of the acquisition can come any more, and may be wrong.
            let late: i64 = std::str::from_utf8(late).ok().and_then(|late| late.parse().ok()).unwrap_or(0);
            let mut undone = self.undone.lock();
            let until = undone.entry(id.clone()).or_default();
            *until = (*until).max(now + late.max(LATE));
        }
        let mut reachable = self.interpreter.reachable();
        let Some(lock) = reachable.database.hashes(now).get(key) else { return };
        let ids =
            lock.fields.keys().filter_map(|field| field.strip_prefix(b"h:").or(field.strip_prefix(b"a:")));
        let undone = self.undone.lock();
        let found = ids.filter(|id| undone.get(*id).is_some_and(|until| *until > now));
        let found: Vec<_> = found.map(|id| String::from_utf8_lossy(id).into_owned()).collect();
        drop((reachable, undone));
        self.wrong.extend(found.into_iter().map(|id| format!("{id} was undone, and is in the store")));
    }
}
