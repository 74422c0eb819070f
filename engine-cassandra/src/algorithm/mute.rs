//! Knows which other clients do not tell of turns at one key, where others do. Pure.
//!
//! Whether hints work at all is judged by [`told`](super::told), by misses one after the other, and forgiven after a while. Where one client is
//! mute and others tell, that is not enough: either others tell between two of its misses, or all are doubted because of one, and are trusted again
//! until it misses twice more. So each client that should have told of a turn is also judged by itself, and a waiter whose turn hangs on one that
//! is mute looks as often as without hints. A client is known by the address that its row shows, and cleared by a hint that comes from there.

use std::net::SocketAddr;
use std::time::Duration;

use ylock_core::environment::Moment;

/// The number of turns of which a client has not told, without one between of which it has, after which it is mute.
const MISSES: u8 = 2;
/// The time after which it is tried again. One more miss is enough then, and doubles it.
const MUTE_FOR: Duration = Duration::from_secs(60);
/// How often it doubles.
const DOUBLINGS: u8 = 6;
/// The most clients that are remembered; the one that was silent longest ago goes first.
const MOST: usize = 32;

/// The clients that have not told of turns of which they should have; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct Mute(Vec<Silent>);

/// A client that has not told of so many turns, of the last one at this moment.
#[derive(Clone, Copy, Debug)]
struct Silent {
    address: SocketAddr,
    missed: u8,
    last: Moment,
}

impl Mute {
    /// Notes that a turn has come of which one of these should have told.
    pub(super) fn missed(&mut self, tellers: &[SocketAddr], now: Moment) {
        for &address in tellers {
            let known = self.0.iter().position(|silent| silent.address == address);
            let missed = known.map_or(0, |known| self.0.remove(known).missed).saturating_add(1);
            self.0.push(Silent { address, missed, last: now });
        }
        let too_many = self.0.len().saturating_sub(MOST);
        self.0.drain(..too_many);
    }

    /// Notes that a hint has told of a turn that has come.
    pub(super) fn heard(&mut self, from: SocketAddr) {
        self.0.retain(|silent| silent.address != from);
    }

    /// Returns whether one of these is mute, as far as is known.
    pub(super) fn includes(&self, tellers: &[SocketAddr], now: Moment) -> bool {
        self.0.iter().any(|silent| silent.is_mute(now) && tellers.contains(&silent.address))
    }
}

impl Silent {
    fn is_mute(&self, now: Moment) -> bool {
        let Some(more) = self.missed.checked_sub(MISSES) else { return false };
        now.since(self.last) < MUTE_FOR * (1 << more.min(DOUBLINGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn address(number: u16) -> SocketAddr {
        ([10, 0, 0, 1], number).into()
    }

    #[test]
    fn a_client_is_mute_from_its_second_miss_on() {
        let mut mute = Mute::default();
        mute.missed(&[address(1)], at(0));
        assert!(!mute.includes(&[address(1)], at(0)));
        mute.missed(&[address(2)], at(1));
        assert!(!mute.includes(&[address(1), address(2)], at(1)), "each by itself");
        mute.missed(&[address(1)], at(2));
        assert!(mute.includes(&[address(3), address(1)], at(2)));
        assert!(!mute.includes(&[address(2)], at(2)));
    }

    #[test]
    fn a_client_that_tells_is_not_mute() {
        let mut mute = Mute::default();
        for second in 0..10 {
            mute.missed(&[address(1)], at(second));
            assert!(!mute.includes(&[address(1)], at(second)));
            mute.heard(address(1));
        }
        mute.missed(&[address(1)], at(10));
        mute.heard(address(2));
        mute.missed(&[address(1)], at(11));
        assert!(mute.includes(&[address(1)], at(11)), "another one does not make up for it");
    }

    #[test]
    fn a_client_is_tried_again_after_a_minute_and_one_miss_is_enough_then() {
        let mut mute = Mute::default();
        mute.missed(&[address(1)], at(0));
        mute.missed(&[address(1)], at(1));
        assert!(mute.includes(&[address(1)], at(60)));
        assert!(!mute.includes(&[address(1)], at(61)));
        mute.missed(&[address(1)], at(62));
        assert!(mute.includes(&[address(1)], at(181)));
        assert!(!mute.includes(&[address(1)], at(182)), "two minutes");
        (0..=u8::MAX).for_each(|_| mute.missed(&[address(1)], at(182)));
        let longest = 182 + 64 * 60;
        assert!(mute.includes(&[address(1)], at(longest - 1)));
        assert!(!mute.includes(&[address(1)], at(longest)), "an hour");
    }

    #[test]
    fn thirty_two_clients_are_remembered() {
        let mut mute = Mute::default();
        for number in (0..40).chain(8..40) {
            mute.missed(&[address(number)], at(0));
        }
        assert_eq!((0..40).filter(|&number| mute.includes(&[address(number)], at(0))).count(), 32);
        mute.missed(&[address(8)], at(0));
        mute.missed(&[address(7)], at(0));
        assert!(!mute.includes(&[address(7)], at(0)), "it was forgotten");
        assert!(!mute.includes(&[address(9)], at(0)), "it was silent longest ago");
        assert!(mute.includes(&[address(8)], at(0)));
    }
}
