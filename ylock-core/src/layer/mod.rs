//! Middleware, seen from the user's side.
//!
//! A layer sees every acquisition of the locks that it lies over, and its end; it may refuse one. It also hears what the client
//! does by itself: holds that end, renewals, losses, requests to the store. [`Ylock::layer`](crate::Ylock::layer) adds one.
//!
//! # Examples
//! An audit log:
//! ```
//! use std::time::Duration;
//! use ylock::{Layer, Ylock};
//! use ylock::layer::{Acquisition, End, Outcome};
//!
//! #[derive(Debug)]
//! struct Audit;
//!
//! impl Layer for Audit {
//!     fn acquired(&self, who: &Acquisition, outcome: &Outcome, waited: Duration) {
//!         println!("{} {} {} {outcome:?} after {waited:?}", who.number, who.owner, who.key.name());
//!     }
//!     fn ended(&self, who: &Acquisition, end: End, held: Duration) {
//!         println!("{} {} {} {end:?} after {held:?}", who.number, who.owner, who.key.name());
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> ylock::Result<()> {
//! let ylock = Ylock::in_memory().layer(Audit);
//! assert!(ylock.locks("users").write("alice").await?.unlock().await?.is_released());
//! # Ok(()) }
//! ```
//!
//! A limit on how many acquisitions wait for a group at once:
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use std::time::Duration;
//! use ylock::{Error, ErrorKind, Layer, Result, Ylock};
//! use ylock::layer::{Acquisition, Outcome};
//!
//! #[derive(Debug)]
//! struct AtMost { group: &'static str, most: usize, waiting: AtomicUsize }
//!
//! impl Layer for AtMost {
//!     fn acquiring(&self, who: &Acquisition) -> Result<()> {
//!         if who.key.group() == self.group && self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most {
//!             self.waiting.fetch_sub(1, Ordering::Relaxed);
//!             return Err(Error::new(ErrorKind::Refused, format!("{} wait for {} already", self.most, self.group)));
//!         }
//!         Ok(())
//!     }
//!     fn acquired(&self, who: &Acquisition, _: &Outcome, _: Duration) {
//!         if who.key.group() == self.group {
//!             self.waiting.fetch_sub(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<()> {
//! let ylock = Ylock::in_memory().layer(AtMost { group: "reports", most: 1, waiting: AtomicUsize::new(0) });
//! let held = ylock.lock("reports", "today").write().await?;
//! let waits = tokio::spawn({ let lock = ylock.lock("reports", "today"); async move { lock.write().await } });
//! # while ylock.usage().iter().all(|group| group.waiting() == 0) { tokio::task::yield_now().await; }
//! assert_eq!(ylock.lock("reports", "today").write().await.unwrap_err().kind(), ErrorKind::Refused);
//! # drop(held); waits.await.unwrap()?;
//! # Ok(()) }
//! ```

mod observing;
mod spans;
mod stack;

use std::fmt;
use std::time::Duration;

use crate::error::Result;

pub use crate::events::{
    Acquisition, ClientEvent, ClientView, End, Event, Events, GroupUsage, Outcome, Renewed,
};
pub(crate) use observing::observer;
pub use spans::TracingLayer;
pub(crate) use stack::Layers;

/// Middleware: sees every acquisition and every end of a hold, and may refuse. The [module](self) has examples.
///
/// # Order
/// Layers are called in the order in which they were added for [`acquiring`](Self::acquiring), and in the reverse order
/// for what follows. Calls are made by the task that uses the lock; [`client_event`](Self::client_event) by whichever task of the client or of a
/// caller made it happen; and never while anything is locked: be quick, and hand slow work to a task of your own.
/// The thread that renews the locks calls layers, too: one that blocks it for a lease costs the client its locks.
///
/// # Panics in a layer
/// They are caught, reported in the log, and change nothing about the lock; only if `acquiring`
/// panics the acquisition fails, because a layer that guards something has not agreed. A subscriber
/// of the log that panics changes nothing either, and is not reported there.
pub trait Layer: fmt::Debug + Send + Sync + 'static {
    /// Called when the layer is added to a client. It may be added to several.
    fn attached(&self, client: &ClientView) {
        let _ = client;
    }

    /// Called when a caller wants a lock. An error refuses it: the caller gets this error, and nothing reaches the keeper.
    ///
    /// Each call is followed by exactly one [`acquired`](Self::acquired), unless this layer itself refused.
    fn acquiring(&self, acquisition: &Acquisition) -> Result<()> {
        let _ = acquisition;
        Ok(())
    }

    /// Called when an acquisition has ended, `waited` after it began.
    fn acquired(&self, acquisition: &Acquisition, outcome: &Outcome, waited: Duration) {
        let _ = (acquisition, outcome, waited);
    }

    /// Called when a guard is let go, `held` after it was granted. Reentrant acquisitions have an end of their own;
    /// [`ClientEvent::HoldEnded`] tells the end of an owner's hold, also of a hold that is lost while its guards live on.
    fn ended(&self, acquisition: &Acquisition, end: End, held: Duration) {
        let _ = (acquisition, end, held);
    }

    /// Called when a client that this layer was added to did or learnt something by itself, for any of its locks, also those that this
    /// layer does not lie over.
    fn client_event(&self, client: &ClientView, event: &ClientEvent) {
        let _ = (client, event);
    }
}
