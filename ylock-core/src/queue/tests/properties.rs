//! What holds whatever is done: random operations on one queue, also such as no client does. A seed that fails is in the message; it is
//! played again alone with `SEEDS` around it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::stored::{self, Word};
use super::{at, holding, request, token};
use crate::engine::{AcquisitionId, LossReason, Release, Renewal, Request, Ticket};
use crate::mode::Mode;
use crate::options::Fairness;
use crate::queue::{Contender, Now};

type Queue = crate::queue::Queue<Word>;

const SEEDS: std::ops::Range<u64> = 0..400;
const OPERATIONS: usize = 300;

#[test]
fn no_two_inside_conflict_none_is_overtaken_and_nothing_is_left() {
    for seed in SEEDS {
        let mut play = Play::new(seed);
        for step in 0..OPERATIONS {
            let what = play.step();
            let what = format!("seed {seed} step {step}: {what}");
            play.check(&what);
            if step % 16 == 0 {
                stored::comes_back(&play.queue, &what);
            }
        }
        play.all_come_in(&format!("seed {seed} at the end"));
    }
}

struct Play {
    chance: StdRng,
    queue: Queue,
    seconds: u64,
    tickets: i64,
    tokens: u64,
    /// Acquisitions that were used already, some of them still there.
    known: Vec<Request>,
    revoked: HashSet<AcquisitionId>,
    /// Until which second an acquisition counts as undone.
    undone: HashMap<AcquisitionId, u64>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        let (known, revoked, undone) = (Vec::new(), HashSet::new(), HashMap::new());
        Self { chance, queue: Queue::default(), seconds: 0, tickets: 0, tokens: 0, known, revoked, undone }
    }

    fn now(&self) -> Now {
        at(self.seconds)
    }

    /// Does anything. Returns what it was.
    fn step(&mut self) -> String {
        let own = self.pick();
        let what = match self.chance.random_range(0..20) {
            0..8 => self.ask(&own),
            8..12 => self.release(&own),
            12..16 => self.renew(&own),
            16 => self.revoke(&own),
            17 => self.undo(&own),
            _ => self.pass_time(),
        };
        format!("{what} {:?}", own.id)
    }

    fn ask(&mut self, own: &Request) -> &'static str {
        let joined = self.join(own);
        assert_eq!(joined, !self.undone.contains_key(&own.id), "{own:?}");
        let may_enter = self.queue.may_enter(own.id);
        assert_eq!(may_enter, joined && !self.has_to_wait(own), "{own:?} {:?}", self.queue);
        self.tokens += 1;
        let entered = may_enter && self.queue.enter(own.id, token(self.tokens), self.now());
        assert_eq!(entered, may_enter, "{own:?} {:?}", self.queue);
        if entered { "entered" } else { "asked" }
    }

    fn join(&mut self, own: &Request) -> bool {
        self.tickets += 1;
        let (ticket, now) = (Ticket::from_number(self.tickets), self.now());
        self.queue.join(own, || ticket, now).is_some()
    }

    /// Returns whether there is a reason to wait: a rival inside, or one before it in the queue.
    fn has_to_wait(&self, own: &Request) -> bool {
        let seen = self.queue.inspect();
        let mode = self.queue.find(own.id).map_or(own.mode, Contender::mode);
        let is_inside = seen.holders.iter().any(|holder| holder.id == own.id);
        let rival_inside = seen.holders.iter().any(|holder| holder.mode.conflicts_with(mode));
        let mut before = seen.queue.iter().take_while(|waiter| waiter.id != own.id);
        let rival_before = before.any(|waiter| waiter.mode.conflicts_with(mode));
        !is_inside && (rival_inside || rival_before && own.fairness != Fairness::Unfair)
    }

    fn release(&mut self, own: &Request) -> &'static str {
        let next = self.another(own);
        let was_there = self.queue.find(own.id).is_some();
        assert_eq!(self.release_once(own.id, next.as_ref()) == Release::Released, was_there);
        let shown = self.shown();
        assert_eq!(self.release_once(own.id, next.as_ref()), Release::WasGone);
        assert_eq!(self.shown(), shown, "a second release changes nothing");
        "released"
    }

    fn release_once(&mut self, id: AcquisitionId, next: Option<&Request>) -> Release {
        self.tickets += 1;
        let (ticket, now) = (Ticket::from_number(self.tickets), self.now());
        self.queue.release(id, next, || ticket, now)
    }

    fn renew(&mut self, own: &Request) -> &'static str {
        let (next, mode) = (self.another(own), self.mode());
        let before = self.queue.find(own.id).filter(|one| one.holds()).map(Contender::mode);
        self.tickets += 1;
        let (ticket, now) = (Ticket::from_number(self.tickets), self.now());
        let own = Request { mode, ..own.clone() };
        let answer = self.queue.renew(&holding(&own, next.as_ref()), || ticket, now);
        match before {
            None => assert_eq!(answer, Renewal::Lost(LossReason::Gone)),
            Some(_) if self.revoked.contains(&own.id) => {
                assert_eq!(answer, Renewal::Lost(LossReason::Revoked));
            }
            Some(before) => {
                assert!(matches!(answer, Renewal::Renewed { .. }));
                let is_read = before == Mode::Read || mode == Mode::Read;
                let expected = if is_read { Mode::Read } else { Mode::Write };
                assert_eq!(self.queue.find(own.id).map(Contender::mode), Some(expected));
            }
        }
        "renewed"
    }

    fn revoke(&mut self, own: &Request) -> &'static str {
        let holds = self.queue.find(own.id).is_some_and(Contender::holds);
        assert_eq!(self.queue.revoke(own.id), holds);
        if holds {
            self.revoked.insert(own.id);
        }
        "revoked"
    }

    fn undo(&mut self, own: &Request) -> &'static str {
        let until = self.seconds + self.chance.random_range(1..30_u64);
        self.queue.undo(own.id, at(until).moment);
        self.undone.insert(own.id, until);
        "undone"
    }

    fn pass_time(&mut self) -> &'static str {
        self.seconds += self.chance.random_range(1..6_u64);
        self.queue.expire(self.now().moment);
        self.undone.retain(|_, until| *until > self.seconds);
        "time passed before"
    }

    fn check(&mut self, what: &str) {
        let holders: Vec<_> = self.queue.holders().collect();
        let mut pairs = holders.iter().flat_map(|one| holders.iter().map(move |other| (one, other)));
        let conflict = pairs.find(|(one, other)| one.id != other.id && one.mode.conflicts_with(other.mode));
        assert!(conflict.is_none(), "{what}: {conflict:?}");
        let all = &self.queue.contenders;
        assert!(all.is_sorted_by_key(Contender::ticket), "{what}: {all:?}");
        assert_eq!(all.iter().map(Contender::id).collect::<HashSet<_>>().len(), all.len(), "{what}: {all:?}");
        assert!(all.iter().all(|one| one.expires > self.now().moment), "{what}: {all:?}");
        assert!(all.iter().all(|one| !self.undone.contains_key(&one.id)), "{what}: {all:?}");
        let mut grants = all.iter().filter_map(|one| one.behind);
        assert!(grants.all(|id| holders.iter().any(|holder| holder.id == id)), "{what}: {all:?}");
        self.revoked.retain(|id| holders.iter().any(|holder| holder.id == *id));
        let whose_turn: Vec<_> = self.queue.whose_turn_it_is().map(Contender::id).collect();
        let may_enter: Vec<_> =
            self.queue.waiters().map(Contender::id).filter(|id| self.queue.may_enter(*id)).collect();
        assert_eq!(whose_turn, may_enter, "{what}: {all:?}");
    }

    /// From here on those inside leave and those who wait ask. Each of them must come in; then nothing may be left.
    fn all_come_in(&mut self, what: &str) {
        let asking = self.queue.waiters().filter(|waiter| waiter.behind.is_none()).map(Contender::id);
        let mut outside: HashSet<_> = asking.collect();
        for _ in 0..=outside.len() {
            let waiters: Vec<_> = self.queue.waiters().map(Contender::id).collect();
            for own in self.known.clone().iter().filter(|own| waiters.contains(&own.id)) {
                if self.queue.find(own.id).is_some_and(|own| own.behind.is_none())
                    && self.ask(own) == "entered"
                {
                    outside.remove(&own.id);
                }
                self.check(what);
            }
            for id in self.queue.holders().map(Contender::id).collect::<Vec<_>>() {
                self.release_once(id, None);
            }
        }
        assert!(
            outside.is_empty() && self.queue.contenders.is_empty(),
            "{what}: {outside:?} {:?}",
            self.queue
        );
        self.seconds += 30;
        self.queue.expire(self.now().moment);
        assert!(self.queue.is_empty(), "{what}: {:?}", self.queue);
    }

    fn shown(&self) -> Vec<(AcquisitionId, Mode, bool)> {
        self.queue.contenders.iter().map(|one| (one.id, one.mode, one.holds())).collect()
    }

    /// Returns an acquisition that was used lately, or a new one.
    fn pick(&mut self) -> Request {
        if !self.known.is_empty() && self.chance.random_bool(0.75) {
            let back = self.chance.random_range(0..self.known.len().min(12));
            return self.known[self.known.len() - 1 - back].clone();
        }
        let earlier = self.chance.random_bool(0.1).then(|| self.chance.random_range(0..=self.tickets));
        let is_unfair = self.chance.random_bool(0.1);
        let new = Request {
            lease: Duration::from_secs(self.chance.random_range(5..20)),
            fairness: if is_unfair { Fairness::Unfair } else { Fairness::Fair },
            ticket: earlier.map(Ticket::from_number),
            ..request(self.known.len() as u128 + 1, self.mode())
        };
        self.known.push(new.clone());
        new
    }

    fn another(&mut self, own: &Request) -> Option<Request> {
        let picked = self.chance.random_bool(0.4).then(|| self.pick());
        picked.filter(|picked| picked.id != own.id)
    }

    fn mode(&mut self) -> Mode {
        if self.chance.random_bool(0.6) { Mode::Read } else { Mode::Write }
    }
}
