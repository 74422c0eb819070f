//! A client's way to the cluster: the algorithm's store.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use ylock_core::engine::AcquisitionId;
use ylock_core::environment::Environment;
use ylock_core::{Error, ErrorKind, Key, Result};
use ylock_engine_cassandra::algorithm::clock::TimeCell;
use ylock_engine_cassandra::algorithm::runs::RunCell;
use ylock_engine_cassandra::algorithm::store::{LastTokens, Page, Partition, Slot, State, Store, Write};

use super::cluster::{Cluster, Reply};
use super::mutation;
use super::network::Wire;
use crate::clocks::Clocks;
use crate::places::Places;
use crate::world::World;

/// A client's connection; see the [module](self).
pub struct Connection {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    clocks: Arc<Clocks>,
    timeout: Duration,
    places: Option<Arc<Places>>,
}

impl Connection {
    /// Creates a connection whose requests may take so long.
    pub fn new(world: &Arc<World>, cluster: &Arc<Cluster>, clocks: &Arc<Clocks>, timeout: Duration) -> Self {
        let (world, cluster, clocks) = (Arc::clone(world), Arc::clone(cluster), Arc::clone(clocks));
        Self { world, cluster, clocks, timeout, places: None }
    }

    /// Returns the connection with a watcher of the queue.
    #[must_use]
    pub fn watched_by(mut self, places: &Arc<Places>) -> Self {
        self.places = Some(Arc::clone(places));
        self
    }

    /// Sends a request and waits for its reply, but not for ever. A reply that comes later is not heard.
    async fn ask<T: Send + 'static>(&self, send: impl FnOnce(Reply<T>)) -> Result<T> {
        self.cluster.requests.fetch_add(1, Ordering::Relaxed);
        let answer = Answer(Arc::default());
        let state = Arc::clone(&answer.0);
        send(Box::new(move |value| {
            let mut state = state.lock();
            state.value = Some(value);
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }));
        match select(answer, self.clocks.sleep(self.timeout)).await {
            Either::Left((value, _)) => Ok(value),
            Either::Right(_) => Err(Error::new(ErrorKind::Unavailable, "no answer in time")),
        }
    }

    /// Returns the way of this client to the others.
    pub fn carrier(&self) -> Arc<Wire> {
        self.cluster.network.carrier(self.clocks.actor())
    }

    /// Reads what one replica knows, which is too few: only variants that are to break do so.
    ///
    /// # Errors
    /// As those of `read`.
    pub async fn read_from_one(&self, key: &Key) -> Result<Partition> {
        self.ask(|reply| self.cluster.read(key.clone(), Some(1), reply)).await.and_then(|look| look)
    }

    fn note(&self, slot: Slot, line: impl FnOnce() -> String) {
        self.world.note(|| format!("{:?} {:04x} {}", self.clocks.actor(), slot.as_u128() >> 112, line()));
    }
}

#[async_trait]
impl Store for Connection {
    async fn write(&self, key: &Key, slot: Slot, write: &Write) -> Result<()> {
        self.note(slot, || {
            format!(
                "writes {:?} {:?} stamp {} claim {:?} used {:?}",
                write.row.state,
                write.row.mode,
                write.stamp,
                write.claim.map(|timed| timed.claim.token),
                write.used.map(|timed| timed.claim.token)
            )
        });
        let (actor, sent) = (self.clocks.actor(), self.world.now());
        self.cluster.heartbeats.sends(&self.clocks, slot, write);
        self.cluster.network.is_written(write.row.hints);
        if let Some(places) = &self.places {
            places.writes(actor, key, write);
        }
        let written = write.clone();
        let make = Box::new(move |second| mutation::of_write(slot, &written, second));
        let outcome = self.ask(|reply| self.cluster.write(key.clone(), make, reply)).await;
        if let (Some(places), Ok(())) = (&self.places, &outcome) {
            places.acknowledged(actor, key, write, sent);
        }
        self.note(slot, || {
            format!(
                "stamp {} {}",
                write.stamp,
                if outcome.is_ok() { "is acknowledged" } else { "is in doubt" }
            )
        });
        outcome
    }

    async fn read(&self, key: &Key) -> Result<Partition> {
        let expected = self.places.as_ref().and_then(|places| places.looks(self.clocks.actor(), key));
        let look = self.ask(|reply| self.cluster.read(key.clone(), None, reply)).await.and_then(|look| look);
        if let (Some(places), Ok(_)) = (&self.places, &look) {
            places.has_looked(self.clocks.actor(), key, expected);
        }
        self.world.note(|| format!("{:?} sees {}", self.clocks.actor(), shown(&look)));
        look
    }

    async fn read_last_tokens(&self, key: &Key) -> Result<LastTokens> {
        let look =
            self.ask(|reply| self.cluster.read(key.clone(), None, reply)).await.and_then(|look| look)?;
        self.world
            .note(|| format!("{:?} reads the last tokens {:?}", self.clocks.actor(), look.last_tokens()));
        Ok(look.last_tokens())
    }

