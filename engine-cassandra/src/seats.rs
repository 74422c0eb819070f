//! The seats of a client: one per key that it has used lately.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ylock_core::Key;
use ylock_core::environment::Moment;

use crate::algorithm::seat::{Client, Seat};

/// How many old seats are looked at per use: more than one, so that they become fewer when the load does.
const SWEEP: usize = 4;

/// A seat is kept until its idle row has expired in the store: until then closing must remove that row, and what was seen of
/// others is worth remembering.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    seats: HashMap<Key, Arc<Seat>>,
    /// Seats that were left, with the moment at which their row has expired.
    left: VecDeque<(Moment, Key)>,
}

impl Seats {
    /// The seat at a key.
    pub(crate) fn at(&self, key: &Key, client: &Arc<Client>) -> Arc<Seat> {
        let mut inner = self.lock();
        inner.sweep(client.now());
        let seat = inner.seats.entry(key.clone());
        Arc::clone(seat.or_insert_with(|| Arc::new(Seat::new(key.clone(), Arc::clone(client)))))
    }

    /// A seat was left.
    pub(crate) fn left(&self, seat: &Seat) {
        let expired = seat.expired_at();
        self.lock().left.push_back((expired, seat.key.clone()));
    }

    /// All seats, to remove their rows. Sorted: in which order requests go out must not be left to the map's random seed.
    pub(crate) fn take(&self) -> Vec<Arc<Seat>> {
        let mut inner = self.lock();
        inner.left.clear();
        let mut seats: Vec<_> = inner.seats.drain().map(|(_, seat)| seat).collect();
        seats.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        seats
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Forgets some seats whose rows have expired. One that was used again meanwhile has a later entry in the list.
    fn sweep(&mut self, now: Moment) {
        for _ in 0..SWEEP {
            let Some((_, key)) = self.left.front().filter(|(expired, _)| *expired <= now) else { return };
            if self.seats.get(key).is_some_and(|seat| is_unused(seat) && seat.expired_at() <= now) {
                self.seats.remove(key);
            }
            self.left.pop_front();
        }
    }
}

/// Whether nobody has the seat in hand: then it can be made anew without two of them writing one row.
fn is_unused(seat: &Arc<Seat>) -> bool {
    Arc::strong_count(seat) == 1 && seat.is_idle()
}
