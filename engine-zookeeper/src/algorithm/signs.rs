//! What the leader has certainly heard of a session.

use std::collections::VecDeque;
use std::time::Duration;

use ylock_core::environment::Moment;

/// The part of the timeout after which a server has reported to the leader what it has answered: half a tick, if the timeout is three ticks.
const REPORT_PART: u32 = 6;
/// The part of the timeout that lies between two signs that are remembered: so many requests may be answered.
const APART_PART: u32 = 48;

/// The signs of life of a session that servers have answered; see [`heartbeat`](super::heartbeat).
#[derive(Debug)]
pub(super) struct Signs {
    /// The leader has heard of a request that was sent at this moment, or of a later one.
    heard: Moment,
    /// Answered requests of which the leader may not have heard yet, in the order of both moments.
    answered: VecDeque<Sign>,
}

/// A request that was answered.
#[derive(Debug)]
struct Sign {
    sent: Moment,
    answered: Moment,
}

impl Signs {
    /// Begins with the request for the session, which the leader itself has answered.
    pub(super) fn since(asked: Moment) -> Self {
        Self { heard: asked, answered: VecDeque::new() }
    }

    /// Notes that the leader has heard of a request that was sent at this moment.
    pub(super) fn heard(&mut self, sent: Moment) {
        self.heard = sent.max(self.heard);
    }

    /// Notes that a request was answered.
    pub(super) fn note(&mut self, sent: Moment, answered: Moment, timeout: Duration) {
        self.settle(answered, timeout);
        if sent >= self.last().plus(timeout / APART_PART) {
            self.answered.push_back(Sign { sent, answered });
        }
    }

    /// Returns a moment at which a request was sent of which, or of a later one, the leader has heard by now.
    pub(super) fn heard_by(&mut self, now: Moment, timeout: Duration) -> Moment {
        self.settle(now, timeout);
        self.heard
    }

    /// Returns when the last request was sent that was answered, or not much before.
    pub(super) fn last(&self) -> Moment {
        self.answered.back().map_or(self.heard, |sign| sign.sent.max(self.heard))
    }

    /// Returns when the leader has heard of a later request than now, if one was answered.
    pub(super) fn next(&self, timeout: Duration) -> Option<Moment> {
        self.answered.front().map(|sign| sign.answered.plus(timeout / REPORT_PART))
    }

    fn settle(&mut self, now: Moment, timeout: Duration) {
        while let Some(sign) = self.answered.front()
            && sign.answered.plus(timeout / REPORT_PART) <= now
        {
            self.heard = sign.sent.max(self.heard);
            self.answered.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(48);

    fn begin() -> Moment {
        Moment::from_nanos(1_000_000_000_000)
    }

    fn at(seconds: u64) -> Moment {
        begin().plus(Duration::from_secs(seconds))
    }

    /// Signs that were sent at these moments, and answered a second later each.
    fn signs(sent: &[u64]) -> Signs {
        let mut signs = Signs::since(begin());
        sent.iter().for_each(|sent| signs.note(at(*sent), at(sent + 1), TIMEOUT));
        signs
    }

    fn heard_by(signs: &mut Signs, now: u64) -> u64 {
        signs.heard_by(at(now), TIMEOUT).since(begin()).as_secs()
    }

    #[test]
    fn the_leader_has_heard_of_a_session_that_it_has_made() {
        assert_eq!(heard_by(&mut signs(&[]), 12), 0);
    }

    #[test]
    fn with_a_sign_every_tenth_of_the_timeout_the_leader_has_heard_of_one_a_fifth_ago() {
        let mut signs = signs(&[]);
        for sent in (5..500).step_by(5) {
            assert!(heard_by(&mut signs, sent) + 10 >= sent);
            signs.note(at(sent), at(sent + 1), TIMEOUT);
        }
    }

    /// The server may die before it reports the last one.
    #[test]
    fn the_leader_has_heard_of_a_sign_when_its_answer_is_a_sixth_of_the_timeout_old() {
        let mut signs = signs(&[10, 50]);
        assert_eq!(signs.next(TIMEOUT), Some(at(59)), "eight seconds after the second answer");
        assert_eq!(heard_by(&mut signs, 58), 10);
        assert_eq!(heard_by(&mut signs, 59), 50);
        assert_eq!(signs.next(TIMEOUT), None);
    }

    /// The answer may say nothing of when the server got the request.
    #[test]
    fn a_request_that_is_answered_late_is_a_sign_of_when_it_was_sent() {
        let mut signs = Signs::since(begin());
        signs.note(at(2), at(40), TIMEOUT);
        assert_eq!(heard_by(&mut signs, 47), 0);
        assert_eq!(heard_by(&mut signs, 48), 2);
    }

    #[test]
    fn answers_in_another_order_than_the_requests_are_no_older_signs() {
        let mut signs = Signs::since(begin());
        signs.note(at(10), at(11), TIMEOUT);
        signs.note(at(4), at(12), TIMEOUT);
        assert_eq!(heard_by(&mut signs, 60), 10);
    }

    #[test]
    fn very_many_answers_are_a_few_signs() {
        let mut signs = Signs::since(begin());
        for sent in 0..100_000 {
            let sent = begin().plus(Duration::from_millis(sent));
            signs.note(sent, sent, TIMEOUT);
        }
        assert!(signs.answered.len() <= 9, "{}", signs.answered.len());
        assert!(heard_by(&mut signs, 100) >= 90);
    }

    /// The session went on over another connection meanwhile.
    #[test]
    fn an_earlier_sign_takes_nothing_back_of_what_the_leader_has_heard() {
        let mut signs = signs(&[5]);
        signs.heard(at(10));
        signs.heard(at(8));
        assert_eq!(heard_by(&mut signs, 60), 10);
    }
}
