//! Random operations on one key, decided by a seed.

use std::time::Duration;

use ylock_core::engine::{AcquisitionId, Ticket};
use ylock_core::{ClientName, Key, Mode, Owner, Result, StoreToken};
use ylock_engine_cassandra::algorithm::store::{Claim, Next, Row, Slot, State, Store, TimedClaim, Write};
use ylock_engine_cassandra::hints::{self, Endpoint};
use ylock_simulation::chance::Chance;

/// Few slots, so that operations meet.
const SLOTS: u64 = 3;
/// Zero is one second, to the driver.
const TTLS: [u32; 8] = [0, 1, 1, 2, 2, 3, 100, 1_000];
/// Their order by bytes is not that of numbers.
const NUMBERS: [i64; 8] = [1, 2, 255, 256, 1_700_000_000_000_000, i64::MAX, -1, i64::MIN];
/// Not all of whole milliseconds.
const LEASES: [u64; 5] = [1_000_000, 1_000_001, 1_500, 255_000, 256_000];
const TOKENS: [u64; 5] = [1, 255, 256, StoreToken::MAX - 1, StoreToken::MAX];

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Write { slot: Slot, write: Box<Write> },
    Revoke { slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32 },
    Bury { slot: Slot, heartbeat: i64 },
    Erase { slot: Slot, stamp: i64 },
}

impl Operation {
    pub(crate) async fn apply(&self, store: &dyn Store, key: &Key) -> Result<()> {
        match *self {
            Self::Write { slot, ref write } => store.write(key, slot, write).await,
            Self::Revoke { slot, id, stamp, ttl } => store.revoke(key, slot, id, stamp, ttl).await,
            Self::Bury { slot, heartbeat } => store.bury(key, slot, heartbeat).await,
            Self::Erase { slot, stamp } => store.erase(key, slot, stamp).await,
        }
    }
}

/// The operations on one key; see the [module](self).
pub(crate) struct Operations {
    chance: Chance,
    made: Vec<Operation>,
}

impl Operations {
    pub(crate) fn new(seed: u64) -> Self {
        Self { chance: Chance::new(seed), made: Vec::new() }
    }

    /// Returns for how many seconds nothing is to happen before the next operation: mostly none.
    pub(crate) fn pause(&mut self) -> i64 {
        self.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2])
    }

    /// Returns the next operation; sometimes one that there was, with all its stamps and TTLs.
    pub(crate) fn next(&mut self) -> Operation {
        let operation = match self.chance.below(16) {
            0 if !self.made.is_empty() => self.again(),
            0..=2 => Operation::Erase { slot: self.slot(), stamp: self.stamp() },
            3 | 4 => {
                Operation::Revoke { slot: self.slot(), id: self.id(), stamp: self.stamp(), ttl: self.ttl() }
            }
            5 | 6 => Operation::Bury { slot: self.slot(), heartbeat: self.stamp() },
            _ => Operation::Write { slot: self.slot(), write: Box::new(self.write()) },
        };
        self.made.push(operation.clone());
        operation
    }

    fn again(&mut self) -> Operation {
        let number = self.chance.below(self.made.len() as u64) as usize;
        self.made[number].clone()
    }

    fn write(&mut self) -> Write {
        let (claim, used) = (self.chance.happens(0.5), self.chance.happens(0.3));
        Write {
            stamp: self.stamp(),
            row: self.row(),
            row_ttl: self.ttl(),
            claim: claim.then(|| {
                let token = self.pick(&TOKENS);
                self.timed(token)
            }),
            // The token is the stamp: near the last ones, so that there are ties and older ones.
            used: used.then(|| {
                let token = self.stamp().unsigned_abs();
                self.timed(token)
            }),
        }
    }

    fn row(&mut self) -> Row {
        let next = self.chance.happens(0.5);
        Row {
            acquisition: self.id(),
            mode: self.pick(&[Mode::Read, Mode::Write]),
            state: self.pick(&[State::Idle, State::Waiting, State::Claimed, State::Held]),
            ticket: Ticket::from_number(self.pick(&NUMBERS)),
            owner: self.owner(),
            client: ClientName::default(),
            since: self.pick(&NUMBERS),
            lease: Duration::from_micros(self.pick(&LEASES)),
            next: next.then(|| self.waiter()),
            hints: self.chance.happens(0.5).then(|| self.endpoint()),
        }
    }

    /// As long as any other, so that of two the larger one is so as a text and as a number.
    fn endpoint(&mut self) -> Endpoint {
        let (port, key) = (self.pick(&[2_001, 2_002, 2_003]), self.pick(&[1, 2 << 64, u128::MAX]));
        Endpoint { address: ([10, 0, 0, 1], port).into(), key: hints::Key::from_u128(key) }
    }

    fn waiter(&mut self) -> Next {
        Next {
            acquisition: self.id(),
            owner: self.owner(),
            mode: self.pick(&[Mode::Read, Mode::Write]),
            ticket: Ticket::from_number(self.pick(&NUMBERS)),
        }
    }

    fn timed(&mut self, token: u64) -> TimedClaim {
        let claim = Claim {
            token: StoreToken::new(token).expect("a token"),
            mode: self.pick(&[Mode::Read, Mode::Write]),
        };
        TimedClaim { claim, ttl: self.ttl() }
    }

    /// Returns a stamp near those of the last operations: one of a few, so that there are ties, and not always in order.
    fn stamp(&mut self) -> i64 {
        let operations = i64::try_from(self.made.len()).unwrap_or(i64::MAX);
        1_000 + operations / 4 + self.pick(&[-2, -1, 0, 0, 0, 1, 1, 2])
    }

    fn ttl(&mut self) -> u32 {
        self.pick(&TTLS)
    }

    fn slot(&mut self) -> Slot {
        Slot::from_u128(self.chance.below(SLOTS).into())
    }

    fn id(&mut self) -> AcquisitionId {
        AcquisitionId::from_u128(self.identity())
    }

    fn owner(&mut self) -> Owner {
        Owner::from_bytes(self.identity().to_be_bytes())
    }

    /// Returns one of a few, which differ in the first byte or in the last.
    fn identity(&mut self) -> u128 {
        let (first, last) = (self.chance.below(4), self.chance.below(4));
        u128::from(first) << 126 | u128::from(last)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.chance.below(of.len() as u64) as usize]
    }
}
