//! The connection of a session, which begins and ends with it.
//!
//! It lives on the client's own thread, so no runtime of the program takes it along. The driver finds another server by itself: a second
//! connection beside it would only take the session from it, and it would take it back.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use ylock_core::environment::Moment;
use ylock_core::{Error, ErrorKind, Result};
use zookeeper_client::Client;

use super::dialer::{Dialer, Known};
use super::operator;

/// The connection of a session; see the [module](self).
pub(super) struct Connection {
    dialer: Arc<Dialer>,
    state: watch::Sender<State>,
    /// Set when the session has begun.
    known: OnceLock<Known>,
}

#[derive(Clone)]
pub(super) enum State {
    /// The session has not begun. Has the error of the last attempt, if there was one.
    NotBegun(Option<Error>),
    /// A task connects.
    Dialing,
    Live(Arc<Client>),
    /// The session has ended, or is given up: the servers must not hear of the latter before this moment.
    Over(Moment),
}

impl Connection {
    /// Creates the connection of a session, without a driver yet.
    pub(super) fn new(dialer: &Arc<Dialer>) -> Arc<Self> {
        let (state, _) = watch::channel(State::NotBegun(None));
        Arc::new(Self { dialer: Arc::clone(dialer), state, known: OnceLock::new() })
    }

    /// Returns the driver, if the session has begun and is not over.
    pub(super) fn client(&self) -> Option<Arc<Client>> {
        match &*self.state.borrow() {
            State::Live(client) => Some(Arc::clone(client)),
            State::NotBegun(_) | State::Dialing | State::Over(_) => None,
        }
    }

    /// Returns whether the session has ended.
    pub(super) fn is_over(&self) -> bool {
        match &*self.state.borrow() {
            State::Live(client) => client.state().is_terminated(),
            State::Over(_) => true,
            State::NotBegun(_) | State::Dialing => false,
        }
    }

    /// Returns how long the servers keep the session without a sign of life.
    pub(super) fn timeout(&self) -> Duration {
        self.known.get().map_or(Duration::ZERO, |known| known.timeout)
    }

    /// Returns the moment just before the session was asked for.
    pub(super) fn asked(&self) -> Moment {
        self.known.get().map_or(Moment::ZERO, |known| known.asked)
    }

    /// Waits until the session has begun, and begins it if no other task does.
    pub(super) async fn attach(self: &Arc<Self>) -> Result<()> {
        let mut seen = self.state.subscribe();
        let mut asked = false;
        loop {
            let state = seen.borrow_and_update().clone();
            match state {
                State::Live(_) => return Ok(()),
                State::Over(_) => return Err(ended()),
                State::NotBegun(Some(error)) if asked => return Err(error),
                State::NotBegun(_) => self.dial(),
                State::Dialing => {}
            }
            asked = true;
            // The channel does not end: this connection holds the sender.
            let _ = seen.changed().await;
        }
    }

    fn dial(self: &Arc<Self>) {
        let begun = self.state.send_if_modified(|state| {
            let not_begun = matches!(state, State::NotBegun(_));
            if not_begun {
                *state = State::Dialing;
            }
            not_begun
        });
        if begun {
            operator::start(&self.dialer, Arc::downgrade(self), self.state.subscribe());
        }
    }

    /// Waits until the session has ended.
    pub(super) fn until_over(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut seen = self.state.subscribe();
        async move { drop(seen.wait_for(|state| matches!(state, State::Over(_))).await) }
    }

    /// Gives the session up. The servers are told at the moment `then`, and free at once what the session still has.
    pub(super) fn end(&self, then: Moment) {
        // The operator hears of it.
        self.change(|| State::Over(then));
    }

    pub(super) fn is_live(&self, client: &Arc<Client>, known: Known) {
        let _ = self.known.set(known);
        self.change(|| State::Live(Arc::clone(client)));
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
            State::NotBegun(_) => "not begun",
            State::Dialing => "dialing",
            State::Live(_) => "live",
            State::Over(_) => "over",
        };
        f.debug_tuple("Connection").field(&state).finish()
    }
}
