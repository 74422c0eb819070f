//! Compares the scripts with the queue that the in-memory engine runs on: random operations, no difference.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.
#![allow(clippy::disallowed_methods, reason = "tests of real servers wait in real time")]

mod chance;
mod reference;
mod scripts;

#[path = "../server/mod.rs"]
mod server;

use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, Ticket};

use chance::Chance;
use reference::{Asked, Hears, Manner, Reference};
use scripts::Scripts;

const OPERATIONS: usize = 200;

#[tokio::test]
#[ignore = "needs redis: run `cargo xtask test`"]
async fn random_operations_make_no_difference() {
    // 20 000 operations, or a million.
    let all = ylock_testkit::short_or_long(100, 5_000);
    let given = std::env::var("YLOCK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..all, |seed: u64| seed..seed + 1);
    let mut scripts = Scripts::connect().await;
    for seed in seeds {
        Play::new(seed).play(&mut scripts).await;
    }
}

/// One lock and what is done to it.
struct Play {
    seed: u64,
    chance: Chance,
    place: String,
    model: Reference,
    /// Acquisitions that were used already, some of them still there.
    ids: Vec<AcquisitionId>,
    last_token: u64,
}

impl Play {
    fn new(seed: u64) -> Self {
        let place = format!("ylock-model:{seed}:{}", ylock_core::Owner::new());
        let (ids, model) = (Vec::new(), Reference::default());
        Self { seed, chance: Chance::new(seed), place, model, ids, last_token: 0 }
    }

    async fn play(mut self, scripts: &mut Scripts) {
        for step in 0..OPERATIONS {
            let what = self.step(scripts).await;
            let shown = scripts.show(&self.place).await;
            assert_eq!(shown, self.model.show(), "seed {} step {step}: after {what}", self.seed);
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
        let asked = self.asked();
        let (tries, unfair) = (self.chance.below(4) == 0, self.chance.below(6) == 0);
        let manner = Manner { tries, unfair, ticket: self.ticket() };
        let what = format!("acquire {asked:?} {manner:?}");
        let is_new = self.model.mode_of_holder(asked.id).is_none();
        let (reply, token) = scripts.acquire(&self.place, asked, manner).await;
        let shown = scripts.show(&self.place).await;
        let expected = self.model.acquire(asked, manner, &shown);
        assert_eq!(reply, expected, "seed {}: {what}", self.seed);
        if let Some(token) = token {
            assert!(!is_new || token > self.last_token, "seed {}: {what}: {token} again", self.seed);
            self.last_token = self.last_token.max(token);
        }
        what
    }

    async fn release(&mut self, scripts: &mut Scripts) -> String {
        let (id, is_late) = (self.id(), self.chance.below(6) == 0);
        let next = (self.chance.below(3) == 0).then(|| self.asked()).filter(|next| next.id != id);
        let what = format!("release {id:?} late {is_late} next {next:?}");
        let was_there = scripts.release(&self.place, id, is_late, next).await;
        let shown = scripts.show(&self.place).await;
        let expected = self.model.release(id, is_late, next, &shown);
        assert_eq!(was_there, expected, "seed {}: {what}", self.seed);
        what
    }

    async fn renew(&mut self, scripts: &mut Scripts) -> String {
        let (id, mode) = (self.id(), self.mode());
        let behind = (self.chance.below(2) == 0).then(|| self.asked()).filter(|behind| behind.id != id);
        let what = format!("renew {id:?} {mode:?} behind {behind:?}");
        let answer = scripts.renew(&self.place, id, mode, behind).await;
        let shown = scripts.show(&self.place).await;
        let expected = self.model.renew(id, mode, behind, &shown);
        assert_eq!(answer, expected, "seed {}: {what}", self.seed);
        what
    }

    async fn revoke(&mut self, scripts: &mut Scripts) -> String {
        let id = self.id();
        let held = scripts.revoke(&self.place, id).await;
        assert_eq!(held, self.model.revoke(id), "seed {}: revoke {id:?}", self.seed);
        format!("revoke {id:?}")
    }

    fn asked(&mut self) -> Asked {
        Asked { id: self.id(), mode: self.mode(), hears: self.hears() }
    }

    /// Returns an acquisition that was used already, or a new one.
    fn id(&mut self) -> AcquisitionId {
        let known = self.ids.len() as u64;
        if known > 0 && self.chance.below(3) > 0 {
            let back = self.chance.below(known.min(12));
            return self.ids[(known - 1 - back) as usize];
        }
        // All of its bits: they decide on which levels of the queue a waiter is.
        let bits = (u128::from(self.chance.number()) << 64) | u128::from(self.chance.number());
        let id = AcquisitionId::from_u128(bits);
        self.ids.push(id);
        id
    }

    fn mode(&mut self) -> Mode {
        if self.chance.below(2) == 0 { Mode::Read } else { Mode::Write }
    }

    fn hears(&mut self) -> Hears {
        [Hears::Told, Hears::Told, Hears::Asks, Hears::Nothing][self.chance.below(4) as usize]
    }

    /// Returns mostly no ticket; now and then that of a waiter.
    fn ticket(&mut self) -> Option<Ticket> {
        let place = self.chance.below(8) as usize;
        self.model.show().queue.get(place).map(|(.., ticket)| *ticket)
    }
}
