//! One lock, and random operations on it.

use ylock_core::Mode;
use ylock_core::engine::{AcquisitionId, Renewal, Ticket};

use super::Driven;
use super::chance::Chance;
use super::reference::{Asked, Hears, Manner, Reference};

/// The operations on one lock.
const OPERATIONS: usize = 200;

/// One lock and what is done to it.
pub(super) struct Play {
    seed: u64,
    chance: Chance,
    place: String,
    model: Reference,
    /// Acquisitions that were used already, some of them still there.
    ids: Vec<AcquisitionId>,
    last_token: u64,
    /// The last grant that was renewed with a waiter behind it, and that waiter.
    announced: Option<(AcquisitionId, Asked)>,
}

impl Play {
    pub(super) fn new(seed: u64) -> Self {
        let place = format!("ylock-model:{seed}:{}", ylock_core::Owner::new());
        let (ids, model) = (Vec::new(), Reference::default());
        Self { seed, chance: Chance::new(seed), place, model, ids, last_token: 0, announced: None }
    }

    pub(super) async fn play(mut self, driven: &mut dyn Driven) {
        for step in 0..OPERATIONS {
            let what = self.step(driven).await;
            let shown = driven.show(&self.place).await;
            assert_eq!(shown, self.model.show(), "seed {} step {step}: after {what}", self.seed);
        }
        driven.remove(&self.place).await;
    }

    async fn step(&mut self, driven: &mut dyn Driven) -> String {
        match self.chance.below(10) {
            0..4 => self.acquire(driven).await,
            4..7 => self.release(driven).await,
            7..9 => self.renew(driven).await,
            _ => self.revoke(driven).await,
        }
    }

    async fn acquire(&mut self, driven: &mut dyn Driven) -> String {
        let asked = self.asked();
        let (tries, unfair) = (self.chance.below(4) == 0, self.chance.below(6) == 0);
        let manner = Manner { tries, unfair, ticket: self.ticket() };
        let what = format!("acquire {asked:?} {manner:?}");
        let is_new = self.model.mode_of_holder(asked.id).is_none();
        let (reply, token) = driven.acquire(&self.place, asked, manner).await;
        let shown = driven.show(&self.place).await;
        let expected = self.model.acquire(asked, manner, &shown);
        assert_eq!(reply, expected, "seed {}: {what}", self.seed);
        if let Some(token) = token {
            assert!(!is_new || token > self.last_token, "seed {}: {what}: {token} again", self.seed);
            self.last_token = self.last_token.max(token);
        }
        what
    }

    async fn release(&mut self, driven: &mut dyn Driven) -> String {
        // In every second play nothing is remembered, and the quick ways are open.
        let is_late = self.seed.is_multiple_of(2) && self.chance.below(6) == 0;
        let (id, next) = match self.announced.take_if(|_| self.chance.below(4) == 0) {
            // Mostly the one that it stands behind.
            Some((id, behind)) => (if self.chance.below(3) > 0 { id } else { self.id() }, Some(behind)),
            None => (self.id(), (self.chance.below(3) == 0).then(|| self.asked())),
        };
        let next = next.filter(|next| next.id != id);
        let what = format!("release {id:?} late {is_late} next {next:?}");
        let was_there = driven.release(&self.place, id, is_late, next).await;
        let shown = driven.show(&self.place).await;
        let expected = self.model.release(id, is_late, next, &shown);
        assert_eq!(was_there, expected, "seed {}: {what}", self.seed);
        what
    }

    async fn renew(&mut self, driven: &mut dyn Driven) -> String {
        let id = match self.announced {
            Some((id, _)) if self.chance.below(3) == 0 => id,
            _ => self.id(),
        };
        let held = self.model.mode_of_holder(id).filter(|_| self.chance.below(2) == 0);
        let mode = held.unwrap_or_else(|| self.mode());
        let behind = (self.chance.below(2) == 0).then(|| self.asked()).filter(|behind| behind.id != id);
        let what = format!("renew {id:?} {mode:?} behind {behind:?}");
        let answer = driven.renew(&self.place, id, mode, behind).await;
        let shown = driven.show(&self.place).await;
        let expected = self.model.renew(id, mode, behind, &shown);
        assert_eq!(answer, expected, "seed {}: {what}", self.seed);
        if let (Renewal::Renewed { .. }, Some(behind)) = (answer, behind) {
            self.announced = Some((id, behind));
        }
        what
    }

    async fn revoke(&mut self, driven: &mut dyn Driven) -> String {
        let id = self.id();
        let held = driven.revoke(&self.place, id).await;
        assert_eq!(held, self.model.revoke(id), "seed {}: revoke {id:?}", self.seed);
        format!("revoke {id:?}")
    }

    fn asked(&mut self) -> Asked {
        Asked { id: self.id(), mode: self.mode(), hears: self.hears() }
    }

    /// Returns a holder, another acquisition that was used already, or a new one.
    fn id(&mut self) -> AcquisitionId {
        let holders = self.model.show().holders;
        if !holders.is_empty() && self.chance.below(5) == 0 {
            return holders[self.chance.below(holders.len() as u64) as usize].0;
        }
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
