//! Compares clients of one folder with the queue that the in-memory engine runs on: random operations of several clients at one lock, no
//! difference. What it finds is wrong with what is written and read again; that the queue itself is right is for its own tests.
//!
//! `YLOCK_TEST_SEED=…` plays one seed again.
#![cfg(target_os = "linux")]

mod folder;

use std::time::Duration;

use folder::Folder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ylock_core::engine::{
    AcquisitionId, Engine, Grant, Holding, Inspection, Patience, Renewal, Request, Ticket,
};
use ylock_core::environment::{Environment, SystemEnvironment};
use ylock_core::queue::{Contender, Now, Queue};
use ylock_core::{ClientName, Fairness, Key, Mode, Owner, StoreToken};
use ylock_engine_file::FileEngine;

const OPERATIONS: usize = 200;
/// So long that none ends while operations are compared.
const LEASE: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn random_operations_make_no_difference() {
    // 20 000 operations of a million.
    let part = ylock_testkit::part_of(0..5_000, 100);
    println!("{}: seeds {part:?}", ylock_testkit::part_again());
    let given = std::env::var("YLOCK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let folder = Folder::new();
    let clients = [folder.client().await, folder.client().await, folder.client().await];
    for seed in given.map_or(part, |seed: u64| seed..seed + 1) {
        Play::new(seed, &clients).play().await;
    }
    for client in clients {
        client.close().await.unwrap();
    }
    assert!(folder.locks().is_empty(), "{:?}", folder.locks());
}

struct Play<'a> {
    seed: u64,
    chance: StdRng,
    clients: &'a [FileEngine],
    key: Key,
    model: Queue,
    clock: std::sync::Arc<dyn Environment>,
    /// Acquisitions that were used already, some of them still there, each with its client.
    known: Vec<(usize, Request)>,
    tickets: i64,
    last_token: u64,
}

/// Each holder and each waiter, in order.
type Shown = (Vec<(AcquisitionId, Mode)>, Vec<(AcquisitionId, Mode)>);

impl<'a> Play<'a> {
    fn new(seed: u64, clients: &'a [FileEngine]) -> Self {
        let (chance, key) = (StdRng::seed_from_u64(seed), Key::new("model", seed).unwrap());
        let (model, clock) = (Queue::default(), SystemEnvironment::shared());
        Self { seed, chance, clients, key, model, clock, known: Vec::new(), tickets: 0, last_token: 0 }
    }

    async fn play(mut self) {
        for step in 0..OPERATIONS {
            let what = self.step().await;
            let any = self.chance.random_range(0..self.clients.len());
            let seen = shown(&self.clients[any].inspect(&self.key).await.unwrap());
            assert_eq!(seen, shown(&self.model.inspect()), "seed {} step {step}: after {what}", self.seed);
        }
        for (client, request) in self.known {
            self.clients[client].release(&self.key, request.id, None).await.unwrap();
        }
    }

    fn now(&self) -> Now {
        Now::of(&*self.clock)
    }

    async fn step(&mut self) -> String {
        let (client, request) = self.pick();
        let id = request.id;
        let what = match self.chance.random_range(0..10) {
            0..4 => self.acquire(client, &request).await,
            4..7 => self.release(client, id).await,
            7..9 => self.renew(client, &request).await,
            _ => {
                let held =
                    self.clients[self.chance.random_range(0..self.clients.len())].revoke(&self.key, id).await;
                assert_eq!(held.unwrap(), self.model.revoke(id), "seed {}: revoke", self.seed);
                "revoke".to_owned()
            }
        };
        self.let_in();
        format!("{what} {id:?}")
    }

    /// Lets in those whose turn the operation has made it, as it does itself.
    fn let_in(&mut self) {
        if !self.model.take_freed() {
            return;
        }
        let (turns, now) = (self.model.whose_turn_it_is().map(Contender::id).collect::<Vec<_>>(), self.now());
        for id in turns {
            self.model.enter(id, StoreToken::LOWEST, now);
        }
    }

