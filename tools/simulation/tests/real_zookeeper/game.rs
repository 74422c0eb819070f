//! Random operations of a few sessions on a few locks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use ylock_core::Owner;
use ylock_core::environment::Moment;
use ylock_engine_zookeeper::algorithm::store::{Store, WatchEvent};
use ylock_simulation::chance::Chance;

use super::operations::Operation;
use super::said::Step;
use super::sides::Side;

const LOCKS: u64 = 4;
const SESSIONS: usize = 4;
/// The watches that are kept; the oldest are taken back.
const WATCHES: usize = 24;
/// The most contenders of a lock: then one goes.
const CONTENDERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of one side.
pub(crate) struct Game {
    pub(crate) side: Side,
    pub(crate) base: String,
    pub(crate) chance: Chance,
    /// The first one never ends, and has a contender in each lock that has any: so no lock stands empty between two steps, where the real
    /// server would remove it at a moment of its own.
    pub(crate) sessions: Vec<Session>,
    watches: Vec<Watch>,
    born: usize,
    watched: usize,
    /// True if a session has ended and left a contender.
    something_is_left: bool,
    /// What is said in this step.
    pub(crate) step: Step,
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) store: Arc<dyn Store>,
    /// What the names of its contenders begin with.
    pub(crate) id: String,
}

struct Watch {
    of: String,
    what: String,
    event: WatchEvent,
}

/// Returns the path of nodes that no other test has.
pub(crate) fn new_base() -> String {
    format!("/simulated-{}", Owner::new())
}

impl Game {
    pub(crate) async fn play(side: Side, seed: u64, operations: usize) -> Vec<Step> {
        let mut game = Self {
            side,
            base: new_base(),
            chance: Chance::new(seed),
            sessions: Vec::new(),
            watches: Vec::new(),
            born: 0,
            watched: 0,
            something_is_left: false,
            step: Step::default(),
        };
        for _ in 0..SESSIONS {
            let session = game.begin().await;
            game.sessions.push(session);
        }
        game.sessions[0].store.mkdir(&game.base).await.expect("the path of the locks");
        game.flush().await;
        let mut steps = Vec::new();
        for _ in 0..operations {
            game.operate().await;
            steps.push(std::mem::take(&mut game.step));
            // Each later end would wait for it again.
            if game.something_is_left {
                break;
            }
        }
        clean(&game.sessions[0].store, &game.base).await;
        game.sessions.iter().for_each(|session| session.store.end(Moment::ZERO));
        steps
    }

    pub(crate) async fn begin(&mut self) -> Session {
        let (store, id) = (self.side.servers.session(), format!("s{}", self.born));
        self.born += 1;
        store.attach().await.expect("a session");
        Session { store, id }
    }

    async fn operate(&mut self) {
        let lock = format!("{}/l{}", self.base, self.chance.below(LOCKS));
        let names = self.look(&lock).await;
        let index = self.chance.below(SESSIONS as u64) as usize;
        let any = Operation::any(&mut self.chance);
        let operation = match names.len() {
            0 if self.chance.happens(0.3) => Operation::MakeBoth,
            length if length > CONTENDERS => Operation::Clear,
            _ => any,
        };
        self.perform(operation, index, &lock, &names).await;
        self.fill(&lock).await;
        self.flush().await;
        self.hear();
    }

    /// Returns what the lock has, in an order.
    pub(crate) async fn look(&mut self, lock: &str) -> Vec<String> {
        let store = &self.sessions[0].store;
        // A follower may not know yet what another session has just written.
        store.catch_up(&self.base).await.expect("it catches up");
        let mut names = store.list(lock).await;
        if let Ok(names) = &mut names {
            names.sort();
        }
        let short = self.short(lock);
        self.step.answer(&short, names.clone());
        names.unwrap_or_default()
    }

    /// Sees to it that the first session has a contender where there is any.
    async fn fill(&mut self, lock: &str) {
        let names = self.look(lock).await;
        let Session { store, id } = self.sessions[0].clone();
        if !names.is_empty() && !names.iter().any(|name| name.starts_with(&id)) {
            let created = store.join(lock, &format!("{id}-"), b"stays").await;
            self.step.created("the first session joins", created);
        }
    }

    /// Lets every session hear of all that has happened.
    async fn flush(&mut self) {
        let caught_up = join_all(self.sessions.iter().map(|session| session.store.catch_up(&self.base)));
        assert!(caught_up.await.iter().all(Result::is_ok), "all sessions are there");
    }

    pub(crate) fn watch(&mut self, index: usize, what: String, event: WatchEvent) {
        self.watched += 1;
        let what = format!("watch {} of {what}", self.watched);
        self.watches.push(Watch { of: self.sessions[index].id.clone(), what, event });
        if self.watches.len() > WATCHES {
            self.watches.remove(0);
        }
    }

    /// Notes the watches that have fired.
    fn hear(&mut self) {
        let step = &mut self.step;
        self.watches.retain_mut(|watch| match watch.event.as_mut().now_or_never() {
            Some(removed) => {
                step.say(&watch.what, removed);
                false
            }
            None => true,
        });
    }

    /// Ends a session, and puts another one in its place.
    pub(crate) async fn end(&mut self, index: usize) {
        let Session { store, id } = self.sessions[index].clone();
        // What they tell depends on which the client hears first: of the end or of its own nodes.
        self.watches.retain(|watch| watch.of != id);
        store.end(Moment::ZERO);
        self.step.say(&id, ("ends", store.is_over(), store.is_attached()));
        let created = store.join(&format!("{}/l0", self.base), &format!("{id}-"), b"").await;
        self.step.created("a request after that", created);
        self.step.say("attached", store.attach().await.is_ok());
        let deadline = self.side.clock.now().plus(PATIENCE);
        while self.has_any(&id).await && self.side.clock.now() < deadline {
            self.side.clock.sleep(Duration::from_millis(5)).await;
        }
        self.something_is_left = self.has_any(&id).await;
        self.step.say("something is left", self.something_is_left);
        self.sessions[index] = self.begin().await;
    }

    async fn has_any(&mut self, id: &str) -> bool {
        let locks = (0..LOCKS).map(|lock| format!("{}/l{lock}", self.base));
        let store = &self.sessions[0].store;
        let all = join_all(locks.map(|lock| async move { store.list(&lock).await.unwrap_or_default() }));
        let prefix = format!("{id}-");
        all.await.iter().flatten().any(|name| name.starts_with(&prefix))
    }

    pub(crate) fn short(&self, path: &str) -> String {
        path.replace(&self.base, "")
    }
}

/// Leaves nothing to other tests.
pub(crate) async fn clean(store: &Arc<dyn Store>, base: &str) {
    let mut paths = vec![base.to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        let names = store.list(&path).await.unwrap_or_default();
        paths.extend(names.iter().map(|name| format!("{path}/{name}")));
        next += 1;
    }
    for path in paths.iter().rev() {
        // The server may have removed a lock that is empty.
        let _ = store.remove(path).await;
    }
    store.end(Moment::ZERO);
}
