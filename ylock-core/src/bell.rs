//! A bell for several callers, each of which is woken whatever the wakers of the others do.
//!
//! `tokio::sync::Notify` forgets the callers behind one whose waker panics: it takes them for told.

use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::foreign::woken;

/// The bell; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// The number of times that it was rung. Changed while the callers are locked.
    rung: AtomicU64,
    callers: Mutex<Callers>,
}

/// The callers that have heard nothing since the bell was rung last.
#[derive(Debug)]
struct Callers {
    /// Each caller knows its place.
    places: SmallVec<[Place; 1]>,
    /// The first place that is empty, or [`NONE`].
    empty: usize,
}

#[derive(Debug)]
enum Place {
    Waits(Waker),
    /// With the next one that is empty.
    Empty(usize),
}

/// No place.
const NONE: usize = usize::MAX;

impl Default for Callers {
    fn default() -> Self {
        Self { places: SmallVec::new(), empty: NONE }
    }
}

impl Callers {
    /// Puts a waker into its place, or into an empty one. Returns the place, and what was there.
    fn put(&mut self, place: Option<usize>, waker: Waker) -> (usize, Place) {
        if place.is_none() && self.empty == NONE {
            self.empty = self.places.len();
            self.places.push(Place::Empty(NONE));
        }
        let place = place.unwrap_or(self.empty);
        let before = mem::replace(&mut self.places[place], Place::Waits(waker));
        if let Place::Empty(next) = before {
            self.empty = next;
        }
        (place, before)
    }

    /// Returns what is in this place, which is empty from now on.
    fn leave(&mut self, place: usize) -> Place {
        let empty = mem::replace(&mut self.empty, place);
        mem::replace(&mut self.places[place], Place::Empty(empty))
    }
}

impl Bell {
    /// Wakes all that wait, and those that have begun to [`listen`](Self::listen) and do not wait
    /// yet.
    pub(crate) fn ring(&self) {
        let mut callers = self.callers.lock();
        self.rung.fetch_add(1, Ordering::SeqCst);
        let rung = mem::take(&mut *callers);
        drop(callers);
        // Nothing is locked: a waker may do anything, also wait anew, or drop what another caller
        // waits with.
        for place in rung.places {
            if let Place::Waits(waker) = place {
                woken(|| waker.wake());
            }
        }
    }

    /// Waits for the next ring after this call.
    pub(crate) fn listen(&self) -> Listening<'_> {
        Listening { bell: self, rung: self.rung.load(Ordering::SeqCst), place: None }
    }

    fn was_rung_since(&self, rung: u64) -> bool {
        self.rung.load(Ordering::SeqCst) != rung
    }
}

/// A caller that waits for the bell.
#[derive(Debug)]
pub(crate) struct Listening<'a> {
    bell: &'a Bell,
    /// The number of rings that there were before.
    rung: u64,
    /// Where the caller's waker is, until the bell is rung.
    place: Option<usize>,
}

impl Future for Listening<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Cloned, and the one before dropped, while nothing is locked: both are code of the caller.
        let waker = context.waker().clone();
        let mut callers = self.bell.callers.lock();
        if self.bell.was_rung_since(self.rung) {
            return Poll::Ready(());
        }
        let (place, before) = callers.put(self.place, waker);
        drop(callers);
        drop(before);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut callers = self.bell.callers.lock();
        // Once it was rung the place is of another caller, or of none.
        if !self.bell.was_rung_since(self.rung) {
            let waker = callers.leave(place);
            drop(callers);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it is called, and panics then if it is told to.
    struct Counts {
        calls: AtomicUsize,
        panics: bool,
    }

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if self.panics {
                std::panic::resume_unwind(Box::new("a waker that is wrong"));
            }
        }
    }

    fn counts(panics: bool) -> (Arc<Counts>, Waker) {
        let counts = Arc::new(Counts { calls: AtomicUsize::new(0), panics });
        (Arc::clone(&counts), Waker::from(counts))
    }

    #[test]
    fn each_caller_is_woken_although_the_wakers_of_others_panic() {
        let bell = Bell::default();
        let callers = [true, false, true, false].map(counts);
        let mut waits = callers.each_ref().map(|_| Box::pin(bell.listen()));
        for (waits, (_, waker)) in waits.iter_mut().zip(&callers) {
            assert!(waits.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        bell.ring();
        for (waits, (counts, _)) in waits.iter_mut().zip(&callers) {
            assert_eq!(counts.calls.load(Ordering::SeqCst), 1);
            assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    }

    #[test]
    fn a_ring_before_the_first_poll_is_heard_and_one_before_listening_is_not() {
        let bell = Bell::default();
        bell.ring();
        let mut waits = pin!(bell.listen());
        let mut late = pin!(bell.listen());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        bell.ring();
        assert!(waits.as_mut().poll(&mut context).is_ready() && late.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn places_of_callers_that_have_left_are_used_again_and_never_that_of_another_caller() {
        let bell = Bell::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut stays = pin!(bell.listen());
        assert!(stays.as_mut().poll(&mut context).is_pending());
        for _ in 0..100 {
            let mut leaves = Box::pin(bell.listen());
            assert!(leaves.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(bell.callers.lock().places.len(), 2);
        let mut from_before = Box::pin(bell.listen());
        assert!(from_before.as_mut().poll(&mut context).is_pending());
        bell.ring();
        let (counts, waker) = counts(false);
        let mut waits = pin!(bell.listen());
        let mut other = pin!(bell.listen());
        assert!(other.as_mut().poll(&mut context).is_pending());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(from_before);
        bell.ring();
        assert_eq!(counts.calls.load(Ordering::SeqCst), 1, "its place was taken");
    }
}
