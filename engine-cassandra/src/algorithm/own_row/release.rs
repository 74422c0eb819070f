//! The end of a part that a client's row takes: the write that leaves, and what is left to do until nothing of it is in doubt.

use std::time::Duration;

use ylock_core::Result;
use ylock_core::engine::{AcquisitionId, Request};

use super::{Client, Inner, OwnRow};
use crate::algorithm::store::{Row, State};

impl OwnRow {
    /// Ends an acquisition in one write, wherever it stands: in the queue, in the main row, at the place behind what is held, or in
    /// doubt. With `next`, that request joins the queue in the same write. Returns whether the acquisition was there: if not, nothing
    /// is written. Nor is anything written where all that was to make it take part was refused.
    ///
    /// Can be repeated until it is acknowledged.
    pub(crate) async fn release(&self, id: AcquisitionId, next: Option<&Request>) -> Result<bool> {
        let was_there = self.decide(|client, inner| {
            if inner.last_write.take_back(id) {
                return Ok(false);
            }
            if inner.last_write.row_of(id).is_some() {
                inner.behind = self.behind(inner);
            }
            let Some(row) = inner.row_without(client, id, next) else {
                // Never there; or left already, by a write that may have to be sent again.
                return Ok(inner.last_write.releasing == Some(id));
            };
            inner.last_write.releasing = Some(id);
            inner.last_write.overwrite(client, row.clone(), None).or_else(|_| {
                // There is no token for the next request. That is no reason to stay: that request gets the error when it claims.
                inner.last_write.overwrite(client, Row { state: State::Waiting, ..row }, None)
            })?;
            Ok(true)
        })?;
        if was_there {
            self.arrive().await?;
            let releasing = &mut self.inner.lock().last_write.releasing;
            releasing.take_if(|releasing| *releasing == id);
        }
        Ok(was_there)
    }

    /// Sends once more what was left in doubt.
    pub(crate) async fn settle(&self) -> Result<()> {
        if self.is_left() { self.arrive().await.map(drop) } else { Ok(()) }
    }

    /// Returns whether no acquisition takes part by way of this row.
    pub(crate) fn is_left(&self) -> bool {
        self.inner.lock().last_write.is_left()
    }

    /// Returns whether all that was written is known to have arrived, and every used token to be saved.
    pub(crate) fn is_settled(&self) -> bool {
        let last_write = &self.inner.lock().last_write;
        last_write.row().is_none() || (last_write.is_acknowledged() && !last_write.has_unsaved_token())
    }

    /// Returns whether the servers have forgotten what was written last. It is not known when a write without an acknowledgement was
    /// sent, so such a write does not count.
    fn has_expired(&self) -> bool {
        let last_write = &self.inner.lock().last_write;
        let ttl = Duration::from_secs(u64::from(last_write.row_ttl())) + self.client.max_clock_skew;
        last_write.is_acknowledged() && last_write.sent().plus(ttl) <= self.client.now()
    }

    /// Removes the row, unless it has expired by itself, or is the only place where a used token is known to be.
    pub(crate) async fn erase(&self) -> Result<()> {
        if self.inner.lock().last_write.has_unsaved_token() {
            // A release that is in doubt: the row may still show what was held.
            self.settle().await?;
        }
        let stamp = {
            let last_write = &self.inner.lock().last_write;
            if last_write.row().is_none() || last_write.has_unsaved_token() {
                return Ok(());
            }
            self.client.stamps.next(&*self.client.environment)
        };
        if self.has_expired() {
            return Ok(());
        }
        self.client.store.erase(&self.key, self.client.slot, stamp).await
    }
}

impl Inner {
    /// Returns the row without what it shows of this acquisition; nothing if it shows nothing of it.
    fn row_without(&mut self, client: &Client, id: AcquisitionId, next: Option<&Request>) -> Option<Row> {
        if let Some(left) = self.last_write.row_of(id).cloned() {
            self.last_write.exit();
            return Some(self.row_after(client, left, next));
        }
        let row = self.last_write.row().filter(|row| row.next.is_some_and(|next| next.acquisition == id))?;
        // A holder that has lost the lock does not write itself back; and the place of the waiter behind it goes with its row.
        self.last_write.is_valid(client.now()).then(|| Row { next: None, ..row.clone() })
    }

    /// Returns the row that follows one that is left: idle, or that of the `next` request. A request that was shown waiting behind the
    /// row keeps its place; if the last look showed no other client, the request claims at once.
    fn row_after(&self, client: &Client, left: Row, next: Option<&Request>) -> Row {
        let Some(next) = next else { return Row { state: State::Idle, next: None, hints: None, ..left } };
        let row = self.new_row(client, next);
        let shown = left.next.filter(|shown| shown.mode == next.mode).map(|shown| shown.ticket);
        let state = if self.seen.others > 0 { State::Waiting } else { State::Claimed };
        Row { state, ticket: next.ticket.or(shown).unwrap_or(row.ticket), ..row }
    }
}