    /// Asks once, as a call that has to wait does before it waits.
    async fn acquire(&mut self, client: usize, request: &Request) -> String {
        let at_once = self.clients[client].at_once().expect("it answers at once");
        let answer = at_once.acquire(request).transpose().unwrap();
        let now = self.now();
        let is_new = !self.model.find(request.id).is_some_and(|one| one.holds());
        self.model.join(request, || request.ticket.expect("each has one"), now);
        let may_enter = self.model.may_enter(request.id);
        let contended = self.model.is_contended(request.id, None);
        match answer.flatten() {
            Some(Grant { token: Some(token), contended: told, .. }) => {
                assert!(may_enter && told == contended, "seed {}: let in {request:?}", self.seed);
                assert!(!is_new || token.get() > self.last_token, "seed {}: {token:?}", self.seed);
                self.last_token = self.last_token.max(token.get());
                self.model.enter(request.id, StoreToken::LOWEST, now);
            }
            Some(grant) => panic!("seed {}: no token: {grant:?}", self.seed),
            None if request.patience == Patience::Try => {
                assert!(!may_enter, "seed {}: not let in: {request:?}", self.seed);
                self.model.withdraw(request.id);
            }
            None => assert!(!may_enter, "seed {}: not let in: {request:?}", self.seed),
        }
        "acquire".to_owned()
    }

    async fn release(&mut self, client: usize, id: AcquisitionId) -> String {
        let next = self.another_of(client, id);
        let released = self.clients[client].release(&self.key, id, next.as_ref()).await.unwrap();
        let now = self.now();
        let expected = self.model.release(id, next.as_ref(), || next.as_ref().unwrap().ticket.unwrap(), now);
        assert_eq!(released, expected, "seed {}: release {id:?} next {next:?}", self.seed);
        format!("release next {:?}", next.map(|next| next.id))
    }

    async fn renew(&mut self, client: usize, request: &Request) -> String {
        let next = self.another_of(client, request.id);
        let mode = self.mode();
        let grant = Grant::of(request, None, self.now().moment, false).with_mode(mode);
        let holding = Holding::new(grant, next.clone());
        let answers = self.clients[client].renew(std::slice::from_ref(&holding)).await;
        let now = self.now();
        let expected = self.model.renew(&holding, || next.as_ref().unwrap().ticket.unwrap(), now);
        let same = match (answers[0].as_ref().unwrap(), &expected) {
            (Renewal::Renewed { contended, .. }, Renewal::Renewed { contended: expected, .. }) => {
                contended == expected
            }
            (answer, expected) => answer == expected,
        };
        assert!(same, "seed {}: renew {holding:?}: {answers:?}, not {expected:?}", self.seed);
        format!("renew as {mode:?} next {:?}", next.map(|next| next.id))
    }

    /// Returns an acquisition that was used lately, or a new one of any client.
    fn pick(&mut self) -> (usize, Request) {
        if !self.known.is_empty() && self.chance.random_bool(0.7) {
            let back = self.chance.random_range(0..self.known.len().min(12));
            return self.known[self.known.len() - 1 - back].clone();
        }
        self.tickets += 1;
        let earlier = if self.chance.random_bool(0.1) { 3 } else { 0 };
        let id = AcquisitionId::new(&*self.clock);
        let client = ClientName::new("a client of the model").unwrap();
        let (tries, unfair) = (self.chance.random_bool(0.25), self.chance.random_bool(0.15));
        let new = Request::new(self.key.clone(), id, self.mode(), Owner::new(), client, LEASE)
            .with_patience(if tries { Patience::Try } else { Patience::Queue })
            .with_fairness(if unfair { Fairness::Unfair } else { Fairness::Fair })
            .with_ticket(Ticket::from_number(self.tickets - earlier));
        let of = self.chance.random_range(0..self.clients.len());
        self.known.push((of, new.clone()));
        (of, new)
    }

    /// Returns now and then another acquisition of the same client.
    fn another_of(&mut self, client: usize, id: AcquisitionId) -> Option<Request> {
        let (of, picked) = self.chance.random_bool(0.4).then(|| self.pick())?;
        (of == client && picked.id != id).then_some(picked)
    }

    fn mode(&mut self) -> Mode {
        if self.chance.random_bool(0.5) { Mode::Read } else { Mode::Write }
    }
}

fn shown(seen: &Inspection) -> Shown {
    let holders = seen.holders.iter().map(|holder| (holder.id, holder.mode));
    (holders.collect(), seen.queue.iter().map(|waiter| (waiter.id, waiter.mode)).collect())
}
