//! Races between callers that look at a validity, renew it and end it. What happens in between is done where the clock is read: every
//! one of them reads the clock between its look at the moment and its change.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::*;
use crate::engine::AcquisitionId;
use crate::environment::BoxFuture;
use crate::mode::Mode;
use crate::owner::Owner;

const LEASE: Duration = Duration::from_secs(10);
/// The lease, less its margin.
const VALID: Duration = Duration::from_secs(9);
const INSTANT: Duration = Duration::from_nanos(1);

/// Called once, at the next look at the clock: it may do something, and says how late it is then.
type Meanwhile = Box<dyn FnOnce(&Scripted) -> Moment + Send>;

/// A clock that shows what the test says.
#[derive(Default)]
struct Scripted {
    now: AtomicU64,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Scripted {
    fn set(&self, moment: Moment) {
        self.now.store(moment.as_nanos(), Ordering::SeqCst);
    }

    fn at_the_next_look(&self, meanwhile: impl FnOnce(&Self) -> Moment + Send + 'static) {
        *self.meanwhile.lock() = Some(Box::new(meanwhile));
    }
}

impl Environment for Scripted {
    fn now(&self) -> Moment {
        let meanwhile = self.meanwhile.lock().take();
        match meanwhile {
            Some(meanwhile) => meanwhile(self),
            None => Moment::from_nanos(self.now.load(Ordering::SeqCst)),
        }
    }

    fn wall_micros(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        0
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _future: BoxFuture) {}

