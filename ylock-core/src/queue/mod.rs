//! The contenders for one key: who is inside, who waits, and whose turn it is. Pure: no clock, no task, no mutex, no store.
//!
//! - [`Queue`]: for what keeps the contenders of a key in one place and changes them one operation after the other. The in-memory engine
//!   runs on it, and the scripts of Redis are compared with it.
//! - [`places`]: for stores that number those who come and show all of them to each, such as the nodes of ZooKeeper.
//!
//! For engines. Not covered by semver.

mod contender;
mod joining;
pub mod places;
mod stored;

#[cfg(test)]
mod tests;

use smallvec::SmallVec;

use crate::engine::{AcquisitionId, Holder, Inspection};
use crate::environment::{Environment, Moment};
use crate::mode::Mode;
use crate::options::Fairness;
use crate::token::StoreToken;

pub use contender::Contender;

/// The time at which an operation is done: a queue has no clock of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// The moment from which leases count.
    pub moment: Moment,
    /// Microseconds of the wall clock. The queue only shows it, and decides nothing by it; the tokens of the in-memory engine begin with it.
    pub wall_micros: i64,
}

impl Now {
    /// Returns the time of an environment.
    pub fn of(environment: &dyn Environment) -> Self {
        Self { moment: environment.now(), wall_micros: environment.wall_micros() }
    }
}

/// The contenders for one key: its holders and waiters. With each of them it keeps a `T`, which means nothing to the queue: what the engine
/// needs to wake a waiter.
///
/// A caller calls [`expire`](Self::expire) before each operation, so that no contender is met whose lease has ended, and asks
/// [`take_freed`](Self::take_freed) after it.
#[derive(Debug, Default)]
pub struct Queue<T = ()> {
    /// In the order of their tickets, and of equal tickets in that of their coming. No two have one id, and no two that hold conflict.
    /// Most keys have one.
    contenders: SmallVec<[Contender<T>; 1]>,
    /// The acquisitions that were undone, each with the moment until which requests of it may be on their way. None of them contends.
    undone: Vec<(AcquisitionId, Moment)>,
    /// True if a contender has left or conflicts with fewer others since this was last asked.
    freed: bool,
}

/// The modes of some contenders.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    readers: bool,
    writers: bool,
}

impl Met {
    fn meet(&mut self, mode: Mode) {
        *(if mode == Mode::Read { &mut self.readers } else { &mut self.writers }) = true;
    }

    fn conflict_with(self, mode: Mode) -> bool {
        self.writers && mode.conflicts_with(Mode::Write) || self.readers && mode.conflicts_with(Mode::Read)
    }
}

impl<T> Queue<T> {
    /// Returns whether there is nothing to remember of the key.
    pub fn is_empty(&self) -> bool {
        self.contenders.is_empty() && self.undone.is_empty()
    }

    /// Returns an acquisition that holds or waits.
    pub fn find(&self, id: AcquisitionId) -> Option<&Contender<T>> {
        self.contenders.iter().find(|contender| contender.id == id)
    }

    /// Returns what is kept with an acquisition that holds or waits.
    pub fn kept(&mut self, id: AcquisitionId) -> Option<&mut T> {
        self.contenders.iter_mut().find(|contender| contender.id == id).map(|contender| &mut contender.kept)
    }

    /// Returns the holders.
    pub fn holders(&self) -> impl Iterator<Item = &Contender<T>> {
        self.contenders.iter().filter(|contender| contender.holds())
    }

    /// Returns the waiters, in order.
    pub fn waiters(&self) -> impl Iterator<Item = &Contender<T>> {
        self.contenders.iter().filter(|contender| !contender.holds())
    }

    /// Returns whether no holder conflicts with this mode.
    pub fn is_free(&self, mode: Mode) -> bool {
        !self.holders().any(|holder| holder.mode.conflicts_with(mode))
    }

