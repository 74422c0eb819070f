//! Errors, by what the caller should do about them.

use std::any::Any;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::key::Key;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client was closed, or is closing.
    Closed,
    /// A URL, an option or the set-up of the store is wrong; nothing will work until it is changed.
    Config,
    /// A set that grows gives way: a lock was not free at a moment at which waiting for it might never have ended, so the closure of
    /// [`two_phase_locking`](crate::Ylock::two_phase_locking) is to return, and runs again.
    GivesWay,
    /// It is in doubt whether the store has done what it was asked. The keeper resolves it in the background; the caller
    /// does not hold the lock.
    Indeterminate,
    /// An argument is outside its limits; a semaphore is in use with another number of permits; or a call of the API for synchronous code
    /// was made where it would stall an async runtime.
    Invalid,
    /// The lock was held and is held no more.
    Lost,
    /// A layer refused the acquisition.
    Refused,
    /// The longest wait of the options has passed. The number of waiters that the message tells has one for each other process, and all that
    /// were before the caller in its own: the store does not know how many wait in a process behind its first.
    TimedOut,
    /// The store did not answer, or not in time, or has too few replicas up. Nothing was acquired.
    Unavailable,
    /// The store holds something that no version of this engine writes, or broke its own rules.
    Unexpected,
    /// The engine cannot do this.
    Unsupported,
    /// Waiting would never end: the owner holds the key as a reader and wants to write.
    WouldDeadlock,
}

impl ErrorKind {
    /// Returns whether the store has not answered. Every other kind is something that the store, or this client, has said.
    pub(crate) fn is_silence(self) -> bool {
        matches!(self, Self::Unavailable | Self::Indeterminate)
    }
}

crate::closed_set! {
    /// Returns one word, as used in metric labels and spans.
    pub ErrorKind:
        Closed = "closed",
        Config = "config",
        GivesWay = "gives_way",
        Indeterminate = "indeterminate",
        Invalid = "invalid",
        Lost = "lost",
        Refused = "refused",
        TimedOut = "timed_out",
        Unavailable = "unavailable",
        Unexpected = "unexpected",
        Unsupported = "unsupported",
        WouldDeadlock = "would_deadlock",
}

/// An error, with its [kind](ErrorKind), and the engine, key and cause it belongs to.
///
/// Contention is not an error: with `now()` and `within(time)` the outcome is `None`.
///
/// `{error}` says what went wrong, `{error:#}` also why: it adds the causes, each of which is a [`source`](std::error::Error::source) of the
/// one before it. So a program that prints a chain of errors says each thing once.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    engine: Option<&'static str>,
    key: Option<Key>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    had_no_effect: bool,
}

impl Error {
    /// Creates an error of this kind; the message says which thing is wrong and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Arc::new(Inner { kind, message, engine: None, key: None, source: None, had_no_effect: false }))
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the engine that reported it.
    pub fn engine(&self) -> Option<&'static str> {
        self.0.engine
    }

    /// Returns the key it is about.
    pub fn key(&self) -> Option<&Key> {
        self.0.key.as_ref()
    }

    /// Returns whether the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Indeterminate | ErrorKind::Lost | ErrorKind::TimedOut | ErrorKind::Unavailable
        )
    }

    /// Returns whether the request that failed has certainly had no effect, and will have none.
    /// `false` where that is not known. It says nothing of the requests before it. For engines; not
    /// covered by semver.
    #[doc(hidden)]
    pub fn had_no_effect(&self) -> bool {
        self.0.had_no_effect
    }

    /// Returns the same error, of a request that has certainly had no effect and will have none: it
    /// was not sent, or the store has refused it before anything was written. An error that carries
    /// this one as its source does not say so. For engines; not covered by semver.
    #[doc(hidden)]
    #[must_use]
    pub fn without_effect(self) -> Self {
        self.change(|inner| inner.had_no_effect = true)
    }

    /// Returns the same error, naming the engine.
    #[must_use]
    pub fn with_engine(self, engine: &'static str) -> Self {
        self.change(|inner| inner.engine = Some(engine))
    }

    /// Returns the same error, naming the key.
    #[must_use]
    pub fn with_key(self, key: &Key) -> Self {
        self.change(|inner| inner.key = Some(key.clone()))
    }

    /// Returns the same error, naming its cause. Of a driver's error and its causes only the texts are kept, each once: drivers repeat a
    /// cause in their own text.
    #[must_use]
    pub fn with_source(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        let own = (&source as &dyn Any).downcast_ref::<Self>().cloned();
        self.change(|inner| {
            inner.source = match own {
                Some(own) => Some(Arc::new(own)),
                None => Cause::of(Some(&source), &inner.message).map(|cause| Arc::new(*cause) as _),
            }
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(engine) = self.0.engine {
            write!(f, " (engine {engine})")?;
        }
        if let Some(key) = &self.0.key {
            write!(f, " (lock {key:?})")?;
        }
        if f.alternate() {
            let mut cause = self.source();
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// An error of the kind that says about the same: for a function that returns `std::io::Result`.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::TimedOut => io::ErrorKind::TimedOut,
            ErrorKind::Invalid | ErrorKind::Config => io::ErrorKind::InvalidInput,
            ErrorKind::Unexpected => io::ErrorKind::InvalidData,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::Refused => io::ErrorKind::PermissionDenied,
            ErrorKind::WouldDeadlock => io::ErrorKind::Deadlock,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The text of a driver's error, and of its causes.
#[derive(Debug)]
struct Cause {
    words: String,
    source: Option<Box<Self>>,
}

impl Cause {
    /// Returns what `error` and its causes say beyond what was `said` already.
    fn of(error: Option<&(dyn std::error::Error + 'static)>, said: &str) -> Option<Box<Self>> {
        let error = error?;
        let words = error.to_string();
        if said.contains(&words) {
            return Self::of(error.source(), said);
        }
        let source = Self::of(error.source(), &words);
        Some(Box::new(Self { words, source }))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Driver(std::io::Error);

    impl fmt::Display for Driver {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the request failed: {}", self.0)
        }
    }

    impl std::error::Error for Driver {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    /// The outer one may be about more requests than the inner one.
    #[test]
    fn that_a_request_had_no_effect_is_said_of_that_error_alone() {
        let error = Error::new(ErrorKind::Config, "refused");
        assert!(!error.had_no_effect());
        let refused = error.without_effect().with_engine("redis");
        assert!(refused.had_no_effect());
        assert!(!Error::new(ErrorKind::Unavailable, "away").with_source(refused).had_no_effect());
    }

    #[test]
    fn an_error_becomes_one_of_the_standard_library_and_stays_its_cause() {
        let error = io::Error::from(Error::new(ErrorKind::TimedOut, "too late"));
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "too late"));
        let inner = error.into_inner().unwrap().downcast::<Error>().unwrap();
        assert_eq!(inner.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_chain_of_errors_says_each_thing_once() {
        let refused = Driver(std::io::Error::other("connection refused"));
        let inner = Error::new(ErrorKind::Unavailable, "store:7000 cannot be reached").with_source(refused);
        let error = Error::new(ErrorKind::Unavailable, "the store does not answer").with_source(inner);
        let all =
            "the store does not answer: store:7000 cannot be reached: the request failed: connection refused";
        assert_eq!(error.to_string(), "the store does not answer");
        assert_eq!(format!("{error:#}"), all);
        assert_eq!(format!("{error:?}"), format!("Unavailable: {all}"));
    }
}
