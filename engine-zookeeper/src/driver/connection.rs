//! The connection of a session. It lives in the runtime in which it was made; the session does not.
//!
//! When that runtime ends, the driver's task ends with it, in the middle of whatever it does, and the servers hear nothing more. They keep
//! the session for its whole timeout, and it can go on over another connection, made in the runtime of the caller that needs it next. So
//! a runtime that ends costs neither what is held nor a place.
//!
//! An old driver must be known to be dead before the session goes on without it: a driver that lives would take the session back, and
//! close it. So a task of ours is started beside the driver's, in the same runtime, and only the end of our task says that the connection is
//! dead. And a driver closes its session when no task has it any more. A driver whose runtime is just ending may be polled for the last
//! time while our task is dropped, so the driver is kept until the session has another connection: what an old driver says then is refused.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result};
use zookeeper_client::Client;

use super::dialer::{Dialer, Known};
use super::operator::{FAREWELLS, Operator};

/// The connection of a session; see the [module](self).
pub(super) struct Connection {
    dialer: Arc<Dialer>,
    state: watch::Sender<State>,
    /// Set with the first connection.
    known: OnceLock<Known>,
    /// The moment just before the last connection was asked for.
    asked: Mutex<Moment>,
    /// The driver of the last connection, whose runtime has ended.
    last: Mutex<Option<Arc<Client>>>,
}

#[derive(Clone)]
pub(super) enum State {
    /// There is no connection. Has the error of the last attempt, if there was one.
    Dead(Option<Error>),
    /// A task connects.
    Dialing,
    Live(Arc<Client>),
    /// The session has ended, or is given up: the servers must not hear of the latter before this moment.
    Over(Moment),
}

impl Connection {
    /// Creates the connection of a session, without a driver yet.
    pub(super) fn new(dialer: &Arc<Dialer>) -> Arc<Self> {
        let (state, _) = watch::channel(State::Dead(None));
        Arc::new(Self {
            dialer: Arc::clone(dialer),
            state,
            known: OnceLock::new(),
            asked: Mutex::default(),
            last: Mutex::default(),
        })
    }

    /// Returns the driver, if there is a connection.
    pub(super) fn client(&self) -> Option<Arc<Client>> {
        match &*self.state.borrow() {
            State::Live(client) => Some(Arc::clone(client)),
            State::Dead(_) | State::Dialing | State::Over(_) => None,
        }
    }

    /// Returns whether the session has ended.
    pub(super) fn is_over(&self) -> bool {
        match &*self.state.borrow() {
            State::Live(client) => client.state().is_terminated(),
            State::Over(_) => true,
            State::Dead(_) | State::Dialing => false,
        }
    }

    /// Returns how long the servers keep the session without a sign of life.
    pub(super) fn timeout(&self) -> Duration {
        self.known.get().map_or(Duration::ZERO, |known| known.timeout)
    }

    /// Returns the moment just before the session was asked for, or was asked for again over its last connection.
    pub(super) fn asked(&self) -> Moment {
        *self.asked.lock()
    }

    /// Waits for a connection, and makes one if no other task does.
    pub(super) async fn attach(self: &Arc<Self>) -> Result<()> {
        let mut seen = self.state.subscribe();
        let mut asked = false;
        loop {
            let state = seen.borrow_and_update().clone();
            match state {
                State::Live(_) => return Ok(()),
                State::Over(_) => return Err(ended()),
                State::Dead(Some(error)) if asked => return Err(error),
                State::Dead(_) => self.dial(),
                State::Dialing => {}
            }
            asked = true;
            // The channel does not end: this connection holds the sender.
            let _ = seen.changed().await;
        }
    }

    fn dial(self: &Arc<Self>) {
        let begun = self.state.send_if_modified(|state| {
            let is_dead = matches!(state, State::Dead(_));
            if is_dead {
                *state = State::Dialing;
            }
            is_dead
        });
        if begun {
            let seen = self.state.subscribe();
            Operator::start(&self.dialer, Arc::downgrade(self), Some(seen), self.known.get(), FAREWELLS);
        }
    }

    /// Waits until there is no connection any more, or the session has ended.
    pub(super) fn until_dead(&self) -> impl Future<Output = ()> + Send + use<> {
        self.until(|state| matches!(state, State::Dead(_) | State::Over(_)))
    }

    /// Waits until the session has ended.
    pub(super) fn until_over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.until(|state| matches!(state, State::Over(_)))
    }

    fn until(&self, is_so: fn(&State) -> bool) -> impl Future<Output = ()> + Send + use<> {
        let mut seen = self.state.subscribe();
        async move { drop(seen.wait_for(is_so).await) }
    }

    /// Gives the session up. The servers are told at the moment `then`, and free at once what the session still has.
    pub(super) fn end(&self, then: Moment) {
        let mut was_dead = false;
        self.state.send_if_modified(|state| {
            was_dead = matches!(state, State::Dead(_));
            let goes_on = !matches!(state, State::Over(_));
            if goes_on {
                *state = State::Over(then);
            }
            goes_on
        });
        // Otherwise the operator hears of it.
        if was_dead && then <= self.dialer.environment.now() && self.known.get().is_some() {
            Operator::start(&self.dialer, Weak::new(), None, self.known.get(), FAREWELLS);
        }
    }

    pub(super) fn is_live(&self, client: &Arc<Client>, known: &Known) {
        let _ = self.known.set(known.clone());
        *self.asked.lock() = known.asked;
        self.change(|| State::Live(Arc::clone(client)));
        self.keep(None);
    }

    /// Notes that the runtime of this driver has ended.
    pub(super) fn died(&self, client: Option<Arc<Client>>) {
        if client.is_some() {
            self.keep(client);
        }
        self.change(|| State::Dead(None));
    }

    fn keep(&self, client: Option<Arc<Client>>) {
        let last = std::mem::replace(&mut *self.last.lock(), client);
        drop(last);
    }

    /// Changes the state, unless the session was given up.
    pub(super) fn change(&self, to: impl FnOnce() -> State) {
        self.state.send_if_modified(|state| {
            let goes_on = !matches!(state, State::Over(_));
            if goes_on {
                *state = to();
            }
            goes_on
        });
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Unavailable, "the session has ended").with_engine(crate::NAME)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*self.state.borrow() {
            State::Dead(_) => "dead",
            State::Dialing => "dialing",
            State::Live(_) => "live",
            State::Over(_) => "over",
        };
        f.debug_tuple("Connection").field(&state).finish()
    }
}
