//! How often hints may make one own row look: a storm of them costs no more than waiting does without hints.

use std::time::Duration;

use ylock_core::environment::Moment;

/// The shortest time from one look that hints asked for to the next.
const SHORTEST: Duration = Duration::from_millis(2);
/// The time in which the right to one look comes back.
const EACH: Duration = Duration::from_millis(40);
/// The looks that may follow each other as fast as [`SHORTEST`] allows: with those that come back meanwhile 50 in any second.
const AT_ONCE: u32 = 25;

/// A bucket of looks that hints may still ask for, as the moment at which it is full again.
#[derive(Debug, Default)]
pub(super) struct Budget {
    full: Moment,
    last: Moment,
}

impl Budget {
    /// Returns the first moment at which a look is allowed.
    pub(super) fn next(&self) -> Moment {
        // The bucket is empty so long before it is full.
        let empty = EACH * (AT_ONCE - 1);
        let enough = Moment::from_nanos(
            self.full.as_nanos().saturating_sub(u64::try_from(empty.as_nanos()).unwrap_or(u64::MAX)),
        );
        if self.last == Moment::ZERO { enough } else { enough.max(self.last.plus(SHORTEST)) }
    }

    /// Takes the right to a look that begins now.
    pub(super) fn spend(&mut self, now: Moment) {
        self.full = self.full.max(now).plus(EACH);
        self.last = now;
    }

    /// Gives the right back: the look has found what the hint told of. However many turns there are, none costs a look too many.
    pub(super) fn refund(&mut self) {
        let each = u64::try_from(EACH.as_nanos()).unwrap_or(0);
        self.full = Moment::from_nanos(self.full.as_nanos().saturating_sub(each));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos((1_000 + millis) * 1_000_000)
    }

    /// Looks whenever it may, until this moment. Returns when it looked.
    fn looks(budget: &mut Budget, until: u64) -> Vec<u64> {
        let mut looks = Vec::new();
        for millis in 0..until {
            if budget.next() <= at(millis) {
                budget.spend(at(millis));
                looks.push(millis);
            }
        }
        looks
    }

    #[test]
    fn a_storm_gets_no_more_than_fifty_looks_in_any_second() {
        let looks = looks(&mut Budget::default(), 10_000);
        assert!(looks.windows(2).all(|two| two[1] - two[0] >= 2), "{looks:?}");
        for window in looks.windows(51) {
            assert!(window[50] - window[0] >= 1_000, "{window:?}");
        }
        assert!(looks.len() >= 250, "{} looks in ten seconds: hints among a storm are followed", looks.len());
    }

    #[test]
    fn a_single_hint_is_followed_at_once() {
        let mut budget = Budget::default();
        assert!(budget.next() <= at(0));
        budget.spend(at(0));
        assert_eq!(budget.next(), at(2));
        budget.spend(at(100));
        assert_eq!(budget.next(), at(102));
    }

    #[test]
    fn a_look_that_found_a_turn_costs_nothing() {
        let mut budget = Budget::default();
        for turn in 0..1_000 {
            assert!(budget.next() <= at(turn * 5));
            budget.spend(at(turn * 5));
            budget.refund();
        }
    }
}
