//! The contact with the store for one key, so that a wait that ends can tell a lock that is held from a store that is away.

mod pace;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use self::pace::Pace;
use crate::environment::{Environment, Moment};
use crate::error::{Error, ErrorKind};

/// A request is taken for unanswered if it takes this many times as long as the slowest answer, and [`GRACE`].
const SLOWER: u32 = 4;
/// A store that works may take this long now and then, such as while it collects garbage.
const GRACE: Duration = Duration::from_millis(100);
/// No answer counts as slower than this: a connection that took long to be made does not make a store slow.
const SLOWEST: Duration = Duration::from_millis(250);

tokio::task_local! {
    /// The contact for the key that the engine is asked for. Set around the calls of the engine's methods, so that engines need not pass it
    /// on.
    static CURRENT: Arc<Contact>;
}

/// The store's answers to the requests for one key of this client.
#[derive(Debug, Default)]
pub(crate) struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The moment at which the request was sent that is still without an answer.
    asked: Option<Moment>,
    /// The store has answered at least once.
    answered: bool,
    /// The longest that an answer took.
    slowest: Duration,
    /// The answers to the client's other requests: a store that is slow for all of them is not silent for one.
    pace: Option<Arc<Pace>>,
    /// The failure that came instead of the last answer.
    failure: Option<Error>,
}

impl Contact {
    /// Runs a call of the engine whose requests are this contact's.
    pub(crate) async fn scope<T>(self: &Arc<Self>, call: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::clone(self), call).await
    }

    /// Returns the error of a wait that ends now, if the cause is the store and not a holder: the store has not answered the last request,
    /// or none at all.
    pub(crate) fn silence(&self, now: Moment) -> Option<Error> {
        let state = self.0.lock();
        if let Some(failure) = &state.failure {
            return Some(away(failure.clone()));
        }
        let waited = now.since(state.asked?);
        let others = state.pace.as_ref().map_or(Duration::ZERO, |pace| pace.slowest(now)).min(SLOWEST);
        let slowest = state.slowest.max(others);
        let is_silent = !state.answered || waited > slowest.saturating_mul(SLOWER).saturating_add(GRACE);
        is_silent.then(|| {
            Error::new(ErrorKind::Unavailable, format!("the store has not answered for {waited:.1?}"))
        })
    }

    fn answered(&self, took: Duration) {
        let mut state = self.0.lock();
        (state.answered, state.failure) = (true, None);
        state.slowest = state.slowest.max(took).min(SLOWEST);
    }

    /// Notes the failure that came instead of an answer; or an answer that says no.
    pub(crate) fn failed(&self, error: &Error) {
        let is_silence = error.kind().is_silence();
        let mut state = self.0.lock();
        // Every other kind is something that the store has said.
        state.answered |= !is_silence;
        state.failure = is_silence.then(|| error.clone());
    }
}

/// Waits for something that only the store can bring: the answer to a request, a connection, a session. `failure` returns the error that
/// the result stands for, if it is one.
pub async fn asking<T>(
    environment: &dyn Environment,
    request: impl Future<Output = T>,
    failure: impl FnOnce(&T) -> Option<Error>,
) -> T {
    ask(environment, None, request, failure).await
}

/// As [`asking`], for a request whose answer tells how fast the store is.
pub(crate) async fn asking_at<T>(
    environment: &dyn Environment,
    pace: &Arc<Pace>,
    request: impl Future<Output = T>,
    failure: impl FnOnce(&T) -> Option<Error>,
) -> T {
    ask(environment, Some(pace), request, failure).await
}

async fn ask<T>(
    environment: &dyn Environment,
    pace: Option<&Arc<Pace>>,
    request: impl Future<Output = T>,
    failure: impl FnOnce(&T) -> Option<Error>,
) -> T {
    let Ok(contact) = CURRENT.try_with(Arc::clone) else { return request.await };
    let asked = environment.now();
    let mut request = pin!(request);
    let answer = match futures_util::poll!(request.as_mut()) {
        // What is there at once does not come from the store: the session was there already, or the connection has ended.
        Poll::Ready(answer) => {
            failure(&answer).iter().for_each(|error| contact.failed(error));
            return answer;
        }
        Poll::Pending => {
            let _asking = Asking::since(asked, &contact, pace);
            request.await
        }
    };
    match failure(&answer) {
        Some(error) => contact.failed(&error),
        None => {
            let now = environment.now();
            pace.iter().for_each(|pace| pace.answered(now, now.since(asked)));
            contact.answered(now.since(asked));
        }
    }
    answer
}

/// Notes the failure that came instead of an answer, for engines that learn of it after the request.
pub(crate) fn failed(error: &Error) {
    // Outside of a call of the engine there is no contact, and nothing to note.
    CURRENT.try_with(|contact| contact.failed(error)).ok();
}

/// Returns the error for a store that is away, as `failure` shows.
pub(crate) fn away(failure: Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the store does not answer").with_source(failure)
}

