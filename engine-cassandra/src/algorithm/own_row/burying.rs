//! Burials: what becomes of other clients' rows that are dead.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use ylock_core::environment::Moment;
use ylock_core::{Mode, Result};

use super::OwnRow;
use crate::algorithm::judge::Place;
use crate::algorithm::notebook::Dead;
use crate::algorithm::store::{Partition, SeenRow};
use crate::options::Expiry;

/// The most burials that one client has on their way at once at one key: a thousand clients may have died together.
const CONCURRENT: usize = 64;

impl OwnRow {
    /// Reads the partition, and notes which heartbeats of other clients it shows.
    pub(super) async fn watch(&self, wants_in: bool) -> Result<Partition> {
        let began = self.client.now();
        let look = self.client.store.read(&self.key).await?;
        let ended = self.client.now();
        if self.client.expiry == Expiry::Observed {
            self.inner.lock().notebook.note(&look, self.client.slot, (began, ended), wants_in);
        }
        Ok(look)
    }

    /// Reads the partition without the rows that are dead. They stay: only a client that wants in buries.
    pub(crate) async fn look_at_the_living(&self) -> Result<Partition> {
        let mut look = self.watch(false).await?;
        self.leave_out_the_dead(&mut look);
        Ok(look)
    }

    /// Leaves the rows out of a look that are dead: for what is shown or told of a lock, never for who may enter.
    pub(crate) fn leave_out_the_dead(&self, look: &mut Partition) {
        let notebook = &self.inner.lock().notebook;
        look.rows.retain(|seen| notebook.dead(seen).is_none());
    }

    /// Returns the rows of a look that are dead.
    pub(crate) fn dead(&self, look: &Partition) -> Vec<Dead> {
        let notebook = &self.inner.lock().notebook;
        look.rows.iter().filter_map(|seen| notebook.dead(seen)).collect()
    }

    /// Returns the rows of a look that are dead and stand in the way of this mode.
    pub(crate) fn dead_in_the_way(&self, look: &Partition, mode: Mode) -> Vec<Dead> {
        let notebook = &self.inner.lock().notebook;
        let in_the_way = look.rows.iter().filter(|seen| is_in_the_way(seen, mode));
        in_the_way.filter_map(|seen| notebook.dead(seen)).collect()
    }

    /// Returns when the first row that stands in the way of this mode is to be buried, unless it is written anew: when it has been dead for a `turn`,
    /// which follows from its lease.
    pub(crate) fn next_burial(
        &self,
        look: &Partition,
        mode: Mode,
        turn: impl Fn(Duration) -> Duration,
    ) -> Option<Moment> {
        let notebook = &self.inner.lock().notebook;
        let in_the_way = look.rows.iter().filter(|seen| is_in_the_way(seen, mode));
        in_the_way.filter_map(|seen| Some(notebook.due(seen)?.plus(turn(seen.row.as_ref()?.lease)))).min()
    }

    /// Buries what is dead. Only a look that begins after this says which client may enter: a row that was written anew meanwhile is still
    /// there, and the claim of a client that has not seen the dead row at all counts as much as the own one.
    pub(crate) async fn bury(&self, dead: &[Dead]) -> Result<()> {
        let burials = dead.iter().copied().map(|dead| async move {
            self.client.store.bury(&self.key, dead.slot, dead.heartbeat).await?;
            // A replica that missed the burial may show the row once more. It is watched anew then, so that a row which cannot be buried,
            // because another program has written it, is asked for once in a lease and not without end.
            self.inner.lock().notebook.forget(dead.slot);
            Ok(())
        });
        stream::iter(burials).buffer_unordered(CONCURRENT).try_collect().await
    }

    /// Returns the moment from which on nothing that was seen of other clients is worth remembering.
    pub(crate) fn forgotten(&self) -> Moment {
        self.inner.lock().notebook.forgotten()
    }

    /// Returns of how many clients something was seen that is worth remembering.
    pub(crate) fn noted(&self) -> usize {
        self.inner.lock().notebook.len()
    }
}

/// Returns whether a row conflicts with this mode, or the waiter that it announces does.
fn is_in_the_way(seen: &SeenRow, mode: Mode) -> bool {
    let mut places = seen.row.iter().flat_map(|row| Place::all_of(seen.slot, row));
    places.any(|place| place.mode.conflicts_with(mode))
}