    async fn keys(&self, after: Option<i64>) -> Result<Page> {
        let (keys, next) = self.cluster.locks_after(after);
        let mut page = Page { keys: Vec::new(), next };
        for key in keys {
            // As a page is read: at a quorum, and each partition for itself.
            let look =
                self.ask(|reply| self.cluster.read(key.clone(), None, reply)).await.and_then(|look| look)?;
            if look.rows.iter().filter_map(|seen| seen.row.as_ref()).any(|row| row.state != State::Idle) {
                page.keys.push(key);
            }
        }
        Ok(page)
    }

    async fn revoke(&self, key: &Key, slot: Slot, id: AcquisitionId, stamp: i64, ttl: u32) -> Result<()> {
        self.note(slot, || format!("is asked to give up by {:?}", self.clocks.actor()));
        let make = Box::new(move |second| mutation::of_revoke(slot, id, stamp, ttl, second));
        self.ask(|reply| self.cluster.write(key.clone(), make, reply)).await
    }

    async fn bury(&self, key: &Key, slot: Slot, heartbeat: i64) -> Result<()> {
        self.note(slot, || format!("stamp {heartbeat} is buried by {:?}", self.clocks.actor()));
        self.cluster.heartbeats.is_buried(&self.world, &self.clocks, slot, heartbeat);
        let make = Box::new(move |second| mutation::of_bury(slot, heartbeat, second));
        self.ask(|reply| self.cluster.write(key.clone(), make, reply)).await
    }

    async fn erase(&self, key: &Key, slot: Slot, stamp: i64) -> Result<()> {
        if let Some(places) = &self.places {
            places.erases(self.clocks.actor(), key);
        }
        let make = Box::new(move |second| mutation::of_erase(slot, stamp, second));
        self.ask(|reply| self.cluster.write(key.clone(), make, reply)).await
    }
}

#[async_trait]
impl TimeCell for Connection {
    async fn read_time(&self) -> Result<Option<i64>> {
        let key = time_key()?;
        let look = self.ask(|reply| self.cluster.read(key, None, reply)).await.and_then(|look| look)?;
        Ok(look.last_write.and_then(|time| i64::try_from(time.get()).ok()))
    }

    async fn write_time(&self, micros: i64) -> Result<()> {
        let key = time_key()?;
        let make = Box::new(move |_| mutation::of_time(micros));
        self.ask(|reply| self.cluster.write(key, make, reply)).await
    }
}

#[async_trait]
impl RunCell for Connection {
    async fn read_run(&self, key: &Key) -> Result<Option<String>> {
        let key = run_key(key)?;
        let look = self.ask(|reply| self.cluster.read(key, None, reply)).await.and_then(|look| look)?;
        let number = look.last_write.and_then(|number| usize::try_from(number.get()).ok());
        Ok(number.and_then(|number| self.cluster.runs.lock().get(number - 1).cloned()))
    }

    async fn write_run(&self, key: &Key, run: &str, stamp: i64, ttl: u32) -> Result<()> {
        let (key, number) = (run_key(key)?, {
            let mut runs = self.cluster.runs.lock();
            runs.push(run.to_owned());
            runs.len()
        });
        let make = Box::new(move |second| mutation::of_run(number, stamp, ttl, second));
        self.ask(|reply| self.cluster.write(key, make, reply)).await
    }
}

/// Returns a look in one line.
fn shown(look: &Result<Partition>) -> String {
    let look = match look {
        Ok(look) => look,
        Err(error) => return format!("nothing: {error}"),
    };
    let rows = look.rows.iter().map(|seen| {
        let state = seen.row.as_ref().map_or("expired".to_owned(), |row| {
            format!("{:?} {:?} {}", row.state, row.mode, row.ticket.get())
        });
        format!(
            "{:04x} {state} token {:?}",
            seen.slot.as_u128() >> 112,
            seen.claim.map(|claim| claim.token.get())
        )
    });
    let last = |token: Option<ylock_core::StoreToken>| token.map(ylock_core::StoreToken::get);
    format!(
        "[{}] last {:?} {:?}",
        rows.collect::<Vec<_>>().join(", "),
        last(look.last_write),
        last(look.last_read)
    )
}

/// Returns where the simulated cluster keeps the last run of a job: no lock of a run has such a name.
fn run_key(key: &Key) -> Result<Key> {
    Key::new("ylock", format!("run of {}", key.name()))
}

/// Returns where the simulated cluster keeps the global time: no lock of a run has this name.
fn time_key() -> Result<Key> {
    Key::new("ylock", "global time")
}

#[derive(Debug)]
struct AnswerState<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

struct Answer<T>(Arc<Mutex<AnswerState<T>>>);

impl<T> Default for AnswerState<T> {
    fn default() -> Self {
        Self { value: None, waker: None }
    }
}

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}