/// A request that is on its way.
struct Asking<'a>(&'a Contact);

impl<'a> Asking<'a> {
    fn since(asked: Moment, contact: &'a Contact, pace: Option<&Arc<Pace>>) -> Self {
        let mut state = contact.0.lock();
        state.asked.get_or_insert(asked);
        state.pace = pace.cloned();
        Self(contact)
    }
}

/// Ends the request: it was answered; or dropped, because the caller has learnt otherwise what it asks for, which says nothing of the
/// store.
impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Self(contact) = self;
        contact.0.lock().asked = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::environment::SystemEnvironment;

    const TRIP: Duration = Duration::from_millis(5);

    struct Store {
        environment: Arc<dyn Environment>,
        pace: Arc<Pace>,
        contact: Arc<Contact>,
    }

    impl Store {
        fn new() -> Self {
            let environment = SystemEnvironment::on_tokio_clock();
            Self { environment, pace: Arc::default(), contact: Arc::default() }
        }

        /// The same store, asked for another key.
        fn for_another_key(&self) -> Self {
            let (environment, pace) = (Arc::clone(&self.environment), Arc::clone(&self.pace));
            Self { environment, pace, contact: Arc::default() }
        }

        /// Asks, and waits for the answer for so long.
        async fn ask(&self, answer: Result<Duration, ErrorKind>, patience: Duration) {
            let environment = &*self.environment;
            let request = async {
                environment.sleep(answer.unwrap_or(TRIP)).await;
                answer.map_err(|kind| Error::new(kind, "no answer"))
            };
            let call = asking_at(environment, &self.pace, request, |answer| answer.as_ref().err().cloned());
            drop(tokio::time::timeout(patience, self.contact.scope(call)).await);
        }

        fn is_silent(&self) -> bool {
            self.contact.silence(self.environment.now()).is_some()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_was_not_asked_or_has_answered_is_not_silent() {
        let store = Store::new();
        assert!(!store.is_silent());
        store.ask(Ok(TRIP), TRIP * 2).await;
        assert!(!store.is_silent());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_silence_until_there_is_an_answer_which_may_be_a_no() {
        for kind in [ErrorKind::Unavailable, ErrorKind::Indeterminate] {
            let store = Store::new();
            store.ask(Err(kind), TRIP * 2).await;
            assert!(store.is_silent(), "{kind:?}");
            store.ask(Err(ErrorKind::Config), TRIP * 2).await;
            assert!(!store.is_silent(), "{kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_dropped_says_nothing() {
        let store = Store::new();
        store.ask(Ok(TRIP), TRIP * 2).await;
        store.ask(Ok(TRIP * 1_000), TRIP).await;
        tokio::time::advance(TRIP * 1_000).await;
        assert!(!store.is_silent());
    }

    /// While it is on its way: what a waiter that polls a working store would meet most of the time is no outage.
    #[tokio::test(start_paused = true)]
    async fn a_request_on_its_way_is_silence_at_once_if_it_is_the_first_and_otherwise_when_it_is_late() {
        let store = Store::new();
        let look = async |after: Duration| {
            let hangs = asking(&*store.environment, pending::<()>(), |()| None);
            let mut hangs = pin!(store.contact.scope(hangs));
            assert!(tokio::time::timeout(after, hangs.as_mut()).await.is_err());
            store.is_silent()
        };
        assert!(look(TRIP).await);
        store.ask(Ok(TRIP), TRIP * 2).await;
        assert!(!look(TRIP).await);
        assert!(look(TRIP * SLOWER + GRACE * 2).await);
    }

    /// Where many wait, each for a key of its own, the requests of all of them become slow together.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_has_become_slow_for_all_keys_is_not_silent_for_one() {
        let (slow, store) = (TRIP * 20, Store::new());
        store.ask(Ok(TRIP), TRIP * 2).await;
        let other = store.for_another_key();
        let hangs = asking_at(&*store.environment, &store.pace, pending::<()>(), |()| None);
        let mut hangs = pin!(store.contact.scope(hangs));
        let mut look = async |after: Duration| {
            assert!(tokio::time::timeout(after, hangs.as_mut()).await.is_err());
            store.is_silent()
        };
        assert!(!look(Duration::ZERO).await);
        other.ask(Ok(slow), slow * 2).await;
        assert!(!look(slow).await);
        assert!(look(slow * SLOWER).await);
    }

    /// A session that is there already, say.
    #[tokio::test(start_paused = true)]
    async fn what_is_there_at_once_is_no_answer_of_the_store() {
        let store = Store::new();
        store.contact.scope(asking(&*store.environment, async {}, |()| None)).await;
        let hangs = asking(&*store.environment, pending::<()>(), |()| None);
        let mut hangs = pin!(store.contact.scope(hangs));
        assert!(tokio::time::timeout(TRIP, hangs.as_mut()).await.is_err());
        assert!(store.is_silent());
    }
}
