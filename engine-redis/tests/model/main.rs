//! Compares the scripts with a model of them that is so simple that it must be right: random operations, no difference.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod chance;
mod reference;
mod scripts;

#[path = "../server/mod.rs"]
mod server;

use chance::Chance;
use reference::{Hears, Mode, Reference, Reply};
use scripts::Scripts;

const SEEDS: u64 = 500;
const OPERATIONS: usize = 200;

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn a_hundred_thousand_operations_make_no_difference() {
    let given = std::env::var("YLOCK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    let mut scripts = Scripts::connect().await;
    for seed in seeds {
        Play::new(seed).await.play(&mut scripts).await;
    }
}

/// One lock and what is done to it.
struct Play {
    seed: u64,
    chance: Chance,
    place: String,
    model: Reference,
    /// Acquisitions that were used already, some of them still there.
    ids: Vec<String>,
    last_token: u64,
}

impl Play {
    async fn new(seed: u64) -> Self {
        let place = format!("ylock-model:{seed}:{}", ylock_core::Owner::new());
        let (ids, model) = (Vec::new(), Reference::default());
        Self { seed, chance: Chance::new(seed), place, model, ids, last_token: 0 }
    }

    async fn play(mut self, scripts: &mut Scripts) {
        for step in 0..OPERATIONS {
            let what = self.step(scripts).await;
            let (shown, tickets) = scripts.show(&self.place).await;
            assert_eq!(shown, self.model.show(), "seed {} step {step}: after {what}", self.seed);
            // The model takes the numbers that the server gave out; their order has just been compared.
            self.model.take_over(&tickets);
        }
        scripts.remove(&self.place).await;
    }

    async fn step(&mut self, scripts: &mut Scripts) -> String {
        match self.chance.below(10) {
            0..4 => self.acquire(scripts).await,
            4..7 => self.release(scripts).await,
            7..9 => self.renew(scripts).await,
            _ => self.revoke(scripts).await,
        }
    }

    async fn acquire(&mut self, scripts: &mut Scripts) -> String {
        let (id, mode, hears) = (self.id(), self.mode(), self.hears());
        let (tries, unfair) = (self.chance.below(4) == 0, self.chance.below(6) == 0);
        let ticket = self.ticket();
        let what = format!("acquire {id} {mode:?} tries {tries} unfair {unfair} ticket {ticket:?} {hears:?}");
        let is_new = self.model.mode_of(&id).is_none();
        let reply = scripts.acquire(&self.place, &id, mode, tries, unfair, ticket, hears).await;
        let given = match &reply {
            Reply::Queued { ticket } => Some(*ticket),
            _ => None,
        };
        let expected = self.model.acquire(&id, mode, tries, unfair, ticket.or(given), hears);
        let same = match (&reply, &expected) {
            (Reply::Granted { token, contended }, Reply::Granted { contended: expected, .. }) => {
                assert!(!is_new || *token > self.last_token, "seed {}: {what}: {token} again", self.seed);
                self.last_token = self.last_token.max(*token);
                contended == expected
            }
            (Reply::Queued { .. }, Reply::Queued { .. }) => true,
            (reply, expected) => reply == expected,
        };
        assert!(same, "seed {}: {what}: {reply:?}, and not {expected:?}", self.seed);
        what
    }

    async fn release(&mut self, scripts: &mut Scripts) -> String {
        let id = self.id();
        let next = (self.chance.below(3) == 0).then(|| (self.id(), self.mode(), self.hears()));
        let next = next.filter(|(next, ..)| *next != id);
        let what = format!("release {id} next {next:?}");
        let shown = next.as_ref().map(|(id, mode, hears)| (id.as_str(), *mode, *hears));
        let was_there = scripts.release(&self.place, &id, shown).await;
        assert_eq!(was_there, self.model.release(&id, shown), "seed {}: {what}", self.seed);
        what
    }

    async fn renew(&mut self, scripts: &mut Scripts) -> String {
        let id = self.id();
        // As the contract has it: a writer may become a reader, and a reader stays one.
        let mode = match self.model.mode_of(&id) {
            Some(Mode::Read) => Mode::Read,
            _ => self.mode(),
        };
        let behind = (self.chance.below(2) == 0).then(|| (self.id(), self.mode(), self.hears()));
        let behind = behind.filter(|(behind, ..)| *behind != id && self.model.mode_of(behind).is_none());
        let what = format!("renew {id} {mode:?} behind {behind:?}");
        let shown = behind.as_ref().map(|(id, mode, hears)| (id.as_str(), *mode, *hears));
        let answer = scripts.renew(&self.place, &id, mode, shown).await;
        assert_eq!(answer, self.model.renew(&id, mode, shown), "seed {}: {what}", self.seed);
        what
    }

    async fn revoke(&mut self, scripts: &mut Scripts) -> String {
        let id = self.id();
        let held = scripts.revoke(&self.place, &id).await;
        assert_eq!(held, self.model.revoke(&id), "seed {}: revoke {id}", self.seed);
        format!("revoke {id}")
    }

    /// Returns an acquisition that was used already, or a new one.
    fn id(&mut self) -> String {
        let known = self.ids.len() as u64;
        if known > 0 && self.chance.below(3) > 0 {
            let back = self.chance.below(known.min(12));
            return self.ids[(known - 1 - back) as usize].clone();
        }
        let id = format!("{:032x}", self.chance.number());
        self.ids.push(id.clone());
        id
    }

    fn mode(&mut self) -> Mode {
        if self.chance.below(2) == 0 { Mode::Read } else { Mode::Write }
    }

    fn hears(&mut self) -> Hears {
        [Hears::Told, Hears::Told, Hears::Asks, Hears::Nothing][self.chance.below(4) as usize]
    }

    /// Returns mostly no ticket; now and then that of a waiter.
    fn ticket(&mut self) -> Option<i64> {
        let tickets = self.model.tickets();
        let place = self.chance.below(8) as usize;
        tickets.get(place).copied()
    }
}