    fn enter(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripted").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Validity {
    fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }
}

fn start() -> Moment {
    Moment::ZERO.plus(Duration::from_secs(100))
}

/// The first moment at which what was sent at the start is over.
fn end() -> Moment {
    start().plus(VALID)
}

fn just_before_the_end() -> Moment {
    Moment::from_nanos(end().as_nanos() - 1)
}

/// A grant from the start, and a clock that shows the start.
fn granted() -> (Arc<Scripted>, Arc<Validity>) {
    let scripted = Arc::new(Scripted::default());
    scripted.set(start());
    let grant = Grant {
        key: Key::new("group", "name").unwrap(),
        id: AcquisitionId::from_u128(1),
        mode: Mode::Write,
        owner: Owner::new(),
        lease: LEASE,
        token: None,
        sent: start(),
        contended: false,
        waited: false,
    };
    let validity = Validity::new(&grant, Arc::<Scripted>::clone(&scripted));
    (scripted, Arc::new(validity))
}

fn polled<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_grant_counts_from_before_it_was_sent_and_less_its_margin() {
    let (scripted, validity) = granted();
    assert_eq!((validity.remaining(), validity.until()), (VALID, end()));
    scripted.set(just_before_the_end());
    assert_eq!(validity.remaining(), INSTANT);
    scripted.set(end());
    assert!(!validity.is_valid());
}

#[test]
fn what_has_lapsed_is_not_prolonged_although_nobody_has_seen_it_yet() {
    let (scripted, validity) = granted();
    scripted.set(end());
    assert!(!validity.extend(end(), LEASE));
    assert!(!validity.is_valid());
}

#[test]
fn what_somebody_has_seen_lapse_is_not_prolonged_by_a_renewal_that_looked_at_the_clock_before() {
    let (scripted, validity) = granted();
    let other = Arc::clone(&validity);
    scripted.set(just_before_the_end());
    scripted.at_the_next_look(move |clock| {
        clock.set(end());
        assert!(!other.is_valid());
        just_before_the_end()
    });
    assert!(!validity.extend(just_before_the_end(), LEASE));
    assert!(!validity.is_valid());
    assert_eq!(validity.until(), Moment::ZERO);
}

#[test]
fn what_was_prolonged_while_somebody_looked_has_not_lapsed() {
    let (scripted, validity) = granted();
    let other = Arc::clone(&validity);
    scripted.set(just_before_the_end());
    scripted.at_the_next_look(move |clock| {
        assert!(other.extend(start().plus(LEASE / 2), LEASE));
        clock.set(end());
        end()
    });
    assert_eq!(validity.remaining(), LEASE / 2);
    assert_eq!(validity.loss(), None);
}

#[test]
fn what_was_given_back_or_lost_while_a_renewal_was_confirmed_is_not_prolonged() {
    for reason in [None, Some(LossReason::Revoked)] {
        let (scripted, validity) = granted();
        let other = Arc::clone(&validity);
        scripted.at_the_next_look(move |_| {
            match reason {
                Some(reason) => other.lose(reason),
                None => other.finish(),
            }
            start()
        });
        assert!(!validity.extend(start().plus(LEASE / 2), LEASE));
        assert!(!validity.is_valid());
        assert_eq!(validity.loss(), reason);
    }
}

/// A clock that is paused shows it for as long as a test likes.
#[test]
fn what_has_ended_has_ended_at_the_first_moment_of_a_clock_too() {
    for reason in [None, Some(LossReason::Revoked)] {
        let (scripted, validity) = granted();
        scripted.set(Moment::ZERO);
        match reason {
            Some(reason) => validity.lose(reason),
            None => validity.finish(),
        }
        assert!(!validity.is_valid());
        assert!(!validity.extend(end(), LEASE));
        assert!(!validity.is_valid());
    }
}

#[test]
fn what_was_given_back_while_somebody_looked_was_not_lost() {
    let (scripted, validity) = granted();
    let other = Arc::clone(&validity);
    scripted.at_the_next_look(move |clock| {
        other.finish();
        clock.set(end());
        end()
    });
    assert!(!validity.is_valid());
    let mut lost = pin!(validity.lost(None));
    assert_eq!((polled(lost.as_mut()), validity.loss()), (None, None));
}

#[test]
fn an_answer_that_is_late_does_not_take_back_what_a_later_renewal_gave() {
    let (_scripted, validity) = granted();
    assert!(validity.extend(start().plus(LEASE / 2), LEASE));
    assert!(validity.extend(start(), LEASE));
    assert_eq!(validity.until(), end().plus(LEASE / 2));
}

#[test]
fn a_lapse_is_told_as_a_loss_without_anybody_s_help() {
    let (scripted, validity) = granted();
    let mut lost = pin!(validity.lost(None));
    assert_eq!(polled(lost.as_mut()), None);
    scripted.set(end());
    assert_eq!(polled(pin!(validity.lost(None))), Some(LossReason::Lapsed));
    assert_eq!(polled(lost), Some(LossReason::Lapsed), "it is woken by it");
}

#[test]
fn a_loss_is_told_to_those_who_wait_and_to_those_who_come_later_with_its_first_reason() {
    let (scripted, validity) = granted();
    let mut lost = pin!(validity.lost(None));
    assert_eq!(polled(lost.as_mut()), None);
    validity.lose(LossReason::Revoked);
    validity.lose(LossReason::Gone);
    validity.ring();
    scripted.set(end());
    assert_eq!(polled(lost), Some(LossReason::Revoked));
    assert_eq!(polled(pin!(validity.lost(None))), Some(LossReason::Revoked));
    assert!(!validity.is_valid());
}

/// A caller looks when the validity has ended and the reason is not written down yet.
#[test]
fn a_loss_that_is_just_being_written_down_is_told() {
    let (_scripted, validity) = granted();
    validity.finish();
    let mut lost = pin!(validity.lost(None));
    assert_eq!(polled(lost.as_mut()), None);
    validity.lose(LossReason::Revoked);
    validity.ring();
    assert_eq!(polled(lost), Some(LossReason::Revoked));
}

#[test]
fn a_loss_between_the_look_and_the_wait_is_told() {
    let (scripted, validity) = granted();
    let other = Arc::clone(&validity);
    scripted.at_the_next_look(move |_| {
        other.lose(LossReason::Revoked);
        other.ring();
        start()
    });
    assert_eq!(polled(pin!(validity.lost(None))), Some(LossReason::Revoked));
}

/// A hold under a grant from the start that may last for half of a lease.
fn bound() -> Bound {
    Bound::new(start(), LEASE / 2)
}

#[test]
fn a_hold_that_reaches_its_bound_is_lost_at_that_moment_and_for_that_reason() {
    let (scripted, validity) = granted();
    let bound = bound();
    let mut lost = pin!(validity.lost(Some(&bound)));
    scripted.set(Moment::from_nanos(bound.end().as_nanos() - 1));
    assert_eq!(validity.up_to(Some(&bound), validity.remaining()), INSTANT);
    assert_eq!(polled(lost.as_mut()), None);
    scripted.set(bound.end());
    assert_eq!(validity.up_to(Some(&bound), validity.remaining()), Duration::ZERO);
    validity.ring();
    assert_eq!(polled(lost), Some(LossReason::HeldTooLong));
    // The grant has other holders, and what becomes of it is not why this one is lost.
    assert!(validity.is_valid());
    validity.lose(LossReason::Revoked);
    assert_eq!(polled(pin!(validity.lost(Some(&bound)))), Some(LossReason::HeldTooLong));
    assert_eq!(polled(pin!(validity.lost(None))), Some(LossReason::Revoked));
}

#[test]
fn a_lease_that_is_over_at_the_first_look_after_both_is_the_reason_for_good() {
    let (scripted, validity) = granted();
    let bound = bound();
    scripted.set(end());
    assert!(!bound.is_reached(&validity, end()));
    assert_eq!(polled(pin!(validity.lost(Some(&bound)))), Some(LossReason::Lapsed));
    // One that has read the clock before, and comes late.
    assert!(!bound.is_reached(&validity, bound.end()));
}

#[test]
fn a_bound_that_comes_after_the_loss_or_the_release_is_no_loss() {
    for reason in [None, Some(LossReason::Revoked)] {
        let (scripted, validity) = granted();
        let bound = bound();
        match reason {
            Some(reason) => validity.lose(reason),
            None => validity.finish(),
        }
        scripted.set(bound.end());
        assert_eq!(polled(pin!(validity.lost(Some(&bound)))), reason);
    }
}
