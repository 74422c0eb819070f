//! The oracles, which notice that two holders were inside at the same time.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::task::yield_now;
use ylock_core::{Guard, Mode, Token};

/// A room for one writer or many readers. It keeps no visitor out; it notices.
#[derive(Debug, Default)]
pub struct ExclusionOracle {
    writers: AtomicUsize,
    readers: AtomicUsize,
    most_readers: AtomicUsize,
    /// Read, then written by several steps: loses an update if two write at once.
    counter: AtomicUsize,
}

impl ExclusionOracle {
    /// Stays inside for a few turns of the scheduler, in the mode of the guard.
    pub async fn visit(&self, guard: &Guard) {
        assert!(guard.is_valid(), "a guard is valid when it is given out");
        match guard.mode() {
            Mode::Write => self.write().await,
            Mode::Read => self.read().await,
        }
    }

    async fn write(&self) {
        let inside = (self.writers.fetch_add(1, Ordering::SeqCst), self.readers.load(Ordering::SeqCst));
        assert_eq!(inside, (0, 0), "a writer is alone: (writers, readers) were inside");
        let seen = self.counter.load(Ordering::SeqCst);
        yield_now().await;
        yield_now().await;
        self.counter.store(seen + 1, Ordering::SeqCst);
        assert_eq!(self.readers.load(Ordering::SeqCst), 0, "no reader comes in beside a writer");
        self.writers.fetch_sub(1, Ordering::SeqCst);
    }

    async fn read(&self) {
        let readers = self.readers.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_readers.fetch_max(readers, Ordering::SeqCst);
        assert_eq!(self.writers.load(Ordering::SeqCst), 0, "a reader is not beside a writer");
        yield_now().await;
        yield_now().await;
        assert_eq!(self.writers.load(Ordering::SeqCst), 0, "no writer comes in beside a reader");
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns how many visits of writers are counted.
    pub fn written(&self) -> usize {
        self.counter.load(Ordering::SeqCst)
    }

    /// Returns the most readers that were inside together.
    pub fn most_readers(&self) -> usize {
        self.most_readers.load(Ordering::SeqCst)
    }
}

/// The resource of a careful user: it knows the highest tokens it has seen, and rejects requests that come too late.
#[derive(Debug, Default)]
pub struct FencedRegister(Mutex<Register>);

#[derive(Debug, Default)]
struct Register {
    value: u64,
    highest_write: Option<Token>,
    highest: Option<Token>,
}

/// The error of a request with a token that is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

impl FencedRegister {
    /// Reads, unless a later writer was here.
    ///
    /// # Errors
    /// [`Stale`].
    pub fn read(&self, token: Option<Token>) -> Result<u64, Stale> {
        let mut register = self.0.lock();
        if token < register.highest_write {
            return Err(Stale);
        }
        register.highest = register.highest.max(token);
        Ok(register.value)
    }

    /// Writes, unless a later holder was here.
    ///
    /// # Errors
    /// [`Stale`].
    pub fn write(&self, token: Option<Token>, value: u64) -> Result<(), Stale> {
        let mut register = self.0.lock();
        if token < register.highest {
            return Err(Stale);
        }
        *register = Register { value, highest_write: token, highest: token };
        Ok(())
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token is too old")
    }
}