    /// Returns whether waiters may have got their turn since this was last asked: each of them is to [ask again](Self::may_enter).
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }

    /// Forgets the contenders whose lease has ended.
    pub fn expire(&mut self, now: Moment) {
        let ended = self.contenders.iter().filter(|contender| contender.expires <= now);
        for id in ended.map(Contender::id).collect::<Vec<_>>() {
            self.leave(id);
        }
        self.undone.retain(|(_, until)| *until > now);
    }

    /// Returns the moment at which the next contender expires that `id` may be waiting for.
    pub fn next_expiry(&self, id: AcquisitionId) -> Option<Moment> {
        self.contenders.iter().filter(|other| other.id != id).map(|other| other.expires).min()
    }

    /// Returns whether a waiter may enter now: no holder conflicts with it and, unless it is unfair, no waiter before it does. One that is
    /// inside may: perhaps its client has not heard of it.
    pub fn may_enter(&self, id: AcquisitionId) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.contenders[place].holds() || self.in_the_way_of(place).next().is_none()
    }

    /// Returns those that a waiter waits for: the holders that conflict with it and, unless it is unfair, the waiters before it that do. None
    /// for one that is inside, or not there.
    pub fn in_the_way(&self, id: AcquisitionId) -> impl Iterator<Item = &Contender<T>> {
        let place = self.place(id).filter(|place| !self.contenders[*place].holds());
        place.into_iter().flat_map(|place| self.in_the_way_of(place))
    }

    fn in_the_way_of(&self, place: usize) -> impl Iterator<Item = &Contender<T>> {
        let own = &self.contenders[place];
        let waits_for = |other: &Contender<T>, is_before: bool| {
            other.mode.conflicts_with(own.mode)
                && (other.holds() || is_before && own.fairness != Fairness::Unfair)
        };
        let others = self.contenders.iter().enumerate().filter(move |(other, _)| *other != place);
        others.filter(move |(other, one)| waits_for(one, *other < place)).map(|(_, other)| other)
    }

    /// Returns the waiters whose turn it is: each that [may enter](Self::may_enter). Looks at each contender once.
    pub fn whose_turn_it_is(&self) -> impl Iterator<Item = &Contender<T>> {
        let (mut holders, mut before) = (Met::default(), Met::default());
        self.holders().for_each(|holder| holders.meet(holder.mode));
        self.waiters().filter(move |waiter| {
            let is_overtaken = waiter.fairness != Fairness::Unfair && before.conflict_with(waiter.mode);
            before.meet(waiter.mode);
            !is_overtaken && !holders.conflict_with(waiter.mode)
        })
    }

    /// Removes all contenders for which `is_over` says that they will never ask again nor give anything back, such as those of a process that
    /// has ended. Returns whether there were any.
    pub fn remove_those(&mut self, is_over: impl Fn(&Contender<T>) -> bool) -> bool {
        let over: SmallVec<[_; 4]> =
            self.contenders.iter().filter(|one| is_over(one)).map(Contender::id).collect();
        for id in &over {
            self.leave(*id);
        }
        !over.is_empty()
    }

    /// Lets a contender in, for a whole lease from now on. Returns false, and changes nothing, if it is not there or conflicts with a holder.
    /// Whether it is its turn is for [`may_enter`](Self::may_enter) to say.
    pub fn enter(&mut self, id: AcquisitionId, token: StoreToken, now: Now) -> bool {
        let Some(place) = self.place(id) else { return false };
        let mode = self.contenders[place].mode;
        if self.holders().any(|holder| holder.id != id && holder.mode.conflicts_with(mode)) {
            return false;
        }
        let own = &mut self.contenders[place];
        (own.token, own.expires, own.since) = (Some(token), now.moment.plus(own.lease), now.wall_micros);
        true
    }

    /// Returns whether a waiter conflicts with this contender. `next` does not count: it waits for the same client.
    pub fn is_contended(&self, id: AcquisitionId, next: Option<AcquisitionId>) -> bool {
        let Some(own) = self.find(id) else { return false };
        let mut others = self.waiters().filter(|other| other.id != id && Some(other.id) != next);
        others.any(|other| other.mode.conflicts_with(own.mode))
    }

    /// Marks a grant as revoked, so that its holder finds out when it renews. Returns whether this acquisition holds.
    pub fn revoke(&mut self, id: AcquisitionId) -> bool {
        let holder = self.contenders.iter_mut().find(|contender| contender.id == id && contender.holds());
        holder.map(|holder| holder.revoked = true).is_some()
    }

    /// Removes a waiter that has joined in this very operation: since no other has seen it, its leaving is no waiter's turn.
    pub fn withdraw(&mut self, id: AcquisitionId) {
        self.contenders.retain(|contender| contender.id != id || contender.holds());
    }

    /// Remembers that an acquisition was undone, for requests of it that are still on their way: until then it cannot [join](Self::join).
    pub fn undo(&mut self, id: AcquisitionId, until: Moment) {
        self.leave(id);
        self.undone.retain(|(other, _)| *other != id);
        self.undone.push((id, until));
    }

    /// Returns whether an acquisition was undone a short time ago.
    pub fn is_undone(&self, id: AcquisitionId) -> bool {
        self.undone.iter().any(|(undone, _)| *undone == id)
    }

    /// Returns the holders and the waiters, as [`Engine::inspect`](crate::engine::Engine::inspect) shows them.
    pub fn inspect(&self) -> Inspection {
        let holder = |holder: &Contender<T>| Holder::of(holder.shown(), holder.token.map(Into::into));
        Inspection {
            holders: self.holders().map(holder).collect(),
            queue: self.waiters().map(Contender::shown).collect(),
        }
    }

    fn place(&self, id: AcquisitionId) -> Option<usize> {
        self.contenders.iter().position(|contender| contender.id == id)
    }

    /// Removes an acquisition, and the waiter that stands behind it. Returns whether it was there.
    fn leave(&mut self, id: AcquisitionId) -> bool {
        self.remove(|contender| contender.behind == Some(id));
        self.remove(|contender| contender.id == id)
    }

    /// Removes contenders. Returns whether there were any.
    fn remove(&mut self, which: impl Fn(&Contender<T>) -> bool) -> bool {
        let before = self.contenders.len();
        self.contenders.retain(|contender| !which(contender));
        let were_any = self.contenders.len() < before;
        self.freed |= were_any;
        were_any
    }
}
