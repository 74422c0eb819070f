//! A client process above the keeper: what users write, with several tasks, owners and guards.

mod built;
mod contract;
mod errand;
mod inside;
mod sets;
mod visitor;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use ylock_core::engine::Engine;
use ylock_core::environment::{Environment, Moment};
use ylock_core::{Error, ErrorKind, Owner, Ylock};

use crate::backend::Subject;
use crate::chance::Chance;
use crate::client::{Busy, SharedState};
use crate::clocks::Clocks;

pub use built::Built;
pub(crate) use built::keys as built_keys;
use contract::Contract;
pub use sets::Sets;
use visitor::Visitor;

/// One run of a client process.
pub struct Process {
    shared: Arc<SharedState>,
    clocks: Arc<Clocks>,
    subject: Subject,
    /// The engines that it connects with when it has closed its client.
    engines: Mutex<Vec<Arc<dyn Engine>>>,
    /// All its clients; the last one is in use.
    clients: Mutex<Vec<Ylock>>,
    /// An owner that its tasks have in common.
    owner: Owner,
    /// When it started, by its steady clock.
    started: Moment,
}

impl Process {
    /// Starts a process with a few tasks, which may connect once with each of these engines.
    pub fn start(
        shared: &Arc<SharedState>,
        clocks: &Arc<Clocks>,
        subject: Subject,
        engines: Vec<Arc<dyn Engine>>,
        mut chance: Chance,
    ) -> Arc<Self> {
        let mut engines: Vec<_> =
            engines.into_iter().map(|engine| Contract::over(engine, &shared.oracle)).collect();
        let client = engines.pop().map(Ylock::from_arc);
        let process = Arc::new(Self {
            shared: Arc::clone(shared),
            clocks: Arc::clone(clocks),
            subject,
            engines: engines.into(),
            clients: Mutex::new(client.into_iter().collect()),
            owner: owner(&mut chance),
            started: clocks.now(),
        });
        for _ in 0..1 + chance.below(4) {
            let (process, busy) = (Arc::clone(&process), Busy::new(shared));
            let mut chance = chance.fork();
            let visitor = Visitor { process, owner: owner(&mut chance), chance };
            clocks.spawn_of_program(Box::pin(visitor.live(busy)));
        }
        process
    }

    /// Returns the client in use.
    fn client(&self) -> Option<Ylock> {
        self.clients.lock().last().cloned()
    }

    /// Closes the client, whatever is held with it, and goes on with another one.
    async fn reconnect(&self) {
        let old = {
            let mut clients = self.clients.lock();
            let (Some(engine), Some(old)) = (self.engines.lock().pop(), clients.last().cloned()) else {
                return;
            };
            clients.push(Ylock::from_arc(engine));
            old
        };
        old.close().await;
    }

    /// Closes every client.
    pub async fn close(&self) {
        let clients = self.clients.lock().clone();
        for client in clients {
            client.close().await;
            match client.lock("group", "name-0").write().now().await {
                Err(error) if error.kind() == ErrorKind::Closed => {}
                other => self.shared.oracle.complain(format!("a closed client answers {other:?}")),
            }
        }
    }

    /// Returns how many keys its clients still know.
    pub fn keys_in_use(&self) -> usize {
        self.clients.lock().iter().map(Ylock::keys_in_use).sum()
    }

    /// Complains about an error that nothing which goes wrong here explains.
    fn excuse(&self, error: &Error) {
        use ErrorKind::{Closed, Indeterminate, Lost, TimedOut, Unavailable, WouldDeadlock};
        let excused = match error.kind() {
            Closed | Lost | TimedOut | WouldDeadlock => true,
            // A store that never fails always answers, and so does one that has recovered.
            Indeterminate | Unavailable => {
                self.subject.has_trouble() && !self.shared.is_calm.load(Ordering::Relaxed)
            }
            _ => false,
        };
        if !excused {
            self.shared.oracle.complain(format!("{:?} got an error: {error}", self.clocks.actor()));
        }
    }
}

fn owner(chance: &mut Chance) -> Owner {
    let half = u128::from(chance.number());
    Owner::from_bytes((half << 64 | u128::from(chance.number())).to_be_bytes())
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}
